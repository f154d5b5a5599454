"""Prepared primitives: many executions, wrong use, ends of life (closing, exit, fork, threads)."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

from cpulens.errors import NativeError, UsageError
from cpulens.native import onednn
from cpulens.native.onednn import Attributes, Matmul, Memory, MemoryDescriptor, array_of
from tests_support import Program


def f32(*dims: int, tag: str | None = None) -> MemoryDescriptor:
    return MemoryDescriptor(dims, "f32", tag)


def test_one_primitive_executes_on_changing_data() -> None:
    a, b, c = (np.zeros(shape, np.float32) for shape in [(3, 4), (4, 5), (3, 5)])
    memories = [Memory(f32(*array.shape), array) for array in (a, b, c)]
    with Matmul(*(memory.descriptor for memory in memories)) as product:
        product.bind(src=memories[0], weights=memories[1], dst=memories[2])
        for seed in range(20):
            rng = np.random.default_rng(seed)
            a[:], b[:] = rng.standard_normal(a.shape), rng.standard_normal(b.shape)
            product.execute()
            np.testing.assert_allclose(c, a @ b, atol=1e-5)


def test_allocate_fills_the_gaps() -> None:
    product = Matmul(f32(8, 16), f32(16, 32, tag="any"), f32(8, 32), f32(1, 32))
    assert set(product.arguments) == {"src", "weights", "bias", "dst"}
    bias = np.full((1, 32), 3, np.float32)
    product.bind(bias=Memory(f32(1, 32), bias))
    memories = product.allocate()
    assert set(memories) == {"src", "weights", "bias", "dst"}
    for name in ("src", "weights"):
        memories[name].bytes_view()[:] = bytes(memories[name].descriptor.size_bytes)
    product.execute()
    np.testing.assert_array_equal(array_of(memories["dst"]), np.full((8, 32), 3))


def test_describe_tells_the_layout_that_the_library_chose() -> None:
    product = Matmul(f32(64, 64), f32(64, 64, tag="any"), f32(64, 64))
    chosen = product.describe("weights")
    assert chosen is not None
    assert chosen.tag not in ("any", "undef")
    assert product.describe("bias") is None
    plain = Memory(f32(64, 64))
    if chosen != plain.descriptor:
        with pytest.raises(UsageError, match=r"wants its weights as f32:\w+:64x64, not f32:ab:64x64: reorder"):
            product.bind(weights=plain)


def test_wrong_use_is_said() -> None:
    product = Matmul(f32(2, 3), f32(3, 4), f32(2, 4))
    with pytest.raises(UsageError, match="can't run yet: bind src, dst, weights"):
        product.execute()
    with pytest.raises(UsageError, match="matmul takes no argument 'bias'"):
        product.bind(bias=Memory(f32(1, 4)))
    with pytest.raises(UsageError, match="unknown Algorithm 'eltwise_rely'"):
        onednn.Eltwise("eltwise_rely", f32(3), f32(3))
    with pytest.raises(UsageError, match="2 spatial dimensions can't take"):
        onednn.Convolution(
            *(f32(1, 3, 8, 8), f32(4, 3, 3, 3), f32(1, 4, 6, 6)),
            strides=(1,),
            dilates=(0, 0),
            padding_left=(0, 0),
            padding_right=(0, 0),
        )


def test_no_implementation_is_one_clear_sentence() -> None:
    double = [MemoryDescriptor(dims, "f64") for dims in [(2, 3), (3, 4), (2, 4)]]
    with pytest.raises(NativeError, match=r"has no implementation of matmul src_f64:ab:2x3 .* on this CPU") as raised:
        Matmul(*double)
    assert raised.value.status == "unimplemented"
    assert raised.value.call == "dnnl_matmul_primitive_desc_create"


def test_an_impossible_problem_is_one_clear_sentence() -> None:
    with pytest.raises(NativeError, match=r"refuses matmul src_f32:ab:2x3 .*invalid_arguments") as raised:
        Matmul(f32(2, 3), f32(5, 4), f32(2, 4))
    assert raised.value.status == "invalid_arguments"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: onednn.matmul(x, x), "inner dimensions must be equal"),
        (lambda x: onednn.matmul(x[0], x[0]), "inner dimensions must be equal"),
        (lambda x: onednn.matmul(np.stack([x, x]), np.stack([x.T] * 3)), "batch dimensions must be equal or 1"),
        (lambda x: onednn.inner_product(x, x[:, :2]), "all but the first must be equal"),
        (lambda x: onednn.softmax(x, 2), "softmax along dimension 2 of a tensor of 2"),
        (lambda x: onednn.convolution(x, x), "can't convolve 3x4 with weights 3x4"),
        (lambda x: onednn.convolution(x[None], np.ones((2, 4, 1), "f4")), "can't convolve 1x3x4 with weights 2x4x1"),
        (lambda x: onednn.convolution(x[None], np.ones((2, 3, 9), "f4")), "kernel 9 does not fit into 4"),
        (lambda x: onednn.convolution(x[None], x[:, None], groups=2), "can't be split into 2 groups"),
        (lambda x: onednn.convolution(x[None], np.ones((2, 3, 1), "f4"), strides=(1, 1)), "strides"),
        (lambda x: onednn.convolution(x[None], np.ones((2, 3, 1), "f4"), padding=(1, 1)), "padding"),
        (lambda x: onednn.matmul(x, x.T, scales={"src": [1.0, 2.0]}), "scales of src must be one number"),
        (lambda x: onednn.matmul(x, x.T, scales={"source": 1.0}), "unknown argument 'source'"),
    ],
)
def test_shapes_that_do_not_go_together(call: object, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        call(np.ones((3, 4), np.float32))  # type: ignore[operator]


def test_implementations_are_listed_best_first() -> None:
    product = Matmul(f32(64, 64), f32(64, 64), f32(64, 64))
    names = product.implementations()
    assert names[0] == product.implementation
    assert names[-1] == "ref:any"


def test_user_scratchpad_is_one_more_argument() -> None:
    rng = np.random.default_rng(5)
    x, w = rng.standard_normal((2, 16, 9, 9)).astype("f4"), rng.standard_normal((16, 16, 3, 3)).astype("f4")
    convolution = onednn.Convolution(
        *(f32(2, 16, 9, 9), f32(16, 16, 3, 3), f32(2, 16, 7, 7)),
        strides=(1, 1),
        dilates=(0, 0),
        padding_left=(0, 0),
        padding_right=(0, 0),
        attributes=Attributes(scratchpad="user"),
    )
    assert "scratchpad" in convolution.arguments
    dst = np.empty((2, 16, 7, 7), np.float32)
    convolution.bind(src=Memory(f32(*x.shape), x), weights=Memory(f32(*w.shape), w), dst=Memory(f32(*dst.shape), dst))
    convolution.allocate()
    convolution.execute()
    np.testing.assert_allclose(dst, onednn.convolution(x, w), atol=1e-4)


def test_closed_objects_say_so_and_close_once() -> None:
    product = Matmul(f32(2, 3), f32(3, 4), f32(2, 4))
    memories = product.allocate()
    memories["src"].close()
    memories["src"].close()
    with pytest.raises(ValueError, match="this Memory is closed"):
        product.execute()
    with product:
        pass
    product.close()
    with pytest.raises(ValueError, match="closed"):
        product.execute()


def test_a_primitive_keeps_what_it_runs_on() -> None:
    product = Matmul(f32(100, 100), f32(100, 100), f32(100, 100))

    def give() -> None:
        product.bind(
            src=onednn.memory_of(np.eye(100, dtype="f4")), weights=onednn.memory_of(np.full((100, 100), 2, "f4"))
        )

    give()
    gc.collect()
    result = np.empty((100, 100), np.float32)
    product.bind(dst=onednn.memory_of(result))
    product.execute()
    assert (result == 2).all()


def test_threads_run_their_own_primitives_at_once() -> None:
    failures = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(30):
            a, b = rng.standard_normal((17, 23)).astype("f4"), rng.standard_normal((23, 9)).astype("f4")
            if not np.allclose(onednn.matmul(a, b, formats="any"), a @ b, atol=1e-4):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


ALIVE = """
    import os, sys
    import numpy as np
    from cpulens.native import mkl, onednn
    mkl.set_threading_layer("gnu")
    md = onednn.MemoryDescriptor
    product = onednn.Matmul(md((8, 8), "f32"), md((8, 8), "f32", "any"), md((8, 8), "f32"))
    memories = product.allocate()
    plan = mkl.Fft([64])
    chain = [product]
    chain.append(chain)  # a cycle: collected late, if ever
    product.execute()
"""


def test_exit_with_everything_alive(program: Program) -> None:
    done = program(ALIVE)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_forked_child_leaves_the_objects_alone(program: Program) -> None:
    code = """
    pid = os.fork()
    if pid == 0:
        for one in (product, plan, *memories.values()):
            one.close()
        del product, memories, plan, chain
        sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    product.execute()
    print("parent goes on")
    """
    done = program(ALIVE + code)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"parent goes on\n", b"")


def test_the_core_works_without_numpy(program: Program) -> None:
    code = """
        import struct, sys
        sys.modules["numpy"] = None
        from cpulens.native import mkl, onednn
        mkl.set_threading_layer("gnu")
        pack = lambda *values: bytearray(struct.pack(f"{len(values)}f", *values))
        square = onednn.MemoryDescriptor((2, 2), "f32")
        result = bytearray(16)
        product = onednn.Matmul(square, square, square)
        product.bind(src=onednn.Memory(square, pack(1, 2, 3, 4)), weights=onednn.Memory(square, pack(5, 6, 7, 8)),
                     dst=onednn.Memory(square, result))
        product.execute()
        print(struct.unpack("4f", result))
        gemm = mkl.Gemm("sgemm", 2, 2, 2)
        a, b, c = gemm.allocate()
        a[:], b[:] = pack(1, 3, 2, 4), pack(5, 7, 6, 8)  # column-major
        gemm.execute()
        print(struct.unpack("4f", c))
    """
    done = program(code)
    # [[1, 2], [3, 4]] @ [[5, 6], [7, 8]] = [[19, 22], [43, 50]], worked out by hand.
    assert done.stdout.decode() == "(19.0, 22.0, 43.0, 50.0)\n(19.0, 43.0, 22.0, 50.0)\n", done.stderr


def test_importing_loads_nothing_of_others(program: Program) -> None:
    code = """
        import sys
        before = set(sys.modules)
        import cpulens.native, cpulens.native.onednn, cpulens.native.mkl, cpulens.native.find
        new = {name.partition(".")[0] for name in set(sys.modules) - before} - sys.stdlib_module_names
        from cpulens.native import loaded
        print(sorted(new), [one.name for one in loaded.objects() if "dnnl" in one.name or "mkl" in one.name])
    """
    assert program(code).stdout.decode() == "['cpulens'] []\n"
