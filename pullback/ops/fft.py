"""Fourier transforms: three kernels, everything else composed of them.

`_fft_c2c`, `_fft_r2c` and `_fft_c2r` transform between complex and real signals; their
`normalization` is 0 (none), 1 (divide by the root of the size) or 2 (divide by the size).  The
public transforms pad or trim their input, choose the normalization and call one of them.  Formulas
are in `formulas/fft.py`; `pullback.fft` has the public names.
"""

from __future__ import annotations

import math

from ..core import dtype as dt
from ..core.dims import wrap_dim
from ..core.op import Composite, Op
from ..core.table import ops
from ..errors import DataDependentError, DTypeError, ShapeError
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


class fft_c2c(Op):
    """Discrete Fourier transform of a complex signal over some dims."""

    schema = "_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor"
    promote = "keep"
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


class fft_r2c(Op):
    """Discrete Fourier transform of a real signal; one-sided: half of the last dim's bins."""

    schema = "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor"
    promote = "keep"
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


class fft_c2r(Op):
    """Inverse transform of a one-sided spectrum to a real signal of a given size."""

    schema = "_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor"
    promote = "keep"
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


def _entry(schema: str, doc: str, compose, samples, **more) -> None:
    """A public transform: a composite that only `pullback.fft` offers."""
    name = schema[: schema.index("(")]
    body = dict(
        schema=schema,
        __doc__=doc,
        compose=compose,
        samples=samples,
        method=False,
        function=False,
        namespace="fft",
        __module__=__name__,
        **more,
    )
    globals()[name] = type(name, (Composite,), body)


# ---------------------------------------------------------------------------------------------
# Transforms over one dim

_ONE = "(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor"

_entry(
    f"fft_fft{_ONE}",
    "Discrete Fourier transform over one dim.",
    lambda self, n, dim, norm: _transform(self, n, dim, norm, True),
    _lines(),
    complex=True,
)
_entry(
    f"fft_ifft{_ONE}",
    "Inverse discrete Fourier transform over one dim.",
    lambda self, n, dim, norm: _transform(self, n, dim, norm, False),
    _lines(),
    complex=True,
)
_entry(
    f"fft_rfft{_ONE}",
    "Half of the discrete Fourier transform of a real signal, which tells all of it.",
    lambda self, n, dim, norm: _to_spectrum("rfft", self, n, dim, norm, True, True),
    _lines(True),
)
_entry(
    f"fft_irfft{_ONE}",
    "Inverse of `rfft`; `n` is the size of the signal, an even one by default.",
    lambda self, n, dim, norm: _to_signal(self, n, dim, norm, False),
    _lines(),
    complex=True,
)
_entry(
    f"fft_hfft{_ONE}",
    "Real transform of a signal that is conjugate-symmetric and given by its first half.",
    lambda self, n, dim, norm: _to_signal(self, n, dim, norm, True),
    _lines(),
    complex=True,
)
_entry(
    f"fft_ihfft{_ONE}",
    "Inverse of `hfft`.",
    lambda self, n, dim, norm: _to_spectrum("ihfft", self, n, dim, norm, False, True),
    _lines(True),
)


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


for _name, _doc, _compose, _real in (
    (
        "fft",
        "Discrete Fourier transform",
        lambda x, s, dim, norm: _transform_many(x, s, dim, norm, True),
        False,
    ),
    (
        "ifft",
        "Inverse discrete Fourier transform",
        lambda x, s, dim, norm: _transform_many(x, s, dim, norm, False),
        False,
    ),
    (
        "rfft",
        "Discrete Fourier transform of a real signal, one-sided in the last dim,",
        _rfftn,
        True,
    ),
    ("irfft", "Inverse of `rfftn`", _irfftn, False),
    (
        "hfft",
        "Real transform of a conjugate-symmetric signal that is given by its first half",
        _hfftn,
        False,
    ),
    ("ihfft", "Inverse of `hfftn`", _ihfftn, True),
):
    _entry(
        f"fft_{_name}2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None)"
        " -> Tensor",
        f"{_doc} over two dims.",
        _compose,
        _planes(_real, True),
        complex=not _real,
    )
    _entry(
        f"fft_{_name}n(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
        f"{_doc} over several dims, all by default.",
        _compose,
        _planes(_real),
        complex=not _real,
    )


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

    def samples(s):
        yield s(5)
        yield s(4, 0.5)
        yield s(1)


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

    def samples(s):
        yield s(5)
        yield s(4, 0.5)


def _shift_samples(s):
    yield s(s.real(4))
    yield s(s.real(3, 5))
    yield s(s.real(5, 4).T, [0])
    yield s(s.real(2, 3, 5), [-1, 0])


class fft_fftshift(Composite):
    """The bins in another order, frequency zero in the middle."""

    schema = "fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor"
    method = function = False
    namespace = "fft"
    complex = True
    samples = _shift_samples

    def compose(self, dim):
        dims = list(range(self.ndim)) if dim is None else [wrap_dim(d, self.ndim) for d in dim]
        return ops.roll(self, [self.shape[d] // 2 for d in dims], dims)


class fft_ifftshift(Composite):
    """Inverse of `fftshift`."""

    schema = "fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor"
    method = function = False
    namespace = "fft"
    complex = True
    samples = _shift_samples

    def compose(self, dim):
        dims = list(range(self.ndim)) if dim is None else [wrap_dim(d, self.ndim) for d in dim]
        return ops.roll(self, [(self.shape[d] + 1) // 2 for d in dims], dims)


# ---------------------------------------------------------------------------------------------
# Short-time transforms


def _centred_window(window, n_fft: int, win_length: int):
    """The window in the middle of a frame."""
    left = (n_fft - win_length) // 2
    return ops.constant_pad_nd(window, [left, n_fft - win_length - left])


def _stft(
    self,
    n_fft,
    hop_length,
    win_length,
    window,
    center,
    pad_mode,
    normalized,
    onesided,
    return_complex,
    align_to_window,
):
    if align_to_window is not None and center:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    complex_ = self.is_complex() or window is not None and window.is_complex()
    if return_complex is None:
        if not complex_:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will "
                "further require that return_complex=True in a future PyTorch release."
            )
        return_complex = True
    call = (
        f"stft({self.dtype}{list(self.shape)}, n_fft={n_fft}, hop_length={hop}, win_length={width})"
    )
    if not self.dtype.is_inexact:
        raise DTypeError(f"{call}: expected a tensor of floating point or complex values")
    if not 1 <= self.ndim <= 2:
        raise ShapeError(f"{call}: expected a 1D or 2D tensor")
    x = self.unsqueeze(0) if self.ndim == 1 else self
    if center:
        pads = [n_fft // 2, n_fft // 2]
        x = ops.pad(x.unsqueeze(0), pads, pad_mode).squeeze(0)
    if not 0 < width <= n_fft:
        raise RuntimeError(f"{call}: expected 0 < win_length <= n_fft, but got win_length={width}")
    if align_to_window:
        left = (n_fft - width) // 2
        x = ops.constant_pad_nd(x, [left, n_fft - width - left])
    if not 0 < n_fft <= x.shape[1]:
        raise RuntimeError(f"{call}: expected 0 < n_fft <= {x.shape[1]}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"{call}: expected hop_length > 0, but got hop_length={hop}")
    if window is not None and tuple(window.shape) != (width,):
        raise ShapeError(
            f"{call}: expected a 1D window tensor of size equal to win_length={width}, but got "
            f"window with size {list(window.shape)}"
        )
    frames = x.unfold(1, n_fft, hop)
    if window is None and width < n_fft:
        window = ops.ones((width,), dtype=self.dtype, device=self.device)
    if window is not None:
        frames = frames * (window if width == n_fft else _centred_window(window, n_fft, width))
    code = 1 if normalized else 0
    if frames.is_complex():
        if onesided:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        out = ops._fft_c2c(frames, [2], code, True)
    else:
        out = ops._fft_r2c(frames, [2], code, onesided is None or onesided)
    out = out.transpose(1, 2)
    out = out.squeeze(0) if self.ndim == 1 else out
    return out if return_complex else ops.view_as_real(out)


class stft_center(Composite):
    """Short-time Fourier transform: of overlapping frames of a signal."""

    schema = (
        "stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None,"
        ' Tensor? window=None, bool center=True, str pad_mode="reflect", bool normalized=False,'
        " bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor"
    )
    complex = True

    def compose(
        self,
        n_fft,
        hop_length,
        win_length,
        window,
        center,
        pad_mode,
        normalized,
        onesided,
        return_complex,
        align_to_window,
    ):
        return _stft(
            self,
            n_fft,
            hop_length,
            win_length,
            window,
            center,
            pad_mode,
            normalized,
            onesided,
            return_complex,
            align_to_window,
        )

    def samples(s):
        yield s(s.real(12), 4, return_complex=True)
        yield s(s.real(2, 13), 4, 3, return_complex=True)
        yield s(s.real(12), 6, 2, 5, s.real(5), normalized=True, return_complex=True)
        yield s(s.real(2, 12), 4, center=False, return_complex=True, onesided=False)
        yield s(s.real(12), 6, 2, 4, s.real(4), False, align_to_window=True, return_complex=True)


class stft_default(Composite):
    """Short-time Fourier transform without padding at the ends."""

    schema = (
        "stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None,"
        " Tensor? window=None, bool normalized=False, bool? onesided=None,"
        " bool? return_complex=None, bool? align_to_window=None) -> Tensor"
    )
    complex = True

    def compose(
        self,
        n_fft,
        hop_length,
        win_length,
        window,
        normalized,
        onesided,
        return_complex,
        align_to_window,
    ):
        return _stft(
            self,
            n_fft,
            hop_length,
            win_length,
            window,
            False,
            "reflect",
            normalized,
            onesided,
            return_complex,
            align_to_window,
        )

    def samples(s):
        yield s(s.real(12), 4, return_complex=True)
        yield s(s.real(2, 13), 4, 3, None, s.real(4), return_complex=True)


def _all_nonzero(envelope) -> bool:
    """Whether the envelope of the windows vanishes nowhere; True if values cannot be read now."""
    try:
        return bool((envelope.abs().min() >= 1e-11).item())
    except (DataDependentError, RuntimeError):
        return True


def _istft_samples(s):
    if not s.real().is_complex():
        return
    yield s(s.real(3, 5), 4)
    yield s(s.real(2, 4, 5), 6, 2, 5, length=9)
    yield s(s.real(3, 6), 4, 2, center=False, normalized=True)
    yield s(s.real(4, 5), 4, 1, onesided=False, return_complex=True)


class istft(Composite):
    """Inverse short-time Fourier transform, by overlapping and adding the frames."""

    schema = (
        "istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None,"
        " Tensor? window=None, bool center=True, bool normalized=False, bool? onesided=None,"
        " int? length=None, bool return_complex=False) -> Tensor"
    )
    complex = True
    samples = _istft_samples

    def compose(
        self,
        n_fft,
        hop_length,
        win_length,
        window,
        center,
        normalized,
        onesided,
        length,
        return_complex,
    ):
        hop = n_fft // 4 if hop_length is None else hop_length
        width = n_fft if win_length is None else win_length
        call = (
            f"istft({self.dtype}{list(self.shape)}, n_fft={n_fft}, hop_length={hop}, "
            f"win_length={width})"
        )
        if not self.is_complex():
            raise DTypeError(
                "istft requires a complex-valued input tensor matching the output from stft with "
                "return_complex=True."
            )
        if self.numel() == 0:
            raise ShapeError(f"{call}: input tensor cannot be empty.")
        if self.ndim < 2:
            raise IndexError(
                "Dimension out of range (expected to be in range of [-2, 1], but got -3)"
            )
        if self.ndim > 3:
            raise ShapeError(
                f"{call}: expected a tensor with 2 or 3 dimensions, but got {self.ndim}"
            )
        bins = self.shape[-2]
        onesided = bins != n_fft if onesided is None else onesided
        wanted = n_fft // 2 + 1 if onesided else n_fft
        if bins != wanted:
            raise ShapeError(
                f"{call}: expected the frequency dimension of the input tensor to have {wanted} "
                f"bins when onesided={onesided}, but got {bins}"
            )
        if not 0 < hop <= width:
            raise RuntimeError(f"{call}: expected 0 < hop_length <= win_length")
        if not 0 < width <= n_fft:
            raise RuntimeError(f"{call}: expected 0 < win_length <= n_fft")
        if window is not None and tuple(window.shape) != (width,):
            raise ShapeError(
                f"{call}: Invalid window shape. window has to be 1D and length of `win_length`"
            )
        if return_complex and onesided:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        if not return_complex and window is not None and window.is_complex():
            raise RuntimeError("Complex windows are incompatible with return_complex=False")
        if window is None:
            window = ops.ones((width,), dtype=self.dtype.to_real(), device=self.device)
        window = window if width == n_fft else _centred_window(window, n_fft, width)
        spectra = (self.unsqueeze(0) if self.ndim == 2 else self).transpose(1, 2)
        frames = _frames(spectra, n_fft, normalized, onesided, return_complex) * window
        return _overlap(self, call, frames, window, hop, center, length)


def _frames(spectra, n_fft, normalized, onesided, return_complex):
    """Signals of the spectra of frames."""
    code = 1 if normalized else 2
    if return_complex:
        return ops._fft_c2c(spectra, [2], code, False)
    if not onesided:
        spectra = spectra.narrow(2, 0, n_fft // 2 + 1)
    return ops._fft_c2r(spectra, [2], code, n_fft)


def _overlap(self, call, frames, window, hop, center, length):
    """Overlapping frames added up and divided by the sum of the squared windows."""
    count, n_fft = frames.shape[1], frames.shape[2]
    total = n_fft + hop * (count - 1)
    signal = ops.unfold_backward(frames, [frames.shape[0], total], 1, n_fft, hop)
    squares = window.pow(2).expand((1, count, n_fft))
    envelope = ops.unfold_backward(squares, [1, total], 1, n_fft, hop)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - n_fft // 2 if center else total
    kept = min(end, total) - start
    signal, envelope = signal.narrow(1, start, kept), envelope.narrow(1, start, kept)
    if not _all_nonzero(envelope):
        raise RuntimeError(f"{call} window overlap add min: 1")
    signal = signal / envelope
    if end > total:
        signal = ops.constant_pad_nd(signal, [0, end - total])
    return signal.squeeze(0) if self.ndim == 2 else signal


# ---------------------------------------------------------------------------------------------
# Windows


def _window(name, length, periodic, dtype, device, shape):
    """A window `shape(u)`, u from 0 to 1; a periodic one leaves the last point out."""
    dtype = dtype or dt.default()
    if not dtype.is_floating_point:
        raise DTypeError(f"{name} expects floating point dtypes, got: {dtype}")
    if length < 0:
        raise RuntimeError(
            f"{name} requires non-negative window_length, got window_length={length}"
        )
    if length <= 1:
        return ops.ones((length,), dtype=dtype, device=device)
    points = ops.arange(0, length, dtype=dt.float64, device=device)
    return shape(points / (length if periodic else length - 1)).to(dtype)


def _cosines(*weights):
    """The alternating sum of the weights times cos(2 pi i u)."""
    return lambda u: sum(
        (-1) ** i * w * (u * (2 * math.pi * i)).cos() for i, w in enumerate(weights)
    )


def _kaiser(beta):
    def shape(u):
        r = u * 2 - 1
        whole = ops.i0(ops.full((), float(beta), dtype=dt.float64, device=u.device))
        return ops.i0((1 - r * r).clamp(min=0).sqrt() * beta) / whole

    return shape


def _add_windows(name: str, words: str, make, overloads: dict) -> None:
    """The entries of one kind of window; an overload lists its arguments behind the length."""
    options = (
        "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
    )
    for overload, arguments in overloads.items():
        count = len(arguments.split(",")) - 1 if arguments else 0

        def compose(window_length, *rest, count=count):
            periodic, parameters = (rest[0], rest[1:count]) if count else (True, ())
            dtype, _, device, _ = rest[count:]
            return _window(name, window_length, periodic, dtype, device, make(*parameters))

        def samples(s, count=count):
            for length in (1, 5):
                yield s(length, *(False, 0.7, 0.4)[:count])

        full = f"{name}.{overload}" if overload else name
        label = full.replace(".", "_")
        globals()[label] = type(
            label,
            (Composite,),
            dict(
                schema=f"{full}(int window_length, {arguments}{options}) -> Tensor",
                __doc__=words,
                compose=compose,
                samples=samples,
                method=False,
                __module__=__name__,
            ),
        )


_PLAIN = {"": "", "periodic": "bool periodic, "}
_add_windows(
    "hann_window", "0.5 - 0.5 cos(2 pi u), u from 0 to 1.", lambda: _cosines(0.5, 0.5), _PLAIN
)
_add_windows(
    "hamming_window",
    "alpha - beta cos(2 pi u), u from 0 to 1.",
    lambda alpha=0.54, beta=0.46: _cosines(alpha, beta),
    {
        **_PLAIN,
        "periodic_alpha": "bool periodic, float alpha, ",
        "periodic_alpha_beta": "bool periodic, float alpha, float beta, ",
    },
)
_add_windows(
    "blackman_window",
    "0.42 - 0.5 cos(2 pi u) + 0.08 cos(4 pi u), u from 0 to 1.",
    lambda: _cosines(0.42, 0.5, 0.08),
    _PLAIN,
)
_add_windows(
    "bartlett_window",
    "A triangle with zeros at its ends.",
    lambda: lambda u: 1 - (u * 2 - 1).abs(),
    _PLAIN,
)
_add_windows(
    "kaiser_window",
    "I_0(beta sqrt(1 - r^2)) / I_0(beta), r from -1 to 1.",
    lambda beta=12.0: _kaiser(beta),
    {**_PLAIN, "beta": "bool periodic, float beta, "},
)
