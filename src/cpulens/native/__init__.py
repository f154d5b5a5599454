"""Loaded libraries, their symbols, and just enough of oneDNN's and oneMKL's C API to run one primitive."""
