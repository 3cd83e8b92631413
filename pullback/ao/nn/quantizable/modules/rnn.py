"""LSTMs whose gates are layers and whose arithmetic is modules, so that observers can look at them.

`prepare` puts one in the place of each `nn.LSTM`, and `convert` makes `nn.quantized.LSTM` of it,
which is the same program over integers.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ..... import nn
from .....array import dtype as dt
from .....core.handle import Tensor
from .....nn import functional as F
from .....quantized.construct import quantize_per_tensor
from .....quantized.tensor import QuantizedTensor
from .....table.packets import ops
from ...quantized import FloatFunctional
from .observing import not_observed, prepared

_QUINT8 = dt.by_name("quint8")


class LSTMCell(nn.Module):
    """One step of an LSTM; with `split_gates` every gate has weights of its own."""

    _FLOAT_MODULE: ClassVar[Any] = nn.LSTMCell
    _GATES = ("input", "forget", "cell", "output")

    def __init__(self, input_dim: int, hidden_dim: int, bias: bool = True, device: Any = None,
                 dtype: Any = None, *, split_gates: bool = False):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_dim, hidden_dim, bias
        self.split_gates = split_gates
        given = {"bias": bias, "device": device, "dtype": dtype}
        if split_gates:
            for name, width in (("igates", input_dim), ("hgates", hidden_dim)):
                setattr(self, name, nn.ModuleDict(
                    {g: nn.Linear(width, hidden_dim, **given) for g in self._GATES}))
            self.gates = nn.ModuleDict({g: FloatFunctional() for g in self._GATES})
        else:
            self.igates = nn.Linear(input_dim, 4 * hidden_dim, **given)
            self.hgates = nn.Linear(hidden_dim, 4 * hidden_dim, **given)
            self.gates = FloatFunctional()
        self.input_gate, self.forget_gate = nn.Sigmoid(), nn.Sigmoid()
        self.cell_gate, self.output_gate = nn.Tanh(), nn.Sigmoid()
        self.fgate_cx, self.igate_cgate = FloatFunctional(), FloatFunctional()
        self.fgate_cx_igate_cgate, self.ogate_cy = FloatFunctional(), FloatFunctional()
        self.initial_hidden_state_qparams: tuple[float, int] = (1.0, 0)
        self.initial_cell_state_qparams: tuple[float, int] = (1.0, 0)
        self.hidden_state_dtype = self.cell_state_dtype = _QUINT8

    def forward(self, x: Tensor, hidden: Any = None) -> tuple[Tensor, Tensor]:
        if hidden is None or hidden[0] is None or hidden[1] is None:
            hidden = self.initialize_hidden(x.shape[0], x.is_quantized)
        h, c = hidden
        i, f, g, o = self._gate_values(x, h)
        kept = self.fgate_cx.mul(self.forget_gate(f), c)
        new = self.igate_cgate.mul(self.input_gate(i), self.cell_gate(g))
        cell = self.fgate_cx_igate_cgate.add(kept, new)
        return self.ogate_cy.mul(self.output_gate(o), cell.tanh()), cell

    def _gate_values(self, x: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        if self.split_gates:
            return tuple([self.gates[g].add(self.igates[g](x), self.hgates[g](h))
                          for g in self._GATES])
        return self.gates.add(self.igates(x), self.hgates(h)).chunk(4, 1)

    def initialize_hidden(self, batch_size: int, is_quantized: bool = False) -> tuple:
        """(state, cell) before the first step: zeros."""
        zeros = ops.zeros((batch_size, self.hidden_size))
        if not is_quantized:
            return zeros, zeros.clone()
        return (quantize_per_tensor(zeros, *self.initial_hidden_state_qparams,
                                    self.hidden_state_dtype),
                quantize_per_tensor(zeros, *self.initial_cell_state_qparams,
                                    self.cell_state_dtype))

    def _get_name(self) -> str:
        return "QuantizableLSTMCell"

    @classmethod
    def from_params(cls, wi: Tensor, wh: Tensor, bi: Tensor | None = None,
                    bh: Tensor | None = None, split_gates: bool = False) -> LSTMCell:
        """The cell with these weights, which are `weight_ih` and so on of an `nn.LSTM`."""
        if (bi is None) != (bh is None):
            raise AssertionError("from_params: both biases are given, or none of them")
        new = cls(wi.shape[1], wh.shape[1], bi is not None, split_gates=split_gates)
        for layers, weight, bias in ((new.igates, wi, bi), (new.hgates, wh, bh)):
            each = layers.values() if split_gates else [layers]
            parts = len(each)
            for layer, w, b in zip(each, weight.chunk(parts),
                                   [None] * parts if bias is None else bias.chunk(parts)):
                layer.weight = nn.Parameter(w.detach())
                if b is not None:
                    layer.bias = nn.Parameter(b.detach())
        return new

    @classmethod
    def from_float(cls, other: nn.Module, use_precomputed_fake_quant: bool = False,
                   split_gates: bool = False) -> LSTMCell:
        """The cell that stands for an `nn.LSTMCell`."""
        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(
                f"expected {cls._FLOAT_MODULE.__name__}, got {type(other).__name__}")
        if not hasattr(other, "qconfig"):
            raise AssertionError("The float module must have 'qconfig'")
        bias = (other.bias_ih, other.bias_hh) if other.bias else ()
        new = cls.from_params(other.weight_ih, other.weight_hh, *bias, split_gates=split_gates)
        new.qconfig = other.qconfig
        for layer in (new.igates, new.hgates):
            layer.qconfig = other.qconfig
        return new


class _LSTMSingleLayer(nn.Module):
    """All steps of one direction of one layer."""

    def __init__(self, input_dim: int, hidden_dim: int, bias: bool = True, device: Any = None,
                 dtype: Any = None, *, split_gates: bool = False):
        super().__init__()
        self.cell = LSTMCell(input_dim, hidden_dim, bias, device, dtype, split_gates=split_gates)

    def forward(self, x: Tensor, hidden: Any = None) -> tuple[Tensor, Any]:
        outs = []
        for step in x:
            hidden = self.cell(step, hidden)
            outs.append(hidden[0])
        return ops.stack(outs, 0), hidden

    @classmethod
    def from_params(cls, *args: Any, **kwargs: Any) -> _LSTMSingleLayer:
        """The layer whose cell has these weights."""
        cell = LSTMCell.from_params(*args, **kwargs)
        new = cls(cell.input_size, cell.hidden_size, cell.bias, split_gates=cell.split_gates)
        new.cell = cell
        return new


class _LSTMLayer(nn.Module):
    """One layer, in one direction or both."""

    def __init__(self, input_dim: int, hidden_dim: int, bias: bool = True,
                 batch_first: bool = False, bidirectional: bool = False, device: Any = None,
                 dtype: Any = None, *, split_gates: bool = False):
        super().__init__()
        self.batch_first, self.bidirectional = batch_first, bidirectional
        given = (input_dim, hidden_dim, bias, device, dtype)
        self.layer_fw = _LSTMSingleLayer(*given, split_gates=split_gates)
        if bidirectional:
            self.layer_bw = _LSTMSingleLayer(*given, split_gates=split_gates)

    def forward(self, x: Tensor, hidden: Any = None) -> tuple[Tensor, tuple]:
        x = x.transpose(0, 1) if self.batch_first else x
        h, c = (None, None) if hidden is None else hidden
        if not self.bidirectional:
            out, last = self.layer_fw(x, None if h is None else (h, c))
        else:
            both = (None, None) if h is None else tuple(zip(h, c))
            out, ahead = self.layer_fw(x, both[0])
            back, behind = self.layer_bw(x.flip(0), both[1])
            out = ops.cat([out, back.flip(0)], out.ndim - 1)
            last = tuple([ops.stack(pair, 0) for pair in zip(ahead, behind)])
        return out.transpose(0, 1) if self.batch_first else out, last

    @classmethod
    def from_float(cls, other: nn.Module, layer_idx: int = 0, qconfig: Any = None,
                   **kwargs: Any) -> _LSTMLayer:
        """The layer that stands for one of an `nn.LSTM`."""
        if not hasattr(other, "qconfig") and qconfig is None:
            raise AssertionError("The float module must have 'qconfig' or qconfig must be given")
        split = kwargs.get("split_gates", False)

        def of(ending: str) -> _LSTMSingleLayer:
            names = ["weight_ih", "weight_hh", *(["bias_ih", "bias_hh"] if other.bias else [])]
            given = [getattr(other, f"{name}_l{layer_idx}{ending}") for name in names]
            return _LSTMSingleLayer.from_params(*given, split_gates=split)

        new = cls(1, 1, other.bias, kwargs.get("batch_first", other.batch_first),
                  kwargs.get("bidirectional", other.bidirectional), split_gates=split)
        new.qconfig = getattr(other, "qconfig", qconfig)
        new.layer_fw = of("")
        if new.bidirectional:
            new.layer_bw = of("_reverse")
        return new


class LSTM(nn.Module):
    """An LSTM whose parts observers can look at."""

    _FLOAT_MODULE: ClassVar[Any] = nn.LSTM

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
                 device: Any = None, dtype: Any = None, *, split_gates: bool = False):
        super().__init__()
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.training = bidirectional, False
        if not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise ValueError("dropout should be a number in range [0, 1] representing the "
                             "probability of an element being zeroed")
        ways = 2 if bidirectional else 1
        self.layers = nn.ModuleList([
            _LSTMLayer(input_size if k == 0 else hidden_size * ways, hidden_size, bias, False,
                       bidirectional, device, dtype, split_gates=split_gates)
            for k in range(num_layers)])

    def forward(self, x: Tensor, hidden: Any = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        x = x.transpose(0, 1) if self.batch_first else x
        states = self._states(x, hidden)
        ended = []
        for k, layer in enumerate(self.layers):
            x, last = layer(x, states[k])
            x = F.dropout(x, self.dropout, self.training and k < self.num_layers - 1)
            ended.append(last)
        stacked = [ops.stack([pair[i] for pair in ended]) for i in (0, 1)]
        h, c = [s.reshape((-1, *s.shape[-2:])) for s in stacked]
        return x.transpose(0, 1) if self.batch_first else x, (h, c)

    def _states(self, x: Tensor, hidden: Any) -> list:
        """(state, cell) of each layer before the first step."""
        ways, batch = 2 if self.bidirectional else 1, x.shape[1]
        if hidden is not None:
            if not isinstance(hidden[0], Tensor):
                return list(hidden)
            shape = (self.num_layers, ways, batch, self.hidden_size)
            h, c = (t.reshape(shape).squeeze(1) if ways == 1 else t.reshape(shape) for t in hidden)
            return [(h[k], c[k]) for k in range(self.num_layers)]
        zeros = ops.zeros((batch, self.hidden_size) if ways == 1 else (2, batch, self.hidden_size))
        if isinstance(x, QuantizedTensor):
            zeros = quantize_per_tensor(zeros, 1.0, 0, x.dtype)
        return [(zeros, zeros)] * self.num_layers

    def _get_name(self) -> str:
        return "QuantizableLSTM"

    @classmethod
    def from_float(cls, other: nn.Module, qconfig: Any = None,
                   split_gates: bool = False) -> nn.Module:
        """The layer that stands for an `nn.LSTM`, with observers."""
        if not isinstance(other, cls._FLOAT_MODULE):
            raise AssertionError(f"expected an instance of {cls._FLOAT_MODULE.__name__}, got "
                                 f"{type(other).__name__}")
        if not hasattr(other, "qconfig") and not qconfig:
            raise AssertionError("either other must have 'qconfig' or qconfig must be provided")
        if getattr(other, "proj_size", 0):
            raise ValueError("quantizable.LSTM has no projections: proj_size must be 0, got "
                             f"{other.proj_size}")
        new = cls(other.input_size, other.hidden_size, other.num_layers, other.bias,
                  other.batch_first, other.dropout, other.bidirectional, split_gates=split_gates)
        new.qconfig = getattr(other, "qconfig", qconfig)
        for k in range(other.num_layers):
            new.layers[k] = _LSTMLayer.from_float(other, k, qconfig, batch_first=False,
                                                  split_gates=split_gates)
        return prepared(new, other.training)

    from_observed = classmethod(not_observed)
