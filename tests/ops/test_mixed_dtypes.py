"""Operands of several dtypes: what PyTorch refuses is refused, results have PyTorch's dtypes."""

import functools

import pytest

import pullback as pb
from pullback.core.op import registry
from pullback.core.overload import overload_of
from pullback.nn import functional as F
from pullback.testing import samples

X, Y, I = pb.ones(2, 3), pb.ones(2, 3), pb.tensor([0, 1])
REFUSED = {
    "lerp": lambda x, y: pb.lerp(x, y, 0.3),
    "heaviside": lambda x, y: pb.heaviside(x, y),
    "index_put": lambda x, y: x.index_put((I,), y),
    "scatter_add": lambda x, y: x.scatter_add(0, pb.tensor([[0, 1, 0]]), y),
    "index_add": lambda x, y: x.index_add(0, I, y),
    "index_copy": lambda x, y: x.index_copy(0, I, y),
    "masked_scatter": lambda x, y: x.masked_scatter(x > 0, y),
    "vecdot": lambda x, y: pb.linalg.vecdot(x, y),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("first", [pb.float16, pb.bfloat16, pb.float64])
def test_two_floating_dtypes_are_refused(name, first):
    function = REFUSED[name]
    for x, y in ((X.to(first), Y), (X, Y.to(first))):
        with pytest.raises(RuntimeError):
            function(x, y)
    assert function(X.to(first), Y.to(first)).dtype is first


@pytest.mark.parametrize("backend", ["eager", "numpy", "native"])
@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_cross_entropy_of_logits_has_the_dtype_of_its_targets(backend, reduction):
    def loss(x, y):
        return F.binary_cross_entropy_with_logits(x, y, reduction=reduction)

    run = loss if backend == "eager" else pb.compile(loss, backend=backend)
    for of, target in ((pb.float64, pb.float32), (pb.float32, pb.float64)):
        x, y = [t.clone().requires_grad_() for t in (X.to(of), (Y / 4).to(target))]
        out = run(x, y)
        out.sum().backward()
        assert (out.dtype, x.grad.dtype, y.grad.dtype) == (target, of, target)


def test_cross_entropy_of_logits_wants_floating_targets():
    for target in (Y.long(), Y.bool()):
        with pytest.raises(RuntimeError, match="can't be cast"):
            F.binary_cross_entropy_with_logits(X, target)


@pytest.mark.parametrize("function", [F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss])
def test_distances_of_two_dtypes_have_the_wider_one(function):
    x, y = X.clone().requires_grad_(), (Y * 3).double()
    out = function(x, y)
    if function is F.huber_loss:  # as in PyTorch, whose kernel of the gradient takes one dtype
        assert out.dtype is pb.float32
        with pytest.raises(RuntimeError, match="expected scalar type"):
            out.backward()
    else:
        assert out.dtype is pb.float64
        out.backward()
        assert x.grad.dtype is pb.float32
        assert x.grad.abs().sum() > 0


@pytest.mark.parametrize("cell", ["rnn_relu_cell", "rnn_tanh_cell"])
def test_a_hidden_state_keeps_its_dtype_beside_wider_input(cell):
    h, w = pb.ones(2, 4, dtype=pb.float16), pb.ones(4, 4, dtype=pb.float16)
    out = getattr(pb, cell)(pb.ones(2, 3), h, pb.ones(4, 3), w)
    assert out.dtype == pb.float16


def test_huber_loss_has_the_dtype_of_its_input():
    x, y = pb.ones(3), pb.zeros(3, dtype=pb.float64)
    for f in (F.huber_loss, pb.compile(F.huber_loss, backend="numpy")):
        assert f(x, y).dtype is pb.float32 and f(y, x).dtype is pb.float64
    assert pb.func.jvp(lambda x: F.huber_loss(x, y), (x,), (x,))[1].dtype is pb.float32
    with pytest.raises(RuntimeError, match="not implemented for 'Long'"):
        F.huber_loss(x.long(), y)


def test_gradients_of_weight_norm_have_the_common_dtype_of_all_but_the_norms():
    backward = pb.ops.aten._weight_norm_differentiable_backward.default
    for wide in range(4):
        given = [pb.ones(*shape, dtype=pb.float64 if k == wide else pb.float32)
                 for k, shape in enumerate([(3, 2), (3, 2), (3, 1), (3, 1)])]
        assert {t.dtype for t in backward(*given, 0)} == {pb.float32 if wide == 3 else pb.float64}


@pytest.mark.parametrize("name", ["native_group_norm", "native_group_norm_backward",
                                  "native_layer_norm", "native_layer_norm_backward",
                                  "_fused_rms_norm", "_fused_rms_norm_backward"])
@pytest.mark.parametrize("half", [pb.float16, pb.bfloat16])
def test_mapped_norms_of_half_precision_have_the_dtypes_of_one_example(name, half):
    """Parameters and statistics may be float32 beside it; results are rounded once."""
    op = registry[name]
    ov, wide = overload_of(op), ("weight", "bias", "mean", "rstd")
    for case in samples.cases(op, pb.float32):
        given = [a.to(half) if isinstance(a, pb.Tensor) and n not in wide else a
                 for n, a in zip(ov.schema.names, case.args)]
        tensors = [k for k, a in enumerate(given) if isinstance(a, pb.Tensor)]

        def run(*some, given=given, chosen=()):
            args = dict(enumerate(given)) | dict(zip(chosen, some))
            return tuple(t for t in ov(*args.values()) if t is not None)

        wanted = run()
        for chosen in ([k] for k in tensors), [tensors]:
            for places in chosen:
                seen = pb.vmap(functools.partial(run, chosen=places))(
                    *[pb.stack([given[k]] * 2) for k in places])
                for one, mapped in zip(wanted, seen, strict=True):
                    assert mapped.dtype is one.dtype
                    top = float(one.abs().max()) if one.numel() else 0.0
                    room = 4 * pb.finfo(one.dtype).eps * top
                    assert pb.allclose(mapped[1].double(), one.double(), 1e-6, room + 1e-5)


@pytest.mark.parametrize("dtype", [pb.uint8, pb.int8, pb.int16, pb.int64])
@pytest.mark.parametrize("order", [1, 2])
def test_slopes_over_whole_steps(dtype, order):
    """Products of uint8 would wrap, and differences of them have no sign."""
    x, at = pb.tensor([1.0, 4.0, 3.0, 0.0]), pb.tensor([100, 20, 60, 90])
    (wanted,) = pb.gradient(x, spacing=[at.float()], dim=0, edge_order=order)
    (got,) = pb.gradient(x, spacing=[at.to(dtype)], dim=0, edge_order=order)
    assert pb.allclose(got, wanted)
