"""Convolutions and pools: operators over windows of the last dims.

Convolutions become calls of the runtime's `conv` (`runtime/conv.h`), or plain matrix products
where windows are single elements; maxima over windows are calls of `runtime/windows.c`.
"""

from __future__ import annotations

from math import prod

from ..ops.conv_kernels import Windows, window_plan
from ..ops.pool_kernels import Windows as PoolWindows
from ..ops.pool_kernels import adaptive_pool_windows, avg_pool_windows, pool_windows
from .builder import Builder, Unsupported
from .ir import Ref, contiguous, same_strides
from .lower import dtype_code, shape_of


def _line(b: Builder, ref: Ref) -> Ref:
    """The same elements, contiguous in memory."""
    if same_strides(ref.shape, ref.strides, contiguous(ref.shape)):
        return ref
    return b.copy(ref)


def _fixed(v: object) -> object:
    return tuple(v) if isinstance(v, list) else v


def _dims(win: object, names: dict[str, int]) -> dict[str, tuple]:
    """Numbers of the runtime's three dims, from windows of at most as many."""
    found = {name: tuple(getattr(win, name)) for name in names}
    return {k: (*(names[k],) * (3 - len(v)), *v) for k, v in found.items()}


_NEUTRAL = {"image": 1, "counts": 1, "kernel": 1, "stride": 1, "padding": 0, "dilation": 1}


class _Form:
    """What the three forms of a convolution have in common."""

    def __init__(self, b: Builder, image: tuple, weight: tuple, win: Windows, groups: int, t: str):
        if t not in "fd" or len(win.kernel) > 3 or not prod(image) or not prod(weight):
            raise Unsupported("convolution of these")
        self.b, self.image, self.weight, self.win, self.type = b, image, weight, win, t
        self.map = (image[0], weight[0], *win.counts)
        if not prod(self.map):
            raise Unsupported("empty convolution")
        self.attrs = {
            "n": image[0], "groups": groups, "inner": weight[1], "outer": weight[0] // groups,
            **_dims(win, _NEUTRAL),
        }
        single = all(k == s == 1 and p == 0
                     for k, s, p in zip(win.kernel, win.stride, win.padding))
        self.matrix = single and groups == 1  # windows are elements: a matrix product

    def _call(self, what: int, shape: tuple, **args: Ref) -> Ref:
        refs = [_line(self.b, r) for r in args.values()]
        return self.b.call(
            "conv", refs, [(shape, self.type)], what=what, names=tuple(args), **self.attrs)[0]

    def _product(self, matrix: Ref, x: Ref, shape: tuple, bias: Ref | None = None) -> Ref:
        """`matrix` times the channels of every example."""
        x = _line(self.b, x)
        m, k = matrix.shape
        n = prod(shape[2:])
        steps = dict(batch=shape[0], m=m, n=n, k=k, ab=0, am=matrix.strides[0],
                     ak=matrix.strides[1], bb=k * n, bk=n, bn=1, cb=m * n, cm=n)
        args = [matrix, x]
        if bias is not None:
            args.append(bias)
            steps.update(sb=0, sm=bias.strides[0], sn=0)
        return self.b.call("gemm", args, [(shape, self.type)], alpha=1.0, **steps)[0]

    def gather(self, x: Ref, weight: Ref, bias: Ref | None) -> Ref:
        if self.matrix:
            matrix = self.b.reshape(weight, weight.shape[:2])
            return self._product(matrix, x, self.map, bias)
        more = {} if bias is None else {"bias": bias}
        return self._call(0, self.map, x=x, weight=weight, **more)

    def scatter(self, values: Ref, weight: Ref) -> Ref:
        if self.matrix:
            matrix = self.b.reshape(weight, weight.shape[:2])
            turned = Ref(matrix.value, matrix.shape[::-1], matrix.offset, matrix.strides[::-1])
            return self._product(turned, values, self.image)
        return self._call(1, self.image, map=values, weight=weight)

    def correlate(self, x: Ref, values: Ref) -> Ref:
        return self._call(2, self.weight, x=x, map=values)


def _form(b: Builder, x: Ref, weight: Ref, geometry: tuple, shape: tuple, t: str) -> _Form:
    """The windows of a convolution; `shape` is that of its result."""
    win, _ = window_plan(x.shape, weight.shape, None, *map(_fixed, geometry))
    return _Form(b, shape if geometry[3] else x.shape, weight.shape, win, geometry[5], t)


def convolution(b: Builder, ex: object, x: Ref, weight: Ref, bias: Ref | None,
                 *geometry: object) -> Ref:
    shape = shape_of(ex)
    form = _form(b, x, weight, geometry, shape, dtype_code(ex))
    if not geometry[3]:
        return form.gather(x, weight, bias)
    out = form.scatter(x, weight)
    if bias is None:
        return out
    across = Ref(bias.value, shape, bias.offset,
                 (0, bias.strides[0], *(0,) * (len(shape) - 2)))
    return b.pointwise("add", out, across, dtype=out.dtype)


def convolution_backward(b: Builder, ex: list, grad: Ref, x: Ref, weight: Ref,
                          bias_sizes: object, *numbers: object) -> list:
    *geometry, mask = numbers
    transposed = geometry[3]
    form = _form(b, x, weight, tuple(geometry), grad.shape, grad.dtype)
    out: list = [None, None, None]
    if mask[0]:
        out[0] = form.gather(grad, weight, None) if transposed else form.scatter(grad, weight)
    if mask[1]:
        out[1] = form.correlate(grad, x) if transposed else form.correlate(x, grad)
    if mask[2]:
        dims = [d for d in range(len(grad.shape)) if d != 1]
        out[2] = b.reduce("sum", grad, dims, False)
    return out


def max_pool(rank: int):
    def rule(b: Builder, ex: list, x: Ref, *numbers: object) -> list:
        call = _pool(x, rank, numbers, shape_of(ex[0]))
        shape = shape_of(ex[0])
        return b.call("max_windows", [_line(b, x)], [(shape, x.dtype), (shape, "l")], **call)

    return rule


def max_pool_backward(rank: int):
    def rule(b: Builder, ex: object, grad: Ref, x: Ref, *numbers: object) -> Ref:
        *sizes, places = numbers
        call = _pool(x, rank, tuple(sizes), grad.shape)
        if places.dtype != "l" or places.shape != grad.shape or grad.dtype != x.dtype:
            raise Unsupported("places of another kind")
        call["check"] = b.check(prod(x.shape[-rank:]))
        args = [_line(b, grad), _line(b, places)]
        return b.call("spread_windows", args, [(x.shape, x.dtype)], **call)[0]

    return rule


def _pool(x: Ref, rank: int, numbers: tuple, shape: tuple) -> dict:
    """What the runtime wants to know of windows whose maxima have a shape."""
    if x.dtype not in "fd" or not prod(shape) or prod(x.shape[-rank:]) >= 1 << 31:
        raise Unsupported("maxima of these")
    *given, ceil_mode = (*numbers, *([], [0], [1], False)[len(numbers) - 1:])
    given = [[v] if isinstance(v, int) else list(v) for v in given]
    windows = pool_windows("max_pool", x.shape, rank, *given, ceil_mode)
    if any(first >= w.size for w in windows if w.dilation > 1 for first in w.firsts()):
        raise Unsupported("a dilated window without elements")
    win = _turned(windows)
    return {"planes": prod(x.shape[:-rank]), **_dims(win, _NEUTRAL)}


# ---- sums over windows: convolutions of single channels with ones -----------------------------


def _sums(b: Builder, planes: tuple, windows: list, t: str) -> tuple[_Form, Ref]:
    """The convolution that adds up windows of (examples, channels, ...), and its weight."""
    win = _turned(windows)
    weight = (planes[1], 1, *win.kernel)
    return _Form(b, planes, weight, win, planes[1], t), b.full(weight, 1.0, t)


def _turned(windows: list) -> Windows:
    """Windows dim by dim as those of a convolution."""
    return Windows(*(tuple(w[i] for w in windows) for i in (0, 5, 1, 2, 3, 4)))


def _batched(shape: tuple, rank: int) -> tuple:
    """(examples, channels, ...): with one example where there is no such dim."""
    return (1,) * (rank + 2 - len(shape)) + tuple(shape)


def means(rank: int, backward: bool):
    def rule(b: Builder, ex: object, *args: object) -> Ref:
        (grad, x), numbers = (args[:2], args[2:]) if backward else ((None, args[0]), args[1:])
        numbers = (*numbers, *(None, [], 0, False, True, None)[len(numbers):])
        *given, ceil_mode, with_padding, override = numbers
        given = [[v] if isinstance(v, int) else list(v) for v in given]
        windows = avg_pool_windows("avg_pool", x.shape, rank, *given, ceil_mode)
        room = [w.size + 2 * w.padding * with_padding for w in windows]
        if any(p for p in given[2]) and not with_padding or any(
            (w.count - 1) * w.stride + w.kernel > n for w, n in zip(windows, room)
        ):
            if override is None:
                raise Unsupported("windows of different sizes")
        return _mean_windows(b, x, grad, windows, override or prod(w.kernel for w in windows))

    return rule


def _mean_windows(b: Builder, x: Ref, grad: Ref | None, windows: list, size: int) -> Ref:
    """Sums over windows by their size, or the gradient of them."""
    form, ones = _sums(b, _batched(x.shape, len(windows)), windows, x.dtype)
    if grad is None:
        shape = (*x.shape[: -len(windows)], *form.win.counts)
        total = b.reshape(form.gather(b.reshape(x, form.image), ones, None), shape)
        return b.pointwise("div", total, float(size), dtype=x.dtype)
    grad = b.pointwise("div", grad, float(size), dtype=x.dtype)
    return b.reshape(form.scatter(b.reshape(grad, form.map), ones), x.shape)


def adaptive_means(rank: int, backward: bool):
    def rule(b: Builder, ex: object, *args: object) -> Ref:
        grad, x = args[:2] if backward else (None, args[0])
        sizes = grad.shape[-rank:] if backward else args[1]
        windows = adaptive_pool_windows("adaptive_avg_pool", x.shape, rank, list(sizes))
        if not all(isinstance(w, PoolWindows) for w in windows):
            raise Unsupported("windows of different sizes")
        return _mean_windows(b, x, grad, windows, prod(w.kernel for w in windows))

    return rule


def nearest_backward(rank: int):
    def rule(b: Builder, ex: object, grad: Ref, output_size: list, input_size: list,
             *scales: object) -> Ref:
        shape = shape_of(ex)
        by = [n // max(1, m) for n, m in zip(grad.shape[2:], shape[2:])]
        if [n * k for n, k in zip(shape[2:], by)] != list(grad.shape[2:]) or any(
            s is not None and s != k for s, k in zip(scales, by)
        ) or not prod(shape):
            raise Unsupported("windows of different sizes")
        windows = [PoolWindows(n, k, k, 0, 1, m)
                   for n, k, m in zip(grad.shape[2:], by, shape[2:])]
        form, ones = _sums(b, grad.shape, windows, grad.dtype)
        return form.gather(grad, ones, None)

    return rule
