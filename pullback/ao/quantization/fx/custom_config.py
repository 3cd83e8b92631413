"""What users may say about the preparation and the conversion of a graph."""

from __future__ import annotations

from typing import Any


class _Config:
    """Attributes, each with a method that sets it."""

    preserved_attributes: list[str]

    def set_preserved_attributes(self, attributes: list[str]) -> Any:
        """Attributes of the model that the graph module will have, too."""
        self.preserved_attributes = attributes
        return self

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Any:
        """The configuration that a dictionary describes."""
        new = cls()
        for name, value in given.items():
            if not hasattr(new, name):
                raise ValueError(f"{cls.__name__}.from_dict(): there is no option {name!r}")
            setattr(new, name, value)
        return new

    def to_dict(self) -> dict[str, Any]:
        """What has been set."""
        return {name: value for name, value in vars(self).items() if value}


class PrepareCustomConfig(_Config):
    """Options of `prepare_fx` and `prepare_qat_fx`."""

    def __init__(self) -> None:
        self.non_traceable_module_names: list[str] = []
        self.non_traceable_module_classes: list[type] = []
        self.input_quantized_indexes: list[int] = []
        self.output_quantized_indexes: list[int] = []
        self.preserved_attributes = []

    def set_non_traceable_module_names(self, module_names: list[str]) -> PrepareCustomConfig:
        """Modules that stay calls, by their names."""
        self.non_traceable_module_names = module_names
        return self

    def set_non_traceable_module_classes(
        self, module_classes: list[type],
    ) -> PrepareCustomConfig:
        """Modules that stay calls, by their classes."""
        self.non_traceable_module_classes = module_classes
        return self

    def set_input_quantized_indexes(self, indexes: list[int]) -> PrepareCustomConfig:
        """Which inputs of the model are quantised tensors."""
        self.input_quantized_indexes = indexes
        return self

    def set_output_quantized_indexes(self, indexes: list[int]) -> PrepareCustomConfig:
        """Which results of the model are to be quantised tensors."""
        self.output_quantized_indexes = indexes
        return self


class ConvertCustomConfig(_Config):
    """Options of `convert_fx`."""

    def __init__(self) -> None:
        self.preserved_attributes = []


class FuseCustomConfig(_Config):
    """Options of `fuse_fx`."""

    def __init__(self) -> None:
        self.preserved_attributes = []


def configured(given: Any, kind: type) -> Any:
    """A configuration out of one, a dictionary or None."""
    if given is None:
        return kind()
    return kind.from_dict(given) if isinstance(given, dict) else given  # type: ignore[attr-defined]


__all__ = ["ConvertCustomConfig", "FuseCustomConfig", "PrepareCustomConfig"]
