"""Incoming gradients that are infinite reach the same elements as in PyTorch, in every mode."""

import pytest

import pullback as pb
from pullback.nn import functional as F
from pullback.testing import assert_close

INF, NAN = float("inf"), float("nan")
X = [[1.0, 3.0, 2.0, 3.0], [0.0, -1.0, 0.0, 2.0], [4.0, 4.0, -2.0, 0.0]]
CASES = {  # what PyTorch gives for a seed that is infinite everywhere
    "max": (lambda x: x.max(), [[0, 0, 0, 0], [0, 0, 0, 0], [INF, INF, 0, 0]]),
    "max_dim": (lambda x: x.max(1)[0], [[0, INF, 0, 0], [0, 0, 0, INF], [INF, 0, 0, 0]]),
    "amax": (lambda x: x.amax(1), [[NAN, INF, NAN, INF], [NAN] * 3 + [INF], [INF, INF, NAN, NAN]]),
    "min": (lambda x: x.min(), [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, INF, 0]]),
    "median": (lambda x: x.median(), [[INF, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]),
    "softshrink": (F.softshrink, [[INF] * 4, [0, INF, 0, INF], [INF, INF, INF, 0]]),
    "renorm": (lambda x: x.renorm(2, 0, 3.0), [[NAN] * 4, [INF] * 4, [NAN] * 4]),
    "multi_margin": (lambda x: F.multi_margin_loss(x, pb.tensor([0, 1, 2])),
                     [[-INF, INF, INF, INF], [INF, -INF, INF, INF], [INF, INF, -INF, INF]]),
    "prod": (lambda x: x.prod(1), [[INF] * 4, [NAN] * 4, [NAN, NAN, NAN, -INF]]),
    "cdist": (lambda x: pb.cdist(x, x.flip(0)), [[NAN, NAN, INF, INF], [-INF, -INF, NAN, NAN],
                                                 [INF, INF, -INF, -INF]]),
    "pdist": (lambda x: F.pdist(pb.stack([x[0], x[0], x[1]])),
              [[INF] * 4, [-INF] * 4, [0, 0, 0, 0]]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("backend", ["eager", "numpy", "native", "vmap"])
def test_infinite_gradients_reach_what_they_reach_in_pytorch(name, backend):
    function, wanted = CASES[name]
    run = function if backend in ("eager", "vmap") else pb.compile(function, backend=backend)
    x = pb.tensor(X, requires_grad=True)
    out = pb.vmap(run)(x.unsqueeze(0)) if backend == "vmap" else run(x)
    out.backward(pb.full_like(out, INF))
    assert_close(x.grad, pb.tensor(wanted, dtype=pb.float32), equal_nan=True)
