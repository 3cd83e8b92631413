"""Operators of real numbers refuse complex ones, eager, planned, captured and under vmap."""

import pytest

import pullback as pb
from pullback.func import vmap
from pullback.nn import functional as F

X = pb.ones(2, 3, 6)
CASES = {
    "prelu": lambda x: F.prelu(x, x[0, 0, :1]),
    "threshold": lambda x: F.threshold(x, 0.1, 0.0),
    "deg2rad": pb.deg2rad,
    "zeta": lambda x: pb.special.zeta(x + 1, x),
    "zeta_order": lambda x: pb.ops.aten._zeta_order.default(x, x, 1),
    "avg_pool1d": lambda x: F.avg_pool1d(x, 2),
    "adaptive_max_pool1d": lambda x: F.adaptive_max_pool1d(x, 2),
    "interpolate": lambda x: F.interpolate(x, scale_factor=2.0),
    "embedding_bag": lambda x: F.embedding_bag(pb.tensor([[0, 1]]), x[0]),
    "layer_norm": lambda x: F.layer_norm(x, (6,)),
    "threshold_backward": lambda x: pb.ops.aten.threshold_backward.default(x, x, 0.0),
    "avg_pool2d_backward": lambda x: pb.ops.aten.avg_pool2d_backward.default(
        x[:, :, :3], x, [1, 2], [1, 2], [0, 0], False, True, None),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("way", ["eager", "compiled", "vmap"])
def test_complex_numbers_are_refused(name, way):
    function = CASES[name]
    run = {"eager": function, "compiled": pb.compile(function, backend="numpy"),
           "vmap": lambda x: vmap(function)(x.unsqueeze(0))}[way]
    for _ in range(15):  # after a dozen calls a plan takes over
        run(X)
    with pytest.raises(RuntimeError, match="not implemented for 'ComplexFloat'"):
        run(X.to(pb.complex64))
