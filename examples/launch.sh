#!/bin/sh
# Launch the same inference as two instances, each pinned to one core of its own, each with its own number of threads.
#
#     sh examples/launch.sh
set -e
cd "$(dirname "$0")"

# The program brings an OpenMP runtime of its own (GNU's), so none is preloaded.
launch="run_cpu --ninstances 2 --ncores-per-instance 1 --disable-iomp"

# What would run where, and why; nothing is started.
$launch --dry-run native_inference.py

$launch native_inference.py
