"""`functorch.einops.rearrange`: axes by name."""

import pytest

import pullback as pb
from pullback.func.einops import rearrange

X = pb.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize("pattern, sizes, expected", [
    ("a b c -> c b a", {}, X.permute(2, 1, 0)),
    ("a b c -> (a b) c", {}, X.reshape(6, 4)),
    ("a b (c d) -> d a (b c)", {"d": 2},
     X.reshape(2, 3, 2, 2).permute(3, 0, 1, 2).reshape(2, 2, 6)),
    ("a ... -> (...) a", {}, X.reshape(2, 12).T),
    ("... c -> c ...", {}, X.movedim(2, 0)),
    ("a b (c 1) -> 1 a (b c) ()", {}, X.reshape(1, 2, 12, 1)),
])
def test_patterns(pattern, sizes, expected):
    assert pb.equal(rearrange(X, pattern, **sizes), expected)
    back = " -> ".join(reversed(pattern.split("->")))
    if "(...)" not in back:
        known = dict(zip("abc", X.shape))
        if "d" in sizes:
            known = {"b": 3, **sizes}
        elif "..." in back:
            known = {}
        assert pb.equal(rearrange(expected, back, **known), X)


def test_lists_batches_and_gradients():
    assert pb.equal(rearrange([X, X + 1], "n a b c -> a b (n c)"), pb.cat([X, X + 1], 2))
    assert pb.equal(pb.vmap(lambda v: rearrange(v, "b c -> c b"))(X), X.transpose(1, 2))
    weights = pb.arange(24.0).reshape(4, 6)
    found = pb.func.grad(lambda v: (rearrange(v, "a b c -> c (a b)") * weights).sum())(X)
    assert pb.equal(found, weights.T.reshape(2, 3, 4))


@pytest.mark.parametrize("pattern, sizes", [
    ("a b -> b a", {}), ("a b c d -> a b c d", {}), ("a b c -> a b", {}), ("a a c -> a c", {}),
    ("a b c", {}), ("(a b c -> a b c", {}), ("a b) c d -> a b c d", {}), ("2 b c -> b c", {}),
    ("a b (c d) -> a b c d", {}), ("a b (c d) -> a b c d", {"c": 3}), ("a b c -> ... a b c", {}),
    ("a (...) -> a ...", {}), ("a .. c -> a c ..", {}), ("a b c -> a b c", {"q": 1}),
    ("a b c -> a b c", {"a": 5}),
])
def test_refusals(pattern, sizes):
    with pytest.raises(ValueError, match="rearrange cannot use the pattern"):
        rearrange(X, pattern, **sizes)
