"""Quantising models: `quantize_dynamic`; `prepare`, calibration, `convert`; `prepare_qat`."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from ... import errors, nn
from ...array import dtype as dt
from ...core.handle import Tensor
from ..nn.intrinsic import _FusedModule
from ..nn.quantized import FloatFunctional, QFunctional
from .observer import _is_activation_post_process
from .qconfig import (
    _activation_is_memoryless,
    _add_module_to_qconfig_obs_ctr,
    _assert_valid_qconfig,
    default_dynamic_qconfig,
    float16_dynamic_qconfig,
    float_qparams_weight_only_qconfig,
    float_qparams_weight_only_qconfig_4bit,
)
from .quantization_mappings import (
    _get_special_act_post_process,
    _has_special_act_post_process,
    get_default_dynamic_quant_module_mappings,
    get_default_qat_module_mappings,
    get_default_qconfig_propagation_list,
    get_default_static_quant_module_mappings,
    no_observer_set,
)
from .stubs import DeQuantStub, QuantWrapper

is_activation_post_process = _is_activation_post_process
_QINT8 = dt.by_name("qint8")
_DYNAMIC = {  # dtype -> how its layers are configured
    "qint8": default_dynamic_qconfig, "float16": float16_dynamic_qconfig,
    "quint8": float_qparams_weight_only_qconfig,
    "quint4x2": float_qparams_weight_only_qconfig_4bit,
}


def get_default_custom_config_dict() -> dict:
    """What layers become that are written out in parts to be observed."""
    from ..nn import quantizable, quantized

    return {"float_to_observed_custom_module_class": {
                nn.LSTM: quantizable.LSTM, nn.MultiheadAttention: quantizable.MultiheadAttention},
            "observed_to_quantized_custom_module_class": {
                quantizable.LSTM: quantized.LSTM,
                quantizable.MultiheadAttention: quantized.MultiheadAttention}}


def propagate_qconfig_(module: nn.Module, qconfig_dict: dict | None = None,
                       prepare_custom_config_dict: dict | None = None) -> None:
    """Give every module its configuration: its own, by name, by class, or that of its parent."""
    _propagate(module, qconfig_dict or {}, None, "", prepare_custom_config_dict or {})


def _propagate(module: nn.Module, given: dict, parent: Any, prefix: str, custom: dict) -> None:
    own = given.get(prefix, given.get(type(module), parent))
    own = getattr(module, "qconfig", own)
    _assert_valid_qconfig(own, module)
    module.qconfig = own = _add_module_to_qconfig_obs_ctr(own, module)
    for name, child in module.named_children():
        if name in custom.get("non_traceable_module_name", ()) or type(child) in custom.get(
                "non_traceable_module_class", ()):
            continue
        _propagate(child, given, own, f"{prefix}.{name}" if prefix else name, custom)


def _observer_forward_hook(self: nn.Module, input: Any, output: Tensor) -> Tensor:
    return self.activation_post_process(output)


def _observer_forward_pre_hook(self: nn.Module, input: tuple) -> Tensor:
    return self.activation_post_process(input[0])


def _wanted(m: nn.Module) -> bool:
    return getattr(m, "qconfig", None) is not None


def _insert(m: nn.Module, maker: Any = None) -> None:
    """Put an observer behind a module, or before it where only the present input counts."""
    if not _wanted(m) or isinstance(m, DeQuantStub):
        return
    device = _device(m)
    observer = (maker or m.qconfig.activation)()
    m.add_module("activation_post_process", observer if device is None else observer.to(device))
    if _activation_is_memoryless(m.qconfig):
        m.register_forward_pre_hook(_observer_forward_pre_hook, prepend=True)
    else:
        m.register_forward_hook(_observer_forward_hook, prepend=True)


def _device(module: nn.Module) -> Any:
    def places() -> Iterator[Any]:
        for t in (*module.parameters(), *module.buffers()):
            if t.device.type != "meta":
                yield t.device

    found = set(places())
    if len(found) > 1:
        raise AssertionError(f"a module that is quantised lies on one device, got {found}")
    return next(iter(found), None)


def _add_observer_(module: nn.Module, classes: Any, non_leaf: Any, custom: dict) -> None:
    """Put observers behind all modules without children that are configured."""
    for name, child in list(module.named_children()):
        kind = type(child)
        if kind is nn.Dropout:
            continue
        if issubclass(kind, (FloatFunctional, QFunctional)):
            if _wanted(child):
                child.activation_post_process = child.qconfig.activation()
        elif isinstance(child, _FusedModule) or non_leaf is not None and kind in non_leaf:
            _insert(child)
        elif _has_special_act_post_process(child):
            _insert(child, _get_special_act_post_process(child))
        elif _wanted(child) and kind in custom:
            observed = custom[kind].from_float(child)
            setattr(module, name, observed)
            if not issubclass(custom[kind], tuple(no_observer_set())):
                _insert(observed)
        else:
            _add_observer_(child, classes, non_leaf, custom)
    if isinstance(module, nn.Sequential) or type(module) not in classes:
        return
    if hasattr(module, "weight_fake_quant") or not list(module.children()):
        _insert(module)


def add_quant_dequant(module: nn.Module) -> nn.Module:
    """Put the marks of `QuantWrapper` around all modules without children that are configured."""
    if not list(module.children()) and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in module.named_children():
        module._modules[name] = add_quant_dequant(child)
    return module


def prepare(model: nn.Module, inplace: bool = False, allow_list: Any = None,
            observer_non_leaf_module_list: Any = None,
            prepare_custom_config_dict: dict | None = None) -> nn.Module:
    """A model with observers, for calibration."""
    custom = get_default_custom_config_dict() if prepare_custom_config_dict is None else (
        prepare_custom_config_dict)
    model = model if inplace else copy.deepcopy(model)
    classes = get_default_qconfig_propagation_list() if allow_list is None else allow_list
    propagate_qconfig_(model)
    if not any(getattr(m, "qconfig", None) for m in model.modules()):
        warnings.warn("None of the submodule got qconfig applied. Make sure you passed correct "
                      "configuration through `qconfig_dict` or by assigning the `.qconfig` "
                      "attribute directly on submodules", stacklevel=2)
    _add_observer_(model, classes, observer_non_leaf_module_list,
                   custom.get("float_to_observed_custom_module_class", {}))
    return model


def _remove_qconfig(module: nn.Module) -> None:
    for child in module.children():
        _remove_qconfig(child)
    if hasattr(module, "qconfig"):
        del module.qconfig
    if _is_activation_post_process(getattr(module, "activation_post_process", None)):
        del module.activation_post_process
    for hooks, ours in ((module._forward_pre_hooks, _observer_forward_pre_hook),
                        (module._forward_hooks, _observer_forward_hook)):
        for key in [k for k, hook in hooks.items() if hook is ours]:
            hooks.pop(key)


def quantize(model: nn.Module, run_fn: Callable, run_args: Any, mapping: dict | None = None,
             inplace: bool = False) -> nn.Module:
    """A model whose layers hold integers: `run_fn` calibrates it."""
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    prepare(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, mapping, inplace=True)


def quantize_dynamic(model: nn.Module, qconfig_spec: Any = None, dtype: Any = _QINT8,
                     mapping: dict | None = None, inplace: bool = False) -> nn.Module:
    """A model whose linear and recurrent layers have weights in 8 bits, or half precision.

    They round their input by themselves.  `qconfig_spec` is a set of classes or names of modules,
    or a dictionary from these to configurations.
    """
    if isinstance(qconfig_spec, set) or qconfig_spec is None:
        config = _DYNAMIC.get(getattr(dtype, "name", None))
        if config is None:
            said = "Unknown dtype specified for quantize_dynamic: " if qconfig_spec else (
                "Don't know how to quantize with default settings for ")
            raise errors.BadValue(
                f"{said}{dtype}. Provide full qconfig please ({errors.user_line(2)})")
        tables = {"quint8": {nn.EmbeddingBag, nn.Embedding}, "quint4x2": {nn.EmbeddingBag}}
        asked = tables.get(dtype.name, {nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.RNNCell,
                                        nn.GRUCell}) if qconfig_spec is None else qconfig_spec
        qconfig_spec = dict.fromkeys(asked, config)
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    propagate_qconfig_(model, qconfig_spec)
    mapping = get_default_dynamic_quant_module_mappings() if mapping is None else mapping
    return convert(model, mapping, inplace=True)


def prepare_qat(model: nn.Module, mapping: dict | None = None, inplace: bool = False) -> nn.Module:
    """A model that rounds as integers would, for training."""
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode")
    mapping = get_default_qat_module_mappings() if mapping is None else mapping
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    convert(model, mapping=mapping, inplace=True, remove_qconfig=False)
    return prepare(model, observer_non_leaf_module_list=set(mapping.values()), inplace=True)


def quantize_qat(model: nn.Module, run_fn: Callable, run_args: Any,
                 inplace: bool = False) -> nn.Module:
    """A model whose layers hold integers: `run_fn` trains it."""
    model = model if inplace else copy.deepcopy(model)
    model.train()
    prepare_qat(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, inplace=True)


def convert(module: nn.Module, mapping: dict | None = None, inplace: bool = False,
            remove_qconfig: bool = True, is_reference: bool = False,
            convert_custom_config_dict: dict | None = None,
            use_precomputed_fake_quant: bool = False) -> nn.Module:
    """A model whose configured layers are those that `mapping` has for them."""
    if is_reference:
        raise errors.NotInThisBuild(errors.text(
            f"convert(is_reference=True): there are no reference layers here "
            f"({errors.user_line(2)})", cure="convert to quantised layers: is_reference=False"))
    module = module if inplace else copy.deepcopy(module)
    mapping = get_default_static_quant_module_mappings() if mapping is None else mapping
    custom = (convert_custom_config_dict or get_default_custom_config_dict()).get(
        "observed_to_quantized_custom_module_class", {})
    _convert(module, mapping, custom, use_precomputed_fake_quant)
    if remove_qconfig:
        _remove_qconfig(module)
    return module


def _convert(module: nn.Module, mapping: dict, custom: dict, precomputed: bool) -> None:
    swapped = {}
    for name, child in module.named_children():
        if not isinstance(child, _FusedModule) and type(child) not in custom:
            _convert(child, mapping, custom, precomputed)
        swapped[name] = swap_module(child, mapping, custom, precomputed)
    module._modules.update(swapped)


def swap_module(mod: nn.Module, mapping: dict, custom_module_class_mapping: dict | None = None,
                use_precomputed_fake_quant: bool = False) -> nn.Module:
    """What stands for a module in a quantised model; itself if that is not known."""
    custom = custom_module_class_mapping or {}
    kind = type(mod)
    if not _wanted(mod) or kind not in custom and kind not in mapping:
        return mod
    if kind in custom:
        new = custom[kind].from_observed(mod)
    else:
        maker = mapping[kind].from_float
        more = {"use_precomputed_fake_quant": use_precomputed_fake_quant} if (
            "use_precomputed_fake_quant" in inspect.signature(maker).parameters) else {}
        new = maker(mod, **more)
    for hook in mod._forward_pre_hooks.values():
        if hook is not _observer_forward_pre_hook:
            new.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        if hook is not _observer_forward_hook:
            new.register_forward_hook(hook)
    device = _device(mod)
    return new if device is None else new.to(device)


def _get_observer_dict(mod: nn.Module, target_dict: dict, prefix: str = "") -> None:
    """All observers of a model by the names of what they look at."""
    start = f"{prefix}." if prefix else ""
    if hasattr(mod, "activation_post_process"):
        target_dict[f"{start}activation_post_process"] = mod.activation_post_process
    for name, child in mod.named_children():
        _get_observer_dict(child, target_dict, start + name)
