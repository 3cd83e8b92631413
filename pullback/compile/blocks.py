"""How much memory calls and kernels need beside their results: the plan counts it.

Matrix products pack blocks of their second operand (`runtime/gemm.h`), convolutions copy the image
with its padding and pack weights or maps (`runtime/conv.h`), sums over chunks have a partial result
for each. The numbers are those of the C files, which take less only where they say so. Read
`memory.py` next.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from .builder import item_size
from .ir import SIZES, Call, ceil_div
from .kernel import Kernel, Root
from .nest import Nest
from .number import FUNCTIONS, formula, rounded_up, varies

_THREADS = 8  # more products than that at once are done one by a thread, without blocks
_BLOCK = 2048  # bytes of the longest block of an inner sum
_TILES = {14: (14, 11, 8, 4, 2, 1), 6: (6, 4, 2, 1)}  # rows of register tiles, by the most
_LINE = 64


def of_call(call: Call, vector_bytes: int) -> Any:
    """Bytes for one call; with symbolic sizes a formula."""
    if call.kind not in ("gemm", "conv"):
        return 0
    name = f"{call.kind}_blocks"
    given = [call.attrs[k] for k in _ASKED[call.kind]]
    flat = [n for v in given for n in (v if isinstance(v, tuple) else (v,))]
    numbers = [item_size(call.outs[0].dtype), vector_bytes, *flat]
    if any(map(varies, numbers)):
        return formula(FUNCTIONS[name], f"{name}({', '.join(['{}'] * len(numbers))})", *numbers)
    return FUNCTIONS[name](*numbers)


_ASKED = {
    "gemm": ("batch", "m", "n", "k"),
    "conv": ("what", "n", "groups", "inner", "outer", "counts", "kernel", "stride", "dilation"),
}


def gemm_blocks(size: int, vector_bytes: int, batch: int, m: int, n: int, k: int) -> int:
    """Bytes of the panels of a large matrix product; nothing for small ones."""
    columns = n + 2 * vector_bytes // size
    modest = k * columns * size <= 512 << 10 and k <= 1024
    if modest and (m * n * k < 1.5e6 or batch >= _THREADS):
        return 0
    return min(k, _BLOCK // size) * columns * size


def conv_blocks(size: int, vector_bytes: int, what: int, n: int, groups: int, inner: int,
                outer: int, *windows: int) -> int:
    """Bytes of the copies and blocks of a convolution."""
    counts, kernel, stride, dilation = (windows[i : i + 3] for i in range(0, 12, 3))
    high, deep, wide = (
        (c - 1) * s + (k - 1) * d + 1 for c, s, k, d in zip(counts, stride, kernel, dilation))
    plane = high * deep * ceil_div(wide, stride[2]) * stride[2]
    taps, pixels = prod(kernel), prod(counts)
    most, columns, k = 14 if vector_bytes == 64 else 6, 2 * vector_bytes // size, inner * taps
    image = n * groups * inner * plane + 2 * columns
    parts: list[int] = []  # elements of what is taken

    def tiles(count: int, depth: int) -> int:
        blocks = ceil_div(depth, _BLOCK // size)
        return groups * count * blocks * (most * ceil_div(depth, blocks) + 64)

    if inner == 1 and outer <= 4:  # directly
        if what == 2:
            shares = 1 if groups >= 16 else min(16 // groups, n)
            parts = [shares * groups * outer * taps]
    elif what == 0:
        parts = [tiles(_tile_count(outer, most), k), image]
    elif what == 1:
        panels = ceil_div(pixels, columns)
        some = max(1, 8 // panels)
        while some > 1 and ceil_div(n, some) * groups < 32:
            some -= 1
        step = ceil_div(inner, 32 // (ceil_div(n, some) * groups) + 1)
        step = max(min(step, (1 << 20) // (some * plane * size)), min(inner, 4))
        count = ceil_div(inner, step)
        parts = [tiles(count * (_tile_count(step * taps, most) + 4), outer)]
    else:
        weight = groups * k * outer
        shares = 16 // (ceil_div(k, 4 * most) * groups) + 1
        shares = min(shares, max(1, (32 << 20) // (weight * size)), n)
        parts = [shares * weight, n * groups * pixels * ceil_div(outer, columns) * columns, image]
    return sum(ceil_div(b, _LINE) * _LINE for b in (8 * k, *[size * p for p in parts]))


def _tile_count(rows: int, most: int) -> int:
    """Register tiles for so many rows."""
    count = 0
    while rows:
        rows -= 11 if most == 14 and rows == 22 else next(t for t in _TILES[most] if t <= rows)
        count += 1
    return count


FUNCTIONS.update(gemm_blocks=gemm_blocks, conv_blocks=conv_blocks)


def partial(nest: Nest, root: Root) -> Any:
    """Bytes of the partial results of a reduction over chunks."""
    t = root.value.dtype
    if root.how == "full":
        return nest.chunks * SIZES[t]
    width = prod(nest.inner[:-1]) * rounded_up(nest.inner[-1], nest.lanes)
    return nest.chunks * width * (4 if t in "bu" else SIZES[t])


def of_kernel(kernel: Kernel, vector_bytes: int) -> Iterator[Any]:
    """Bytes of all partial results of a kernel, one by one."""
    wanted = [root for root in kernel.roots if root.how in ("full", "col")]
    if wanted and kernel.total:
        nest = Nest(kernel, vector_bytes)
        yield from (partial(nest, root) for root in wanted)
