"""Everything that oneDNN can say, over hundreds of distinct problems, against executions and creations only."""

from wheel import matmul

ONEDNN = None


def faulty():
    matmul(8, 8, 8).execute()

    def part():
        for _ in range(2):
            for size in range(16, 316):
                with matmul(size, 16, 16) as primitive:
                    primitive.execute()

    return part


healthy = faulty
