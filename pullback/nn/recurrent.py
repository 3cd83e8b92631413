"""Recurrent modules: layers over sequences, padded or packed, and single cells.

The operators are in `ops/rnn.py`; packed sequences are in `nn/utils/rnn.py`.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

from ..core.handle import Tensor
from ..table.packets import ops
from . import init
from .module import Module
from .parameter import Parameter
from .shared import new
from .utils.rnn import PackedSequence

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _reordered(states: Tensor, order: Tensor | None) -> Tensor:
    """States of the examples (dim 1) in another order."""
    return states if order is None else states.index_select(1, order)


class RNNBase(Module):
    """Parameters and argument checks of the recurrent layers."""

    def __init__(self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1,
                 bias: bool = True, batch_first: bool = False, dropout: float = 0.0,
                 bidirectional: bool = False, proj_size: int = 0, device=None, dtype=None) -> None:
        super().__init__()
        self.mode, self.input_size, self.hidden_size = mode, input_size, hidden_size
        self.num_layers, self.bias, self.batch_first = num_layers, bias, batch_first
        self.dropout, self.bidirectional, self.proj_size = float(dropout), bidirectional, proj_size
        self._check_arguments(dropout)
        directions = 2 if bidirectional else 1
        rows, width = _GATES[mode] * hidden_size, proj_size or hidden_size
        self._flat_weights_names: list[str] = []
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            size = input_size if layer == 0 else width * directions
            for direction in range(directions):
                shapes = {"weight_ih": (rows, size), "weight_hh": (rows, width)}
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                ending = f"_l{layer}" + ("_reverse" if direction else "")
                for name, shape in shapes.items():
                    self.register_parameter(name + ending, new(shape, device, dtype))
                names = [name + ending for name in shapes]
                self._flat_weights_names += names
                self._all_weights.append(names)
        self.reset_parameters()

    def _check_arguments(self, dropout) -> None:
        if not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1 or dropout is True:
            raise ValueError("dropout should be a number in range [0, 1] representing the "
                             "probability of an element being zeroed")
        if dropout > 0 and self.num_layers == 1:
            warnings.warn("dropout option adds dropout after all but last recurrent layer, so "
                          "non-zero dropout expects num_layers greater than 1, but got dropout="
                          f"{dropout} and num_layers={self.num_layers}", stacklevel=4)
        for name, kind in (("bias", bool), ("batch_first", bool), ("input_size", int),
                           ("hidden_size", int)):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(f"{name} should be of type {kind.__name__}, got: "
                                f"{type(getattr(self, name)).__name__}")
        for name in ("input_size", "hidden_size", "num_layers"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable "
                             "projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + self.mode)

    @property
    def _flat_weights(self) -> list[Tensor | None]:
        """The weights in the order of the operators' arguments; programs may set other ones."""
        given = self.__dict__.get("_given_weights")
        if given is not None:
            return given
        return [getattr(self, name, None) for name in self._flat_weights_names]

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Tensor | None]) -> None:
        self.__dict__["_given_weights"] = weights

    def __setattr__(self, name: str, value) -> None:
        given = self.__dict__.get("_given_weights")
        if given is not None and name in self._flat_weights_names:
            given[self._flat_weights_names.index(name)] = value
        super().__setattr__(name, value)

    def _apply(self, fn, recurse: bool = True):
        self.__dict__.pop("_given_weights", None)
        return super()._apply(fn, recurse)

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Nothing: parameters need not lie together here."""

    def reset_parameters(self) -> None:
        """Uniform numbers within one over the root of the hidden size."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    # shapes

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Refuse an input of another dtype, rank or width than the weights ask for."""
        dtype = self._flat_weights[0].dtype
        if input.dtype is not dtype:
            raise ValueError(f"RNN input dtype ({input.dtype}) does not match weight dtype "
                             f"({dtype}). Convert input: input.to({dtype}), or convert model: "
                             f"model.to({input.dtype})")
        expected = 3 if batch_sizes is None else 2
        if input.ndim != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.ndim}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError("input.size(-1) must be equal to input_size. Expected "
                               f"{self.input_size}, got {input.shape[-1]}")

    def _state_size(self, input: Tensor, batch_sizes: Tensor | None,
                    width: int) -> tuple[int, int, int]:
        batch = (int(batch_sizes[0]) if batch_sizes is not None
                 else input.shape[0 if self.batch_first else 1])
        return self.num_layers * (2 if self.bidirectional else 1), batch, width

    def get_expected_hidden_size(self, input: Tensor,
                                 batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """(layers and directions, batch, features) of the hidden state."""
        return self._state_size(input, batch_sizes, self.proj_size or self.hidden_size)

    def check_hidden_size(self, hx: Tensor, expected_hidden_size: tuple[int, int, int],
                          msg: str = "Expected hidden size {}, got {}") -> None:
        """Refuse a state of another shape."""
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Tensor,
                           batch_sizes: Tensor | None) -> None:
        """Refuse an input or a state that does not fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Tensor, permutation: Tensor | None) -> Tensor:
        """The state with its examples in another order."""
        return _reordered(hx, permutation)

    # the forward pass: states are a list of one tensor, or of two for LSTM

    def _run(self, input, states: list[Tensor] | None):
        """(output, states) for a tensor or a packed sequence."""
        packed = isinstance(input, PackedSequence)
        single, order, back, sizes = False, None, None, None
        if packed:
            input, sizes, order, back = input
        else:
            if input.ndim not in (2, 3):
                raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got "
                                 f"{input.ndim}D instead")
            single = input.ndim == 2
            if single:
                input = input.unsqueeze(0 if self.batch_first else 1)
        states = self._given(input, states, sizes, single)
        self.check_forward_args(input, states[0] if self._parts == 1 else tuple(states), sizes)
        out, *final = self._call(input, sizes, [_reordered(state, order) for state in states])
        if packed:
            out = PackedSequence(out, sizes, order, back)
            return out, [_reordered(s, back) for s in final]
        if single:
            return out.squeeze(0 if self.batch_first else 1), [s.squeeze(1) for s in final]
        return out, final

    def _given(self, input: Tensor, states, sizes, single: bool) -> list[Tensor]:
        """Initial states with all their dims."""
        if states is None:
            widths = [self.proj_size or self.hidden_size, self.hidden_size][:self._parts]
            return [ops.zeros(list(self._state_size(input, sizes, width)), dtype=input.dtype,
                              device=input.device) for width in widths]
        rank = 2 if single else 3
        if sizes is None and any(state.ndim != rank for state in states):
            ranks = ", ".join(f"{state.ndim}-D" for state in states)
            word, names = "unbatched" if single else "batched", ("hx", "hx and cx")[len(states) - 1]
            raise RuntimeError(f"For {word} {rank}-D input, {names} should also be {rank}-D but "
                               f"got ({ranks}) tensors")
        return [state.unsqueeze(1) for state in states] if single else states

    _parts = 1

    def _call(self, input, sizes, states):
        operator = getattr(ops, self.mode.lower())
        hx = states if self._parts == 2 else states[0]
        rest = (self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
                self.bidirectional)
        if sizes is None:
            return operator(input, hx, *rest, self.batch_first)
        return operator(input, sizes, hx, *rest)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        defaults = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False,
                    "dropout": 0.0, "bidirectional": False}
        for name, value in defaults.items():
            if getattr(self, name) != value:
                text += f", {name}={getattr(self, name)}"
        return text


def _only_lstm(kwargs: dict) -> None:
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(RNNBase):
    """Layers of simple recurrent networks.

    Arguments: input_size, hidden_size, num_layers=1, nonlinearity="tanh" (or "relu"), bias=True,
    batch_first=False, dropout=0.0, bidirectional=False, device=None, dtype=None.
    """

    def __init__(self, *args, **kwargs) -> None:
        _only_lstm(kwargs)
        if len(args) > 3:
            args, nonlinearity = (*args[:3], *args[4:]), args[3]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or "
                             "'relu'.")
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx: Tensor | None = None) -> Any:
        out, states = self._run(input, None if hx is None else [hx])
        return out, states[0]


class GRU(RNNBase):
    """Layers of gated recurrent units.

    Arguments: input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
    bidirectional=False, device=None, dtype=None.
    """

    def __init__(self, *args, **kwargs) -> None:
        _only_lstm(kwargs)
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input, hx: Tensor | None = None) -> Any:
        out, states = self._run(input, None if hx is None else [hx])
        return out, states[0]


class LSTM(RNNBase):
    """Layers of long short-term memory, optionally with projected outputs.

    Arguments: input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
    bidirectional=False, proj_size=0, device=None, dtype=None.
    """

    _parts = 2

    def __init__(self, *args, **kwargs) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor,
                               batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """(layers and directions, batch, features) of the cell state."""
        return self._state_size(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: tuple[Tensor, Tensor],
                           batch_sizes: Tensor | None) -> None:
        """Refuse an input or states that do not fit."""
        self.check_input(input, batch_sizes)
        expected = (self.get_expected_hidden_size(input, batch_sizes),
                    self.get_expected_cell_size(input, batch_sizes))
        for i, (state, size) in enumerate(zip(hidden, expected, strict=True)):
            self.check_hidden_size(state, size, f"Expected hidden[{i}] size {{}}, got {{}}")

    def permute_hidden(self, hx: tuple[Tensor, Tensor],
                       permutation: Tensor | None) -> tuple[Tensor, Tensor]:
        """Both states with their examples in another order."""
        return _reordered(hx[0], permutation), _reordered(hx[1], permutation)

    def forward(self, input, hx: tuple[Tensor, Tensor] | None = None) -> Any:
        out, states = self._run(input, None if hx is None else list(hx))
        return out, tuple(states)


# ---------------------------------------------------------------------------------------------
# Cells


class RNNCellBase(Module):
    """Parameters of one step."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int,
                 device=None, dtype=None) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = num_chunks * hidden_size
        self.weight_ih = new((rows, input_size), device, dtype)
        self.weight_hh = new((rows, hidden_size), device, dtype)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, new((rows,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform numbers within one over the root of the hidden size."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _batched(self, value: Tensor, name: str) -> Tensor:
        if value.ndim not in (1, 2):
            raise ValueError(f"{self._get_name()}: Expected {name} to be 1D or 2D, got "
                             f"{value.ndim}D instead")
        return value if value.ndim == 2 else value.unsqueeze(0)

    def _zeros(self, input: Tensor) -> Tensor:
        return ops.zeros([input.shape[0], self.hidden_size], dtype=input.dtype,
                         device=input.device)

    def _step(self, operator, input: Tensor, hx: Tensor | None) -> Tensor:
        rows = self._batched(input, "input")
        hx = self._zeros(rows) if hx is None else self._batched(hx, "hidden")
        out = operator(rows, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return out if input.ndim == 2 else out.squeeze(0)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")
        kind = getattr(self, "nonlinearity", "tanh")
        return text if kind == "tanh" else f"{text}, nonlinearity={kind}"


class RNNCell(RNNCellBase):
    """One step of a simple recurrent network."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True,
                 nonlinearity: str = "tanh", device=None, dtype=None) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        operator = ops.rnn_tanh_cell if self.nonlinearity == "tanh" else ops.rnn_relu_cell
        return self._step(operator, input, hx)


class GRUCell(RNNCellBase):
    """One step of a gated recurrent unit."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device=None,
                 dtype=None) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(ops.gru_cell, input, hx)


class LSTMCell(RNNCellBase):
    """One step of a long short-term memory."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device=None,
                 dtype=None) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor,
                hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        rows = self._batched(input, "input")
        if hx is None:
            states = [self._zeros(rows), self._zeros(rows)]
        else:
            states = [self._batched(part, f"hx[{i}]") for i, part in enumerate(hx)]
        hidden, cell = ops.lstm_cell(rows, states, self.weight_ih, self.weight_hh, self.bias_ih,
                                     self.bias_hh)
        return (hidden, cell) if input.ndim == 2 else (hidden.squeeze(0), cell.squeeze(0))
