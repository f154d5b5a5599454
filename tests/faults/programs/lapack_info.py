"""The Cholesky factor of a matrix that has none, against one of a positive definite matrix."""

import torch


def _part(matrix):
    torch.linalg.cholesky_ex(torch.eye(8))
    return lambda: torch.linalg.cholesky_ex(matrix)


def faulty():
    matrix = torch.eye(64)
    matrix[4, 4] = -1.0
    return _part(matrix)


def healthy():
    return _part(torch.eye(64))
