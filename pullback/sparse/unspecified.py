"""Gradients of what a sparse tensor has no entry for.

A tensor that was made of a dense one, `d.to_sparse()`, stands for all elements of `d`: whatever is
computed with it depends on those, too, that are zero now.  Such a tensor carries a *rest*: zeros in
its own shape whose history leads to the elements without entry.  Functions that are linear in
elements, or act on each, are of the rest as well as of the entries; results are the same, and
derivatives of any kind reach everything.  Functions of what is specified alone (those of
`torch.sparse`, `sparse_mask`, softmax, `to_dense()`) leave it away.

A leaf has its gradient on its entries, except by `to_dense(masked_grad=False)`: then a `Whole`
comes back to its values, which becomes a sparse tensor with all that there is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import errors
from ..autograd.function import Function
from ..core.handle import Tensor, tensors_in
from ..core.stack import bind
from ..parts import PartsTensor
from ..parts.rules import rule, shown
from ..table.packets import ops
from ..threads.state import fast, recording, state
from .memo import _is_raw
from .tensor import SparseTensor


class Rest(NamedTuple):
    """How to find the zeros of a tensor, which nobody may ask for."""

    find: Callable[[], Tensor]
    of_leaf: bool  # does their history lead to a leaf that is sparse itself?


def _differentiates() -> bool:
    """May somebody ask for a derivative of what is computed now?"""
    return recording() or bool(fast["ACTIVE"])


def carried(t: SparseTensor) -> Rest | None:
    """The rest of a tensor, also of a leaf."""
    if t.rest is not None or not _differentiates():
        return t.rest
    if not t.is_leaf or not t.requires_grad or not _is_raw(t.values_part._payload):
        return None
    values, shape = t.values_part, tuple(t.shape)
    return Rest(lambda: _OfLeaf.apply(values, shape), True)


def zeros_of(t: Any, asked: bool = False) -> Tensor | None:
    """Zeros with the history of what has no entry, where there is one; that of a leaf if asked."""
    if not isinstance(t, SparseTensor) or t.rest is None and not asked or not _differentiates():
        return None
    rest = carried(t)
    if rest is None or rest.of_leaf and not asked:
        return None
    zeros = rest.find()
    return zeros if zeros.dtype is t.dtype else zeros.to(t.dtype)


def with_rest(out: SparseTensor, source: Tensor) -> SparseTensor:
    """The entries of a dense tensor as one that stands for all its elements."""
    if not _differentiates() or _is_raw(source._payload) and not source.requires_grad:
        return out
    places = out.with_carrier(out.values_part.detach())  # `out` would be held by itself
    out.rest = Rest(lambda: _Unspecified.apply(source, *places.coordinates()), False)
    return out


def only_entries(t: Any) -> Any:
    """A tensor without its rest, for functions of what is specified."""
    if not isinstance(t, SparseTensor) or t.rest is None:
        return t
    return t.with_carrier(t.values_part)


def passed_on(out: Any, ov: Any, flat: tuple) -> Any:
    """A result of an operator that is linear in elements, or acts on each, with its rest."""
    if not ov.op.linear and ov.kind not in ("pointwise", "view") or not _differentiates():
        return out
    given = [v for v in tensors_in(flat) if isinstance(v, SparseTensor)]
    rests = [carried(v) for v in given]
    known = [r for r in rests if r is not None]
    if not known:
        return out
    if ov.kind == "pointwise" and not isinstance(out, SparseTensor):
        return out
    by_id = {id(v): r for v, r in zip(given, rests)}
    of_leaf = all(r.of_leaf for r in known)
    several = len(given) > 1 and not ov.op.linear
    found: list = []

    def find() -> Any:
        if not found:
            found.append(bind(ov, tuple([_exchanged(v, by_id) for v in flat])) if not several
                         else _moved(ov, flat, by_id))
        return found[0]

    if isinstance(out, (list, tuple)):
        for k, o in enumerate(out):
            _attach(o, lambda k=k: find()[k], of_leaf)
        return out
    if not isinstance(out, SparseTensor):
        return out if of_leaf else out + find()
    if ov.kind == "reduction" and not of_leaf:  # entries of the result are of such elements, too
        return _reduced(out, find())
    return _attach(out, find, of_leaf)


def _reduced(out: SparseTensor, zeros: Tensor) -> SparseTensor:
    from .elementwise import gathered

    new = out.with_entries(out.entry_values() + gathered(zeros, out))
    return _attach(new, lambda: _Unspecified.apply(zeros, *out.coordinates()), False)


def _attach(out: Any, find: Callable[[], Tensor], of_leaf: bool) -> Any:
    if isinstance(out, SparseTensor) and out.rest is None:
        out.rest = Rest(find, of_leaf)
    return out


def _exchanged(v: Any, rests: dict) -> Any:
    """An argument of an operator with zeros in the places of sparse tensors."""
    if isinstance(v, (list, tuple)):
        return type(v)([_exchanged(e, rests) for e in v])
    if not isinstance(v, SparseTensor):
        return v
    rest = rests[id(v)]
    return _none(v) if rest is None else rest.find()


def _moved(ov: Any, flat: tuple, rests: dict) -> Tensor:
    """How a function of several tensors, element by element, changes with their zeros."""
    dense = [v.to_dense() if isinstance(v, SparseTensor) else v for v in flat]
    moved = [w if not isinstance(v, SparseTensor) or rests[id(v)] is None
             else w + rests[id(v)].find() for v, w in zip(flat, dense)]
    return bind(ov, tuple(moved)) - bind(ov, tuple(dense))


def _none(t: Tensor) -> Tensor:
    return ops.zeros((), dtype=t.dtype, device=t.device).expand(t.shape)


def in_another_layout(out: SparseTensor, t: SparseTensor) -> SparseTensor:
    """The result of a conversion, which stands for the same."""
    rest = None if out is t else carried(t)
    return out if rest is None else _attach(out, rest.find, rest.of_leaf)


def sum_of(out: Any, a: Any, b: Any, alpha: Any) -> Any:
    """`a + alpha * b`, of which one is sparse at least, with what has no entry."""
    rests = [carried(v) if isinstance(v, SparseTensor) else None for v in (a, b)]
    known = [r for r in rests if r is not None]
    if not known:
        return out
    of_leaf = all(r.of_leaf for r in known)

    def find() -> Tensor:
        parts = [r if r is None else r.find() for r in rests]
        if parts[1] is None:
            return parts[0]
        return parts[1] * alpha if parts[0] is None else ops.add(*parts, alpha=alpha)

    if isinstance(out, SparseTensor):
        return _attach(out, find, of_leaf)
    return out if of_leaf else out + find()


def product_of(out: Any, a: Any, b: Any) -> Any:
    """A product of two matrices, or of batches of them, with what has no entry."""
    left, right = zeros_of(a), zeros_of(b)
    if left is None and right is None:
        return out
    terms = []
    if left is not None:
        terms.append(_ProductOfZeros.apply(left, _dense(b)))
    if right is not None:
        terms.append(_ProductOfZeros.apply(right.mT, _dense(a).mT).mT)
    if len(terms) > 1:
        terms.append(_ProductOfZeros.apply(left, right))
    zeros = functools.reduce(ops.add, terms)
    return _reduced(out, zeros) if isinstance(out, SparseTensor) else out + zeros


def _dense(t: Tensor) -> Tensor:
    return t.to_dense() if isinstance(t, SparseTensor) else t


def as_carried(t: SparseTensor, value: Any, what: str, before: Any = None) -> Tensor:
    """A gradient of a tensor as one of its values; `Whole` if one came before it was changed."""
    from .elementwise import as_coo, gathered, same_pattern, sparse_values

    if not isinstance(value, Tensor) or value.shape != t.shape:
        t.same_kind(value, what)
    if isinstance(before, Whole):
        everywhere = value.to_dense() if isinstance(value, SparseTensor) else value
        entries = t.with_entries(gathered(everywhere, t)).values_part
        return Whole.join({"entries": entries, "everywhere": everywhere}, None)
    if not isinstance(value, SparseTensor):
        return t.with_entries(gathered(value, t)).values_part
    if same_pattern(value, t):
        return value.values_part
    return t.with_entries(sparse_values(as_coo(value), t)).values_part


# zeros --------------------------------------------------------------------------------------------


def _zeros(shape: Any, like: Tensor) -> Tensor:
    return ops.zeros((), dtype=like.dtype, device=like.device).expand(tuple(shape))


class _Unspecified(Function):
    """Zeros that depend on the elements of a dense tensor which are at none of some places."""

    generate_vmap_rule = True

    @staticmethod
    def forward(dense, *places):
        return _zeros(dense.shape, dense)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs[1:])
        ctx.save_for_forward(*inputs[1:])

    @staticmethod
    def _without(g: Tensor, places: Any) -> Tensor:
        if not places:
            return ops.zeros_like(g)
        return g.index_put(tuple(places), ops.zeros((), dtype=g.dtype, device=g.device))

    @staticmethod
    def backward(ctx, grad):
        places = ctx.saved_tensors
        return _Unspecified._without(grad, places), *[None] * len(places)

    @staticmethod
    def jvp(ctx, tangent, *_):
        return _Unspecified._without(tangent, ctx.saved_tensors)


class _ProductOfZeros(Function):
    """The product of a matrix of zeros, which has a history, and another: nothing is computed."""

    generate_vmap_rule = True

    @staticmethod
    def forward(rest, other):
        return _zeros((*rest.shape[:-1], other.shape[-1]), other)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        rest, other = ctx.saved_tensors
        wanted = ctx.needs_input_grad
        return (ops.matmul(grad, other.mH) if wanted[0] else None,
                _ProductOfZeros.apply(rest.mH, grad) if wanted[1] else None)

    @staticmethod
    def jvp(ctx, rest_t, other_t):
        rest, other = ctx.saved_tensors
        found = [] if other_t is None else [_ProductOfZeros.apply(rest, other_t)]
        if rest_t is not None:
            found.append(ops.matmul(rest_t, other))
        return found[0] if len(found) == 1 else found[0] + found[1]


# leaves -------------------------------------------------------------------------------------------


class _OfLeaf(Function):
    """Zeros in the shape of a leaf: their gradient comes to its values as a `Whole`."""

    @staticmethod
    def forward(ctx, values, shape):
        ctx.save_for_backward(values)
        return _zeros(shape, values)

    @staticmethod
    def backward(ctx, grad):
        (values,) = ctx.saved_tensors
        return Whole.join({"entries": ops.zeros_like(values), "everywhere": grad}, None), None


class Whole(PartsTensor):
    """A gradient of the values of a leaf together with one of all elements of it."""

    title = "whole"
    names = ("entries", "everywhere")
    carrier = "entries"

    def meta(self) -> None:
        return None

    @classmethod
    def join(cls, parts: dict, meta: Any) -> Whole:
        t = cls.bare()
        t.entries, t.everywhere = parts["entries"], parts["everywhere"]
        t.take_form(tuple(t.entries.shape), t.entries._payload.dtype)
        return t

    def any_operator(self, ov, flat: tuple):
        return bind(ov, tuple([v.entries if isinstance(v, Whole) else v for v in flat]))

    def of(self, t: SparseTensor) -> SparseTensor:
        """The gradient of a tensor: all of it that is not zero, in the layout of the tensor."""
        from .convert import _blocks_of, convert

        at = t.coordinates()
        dense = self.everywhere.index_put(at, t.with_carrier(self.entries).entry_values())
        return convert(dense, t.own_layout, _blocks_of(t), dense_dim=t.dense_dim() or None)


@rule(Whole, "add.Tensor")
def _add(a: Any, b: Any, alpha: Any = 1):
    parts = [(v.entries, v.everywhere) if isinstance(v, Whole) else (v, None) for v in (a, b)]
    entries = ops.add(parts[0][0], parts[1][0], alpha=alpha)
    if parts[0][1] is None:
        everywhere = parts[1][1] * alpha
    elif parts[1][1] is None:
        everywhere = parts[0][1]
    else:
        everywhere = ops.add(parts[0][1], parts[1][1], alpha=alpha)
    return Whole.join({"entries": entries, "everywhere": everywhere}, None)


@rule(Whole, "detach")
def _detach(t: Whole) -> Whole:
    return Whole.join({n: getattr(t, n).detach() for n in t.names}, None)


def refuse_in_capture(t: SparseTensor) -> None:
    """A captured program gives gradients on entries; it cannot be asked for others."""
    level = state.stack[state.mode] if state.mode else None
    if level is not None and level.adopts and t.requires_grad and t.is_leaf:
        raise level.unfollowed(errors.text(
            "to_dense(masked_grad=False): a captured function gives the gradient of a sparse "
            f"leaf on its entries ({errors.user_line(3)})", shown(t),
            "convert it outside of the function"))
