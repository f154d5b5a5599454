"""Linear layers in float32, which PyTorch gives to oneMKL, against bfloat16, which it gives to oneDNN."""

import torch


def _part(dtype):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256)).eval().to(dtype)
    tokens = torch.randn(128, 256).to(dtype)

    def part():
        with torch.no_grad():
            for _ in range(10):
                model(tokens)

    part()
    return part


def faulty():
    return _part(torch.float32)


def healthy():
    return _part(torch.bfloat16)
