"""Fused recurrent cells: everything of a step after its two linear maps, as one operator.

They save most of the cost of small steps in eager programs; capture takes them apart.  The gates
after their activations are returned too (`workspace`) and are what the backward operators need.
Formulas are in `formulas/rnn.py`; the layers that use the cells are in `ops/rnn.py`.
"""

from __future__ import annotations

from ..core.op import Composite, Op
from ..errors import ShapeError
from ..formulas.rnn import gru_cell_pull, lstm_cell_pull
from ..table.packets import ops


def _summed(xp, first, *rest):
    """A sum in which terms may be missing."""
    total = first
    for term in rest:
        if term is not None:
            total = xp.add(total, term)
    return total.copy() if total is first else total


def _sigmoid(xp, value):
    """1 / (1 + exp(-x)), into `value` itself."""
    xp.negative(value, out=value)
    xp.exp(value, out=value)
    value += 1
    xp.reciprocal(value, out=value)


def _columns(array, count):
    """Equal parts of the columns, as views."""
    width, rest = divmod(array.shape[1], count)
    if rest:
        raise ShapeError(f"{array.shape[1]} columns are not {count} equal parts")
    return [array[:, k * width:(k + 1) * width] for k in range(count)]


def _check_gates(input_gates, hidden_gates, state, count):
    expected = (state.shape[0], count * state.shape[1])
    for name, gates in (("input", input_gates), ("hidden", hidden_gates)):
        if tuple(gates.shape) != expected:
            raise ShapeError(f"{name}_gates should have shape {list(expected)}, got "
                             f"{list(gates.shape)}")


class FusedStep(Op):
    """A step of a recurrent cell behind its linear maps, or the gradients of one."""

    complex = None
    cost = "cheap"
    method = function = False


class FusedCell(FusedStep):
    """A step from `gates` gates of inputs and as many of the hidden state."""

    same_dtype = ("input_gates", "hidden_gates")
    gates: int

    @classmethod
    def samples(cls, s):
        width = 3 * cls.gates
        yield s(s.real(2, width), s.real(2, width), s.real(2, 3))
        yield s(s.real(2, width), s.real(width, 2).T, s.real(2, 3), s.real(width), s.real(width))
        yield s(s.real(0, width), s.real(0, width), s.real(0, 3))


# ---------------------------------------------------------------------------------------------
# LSTM


class _thnn_fused_lstm_cell(FusedCell):
    """New hidden state and cell from the gates of an LSTM; also the activated gates."""

    schema = ("_thnn_fused_lstm_cell(Tensor input_gates, Tensor hidden_gates, Tensor cx,"
              " Tensor? input_bias=None, Tensor? hidden_bias=None) -> (Tensor, Tensor, Tensor)")
    native = "lstm_cell"
    gates = 4
    or_float32 = ("cx",)
    grad = {"input_gates, hidden_gates, cx, input_bias, hidden_bias": (
        "lstm_cell_grads(grads, cx, result1, result2, is_grad_enabled(),"
        " _thnn_fused_lstm_cell_backward_impl)")}
    push = {"result0, result1, result2": (
        "lstm_cell_push(input_gates_t, hidden_gates_t, cx_p, cx_t, input_bias_t, hidden_bias_t,"
        " result1, result2)")}

    def run(xp, input_gates, hidden_gates, cx, input_bias, hidden_bias):
        _check_gates(input_gates, hidden_gates, cx, 4)
        work = _summed(xp, input_gates, hidden_gates, input_bias, hidden_bias)
        write, keep, new, show = _columns(work, 4)
        turned = xp.tanh(new)
        _sigmoid(xp, work)  # all at once is faster than the three parts that want it
        new[...] = turned
        cy = keep * cx
        cy += write * new
        hy = xp.tanh(cy)
        hy *= show
        return hy, cy, work

    def shape(input_gates, hidden_gates, cx, input_bias, hidden_bias):
        _check_gates(input_gates, hidden_gates, cx, 4)
        return [tuple(cx.shape), tuple(cx.shape), tuple(input_gates.shape)]

    def decomp(input_gates, hidden_gates, cx, input_bias=None, hidden_bias=None):
        gates = input_gates + hidden_gates
        for bias in (input_bias, hidden_bias):
            gates = gates if bias is None else gates + bias
        write, keep, new, show = ops.chunk(gates, 4, 1)
        write, keep, new, show = write.sigmoid(), keep.sigmoid(), new.tanh(), show.sigmoid()
        cy = keep * cx + write * new
        return show * cy.tanh(), cy, ops.cat([write, keep, new, show], 1)


class _thnn_fused_lstm_cell_backward_impl(FusedStep):
    """Gradients of the gates, the cell and (summed) the bias of an LSTM cell."""

    schema = ("_thnn_fused_lstm_cell_backward_impl(Tensor? grad_hy, Tensor? grad_cy, Tensor cx,"
              " Tensor cy, Tensor workspace, bool has_bias) -> (Tensor, Tensor, Tensor)")
    native = "lstm_cell_backward"
    same_dtype = ("workspace",)
    or_float32 = ("grad_hy", "grad_cy", "cx", "cy")

    def run(xp, grad_hy, grad_cy, cx, cy, workspace, has_bias):
        write, keep, new, show = _columns(workspace, 4)
        level = xp.tanh(cy)
        out = xp.empty_like(workspace)
        for_write, for_keep, for_new, for_show = _columns(out, 4)
        if grad_hy is None:
            for_cell = grad_cy.copy()
            for_show[...] = 0
        else:
            for_cell = grad_hy * show
            for_cell *= 1 - level * level
            if grad_cy is not None:
                for_cell += grad_cy
            xp.multiply(grad_hy, level, out=for_show)
            for_show *= show * (1 - show)
        xp.multiply(for_cell, new, out=for_write)
        for_write *= write * (1 - write)
        xp.multiply(for_cell, cx, out=for_keep)
        for_keep *= keep * (1 - keep)
        xp.multiply(for_cell, write, out=for_new)
        for_new *= 1 - new * new
        for_cell *= keep
        return out, for_cell, out.sum(axis=0) if has_bias else None

    def shape(grad_hy, grad_cy, cx, cy, workspace, has_bias):
        return [tuple(workspace.shape), tuple(cx.shape),
                (workspace.shape[1],) if has_bias else None]

    def dtype(grad_hy, grad_cy, cx, cy, workspace, has_bias):
        return [cx.dtype] * 3

    def decomp(grad_hy, grad_cy, cx, cy, workspace, has_bias):
        gates, for_cx = lstm_cell_pull((grad_hy, grad_cy, None), cx, cy, workspace)
        return gates, for_cx, gates.sum(0) if has_bias else None

    def samples(s):
        yield s(s.real(2, 3), s.real(2, 3), s.real(2, 3), s.real(2, 3), s.real(2, 12), True)
        yield s(s.real(2, 3), None, s.real(2, 3), s.real(2, 3), s.real(2, 12), False)
        yield s(None, s.real(2, 3), s.real(2, 3), s.real(2, 3), s.real(2, 12), True)


class _thnn_fused_lstm_cell_backward(Composite):
    """Gradients of all arguments of _thnn_fused_lstm_cell."""

    schema = ("_thnn_fused_lstm_cell_backward(Tensor? grad_hy, Tensor? grad_cy, Tensor cx,"
              " Tensor cy, Tensor workspace, bool has_bias)"
              " -> (Tensor, Tensor, Tensor, Tensor, Tensor)")
    method = function = False

    def compose(grad_hy, grad_cy, cx, cy, workspace, has_bias):
        gates, for_cx = lstm_cell_pull((grad_hy, grad_cy, None), cx, cy, workspace)
        bias = gates.sum(0) if has_bias else None
        return gates, gates, for_cx, bias, bias

    def samples(s):
        yield s(s.real(2, 3), s.real(2, 3), s.real(2, 3), s.real(2, 3), s.real(2, 12), True)


class _thnn_differentiable_lstm_cell_backward(Composite):
    """Gradients of all arguments of _thnn_fused_lstm_cell, from the gates themselves."""

    schema = ("_thnn_differentiable_lstm_cell_backward(Tensor? grad_hy, Tensor? grad_cy,"
              " Tensor input_gates, Tensor hidden_gates, Tensor? input_bias, Tensor? hidden_bias,"
              " Tensor cx, Tensor cy) -> (Tensor, Tensor, Tensor, Tensor, Tensor)")
    same_dtype = ("grad_hy", "grad_cy", "input_gates", "hidden_gates", "input_bias", "hidden_bias", "cx", "cy")
    method = function = False

    def compose(grad_hy, grad_cy, input_gates, hidden_gates, input_bias, hidden_bias, cx, cy):
        work = ops._thnn_fused_lstm_cell(input_gates, hidden_gates, cx, input_bias, hidden_bias)[2]
        gates, for_cx = lstm_cell_pull((grad_hy, grad_cy, None), cx, cy, work)
        bias = None if input_bias is None else gates.sum(0)
        return gates, gates, for_cx, bias, bias

    def samples(s):
        yield s(s.real(2, 3), s.real(2, 3), s.real(2, 12), s.real(2, 12), s.real(12), s.real(12),
                s.real(2, 3), s.real(2, 3))


# ---------------------------------------------------------------------------------------------
# GRU


class _thnn_fused_gru_cell(FusedCell):
    """New hidden state from the gates of a GRU; also its activated gates and what they met."""

    schema = ("_thnn_fused_gru_cell(Tensor input_gates, Tensor hidden_gates, Tensor hx,"
              " Tensor? input_bias=None, Tensor? hidden_bias=None) -> (Tensor, Tensor)")
    native = "gru_cell"
    gates = 3
    or_float32 = ("hx",)
    grad = {"input_gates, hidden_gates, hx, input_bias, hidden_bias": (
        "gru_cell_grads(grads, result1, is_grad_enabled(), _thnn_fused_gru_cell_backward)")}
    push = {"result0, result1": (
        "gru_cell_push(input_gates_t, hidden_gates_t, hx_t, input_bias_t, hidden_bias_t,"
        " result1)")}

    def run(xp, input_gates, hidden_gates, hx, input_bias, hidden_bias):
        _check_gates(input_gates, hidden_gates, hx, 3)
        width = hx.shape[1]
        a = _summed(xp, input_gates, input_bias)
        b = hidden_gates if hidden_bias is None else hidden_gates + hidden_bias
        work = xp.empty((hx.shape[0], 5 * width), dtype=hx.dtype)
        reset, keep, new, hidden, inner = _columns(work, 5)
        xp.add(a[:, :2 * width], b[:, :2 * width], out=work[:, :2 * width])
        _sigmoid(xp, work[:, :2 * width])
        hidden[...] = hx
        inner[...] = b[:, 2 * width:]
        xp.multiply(reset, inner, out=new)
        new += a[:, 2 * width:]
        xp.tanh(new, out=new)
        hy = hx - new
        hy *= keep
        hy += new
        return hy, work

    def shape(input_gates, hidden_gates, hx, input_bias, hidden_bias):
        _check_gates(input_gates, hidden_gates, hx, 3)
        return [tuple(hx.shape), (hx.shape[0], 5 * hx.shape[1])]

    def decomp(input_gates, hidden_gates, hx, input_bias=None, hidden_bias=None):
        a = input_gates if input_bias is None else input_gates + input_bias
        b = hidden_gates if hidden_bias is None else hidden_gates + hidden_bias
        reset_i, keep_i, new_i = ops.chunk(a, 3, 1)
        reset_h, keep_h, inner = ops.chunk(b, 3, 1)
        reset, keep = (reset_i + reset_h).sigmoid(), (keep_i + keep_h).sigmoid()
        new = (new_i + reset * inner).tanh()
        return (hx - new) * keep + new, ops.cat([reset, keep, new, hx, inner], 1)


class _thnn_fused_gru_cell_backward(FusedStep):
    """Gradients of both sets of gates, the hidden state and (summed) the biases of a GRU cell."""

    schema = ("_thnn_fused_gru_cell_backward(Tensor grad_hy, Tensor workspace, bool has_bias)"
              " -> (Tensor, Tensor, Tensor, Tensor, Tensor)")
    native = "gru_cell_backward"
    same_dtype = ("workspace",)
    or_float32 = ("grad_hy",)

    def run(xp, grad_hy, workspace, has_bias):
        reset, keep, new, hidden, inner = _columns(workspace, 5)
        shape = (workspace.shape[0], 3 * grad_hy.shape[1])
        first, second = (xp.empty(shape, dtype=workspace.dtype) for _ in range(2))
        for_reset, for_keep, before = _columns(first, 3)
        xp.multiply(grad_hy, 1 - keep, out=before)
        before *= 1 - new * new
        xp.multiply(before, inner, out=for_reset)
        for_reset *= reset * (1 - reset)
        xp.multiply(grad_hy, hidden - new, out=for_keep)
        for_keep *= keep * (1 - keep)
        width = grad_hy.shape[1]
        second[:, :2 * width] = first[:, :2 * width]
        xp.multiply(before, reset, out=second[:, 2 * width:])
        sums = (first.sum(axis=0), second.sum(axis=0)) if has_bias else (None, None)
        return first, second, grad_hy * keep, *sums

    def shape(grad_hy, workspace, has_bias):
        gates = (grad_hy.shape[0], 3 * grad_hy.shape[1])
        bias = (gates[1],) if has_bias else None
        return [gates, gates, tuple(grad_hy.shape), bias, bias]

    def dtype(grad_hy, workspace, has_bias):
        return [workspace.dtype] * 5

    def decomp(grad_hy, workspace, has_bias):
        first, second, for_hx = gru_cell_pull((grad_hy, None), workspace)
        sums = (first.sum(0), second.sum(0)) if has_bias else (None, None)
        return first, second, for_hx, *sums

    def samples(s):
        yield s(s.real(2, 3), s.real(2, 15), True)
        yield s(s.real(2, 3), s.real(2, 15), False)


class _thnn_differentiable_gru_cell_backward(Composite):
    """Gradients of all arguments of _thnn_fused_gru_cell, from the gates themselves."""

    schema = ("_thnn_differentiable_gru_cell_backward(Tensor grad_hy, Tensor input_gates,"
              " Tensor hidden_gates, Tensor hx, Tensor? input_bias, Tensor? hidden_bias)"
              " -> (Tensor, Tensor, Tensor, Tensor, Tensor)")
    same_dtype = ("grad_hy", "input_gates", "hidden_gates", "hx", "input_bias", "hidden_bias")
    method = function = False

    def compose(grad_hy, input_gates, hidden_gates, hx, input_bias, hidden_bias):
        work = ops._thnn_fused_gru_cell(input_gates, hidden_gates, hx, input_bias, hidden_bias)[1]
        first, second, for_hx = gru_cell_pull((grad_hy, None), work)
        if input_bias is None:
            return first, second, for_hx, None, None
        return first, second, for_hx, first.sum(0), second.sum(0)

    def samples(s):
        yield s(s.real(2, 3), s.real(2, 9), s.real(2, 9), s.real(2, 3), s.real(9), s.real(9))
