"""Derivative formulas of the matrix products.

Public names are in scope of every formula string.  Arguments are Tensor handles; only
differentiable operators are used, so all of it can be differentiated again.
Read `ops/matmul.py` next, where these are used.
"""

from __future__ import annotations

from . import on_arrays


@on_arrays()
def scale_by(grad, factor):
    """`grad` times the conjugate of the Python number `factor`; a factor of 1 costs nothing."""
    if isinstance(factor, complex):
        return grad * factor.conjugate()
    return grad if factor == 1 else grad * factor


def times(value, factor):
    """`value` times the Python number `factor`; a factor of 1 costs nothing."""
    return value if factor == 1 else value * factor


def is_column_major(shape, stride) -> bool:
    """Whether a matrix is stored by columns (as the transposed weight of `linear` is)."""
    return stride[0] == 1 and stride[1] == shape[0] and shape[0] > 1 and shape[1] > 1


def _left_of_arrays(grad, mat2, shape, stride):
    if is_column_major(shape, stride):
        return (mat2 @ grad.T).T
    return grad @ mat2.T


@on_arrays(_left_of_arrays)
def mm_left_grad(grad, mat2, shape, stride):
    """Gradient of the left matrix of a product, stored in the order of that matrix.

    `mat2` comes conjugated, because `conj` in a formula's text costs nothing for real numbers.
    """
    if is_column_major(shape, stride):
        return mat2.mm(grad.t()).t()
    return grad.mm(mat2.t())


def _right_of_arrays(grad, mat1, shape, stride):
    if is_column_major(shape, stride):
        return (grad.T @ mat1).T
    return mat1.T @ grad


@on_arrays(_right_of_arrays)
def mm_right_grad(grad, mat1, shape, stride):
    """Gradient of the right matrix of a product, stored in the order of that matrix.

    The right matrix is most often `weight.t()`: computing the transposed product makes the
    gradient of `weight` contiguous, so that the optimizer walks both in the same order.
    """
    if is_column_major(shape, stride):
        return grad.t().mm(mat1).t()
    return mat1.t().mm(grad)


def trace_grad(grad, shape):
    """Gradient of a trace: `grad` on the diagonal of a matrix of `shape`."""
    return grad.new_zeros(shape).diagonal_scatter(grad.expand([min(shape)]))
