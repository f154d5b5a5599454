"""A program's first products, which start the threads and touch the memory, against those of a program that has run."""

from wheel import eltwise, matmul


def _part(number):
    primitives = [matmul(96, 96, 96, "bf16"), eltwise(1 << 12)]

    def part():
        for _ in range(number):
            for primitive in primitives:
                primitive.execute()

    return part


def faulty():
    return _part(4)


def healthy():
    part = _part(300)
    part()
    return part
