"""The inventory of quantised tensors, vendors' names and what belongs to them: how each row is run.

`PROGRAMS` has a dictionary for each group of `tests/data/sparse_nested.tsv`, from the entries of
the group to their programs (`programs.py`).
"""

import io
import json
from pathlib import Path

import pullback as torch
from pullback import nn
from pullback.ao import quantization as tq
from pullback.aot import aot_module
from pullback.decomp import get_decompositions
from pullback.graph.make_fx import make_fx
from pullback.testing.two_tensor import TwoTensor
from tests.helpers.quantized import aten_programs, namespace_programs, vendor_programs
from tests.helpers.quantized.models import draw
from tests.helpers.quantized.programs import Dense, Tests, check
from tests.helpers.wrapper_programs import programs as wrapper_programs

aten, F = torch.ops.aten, nn.functional
DATA = Path(__file__).parents[2] / "data" / "quantized.json"

# ---------------------------------------------------------------------------------------------
# Fake quantisation: rounded numbers, with the derivative of what was not


def straight(x, level, low, high, scale, zero):
    """The definition: levels cut off, times the scale; the slope is 1 inside and 0 outside."""
    inside = (level >= low) & (level <= high)
    out = (level.clamp(low, high) - zero) * scale
    return out.detach() + (x - x.detach()) * inside, inside


def one_grid(x):
    return straight(x, (x * (1 / torch.tensor(0.1))).round() + 3, -5, 10, 0.1, 3)


def each_grid(x, zero=(0, 1)):
    scale, zero = torch.tensor([0.1, 0.25])[:, None], torch.tensor(zero)[:, None]
    return straight(x, (x * (1 / scale)).round() + zero, -5, 10, scale, zero)


def learnt(call):
    """A grid that is learnt: slopes of scale and zero point times a factor; the second derivative
    is that of these slopes."""
    def wanted(x, scale, zero, axis):
        shaped, z = scale, zero.round()
        if axis is not None:
            shaped, z = shaped[:, None], z[:, None]
        level = (x / shaped + z).round()
        below, above = level < -5, level > 10
        inside = ~(below | above)
        by_scale = torch.where(below, -5 - z, torch.where(above, 10 - z, (level - z) - x / shaped))
        by_zero = torch.where(inside, 0.0, -shaped)
        out = ((level.clamp(-5, 10) - z) * shaped).detach()
        free = scale if axis is None else scale[:, None]
        point = zero if axis is None else zero[:, None]
        return (out + (x - x.detach()) * inside.detach()
                + (free - free.detach()) * by_scale.detach() * 0.5
                + (point - point.detach()) * by_zero.detach() * 0.5)

    def inputs():
        return [draw(torch, 1, 2, 6)] + (
            [torch.tensor([0.1, 0.25]), torch.tensor([0.0, 1.0])] if call is by_channel else
            [torch.tensor([0.1]), torch.tensor([3.0])])

    axis = 0 if call is by_channel else None
    first = Dense(call, lambda *a: wanted(*a, axis), inputs)

    def second():
        """By finite differences of the gradient of the scale."""
        x, scale, zero = inputs()
        weight = torch.linspace(0.5, 1.5, 12).reshape(2, 6)

        def slope(s):
            s = s if s.requires_grad else s.requires_grad_()
            out = (call(x, s, zero) * weight).sum()
            return torch.autograd.grad(out, s, create_graph=True)[0]

        found, = torch.autograd.grad(slope(scale).sum(), scale)
        step = 1e-3 * scale.detach()
        wanted = (slope(scale.detach() + step) - slope(scale.detach() - step)) / (2 * step)
        assert torch.allclose(found, wanted.detach(), rtol=0.05, atol=0.5)

    return check(forward=first.forward, backward=first.backward, second=second, jvp=first.jvp,
                 vmap=first.vmap, compile=first.compile)


def by_tensor(x, scale, zero):
    return torch._fake_quantize_learnable_per_tensor_affine(x, scale, zero, -5, 10, 0.5)


def by_channel(x, scale, zero):
    return torch._fake_quantize_learnable_per_channel_affine(x, scale, zero, 0, -5, 10, 0.5)


def moving(x):
    """Observed and rounded: its grid reaches from the lowest to the highest number."""
    like = x.detach().amin().reshape(1) * 0
    on = torch.ones(1, dtype=torch.int64)
    state = [like, like * 1, like + 1, like.to(torch.int32)]
    return tuple(torch._fused_moving_avg_obs_fq_helper(x, on, on, *state, 1.0, 0, 255, 0))


def moving_wanted(x):
    low, high = x.detach().amin().clamp(max=0), x.detach().amax().clamp(min=0)
    scale = (high - low) / 255
    zero = (-(low / scale)).round()
    return straight(x, (x * (1 / scale)).round() + zero, 0, 255, scale, zero)


def rounding(call, wanted):
    return Dense(call, wanted, lambda: [draw(torch, 1, 2, 6)])


ON, SWITCH = torch.tensor([0.1]), torch.tensor([1])
FAKE = {
    "fake_quantize_per_tensor_affine_cachemask": rounding(
        lambda x: aten.fake_quantize_per_tensor_affine_cachemask(x, 0.1, 3, -5, 10), one_grid),
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams": rounding(
        lambda x: aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
            x, ON, torch.tensor([3]), SWITCH, -5, 10), one_grid),
    "fake_quantize_per_channel_affine_cachemask": rounding(
        lambda x: aten.fake_quantize_per_channel_affine_cachemask(
            x, torch.tensor([0.1, 0.25]), torch.tensor([0, 1], dtype=torch.int32), 0, -5, 10),
        each_grid),
    "_fused_moving_avg_obs_fq_helper": rounding(moving, moving_wanted),
    "_fake_quantize_learnable_per_tensor_affine": learnt(by_tensor),
    "_fake_quantize_learnable_per_channel_affine": learnt(by_channel),
}

# ---------------------------------------------------------------------------------------------
# Decompositions


def norm(training):
    x, w = draw(torch, 0, 4, 3, 5), draw(torch, 1, 3)

    def program(x, w, mean, var):
        return aten.cudnn_batch_norm(x, w, None, mean, var, training, 0.1, 1e-5)

    given = lambda: (x, w, torch.zeros(3), torch.ones(3))
    traced = make_fx(program, decomposition_table=get_decompositions([aten.cudnn_batch_norm]))(
        *given())
    names = [str(n.target) for n in traced.graph.nodes]
    assert any("native_batch_norm" in n for n in names) and not any("cudnn" in n for n in names)
    state = given()
    out = traced(*state)
    assert torch.allclose(out[0], F.batch_norm(*[given()[k] for k in (0, 2, 3, 1)], None, training))
    assert out[3].dtype is torch.uint8 and out[3].numel() == 0
    assert [len(o) for o in out[1:3]] == [3 * training] * 2
    assert bool(state[2].any()) is training  # the running statistics are written in training


def norm_backward(name):
    x, g, w, mean, scale = (draw(torch, k, *s) for k, s in enumerate(
        [(4, 3, 5), (4, 3, 5), (3,), (3,), (3,)]))
    reserve = (torch.zeros(0, dtype=torch.uint8),) if "cudnn" in name else ()

    def look():
        op = getattr(aten, name)
        program = lambda x, g, w: op(x, g, w, None, None, mean, scale.abs(), 1e-5, *reserve)
        traced = make_fx(program, decomposition_table=get_decompositions([op]))(x, g, w)
        assert any(n.target is aten.native_batch_norm_backward.default for n in traced.graph.nodes)
        wanted = aten.native_batch_norm_backward(g, x, w, None, None, mean, scale.abs(), True, 1e-5,
                                                 [True] * 3)
        assert all(torch.allclose(a, b) for a, b in zip(traced(x, g, w), wanted))

    return check(forward=look)


def reserve_size():
    assert torch._C._get_cudnn_batch_norm_reserve_space_size(torch.ones(2, 3), True) == 0


def slice_of_integers():
    """More than a refusal: the slice is that of the integers, also where it is traced."""
    q = torch.quantize_per_tensor(draw(torch, 0, 4, 3), 0.1, 3, torch.quint8)
    made = torch.compile(lambda t: t[1:3].dequantize(), backend="aot_eager", fullgraph=True)
    assert torch.equal(made(q), q.dequantize()[1:3])
    assert torch.equal(aten.slice(q, 0, 1, 3), q[1:3])


def norm_of_nested():
    parts = [draw(torch, k, n, 3) for k, n in enumerate((2, 4))]
    w, b = draw(torch, 5, 3), draw(torch, 6, 3)
    for layout in (torch.jagged, torch.strided):
        out = F.layer_norm(torch.nested.nested_tensor(parts, layout=layout), [3], w, b)
        assert all(torch.allclose(a, F.layer_norm(p, [3], w, b), atol=1e-6)
                   for a, p in zip(out.unbind(), parts))


DECOMPOSED = {
    "cudnn_batch_norm": check(forward=lambda: (norm(True), norm(False))),
    "cudnn_batch_norm_backward": norm_backward("cudnn_batch_norm_backward"),
    "miopen_batch_norm_backward": norm_backward("miopen_batch_norm_backward"),
    "batch norm reserve size": check(forward=reserve_size),
    "slice of a quantised tensor": check(forward=slice_of_integers),
    "layer norm with nested input": check(forward=norm_of_nested),
}

# ---------------------------------------------------------------------------------------------
# Ahead of time

AT, OFFSETS = torch.tensor([1, 2, 2, 0]), torch.tensor([0, 2])


def bag(make):
    """The gradient of a table keeps its layout, whoever captures the forward."""
    torch.manual_seed(0)
    module = nn.EmbeddingBag(5, 3, sparse=True, mode="sum")
    out = make(module)(AT, OFFSETS)
    assert torch.equal(out, F.embedding_bag(AT, module.weight, OFFSETS, mode="sum"))
    out.sin().sum().backward()
    table = module.weight.detach().requires_grad_()
    F.embedding_bag(AT, table, OFFSETS, mode="sum").sin().sum().backward()
    assert module.weight.grad.layout is torch.sparse_coo
    assert torch.allclose(module.weight.grad.to_dense(), table.grad)


def ahead(module):
    return aot_module(module, fw_compiler=lambda graph, inputs: graph)


def compiled(module):
    return torch.compile(module, backend="aot_eager", fullgraph=True)


def wrapped():
    """`tests/capture/test_subclasses.py` runs these programs: captured, with their gradients."""
    assert {"nested_wrapper", "nested_and_others"} <= {*wrapper_programs(torch, TwoTensor)}


TOGETHER = "capture/test_subclasses.py::test_results_are_those_of_eager"
AHEAD = {
    "EmbeddingBag(sparse=True) under AOT": check(
        forward=lambda: bag(ahead), backward=lambda: bag(ahead), compile=lambda: bag(compiled)),
    "wrapper subclasses inside wrapper subclasses": check(
        **{kind: lambda: (wrapped(), Tests({"forward": TOGETHER}).run("forward"))
           for kind in ("forward", "backward", "compile")}),
}

# ---------------------------------------------------------------------------------------------
# Modules: `models.py` has their numbers in PyTorch, which `test_recorded.py` compares

RECORDED = "quantized/test_recorded.py::test_models"


def recorded(*names):
    """Models of `models.py`."""
    from tests.helpers.quantized import models

    known = {m.__name__ for m in models.MODELS}
    assert {*names} <= known and {f"model {n}" for n in names} <= {*json.loads(DATA.read_text())}
    Tests({"forward": RECORDED}).run("forward")


def of_input(*layers, dtype=torch.qint8, states=False):
    """A layer that was quantised dynamically gives its input the gradient of what it stands for."""
    def look():
        for layer in layers:
            made = layer()
            model = tq.quantize_dynamic(nn.Sequential(made), {type(made)}, dtype=dtype)[0]
            x = draw(torch, 1, 3, 2, 4).requires_grad_()
            out = model(x)[0] if states else model(x)
            out.sum().backward()
            plain = type(made).__name__, [n for n, _ in made.named_parameters()]
            other = x.detach().requires_grad_()
            out = made(other)[0] if states else made(other)
            out.sum().backward()
            assert torch.allclose(x.grad, other.grad, atol=0.1), plain

    return look


def static(*layers):
    """A calibrated layer has the numbers of the plain one but for rounding, and its gradients."""
    def both():
        for layer, shape in layers:
            plain = nn.Sequential(tq.QuantStub(), layer(), tq.DeQuantStub()).eval()
            plain.qconfig = tq.default_qconfig
            x = draw(torch, 1, *shape)
            ready = tq.prepare(plain)
            ready(x)
            yield plain, tq.convert(ready), x

    def forward():
        for plain, made, x in both():
            assert "Quantized" in repr(made[1]) and not list(made.parameters())
            assert torch.allclose(made(x), plain(x), atol=0.15)

    def backward():
        for plain, made, x in both():
            leaf, other = x.clone().requires_grad_(), x.clone().requires_grad_()
            made(leaf).sum().backward()
            plain(other).sum().backward()
            assert torch.allclose(leaf.grad, other.grad, atol=0.1)

    return check(forward=forward, backward=backward)


def observers_hold_their_state():
    recorded("observers", "histograms", "fake")
    for make in (tq.MinMaxObserver, tq.PerChannelMinMaxObserver, tq.HistogramObserver,
                 tq.default_fake_quant, tq.default_fused_per_channel_wt_fake_quant):
        seen, fresh = make(), make()
        seen(draw(torch, 0, 3, 40))
        fresh.load_state_dict(seen.state_dict())
        for a, b in zip(seen.calculate_qparams(), fresh.calculate_qparams()):
            assert torch.equal(a, b)


def rounded_in_training():
    x = draw(torch, 0, 3, 40).requires_grad_()
    module = tq.default_fake_quant()
    module(x).sum().backward()
    assert torch.equal(x.grad, torch.ones(3, 40))


def marks():
    model = tq.QuantWrapper(nn.Linear(4, 3)).eval()
    model.qconfig = tq.default_qconfig
    x = draw(torch, 0, 5, 4)
    ready = tq.prepare(model)
    assert torch.equal(ready(x), model(x))
    made = tq.convert(ready)
    assert [type(m).__name__ for m in made.children()] == ["Quantize", "DeQuantize", "Linear"]
    assert torch.allclose(made(x), model(x), atol=0.1)


def fused():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU())
    model(torch.randn(4, 2, 5, 5))
    made = tq.fuse_modules(model.eval(), ["0", "1", "2"])
    assert type(made[0]).__name__ == "ConvReLU2d" and type(made[1]) is type(made[2]) is nn.Identity
    x, y = (draw(torch, 1, 2, 2, 5, 5).requires_grad_() for _ in range(2))
    assert torch.allclose(made(x), model(y), atol=1e-5)
    made(x).sum().backward()
    model(y).sum().backward()
    assert torch.allclose(x.grad, y.grad, atol=1e-5)


def files():
    """A state is that of a file, which nothing is run of."""
    model = nn.Sequential(tq.QuantStub(), nn.Conv1d(2, 3, 3), nn.ReLU(), nn.Linear(4, 2),
                          tq.DeQuantStub()).eval()
    model.qconfig = tq.get_default_qconfig("x86")
    x, ready, twin = draw(torch, 0, 2, 2, 6), tq.prepare(model), tq.prepare(model)
    ready(x)
    twin(x * 2)
    made, other = tq.convert(ready), tq.convert(twin)
    assert not torch.equal(other(x), made(x))
    for make in (lambda: made.state_dict(), lambda: made):
        file = io.BytesIO()
        torch.save(make(), file)
        file.seek(0)
        found = torch.load(file, weights_only=make() is not made)
        if isinstance(found, nn.Module):
            other = found
        else:
            other.load_state_dict(found)
        assert torch.equal(other(x), made(x))


def of_files():
    """What was loaded passes gradients as before."""
    model = tq.quantize_dynamic(nn.Sequential(nn.Linear(4, 3)))
    other = tq.quantize_dynamic(nn.Sequential(nn.Linear(4, 3)))
    other.load_state_dict(model.state_dict())
    grads = []
    for m in (model, other):
        x = draw(torch, 0, 2, 4).requires_grad_()
        m(x).sum().backward()
        grads.append(x.grad)
    assert torch.equal(*grads)


LAYERS = "quantized/test_layers.py::"
MODULES = {
    "ao.quantization.quantize_dynamic (Linear, LSTM, GRU, Embedding)": check(
        forward=lambda: recorded("linear", "recurrent", "cells", "embeddings"),
        backward=of_input(lambda: nn.LSTM(4, 3), lambda: nn.GRU(4, 3), states=True)),
    "ao.quantization.prepare / convert (eager)": check(
        forward=lambda: recorded("static", "layers"),
        backward=lambda: Tests({"backward": LAYERS + "test_static_models_pass_gradients_where_they_"
                                "are_followed"}).run("backward")),
    "ao.quantization observers and qconfigs": check(
        forward=observers_hold_their_state, backward=rounded_in_training),
    "ao.nn.quantized.dynamic.Linear": check(
        forward=lambda: recorded("linear"), backward=of_input(lambda: nn.Linear(4, 3))),
    "ao.nn.quantized.Linear": static((lambda: nn.Linear(4, 3), (5, 4))),
    "ao.nn.quantized.Conv1d Conv2d Conv3d": static(
        (lambda: nn.Conv1d(2, 3, 3), (2, 2, 6)),
        (lambda: nn.Conv2d(2, 4, 3, groups=2), (2, 2, 5, 6)),
        (lambda: nn.Conv3d(2, 3, 2, stride=2), (1, 2, 4, 4, 4))),
    "ao.quantization.QuantStub DeQuantStub QuantWrapper": check(
        forward=marks, backward=static((lambda: nn.ReLU(), (3, 4))).checks["backward"]),
    "ao.quantization.prepare_qat": check(
        forward=lambda: recorded("trained"),
        backward=lambda: Tests({"backward": LAYERS + "test_training_with_rounding_finds_gradients"}
                               ).run("backward")),
    "ao.quantization.fuse_modules": check(forward=fused, backward=fused),
    "load and save of quantised state dicts": check(forward=files, backward=of_files),
}

PROGRAMS = {
    "quantised operator": {f"quantised {name}": program for name, program in
                           aten_programs.PROGRAMS.items()} | namespace_programs.PROGRAMS,
    "quantised module": MODULES,
    "opaque layout": {name: program for name, program in vendor_programs.PROGRAMS.items()
                      if name.startswith("mkldnn layout ")},
    "table: vendor": vendor_programs.VENDOR,
    "table: fake quantisation (present)": FAKE,
    "decomposition": DECOMPOSED,
    "ahead-of-time behaviour": AHEAD,
}
