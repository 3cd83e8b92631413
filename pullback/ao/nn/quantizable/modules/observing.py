"""What layers that are written out in parts have in common: they come with their observers."""

from __future__ import annotations

from typing import Any

from ..... import errors, nn


def prepared(layer: nn.Module, training: bool) -> nn.Module:
    """A layer with observers at its parts, or with parts that round, if it is to be trained."""
    from ....quantization.quantize import prepare, prepare_qat

    layer.train(training)
    return (prepare_qat if training else prepare)(layer, inplace=True)


def not_observed(cls: type, other: Any) -> nn.Module:
    """Refuse to be made of an observed layer: this is one."""
    raise NotImplementedError(errors.text(
        f"quantizable.{cls.__name__}.from_observed: this layer is the observed one "
        f"({errors.user_line(2)})", f"given: {type(other).__name__}",
        f"nn.quantized.{cls.__name__}.from_observed, or convert() of the whole model"))


def not_calibrated(cls: type, other: Any) -> nn.Module:
    """Refuse to be made of a layer that no observer has looked at."""
    raise NotImplementedError(errors.text(
        f"nn.quantized.{cls.__name__}.from_float: the layer must be prepared first, so that there "
        f"are observers ({errors.user_line(2)})", f"given: {type(other).__name__}",
        "prepare(model), some batches, convert(model)"))


def converted(cls: type, other: nn.Module, known: type, own: type) -> nn.Module:
    """The quantised layer that stands for an observed one, whose parts are converted."""
    from ....quantization.quantize import convert

    if not isinstance(other, known):
        raise AssertionError(
            f"expected an instance of {known.__name__}, got {type(other).__name__}")
    new = convert(other, inplace=False, remove_qconfig=True)
    new.__class__ = own
    return new
