"""Which sizes vary: said of tensors, shown by examples, for `*args` and for registered classes."""

from dataclasses import dataclass

import pytest

import pullback as torch
from pullback import errors, nn
from pullback.export import AdditionalInputs, Dim, ShapesCollection, export


class Nested(nn.Module):
    def forward(self, x, others):
        return x.sum() + others["a"].sum() + others["l"][0]


X, Y, Z = torch.ones(4, 2), torch.ones(4), torch.ones(())
ARGS = X, {"a": Y, "l": [Z]}


def varying(program) -> list:
    return [[not isinstance(n, int) for n in node.meta["val"].shape]
            for node in program.graph.find_nodes(op="placeholder")]


def test_said_of_tensors():
    n = Dim("n")
    wishes = ShapesCollection()
    wishes[X] = (n, None)
    wishes[Y][0] = n
    assert len(wishes) == 2
    assert wishes.dynamic_shapes(Nested(), ARGS) == {
        "x": (n, None), "others": {"a": {0: n}, "l": [None]}}
    program = export(Nested(), ARGS, dynamic_shapes=wishes)
    assert varying(program) == [[True, False], [True], []] and len(program.range_constraints) == 1
    with pytest.raises(AssertionError, match="do not match"):
        wishes[X] = (None, None)
    with pytest.raises(AssertionError, match="non-tensor"):
        wishes["x"] = {}
    with pytest.raises(ValueError, match="not found in args"):
        export(Nested(), (X.clone(), *ARGS[1:]), dynamic_shapes=wishes)


def test_shown_by_examples():
    more = AdditionalInputs()
    more.add((torch.ones(6, 2), {"a": torch.ones(9), "l": [Z]}))
    program = export(Nested(), ARGS, dynamic_shapes=more)
    assert varying(program) == [[True, False], [True], []] and len(program.range_constraints) == 2
    more.add((torch.ones(1, 2), {"a": torch.ones(9), "l": [Z]}))
    with pytest.raises(errors.SignatureError, match="not for these sizes"):
        export(Nested(), ARGS, dynamic_shapes=more)
    with pytest.raises(AssertionError, match="must be a tuple"):
        more.add([X])
    other = AdditionalInputs()
    other.add((X, {"a": Y, "l": [3]}))
    with pytest.raises(ValueError, match="differing types"):
        export(Nested(), ARGS, dynamic_shapes=other)


class Star(nn.Module):
    def forward(self, *args, **rest):
        return args[0].sum() + args[1].sum() + rest["scale"].sum()


@pytest.mark.parametrize("wish", [
    lambda n: (({0: n}, None), {0: Dim("m")}),
    lambda n: {"args": ({0: n}, None), "scale": {0: Dim("m")}},
    lambda n: {"args": ({0: n}, None), "rest": {"scale": {0: Dim("m")}}},
])
def test_arguments_that_stand_together(wish):
    program = export(Star(), (X, Y), {"scale": Y}, dynamic_shapes=wish(Dim("n")))
    assert varying(program) == [[True, False], [False], [True]]
    assert program.module()(torch.ones(7, 2), Y, scale=torch.ones(5)).item() == 14 + 4 + 5


@dataclass
class Pair:
    a: object
    b: object


def test_registered_classes():
    torch.export.register_dataclass(Pair)

    class Sum(nn.Module):
        def forward(self, pair):
            return pair.a.sum() + pair.b.sum()

    said = ShapesCollection()
    said[X] = {0: Dim("n")}
    for wishes in ({"pair": [{0: Dim("n")}, None]}, said):
        program = export(Sum(), (Pair(X, Y),), dynamic_shapes=wishes)
        assert varying(program) == [[True, False], [False]]


def test_refusals_are_pytorchs():
    def refused(kind, match, wishes):
        with pytest.raises(kind, match=match):
            export(Nested(), ARGS, dynamic_shapes=wishes)

    refused(errors.ConstraintViolationError, "not in range", {
        "x": {0: Dim("n", min=6)}, "others": None})
    refused(errors.ConstraintViolationError, "is 4", {"x": {0: 5}, "others": None})
    refused(errors.UserError, "top-level keys", {"z": None})
    refused(errors.UserError, "different definitions", {
        "x": {0: Dim("n", min=2)}, "others": {"a": {0: Dim("n", min=3)}, "l": [None]}})
    with pytest.raises(errors.UserError, match="`args` to be a tuple"):
        export(Nested(), X)
    from pullback._dynamo import exc

    assert issubclass(exc.UserError, RuntimeError) and exc.UserError is errors.UserError
