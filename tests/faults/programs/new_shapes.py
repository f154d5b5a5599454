"""A sequence that grows by one in every step, against one padded to a fixed length."""

from wheel import matmul

ONEDNN = "ON_CREATION"


def _part(lengths):
    matmul(8, 8, 8).execute()

    def part():
        for length in lengths:
            with matmul(length, 64, 64) as primitive:
                primitive.execute()

    return part


def faulty():
    return _part(range(1, 61))


def healthy():
    return _part([64] * 60)
