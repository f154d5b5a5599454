"""A small keyword spotter on the CPU: sound in, one probability for each word out.

The front end runs on oneMKL (a Fourier transform and a matrix product), the network on oneDNN (convolutions, an
attention of matrix products and a softmax); numpy only holds the data. The weights are random: what matters here is
which kernels run, not what is heard.

    python examples/demo.py [RUN.cpulens]

prints where the time of its second inference went, and writes the run file.
"""

import sys

import numpy as np

import cpulens
from cpulens.native import mkl, onednn

SAMPLES, FRAME, HOP, BANDS, WORDS = 16_000, 512, 160, 64, 10
RELU = onednn.EltwisePostOp("eltwise_relu")

rng = np.random.default_rng(seed=1)


def random_weights(*shape):
    """Normal numbers, scaled so that what goes through them keeps its size."""
    return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


MEL = np.abs(random_weights(FRAME // 2 + 1, BANDS))
CONVOLUTIONS = [random_weights(32, 1, 3, 3), random_weights(64, 32, 3, 3), random_weights(128, 64, 3, 3)]
QUERY, KEY, VALUE = (random_weights(128, 128) for _ in range(3))
CLASSES, BIAS = random_weights(128, WORDS), np.zeros(WORDS, np.float32)


def spectrogram(sound):
    """Sound (batch, samples) as an image (batch, 1, time, bands): two oneMKL calls."""
    frames = np.lib.stride_tricks.sliding_window_view(sound, FRAME, axis=1)[:, ::HOP] * np.hanning(FRAME)
    power = np.abs(mkl.rfft(frames.astype(np.float32))) ** 2
    bands = mkl.sgemm(power.reshape(-1, power.shape[-1]), MEL)
    return np.log(bands + 1e-6).reshape(len(sound), 1, -1, BANDS)


def infer(sound):
    """Probabilities (batch, words) of what is said in the sound (batch, samples)."""
    x = spectrogram(sound)
    for weights in CONVOLUTIONS:
        # "any": oneDNN chooses the layouts, and each call reorders the data into them and back.
        x = onednn.convolution(x, weights, strides=2, padding=1, formats="any", post_ops=[RELU])
    tokens = x.mean(axis=3).transpose(0, 2, 1)
    query, key, value = (onednn.matmul(tokens, weights[np.newaxis]) for weights in (QUERY, KEY, VALUE))
    attention = onednn.softmax(onednn.matmul(query, key.transpose(0, 2, 1)) / np.sqrt(128, dtype=np.float32))
    heard = onednn.matmul(attention, value).mean(axis=1)
    return onednn.softmax(onednn.matmul(heard, CLASSES, BIAS))


def main():
    """Listen twice, and record the second time: in the first, libraries are loaded, kernels built, headers printed."""
    # oneDNN's wheel brings GNU's OpenMP; with the same layer in oneMKL there is one OpenMP runtime in the process.
    mkl.set_threading_layer("gnu")
    sound = rng.standard_normal((4, SAMPLES)).astype(np.float32)
    with cpulens.record(onednn="ON_CREATION", mkl="ON", schedule=cpulens.Schedule(warmup=1, active=1)) as recording:
        for _ in range(2):
            cpulens.iteration()
            probabilities = infer(sound)
    print("most likely words:", probabilities.argmax(axis=1), end="\n\n")
    print(recording)
    if len(sys.argv) > 1:
        recording.save(sys.argv[1], force=True)


if __name__ == "__main__":
    main()
