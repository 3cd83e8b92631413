"""Derivative formulas of activations that have more than one moving part.

Public names are in scope of every formula string.  Everything is made of differentiable operators.
Read `ops/activation.py` next, where these are used.
"""

from __future__ import annotations

from ..table.packets import ops

# ---------------------------------------------------------------------------------------------
# Learned slopes.  The table counts x = 0 as positive here, the kernels as negative: both are
# subgradients, and PyTorch makes the same choices.


def prelu_push(self, self_t, weight, weight_t):
    """Tangent of x where positive, else weight * x."""
    return ops.where(self >= 0, self_t, weight * self_t + weight_t * self)


def prelu_backward_grad_output(grads, self, weight):
    """Gradient of the pair (g * slope, g * x where negative) with respect to g."""
    first, second = grads
    positive = self >= 0
    if first is None:
        return ops.where(positive, 0, second * self)
    low = first * weight if second is None else first * weight + second * self
    return ops.where(positive, first, low)


def prelu_backward_self(grads, grad_output, self):
    """Gradient of the pair (g * slope, g * x where negative) with respect to x."""
    if grads[1] is None:
        return ops.zeros_like(self)
    return ops.where(self >= 0, 0, grads[1] * grad_output)


def prelu_backward_weight(grads, grad_output, self, weight):
    """Gradient of the pair (g * slope, g * x where negative) with respect to the weight."""
    if grads[0] is None:
        return ops.zeros_like(weight)
    return ops.where(self >= 0, 0, grads[0] * grad_output)


# ---------------------------------------------------------------------------------------------
# Gated linear units: a * sigmoid(b), where a and b are the halves of x along `dim`


def glu_slopes(self, dim):
    """Derivatives with respect to a and b: s(b) and a s'(b)."""
    a, b = ops.chunk(self, 2, dim)
    gate = b.sigmoid()
    return gate, a * gate * (1 - gate)


def glu_push(self, tangent, dim):
    """Tangent of a s(b)."""
    slope_a, slope_b = glu_slopes(self, dim)
    tangent_a, tangent_b = ops.chunk(tangent, 2, dim)
    return tangent_a * slope_a + tangent_b * slope_b


def glu_curvature(left, right, self, dim):
    """The second derivative of a s(b) along two directions, as a pair for the halves.

    `left` has the shape of the output, `right` that of x.  The Hessian has no (a, a) part.
    """
    a, b = ops.chunk(self, 2, dim)
    right_a, right_b = ops.chunk(right, 2, dim)
    gate = b.sigmoid()
    slope = gate * (1 - gate)
    along_a = left * right_b * slope
    along_b = left * slope * (right_a + right_b * a * (1 - 2 * gate))
    return ops.cat([along_a, along_b], dim)


def glu_backward_push(grad_output, grad_output_t, self, self_t, dim):
    """Tangent of the gradient of a s(b): the Hessian is symmetric."""
    moved = ops.glu_backward(grad_output_t, self, dim)
    return moved + glu_curvature(grad_output, self_t, self, dim)
