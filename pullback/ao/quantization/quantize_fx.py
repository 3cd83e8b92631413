"""Graph mode of quantisation: `prepare_fx`, some batches, `convert_fx`.

The model is traced, so integers begin and end where they can, without marks in the program; read
`fx/__init__.py` for how.
"""

from __future__ import annotations

from typing import Any

from ... import errors, nn
from ...absent import getter as _getter
from ...graph import GraphModule
from .fx.convert import convert as _convert
from .fx.custom_config import (
    ConvertCustomConfig,
    FuseCustomConfig,
    PrepareCustomConfig,
    configured,
)
from .fx.fuse import fuse
from .fx.prepare import as_mapping
from .fx.prepare import prepare as _prepare
from .fx.tracing import QuantizationTracer, keep_attributes, traced
from .qconfig_mapping import QConfigMapping

_absent = _getter(__name__)


def __getattr__(name: str):
    return _absent(name)


def _refuse_backend(backend_config: Any, name: str) -> None:
    if backend_config is not None:
        raise errors.NotInThisBuild(errors.text(
            f"{name}(backend_config=...): there is one backend here ({errors.user_line(3)})",
            cure="leave backend_config out; a QConfigMapping says what is quantised"))


def fuse_fx(model: nn.Module, fuse_custom_config: Any = None,
            backend_config: Any = None) -> GraphModule:
    """The graph of a model in evaluation, with layers taken together that can be one."""
    _refuse_backend(backend_config, "fuse_fx")
    config = configured(fuse_custom_config, FuseCustomConfig)
    new = fuse(traced(model, PrepareCustomConfig()), False)
    keep_attributes(new, model, config.preserved_attributes)
    return new


def _prepared(model: nn.Module, mapping: Any, is_qat: bool, config: Any,
              example_inputs: Any) -> GraphModule:
    config = configured(config, PrepareCustomConfig)
    new = traced(model, config)
    new = _prepare(fuse(new, is_qat), as_mapping(mapping), is_qat, config, example_inputs)
    keep_attributes(new, model, config.preserved_attributes)
    return new


def prepare_fx(model: nn.Module, qconfig_mapping: Any, example_inputs: tuple,
               prepare_custom_config: Any = None, _equalization_config: Any = None,
               backend_config: Any = None) -> GraphModule:
    """The graph of a model with observers, for calibration."""
    _refuse_backend(backend_config, "prepare_fx")
    if _equalization_config is not None:
        raise errors.NotInThisBuild(errors.text(
            f"prepare_fx(_equalization_config=...) is not here ({errors.user_line(2)})",
            cure="leave it out"))
    return _prepared(model, qconfig_mapping, False, prepare_custom_config, example_inputs)


def prepare_qat_fx(model: nn.Module, qconfig_mapping: Any, example_inputs: tuple,
                   prepare_custom_config: Any = None, backend_config: Any = None) -> GraphModule:
    """The graph of a model that rounds as integers would, for training."""
    _refuse_backend(backend_config, "prepare_qat_fx")
    return _prepared(model, qconfig_mapping, True, prepare_custom_config, example_inputs)


def _converted(model: GraphModule, reference: bool, config: Any, mapping: Any,
               remove_qconfig: bool) -> GraphModule:
    if not isinstance(model, GraphModule):
        raise ValueError("input model must be a GraphModule, Got type:"
                         f"{type(model)} Please make sure to follow the tutorials.")
    config = configured(config, ConvertCustomConfig)
    new = _convert(model, reference, None if mapping is None else as_mapping(mapping),
                   remove_qconfig)
    keep_attributes(new, model, config.preserved_attributes)
    return new


def convert_fx(graph_module: GraphModule, convert_custom_config: Any = None,
               _remove_qconfig: bool = True, qconfig_mapping: Any = None,
               backend_config: Any = None, keep_original_weights: bool = False) -> GraphModule:
    """A graph that computes with integers, out of one with observers."""
    _refuse_backend(backend_config, "convert_fx")
    return _converted(graph_module, False, convert_custom_config, qconfig_mapping, _remove_qconfig)


def convert_to_reference_fx(
    graph_module: GraphModule, convert_custom_config: Any = None, _remove_qconfig: bool = True,
    qconfig_mapping: Any = None, backend_config: Any = None,
) -> GraphModule:
    """A graph of calls that round and of numbers between them, out of one with observers."""
    _refuse_backend(backend_config, "convert_to_reference_fx")
    return _converted(graph_module, True, convert_custom_config, qconfig_mapping, _remove_qconfig)


__all__ = [
    "ConvertCustomConfig", "FuseCustomConfig", "PrepareCustomConfig", "QConfigMapping",
    "QuantizationTracer", "convert_fx", "convert_to_reference_fx", "fuse_fx", "prepare_fx",
    "prepare_qat_fx",
]
