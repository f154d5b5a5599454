"""Every fifth batch holds denormal numbers, which processors handle in microcode.

A call takes some ms, so that what else runs on the machine slows all calls alike.
"""

from wheel import matmul

from cpulens.native.onednn import array_of


def _part(value):
    primitive = matmul(256, 2048, 256)
    source = array_of(primitive.allocate()["src"])
    primitive.execute()

    def part():
        for number in range(40):
            source[...] = value if number % 5 == 4 else 1.0
            primitive.execute()

    return part


def faulty():
    return _part(1e-40)


def healthy():
    return _part(2.0)
