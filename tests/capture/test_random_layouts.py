"""Numbers are drawn along memory: what lies otherwise in a graph than in eager draws others."""

import pytest

import pullback as pb
from pullback.nn import functional as F

BEFORE = {
    "product": lambda x: x * 2, "softmax": lambda x: x.softmax(-1), "copy": lambda x: x.clone(),
    "norm": lambda x: F.layer_norm(x, x.shape[-1:]), "sums": lambda x: x.cumsum(0),
}
DRAWS = {
    "rand_like": pb.rand_like, "normal_": lambda x: x.clone().normal_(),
    "dropout": lambda x: F.dropout(x, 0.5),
}


@pytest.mark.parametrize("options", [{}, {"dynamic": True}, {"backend": "numpy", "dynamic": True}],
                         ids=["native", "sizes", "numpy with sizes"])
@pytest.mark.parametrize("dtype", [pb.float16, pb.float32])
@pytest.mark.parametrize("before", BEFORE)
def test_draws_behind_an_operator(before, dtype, options):
    x = pb.arange(6.0).reshape(3, 2).to(dtype).t()

    def drawn(x):
        made = BEFORE[before](x)
        return [draw(made) * made.sum() for draw in DRAWS.values()]

    pb.manual_seed(3)
    wanted = drawn(x)
    pb.manual_seed(3)
    for name, got, want in zip(DRAWS, pb.compile(drawn, **options)(x), wanted, strict=True):
        assert pb.allclose(got, want, rtol=1e-2), name
