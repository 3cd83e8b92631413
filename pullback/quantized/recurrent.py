"""Recurrent layers with weights in 8 bits or half precision: `quantized_lstm`, cells, weights.

The input of a layer is rounded as a whole, its state in every step; gates are in single precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.handle import Tensor
from ..table.packets import ops
from .packed import Packed
from .products import dynamic_linear

functions: dict[str, Callable] = {}


class CellParamsBase:
    """The weights of one direction of one layer."""

    def __init__(self, of_input: Packed, of_state: Packed, reduce_range: bool = False):
        self.of_input, self.of_state, self.reduce_range = of_input, of_state, reduce_range

    def input_gates(self, x: Tensor) -> Tensor:
        """What the input says to the gates."""
        return dynamic_linear(x, self.of_input, self.reduce_range)

    def state_gates(self, h: Tensor) -> Tensor:
        """What the state says to the gates."""
        return dynamic_linear(h, self.of_state, self.reduce_range)


def _dynamic(w_ih: Packed, w_hh: Packed, bias_ih: Any, bias_hh: Any,
             reduce_range: bool = False) -> CellParamsBase:
    return CellParamsBase(w_ih, w_hh, reduce_range)


functions["make_quantized_cell_params_dynamic"] = _dynamic
functions["make_quantized_cell_params_fp16"] = CellParamsBase


def lstm_step(gates: Tensor, state: tuple) -> tuple:
    """The next state and cell."""
    i, f, g, o = gates.chunk(4, 1)
    cell = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


def gru_step(of_input: Tensor, of_state: Tensor, h: Tensor) -> Tensor:
    """The next state."""
    a, b = of_input.chunk(3, 1), of_state.chunk(3, 1)
    reset, update = (a[0] + b[0]).sigmoid(), (a[1] + b[1]).sigmoid()
    new = (a[2] + reset * b[2]).tanh()
    return (h - new) * update + new


def _step(mode: str, gates: Tensor, params: CellParamsBase, state: tuple) -> tuple:
    of_state = params.state_gates(state[0])
    if mode == "LSTM":
        return lstm_step(of_state + gates, state)
    return (gru_step(gates, of_state, state[0]),)


def _direction(mode: str, x: Tensor, sizes: list[int], params: CellParamsBase, state: tuple,
               reverse: bool) -> tuple[Tensor, tuple]:
    """Outputs and last states of one direction; steps lie behind one another in `x`."""
    steps = params.input_gates(x).split(sizes)
    outs: list = [None] * len(sizes)
    now = tuple([s[:sizes[-1] if reverse else sizes[0]] for s in state])
    ended: list = []  # states of examples that were shorter
    for k in reversed(range(len(sizes))) if reverse else range(len(sizes)):
        have = now[0].shape[0]
        if sizes[k] < have:
            ended.append(tuple([s[sizes[k]:] for s in now]))
            now = tuple([s[:sizes[k]] for s in now])
        elif sizes[k] > have:
            now = tuple([ops.cat([s, first[have:sizes[k]]]) for s, first in zip(now, state)])
        now = _step(mode, steps[k], params, now)
        outs[k] = now[0]
    last = now
    if ended:
        last = tuple([ops.cat([now[i], *[e[i] for e in reversed(ended)]])
                      for i in range(len(now))])
    return ops.cat(outs), last


def layers(mode: str, x: Tensor, sizes: list[int], states: tuple, params: list, num_layers: int,
           dropout: float, train: bool, bidirectional: bool) -> tuple[Tensor, list]:
    """All layers: outputs, and the last states of each direction of each layer."""
    ways = 2 if bidirectional else 1
    found: list = []
    for layer in range(num_layers):
        outs = []
        for way in range(ways):
            at = layer * ways + way
            out, last = _direction(mode, x, sizes, params[at], tuple([s[at] for s in states]),
                                   way == 1)
            outs.append(out)
            found.append(last)
        x = outs[0] if ways == 1 else ops.cat(outs, -1)
        if dropout and train and layer < num_layers - 1:
            x = ops.dropout(x, dropout, True)
    return x, [ops.stack([f[i] for f in found]) for i in range(len(states))]


def _recurrent(mode: str) -> Callable:
    def layer(input: Tensor, *args: Any, dtype: Any = None, use_dynamic: bool = False) -> tuple:
        packed = isinstance(args[1], (list, tuple)) and isinstance(args[1][0], Tensor) or (
            mode == "GRU" and isinstance(args[1], Tensor))
        sizes = None
        if packed:
            sizes, args = [int(n) for n in args[0].tolist()], args[1:]
        states = tuple(args[0]) if mode == "LSTM" else (args[0],)
        params, _, num_layers, dropout, train, bidirectional = args[1:7]
        batch_first = args[7] if len(args) > 7 else False
        x, shape = input, None
        if sizes is None:
            x = input.transpose(0, 1) if batch_first else input
            shape = x.shape[:2]
            sizes = [shape[1]] * shape[0]
            x = x.reshape(-1, x.shape[-1])
        out, last = layers(mode, x, sizes, states, params, num_layers, dropout, train,
                           bidirectional)
        if shape is not None:
            out = out.reshape(*shape, out.shape[-1])
            out = out.transpose(0, 1) if batch_first else out
        return (out, *last)

    return layer


quantized_lstm, quantized_gru = _recurrent("LSTM"), _recurrent("GRU")


def _cell(name: str, function: Callable) -> None:
    def cell(input: Tensor, hx: Any, w_ih: Packed, w_hh: Packed, b_ih: Tensor, b_hh: Tensor):
        state = hx[0] if isinstance(hx, (list, tuple)) else hx
        return function(dynamic_linear(input, w_ih, True), dynamic_linear(state, w_hh, True), hx)

    functions[f"quantized_{name}_cell_dynamic"] = cell


_cell("lstm", lambda a, b, hx: lstm_step(a + b, hx))
_cell("gru", gru_step)
_cell("rnn_tanh", lambda a, b, hx: (a + b).tanh())
_cell("rnn_relu", lambda a, b, hx: (a + b).relu())

__all__ = ["CellParamsBase", "functions", "layers", "quantized_gru", "quantized_lstm"]
