"""Parts of complex numbers: conj, real, imag, angle."""

from __future__ import annotations

import math

from ..array import dtype as dt
from ..array import lazy
from ..core.handle import is_composed
from ..core.op import Pointwise
from ..errors import DTypeError
from ..table.packets import ops
from .kinds import ComplexComposite, ComplexView
from .pointwise import points


class conj(ComplexComposite):
    """Complex conjugate of each element, a view; a real tensor itself."""
    schema = "conj(Tensor(a) self) -> Tensor(a)"
    samples = points()

    def compose(self):
        if not self.is_complex():
            return self
        return ops._conj_physical(self) if is_composed(self) else ops._conj(self)


class _Part(Pointwise):
    """Something of each complex number, in memory of its own."""

    complex = True
    inplace = False
    samples = points()


class _Conjugate(_Part):
    """Complex conjugate of each element."""

    run = "xp.conj(self)"
    grad = {"self": "grad.conj()"}
    push = "self_t.conj()"


class Turning(ComplexView):
    """Shows elements as conjugates or negatives: marks of the tensor, which kernels obey."""

    by = 0  # the mark that it sets, or takes away
    dtype = "self.dtype"  # counts as a change of dtype: strides of the base do not say it
    kept = "view"
    may_alias = False  # compiled programs compute the numbers

    @classmethod
    def run(cls, xp, self):
        return lazy.turned(xp, self, cls.by)

    @classmethod
    def marks(cls, before):
        return before ^ cls.by


class conj_lazy(Turning):
    """Complex conjugate of each element, a view."""
    schema = "_conj(Tensor(a) self) -> Tensor(a)"
    by = lazy.CONJ
    grad = {"self": "grad.conj()"}
    push = "self_t.conj()"
    scatter = "conj_physical(new)"
    samples = points()

    def batch(n, batched, self):
        return ops._conj(self)


class conj_physical(ComplexComposite):
    """Complex conjugate of each element, never a view."""
    schema = "conj_physical(Tensor self) -> Tensor"
    ahead = True
    tags = ("maybe_aliasing_or_mutating", "pointwise")
    inplace = True
    samples = points()

    def compose(self):
        return ops._conj_physical(self) if self.is_complex() else self


class conj_physical_kernel(_Conjugate):
    """Complex conjugate of each element, never a view."""
    schema = "_conj_physical(Tensor self) -> Tensor"
    kept = "function"


class real(ComplexComposite):
    """Real part of each element, a view; a real tensor itself."""
    schema = "real(Tensor(a) self) -> Tensor(a)"
    method = False  # an attribute of tensors
    samples = points()

    def compose(self):
        if not self.is_complex():
            return self
        return ops.view_as_real(ops._conj(self) if self.is_conj() else self).select(self.ndim, 0)


class imag(ComplexComposite):
    """Imaginary part of each element, a view."""
    schema = "imag(Tensor(a) self) -> Tensor(a)"
    method = False  # an attribute of tensors

    def compose(self):
        if not self.is_complex():
            raise DTypeError("imag is not implemented for tensors with non-complex dtypes.")
        if self.is_conj():
            return ops._neg_view(ops.view_as_real(ops._conj(self))).select(self.ndim, 1)
        return ops.view_as_real(self).select(self.ndim, 1)

    def samples(s):
        if s.real().is_complex():
            yield from points()(s)


class angle(_Part):
    """Phase of each element: for a real one 0, or pi where it is negative."""
    schema = "angle(Tensor self) -> Tensor"
    promote = "keep"  # complex numbers give real ones, integers the default float
    dtype = "self.dtype.to_real() if self.dtype.is_inexact else dt.default()"
    grad = {"self": "angle_pullback(grad, self)"}
    push = "angle_push(self_p, self_t)"

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
