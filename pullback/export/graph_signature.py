"""What the inputs and outputs of an exported program are: parameters, buffers, arguments, ..."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


@dataclass(frozen=True)
class _OfNode:
    """What a node stands for, by its name."""

    name: str


class TensorArgument(_OfNode):
    """A tensor, by the name of its node."""


class SymIntArgument(_OfNode):
    """A size, by the name of its node."""


@dataclass(frozen=True)
class ConstantArgument(_OfNode):
    """A value that is part of the program."""

    value: int | float | bool | str | None


Argument = TensorArgument | SymIntArgument | ConstantArgument


# Where an input comes from
InputKind = Enum("InputKind", "USER_INPUT PARAMETER BUFFER CONSTANT_TENSOR CUSTOM_OBJ TOKEN",
                 module=__name__)

# What an output is for
OutputKind = Enum("OutputKind", "USER_OUTPUT LOSS_OUTPUT BUFFER_MUTATION PARAMETER_MUTATION "
                  "GRADIENT_TO_PARAMETER GRADIENT_TO_USER_INPUT USER_INPUT_MUTATION TOKEN",
                  module=__name__)


@dataclass
class InputSpec:
    """One input: its kind, its node, the name in the module that it stands for."""

    kind: InputKind
    arg: Argument
    target: str | None
    persistent: bool | None = None

    def __str__(self) -> str:
        facts = [self.kind.name]
        if self.target is not None:
            facts.append(f"target={self.target!r}")
        if self.persistent is not None:
            facts.append(f"persistent={self.persistent}")
        return f"{self.arg.name}: {' '.join(facts)}"


@dataclass
class OutputSpec:
    """One output: its kind, its node, the name in the module that gets it."""

    kind: OutputKind
    arg: Argument
    target: str | None

    def __str__(self) -> str:
        place = "" if self.target is None else f" target={self.target!r}"
        return f"{self.arg.name}: {self.kind.name}{place}"


@dataclass
class ExportBackwardSignature:
    """Of a program with gradients: whose they are."""

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


_WRITES = (
    OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION, OutputKind.USER_INPUT_MUTATION)


def _table(kind: InputKind | OutputKind, says: str) -> Any:
    """The property that maps names of inputs or outputs of a kind to names in the module."""
    return property(lambda signature: signature._named(kind), doc=says)


@dataclass
class ExportGraphSignature:
    """All inputs and outputs of a graph, in order, and tables by name made of them."""

    input_specs: list[InputSpec] = field(default_factory=list)
    output_specs: list[OutputSpec] = field(default_factory=list)

    def _named(self, kind: InputKind | OutputKind) -> dict[str, str]:
        specs = self.input_specs if isinstance(kind, InputKind) else self.output_specs
        return {s.arg.name: s.target for s in specs if s.kind is kind}

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names in the module."""
        return tuple(self.inputs_to_parameters.values())

    @property
    def buffers(self) -> tuple[str, ...]:
        """Names in the module."""
        return tuple(self.inputs_to_buffers.values())

    @property
    def non_persistent_buffers(self) -> tuple[str, ...]:
        """Names in the module of buffers that are not part of its state dict."""
        return tuple(s.target for s in self.input_specs
                     if s.kind is InputKind.BUFFER and s.persistent is False)

    @property
    def lifted_tensor_constants(self) -> tuple[str, ...]:
        """Names of tensors that are neither parameters nor buffers."""
        return tuple(self.inputs_to_lifted_tensor_constants.values())

    @property
    def user_inputs(self) -> tuple[Any, ...]:
        """Names of arguments, or values where these are part of the program."""
        return tuple(_shown(s.arg) for s in self.input_specs if s.kind is InputKind.USER_INPUT)

    @property
    def user_outputs(self) -> tuple[Any, ...]:
        """Names of results, or values."""
        return tuple(_shown(s.arg) for s in self.output_specs if s.kind is OutputKind.USER_OUTPUT)

    inputs_to_parameters = _table(InputKind.PARAMETER, "Input -> parameter.")
    inputs_to_buffers = _table(InputKind.BUFFER, "Input -> buffer.")
    inputs_to_lifted_tensor_constants = _table(InputKind.CONSTANT_TENSOR, "Input -> constant.")
    buffers_to_mutate = _table(OutputKind.BUFFER_MUTATION, "Output -> buffer that gets it.")
    parameters_to_mutate = _table(
        OutputKind.PARAMETER_MUTATION, "Output -> parameter that gets it.")
    user_inputs_to_mutate = _table(
        OutputKind.USER_INPUT_MUTATION, "Output -> argument that gets it.")

    @property
    def backward_signature(self) -> ExportBackwardSignature | None:
        """Whose gradients the last outputs are; None: a program has none of its own."""
        loss = self._named(OutputKind.LOSS_OUTPUT)
        if not loss:
            return None
        return ExportBackwardSignature(
            self._named(OutputKind.GRADIENT_TO_PARAMETER),
            self._named(OutputKind.GRADIENT_TO_USER_INPUT), next(iter(loss)))

    @property
    def written(self) -> list[OutputSpec]:
        """The outputs that are new values of something."""
        return [s for s in self.output_specs if s.kind in _WRITES]

    def __str__(self) -> str:
        lines = ["", "# inputs", *map(str, self.input_specs), "", "# outputs",
                 *map(str, self.output_specs), ""]
        return "\n".join(lines)


def _shown(arg: Argument) -> Any:
    return arg.value if isinstance(arg, ConstantArgument) else arg.name
