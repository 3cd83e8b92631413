"""Parts of complex numbers: conj, real, imag, angle."""

from __future__ import annotations

import math

from ..array import dtype as dt
from ..core.op import Composite, Pointwise
from ..errors import DTypeError
from ..table.packets import ops
from .pointwise import points


class conj(Composite):
    """Complex conjugate of each element; a real tensor itself."""
    schema = "conj(Tensor(a) self) -> Tensor(a)"
    complex = True
    samples = points()

    def compose(self):
        return ops._conj(self) if self.is_complex() else self


class conj_lazy(Pointwise):
    """Complex conjugate of each element."""
    schema = "_conj(Tensor(a) self) -> Tensor(a)"  # a copy here in spite of the alias marks
    kept = "view"
    tags = ()
    run = "xp.conj(self)"
    grad = {"self": "grad.conj()"}
    push = "self_t.conj()"
    complex = True
    inplace = False
    samples = points()


class conj_physical(Composite):
    """Complex conjugate of each element, never a view."""
    schema = "conj_physical(Tensor self) -> Tensor"
    tags = ("maybe_aliasing_or_mutating", "pointwise")
    complex = True
    inplace = True
    samples = points()

    def compose(self):
        return ops._conj_physical(self) if self.is_complex() else self


class conj_physical_kernel(Pointwise):
    """Complex conjugate of each element, never a view."""
    schema = "_conj_physical(Tensor self) -> Tensor"
    kept = "function"
    run = "xp.conj(self)"
    grad = {"self": "grad.conj()"}
    push = "self_t.conj()"
    complex = True
    inplace = False
    samples = points()


class real(Composite):
    """Real part of each element, a view; a real tensor itself."""
    schema = "real(Tensor(a) self) -> Tensor(a)"
    method = False  # an attribute of tensors
    complex = True
    samples = points()

    def compose(self):
        return ops.view_as_real(self).select(self.ndim, 0) if self.is_complex() else self


class imag(Composite):
    """Imaginary part of each element, a view."""
    schema = "imag(Tensor(a) self) -> Tensor(a)"
    method = False  # an attribute of tensors
    complex = True

    def compose(self):
        if not self.is_complex():
            raise DTypeError("imag is not implemented for tensors with non-complex dtypes.")
        return ops.view_as_real(self).select(self.ndim, 1)

    def samples(s):
        if s.real().is_complex():
            yield from points()(s)


class angle(Pointwise):
    """Phase of each element: for a real one 0, or pi where it is negative."""
    schema = "angle(Tensor self) -> Tensor"
    promote = "keep"  # complex numbers give real ones, integers the default float
    dtype = "self.dtype.to_real() if self.dtype.is_inexact else dt.default()"
    grad = {"self": "angle_pullback(grad, self)"}
    push = "angle_push(self_p, self_t)"
    complex = True
    inplace = False
    samples = points()

    def run(xp, self):
        if self.dtype.kind == "c":
            return xp.angle(self)
        if self.dtype.kind == dt.FOREIGN:
            return xp.angle(self.astype(xp.complex64)).astype(xp.float16)
        if self.dtype.kind in "biu":
            self = self.astype(dt.default().np)
        phase = xp.where(self < 0, math.pi, 0).astype(self.dtype)
        return xp.where(xp.isnan(self), self, phase)

    def decomp(self):
        if self.is_complex():
            return ops.atan2(self.imag, self.real)
        dtype = self.dtype if self.dtype.is_inexact else dt.default()
        zero = ops.zeros_like(self, dtype=dtype)
        return zero.masked_fill(self < 0, math.pi).masked_fill(self.isnan(), math.nan)
