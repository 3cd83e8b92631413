"""A Function whose forward returns a view has the user's backward when it is captured, too."""

import numpy as np
import pytest

import pullback as pb
from pullback import errors
from tests.helpers.custom_functions import custom_function

# gradients turned around, as in domain adaptation
Reversed = custom_function("Reversed", lambda x: x.view_as(x), lambda g: -0.5 * g)


class First(pb.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x[:1]

    @staticmethod
    def backward(ctx, g):
        return pb.cat([-g, 3 * g])


PROGRAMS = {
    "as it is": Reversed.apply,
    "of a computed one": lambda x: Reversed.apply(x * 1),
    "viewed": lambda x: Reversed.apply(x).view(-1),
    "beside a result": lambda x: (Reversed.apply(x), Reversed.apply(x) * 2),
    "a part": First.apply,
    "of a part": lambda x: Reversed.apply(x[:1]),
}
WAYS = {
    "eager": lambda f: f,
    "aot": lambda f: pb.aot.aot_function(f, pb.aot.nop),
    "numpy": lambda f: pb.compile(f, backend="numpy"),
}


def seen(function):
    x = pb.ones(2, requires_grad=True)
    outs = function(x)
    outs = outs if isinstance(outs, tuple) else (outs,)
    shared = [np.shares_memory(x.detach().numpy(), o.detach().numpy()) for o in outs]
    sum(o.sum() for o in outs).backward()
    return x.grad.tolist(), shared, [o._base is x for o in outs]


@pytest.mark.parametrize("way", list(WAYS)[1:])
@pytest.mark.parametrize("name", PROGRAMS)
def test_views_by_functions(name, way):
    assert seen(WAYS[way](PROGRAMS[name])) == seen(PROGRAMS[name])


@pytest.mark.parametrize("way", WAYS)
def test_writes_into_such_views_are_refused(way):
    out = WAYS[way](Reversed.apply)(pb.ones(2, requires_grad=True))
    with pytest.raises(errors.ViewWriteError, match="custom Function"):
        out.mul_(2)
