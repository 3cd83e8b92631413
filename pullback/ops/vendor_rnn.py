"""Recurrent layers under the names that vendors' libraries gave them.

A stack of cuDNN or MIOpen has a number for its kind, one flat list of weights (in the order of
`lstm`, `weight_stride0` of them for each layer and direction) and, for packed sequences, the sizes
of the batch at each step.  oneDNN has operators for one layer in one direction, Apple's library for
an LSTM.  Their forwards are the layers of `rnn.py`, their backwards those of
`formulas/recurrent.py`, which run the steps again; what libraries reserve for their backward is
therefore empty here, but for the masks of dropout between layers.
"""

from __future__ import annotations

import math

from ..array import dtype as dt
from ..core.op import Composite
from ..errors import RefusedValue, ShapeError
from ..formulas.recurrent import (
    GRUStep,
    LSTMStep,
    ReluStep,
    TanhStep,
    pull_layer,
    pull_stack,
    record_layer,
    record_stack,
)
from ..table.packets import ops
from .kinds import Free
from .rnn import (
    Weights,
    gathered,
    gru_step,
    layers,
    lstm_step,
    parameters,
    relu_step,
    tanh_step,
)

_STEPS = ((relu_step, ReluStep), (tanh_step, TanhStep), (lstm_step, LSTMStep), (gru_step, GRUStep))
_GATES = 1, 1, 4, 3
_LSTM = 2  # the number of its kind


class VendorLayers(Free):
    """A stack of recurrent layers."""

    tags = ("nondeterministic_seeded",)


class VendorLayersBackward(Composite):
    """Gradients of a stack of recurrent layers."""

    method = function = False


def _empty(like, dtype=None):
    return ops.empty([0], dtype=dtype or like.dtype, device=like.device)


def _checked_kind(mode: int) -> int:
    if not 0 <= mode < len(_STEPS):
        raise RefusedValue(f"unrecognized rnn mode {mode}: 0 is relu, 1 tanh, 2 LSTM, 3 GRU")
    return mode


def _or_zeros(grad, like):
    return ops.zeros_like(like) if grad is None else grad


# ---------------------------------------------------------------------------------------------
# Dropout between layers: its masks are drawn in the forward and read in the backward


class _Masks:
    """Draws masks between layers, and keeps them as bytes."""

    def __init__(self):
        self.drawn = []

    def __call__(self, out, p: float):
        thinned, mask = ops.native_dropout(out, p, True)
        self.drawn.append(mask)
        return thinned

    def bytes(self, like):
        """All masks one behind the other; none where nothing was drawn."""
        if not self.drawn:
            return _empty(like, dt.uint8)
        return ops.cat([m.reshape([-1]) for m in self.drawn]).to(dt.uint8)


def _thinning(masks, p: float):
    """What lies between layers: the mask of each, and the scale of what it keeps."""
    scale = 0.0 if p == 1 else 1.0 / (1.0 - p)

    def thin(rows, layer: int):
        return rows if masks is None else ops.native_dropout_backward(rows, masks[layer], scale)

    return thin


def _read(reserve, shape, count: int, dropout: float, train: bool):
    """The masks of `count` gaps between layers, each of `shape`; None where there is no dropout."""
    if not train or dropout == 0 or not count:
        return None
    size = math.prod(shape)
    if reserve.numel() != size * count:
        raise ShapeError(f"the reserve has {reserve.numel()} bytes, but the masks of dropout have "
                         f"{size * count}: pass the one that the forward with train=True gave")
    return [part.reshape(shape).to(dt.bool_) for part in ops.chunk(reserve, count, 0)]


# ---------------------------------------------------------------------------------------------
# cuDNN and MIOpen


def _has_biases(weight, stride: int, projected: bool, slots: int) -> bool:
    """Do layers have biases?  There are `stride` weights for each of `slots` layers."""
    count = stride - bool(projected)
    if count not in (2, 4) or len(weight) != stride * slots:
        raise ShapeError(f"{slots} layers and directions with {stride} weights each do not have "
                         f"{len(weight)} weights: each has two matrices, then two biases or none, "
                         "then a projection where proj_size is not 0")
    return count == 4


def _check_states(hx, cx, mode: int, hidden_size, proj_size):
    if (cx is None) == (mode == _LSTM):
        raise RefusedValue("rnn: illegal defined cx for non-LSTM RNN" if mode != _LSTM else
                           "rnn: an LSTM needs cx, its cells")
    for name, state, wanted in (("hx", hx, proj_size or hidden_size), ("cx", cx, hidden_size)):
        if state is not None and (state.ndim != 3 or state.shape[2] != wanted):
            raise ShapeError(f"rnn: expected {name} of shape (layers, batch, {wanted}), got "
                             f"{list(state.shape)}")


def _stack(input, weight, stride, hx, cx, mode, hidden_size, proj_size, num_layers, batch_first,
           dropout, train, bidirectional, batch_sizes):
    """Output, final states and cells, and the masks between layers as bytes."""
    step = _STEPS[_checked_kind(mode)][0]
    _check_states(hx, cx, mode, hidden_size, proj_size)
    has_biases = _has_biases(weight, stride, proj_size != 0, num_layers * (1 + bidirectional))
    packed, masks = list(batch_sizes) or None, _Masks()
    out, hy, *cells = layers(step, input, packed, [hx] if cx is None else [hx, cx], weight,
                             has_biases, num_layers, dropout, train, bidirectional,
                             batch_first and packed is None, masks)
    return out, hy, cells[0] if cells else _empty(hx), masks.bytes(input)


def _packed(weight):
    """All weights in one row: the matrices of all layers, then their biases."""
    parts = [w for w in weight if w.ndim > 1] + [w for w in weight if w.ndim == 1]
    return ops.cat([w.reshape([-1]) for w in parts])


class _cudnn_rnn(VendorLayers):
    """A stack of recurrent layers, as cuDNN offers it; also its reserve and its packed weights."""

    schema = ("_cudnn_rnn(Tensor input, Tensor[] weight, int weight_stride0, Tensor? weight_buf,"
              " Tensor hx, Tensor? cx, int mode, SymInt hidden_size, SymInt proj_size,"
              " int num_layers, bool batch_first, float dropout, bool train, bool bidirectional,"
              " SymInt[] batch_sizes, Tensor? dropout_state)"
              " -> (Tensor, Tensor, Tensor, Tensor, Tensor)")

    def compose(input, weight, weight_stride0, weight_buf, hx, cx, mode, hidden_size, proj_size,
                num_layers, batch_first, dropout, train, bidirectional, batch_sizes,
                dropout_state):
        results = _stack(input, weight, weight_stride0, hx, cx, mode, hidden_size, proj_size,
                         num_layers, batch_first, dropout, train, bidirectional, batch_sizes)
        if weight_buf is None:
            return *results, _packed(weight).detach()
        return *results, weight_buf.detach()

    def samples(s):
        for case in _stacks(s):
            weight, stride, states, numbers, proj, rest, sizes = case[1:]
            yield s(case[0], weight, stride, None, *states, numbers[0], numbers[1], proj, *rest,
                    sizes, None)


class miopen_rnn(VendorLayers):
    """A stack of recurrent layers, as MIOpen offers it; also its reserve and its packed weights."""

    schema = ("miopen_rnn(Tensor input, Tensor[] weight, int weight_stride0, Tensor hx,"
              " Tensor? cx, int mode, int hidden_size, int num_layers, bool batch_first,"
              " float dropout, bool train, bool bidirectional, int[] batch_sizes,"
              " Tensor? dropout_state) -> (Tensor, Tensor, Tensor, Tensor, Tensor)")

    def compose(input, weight, weight_stride0, hx, cx, mode, hidden_size, num_layers, batch_first,
                dropout, train, bidirectional, batch_sizes, dropout_state):
        return (*_stack(input, weight, weight_stride0, hx, cx, mode, hidden_size, 0, num_layers,
                        batch_first, dropout, train, bidirectional, batch_sizes),
                _packed(weight).detach())

    def samples(s):
        for case in _stacks(s):
            weight, stride, states, numbers, proj, rest, sizes = case[1:]
            if not proj:
                yield s(case[0], weight, stride, *states, *numbers, *rest, sizes, None)


def _stacks(s):
    """Input, weights, their stride, states, (mode, hidden size), projection, the rest, sizes."""
    def states(mode, *shape, proj=0):
        hx = s.real(*shape[:2], proj or shape[2])
        return hx, s.real(*shape) if mode == _LSTM else None

    for mode, gates in enumerate(_GATES):
        yield (s.real(3, 2, 3), parameters(s, gates, 2, 3), 4, states(mode, 1, 2, 2), (mode, 2), 0,
               (1, False, 0.0, True, False), [])
    yield (s.real(2, 3, 3), parameters(s, 4, 2, 3, 2, 2, biases=False), 2, states(2, 4, 2, 2),
           (2, 2), 0, (2, True, 0.0, False, True), [])
    yield (s.real(5, 3), parameters(s, 3, 2, 3, 1, 2), 4, states(3, 2, 2, 2), (3, 2), 0,
           (1, False, 0.0, True, True), [2, 2, 1])
    yield (s.real(2, 2, 3), parameters(s, 4, 2, 3, projected=1), 5, states(2, 1, 2, 2, proj=1),
           (2, 2), 1, (1, False, 0.0, False, False), [])


def _stack_grads(input, weight, stride, hx, cx, grads, mode, hidden_size, proj_size, num_layers,
                 batch_first, dropout, train, bidirectional, batch_sizes, reserve, output_mask):
    """Gradients of input, states, cells and weights, as the mask asks."""
    step = _STEPS[_checked_kind(mode)][1]
    _check_states(hx, cx, mode, hidden_size, proj_size)
    directions = 1 + bidirectional
    has_biases = _has_biases(weight, stride, proj_size != 0, num_layers * directions)
    weights = gathered(weight, has_biases, proj_size != 0)
    turned = batch_first and not batch_sizes
    by_time = input.transpose(0, 1) if turned else input
    sizes = list(batch_sizes) or [by_time.shape[1]] * by_time.shape[0]
    rows = by_time.reshape([-1, by_time.shape[-1]])
    width = directions * (proj_size or hidden_size)
    thin = _thinning(_read(reserve, [rows.shape[0], width], num_layers - 1, dropout, train),
                     dropout)
    states = [hx] if cx is None else [hx, cx]
    out, _, notes = record_stack(step, rows, sizes, states, weights, directions, thin)
    own, *for_states = grads
    if own is not None and turned:
        own = own.transpose(0, 1)
    own = ops.zeros_like(out) if own is None else own.reshape(out.shape)
    for_states = [_or_zeros(g, state) for g, state in zip(for_states, states)]
    for_rows, for_states, for_weights = pull_stack(step, notes, sizes, weights, directions, thin,
                                                   own, for_states)
    for_input = for_rows.reshape(by_time.shape)
    for_input = for_input.transpose(0, 1) if turned else for_input
    found = for_input, for_states[0], for_states[1] if cx is not None else None
    return (*(g if wanted else None for g, wanted in zip(found, output_mask)),
            for_weights if output_mask[3] else [])


class VendorStackBackward(VendorLayersBackward):
    """Gradients of a stack of recurrent layers for input, states, cells and weights."""

    of: type[VendorLayers]

    @classmethod
    def samples(cls, s):
        for case in cls.of.samples(s):
            out, hy, cy, reserve, packed = getattr(ops, cls.of.base_name)(*case.args)
            args = list(case.args)
            if cls.of is _cudnn_rnn:
                del args[3]
            input, weight, stride, hx, cx, *rest = args
            cells = s.real(*cy.shape) if cx is not None else None
            yield s(input, weight, stride, packed, hx, cx, out, s.real(*out.shape),
                    s.real(*hy.shape), cells, *rest, reserve, [True] * 4)


class _cudnn_rnn_backward(VendorStackBackward):
    """Gradients of `_cudnn_rnn` for input, states, cells and weights, as the mask asks."""

    of = _cudnn_rnn
    schema = ("_cudnn_rnn_backward(Tensor input, Tensor[] weight, int weight_stride0,"
              " Tensor weight_buf, Tensor hx, Tensor? cx, Tensor output, Tensor? grad_output,"
              " Tensor? grad_hy, Tensor? grad_cy, int mode, SymInt hidden_size, SymInt proj_size,"
              " int num_layers, bool batch_first, float dropout, bool train, bool bidirectional,"
              " SymInt[] batch_sizes, Tensor? dropout_state, Tensor reserve, bool[4] output_mask)"
              " -> (Tensor, Tensor, Tensor, Tensor[])")

    def compose(input, weight, weight_stride0, weight_buf, hx, cx, output, grad_output, grad_hy,
                grad_cy, mode, hidden_size, proj_size, num_layers, batch_first, dropout, train,
                bidirectional, batch_sizes, dropout_state, reserve, output_mask):
        return _stack_grads(input, weight, weight_stride0, hx, cx, (grad_output, grad_hy, grad_cy),
                            mode, hidden_size, proj_size, num_layers, batch_first, dropout, train,
                            bidirectional, batch_sizes, reserve, output_mask)


class miopen_rnn_backward(VendorStackBackward):
    """Gradients of `miopen_rnn` for input, states, cells and weights, as the mask asks."""

    of = miopen_rnn
    schema = ("miopen_rnn_backward(Tensor input, Tensor[] weight, int weight_stride0,"
              " Tensor weight_buf, Tensor hx, Tensor? cx, Tensor output, Tensor? grad_output,"
              " Tensor? grad_hy, Tensor? grad_cy, int mode, int hidden_size, int num_layers,"
              " bool batch_first, float dropout, bool train, bool bidirectional, int[] batch_sizes,"
              " Tensor? dropout_state, Tensor reserve, bool[4] output_mask)"
              " -> (Tensor, Tensor, Tensor, Tensor[])")

    def compose(input, weight, weight_stride0, weight_buf, hx, cx, output, grad_output, grad_hy,
                grad_cy, mode, hidden_size, num_layers, batch_first, dropout, train, bidirectional,
                batch_sizes, dropout_state, reserve, output_mask):
        return _stack_grads(input, weight, weight_stride0, hx, cx, (grad_output, grad_hy, grad_cy),
                            mode, hidden_size, 0, num_layers, batch_first, dropout, train,
                            bidirectional, batch_sizes, reserve, output_mask)


class _cudnn_rnn_flatten_weight(Free):
    """All weights of a stack in one row: the matrices of all layers, then their biases."""

    schema = ("_cudnn_rnn_flatten_weight(Tensor[] weight_arr, int weight_stride0,"
              " SymInt input_size, int mode, SymInt hidden_size, SymInt proj_size, int num_layers,"
              " bool batch_first, bool bidirectional) -> Tensor")

    def compose(weight_arr, weight_stride0, *rest):
        return _packed(weight_arr)

    samples = lambda s: [s(parameters(s, 4, 2, 3), 4, 3, 2, 2, 0, 1, False, False)]


class _cudnn_init_dropout_state(Free):
    """The state of cuDNN's generator: empty, for dropout draws from that of the library here."""

    schema = ("_cudnn_init_dropout_state(float dropout, bool train, int dropout_seed, *,"
              " ScalarType? dtype=None, Layout? layout=None, Device? device=None,"
              " bool? pin_memory=False) -> Tensor")

    def compose(dropout, train, dropout_seed, dtype, layout, device, pin_memory):
        return ops.empty([0], dtype=dtype or dt.uint8, device=device)

    samples = lambda s: [s(0.5, True, 0)]


# ---------------------------------------------------------------------------------------------
# oneDNN: one layer in one direction; time is the first dim whatever `batch_first` says


def _one_layer(input, hx, cx, weight, mode, has_biases, batch_sizes):
    """Rows, sizes, states and weights of the layer."""
    sizes = list(batch_sizes) or [input.shape[1]] * input.shape[0]
    states = (hx, cx) if mode == _LSTM else (hx,)
    return (input.reshape([-1, input.shape[-1]]), sizes,
            tuple(s.reshape([-1, s.shape[-1]]) for s in states),
            Weights(*weight) if has_biases else Weights(*weight[:2]))


class mkldnn_rnn_layer(VendorLayers):
    """A recurrent layer in one direction, as oneDNN offers it; also its work space, here empty."""

    schema = ("mkldnn_rnn_layer(Tensor input, Tensor weight0, Tensor weight1, Tensor weight2,"
              " Tensor weight3, Tensor hx_, Tensor cx_, bool reverse, int[] batch_sizes, int mode,"
              " int hidden_size, int num_layers, bool has_biases, bool bidirectional,"
              " bool batch_first, bool train) -> (Tensor, Tensor, Tensor, Tensor)")
    autocast = "lower"
    tags = ()

    def compose(input, weight0, weight1, weight2, weight3, hx_, cx_, reverse, batch_sizes, mode,
                hidden_size, num_layers, has_biases, bidirectional, batch_first, train):
        step = _STEPS[_checked_kind(mode)][1]
        rows, sizes, states, weights = _one_layer(
            input, hx_, cx_, (weight0, weight1, weight2, weight3), mode, has_biases, batch_sizes)
        out, final, _ = record_layer(step, weights, rows, sizes, states, reverse)
        cy = final[1].reshape(cx_.shape) if mode == _LSTM else ops.zeros_like(cx_)
        return (out.reshape([*input.shape[:-1], out.shape[-1]]), final[0].reshape(hx_.shape), cy,
                _empty(input, dt.uint8))

    def samples(s):
        for reverse, biases, shape in ((False, True, (1, 2, 2)), (True, False, (2, 2))):
            yield s(s.real(3, 2, 3), s.real(8, 3), s.real(8, 2), s.real(8), s.real(8),
                    s.real(*shape), s.real(*shape), reverse, [], _LSTM, 2, 1, biases, False, False,
                    True)
        yield s(s.real(5, 3), s.real(6, 3), s.real(6, 2), s.real(6), s.real(6), s.real(2, 2),
                s.real(2, 2), True, [2, 2, 1], 3, 2, 1, True, False, False, False)


class mkldnn_rnn_layer_backward(VendorLayersBackward):
    """Gradients of `mkldnn_rnn_layer` for input, weights, hidden state and cell."""

    schema = ("mkldnn_rnn_layer_backward(Tensor input, Tensor weight1, Tensor weight2,"
              " Tensor weight3, Tensor weight4, Tensor hx_, Tensor cx_tmp, Tensor output,"
              " Tensor hy_, Tensor cy_, Tensor? grad_output, Tensor? grad_hy, Tensor? grad_cy,"
              " bool reverse, int mode, int hidden_size, int num_layers, bool has_biases,"
              " bool train, bool bidirectional, int[] batch_sizes, bool batch_first,"
              " Tensor workspace) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)")

    def compose(input, weight1, weight2, weight3, weight4, hx_, cx_tmp, output, hy_, cy_,
                grad_output, grad_hy, grad_cy, reverse, mode, hidden_size, num_layers, has_biases,
                train, bidirectional, batch_sizes, batch_first, workspace):
        step = _STEPS[_checked_kind(mode)][1]
        rows, sizes, states, weights = _one_layer(
            input, hx_, cx_tmp, (weight1, weight2, weight3, weight4), mode, has_biases,
            batch_sizes)
        out, _, notes = record_layer(step, weights, rows, sizes, states, reverse)
        own = _or_zeros(grad_output, out).reshape(out.shape)
        given = tuple(_or_zeros(g, state).reshape(state.shape)
                      for g, state in zip((grad_hy, grad_cy), states))
        for_rows, for_states, grads = pull_layer(step, weights, rows, sizes, notes, own, given)
        if not has_biases:
            grads = [*grads, ops.zeros_like(weight3), ops.zeros_like(weight4)]
        cells = (for_states[1].reshape(cx_tmp.shape) if mode == _LSTM
                 else ops.zeros_like(cx_tmp))
        return for_rows.reshape(input.shape), *grads, for_states[0].reshape(hx_.shape), cells

    def samples(s):
        for case in mkldnn_rnn_layer.samples(s):
            (*tensors, reverse, sizes, mode, hidden_size, num_layers, has_biases, bidirectional,
             batch_first, train) = case.args
            out, hy, cy, space = ops.mkldnn_rnn_layer(*case.args)
            yield s(*tensors, out, hy, cy, s.real(*out.shape), s.real(*hy.shape),
                    s.real(*cy.shape), reverse, mode, hidden_size, num_layers, has_biases, train,
                    bidirectional, sizes, batch_first, space)


# ---------------------------------------------------------------------------------------------
# Apple's library: LSTM


def _history(found, part: int):
    """One tensor (layers, time, batch, numbers) of a part of what each step of a stack has left."""
    def by_time(notes):
        ordered = sorted(notes, key=lambda note: note.time)
        return ops.stack([note.kept[part] for note in ordered], 0)

    return ops.stack([ops.cat([by_time(notes) for notes in layer.notes], -1)
                      for layer in found], 0).detach()


class _lstm_mps(VendorLayers):
    """Layers of long short-term memory, as Apple's library offers them.

    Behind output, hidden states and cells come, while training, the activated gates of all steps in
    the order i, f, g, o, the cells of all steps, and the outputs of all layers as the next one sees
    them, each with layers and time in front; in evaluation these are empty.
    """

    schema = ("_lstm_mps(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases,"
              " int num_layers, float dropout, bool train, bool bidirectional, bool batch_first)"
              " -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)")

    def compose(input, hx, params, has_biases, num_layers, dropout, train, bidirectional,
                batch_first):
        if not train:
            results = ops.lstm(input, hx, params, has_biases, num_layers, dropout, train,
                               bidirectional, batch_first)
            return *results, _empty(input), _empty(input), _empty(input)
        by_time, rows, sizes, weights = _lstm_case(input, hx, params, has_biases, num_layers,
                                                   bidirectional, batch_first)

        def thin(out, layer):
            return ops.dropout(out, dropout, True)

        out, final, found = record_stack(LSTMStep, rows, sizes, hx, weights, 1 + bidirectional, thin)
        cells, gates = _history(found, 1), _history(found, 2)
        lead = list(by_time.shape[:2])
        outputs = ops.stack([layer.out.reshape([*lead, -1]) for layer in found], 0).detach()
        out = out.reshape([*lead, out.shape[-1]])
        return (out.transpose(0, 1) if batch_first else out, *final, gates, cells, outputs)

    def samples(s):
        yield s(s.real(3, 2, 3), [s.real(1, 2, 2), s.real(1, 2, 2)], parameters(s, 4, 2, 3), True,
                1, 0.0, True, False, False)
        yield s(s.real(2, 2, 3), [s.real(4, 2, 2), s.real(4, 2, 2)],
                parameters(s, 4, 2, 3, 2, 2, biases=False), False, 2, 0.0, True, True, True)
        yield s(s.real(2, 2, 3), [s.real(1, 2, 2), s.real(1, 2, 2)], parameters(s, 4, 2, 3), True,
                1, 0.5, False, False, False)


def _lstm_case(input, hx, params, has_biases, num_layers, bidirectional, batch_first):
    """The input with time first, its rows, the batch's size at each step, and the weights."""
    if len(hx) != 2:
        raise ShapeError("lstm expects two hidden states")
    weights = gathered(params, has_biases, False)
    if len(weights) != num_layers * (1 + bidirectional):
        raise ShapeError(f"{num_layers * (1 + bidirectional)} layers and directions do not have "
                         f"{len(params)} parameters")
    by_time = input.transpose(0, 1) if batch_first else input
    rows = by_time.reshape([-1, by_time.shape[-1]])
    return by_time, rows, [by_time.shape[1]] * by_time.shape[0], weights


class lstm_mps_backward(VendorLayersBackward):
    """Gradients of `_lstm_mps` for input, states and parameters.

    It runs the steps again.  Where there was dropout, elements that it set to zero are those that
    are zero in the outputs of layers.
    """

    schema = ("lstm_mps_backward(Tensor? grad_y, Tensor? grad_hy, Tensor? grad_cy, Tensor z_state,"
              " Tensor cell_state_fwd, Tensor input, Tensor layersOutputs, Tensor[] hx,"
              " Tensor[] params, bool has_biases, int num_layers, float dropout, bool train,"
              " bool bidirectional, bool batch_first) -> (Tensor, Tensor[], Tensor[])")

    def compose(grad_y, grad_hy, grad_cy, z_state, cell_state_fwd, input, layersOutputs, hx,
                params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
        by_time, rows, sizes, weights = _lstm_case(input, hx, params, has_biases, num_layers,
                                                   bidirectional, batch_first)
        directions, masks = 1 + bidirectional, None
        if train and dropout != 0 and num_layers > 1:
            shape = [num_layers, rows.shape[0], directions * hx[0].shape[-1]]
            if layersOutputs.numel() != math.prod(shape):
                raise ShapeError(f"layersOutputs has shape {list(layersOutputs.shape)}: pass the "
                                 "last result of _lstm_mps with train=True")
            masks = ops.unbind(layersOutputs.reshape(shape) != 0, 0)
        thin = _thinning(masks, dropout)
        out, _, notes = record_stack(LSTMStep, rows, sizes, hx, weights, directions, thin)
        if grad_y is not None and batch_first:
            grad_y = grad_y.transpose(0, 1)
        own = ops.zeros_like(out) if grad_y is None else grad_y.reshape(out.shape)
        given = [_or_zeros(g, state) for g, state in zip((grad_hy, grad_cy), hx)]
        for_rows, for_states, for_params = pull_stack(LSTMStep, notes, sizes, weights, directions,
                                                      thin, own, given)
        for_input = for_rows.reshape(by_time.shape)
        return (for_input.transpose(0, 1) if batch_first else for_input, for_states, for_params)

    def samples(s):
        for case in _lstm_mps.samples(s):
            input, hx, params, *rest = case.args
            out, hy, cy, gates, cells, outputs = ops._lstm_mps(*case.args)
            yield s(s.real(*out.shape), s.real(*hy.shape), s.real(*cy.shape), gates, cells, input,
                    outputs, hx, params, *rest)
