"""What programs do with quantised tensors and layers beside computing: names, errors, files."""

import copy
from pathlib import Path

import pytest

import pullback as torch
from pullback import errors, nn
from pullback.ao import quantization as tq
from tests.helpers.quantized.models import draw

DATA, Q = Path(__file__).parents[1] / "data", torch.ops.quantized


def made(*shape, scale=0.1, zero=3, dtype=torch.quint8):
    return torch.quantize_per_tensor(draw(torch, 0, *shape), scale, zero, dtype)


def weight(*shape):
    return torch.quantize_per_tensor(draw(torch, 1, *shape), 0.02, 0, torch.qint8)


X = draw(torch, 0, 3, 4)
WRONG = {  # what a program says -> (class, a part of the message)
    "a scale is a positive number, got 0.0": lambda: torch.quantize_per_tensor(
        X, 0.0, 0, torch.quint8),
    "a scale is a positive number, got nan": lambda: torch.quantize_per_tensor(
        X, float("nan"), 0, torch.quint8),
    "a scale is a positive number, got -0.5": lambda: torch.quantize_per_channel(
        X, torch.tensor([0.1, 0.2, -0.5]), torch.zeros(3).long(), 0, torch.quint8),
    "zero_point 256 is above upper bound": lambda: torch.quantize_per_tensor(
        X, 0.1, 256, torch.quint8),
    "zero_point -129 is below lower bound": lambda: torch.quantize_per_channel(
        X, torch.ones(3), torch.tensor([0, -129, 0]), 0, torch.qint8),
    "number of elements in scales and zero_points must match": lambda: torch.quantize_per_channel(
        X, torch.ones(3), torch.zeros(2), 0, torch.qint8),
    "Quantize only works on Float Tensor, got Double": lambda: torch.quantize_per_tensor(
        X.double(), 0.1, 0, torch.qint8),
    "missing 1 required argument: 'dtype'": lambda: torch.quantize_per_tensor(X, 0.1, 0),
    "ScalarType Float is not supported": lambda: torch.quantize_per_tensor(
        X, 0.1, 0, torch.float32),
    "quantized::add: Add operands should have same data type": lambda: Q.add(
        made(3), made(3, dtype=torch.qint8), 0.1, 0),
    "quantized::mul: expected a tensor that is quantised": lambda: Q.mul(X, X, 0.1, 0),
    "quantized::mul: a scale is a positive number": lambda: Q.mul(made(3), made(3), 0.0, 0),
    r"quantized::add\(\) is missing value for argument 'scale'": lambda: Q.add(made(3), made(3)),
    "quantized::sigmoid zero_point 300": lambda: Q.sigmoid(made(3), 0.1, 300),
    "the input has 5 columns, the weight takes 4": lambda: Q.linear(
        made(3, 5), Q.linear_prepack(weight(2, 4), None), 0.1, 0),
    "quantized::linear: expected a packed weight, got QuantizedTensor": lambda: Q.linear(
        made(3, 4), weight(2, 4), 0.1, 0),
    "takes inputs with 4 dims, or one less, of 2 channels": lambda: Q.conv2d(
        made(1, 3, 5, 5), Q.conv2d_prepack(weight(4, 2, 2, 2), None, [1] * 2, [0] * 2, [1] * 2, 1),
        0.1, 0),
    "the weight must be quantised to qint8": lambda: Q.linear_prepack(made(2, 4), None),
    "expected scalar type Float but found Double": lambda: Q.linear_dynamic(
        X.double(), Q.linear_prepack(weight(2, 4), None)),
    "resize_: Can only resize": lambda: torch.quantize_per_channel(
        X, torch.ones(3), torch.zeros(3), 0, torch.qint8).resize_(2, 2),
    "share bytes": lambda: torch.empty(2, dtype=torch.quint4x2),
    "has no overload name 'Nothing'": lambda: Q.add.Nothing,
}


@pytest.mark.parametrize("said", WRONG)
def test_what_is_wrong_is_said(said):
    with pytest.raises((errors.PullbackError, AttributeError), match=said) as caught:
        WRONG[said]()
    if isinstance(caught.value, errors.PullbackError):
        assert Path(__file__).name in str(caught.value)  # the user's line


def test_overloads_have_names():
    q = made(3, 4)
    assert "Scalar" in Q.add.overloads() and "default" in Q.add.overloads()
    assert torch.equal(Q.add.Scalar(q, 0.5), Q.add(0.5, q))
    assert copy.deepcopy(Q.mul.out) is Q.mul.out and "mul.out" in repr(Q.mul.out)
    assert "add" in dir(Q) and not any("." in name for name in dir(Q))
    packed = Q.conv2d_prepack(weight(2, 4, 2, 2), None, [1, 1], [0, 0], [1, 1], 1)
    image = made(1, 4, 3, 3)
    of_old = Q.conv2d(image, packed, [1, 1], [0, 0], [1, 1], 1, 0.2, 60)
    assert torch.equal(Q.conv2d.new(image, packed, 0.2, 60), of_old)
    assert torch.equal(Q.conv2d(image, packed, output_scale=0.2, output_zero_point=60), of_old)


def test_convolutions_that_round_their_input_by_themselves():
    x = draw(torch, 0, 1, 4, 5, 5).requires_grad_()
    packed = Q.conv2d_prepack(weight(2, 4, 2, 2), draw(torch, 2, 2), [1, 1], [0, 0], [1, 1], 1)
    out = Q.conv2d_dynamic(x, packed, True)
    wanted = nn.functional.conv2d(x, weight(2, 4, 2, 2).dequantize(), draw(torch, 2, 2))
    assert torch.allclose(out, wanted, atol=0.1)
    assert torch.allclose(*[torch.autograd.grad(o.sum(), x)[0] for o in (out, wanted)])


def test_what_is_made_like_a_quantised_tensor():
    q = made(3, 4)
    zeros = torch.zeros_like(q)
    assert zeros.dequantize().abs().sum() == 0 and zeros.q_scale() == 0.1
    assert torch.zeros_like(q, dtype=torch.float32).dtype is torch.float32
    assert torch.empty_like(q, dtype=torch.float64).dtype is torch.float64
    assert torch.empty_like(X, dtype=torch.qint8).is_quantized
    assert q.mean(1, dtype=torch.float32).dtype is torch.float32
    assert torch.equal(q.view(torch.uint8), q.int_repr()) and q.view(torch.quint8) is q
    with pytest.raises(errors.RefusedValue, match="Creation of quantized tensor"):
        torch.zeros(2, dtype=torch.quint8)


def test_modules_hold_quantised_parameters():
    module = nn.Module()
    module.weight = nn.Parameter(made(2, 2), requires_grad=False)
    assert repr(module.weight).startswith("Parameter containing:\ntensor([[")
    module.to("cpu").double()
    assert module.weight.dtype is torch.quint8
    other = copy.deepcopy(module)
    other.load_state_dict({"weight": made(2, 2, scale=0.3)})
    assert other.weight.q_scale() == 0.3 and module.weight.q_scale() == 0.1
    other.weight.data = made(2, 2, scale=0.4)
    assert isinstance(other.weight, nn.Parameter) and other.weight.q_scale() == 0.4


def test_other_modes_of_quantisation_say_what_to_use():
    with pytest.raises(errors.NotInThisBuild, match="prepare_fx"):
        tq.get_block_size(None, None)
    with pytest.raises(errors.NotInThisBuild, match="TorchScript"):
        tq.prepare_jit(None)
    assert not hasattr(tq, "quantize_pt2e")  # PyTorch has it no longer


def test_configurations_by_class_and_name():
    mapping = tq.get_default_qconfig_mapping("x86").set_module_name("fc", None)
    mapping.set_module_name_object_type_order("a", nn.Linear, 0, tq.default_qconfig)
    mapping.set_module_name_regex("b.*", tq.float16_dynamic_qconfig)
    again = tq.QConfigMapping.from_dict(mapping.to_dict())
    assert repr(again) == repr(mapping) and "object_type_qconfigs" in repr(mapping)
    assert mapping.of("fc", nn.Linear) is None
    assert mapping.of("b1", nn.Linear) is tq.float16_dynamic_qconfig
    assert mapping.of("c", nn.Linear) is mapping.global_qconfig
    observer = mapping.of("c", nn.Sigmoid).activation()
    assert [float(p) for p in observer.calculate_qparams()] == [1 / 256, 0]
    trained = tq.get_default_qat_qconfig_mapping("x86").of("c", nn.ConvTranspose1d)
    assert trained.weight().qscheme is torch.per_tensor_symmetric


class Attention(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.quants = nn.ModuleList([tq.QuantStub() for _ in range(3)])
        self.layer, self.dequant = nn.MultiheadAttention(8, 2, **options), tq.DeQuantStub()

    def forward(self, *xs, **masks):
        out, weights = self.layer(*[q(x) for q, x in zip(self.quants, xs)], **masks)
        return self.dequant(out), self.dequant(weights)


@pytest.mark.filterwarnings("ignore:must run observer")  # products with numbers need none
@pytest.mark.parametrize("options", [
    {"batch_first": True}, {"add_bias_kv": True}, {"add_zero_attn": True}, {"kdim": 3, "vdim": 5},
    {"bias": False}])
def test_attention_that_is_written_out_is_attention(options):
    torch.manual_seed(0)
    model = Attention(**options).eval()
    model.qconfig = tq.default_qconfig
    xs = [torch.randn(4, 4, n) for n in (8, options.get("kdim", 8), options.get("vdim", 8))]
    padding = torch.tensor([[False] * n + [True] * (4 - n) for n in (4, 2, 1, 3)])
    for masks in ({}, {"key_padding_mask": padding}, {"attn_mask": torch.ones(4, 4).triu(1).bool()},
                  {"attn_mask": torch.randn(4, 4), "average_attn_weights": False}):
        wanted, ready = model(*xs, **masks), tq.prepare(model)
        for a, b in zip(ready(*xs, **masks), wanted):
            assert torch.allclose(a, b, atol=1e-6)
        done = tq.convert(ready)
        for a, b in zip(done(*xs, **masks), wanted):
            assert torch.allclose(a, b, atol=0.1)
        plain = done.layer.dequantize().eval()
        assert torch.allclose(plain(*xs, **masks)[0], wanted[0], atol=0.1)
    hidden = {"attn_mask": torch.ones(4, 4).triu(1).bool()}
    assert torch.equal(*[ready(*xs, **masks)[0] for masks in ({"is_causal": True}, hidden)])
    with pytest.raises(NotImplementedError, match="must be prepared first"):
        torch.ao.nn.quantized.MultiheadAttention.from_float(model.layer)


@pytest.mark.parametrize("split", [False, True])
def test_recurrent_layers_that_are_written_out(split):
    torch.manual_seed(0)
    layer = nn.LSTM(4, 3, 2, bidirectional=True).eval()
    layer.qconfig = tq.default_qconfig
    made = torch.ao.nn.quantizable.LSTM.from_float(layer, split_gates=split)
    x = torch.randn(5, 2, 4)
    state = (torch.randn(4, 2, 3), torch.randn(4, 2, 3))
    for given in ((x,), (x, state)):
        (a, more), (b, wanted) = made(*given), layer(*given)
        for ours, theirs in zip((a, *more), (b, *wanted)):
            assert torch.allclose(ours, theirs, atol=1e-6)
    cell = nn.LSTMCell(4, 3)
    cell.qconfig = tq.default_qconfig
    written = torch.ao.nn.quantizable.LSTMCell.from_float(cell, split_gates=split)
    for ours, theirs in zip(written(x[0]), cell(x[0])):
        assert torch.allclose(ours, theirs, atol=1e-6)
    with pytest.raises(ValueError, match="projections"):
        projected = nn.LSTM(4, 3, proj_size=2)
        projected.qconfig = tq.default_qconfig
        torch.ao.nn.quantizable.LSTM.from_float(projected)


@pytest.mark.parametrize("name", ["static", "linear", "half", "embedding", "lstm"])
def test_whole_models_of_pytorch(name):
    held = torch.load(DATA / "quantized_models.pt", weights_only=False)[name]
    out, wanted = held["model"](held["input"]), held["output"]
    for a, b in zip(*[o if isinstance(o, tuple) else (o,) for o in (out, wanted)]):
        a, b = (t if isinstance(t, tuple) else (t,) for t in (a, b))
        assert all(torch.allclose(x, y, atol=1e-6) for x, y in zip(a, b))
    copied = copy.deepcopy(held["model"])
    assert type(copied) is type(held["model"])


def test_other_objects_of_torchscript_are_refused():
    with pytest.raises(errors.FileFormatError, match="state_dict"):
        torch.ScriptObject().__setstate__(((), "__torch__.torch.classes.rnn.Unknown"))
    with pytest.raises(errors.UnsafePickle):
        torch.load(DATA / "quantized_models.pt")


def test_ranges_of_few_bits():
    """The range in which less is lost than in that of all numbers."""
    row = torch.cat([draw(torch, 0, 60), torch.tensor([9.0])])
    high, low = torch.choose_qparams_optimized(row, 61, 200, 0.16, 2)

    def lost(a, b):
        level = ((row - a) / (b - a) * 3).round().clamp(0, 3)
        return ((level * (b - a) / 3 + a - row) ** 2).sum()

    assert row.min() <= low < high <= row.max()
    assert lost(low, high) <= lost(row.min(), row.max())
