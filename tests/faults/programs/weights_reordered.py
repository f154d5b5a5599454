"""A convolution with large weights and a small image: the weights are brought into its layout before every call."""

from wheel import filled, repeat

from cpulens.native.onednn import Convolution, MemoryDescriptor, Reorder


def _convolution():
    tensors = [MemoryDescriptor(dims, "f32", "any") for dims in ((1, 256, 7, 7), (256, 256, 3, 3), (1, 256, 7, 7))]
    geometry = {"strides": (1, 1), "dilates": (0, 0), "padding_left": (1, 1), "padding_right": (1, 1)}
    return filled(Convolution(*tensors, **geometry))


def faulty():
    convolution = _convolution()
    packed = convolution.describe("weights")
    return repeat(6, filled(Reorder(MemoryDescriptor(packed.dims, "f32"), packed)), convolution)


def healthy():
    return repeat(6, _convolution())
