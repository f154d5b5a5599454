"""Wrap one inference of a PyTorch model: which kernels ran in oneDNN and oneMKL, and how long.

python examples/pytorch_inference.py
"""

import torch

import cpulens

model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 32, 3, stride=2, padding=1),
    torch.nn.ReLU(),
    torch.nn.Conv2d(32, 64, 3, stride=2, padding=1),
    torch.nn.ReLU(),
    torch.nn.Flatten(),
    torch.nn.Linear(64 * 16 * 16, 10),
).eval()
images = torch.randn(8, 3, 64, 64)

with torch.inference_mode():
    model(images)  # warm up: the first call creates threads and kernels
    with cpulens.record(onednn="ON_CREATION", mkl="ON") as recording:
        model(images)

# fp32 convolutions run in oneDNN, the linear layer in oneMKL: either library alone would tell half of it.
print(recording)

slowest = recording.summary(by=["primitive", "problem"]).rows[0]
print(f"\nthe slowest: {slowest.key[0]} {slowest.key[1]}, {slowest.total_ms:.3f} ms")
