"""A convolution (oneDNN) and a linear layer (oneMKL) in PyTorch, three iterations, with a region."""

import torch

import cpulens

model = torch.nn.Sequential(torch.nn.Conv2d(16, 32, 3), torch.nn.Flatten(), torch.nn.Linear(32 * 10 * 10, 10)).eval()
image = torch.randn(4, 16, 12, 12)
with torch.no_grad():
    for _ in range(3):
        cpulens.iteration()
        with cpulens.region("model"):
            print(tuple(model(image).shape))
