"""Where values wait for the backward: in host memory, or in eight bits.

`config.enable_activation_offloading` moves what `meta["should_offload"]` marks (a
`joint_custom_pass` sets it) to the host when the forward needs it no longer, and back before its
first use; values that are on the host already are copied, and the graphs show it.
`_inductor.config.post_grad_fusion_options["activation_quantization_aten_pass"]` saves large values
of some dtypes as float8, scaled by row.  Both are the graph rewriting of `saved_tensor_hooks.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import pullback

from .. import errors
from ..array import dtype as dt
from ..cut.settings import code_generator, config
from ..graph.node import Node
from ..graph.traits import viewed
from ..table.packets import ops
from .saved_tensor_hooks import rewritten

PASS = "activation_quantization_aten_pass"
_DEFAULTS = {"quant_type": "torch.float8_e5m2", "allowed_dtypes": "torch.bfloat16",
             "size_in_mb": 100, "use_scaling": True, "exclude_primals": False,
             "skip_dynamo_guards": False, "quantize_dynamic_shape": False}


def offloading() -> Callable | None:
    """What is to be done with the halves of a graph, by the settings in force; None: nothing."""
    wanted = code_generator.post_grad_fusion_options.get(PASS)
    options = None if wanted is None else _read(wanted)
    if options is None and not config.enable_activation_offloading:
        return None
    return partial(_offloaded, options, config.enable_activation_offloading)


def quantising_options() -> dict:
    """The options of the setting that saves values in eight bits, its defaults where it is off."""
    return _read(code_generator.post_grad_fusion_options.get(PASS) or {})


def _read(wanted: dict) -> dict:
    unknown = sorted(set(wanted) - set(_DEFAULTS))
    if unknown:
        raise errors.BadValue(errors.text(
            f"{PASS} has no option {unknown[0]!r} ({errors.user_line(2)})",
            f"options: {wanted}", f"there are {', '.join(_DEFAULTS)}"))
    options = _DEFAULTS | wanted
    kinds = [options["quant_type"], *options["allowed_dtypes"].split(";")]
    found = [getattr(pullback, k.rpartition(".")[2], None) for k in kinds]
    for name, kind in zip(kinds, found):
        if not isinstance(kind, dt.DType) or not kind.is_floating_point:
            raise errors.BadValue(errors.text(
                f"{PASS}: {name!r} is no dtype of real numbers ({errors.user_line(2)})",
                f"options: {wanted}", 'name one: "torch.bfloat16"'))
    return options | {"quant_type": found[0], "allowed_dtypes": found[1:]}


def _offloaded(options: dict | None, offload: bool, halves: tuple, count: int,
               tensors: list) -> tuple:
    forward = next(iter(halves))
    results = forward.graph.output_node().args[0]
    inputs = [n for n in forward.graph.nodes if n.op == "placeholder"]
    kept = {n.name for n, t in zip(inputs, tensors) if isinstance(t, pullback.nn.Parameter)}

    def choose(place: int, node: Node) -> tuple | None:
        if viewed(node).name in kept:
            return None
        if options is not None and _large(options, node):
            return _quantised(options, place, node)
        if offload and node.meta.get("should_offload") and _movable(node, results[:count]):
            return _moved(node)
        return None

    return rewritten(halves, count, choose, late=True)


# in eight bits


def _large(options: dict, node: Node) -> bool:
    value = node.meta["val"]
    if value.dtype not in options["allowed_dtypes"]:
        return False
    if options["exclude_primals"] and "primals" in node.name:
        return False
    size = value.numel() * value.element_size() / 2**20 >= options["size_in_mb"]
    if options["skip_dynamo_guards"] and not isinstance(size, bool):  # it depends on the sizes
        return options["quantize_dynamic_shape"]
    return bool(size)


def _quantised(options: dict, place: int, node: Node) -> tuple:
    kind, own = options["quant_type"], node.meta["val"].dtype
    limits = pullback.finfo(kind)
    names = [f"fp8_quant_pos_{place}_{node.name}", f"fp8_scale_pos_{place}_{node.name}"]

    def pack(t: Any) -> Any:
        if not options["use_scaling"]:
            return ops._to_copy(t, dtype=kind)
        largest = t.abs().amax([-1], True).to(pullback.float64).clamp_min(1e-12)
        scale = (largest.reciprocal() * limits.max).to(pullback.float32)
        scaled = t.to(pullback.float32) * scale
        return ops._to_copy(scaled.clamp_min(limits.min).clamp_max(limits.max), dtype=kind), scale

    def unpack(kept: Any) -> Any:
        if not options["use_scaling"]:
            return ops._to_copy(kept, dtype=own)
        value, scale = kept
        return (value.to(pullback.float32) / scale).to(own)

    pack.names = names
    return pack, unpack


# in host memory


def _movable(node: Node, results: tuple) -> bool:
    """Has the forward a value for itself, whole and dense?"""
    part = node.target is operator.getitem
    return (node not in results and viewed(node) is node and not part
            and node.meta["val"].is_contiguous())


def _moved(node: Node) -> tuple:
    place = node.meta["val"].device

    def pack(t: Any) -> Any:
        return ops._to_copy(t, device="cpu", non_blocking=True)

    def unpack(t: Any) -> Any:
        return ops._to_copy(t, device=place, non_blocking=True)

    pack.names, unpack.names = [f"cpu_offload_{node.name}"], [f"gpu_reload_{node.name}"]
    return pack, unpack
