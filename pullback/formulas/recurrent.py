"""The pullback of stacks of recurrent layers, written out through time.

Gradients of `lstm` and its like come from their steps.  Vendors' libraries have operators for the
backward of a whole stack; these run the steps again, keeping what each pullback needs, and then go
back through them.  Everything is made of differentiable operators: there are derivatives of every
order.  Rows of all steps lie below each other, as in packed sequences: step t has `sizes[t]` of
them, never more than the step before.  Read next: `ops/vendor_rnn.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..table.packets import ops
from .rnn import gru_cell_pull, lstm_cell_pull

# ---------------------------------------------------------------------------------------------
# One step: `record` gives the new states and what `pull` needs, `pull` the gradients of the gates
# of the input, of those of the hidden state, and of the states where they are used directly


def _plain(activation):
    """`record` of a cell without gates of its own."""

    def record(inputs, hiddens, states):
        out = activation(inputs + hiddens)
        return (out,), out

    return staticmethod(record)


class TanhStep:
    """tanh of the sum of both gates."""

    record = _plain(lambda gates: gates.tanh())

    @staticmethod
    def pull(grads, out):
        gates = grads[0] * (1 - out * out)
        return gates, gates, (None,)


class ReluStep:
    """relu of the sum of both gates."""

    record = _plain(lambda gates: gates.relu())

    @staticmethod
    def pull(grads, out):
        gates = ops.threshold_backward(grads[0], out, 0)
        return gates, gates, (None,)


class LSTMStep:
    """The cell of an LSTM; its states are hidden state and cell."""

    @staticmethod
    def record(inputs, hiddens, states):
        out, cell, work = ops._thnn_fused_lstm_cell(inputs, hiddens, states[1])
        return (out, cell), (states[1], cell, work)

    @staticmethod
    def pull(grads, kept):
        gates, cell = lstm_cell_pull((*grads, None), *kept)
        return gates, gates, (None, cell)


class GRUStep:
    """The cell of a gated recurrent unit."""

    @staticmethod
    def record(inputs, hiddens, states):
        out, work = ops._thnn_fused_gru_cell(inputs, hiddens, states[0])
        return (out,), work

    @staticmethod
    def pull(grads, work):
        inputs, hiddens, state = gru_cell_pull((grads[0], None), work)
        return inputs, hiddens, (state,)


# ---------------------------------------------------------------------------------------------
# One layer in one direction


@dataclass(frozen=True, slots=True)
class Note:
    """What one step leaves for its pullback."""

    time: int
    hidden: object  # the hidden state that it began with
    out: object  # what it put out, before the projection
    kept: object  # what the cell's own pullback needs


def _first(state, rows: int):
    return state if state.shape[0] == rows else state[:rows]


def _replaced(state, new):
    """The state of all sequences, with new values of those that are still, or already, there."""
    rows = new.shape[0]
    return new if state.shape[0] == rows else ops.cat([new, state[rows:]], 0)


def record_layer(step, weights, rows, sizes, states, reverse: bool):
    """Output rows, final states, and the notes of all steps in the order in which they ran."""
    gates = ops.split_with_sizes(weights.input_gates(rows), sizes, 0)
    outputs, notes = [None] * len(sizes), []
    for t in reversed(range(len(sizes))) if reverse else range(len(sizes)):
        before = tuple(_first(s, sizes[t]) for s in states)
        new, kept = step.record(gates[t], weights.hidden_gates(before[0]), before)
        notes.append(Note(t, before[0], new[0], kept))
        if weights.w_hr is not None:
            new = (ops.linear(new[0], weights.w_hr), *new[1:])
        states = tuple(_replaced(s, n) for s, n in zip(states, new, strict=True))
        outputs[t] = new[0]
    return ops.cat(outputs, 0), states, notes


def pull_layer(step, weights, rows, sizes, notes, grad_rows, grad_states):
    """Gradients of the input's rows, of the initial states, and of the weights in their order."""
    own = ops.split_with_sizes(grad_rows, sizes, 0)
    for_inputs, for_hiddens, for_outs = [None] * len(sizes), [], []
    for note in reversed(notes):
        grads = [_first(g, sizes[note.time]) for g in grad_states]
        grads[0] = grads[0] + own[note.time]
        for_outs.append(grads[0])
        if weights.w_hr is not None:
            grads[0] = ops.mm(grads[0], weights.w_hr)
        inputs, hiddens, (direct, *others) = step.pull(grads, note.kept)
        back = ops.mm(hiddens, weights.w_hh)
        new = (back if direct is None else back + direct, *others)
        grad_states = tuple(_replaced(g, n) for g, n in zip(grad_states, new, strict=True))
        for_inputs[note.time] = inputs
        for_hiddens.append(hiddens)
    inputs, hiddens = ops.cat(for_inputs, 0), ops.cat(for_hiddens, 0)
    grads = [ops.mm(inputs.t(), rows),
             ops.mm(hiddens.t(), ops.cat([n.hidden for n in reversed(notes)], 0))]
    if weights.b_ih is not None:
        grads += [inputs.sum(0), hiddens.sum(0)]
    if weights.w_hr is not None:
        outs = ops.cat([n.out for n in reversed(notes)], 0)
        grads.append(ops.mm(ops.cat(for_outs, 0).t(), outs))
    return ops.mm(inputs, weights.w_ih), grad_states, grads


# ---------------------------------------------------------------------------------------------
# Stacks of layers


@dataclass(frozen=True, slots=True)
class Layer:
    """What one layer of a stack leaves: its input, one list of notes per direction, its output."""

    rows: object
    notes: list
    out: object


def record_stack(step, rows, sizes, states, weights, directions: int, thin):
    """Output rows, final states by part, and all layers; `thin(out, i)` is between the layers."""
    layers, final = [], []
    count = len(weights) // directions
    for layer in range(count):
        outputs, notes = [], []
        for number in range(layer * directions, (layer + 1) * directions):
            out, end, own = record_layer(step, weights[number], rows, sizes,
                                         tuple(s[number] for s in states), number % directions == 1)
            outputs.append(out)
            notes.append(own)
            final.append(end)
        out = outputs[0] if directions == 1 else ops.cat(outputs, 1)
        out = thin(out, layer) if layer < count - 1 else out
        layers.append(Layer(rows, notes, out))
        rows = out
    return rows, [ops.stack(list(same), 0) for same in zip(*final, strict=True)], layers


def pull_stack(step, layers, sizes, weights, directions: int, thin, grad_rows, grad_states):
    """Gradients of the input's rows, of the initial states by part, and of all weights."""
    for_states, for_weights = [None] * len(weights), [None] * len(weights)
    for layer in reversed(range(len(layers))):
        if layer < len(layers) - 1:
            grad_rows = thin(grad_rows, layer)
        parts = ops.chunk(grad_rows, directions, 1)
        total = None
        for direction in range(directions):
            number = layer * directions + direction
            rows, for_states[number], for_weights[number] = pull_layer(
                step, weights[number], layers[layer].rows, sizes, layers[layer].notes[direction],
                parts[direction], tuple(s[number] for s in grad_states))
            total = rows if total is None else total + rows
        grad_rows = total
    states = [ops.stack(list(same), 0) for same in zip(*for_states, strict=True)]
    return grad_rows, states, [g for own in for_weights for g in own]
