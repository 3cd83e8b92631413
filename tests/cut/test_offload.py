"""Saved values that wait for the backward in host memory, or in eight bits."""

import numpy as np
import pytest

import pullback as torch
from pullback import aot
from pullback._inductor import config as inductor
from pullback.cut.partition import default_partition, min_cut_rematerialization_partition


def net(x, w):
    return ((x @ w).sin() @ w).sum(1)


def graphs(function, *inputs, partition=min_cut_rematerialization_partition):
    """Forward and backward, and the gradients."""
    seen = []
    keep = lambda module, _: (seen.append(module), module)[1]
    out = aot.aot_function(function, keep, keep, partition_fn=partition)(*inputs)
    leaves = [t for t in inputs if t.requires_grad]
    out = out if isinstance(out, tuple) else (out,)
    grads = torch.autograd.grad(sum([o.sum() for o in out]), leaves)
    return *seen, out, grads


def quantised(**options):
    return inductor.patch(post_grad_fusion_options={
        "activation_quantization_aten_pass": {"size_in_mb": 0, **options}})


def inputs(dtype=torch.float32):
    torch.manual_seed(0)
    return torch.randn(8, 8, dtype=dtype, requires_grad=True), torch.randn(8, 8, dtype=dtype)


@pytest.mark.parametrize("scaled", [True, False])
def test_values_are_saved_in_eight_bits(scaled):
    x, w = inputs()
    exact = graphs(net, x, w)[-1][0]
    with quantised(quant_type="torch.float8_e4m3fn", allowed_dtypes="torch.float32;torch.bfloat16",
                   exclude_primals=True, use_scaling=scaled):
        _forward, backward, out, (grad,) = graphs(net, x, w)
    saved = {n.name: n.meta["val"] for n in backward.graph.nodes if n.op == "placeholder"}
    assert saved["fp8_quant_pos_2_mm"].dtype is torch.float8_e4m3fn
    assert ("fp8_scale_pos_2_mm" in saved) == scaled and "primals_2" in saved
    assert torch.equal(out[0], net(x, w))  # results are exact
    value = x.detach() @ w  # what the backward reads: rounded to four significant bits
    scale = (448 / value.abs().amax(1, True).double()).float() if scaled else torch.ones(8, 1)
    rounded = (value * scale).to(torch.float8_e4m3fn).float() / scale
    by_hand = ((torch.ones(8, 8) @ w.t()) * rounded.cos()) @ w.t()
    np.testing.assert_allclose(grad.numpy(), by_hand.numpy(), rtol=1e-5, atol=1e-5)
    assert not torch.allclose(grad, exact)


def test_the_compiled_program_saves_in_eight_bits_too():
    x, w = inputs()
    with quantised(allowed_dtypes="torch.float32"):
        expected = graphs(net, x, w)[-1][0]
        torch.compile(lambda x, w: net(x, w).sum())(x, w).backward()
    assert torch.allclose(x.grad, expected, atol=1e-5)
    x.grad = None
    torch.compile(lambda x, w: net(x, w).sum())(x, w).backward()
    assert not torch.allclose(x.grad, expected, atol=1e-5)


def test_which_values():
    x, w = inputs(torch.bfloat16)
    for options, count in (({}, 2), ({"size_in_mb": 1}, 0), ({"exclude_primals": True}, 1),
                           ({"allowed_dtypes": "torch.float32"}, 0)):
        with quantised(**options):
            backward = graphs(net, x, w)[1]
        assert sum("fp8_quant" in n.name for n in backward.graph.nodes) == count, options
    # a result that is saved, too: the user gets it as it is, the backward what was rounded
    with quantised():
        _forward, backward, (out, _), _ = graphs(
            lambda x, w: ((x @ w).exp(), w), x, w, partition=default_partition)
    assert out.dtype is torch.bfloat16 and torch.equal(out, (x @ w).exp())
    assert sum("fp8_quant" in n.name for n in backward.graph.nodes) == 2
    # parameters are somebody's already
    layer = torch.nn.Linear(8, 8, bias=False).to(torch.bfloat16)
    with quantised():
        seen = []
        keep = lambda module, _: (seen.append(module), module)[1]
        aot.aot_module(layer, keep, keep)(x).sum().backward()
    names = [n.name for n in seen[1].graph.nodes if n.op == "placeholder"]
    assert [n for n in names if "fp8_quant" in n] == ["fp8_quant_pos_1_primals_2"]


def test_wrong_options():
    x, w = inputs()
    for options, match in (({"quant_tipe": "torch.float16"}, "has no option 'quant_tipe'"),
                           ({"quant_type": "torch.int8"}, "'torch.int8' is no dtype of real"),
                           ({"allowed_dtypes": "torch.floatt"}, "is no dtype")):
        with quantised(**options), pytest.raises(ValueError, match=match):
            graphs(net, x, w)


def marked(name):
    def mark(module, _):
        for node in module.graph.nodes:
            if node.name == name:
                node.meta["should_offload"] = True
        return module

    return mark


def test_values_wait_in_host_memory():
    x, w = inputs()
    exact = graphs(net, x, w)[-1][0]
    settings = {"joint_custom_pass": marked("mm"), "enable_activation_offloading": True}
    with aot.config.patch(settings):
        forward, backward, _, (grad,) = graphs(net, x, w)
    names = [n.name for n in forward.graph.nodes]
    place = names.index("cpu_offload_mm")
    assert names[place - 1] == "sin" and "mm_1" in names[place:]  # right after the last use
    saved = {n.name: n for n in backward.graph.nodes}
    assert saved["cpu_offload_mm"].meta["val"].device.type == "cpu"
    assert saved["gpu_reload_mm"].kwargs["device"] == x.device
    assert saved["gpu_reload_mm"].next.name == "cos"  # right before the first use
    assert torch.equal(grad, exact)
    with aot.config.patch(settings | {"enable_activation_offloading": False}):
        assert "cpu_offload_mm" not in [n.name for n in graphs(net, x, w)[0].graph.nodes]
    for name in ("sum_1", "primals_2"):  # results, and what is not saved, stay
        with aot.config.patch(settings | {"joint_custom_pass": marked(name)}):
            found = [n.name for n in graphs(net, x, w)[0].graph.nodes]
        assert ("cpu_offload_primals_2" in found) == (name == "primals_2")
        assert "cpu_offload_sum_1" not in found
    turned = lambda x, w: ((x @ w).t().sin() @ w).sum(1)  # nor do views
    with aot.config.patch(settings | {"joint_custom_pass": marked("t")}):
        forward = graphs(turned, x, w, partition=default_partition)[0]
    saved = [n.name for n in forward.graph.output_node().args[0]]
    assert "t" in saved and "cpu_offload_t" not in saved


@pytest.mark.parametrize("name", ["activation_offload_separate_stream",
                                  "activation_offload_sink_wait", "activation_reload_prefetch"])
def test_there_is_no_second_stream(name):
    with pytest.raises(ValueError, match=f"{name} cannot be True"):
        setattr(aot.config, name, True)
    setattr(aot.config, name, False)
