"""Quantised layers: gradients, transforms, files in PyTorch's format, and what conversion keeps."""

import copy
import io
from pathlib import Path

import pytest

import pullback as torch
from pullback import nn
from pullback.ao import quantization as tq

DATA = Path(__file__).parents[1] / "data"
pytestmark = pytest.mark.filterwarnings("ignore:Please use quant_min")


def quantised(*layers, **kwargs):
    return tq.quantize_dynamic(nn.Sequential(*layers), {nn.Linear}, dtype=torch.qint8, **kwargs)


def test_dynamic_linear_passes_gradients_through_the_weight_it_stands_for():
    model = quantised(nn.Linear(6, 4))
    x = torch.randn(3, 6, requires_grad=True)
    g = torch.randn(3, 4)
    model(x).backward(g)
    assert torch.allclose(x.grad, g @ model[0].weight().dequantize())
    assert torch.allclose(model[0].bias().grad, g.sum(0))


def test_dynamic_linear_in_forward_mode_second_order_and_vmap():
    model = quantised(nn.Linear(6, 4))
    x, v = torch.randn(3, 6), torch.randn(3, 6)
    weight = model[0].weight().dequantize()
    _, tangent = torch.func.jvp(model, (x,), (v,))
    assert torch.allclose(tangent, v @ weight.t(), atol=1e-6)
    hessian = torch.func.hessian(lambda t: (model(t) ** 2).sum())(x[0])
    assert torch.allclose(hessian, 2 * weight.t() @ weight, atol=1e-5)
    each = torch.func.vmap(model)(x)
    assert torch.equal(each, torch.stack([model(row) for row in x]))  # a scale for every example
    assert torch.equal(torch.func.vmap(model, in_dims=1)(x.t()), each)


def test_dynamic_linear_is_compiled():
    model = quantised(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2))
    compiled = torch.compile(model, fullgraph=True)
    for _ in range(3):
        x = torch.randn(5, 6)
        assert torch.equal(compiled(x), model(x))


def test_weights_are_bytes():
    model = quantised(nn.Linear(1000, 1000, bias=False))
    weight = model[0].weight()
    assert weight.int_repr().dtype is torch.int8 and weight.nbytes == 1000 * 1000
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    assert len(file.getvalue()) < 1.01e6
    assert not list(model.parameters())


def test_the_model_that_is_given_stays():
    model = nn.Sequential(nn.Linear(3, 2))
    quantised_model = tq.quantize_dynamic(model)
    assert type(model[0]) is nn.Linear and not hasattr(model[0], "qconfig")
    assert type(quantised_model[0]) is torch.ao.nn.quantized.dynamic.Linear
    assert not quantised_model.training
    named = tq.quantize_dynamic(nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2)), {"1"})
    assert type(named[0]) is nn.Linear and type(named[1]) is not nn.Linear
    with pytest.raises(ValueError, match="Don't know how to quantize"):
        tq.quantize_dynamic(model, dtype=torch.int8)


def test_files_of_pytorch():
    tensors = torch.load(DATA / "quantized_tensors.pt")
    x = torch.arange(-6, 6).reshape(3, 4) * 0.37
    assert torch.equal(tensors["q"], torch.quantize_per_tensor(x, 0.1, 3, torch.quint8))
    assert tensors["t"].stride() == (1, 4) and tensors["v"].stride() == (4, 1)
    scales, points = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 1, 2])
    assert torch.equal(tensors["c"], torch.quantize_per_channel(x, scales, points, 0, torch.qint8))
    points = torch.tensor([0, 1.5, 2])
    for name, dtype in (("f", torch.quint8), ("f4", torch.quint4x2)):
        ours = torch.quantize_per_channel(x, scales, points, 0, dtype)
        assert torch.equal(tensors[name].dequantize(), ours.dequantize())
        assert tensors[name].qscheme() is torch.per_channel_affine_float_qparams
    file = io.BytesIO()
    torch.save(tensors, file)
    file.seek(0)
    for name, t in torch.load(file).items():
        assert torch.equal(t.dequantize(), tensors[name].dequantize())
        assert t.dtype is tensors[name].dtype and t.stride() == tensors[name].stride()


def test_a_model_of_pytorch():
    held = torch.load(DATA / "quantized_linear.pt")
    plain = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))
    other = quantised(*copy.deepcopy(plain))
    plain.load_state_dict(held["float"])
    model = quantised(*plain)
    assert list(model.state_dict()) == list(held["state"])
    other.load_state_dict(held["state"])
    for m in (model, other):
        assert torch.equal(m(held["input"]), held["output"])


def test_damaged_quantised_tensors_are_refused():
    from pullback.serialization import rebuild

    with pytest.raises(torch.errors.FileFormatError):
        rebuild.quantized(None, 0, (2,), (1,), (torch.per_tensor_affine, 1.0, 0))


def test_static_models_pass_gradients_where_they_are_followed():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.quant, self.dequant = tq.QuantStub(), tq.DeQuantStub()
            self.conv, self.relu = nn.Conv1d(2, 3, 3), nn.ReLU()
            self.linear = nn.Linear(4, 2)

        def forward(self, x):
            return self.dequant(self.linear(self.relu(self.conv(self.quant(x)))))

    torch.manual_seed(1)  # results of the last layer are in the range that was observed
    net = Net().eval()
    net.qconfig = tq.default_qconfig
    ready = tq.prepare(tq.fuse_modules(net, ["conv", "relu"]))
    x = torch.randn(2, 2, 6)
    ready(x)
    done = tq.convert(ready)
    assert torch.allclose(done(x), net(x), atol=0.1)
    assert not done(x).requires_grad
    leaf = x.clone().requires_grad_()
    done(leaf).sum().backward()
    # where the quantised layers are, with the weights that their integers stand for
    other = done.quant(x).dequantize().requires_grad_()
    conv = nn.functional.conv1d(other, done.conv.weight().dequantize(), done.conv.bias())
    (conv.relu() @ done.linear.weight().dequantize().t()).sum().backward()
    assert torch.allclose(leaf.grad, other.grad, atol=1e-5)


def test_training_with_rounding_finds_gradients():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(),
                          nn.Linear(8, 3))
    model.qconfig = tq.get_default_qat_qconfig("x86")
    ready = tq.prepare_qat(tq.fuse_modules_qat(model.train(), ["0", "1", "2"]))
    loss = ready(torch.randn(4, 1, 4, 4)).square().mean()
    loss.backward()
    assert all(p.grad is not None for p in ready.parameters())
    plain = ready[0].to_float()
    assert type(plain).__name__ == "ConvReLU2d"
    tq.convert(ready.eval())


def test_names_of_older_programs():
    import pullback.quantization as old
    from pullback.nn.quantized import FloatFunctional

    assert old.quantize_dynamic is tq.quantize_dynamic
    assert FloatFunctional is torch.ao.nn.quantized.FloatFunctional
    assert torch.backends.quantized.engine == "x86"
