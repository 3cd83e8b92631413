"""What the inputs and outputs of an exported program are: parameters, buffers, arguments, ..."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any


@dataclass(frozen=True)
class TensorArgument:
    """A tensor, by the name of its node."""

    name: str


@dataclass(frozen=True)
class SymIntArgument:
    """A size, by the name of its node."""

    name: str


@dataclass(frozen=True)
class ConstantArgument:
    """A value that is part of the program."""

    name: str
    value: int | float | bool | str | None


Argument = TensorArgument | SymIntArgument | ConstantArgument


class InputKind(Enum):
    """Where an input comes from."""

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()
    CUSTOM_OBJ = auto()
    TOKEN = auto()


class OutputKind(Enum):
    """What an output is for."""

    USER_OUTPUT = auto()
    LOSS_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    GRADIENT_TO_PARAMETER = auto()
    GRADIENT_TO_USER_INPUT = auto()
    USER_INPUT_MUTATION = auto()
    TOKEN = auto()


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


@dataclass
class ExportGraphSignature:
    """All inputs and outputs of a graph, in order, and tables by name made of them."""

    input_specs: list[InputSpec] = field(default_factory=list)
    output_specs: list[OutputSpec] = field(default_factory=list)

    def _inputs(self, kind: InputKind) -> dict[str, str]:
        return {s.arg.name: s.target for s in self.input_specs if s.kind is kind}

    def _outputs(self, kind: OutputKind) -> dict[str, str]:
        return {s.arg.name: s.target for s in self.output_specs if s.kind is kind}

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

    @property
    def inputs_to_parameters(self) -> dict[str, str]:
        """Input -> parameter."""
        return self._inputs(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> dict[str, str]:
        """Input -> buffer."""
        return self._inputs(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> dict[str, str]:
        """Input -> constant."""
        return self._inputs(InputKind.CONSTANT_TENSOR)

    @property
    def buffers_to_mutate(self) -> dict[str, str]:
        """Output -> buffer that gets it."""
        return self._outputs(OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self) -> dict[str, str]:
        """Output -> parameter that gets it."""
        return self._outputs(OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> dict[str, str]:
        """Output -> argument that gets it."""
        return self._outputs(OutputKind.USER_INPUT_MUTATION)

    @property
    def backward_signature(self) -> ExportBackwardSignature | None:
        """Whose gradients the last outputs are; None: a program has none of its own."""
        loss = self._outputs(OutputKind.LOSS_OUTPUT)
        if not loss:
            return None
        return ExportBackwardSignature(
            self._outputs(OutputKind.GRADIENT_TO_PARAMETER),
            self._outputs(OutputKind.GRADIENT_TO_USER_INPUT), next(iter(loss)))

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
