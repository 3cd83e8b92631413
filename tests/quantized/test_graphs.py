"""Graph mode of quantisation: what PyTorch made of the same models, and how programs use it."""

import copy
import json
import pickle
import re

import numpy as np
import pytest

import pullback as torch
from pullback import errors, nn
from pullback.ao import quantization as tq
from pullback.ao.nn.intrinsic import ConvReLU2d, LinearReLU
from pullback.ao.nn.quantized import reference
from pullback.ao.quantization import quantize_fx as fx
from pullback.nn import functional as F
from tests.helpers.quantized import graph_models as cases

pytestmark = pytest.mark.filterwarnings("ignore:Please use quant_min")
RECORDED = json.loads(cases.DATA.read_text())


@pytest.mark.parametrize(("name", "mapping"), cases.CASES)
def test_against_pytorch(name, mapping):
    want = RECORDED[f"{name} {mapping}"]
    got = (cases.trained(torch, name) if mapping == "trained" else
           cases.calibrated(torch, name, mapping))
    if (name, mapping) not in ONE_MORE:
        assert unnumbered(got["prepared"]) == unnumbered(want["prepared"])
    for what in ("observed", "results", "reference"):
        if (name, mapping, what) in OTHERWISE:
            continue
        for ours, theirs in zip(got[what], want[what], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6, err_msg=what)


def unnumbered(text):
    """The calls of a graph without the numbers of observers, which are made in another order."""
    return re.sub(r"(post_process)_[0-9]+", r"\1", text)


# PyTorch observes what goes into recurrent layers, whose observers nobody asks
ONE_MORE = {("Recurrent", "dynamic")}
# PyTorch's reference of recurrent layers rounds their weights, ours leaves the layers alone; a
# number in the middle between two integers goes either way
OTHERWISE = {("Recurrent", "dynamic", "reference"), ("Functions", "trained", "reference")}


X = torch.linspace(-1, 1, 12).reshape(3, 4)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.relu = nn.Linear(4, 4), nn.Linear(4, 2), nn.ReLU()
        self.note = "kept"

    def forward(self, x):
        return self.b(self.relu(self.a(x)) + x)


def net():
    torch.manual_seed(0)
    return Net().eval()


def observed(model, mapping=None, inputs=(X,), **options):
    prepared = fx.prepare_fx(model, mapping or tq.get_default_qconfig_mapping(), inputs, **options)
    prepared(*inputs)
    return prepared


def integers(model):
    """The names of layers that compute with integers."""
    return {n for n, m in model.named_modules()
            if type(m).__module__.startswith("pullback.ao.nn") and "." not in n}


def test_results_are_those_of_the_model():
    model = net()
    prepared = observed(model)
    converted, want = fx.convert_fx(prepared), model(X)
    assert (converted(X) - want).abs().max() < 0.05
    assert (fx.convert_to_reference_fx(prepared)(X) - converted(X)).abs().max() < 0.02
    assert integers(converted) == {"a", "b"} and not integers(model)
    assert "torch.ops.quantized.add(" in converted.code
    assert not any("activation_post_process" in n for n, _ in converted.named_modules())
    assert all(not p.requires_grad for p in converted.parameters())
    assert all(p.requires_grad for p in model.parameters())


def test_copies_pickles_and_states():
    prepared = observed(net())
    converted = fx.convert_fx(prepared)
    want = converted(X)
    for other in (copy.deepcopy(converted), pickle.loads(pickle.dumps(converted)),
                  fx.convert_fx(copy.deepcopy(prepared)),
                  fx.convert_fx(pickle.loads(pickle.dumps(prepared)))):
        assert torch.equal(other(X), want)
    other = fx.convert_fx(observed(Net().eval()))
    other.load_state_dict(converted.state_dict())
    assert torch.equal(other(X), want)


def test_converted_models_compile():
    converted = fx.convert_fx(observed(net()))
    assert torch.equal(torch.compile(converted)(X), converted(X))
    assert torch.equal(torch.compile(converted)(X[:2]), converted(X[:2]))
    table = nn.Sequential(nn.Embedding(5, 4)).eval()
    mapping = tq.QConfigMapping().set_global(tq.float_qparams_weight_only_qconfig)
    rows = torch.tensor([0, 3])
    converted = fx.convert_fx(observed(table, mapping, (rows,)))
    assert torch.equal(torch.compile(converted)(rows), converted(rows))
    assert (converted(rows) - table(rows)).abs().max() < 0.02


def test_fusion():
    model = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(),
                          nn.Linear(8, 3), nn.ReLU()).eval()
    x = torch.randn(2, 1, 2, 2)
    fused = fx.fuse_fx(model)
    assert torch.allclose(fused(x), model(x), atol=1e-6)
    kinds = [type(m) for m in fused.modules()]
    assert ConvReLU2d in kinds and LinearReLU in kinds and nn.BatchNorm2d not in kinds
    for call in (lambda: fx.fuse_fx(model.train()),
                 lambda: fx.prepare_fx(model.train(), tq.QConfigMapping(), (x,))):
        with pytest.raises(AssertionError, match="Fusion only for eval"):
            call()


def test_a_layer_that_is_called_twice_has_a_scale_for_each_call():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(4, 4)

        def forward(self, x):
            return self.l(torch.tanh(self.l(x)) * 3.0)

    torch.manual_seed(0)
    model = Twice().eval()
    converted = fx.convert_fx(observed(model))
    scales = {m.scale for m in converted.modules() if hasattr(m, "scale")}
    assert len(scales) == 2
    assert (converted(X) - model(X)).abs().max() < 0.05


CONFIG = tq.default_qconfig
CHOSEN = {
    "all": (tq.QConfigMapping().set_global(CONFIG), {"a", "b"}),
    "none": (tq.QConfigMapping(), set()),
    "a class": (tq.QConfigMapping().set_object_type(nn.Linear, CONFIG), {"a", "b"}),
    "a name": (tq.QConfigMapping().set_module_name("b", CONFIG), {"b"}),
    "a pattern": (tq.QConfigMapping().set_module_name_regex("[ac]", CONFIG), {"a"}),
    "a name before a class": (tq.QConfigMapping().set_object_type(nn.Linear, CONFIG)
                              .set_module_name("a", None), {"b"}),
    "the second": (tq.QConfigMapping().set_module_name_object_type_order(
        "", nn.Linear, 1, CONFIG), {"b"}),
    "a dictionary": ({"": CONFIG, "module_name": [("b", None)]}, {"a"}),
}  # fmt: skip


@pytest.mark.parametrize(("mapping", "chosen"), CHOSEN.values(), ids=CHOSEN)
def test_what_is_quantised(mapping, chosen):
    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, x):
            return self.b(self.a(x))

    converted = fx.convert_fx(observed(Plain().eval(), mapping))
    assert integers(converted) == chosen


def test_a_mapping_for_the_conversion_leaves_layers_out():
    prepared = observed(net())
    converted = fx.convert_fx(prepared, qconfig_mapping=tq.get_default_qconfig_mapping()
                              .set_module_name("b", None))
    assert integers(converted) == {"a"} and type(converted.b) is nn.Linear
    assert converted(X).shape == (3, 2)


def test_quantised_inputs_and_results():
    config = fx.PrepareCustomConfig().set_input_quantized_indexes([0]).set_output_quantized_indexes(
        [0]).set_preserved_attributes(["note"])
    model = net()
    prepared = observed(model, prepare_custom_config=config)
    converted = fx.convert_fx(prepared, fx.ConvertCustomConfig().set_preserved_attributes(["note"]))
    q = torch.quantize_per_tensor(X, 2 / 255, 128, torch.quint8)
    out = converted(q)
    assert out.is_quantized and (out.dequantize() - model(X)).abs().max() < 0.05
    assert prepared.note == converted.note == "kept"
    back = fx.PrepareCustomConfig.from_dict(config.to_dict())
    assert back.output_quantized_indexes == [0]
    with pytest.raises(ValueError, match="no option"):
        fx.PrepareCustomConfig.from_dict({"nonsense": 1})


def test_modules_that_are_not_traced():
    class Branch(nn.Module):
        def forward(self, x):
            return -x if x.sum() > 0 else x

    model = nn.Sequential(nn.Linear(4, 4), Branch(), nn.Linear(4, 2)).eval()
    for config in (fx.PrepareCustomConfig().set_non_traceable_module_classes([Branch]),
                   {"non_traceable_module_names": ["1"]}):
        converted = fx.convert_fx(observed(model, prepare_custom_config=config))
        assert (converted(X) - model(X)).abs().max() < 0.1


def test_reference_layers():
    prepared = observed(net())
    found = fx.convert_to_reference_fx(prepared)
    layer = found.get_submodule("a.0") if "a.0" in dict(found.named_modules()) else found.a
    assert type(layer) is reference.Linear and "Reference" in repr(layer)
    assert torch.equal(layer.get_weight(), layer.get_quantized_weight().dequantize())
    assert (layer.get_weight() - layer.weight).abs().max() < 0.01
    assert torch.equal(layer(X), F.linear(X, layer.get_weight(), layer.bias))


WRONG = {
    "has no observers": lambda: fx.convert_fx(torch.fx.symbolic_trace(net())),
    "input model must be a GraphModule": lambda: fx.convert_fx(net()),
    "give a QConfigMapping": lambda: fx.prepare_fx(net(), 3, (X,)),
    "one backend": lambda: fx.prepare_fx(net(), tq.QConfigMapping(), (X,), backend_config={}),
    "leave it out": lambda: fx.prepare_fx(net(), tq.QConfigMapping(), (X,),
                                          _equalization_config=tq.QConfigMapping()),
    "result 0 of the model is not": lambda: fx.prepare_fx(
        net(), tq.QConfigMapping(), (X,),
        fx.PrepareCustomConfig().set_output_quantized_indexes([0])),
}  # fmt: skip


@pytest.mark.parametrize(("said", "call"), WRONG.items(), ids=WRONG)
def test_what_is_refused(said, call):
    with pytest.raises((errors.PullbackError, ValueError, TypeError), match=said):
        call()


@pytest.mark.parametrize("config", [tq.float16_dynamic_qconfig, tq.float16_static_qconfig,
                                    tq.default_reuse_input_qconfig, tq.default_weight_only_qconfig])
def test_configurations_that_round_little_or_nothing(config):
    model = cases.seeded(torch, "Functions")
    converted = fx.convert_fx(observed(model, tq.QConfigMapping().set_global(config)))
    torch.testing.assert_close(converted(X), model(X).detach(), atol=0.01, rtol=0.01)
