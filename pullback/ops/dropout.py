"""Dropout and its kin: masks that are drawn and multiplied with.

Read next: `random.py`, whose streams of numbers these use.
"""

from __future__ import annotations

import math

from ..array import dtype as dt
from ..array import random as rng
from ..array.layout import memory_order, ordered, strides_order
from ..core.op import Pointwise, Random
from ..table.packets import ops
from .kinds import Free
from .layout import in_front
from .random import placed, source


def checked_p(p: float) -> float:
    """A dropout probability."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
    return p


def _noise(input, p: float, channels: bool):
    """Zeros with probability p, else ones, for each element or for each channel."""
    if channels:
        return ops.bernoulli(input.new_empty(_feature_shape(input)), 1 - p)
    order = None if input.is_contiguous() else strides_order(input.shape, input.stride())
    if order is None:
        return ops.bernoulli(ops.empty_like(input), 1 - p)
    drawn = ops.bernoulli(input.new_empty([input.shape[d] for d in order]), 1 - p)
    return drawn.permute([order.index(d) for d in range(input.ndim)])


def _feature_shape(input) -> tuple[int, ...]:
    if input.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return (*input.shape[:2], *(1,) * (input.ndim - 2))


def _without_noise(input, p: float, train: bool):
    """What dropout gives where nothing is drawn, else None."""
    checked_p(p)
    if not train or p == 0 or input.numel() == 0:
        return input
    return input * ops.zeros((), dtype=input.dtype, device=input.device) if p == 1 else None


def _dropped(input, p: float, train: bool, channels: bool = False):
    out = _without_noise(input, p, train)
    return input * (_noise(input, p, channels) / (1 - p)) if out is None else out


ALPHA = 1.7580993408473766  # the negative saturation value of the SELU activation


def _alpha_dropped(input, p: float, train: bool, channels: bool = False):
    out = _without_noise(input, p, train)
    if out is not None:
        return out
    noise = _noise(input, p, channels)
    scale = 1.0 / math.sqrt((ALPHA * ALPHA * p + 1) * (1 - p))
    shift = (noise - 1) * (ALPHA * scale) + ALPHA * scale * p
    return input * (noise * scale) + shift


class Dropping(Free):
    """Dropout while training; in evaluation the tensor itself."""

    cost = "random"  # what comes after it draws other numbers if it is left out
    tags = ("maybe_aliasing_or_mutating", "nondeterministic_seeded")
    inplace = True
    samples = lambda s: [s(s.real(3, 4), 0.5, False)]


class dropout(Dropping):
    """Elements set to zero with probability p, the others scaled up, while training."""

    schema = "dropout(Tensor input, float p, bool train) -> Tensor"
    idle = "train"
    compose = _dropped
    samples = lambda s: [s(s.real(3, 4), 0.5, False), s(s.real(3, 4), 1.0, True)]


class feature_dropout(Dropping):
    """`dropout` of whole channels."""

    schema = "feature_dropout(Tensor input, float p, bool train) -> Tensor"

    def compose(input, p, train):
        return _dropped(input, p, train, channels=True)


class alpha_dropout(Dropping):
    """Dropout that keeps the mean and variance of self-normalising networks."""

    schema = "alpha_dropout(Tensor input, float p, bool train) -> Tensor"
    compose = _alpha_dropped


class feature_alpha_dropout(Dropping):
    """`alpha_dropout` of whole channels."""

    schema = "feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor"

    def compose(input, p, train):
        return _alpha_dropped(input, p, train, channels=True)


def _kept_scale(p: float) -> float:
    return 0.0 if p == 1 else 1.0 / (1.0 - p)


class native_dropout(Random):
    """`dropout` that also returns the mask of the elements that were kept."""

    schema = "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)"
    core = True
    memory_format = "self"
    method = False
    diff_outputs = (True, False)
    grad = {
        "input": "native_dropout_backward(grad, result1, 1.0 if train is False else "
        "0.0 if p == 1 else 1.0 / (1.0 - p))"
    }
    push = {
        "result0": "native_dropout_backward(input_t, result1, 1.0 if train is False else "
        "0.0 if p == 1 else 1.0 / (1.0 - p))"
    }

    def shape(input, p, train):
        return [tuple(input.shape), tuple(input.shape)]

    def dtype(input, p, train):
        return [input.dtype, dt.bool_]

    def run(xp, input, p, train):
        checked_p(p)
        if input.size == 0:
            return input.copy(), xp.empty(input.shape, bool)
        if train is False:
            return input.copy(), xp.ones(input.shape, bool)
        draw = lambda shape: rng.bernoulli(rng.default_generator, 1 - float(p), shape, dt.bool_.np)
        mask = placed(xp, ordered(draw, input.shape, memory_order(input)))
        return (input * mask * input.dtype.type(_kept_scale(p))).astype(input.dtype), mask

    def batch(n, batched, input, p, train):
        return tuple(ops.native_dropout(in_front(input, batched[0], n), p, train))

    samples = lambda s: [s(s.real(3, 4), 0.5, True), s(s.real(3, 4), 0.5, False)]


class native_dropout_backward(Pointwise):
    """The gradient of `dropout`: what was kept, scaled."""

    schema = "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor"
    method = function = False
    inplace = False
    promotes = ("grad_output", "scale")
    complex = True
    grad = {"grad_output": "native_dropout_backward(grad, mask, scale)"}
    push = "native_dropout_backward(grad_output_t, mask, scale)"
    nondiff = ("mask",)
    run = "grad_output * (mask * xp.asarray(scale, grad_output.dtype))"
    c = "{grad_output} * ({mask} * {scale})"

    def decomp(grad_output, mask, scale):
        return grad_output * (mask.to(grad_output.dtype) * scale)

    samples = lambda s: [s(s.real(3, 4), s.bool(3, 4), 2.0)]


class _masked_scale(Pointwise):
    """A tensor times a mask of zeros and ones, times a number."""

    schema = "_masked_scale(Tensor self, Tensor mask, float scale) -> Tensor"
    tags = ()
    method = False
    inplace = False
    promote = "same"
    grad = {"self": "_masked_scale(grad, mask, scale)", "mask": "_masked_scale(grad, self, scale)"}
    run = "self * (mask * self.dtype.type(scale)).astype(self.dtype, copy=False)"

    def decomp(self, mask, scale):
        return self * (mask.to(self.dtype) * scale)

    def samples(s):
        yield s(s.real(3, 4), s.bool(3, 4).to(dt.uint8), 2.0)
        yield s(s.real(1), s.real(3, 4), 2.0)


class _fused_dropout(Random):
    """Elements kept with probability p and divided by it, and the mask of those."""

    schema = "_fused_dropout(Tensor self, float p, Generator? generator=None) -> (Tensor, Tensor)"
    method = False
    diff_outputs = (True, False)
    grad = {"self": "_masked_scale(grad, result1, 1.0 / p)"}
    push = {"result0": "_masked_scale(self_t, result1, 1.0 / p)"}

    def shape(self, p, generator):
        return [tuple(self.shape), tuple(self.shape)]

    def dtype(self, p, generator):
        return [self.dtype, dt.uint8]

    def run(xp, self, p, generator):
        drawn = rng.bernoulli(source(generator), checked_p(float(p)), self.shape, dt.uint8.np)
        mask = placed(xp, drawn)
        return (self * mask * self.dtype.type(1 / p)).astype(self.dtype), mask

    def batch(n, batched, self, p, generator):
        return tuple(ops._fused_dropout(in_front(self, batched[0], n), p, generator))

    samples = lambda s: [s(s.real(3, 4), 0.5)]
