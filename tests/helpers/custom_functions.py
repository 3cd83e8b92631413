"""Custom functions in every style with their derivatives, for the tests of `autograd.Function`."""

import numpy as np

import pullback as torch
from pullback.autograd import Function

grad = torch.autograd.grad


def leaf(*values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def plain(*values):
    return torch.tensor(values, dtype=torch.float64)


class Square(Function):
    """Combined style."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


class Cube(Function):
    """`setup_context`, batching generated."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return 3 * x * x * t


class Exp(Function):
    """Saves its output; batching generated in the combined style; no `jvp`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * g


class NumpySin(Function):
    """NumPy inside; the derivative is another function; a batching rule by hand."""

    @staticmethod
    def forward(x):
        return torch.from_numpy(np.sin(x.numpy()))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return NumpyCos.apply(x) * g

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return NumpyCos.apply(x) * t

    @staticmethod
    def vmap(info, in_dims, x):
        return NumpySin.apply(x), in_dims[0]


class NumpyCos(Function):
    @staticmethod
    def forward(x):
        return torch.from_numpy(np.cos(x.numpy()))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return -NumpySin.apply(x) * g

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return -NumpySin.apply(x) * t

    @staticmethod
    def vmap(info, in_dims, x):
        return NumpyCos.apply(x), in_dims[0]


DERIVATIVES = {  # value, first, second, third derivative
    Square: (lambda x: x**2, lambda x: 2 * x, lambda x: 2 + 0 * x, lambda x: 0 * x),
    Cube: (lambda x: x**3, lambda x: 3 * x**2, lambda x: 6 * x, lambda x: 6 + 0 * x),
    Exp: (np.exp,) * 4,
    NumpySin: (np.sin, np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x)),
}
BATCHED = (Cube, Exp, NumpySin)
POINTS = np.array([0.5, -1.25, 2.0])


def close(t, expected):
    assert np.allclose(t.detach().numpy(), expected, rtol=1e-10, atol=1e-12)
