"""Fourier transforms: three kernels, everything else composed of them.

`_fft_c2c`, `_fft_r2c` and `_fft_c2r` transform between complex and real signals; their
`normalization` is 0 (none), 1 (divide by the root of the size) or 2 (divide by the size).  The
public transforms pad or trim their input, choose the normalization and call one of them.  Formulas
are in `formulas/fft.py`; `pullback.fft` has the public names.  Read next: `stft.py`.
"""

from __future__ import annotations

import math

from ..array import dtype as dt
from ..array.dims import wrap_dim
from ..core.op import Composite
from ..errors import DTypeError, ShapeError
from ..table.packets import ops
from .kinds import Keeping
from .pointwise import title

# ---------------------------------------------------------------------------------------------
# Kernels

FORWARD = ("backward", "ortho", "forward")  # NumPy's words for the codes, by direction
INVERSE = ("forward", "ortho", "backward")


def _axes(dim, ndim: int) -> tuple[int, ...]:
    axes = tuple(wrap_dim(d, ndim, scalar_ok=False) for d in dim)
    if len(set(axes)) != len(axes):
        raise ShapeError("FFT dims must be unique")
    return axes


def _check(array, kinds: str, wanted: str) -> None:
    if array.dtype.kind not in kinds:
        raise DTypeError(f"Only supports {wanted} dtypes, but found: {title(dt.of(array.dtype))}")
    if array.dtype.itemsize < 4:
        raise DTypeError(f"Unsupported dtype {title(dt.of(array.dtype))}")


class fft_c2c(Keeping):
    """Discrete Fourier transform of a complex signal over some dims."""

    schema = "_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor"
    kept = "kernel"
    grad = {"self": "_fft_c2c(grad, dim, normalization, not forward)"}
    linear = ("self",)
    shape = "self.shape"
    complex = True
    method = function = False

    def run(xp, self, dim, normalization, forward):
        _check(self, "c", "complex")
        axes = _axes(dim, self.ndim)
        if not axes or self.size == 0:
            return self.copy()
        if forward:
            return xp.fft.fftn(self, axes=axes, norm=FORWARD[normalization])
        return xp.fft.ifftn(self, axes=axes, norm=INVERSE[normalization])

    def batch(n, batched, self, dim, normalization, forward):
        return ops._fft_c2c(self, _behind_batch(dim, self), normalization, forward)

    def samples(s):
        if s.real().is_complex():
            for normalization, forward in ((0, True), (1, False), (2, True), (2, False)):
                yield s(s.real(3, 4), [1], normalization, forward)
            yield s(s.real(4, 3).T, [-2], 0, True)
            yield s(s.real(2, 3, 5), [0, 2], 1, True)
            yield s(s.real(2, 3), [], 0, True)
            yield s(s.real(0, 3), [1], 0, True)


def _behind_batch(dim, tensor) -> list[int]:
    """Dims of one example as dims of the batch."""
    return [wrap_dim(d, tensor.ndim - 1, scalar_ok=False) + 1 for d in dim]


def _spectrum_shape(self, dim, normalization, onesided):
    shape = list(self.shape)
    if onesided:
        shape[dim[-1]] = shape[dim[-1]] // 2 + 1
    return tuple(shape)


class fft_r2c(Keeping):
    """Discrete Fourier transform of a real signal; one-sided: half of the last dim's bins."""

    schema = "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor"
    core = True
    grad = {"self": "fft_r2c_pullback(grad, dim, normalization, onesided, self.shape[dim[-1]])"}
    linear = ("self",)
    shape = _spectrum_shape
    dtype = "self.dtype.to_complex()"
    method = function = False

    def run(xp, self, dim, normalization, onesided):
        _check(self, "f", "floating-point")
        axes = _axes(dim, self.ndim)
        if self.size == 0:
            shape = _spectrum_shape(self, dim, normalization, onesided)
            return xp.zeros(shape, dtype=dt.of(self.dtype).to_complex().np)
        if onesided:
            return xp.fft.rfftn(self, axes=axes, norm=FORWARD[normalization])
        return xp.fft.fftn(self, axes=axes, norm=FORWARD[normalization])

    def batch(n, batched, self, dim, normalization, onesided):
        return ops._fft_r2c(self, _behind_batch(dim, self), normalization, onesided)

    def samples(s):
        for normalization, onesided in ((0, True), (1, False), (2, True)):
            yield s(s.real(3, 4), [1], normalization, onesided)
            yield s(s.real(3, 5), [1], normalization, onesided)
        yield s(s.real(4, 3).T, [-2], 0, True)
        yield s(s.real(2, 3, 6), [2, 0], 1, True)
        yield s(s.real(2, 3, 4), [0, 1, 2], 0, True)
        yield s(s.real(1), [0], 0, True)
        yield s(s.real(0, 3), [1], 0, True)


def _signal_shape(self, dim, normalization, last_dim_size):
    shape = list(self.shape)
    shape[dim[-1]] = last_dim_size
    return tuple(shape)


class fft_c2r(Keeping):
    """Inverse transform of a one-sided spectrum to a real signal of a given size."""

    schema = "_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor"
    core = True
    grad = {"self": "fft_c2r_pullback(grad, dim, normalization, self.shape[dim[-1]])"}
    linear = ("self",)
    shape = _signal_shape
    dtype = "self.dtype.to_real()"
    complex = True
    method = function = False

    def run(xp, self, dim, normalization, last_dim_size):
        _check(self, "c", "complex")
        axes = _axes(dim, self.ndim)
        shape = _signal_shape(self, dim, normalization, last_dim_size)
        if math.prod(shape) == 0 or self.size == 0:
            return xp.zeros(shape, dtype=dt.of(self.dtype).to_real().np)
        sizes = [shape[a] for a in axes]
        return xp.fft.irfftn(self, s=sizes, axes=axes, norm=INVERSE[normalization])

    def batch(n, batched, self, dim, normalization, last_dim_size):
        return ops._fft_c2r(self, _behind_batch(dim, self), normalization, last_dim_size)

    def samples(s):
        if s.real().is_complex():
            for normalization, size in ((0, 6), (1, 7), (2, 6)):
                yield s(s.real(3, 4), [1], normalization, size)
            yield s(s.real(3, 4).T, [-2], 0, 6)
            yield s(s.real(4, 2, 3), [2, 0], 1, 6)
            yield s(s.real(2, 3, 3), [0, 1, 2], 0, 5)
            yield s(s.real(5), [0], 0, 6)
            yield s(s.real(0, 3), [1], 0, 4)


# ---------------------------------------------------------------------------------------------
# What the public transforms share


def _floating(x, complex_: bool):
    """The input as floating numbers, complex ones if asked for."""
    if not x.dtype.is_inexact:
        x = x.to(dt.default())
    if x.dtype.itemsize < 4:
        raise DTypeError(f"Unsupported dtype {title(x.dtype)}")
    return x.to(x.dtype.to_complex()) if complex_ and not x.is_complex() else x


def _norm_code(norm, forward: bool) -> int:
    """The normalization code of a transform in a direction."""
    if norm is None or norm == "backward":
        return 0 if forward else 2
    if norm == "forward":
        return 2 if forward else 0
    if norm == "ortho":
        return 1
    raise RuntimeError(f'Invalid normalization mode: "{norm}"')


def _resized(x, dims, sizes):
    """The input trimmed, or padded with zeros at the end, to the given sizes; -1: as it is."""
    pads = [0] * (2 * x.ndim)
    for d, size in zip(dims, sizes):
        if size == -1:
            continue
        if x.shape[d] > size:
            x = x.narrow(d, 0, size)
        pads[2 * (x.ndim - 1 - d) + 1] = size - x.shape[d]
    return ops.constant_pad_nd(x, pads) if any(pads) else x


def _points(size) -> int:
    if size < 1:
        raise RuntimeError(f"Invalid number of data points ({size}) specified")
    return size


def _one_dim(x, n, dim):
    """(dim, size) of a transform over one dim."""
    d = wrap_dim(dim, x.ndim, scalar_ok=False)
    return d, _points(x.shape[d] if n is None else n)


def _some_dims(x, s, dim) -> tuple[list[int], list[int]]:
    """(dims, sizes) of a transform over several dims."""
    if dim is not None:
        dims = list(_axes(dim, x.ndim))
        if s is not None and len(s) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    elif s is not None:
        if len(s) > x.ndim:
            raise RuntimeError(
                f"Got shape with {len(s)} values but input tensor only has {x.ndim} dimensions."
            )
        dims = list(range(x.ndim - len(s), x.ndim))
    else:
        dims = list(range(x.ndim))
    sizes = [x.shape[d] if s is None or s[i] == -1 else s[i] for i, d in enumerate(dims)]
    for size in sizes:
        _points(size)
    return dims, sizes


def _half_dims(name, x, s, dim):
    """(dims, sizes of the signal) where the input is a spectrum, one-sided in the last dim."""
    if dim is not None and len(dim) == 0 or dim is None and x.ndim == 0:
        raise RuntimeError(f"{name} must transform at least one axis")
    last_given = s is not None and s[-1] != -1
    dims, sizes = _some_dims(x, s, dim)
    if not last_given:
        sizes[-1] = _points(2 * (x.shape[dims[-1]] - 1))
    return dims, sizes


def _conj_if(flag: bool, x):
    return ops.conj_physical(x) if flag else x


def _to_spectrum(name, x, n, dim, norm, forward: bool, onesided: bool):
    """Transform of a real signal; the inverse is the conjugate of the forward one."""
    if x.is_complex():
        raise DTypeError(f"{name} expects a real input tensor, but got {title(x.dtype)}")
    x = _floating(x, False)
    d, size = _one_dim(x, n, dim)
    out = ops._fft_r2c(_resized(x, [d], [size]), [d], _norm_code(norm, forward), onesided)
    return _conj_if(not forward, out)


def _to_signal(x, n, dim, norm, forward: bool):
    """Real signal of a one-sided spectrum; forward means that the spectrum is the conjugate's."""
    x = _floating(x, True)
    d = wrap_dim(dim, x.ndim, scalar_ok=False)
    size = _points(2 * (x.shape[d] - 1) if n is None else n)
    x = _conj_if(forward, _resized(x, [d], [size // 2 + 1]) if n is not None else x)
    return ops._fft_c2r(x, [d], _norm_code(norm, forward), size)


def _transform(x, n, dim, norm, forward: bool):
    """Transform over one dim, of complex or real numbers, to complex ones."""
    if not x.is_complex():
        return _to_spectrum("fft", x, n, dim, norm, forward, False)
    d, size = _one_dim(x, n, dim)
    return ops._fft_c2c(_resized(x, [d], [size]), [d], _norm_code(norm, forward), forward)


def _transform_many(x, s, dim, norm, forward: bool):
    x = _floating(x, True)
    dims, sizes = _some_dims(x, s, dim)
    return ops._fft_c2c(_resized(x, dims, sizes), dims, _norm_code(norm, forward), forward)


# ---------------------------------------------------------------------------------------------
# Samples


def _lines(real: bool = False):
    """Samples of a transform over one dim; of real signals only if asked for."""

    def samples(s):
        if real and s.real().is_complex():
            return
        yield s(s.real(3, 5))
        yield s(s.real(5, 4).T, 6, 0)
        yield s(s.real(6), 4, -1, "ortho")
        yield s(s.real(2, 5), norm="forward")
        yield s(s.real(0, 4))

    return samples


def _planes(real: bool = False, named: bool = False):
    """Samples of a transform over several dims."""

    def samples(s):
        if real and s.real().is_complex():
            return
        yield s(s.real(3, 5))
        yield s(s.real(2, 5, 4).transpose(1, 2), (4, 3))
        yield s(s.real(3, 4, 2), (3, -1), (0, 1), "ortho")
        yield s(s.real(3, 4), norm="forward")
        if not named:
            yield s(s.real(2, 3, 4), None, (-1, 0))

    return samples


class Transform(Composite):
    """A public transform, which only `pullback.fft` offers."""

    complex = True
    method = function = False
    namespace = "fft"
    autocast = "float32"


# ---------------------------------------------------------------------------------------------
# Transforms over one dim


class fft_fft(Transform):
    """Discrete Fourier transform over one dim."""

    schema = "fft_fft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor"
    samples = _lines()

    def compose(self, n, dim, norm):
        return _transform(self, n, dim, norm, True)


class fft_ifft(Transform):
    """Inverse discrete Fourier transform over one dim."""

    schema = "fft_ifft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor"
    samples = _lines()

    def compose(self, n, dim, norm):
        return _transform(self, n, dim, norm, False)


class fft_rfft(Transform):
    """Half of the discrete Fourier transform of a real signal, which tells all of it."""

    schema = "fft_rfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor"
    complex = False
    samples = _lines(True)

    def compose(self, n, dim, norm):
        return _to_spectrum("rfft", self, n, dim, norm, True, True)


class fft_irfft(Transform):
    """Inverse of `rfft`; `n` is the size of the signal, an even one by default."""

    schema = "fft_irfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor"
    samples = _lines()

    def compose(self, n, dim, norm):
        return _to_signal(self, n, dim, norm, False)


class fft_hfft(Transform):
    """Real transform of a signal that is conjugate-symmetric and given by its first half."""

    schema = "fft_hfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor"
    samples = _lines()

    def compose(self, n, dim, norm):
        return _to_signal(self, n, dim, norm, True)


class fft_ihfft(Transform):
    """Inverse of `hfft`."""

    schema = "fft_ihfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor"
    complex = False
    samples = _lines(True)

    def compose(self, n, dim, norm):
        return _to_spectrum("ihfft", self, n, dim, norm, False, True)


# ---------------------------------------------------------------------------------------------
# Transforms over several dims


def _rfftn(self, s, dim, norm):
    if self.is_complex():
        raise DTypeError(f"rfftn expects a real-valued input tensor, but got {title(self.dtype)}")
    x = _floating(self, False)
    dims, sizes = _some_dims(x, s, dim)
    if not dims:
        raise RuntimeError("rfftn must transform at least one axis")
    return ops._fft_r2c(_resized(x, dims, sizes), dims, _norm_code(norm, True), True)


def _irfftn(self, s, dim, norm):
    dims, sizes = _half_dims("irfftn", self, s, dim)
    x = _resized(_floating(self, True), dims, [*sizes[:-1], sizes[-1] // 2 + 1])
    return ops._fft_c2r(x, dims, _norm_code(norm, False), sizes[-1])


def _hfftn(self, s, dim, norm):
    dims, sizes = _half_dims("hfftn", self, s, dim)
    x = _resized(_floating(self, True), dims, [*sizes[:-1], sizes[-1] // 2 + 1])
    code = _norm_code(norm, True)
    x = ops._fft_c2c(x, dims[:-1], code, True) if len(dims) > 1 else x
    return ops._fft_c2r(_conj_if(True, x), dims[-1:], code, sizes[-1])


def _ihfftn(self, s, dim, norm):
    if self.is_complex():
        raise DTypeError(f"Only supports floating-point dtypes, but found: {title(self.dtype)}")
    x = _floating(self, False)
    dims, sizes = _some_dims(x, s, dim)
    if not dims:
        raise RuntimeError("ihfftn must transform at least one axis")
    code = _norm_code(norm, False)
    out = _conj_if(True, ops._fft_r2c(_resized(x, dims, sizes), dims[-1:], code, True))
    return ops._fft_c2c(out, dims[:-1], code, False) if len(dims) > 1 else out


class fft_fft2(Transform):
    """Discrete Fourier transform over two dims."""

    schema = ("fft_fft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1],"
              " str? norm=None) -> Tensor")
    samples = _planes(False, True)

    def compose(self, s, dim, norm):
        return _transform_many(self, s, dim, norm, True)


class fft_fftn(Transform):
    """Discrete Fourier transform over several dims, all by default."""

    schema = "fft_fftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor"
    samples = _planes(False)

    def compose(self, s, dim, norm):
        return _transform_many(self, s, dim, norm, True)


class fft_ifft2(Transform):
    """Inverse discrete Fourier transform over two dims."""

    schema = ("fft_ifft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1],"
              " str? norm=None) -> Tensor")
    samples = _planes(False, True)

    def compose(self, s, dim, norm):
        return _transform_many(self, s, dim, norm, False)


class fft_ifftn(Transform):
    """Inverse discrete Fourier transform over several dims, all by default."""

    schema = "fft_ifftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor"
    samples = _planes(False)

    def compose(self, s, dim, norm):
        return _transform_many(self, s, dim, norm, False)


class fft_rfft2(Transform):
    """Discrete Fourier transform of a real signal, one-sided in the last dim, over two dims."""

    schema = ("fft_rfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1],"
              " str? norm=None) -> Tensor")
    complex = False
    samples = _planes(True, True)
    compose = _rfftn


class fft_rfftn(Transform):
    """Discrete Fourier transform of a real signal, one-sided in the last dim, over several dims, all by default."""

    schema = "fft_rfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor"
    complex = False
    samples = _planes(True)
    compose = _rfftn


class fft_irfft2(Transform):
    """Inverse of `rfftn` over two dims."""

    schema = ("fft_irfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1],"
              " str? norm=None) -> Tensor")
    samples = _planes(False, True)
    compose = _irfftn


class fft_irfftn(Transform):
    """Inverse of `rfftn` over several dims, all by default."""

    schema = ("fft_irfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None,"
              " str? norm=None) -> Tensor")
    samples = _planes(False)
    compose = _irfftn


class fft_hfft2(Transform):
    """Real transform of a conjugate-symmetric signal that is given by its first half over two dims."""

    schema = ("fft_hfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1],"
              " str? norm=None) -> Tensor")
    autocast = None
    samples = _planes(False, True)
    compose = _hfftn


class fft_hfftn(Transform):
    """Real transform of a conjugate-symmetric signal given by its first half over several dims, all by default."""

    schema = "fft_hfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor"
    autocast = None
    samples = _planes(False)
    compose = _hfftn


class fft_ihfft2(Transform):
    """Inverse of `hfftn` over two dims."""

    schema = ("fft_ihfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1],"
              " str? norm=None) -> Tensor")
    autocast = None
    complex = False
    samples = _planes(True, True)
    compose = _ihfftn


class fft_ihfftn(Transform):
    """Inverse of `hfftn` over several dims, all by default."""

    schema = ("fft_ihfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None,"
              " str? norm=None) -> Tensor")
    autocast = None
    complex = False
    samples = _planes(True)
    compose = _ihfftn


# ---------------------------------------------------------------------------------------------
# Frequencies and shifts


def _frequencies(name, counts, n, d, dtype, device):
    if dtype is not None and not dtype.is_inexact:
        raise DTypeError(f"{name} requires a floating point or complex dtype")
    out = counts(dtype=dtype or dt.default(), device=device)
    return out * (1 / (n * d) if n * d else math.nan)


class fft_fftfreq(Composite):
    """Frequencies of the bins of `fft` for n elements at the distance d."""

    schema = (
        "fft_fftfreq(int n, float d=1., *, ScalarType? dtype=None, Layout? layout=None,"
        " Device? device=None, bool? pin_memory=None) -> Tensor"
    )
    method = function = False
    namespace = "fft"

    def compose(n, d, dtype, layout, device, pin_memory):
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
        middle = (n + 1) // 2
        return _frequencies(
            "fftfreq",
            lambda **kind: ops.cat(
                [ops.arange(0, middle, **kind), ops.arange(-(n // 2), 0, **kind)]
            ),
            n,
            d,
            dtype,
            device,
        )

    samples = lambda s: [s(5), s(4, 0.5), s(1)]


class fft_rfftfreq(Composite):
    """Frequencies of the bins of `rfft` for n elements at the distance d."""

    schema = (
        "fft_rfftfreq(int n, float d=1., *, ScalarType? dtype=None, Layout? layout=None,"
        " Device? device=None, bool? pin_memory=None) -> Tensor"
    )
    method = function = False
    namespace = "fft"

    def compose(n, d, dtype, layout, device, pin_memory):
        return _frequencies(
            "rfftfreq", lambda **kind: ops.arange(0, n // 2 + 1, **kind), n, d, dtype, device
        )

    samples = lambda s: [s(5), s(4, 0.5)]


def _shift_samples(s):
    yield s(s.real(4))
    yield s(s.real(3, 5))
    yield s(s.real(5, 4).T, [0])
    yield s(s.real(2, 3, 5), [-1, 0])


class fft_fftshift(Transform):
    """The bins in another order, frequency zero in the middle."""

    schema = "fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor"
    autocast = None
    samples = _shift_samples

    def compose(self, dim):
        dims = list(range(self.ndim)) if dim is None else [wrap_dim(d, self.ndim) for d in dim]
        return ops.roll(self, [self.shape[d] // 2 for d in dims], dims)


class fft_ifftshift(Transform):
    """Inverse of `fftshift`."""

    schema = "fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor"
    autocast = None
    samples = _shift_samples

    def compose(self, dim):
        dims = list(range(self.ndim)) if dim is None else [wrap_dim(d, self.ndim) for d in dim]
        return ops.roll(self, [(self.shape[d] + 1) // 2 for d in dims], dims)
