"""Derivatives of attention over parts of different lengths: those of dense attention for each.

Where the offsets are numbers, each part is done by itself.  In transforms of them and in captures
all parts are padded to the longest, and the padding is masked.  Read `attention.py` for the
mathematics, `ops/ragged_attention.py` for the entries and the kernels.
"""

from __future__ import annotations

import math

from ..core.handle import Box
from ..table.packets import ops
from .attention import attention_double_grads, attention_push


def _known(offsets) -> bool:
    """Are they numbers, and not values of a transform or of a capture?"""
    return not isinstance(offsets._payload, Box) and not getattr(offsets._payload, "is_fake", False)


class _Padded:
    """Where the places of parts are in rows that are as long as the longest."""

    def __init__(self, offsets, longest, total):
        starts, self.lengths = offsets[:-1], offsets[1:] - offsets[:-1]
        places = ops.arange(longest, device=offsets.device)
        self.inside = places < self.lengths.unsqueeze(1)
        self.at = ops.where(self.inside, starts.unsqueeze(1) + places, 0)
        every = ops.arange(total, device=offsets.device)
        # the part of each place: those that end before it are behind it
        self.number = ops.searchsorted(offsets[1:].contiguous(), every, right=True)
        self.position = every - starts[self.number]

    def rows(self, t):
        """(places, heads, width) as (parts, heads, longest, width), with zeros behind."""
        if t.shape[0].__class__ is int and not t.shape[0]:
            found = t.new_zeros((*self.at.shape, *t.shape[1:]))
        else:
            found = t[self.at].masked_fill(~self.inside[..., None, None], 0.0)
        return found.transpose(1, 2)

    def places(self, rows):
        """The way back."""
        return rows.transpose(1, 2)[self.number, self.position]


def _by_parts(function, queries: tuple, keys: tuple, query_offsets, key_offsets, longest_query,
              longest_key, sides: str) -> tuple:
    """A function of dense queries, keys and a mask, for all parts.

    `queries` and `keys` are what lies by the offsets of either, None among them; `sides` says for
    each result by whose offsets it lies: "q" or "k".
    """
    if _known(query_offsets) and _known(key_offsets):
        lengths = [(places[1:] - places[:-1]).tolist() for places in (query_offsets, key_offsets)]
        cut = [[None if t is None else t.split_with_sizes(own, 0) for t in side]
               for side, own in zip((queries, keys), lengths)]
        found = []
        for i in range(len(lengths[0])):
            q, k = ([None if t is None else t[i].transpose(0, 1).unsqueeze(0) for t in side]
                    for side in cut)
            found.append(function(q, k, None))
        if found:
            return tuple(None if found[0][k] is None else
                         ops.cat([f[k].squeeze(0).transpose(0, 1) for f in found])
                         for k in range(len(sides)))
    q = _Padded(query_offsets, longest_query, queries[0].shape[0])
    k = _Padded(key_offsets, longest_key, keys[0].shape[0])
    mask = ops.where(k.inside, 0.0, -math.inf).to(queries[0].dtype)[:, None, None]
    found = function(*[[None if t is None else side.rows(t) for t in given]
                       for side, given in ((q, queries), (k, keys))], mask)
    return tuple(None if f is None else (q if side == "q" else k).places(f)
                 for f, side in zip(found, sides))


def ragged_attention_push(query, query_t, key, key_t, value, value_t, query_offsets, key_offsets,
                          longest_query, longest_key, is_causal, scale):
    """The tangent of the output."""
    def push(queries, keys, mask):
        q, q_t = queries
        k, k_t, v, v_t = keys
        return (attention_push(q, q_t, k, k_t, v, v_t, mask, is_causal, scale),)

    return _by_parts(push, (query, query_t), (key, key_t, value, value_t), query_offsets,
                     key_offsets, longest_query, longest_key, "q")[0]


def ragged_attention_double_grads(grads, grad, query, key, value, query_offsets, key_offsets,
                                  longest_query, longest_key, is_causal, scale, wanted):
    """Gradients of the gradients, for that of the output, queries, keys and values."""
    if all(g is None for g in grads):
        return None, None, None, None

    def double(queries, keys, mask):
        g, q, a = queries
        k, v, b, c = keys
        return attention_double_grads((a, b, c), g, q, k, v, mask, is_causal, scale, wanted)

    return _by_parts(double, (grad, query, grads[0]), (key, value, grads[1], grads[2]),
                     query_offsets, key_offsets, longest_query, longest_key, "qqkk")
