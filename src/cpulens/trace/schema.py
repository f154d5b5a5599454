"""The columns of the two tables, and what may stand in them: the contract between the reader and everyone after it.

``texts`` has one row per distinct text (a log line without its stamp and its time), ``events`` one narrow row per
record, in log order. ``Trace.frame`` is their join. Values that a log does not give are null, never 0 or "".
"""

from __future__ import annotations

from typing import Final

SCHEMA_VERSION: Final = 1

#: Column → (type, meaning). Types are names of polars data types.
TEXT_COLUMNS: Final[dict[str, tuple[str, str]]] = {
    "text": ("UInt32", "key of the row; `events.text` points here"),
    "library": ("String", "who printed it: onednn, mkl, or cpulens for markers"),
    "component": ("String", "primitive, graph, ukernel, common; for MKL blas, lapack, fft, rng, sparse; marker"),
    "event": ("String", "one of EVENTS"),
    "cache": ("String", "of a creation: hit, miss, from_cache_blob, persistent_hit, kernel_hit, nested_hit"),
    "engine": ("String", "cpu, gpu, gpu:0, cpu2gpu, …"),
    "primitive": (
        "String",
        "kind of primitive in the newest spelling; for MKL the routine (BLAS and LAPACK in lower case)",
    ),
    "implementation": ("String", "name of the implementation as printed; null for MKL, which does not say"),
    "family": (
        "String",
        "brgemm, jit, gemm, ref, simple, acl, blas, lapack, fft, …, worked out from the implementation",
    ),
    "isa": ("String", "instruction set in the implementation's name, such as avx512_core_amx"),
    "prop_kind": ("String", "forward_inference, backward_data, …"),
    "src_dt": ("String", "data type of the (first) source"),
    "wei_dt": ("String", "data type of the weights"),
    "dst_dt": ("String", "data type of the destination"),
    "tensors": ("String", "memory descriptors in the newest spelling, joined by blanks"),
    "attributes": ("String", "scales, zero points, post-ops, … in the newest spelling"),
    "auxiliary": ("String", "algorithm, axis, flags, …"),
    "problem": ("String", "dimensions in the newest spelling"),
    "threads": ("Int32", "threads the library may use for this call, where the line says so (MKL's NThr)"),
    "flops": ("Float64", "operations of one execution; null: not known"),
    "bytes": ("Float64", "bytes that one execution must move; null: not known"),
    "message": ("String", "free text of dispatch, check, error, warn, info and unknown lines; a marker's name"),
    "source": ("String", "file and line of the library's source, where a dispatch, check or error line names it"),
    "raw": ("String", "the text itself, for MKL without pointers; invalid UTF-8 replaced"),
}

EVENT_COLUMNS: Final[dict[str, tuple[str, str]]] = {
    "seq": ("Int64", "number of the record in the trace, from 0"),
    "line": ("Int64", "physical line in its log, from 1"),
    "instance": ("String", "which process or log, where there are several; null: the only one"),
    "text": ("UInt32", "key into texts"),
    "duration_ms": ("Float64", "time printed on the line, in milliseconds; null: none printed"),
    "start_ns": ("Int64", "start, Unix time in nanoseconds, where the line is stamped; a marker's time"),
    "thread": ("Int32", "MKL's TID; a marker's thread"),
    "region": ("String", "path of the open regions, outermost first, joined by /; null: none, or not attributable"),
    "layer": ("String", "path of the watched module in whose call it ran; null: none, or not attributable"),
    "iteration": ("Int32", "iteration it belongs to, from 0; null: before the first, or none marked"),
    "inner": ("Boolean", "its time is contained in another record's (a primitive inside a graph partition)"),
}

EVENTS: Final = (
    "exec",  # a kernel ran
    "create",  # a primitive was created
    "create_nested",  # … inside another creation
    "compile",  # a graph partition was compiled
    "dispatch",  # an implementation was considered and refused
    "check",  # an argument was refused
    "error",
    "warn",
    "info",  # headers, and what else a library says of itself
    "external",  # a kernel of another library called by oneDNN (ACL): its time lies inside an exec
    "query",  # an MKL call that asks for the size of a workspace (lwork = -1)
    "begin",  # MKL sparse BEGIN (the call's END is the exec); a region's begin marker
    "end",  # a region's end marker
    "iteration",  # an iteration marker
    "layer",  # a layer marker: from here on its thread is in that layer
    "unknown",  # ours by its marker, but not understood
)
