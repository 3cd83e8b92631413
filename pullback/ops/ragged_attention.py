"""Attention over parts of different lengths that lie one behind the other: nothing is padded.

C does it where there is a compiler (`compile/ragged_loops.py`), a block of queries of a part and
head with a block of its keys at a time; without, NumPy does one part after another.  The second
derivative is that of dense attention (`formulas/ragged_attention.py`).  `nested/attention.py`
calls it.
"""

from __future__ import annotations

import contextlib

import numpy as np

from ..core.op import Op
from ..errors import DTypeError, ShapeError
from ..table.packets import ops
from .fused_attention import _Blocks, _lse_dtype
from .norm import narrowed, widened

LARGE = 1 << 14  # multiplications that C does, where there is a library


class OfParts(Op):
    """About parts, of which two lists of integers say where they begin and end."""

    promote = "keep"
    method = function = False
    kept = "kernel"
    intensive = True
    autocast = "lower"


def _check(query, key, value, offsets: tuple, longest: tuple) -> None:
    """Refuse what does not fit: C reads and writes memory by these numbers."""
    name = "_ragged_attention"
    shapes = [list(a.shape) for a in (query, key, value)]
    if any(len(s) != 3 for s in shapes) or len({s[1] for s in shapes}) > 1:
        raise ShapeError(f"{name}: expected (places, heads, width), as many heads, got {shapes}")
    if shapes[0][2] != shapes[1][2] or shapes[1][0] != shapes[2][0]:
        raise ShapeError(f"{name}: keys are as wide as queries and as many as values, got {shapes}")
    if len({a.dtype for a in (query, key, value)}) > 1 or query.dtype.kind not in "fV":
        raise DTypeError(f"{name}: expected one floating dtype, got "
                         f"{[str(a.dtype) for a in (query, key, value)]}")
    for places, most, array in zip(offsets, longest, (query, key)):
        if len(places.shape) != 1 or places.dtype.kind != "i" or places.shape != offsets[0].shape:
            raise ShapeError(f"{name}: offsets are integers, one more than there are parts, got "
                             f"{[f'{a.dtype}{list(a.shape)}' for a in offsets]}")
        ends = [int(places[0]), int(places[-1])] if places.size else []
        if ends != [0, array.shape[0]]:
            raise IndexError(f"{name}: offsets go from 0 to the number of places, "
                             f"{array.shape[0]}, got {ends}")
        lengths = places[1:] - places[:-1]
        if lengths.size and (int(lengths.min()) < 0 or int(lengths.max()) > most):
            raise IndexError(f"{name}: a part has length {int(lengths.min())} or "
                             f"{int(lengths.max())}, outside of 0 to {most}")


def _scale(query, scale):
    from ..formulas.attention import attention_scale

    return attention_scale(query.shape[-1], scale)


def _loops(query, value, offsets: tuple):
    """The library that does it in C, None where there is none (yet), and a clock for the work."""
    if not isinstance(query, np.ndarray):
        return None, None
    work = np.dot(*[np.diff(places.astype(np.int64)) for places in offsets])
    if work * query.shape[1] * (query.shape[2] + value.shape[2]) < LARGE:
        return None, None
    from ..compile import ragged_loops

    return ragged_loops.library(query.dtype), ragged_loops


def _each(xp, offsets: tuple, is_causal: bool, arrays: tuple):
    """Slices of the queries and of the keys of each part that has both, and whether to mask them.

    What a query does not see is multiplied by zero, which NaN and infinity withstand: where there
    are such, each query gets the keys that it sees.
    """
    alone = is_causal and not all(bool(xp.isfinite(a).all()) for a in arrays)
    queries, keys = (places.tolist() for places in offsets)
    for a, b, c, d in zip(queries, queries[1:], keys, keys[1:]):
        if alone and c < d:
            for i in range(b - a):
                yield slice(a + i, a + i + 1), slice(c, min(c + i + 1, d)), False
        elif a < b and c < d:
            yield slice(a, b), slice(c, d), is_causal


def _rows(array, part: slice):
    """A part as (1, heads, length, width), for one that does batches."""
    return array[part].swapaxes(0, 1)[None]


def _forward(xp, query, key, value, offsets, is_causal, scale, out, total) -> None:
    for queries, keys, masked in _each(xp, offsets, is_causal, (key, value)):
        v = _rows(value, keys)[:, :, None]
        outs, totals = _rows(out, queries)[:, :, None], total[queries].swapaxes(0, 1)
        blocks = _Blocks(xp, _rows(query, queries), _rows(key, keys), None, masked, scale)
        for part, weights, logs in blocks:
            outs[..., part, :] = xp.matmul(weights, v)
            totals[:, part] = logs[0, :, 0]


def _backward(xp, grad, query, key, value, offsets, is_causal, scale, grads) -> None:
    for queries, keys, masked in _each(xp, offsets, is_causal, (query, key, value, grad)):
        v, g_all = _rows(value, keys)[:, :, None], _rows(grad, queries)[:, :, None]
        dq = _rows(grads[0], queries)[:, :, None]
        dk, dv = (_rows(a, keys)[:, :, None] for a in grads[1:])
        blocks = _Blocks(xp, _rows(query, queries), _rows(key, keys), None, masked, scale)
        for part, weights, _ in blocks:
            g, q = g_all[..., part, :], blocks.q[..., part, :]
            inner = weights * xp.matmul(g, v.swapaxes(-1, -2))
            inner = (inner - weights * inner.sum(axis=-1, keepdims=True)) * blocks.scale
            dq[..., part, :] = xp.matmul(inner, blocks.k)
            dk += xp.matmul(inner.swapaxes(-1, -2), q)
            dv += xp.matmul(weights.swapaxes(-1, -2), g)


def _in_parts(n: int, batched, values: tuple, query_offsets, key_offsets):
    """Examples of `vmap` as further heads, or as further parts where each has its own offsets.

    `values` are (tensor, batched) pairs of (places, heads, ...).  Returns them, the offsets, and
    what takes a result apart again.
    """
    def shared(t, own):
        return t if own else t.expand((n, *t.shape))

    if not any(batched):
        folded = [shared(*v).transpose(0, 1).flatten(1, 2) for v in values]

        def back(t):
            return t.reshape((t.shape[0], n, t.shape[1] // n, *t.shape[2:])).transpose(0, 1)

        return folded, query_offsets, key_offsets, back

    def moved(offsets, own, size):
        steps = ops.arange(n, device=offsets.device).unsqueeze(1) * size
        return (shared(offsets, own) + steps).reshape(-1)

    folded = [shared(*v).flatten(0, 1) for v in values]
    query_offsets = moved(query_offsets, batched[0], folded[0].shape[0] // n)
    key_offsets = moved(key_offsets, batched[1], folded[1].shape[0] // n)
    return folded, query_offsets, key_offsets, lambda t: t.unflatten(0, (n, t.shape[0] // n))


class _ragged_attention(OfParts):
    """softmax(query @ key.T * scale) @ value for each part; a row that sees nothing gives zeros."""

    schema = ("_ragged_attention(Tensor query, Tensor key, Tensor value, Tensor query_offsets,"
              " Tensor key_offsets, SymInt longest_query, SymInt longest_key,"
              " bool is_causal=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp)")
    diff_outputs = (True, False)
    nondiff = ("query_offsets", "key_offsets")
    grad = {"query, key, value": (
        "(None, None, None) if grad is None else _ragged_attention_backward("
        "grad, query, key, value, output, logsumexp, query_offsets, key_offsets, longest_query,"
        " longest_key, is_causal, scale=scale)")}
    push = {"output": (
        "ragged_attention_push(query_p, query_t, key_p, key_t, value_p, value_t, query_offsets,"
        " key_offsets, longest_query, longest_key, is_causal, scale)")}

    def run(xp, query, key, value, query_offsets, key_offsets, longest_query, longest_key,
            is_causal, scale):
        offsets, dtype = (query_offsets, key_offsets), query.dtype
        _check(query, key, value, offsets, (longest_query, longest_key))
        query, key, value = (widened(xp, a) for a in (query, key, value))
        out = xp.zeros((*query.shape[:2], value.shape[2]), query.dtype)
        total = xp.zeros(query.shape[:2], query.dtype)
        found, clock = _loops(query, value, offsets)
        given = (query, key, value, offsets, is_causal, _scale(query, scale), out, total)
        if found is not None:
            clock.forward(found, *given)
        else:
            with clock.timed() if clock else contextlib.nullcontext():
                _forward(xp, *given)
        return narrowed(out, dtype), total

    def shape(query, key, value, query_offsets, key_offsets, longest_query, longest_key,
              is_causal, scale):
        return [(*query.shape[:2], value.shape[2]), tuple(query.shape[:2])]

    def dtype(query, key, value, query_offsets, key_offsets, longest_query, longest_key,
              is_causal, scale):
        return [query.dtype, _lse_dtype(query.dtype)]

    def batch(n, batched, query, key, value, query_offsets, key_offsets, longest_query,
              longest_key, is_causal, scale):
        values = tuple(zip((query, key, value), batched[:3]))
        folded, starts, others, back = _in_parts(
            n, batched[3:5], values, query_offsets, key_offsets)
        out, total = ops._ragged_attention(*folded, starts, others, longest_query, longest_key,
                                           is_causal, scale=scale)
        return back(out), back(total)

    def samples(s):
        def at(*places):
            return s.values(places).long()

        own, keys = at(0, 2, 2, 5), at(0, 3, 4, 8)
        x = s.real(5, 2, 3), s.real(5, 2, 3), s.real(5, 2, 3)
        yield s(*x, own, own, 3, 3)
        yield s(*x, own, own, 3, 3, True, scale=0.3)
        yield s(s.real(5, 2, 3), s.real(8, 2, 3), s.real(8, 2, 4), own, keys, 3, 4)
        yield s(s.real(5, 1, 3), s.real(2, 1, 3), s.real(2, 1, 4), at(0, 2, 4, 5),
                at(0, 0, 2, 2), 2, 2)  # queries without keys
        yield s(s.real(0, 2, 3), s.real(0, 2, 3), s.real(0, 2, 3), at(0), at(0), 0, 0)


class _ragged_attention_backward(OfParts):
    """Gradients of that attention, from its results."""

    schema = ("_ragged_attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value,"
              " Tensor out, Tensor logsumexp, Tensor query_offsets, Tensor key_offsets,"
              " SymInt longest_query, SymInt longest_key, bool is_causal=False, *,"
              " float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)")
    nondiff = ("out", "logsumexp", "query_offsets", "key_offsets")
    grad = {"grad_out, query, key, value": (
        "ragged_attention_double_grads(grads, grad_out, query, key, value, query_offsets,"
        " key_offsets, longest_query, longest_key, is_causal, scale, grad_input_mask)")}
    shape = "[tuple(query.shape), tuple(key.shape), tuple(value.shape)]"
    dtype = "[query.dtype, key.dtype, value.dtype]"

    def run(xp, grad_out, query, key, value, out, logsumexp, query_offsets, key_offsets,
            longest_query, longest_key, is_causal, scale):
        offsets, dtype = (query_offsets, key_offsets), query.dtype
        _check(query, key, value, offsets, (longest_query, longest_key))
        want = (*query.shape[:2], value.shape[2])
        if not tuple(grad_out.shape) == tuple(out.shape) == want or (
                tuple(logsumexp.shape) != want[:2]):
            raise ShapeError(f"_ragged_attention_backward: expected results of shape {list(want)}, "
                             f"got {[list(a.shape) for a in (grad_out, out, logsumexp)]}")
        grad_out, query, key, value, out = (
            widened(xp, a) for a in (grad_out, query, key, value, out))
        grads = tuple(xp.zeros(a.shape, a.dtype) for a in (query, key, value))
        scale = _scale(query, scale)
        found, clock = _loops(query, value, offsets)
        if found is not None:
            results = (narrowed(a, query.dtype) for a in (out, logsumexp))
            clock.backward(found, narrowed(grad_out, query.dtype), query, key, value, *results,
                           offsets, is_causal, scale, grads)
        else:
            with clock.timed() if clock else contextlib.nullcontext():
                _backward(xp, grad_out, query, key, value, offsets, is_causal, scale, grads)
        return tuple(narrowed(a, dtype) for a in grads)

    def batch(n, batched, grad_out, query, key, value, out, logsumexp, query_offsets, key_offsets,
              longest_query, longest_key, is_causal, scale):
        values = tuple(zip((query, key, value, grad_out, out, logsumexp),
                           (*batched[1:4], batched[0], *batched[4:6])))
        folded, starts, others, back = _in_parts(
            n, batched[6:8], values, query_offsets, key_offsets)
        q, k, v, g, o, total = folded
        found = ops._ragged_attention_backward(g, q, k, v, o, total, starts, others, longest_query,
                                               longest_key, is_causal, scale=scale)
        return tuple(back(t) for t in found)

    def samples(s):
        for case in _ragged_attention.samples(s):
            query, key, value, *rest = case.args
            out = s.real(*query.shape[:2], value.shape[2])
            yield s(s.real(*out.shape), query, key, value, out, s.real(*query.shape[:2]), *rest,
                    **case.kwargs)
