"""Custom functions in every style with their derivatives, for the tests of `autograd.Function`."""

import numpy as np

import pullback as torch
from pullback.autograd import Function


def custom_function(name, value, derivative, saves=None, base=Function):
    """The custom function `name` in combined style.

    `value` gets the inputs; `derivative` the gradients of the results and what was saved, which is
    nothing, the `"inputs"` or the `"result"`. Another `base` is that of PyTorch.
    """

    class Made(base):
        @staticmethod
        def forward(ctx, *inputs):
            result = value(*inputs)
            if saves is not None:
                ctx.save_for_backward(*{"inputs": inputs, "result": (result,)}[saves])
            return result

        @staticmethod
        def backward(ctx, *grads):
            return derivative(*grads, *ctx.saved_tensors)

    Made.__name__ = Made.__qualname__ = name
    return Made


def saving(value):
    """A base for custom functions that compute `value` and save their inputs for a backward."""
    return custom_function("Saving", value, None, saves="inputs")


def writing(name, write):
    """The custom function `name` of x and y is 2 x; its backward calls `write(y)`."""

    class Made(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.y = y
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            write(ctx.y)
            return grad * 2, None

    Made.__name__ = Made.__qualname__ = name
    return Made


def dirtying(name, factor):
    """The custom function `name` multiplies its input in place by a factor."""

    class Made(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(factor)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * factor

    Made.__name__ = Made.__qualname__ = name
    return Made


Square = custom_function("Square", lambda x: x * x, lambda g, x: 2 * x * g, saves="inputs")


class KeepsInputs(Function):
    """`setup_context` that saves the inputs for both modes."""

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)


class Cube(KeepsInputs):
    """`setup_context`, batching generated."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x**3

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


def in_numpy(name, value, slope):
    """`value` in NumPy; the derivative is `slope`, another function; a batching rule by hand."""

    class Made(KeepsInputs):
        @staticmethod
        def forward(x):
            return torch.from_numpy(value(x.numpy()))

        @staticmethod
        def backward(ctx, g):
            return slope(*ctx.saved_tensors) * g

        jvp = backward

        @staticmethod
        def vmap(info, in_dims, x):
            return Made.apply(x), in_dims[0]

    Made.__name__ = Made.__qualname__ = name
    return Made


NumpySin = in_numpy("NumpySin", np.sin, lambda x: NumpyCos.apply(x))
NumpyCos = in_numpy("NumpyCos", np.cos, lambda x: -NumpySin.apply(x))


DERIVATIVES = {  # value, first, second, third derivative
    Square: (lambda x: x**2, lambda x: 2 * x, lambda x: 2 + 0 * x, lambda x: 0 * x),
    Cube: (lambda x: x**3, lambda x: 3 * x**2, lambda x: 6 * x, lambda x: 6 + 0 * x),
    Exp: (np.exp,) * 4,
    NumpySin: (np.sin, np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x)),
}
BATCHED = (Cube, Exp, NumpySin)
POINTS = np.array([0.5, -1.25, 2.0])
