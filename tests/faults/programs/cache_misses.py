"""More distinct shapes than the cache holds, in turn: each is created again each time (the cache is set to 8)."""

from wheel import matmul

ONEDNN = "ON_CREATION"


def _part(shapes):
    matmul(8, 8, 8).execute()

    def part():
        for _ in range(4):
            for size in shapes:
                with matmul(16, size, 16) as primitive:
                    primitive.execute()

    return part


def faulty():
    return _part(range(16, 16 + 24))


def healthy():
    return _part(range(16, 16 + 4))
