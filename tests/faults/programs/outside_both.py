"""A sort after each convolution, which neither library runs, against the convolution alone."""

import torch

import cpulens


def _part(sort):
    torch.manual_seed(0)
    layer = torch.nn.Conv2d(64, 64, 3, padding=1).eval().to(memory_format=torch.channels_last)
    image = torch.randn(4, 64, 48, 48).to(memory_format=torch.channels_last)
    numbers = torch.randn(400_000)

    def part():
        with torch.no_grad():
            for _ in range(5):
                cpulens.iteration()
                layer(image)
                if sort:
                    numbers.sort()

    part()
    return part


def faulty():
    return _part(True)


def healthy():
    return _part(False)
