"""A product whose rows are neither dense nor packed: only the reference implementation takes such strides."""

from wheel import matmul


def _part(**layout):
    matmul(8, 8, 8).execute()

    def part():
        primitive = matmul(96, 96, 96, **layout)
        for _ in range(5):
            primitive.execute()

    return part


def faulty():
    return _part(strides=[300, 3])


def healthy():
    return _part()
