"""Wrap one inference without any framework: numpy holds the data, oneDNN and oneMKL compute.

python examples/native_inference.py
"""

import numpy as np

import cpulens
from cpulens.native import mkl, onednn

# oneDNN's wheel brings GNU's OpenMP; the same layer in oneMKL keeps the process at one OpenMP runtime.
mkl.set_threading_layer("gnu")

rng = np.random.default_rng(seed=1)
tokens = rng.standard_normal((32, 64)).astype(np.float32)
up, down = (rng.standard_normal(shape).astype(np.float32) / 8 for shape in ((64, 256), (256, 64)))


def infer(x):
    """A small feed-forward layer and its softmax on oneDNN, a projection back on oneMKL."""
    with cpulens.region("feed forward"):
        hidden = onednn.matmul(x, up, post_ops=[onednn.EltwisePostOp("eltwise_gelu_tanh")])
        scores = onednn.softmax(hidden)
    with cpulens.region("projection"):
        return mkl.sgemm(scores, down)


infer(tokens)
with cpulens.record() as recording:
    for _ in range(3):
        cpulens.iteration()
        infer(tokens)

print(recording.summary(by=["region", "library", "primitive", "problem"]))
