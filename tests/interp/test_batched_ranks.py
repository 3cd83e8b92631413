"""Products under `vmap` refuse operands of ranks that they refuse without it."""

import pytest

import pullback as pb

SHAPES = [(2,), (2, 2), (2, 2, 2)]
RANKS = {"mm": (2, 2), "bmm": (3, 3), "mv": (2, 1), "dot": (1, 1),
         "addmm": (2, 2), "baddbmm": (3, 3), "addbmm": (3, 3)}


@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0)])
@pytest.mark.parametrize("name", RANKS)
def test_products(name, dims):
    for one in SHAPES:
        for two in SHAPES:
            args = [pb.ones(one if d is None else (3, *one)) for d, one in zip(dims, (one, two))]
            base = [pb.zeros((2,))] if "add" in name else []

            def run(a, b, base=base):
                return getattr(pb, name)(*base, a, b)

            if (len(one), len(two)) == RANKS[name]:
                out = pb.vmap(run, dims)(*args)
                assert pb.equal(out[1], run(pb.ones(one), pb.ones(two)))
            else:
                with pytest.raises(RuntimeError):
                    pb.vmap(run, dims)(*args)
