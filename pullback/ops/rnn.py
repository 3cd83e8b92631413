"""Recurrent cells and layers, and sequences packed without padding.

Layers are composites: the inputs of all time steps meet their weights in one product, then a
Python loop runs the cell.  Fused cells are in `ops/rnn_cells.py`; capture takes them apart, so that
it sees plain linear maps and activations.  The module classes are in `nn/recurrent.py`, packing for users in `nn/utils/rnn.py`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

from ..core.op import Composite
from ..errors import DataDependentError, DTypeError, ShapeError
from ..table.packets import ops
from ..threads.state import fast
from .kinds import ComplexComposite, Free, Moving

# ---------------------------------------------------------------------------------------------
# One step: (gates of the input, hidden state, weights) -> hidden state; its first part is the
# output.  The hidden state is a tuple: (h,), or (h, c) for LSTM.


@dataclass(frozen=True, slots=True)
class Weights:
    """The parameters of one layer in one direction."""

    w_ih: object
    w_hh: object
    b_ih: object = None
    b_hh: object = None
    w_hr: object = None  # projection of the LSTM's output
    turned: object = None  # the transposed w_hh, where all steps share it

    def input_gates(self, input):
        """The part of the gates that does not depend on the hidden state."""
        return ops.linear(input, self.w_ih, self.b_ih)

    def hidden_gates(self, hidden):
        """The part of the gates that depends on the hidden state."""
        if self.turned is None or hidden.ndim != 2:
            return ops.linear(hidden, self.w_hh, self.b_hh)
        if self.b_hh is None:
            return ops.mm(hidden, self.turned)
        return ops.addmm(self.b_hh, hidden, self.turned)

    def gates(self, input_gates, hidden):
        """All gates before their activations."""
        own = self.hidden_gates(hidden)
        out = input_gates + own
        return out if out.dtype is own.dtype else out.to(own.dtype)  # the hidden state keeps its

    def for_steps(self):
        """The same for many steps; whoever looks at operators sees what PyTorch calls in each."""
        if fast["ACTIVE"] or self.w_hh.ndim != 2:
            return self
        return replace(self, turned=self.w_hh.t())


def tanh_step(input_gates, hidden, weights):
    return (weights.gates(input_gates, hidden[0]).tanh(),)


def relu_step(input_gates, hidden, weights):
    return (weights.gates(input_gates, hidden[0]).relu(),)


def lstm_step(input_gates, hidden, weights):
    gates = weights.hidden_gates(hidden[0])
    out, cell, _ = ops._thnn_fused_lstm_cell(input_gates, gates, hidden[1])
    if weights.w_hr is not None:
        out = ops.linear(out, weights.w_hr)
    return out, cell


def gru_step(input_gates, hidden, weights):
    gates = weights.hidden_gates(hidden[0])
    return (ops._thnn_fused_gru_cell(input_gates, gates, hidden[0])[0],)


# ---------------------------------------------------------------------------------------------
# Cells


def _check_cell(input, hidden, w_ih, w_hh, label):
    if input.shape[-1] != w_ih.shape[1]:
        raise ShapeError(f"input has inconsistent input_size: got {input.shape[-1]} expected "
                         f"{w_ih.shape[1]}")
    if input.ndim > 1 and input.shape[0] != hidden.shape[0]:
        raise ShapeError(f"Input batch size {input.shape[0]} doesn't match hidden{label} batch "
                         f"size {hidden.shape[0]}")
    if hidden.shape[-1] != w_hh.shape[1]:
        raise ShapeError(f"hidden{label} has inconsistent hidden_size: got {hidden.shape[-1]}, "
                         f"expected {w_hh.shape[1]}")


def _cell(step, input, hidden, w_ih, w_hh, b_ih, b_hh):
    for label, part in enumerate(hidden):
        _check_cell(input, part, w_ih, w_hh, label)
    weights = Weights(w_ih, w_hh, b_ih, b_hh)
    return step(weights.input_gates(input), hidden, weights)


def _cell_samples(gates):
    def samples(s):
        yield s(s.real(2, 3), s.real(2, 4), s.real(4 * gates, 3), s.real(4 * gates, 4),
                s.real(4 * gates), s.real(4 * gates))
        yield s(s.real(2, 3), s.real(2, 4), s.real(4 * gates, 3), s.real(4 * gates, 4))
    return samples


class rnn_tanh_cell(Free):
    """One step of a simple recurrent network: tanh of a linear map of input and hidden state."""

    schema = ("rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None,"
              " Tensor? b_hh=None) -> Tensor")
    samples = _cell_samples(1)

    def compose(input, hx, w_ih, w_hh, b_ih, b_hh):
        return _cell(tanh_step, input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


class rnn_relu_cell(Free):
    """One step of a simple recurrent network with relu in place of tanh."""

    schema = ("rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None,"
              " Tensor? b_hh=None) -> Tensor")
    samples = _cell_samples(1)

    def compose(input, hx, w_ih, w_hh, b_ih, b_hh):
        return _cell(relu_step, input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


class gru_cell(Free):
    """One step of a gated recurrent unit."""

    schema = ("gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None,"
              " Tensor? b_hh=None) -> Tensor")
    samples = _cell_samples(3)

    def compose(input, hx, w_ih, w_hh, b_ih, b_hh):
        return _cell(gru_step, input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


class lstm_cell(Free):
    """One step of a long short-term memory: new hidden state and new cell."""

    schema = ("lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None,"
              " Tensor? b_hh=None) -> (Tensor, Tensor)")

    def compose(input, hx, w_ih, w_hh, b_ih, b_hh):
        if len(hx) != 2:
            raise ShapeError("lstm_cell expects two hidden states")
        return _cell(lstm_step, input, tuple(hx), w_ih, w_hh, b_ih, b_hh)

    def samples(s):
        yield s(s.real(2, 3), [s.real(2, 4), s.real(2, 4)], s.real(16, 3), s.real(16, 4),
                s.real(16), s.real(16))
        yield s(s.real(2, 3), [s.real(2, 4), s.real(2, 4)], s.real(16, 3), s.real(16, 4))


# ---------------------------------------------------------------------------------------------
# One layer in one direction.  Padded input is (time, batch, features); packed input is the rows of
# all steps below each other, of which step t has `sizes[t]`, never more than the step before.


def _padded_pass(step, weights, input, hidden, reverse):
    gates = ops.unbind(weights.input_gates(input), 0)
    weights = weights.for_steps()
    outputs = [None] * len(gates)
    for t in reversed(range(len(gates))) if reverse else range(len(gates)):
        hidden = step(gates[t], hidden, weights)
        outputs[t] = hidden[0]
    return ops.stack(outputs, 0), hidden


def _packed_pass(step, weights, input, sizes, hidden, reverse):
    gates = ops.split_with_sizes(weights.input_gates(input), sizes, 0)
    weights = weights.for_steps()
    run = _packed_backward if reverse else _packed_forward
    outputs, hidden = run(step, weights, gates, sizes, hidden)
    return ops.cat(outputs, 0), hidden


def _packed_forward(step, weights, gates, sizes, hidden):
    """Sequences that end leave the batch; their last states wait until all have ended."""
    outputs, ended = [], []
    for t, size in enumerate(sizes):
        rows = hidden[0].shape[0]
        if size < rows:
            ended.append(tuple(part[size:] for part in hidden))
            hidden = tuple(part[:size] for part in hidden)
        hidden = step(gates[t], hidden, weights)
        outputs.append(hidden[0])
    if ended:
        parts = [hidden, *reversed(ended)]
        hidden = tuple(ops.cat(list(same), 0) for same in zip(*parts, strict=True))
    return outputs, hidden


def _packed_backward(step, weights, gates, sizes, first):
    """Seen from the end, sequences join the batch, each with its own initial state."""
    outputs = [None] * len(sizes)
    hidden = tuple(part[:sizes[-1]] for part in first)
    for t in reversed(range(len(sizes))):
        rows = hidden[0].shape[0]
        if sizes[t] > rows:
            hidden = tuple(ops.cat([part, whole[rows:sizes[t]]], 0)
                           for part, whole in zip(hidden, first, strict=True))
        hidden = step(gates[t], hidden, weights)
        outputs[t] = hidden[0]
    return outputs, hidden


# ---------------------------------------------------------------------------------------------
# Stacks of layers


def gathered(params, has_biases, projected) -> list[Weights]:
    """The flat list of parameters as one `Weights` for each layer and direction."""
    width = 2 + 2 * bool(has_biases) + bool(projected)
    if len(params) % width:
        raise ShapeError(f"got {len(params)} parameters, which is no multiple of the {width} that "
                         "each layer has")
    found = []
    for i in range(0, len(params), width):
        group = list(params[i:i + width])
        w_hr = group.pop() if projected else None
        found.append(Weights(*group, w_hr=w_hr) if has_biases else Weights(*group, None, None, w_hr))
    return found


def stacked(step, input, sizes, states, weights, num_layers, dropout, train, bidirectional,
            thin=None):
    """Output and final states; `states` has one tensor (layers x directions, ...) per part.

    `thin(input, dropout)` is between the layers: it is dropout if nothing else is given.
    """
    thin = thin or (lambda input, p: ops.dropout(input, p, True))
    directions = 2 if bidirectional else 1
    if any(part.shape[0] < num_layers * directions for part in states):
        raise ShapeError("Expected more hidden states in stacked_rnn")
    final = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            number = layer * directions + direction
            hidden = tuple(part[number] for part in states)
            reverse = direction == 1
            if sizes is None:
                out, hidden = _padded_pass(step, weights[number], input, hidden, reverse)
            else:
                out, hidden = _packed_pass(step, weights[number], input, sizes, hidden, reverse)
            outputs.append(out)
            final.append(hidden)
        input = outputs[0] if directions == 1 else ops.cat(outputs, -1)
        if train and dropout != 0 and layer < num_layers - 1:
            input = thin(input, dropout)
    return input, [ops.stack(list(same), 0) for same in zip(*final, strict=True)]


def _batch_sizes(batch_sizes) -> list[int]:
    if batch_sizes.ndim != 1:
        raise ShapeError("Expected `batch_sizes` to be a 1D tensor")
    return batch_sizes.tolist()


def layers(step, input, sizes, states, params, has_biases, num_layers, dropout, train,
           bidirectional, batch_first=False, thin=None):
    """Output and final states of a stack with a flat list of parameters."""
    projected = len(states) == 2 and states[0].shape[-1] != states[1].shape[-1]
    weights = gathered(params, has_biases, projected)
    if batch_first:
        input = input.transpose(0, 1)
    out, final = stacked(step, input, sizes, states, weights, num_layers, dropout, train,
                         bidirectional, thin)
    return (out.transpose(0, 1) if batch_first else out, *final)


def _check_pair(hx):
    if len(hx) != 2:
        raise ShapeError("lstm expects two hidden states")


def parameters(s, gates, hidden, input, layers=1, directions=1, biases=True, projected=0):
    """Small random parameters of a stack."""
    rows, width = gates * hidden, projected or hidden
    found = []
    for layer in range(layers):
        for _ in range(directions):
            size = input if layer == 0 else width * directions
            found += [s.real(rows, size), s.real(rows, width)]
            found += [s.real(rows), s.real(rows)] if biases else []
            found += [s.real(projected, hidden)] if projected else []
    return found


def _padded_samples(gates):
    def samples(s):
        yield s(s.real(3, 2, 3), s.real(1, 2, 2), parameters(s, gates, 2, 3), True, 1, 0.0, True,
                False, False)
        yield s(s.real(2, 3, 3), s.real(4, 2, 2),
                parameters(s, gates, 2, 3, 2, 2, biases=False), False, 2, 0.0, False, True, True)
    return samples


def _packed_samples(gates):
    def samples(s):
        sizes = s.int(3) * 0 + s.int(low=2, high=3)
        sizes[2] = 1
        yield s(s.real(5, 3), sizes, s.real(1, 2, 2), parameters(s, gates, 2, 3), True, 1, 0.0,
                True, False)
        yield s(s.real(5, 3), sizes, s.real(2, 2, 2), parameters(s, gates, 2, 3, 1, 2), True, 1,
                0.0, True, True)
    return samples


class lstm_input(Free):
    """Layers of long short-term memory over padded sequences: output, hidden states, cells."""

    schema = ("lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases,"
              " int num_layers, float dropout, bool train, bool bidirectional, bool batch_first)"
              " -> (Tensor, Tensor, Tensor)")
    tags = ("nondeterministic_seeded",)

    def compose(input, hx, params, *rest):
        _check_pair(hx)
        return layers(lstm_step, input, None, hx, params, *rest)

    def samples(s):
        yield s(s.real(3, 2, 3), [s.real(1, 2, 2), s.real(1, 2, 2)], parameters(s, 4, 2, 3), True,
                1, 0.0, True, False, False)
        yield s(s.real(2, 2, 3), [s.real(4, 2, 2), s.real(4, 2, 2)],
                parameters(s, 4, 2, 3, 2, 2, biases=False), False, 2, 0.0, False, True, True)
        yield s(s.real(2, 2, 3), [s.real(1, 2, 1), s.real(1, 2, 2)],
                parameters(s, 4, 2, 3, projected=1), True, 1, 0.0, False, False, False)


class lstm_data(Free):
    """Layers of long short-term memory over packed sequences."""

    schema = ("lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params,"
              " bool has_biases, int num_layers, float dropout, bool train, bool bidirectional)"
              " -> (Tensor, Tensor, Tensor)")
    tags = ("nondeterministic_seeded",)

    def compose(data, batch_sizes, hx, params, *rest):
        _check_pair(hx)
        return layers(lstm_step, data, _batch_sizes(batch_sizes), hx, params, *rest)

    def samples(s):
        for case in _packed_samples(4)(s):
            data, sizes, hx, *rest = case.args
            yield s(data, sizes, [hx, hx * 0.5], *rest)


class gru_input(Free):
    """Layers of gated recurrent units over padded sequences: output and hidden states."""

    schema = ("gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers,"
              " float dropout, bool train, bool bidirectional, bool batch_first)"
              " -> (Tensor, Tensor)")
    tags = ("nondeterministic_seeded",)
    samples = _padded_samples(3)

    def compose(input, hx, params, *rest):
        return layers(gru_step, input, None, [hx], params, *rest)


class gru_data(Free):
    """Layers of gated recurrent units over packed sequences."""

    schema = ("gru.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params,"
              " bool has_biases, int num_layers, float dropout, bool train, bool bidirectional)"
              " -> (Tensor, Tensor)")
    tags = ("nondeterministic_seeded",)
    samples = _packed_samples(3)

    def compose(data, batch_sizes, hx, params, *rest):
        return layers(gru_step, data, _batch_sizes(batch_sizes), [hx], params, *rest)


class rnn_tanh_input(Free):
    """Layers of simple recurrent networks over padded sequences: output and hidden states."""

    schema = ("rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases,"
              " int num_layers, float dropout, bool train, bool bidirectional, bool batch_first)"
              " -> (Tensor, Tensor)")
    tags = ("nondeterministic_seeded",)
    samples = _padded_samples(1)

    def compose(input, hx, params, *rest):
        return layers(tanh_step, input, None, [hx], params, *rest)


class rnn_tanh_data(Free):
    """Layers of simple recurrent networks over packed sequences."""

    schema = ("rnn_tanh.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params,"
              " bool has_biases, int num_layers, float dropout, bool train, bool bidirectional)"
              " -> (Tensor, Tensor)")
    tags = ("nondeterministic_seeded",)
    samples = _packed_samples(1)

    def compose(data, batch_sizes, hx, params, *rest):
        return layers(tanh_step, data, _batch_sizes(batch_sizes), [hx], params, *rest)


class rnn_relu_input(Free):
    """rnn_tanh.input with relu in place of tanh."""

    schema = ("rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases,"
              " int num_layers, float dropout, bool train, bool bidirectional, bool batch_first)"
              " -> (Tensor, Tensor)")
    tags = ("nondeterministic_seeded",)
    samples = _padded_samples(1)

    def compose(input, hx, params, *rest):
        return layers(relu_step, input, None, [hx], params, *rest)


class rnn_relu_data(Free):
    """rnn_tanh.data with relu in place of tanh."""

    schema = ("rnn_relu.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params,"
              " bool has_biases, int num_layers, float dropout, bool train, bool bidirectional)"
              " -> (Tensor, Tensor)")
    tags = ("nondeterministic_seeded",)
    samples = _packed_samples(1)

    def compose(data, batch_sizes, hx, params, *rest):
        return layers(relu_step, data, _batch_sizes(batch_sizes), [hx], params, *rest)


# ---------------------------------------------------------------------------------------------
# Packing


def _places(batch_sizes, count: int, batch: int, steps: int, batch_first: bool):
    """For each of `count` packed rows, its row among the (time, example) pairs of padded ones."""
    step = ops.repeat_interleave(batch_sizes, output_size=count)
    start = batch_sizes.cumsum(0) - batch_sizes
    row = ops.arange(count, device=batch_sizes.device) - start[step]
    return row * steps + step if batch_first else step * batch + row


def _checked_lengths(lengths, batch: int) -> list[int]:
    """Lengths as numbers, longest first."""
    if lengths.dtype.kind != "i" or lengths.ndim != 1:
        raise DTypeError("'lengths' argument should be a 1D CPU int64 tensor, but got "
                         f"{lengths.ndim}D {lengths.dtype} tensor")
    if len(lengths) != batch:
        raise ShapeError("Expected `len(lengths)` to be equal to batch_size, but got "
                         f"{len(lengths)} (batch_size={batch})")
    numbers = lengths.tolist()
    if any(n <= 0 for n in numbers):
        raise ShapeError("Length of all samples has to be greater than 0, but found an element in "
                         "'lengths' that is <= 0")
    if any(a < b for a, b in itertools.pairwise(numbers)):
        raise ShapeError("`lengths` array must be sorted in decreasing order when "
                         "`enforce_sorted` is True. You can pass `enforce_sorted=False` to "
                         "pack_padded_sequence and/or pack_sequence to sidestep this requirement "
                         "if you do not need ONNX exportability.")
    return numbers


class _pack_padded_sequence(Moving):
    """The rows of padded sequences without their padding, step by step, and the steps' sizes."""

    schema = ("_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first)"
              " -> (Tensor, Tensor)")
    kept = "values"
    grad = {"input": "_pack_padded_sequence_backward(grad, input.shape, result1, batch_first)"}
    linear = ("input",)
    nondiff = ("lengths",)
    diff_outputs = (True, False)
    method = False

    def run(xp, input, lengths, batch_first):
        if not input.size:
            raise ShapeError("Cannot pack empty tensors.")
        steps, batch = input.shape[1::-1] if batch_first else input.shape[:2]
        numbers = _checked_lengths(lengths, batch)
        if numbers[0] > steps:
            raise ShapeError(f"a sequence of length {numbers[0]} does not fit the {steps} steps of "
                             "the input")
        by_step = input.swapaxes(0, 1) if batch_first else input
        sizes = [sum(n > t for n in numbers) for t in range(numbers[0])]
        return (xp.concatenate([by_step[t, :size] for t, size in enumerate(sizes)]),
                xp.asarray(sizes, dtype=xp.int64))

    def shape(input, lengths, batch_first):
        raise DataDependentError("_pack_padded_sequence: the number of rows depends on the values "
                                 "of lengths, which a captured or fake tensor does not have")

    def batch(n, batched, input, lengths, batch_first):
        if batched[1]:
            raise DataDependentError("vmap: _pack_padded_sequence needs the same lengths for all "
                                     "examples")
        data, sizes = ops._pack_padded_sequence(input.movedim(0, -1), lengths, batch_first)
        return data.movedim(-1, 0), sizes.expand([n, *sizes.shape])

    def samples(s):
        lengths = s.tensor([3, 2, 2], s.int().dtype)
        yield s(s.real(3, 3, 2), lengths, False)
        yield s(s.real(3, 4, 2), lengths, True)
        yield s(s.real(4, 3), lengths, False)


class _pack_padded_sequence_backward(Composite):
    """Packed rows back in a padded tensor of zeros."""

    schema = ("_pack_padded_sequence_backward(Tensor grad, SymInt[] input_size, Tensor batch_sizes,"
              " bool batch_first) -> Tensor")
    method = function = False

    def compose(grad, input_size, batch_sizes, batch_first):
        steps, batch = input_size[1::-1] if batch_first else input_size[:2]
        sizes = batch_sizes.to(grad.device)
        places = _places(sizes, grad.shape[0], batch, steps, batch_first)
        return _spread(grad, places, steps * batch, 0).reshape(input_size)

    def samples(s):
        sizes = s.tensor([3, 3, 1], s.int().dtype)
        yield s(s.real(7, 2), [3, 3, 2], sizes, False)
        yield s(s.real(7, 2), [3, 4, 2], sizes, True)


def _spread(rows, places, count: int, fill):
    """`rows` at their places in a tensor of `count` rows that is `fill` elsewhere."""
    return ops.index_copy(ops.new_full(rows, [count, *rows.shape[1:]], fill), 0, places, rows)


class _pad_packed_sequence(Free):
    """Packed sequences with padding again, and their lengths."""

    schema = ("_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first,"
              " Scalar padding_value, int total_length) -> (Tensor, Tensor)")

    def compose(data, batch_sizes, batch_first, padding_value, total_length):
        sizes = _batch_sizes(batch_sizes)
        steps, batch = len(sizes), sizes[0]
        if total_length > 0:
            if total_length < steps:
                raise ShapeError("Expected total_length to be at least the length of the longest "
                                 f"sequence in input, but got total_length={total_length} and max "
                                 f"sequence length being {steps}")
            steps = total_length
        on_device = batch_sizes.to(data.device)
        places = _places(on_device, data.shape[0], batch, steps, batch_first)
        lead = [batch, steps] if batch_first else [steps, batch]
        out = _spread(data, places, steps * batch, padding_value).reshape(
            [*lead, *data.shape[1:]])
        return out, (ops.arange(batch, device=batch_sizes.device) < batch_sizes.unsqueeze(1)).sum(0)

    def samples(s):
        sizes = s.tensor([3, 3, 1], s.int().dtype)
        yield s(s.real(7, 2), sizes, False, 0.0, 0)
        yield s(s.real(7, 2), sizes, True, -1.0, 4)


class pad_sequence(ComplexComposite):
    """Sequences of different lengths in one tensor, padded at one end."""

    schema = ("pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0.,"
              " str padding_side=\"right\") -> Tensor")
    method = function = False

    def compose(sequences, batch_first, padding_value, padding_side):
        if not sequences:
            raise ShapeError("received an empty list of sequences")
        if padding_side not in ("left", "right"):
            raise ShapeError(f"Expected padding_side to be one of left or right, but got "
                             f"{padding_side}.")
        longest = max(t.shape[0] for t in sequences)
        padded = []
        for t in sequences:
            t = t.to(sequences[0].dtype)  # padding, too, is a number of that
            missing = longest - t.shape[0]
            ends = [missing, 0] if padding_side == "left" else [0, missing]
            pad = [0] * (2 * (t.ndim - 1)) + ends
            padded.append(ops.constant_pad_nd(t, pad, padding_value) if missing else t)
        return ops.stack(padded, 0 if batch_first else 1)

    def samples(s):
        yield s([s.real(2, 3), s.real(4, 3)])
        yield s([s.real(2), s.real(4), s.real(1)], True, 1.5, "left")
