"""A convolution and a product in OpenVINO, which carries its own oneDNN."""

import numpy as np
import openvino
from openvino import opset13 as ops

image = ops.parameter([1, 16, 32, 32], np.float32)
kernel = ops.constant(np.ones((32, 16, 3, 3), "float32"))
features = ops.relu(ops.convolution(image, kernel, [1, 1], [1, 1], [1, 1], [1, 1]))
flat = ops.reshape(features, ops.constant(np.array([1, -1])), False)
answer = ops.matmul(flat, ops.constant(np.ones((32 * 32 * 32, 10), "float32")), False, False)
model = openvino.compile_model(openvino.Model([answer], [image]), "CPU")
print(model([np.ones((1, 16, 32, 32), "float32")])[0].shape)
