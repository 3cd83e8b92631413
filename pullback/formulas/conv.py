"""Derivatives of convolution.

A convolution is one trilinear form: with an input x, a weight w and a gradient g of the output,

    T(g, x, w) = sum over all outputs of g * conv(x, w).

`convolution` leaves out g, the first result of `convolution_backward` leaves out x, the second w.
So every derivative of every order is one of these three with its arguments replaced.
Read `ops/conv.py` for the entries, `ops/conv_kernels.py` for the kernels.
"""

from __future__ import annotations

from ..table.packets import ops
from . import added


def _per_channel(values, shape):
    """One value for each channel (dim 1), spread over a tensor of this shape."""
    return values.reshape([1, -1] + [1] * (len(shape) - 2)).expand(shape)


def convolution_push(input, input_t, weight, weight_t, bias_t, *geometry):
    """Tangent of a convolution: conv(dx, w) + conv(x, dw) + db."""
    return (ops.convolution(input_t, weight, None, *geometry)
            + ops.convolution(input, weight_t, bias_t, *geometry))


def convolution_double_grads(grads, grad_output, input, weight, geometry, mask):
    """Gradients of `convolution_backward` for grad_output g, input x and weight w.

    Its results dT/dx, dT/dw and the sum of g over batch and space get the gradients a, b and c.
    Then g gets conv(a, w) + conv(x, b) + c, x gets dT/dx at (g, w = b), w gets dT/dw at (g, x = a).
    """
    a, b, c = grads
    dg = dx = dw = None
    if mask[0]:
        if a is not None:
            dg = ops.convolution(a, weight, None, *geometry)
        if b is not None:
            dg = added(dg, ops.convolution(input, b, None, *geometry))
        if c is not None:
            dg = added(dg, _per_channel(c, grad_output.shape))
    wanted = [mask[1] and b is not None, mask[2] and a is not None, False]
    if any(wanted):
        x, w = input if a is None else a, weight if b is None else b
        dx, dw, _ = ops.convolution_backward(grad_output, x, w, None, *geometry, wanted)
    return dg, dx, dw


def convolution_backward_push(grad_output, grad_output_t, input, input_t, weight, weight_t,
                              bias_sizes, geometry, mask):
    """Tangents of the three results: each is bilinear, so one argument moves at a time."""
    first = ops.convolution_backward(grad_output_t, input, weight, bias_sizes, *geometry, mask)
    both = [mask[0], mask[1], False]
    second = (None, None, None)
    if any(both):
        second = ops.convolution_backward(grad_output, input_t, weight_t, None, *geometry, both)
    return tuple(added(s, t) for s, t in zip(first, second, strict=True))


# ---------------------------------------------------------------------------------------------
# Time, batch, channel layout


def conv_tbc_grads(grad, input, weight, bias_shape, pad, mask):
    """Gradients of `conv_tbc` by those of the same convolution in batch, channel, time order."""
    if grad is None:
        return None, None, None
    dx, dw, db = ops.convolution_backward(
        grad.permute([1, 2, 0]), input.permute([1, 2, 0]), weight.permute([2, 1, 0]), bias_shape,
        [1], [pad], [1], False, [0], 1, [bool(m) for m in mask])
    return (None if dx is None else dx.permute([2, 0, 1]),
            None if dw is None else dw.permute([2, 1, 0]), db)
