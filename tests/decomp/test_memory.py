"""Memory of results: a form of an operator gives its inputs back exactly where the operator does.

Decompositions are made of other operators, which may return an argument or a view of one.  All
entries are asked, on their samples and on calls that are easily no work at all: sizes of one, no
dims, shifts and axes of zero, whole turns, the shape that is there already.
"""

import numpy as np
import pytest

import pullback as pb
from pullback.array import dtype as dt
from pullback.core.handle import Tensor, make, tensors_in
from pullback.core.op import registry
from pullback.core.overload import overload_of
from pullback.core.stack import bind
from pullback.decomp import decomposition_table
from pullback.fx.make_fx import make_fx
from pullback.testing import samples

# to show the memory of an argument is what these are for; their parts copy it, as PyTorch's do
SHOWS = {"_unsafe_view", "unsafe_split.Tensor", "unsafe_split_with_sizes", "unsafe_chunk"}
# where it looks is known by a tensor alone: without it there is a copy
PLACED = {"narrow.Tensor"}


def shaped(t: Tensor, shape: tuple) -> Tensor:
    if not t.numel():
        return t
    return make(np.resize(t._payload.reshape(-1), shape).astype(t._payload.dtype))


def variants(flat: tuple):
    """A call, and others like it that may have nothing to do."""
    yield flat
    for shape in ((), (1,), (1, 1)):
        yield tuple([shaped(t, shape) if isinstance(t, Tensor) else t for t in v]
                    if isinstance(v, list) else shaped(v, shape) if isinstance(v, Tensor) else v
                    for v in flat)
    first = next(tensors_in(flat), None)
    for i, v in enumerate(flat):
        others = []
        if type(v) is bool:
            others = [not v]
        elif type(v) in (int, float):
            others = [type(v)(0), type(v)(1)]
        elif isinstance(v, (list, tuple)) and v and all(type(n) is int for n in v):
            others = [[0] * len(v), [1] * len(v)]
            if first is not None:
                others += [list(first.shape), list(range(first.ndim)), list(first.stride())]
        elif isinstance(v, Tensor) and v.ndim:
            others = [shaped(v, ())]
        for other in others:
            yield (*flat[:i], other, *flat[i + 1:])


def pattern(given: list, out) -> list:
    """Which results are an argument or another result, and which share memory with one."""
    made, found = [], []
    for t in out if isinstance(out, (list, tuple)) else [out]:
        made += t if isinstance(t, (list, tuple)) else [t]
    made = [t for t in made if isinstance(t, Tensor)]
    for i, o in enumerate(made):
        for j, t in enumerate([*given, *made[:i]]):
            if o is t or o._payload.size and np.may_share_memory(o._payload, t._payload):
                found.append((i, j, o is t))
    return found


def fresh(flat: tuple) -> tuple:
    return tuple([make(t._payload.copy()) if isinstance(t, Tensor) else t for t in v]
                 if isinstance(v, list) else make(v._payload.copy()) if isinstance(v, Tensor) else v
                 for v in flat)


def calls_of(part: int, but: set):
    """A quarter of the operators, but some, with arguments for each of a few calls."""
    for name in sorted(registry)[part::4]:
        ov = overload_of(registry[name])
        if not ov.is_composite and name not in but:
            for case in samples.cases(ov.op, dt.float64)[:2]:
                for flat in variants(samples.flat(ov.op, case)):
                    yield ov, fresh(flat)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(4))
def test_decompositions_copy_what_operators_copy(part):
    calls = 0
    for ov, flat in calls_of(part, SHOWS | PLACED):
        if ov.is_random or ov.decomposition is None:
            continue
        try:
            wanted = pattern(list(tensors_in(flat)), bind(ov, flat))
            out = ov.decomposition(*flat)
        except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError):
            continue  # no such call
        if out is not NotImplemented:
            calls += 1
            assert pattern(list(tensors_in(flat)), out) == wanted, (ov.name, flat)
    assert calls > 500


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(4))
def test_operators_share_what_their_schemas_say(part):
    calls = 0
    for ov, flat in calls_of(part, SHOWS | {"lift"}):  # which may return an argument
        given = list(tensors_in(flat))
        try:
            out = bind(ov, flat)
        except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError,
                ZeroDivisionError):
            continue  # no such call
        says = any(r.alias and not r.is_write for r in ov.schema.returns)
        made = out if isinstance(out, (list, tuple)) else [out]
        calls += 1
        shown = {i for i, j, _ in pattern(given, out) if j < len(given)}
        filled = {i for i, o in enumerate(made) if isinstance(o, Tensor) and o.numel()}
        assert shown == (filled if says else set()), (ov.name, flat)
    assert calls > 500


def test_decompositions_of_users_copy_too():
    x = pb.arange(4.0)
    table = {pb.ops.aten.sin.default: lambda t: t, pb.ops.aten.cos.default: lambda t: t.view(2, 2)}
    for f in (pb.sin, pb.cos):
        for run in (make_fx(f, table)(x), pb.aot.aot_function(f, pb.aot.nop, decompositions=table)):
            assert pattern([x], run(x)) == [], f


row, one = pb.arange(4.0), pb.tensor(2.0)
square = pb.arange(4.0).reshape(2, 2)
IDLE = {  # calls that may have nothing to do: some give their argument back, others a copy
    "roll by whole turns": (lambda x: x.roll(4), row),
    "roll by nothing": (lambda x: x.roll((0, 0), (0, 1)), square),
    "two turns": (lambda x: [x.roll(4), x.roll(8)], row),
    "index_fill of a number": (lambda x: x.index_fill(0, pb.tensor([0]), 3.0), one),
    "index_fill by a number": (lambda x: pb.tensor(1.0).index_fill(0, pb.tensor([0]), x), one),
    "layer norm": (lambda x: pb.ops.aten.native_layer_norm_backward(
        x, row, [4], pb.zeros(1), pb.ones(1), pb.ones(4), pb.zeros(4), [True, True, True]), row),
    "repeat once": (lambda x: x.repeat(1), row),
    "tile": (lambda x: x.tile(()), row),
    "flip nothing": (lambda x: x.flip(()), row),
    "rot90 by nothing": (lambda x: x.rot90(0), square),
    "pad by nothing": (lambda x: pb.nn.functional.pad(x, (0, 0)), row),
    "cat of one": (lambda x: pb.cat([x]), row),
    "add nothing": (lambda x: x + 0, row),
    "times one": (lambda x: x * 1, row),
    "to its dtype": (lambda x: x.to(pb.float32), row),
    "copy to its dtype": (lambda x: x.to(pb.float32, copy=True), row),
    "contiguous": (lambda x: x.contiguous(), row),
    "clone": (lambda x: x.clone(), row),
    "expand to its shape": (lambda x: x.expand(4), row),
    "reshape to its shape": (lambda x: x.reshape(4), row),
    "permute nothing": (lambda x: x.permute(0, 1), square),
    "sum over nothing": (lambda x: x.sum_to_size(4), row),
    "broadcast": (lambda x: pb.broadcast_tensors(x, x), row),
    "dropout of nothing": (lambda x: pb.nn.functional.dropout(x, 0.0), row),
    "no dropout": (lambda x: pb.nn.functional.dropout(x, 0.5, False), row),
    "real": (lambda x: x.real, row),
    "resolve_conj": (lambda x: x.resolve_conj(), row),
    "positive": (lambda x: +x, row),
    "tril of a number": (lambda x: x.tril(5), square),
    "atleast": (lambda x: pb.atleast_1d(x), row),
    "select all": (lambda x: x.index_select(0, pb.tensor([0])), one),
    "where": (lambda x: pb.where(pb.tensor(True), x, x), row),
    "cumsum of a number": (lambda x: x.cumsum(0), one),
    "sort of a number": (lambda x: x.sort(), one),
    "max of a number": (lambda x: x.max(), one),
    "sum of a number": (lambda x: x.sum(), one),
    "squeeze nothing": (lambda x: x.squeeze(), row),
    "gather of a number": (lambda x: x.gather(0, pb.tensor(0)), one),
    "scatter of a number": (lambda x: pb.tensor(1.0).scatter(0, pb.tensor(0), x), one),
    "index_copy of a number": (lambda x: pb.tensor(1.0).index_copy(0, pb.tensor([0]), x), one),
    "masked_fill": (lambda x: pb.tensor(1.0).masked_fill(pb.tensor(True), x), one),
    "unfold": (lambda x: x.unfold(0, 4, 1), row),
    "movedim": (lambda x: x.movedim(0, 0), square),
    "nan_to_num": (lambda x: x.int().nan_to_num(), row),
    "trunc of integers": (lambda x: x.int().trunc(), row),
    "diagonal_scatter": (
        lambda x: pb.tensor(1.0).reshape(1, 1).diagonal_scatter(x), one.reshape(1)),
    "slice_scatter of all": (lambda x: pb.zeros(4).slice_scatter(x, 0, 0, 4, 1), row),
}


@pytest.mark.parametrize("way", ["captured", "functionalized", "aot", "decomposed", "numpy",
                                 "native"])
def test_captured_forms_share_what_eager_shares(way):
    make_form = {
        "captured": lambda f, x: make_fx(f)(x),
        "functionalized": lambda f, x: pb.func.functionalize(f),
        "aot": lambda f, x: pb.aot.aot_function(f, pb.aot.nop),
        "decomposed": lambda f, x: pb.aot.aot_function(
            f, pb.aot.nop, decompositions=decomposition_table.copy()),
        "numpy": lambda f, x: pb.compile(f, backend="numpy"),
    }
    wanted = {name: pattern([x], f(x)) for name, (f, x) in IDLE.items()}
    if way in ("aot", "decomposed"):  # PyTorch's graphs have a clone there
        wanted |= {"dropout of nothing": [], "no dropout": []}
    if way == "native":  # all in one, each with a tensor of its own
        given = [x.clone() for _, x in IDLE.values()]
        out = pb.compile(lambda *given: [f(x) for (f, _), x in zip(IDLE.values(), given)])(*given)
        found = {name: pattern([x], o) for name, o, x in zip(IDLE, out, given)}
    else:
        found = {name: pattern([x], make_form[way](f, x)(x)) for name, (f, x) in IDLE.items()}
    assert found == wanted
