"""Derivative formulas of the fused recurrent cells, of differentiable operators.

The gates after their activations are an output (`workspace`) of the cells.  It counts as
differentiable, so that formulas in terms of it have exact derivatives of every order.
Read `ops/rnn_cells.py` next.
"""

from __future__ import annotations

from ..table.packets import ops
from . import added, on_arrays


def _parts(value, count):
    return [None] * count if value is None else ops.chunk(value, count, 1)


def slope_of_sigmoid(value):
    """Derivative of the sigmoid in terms of its value."""
    return value * (1 - value)


# ---------------------------------------------------------------------------------------------
# LSTM: c' = f c + i g, h' = o tanh(c'); workspace is (i, f, g, o)


def lstm_cell_pull(grads, cx, cy, workspace):
    """Gradients of the gates before their activations and of the cell."""
    grad_hy, grad_cy, grad_workspace = grads
    write, keep, new, show = ops.chunk(workspace, 4, 1)
    level = cy.tanh()
    for_show, for_cell = None, grad_cy
    if grad_hy is not None:
        for_show = grad_hy * level
        for_cell = added(for_cell, grad_hy * show * (1 - level * level))
    for_write = for_keep = for_new = None
    if for_cell is not None:
        for_write, for_keep, for_new = for_cell * new, for_cell * cx, for_cell * write
    own = _parts(grad_workspace, 4)
    parts = [added(a, b) for a, b in
             zip((for_write, for_keep, for_new, for_show), own, strict=True)]
    slopes = [slope_of_sigmoid(write), slope_of_sigmoid(keep), 1 - new * new,
              slope_of_sigmoid(show)]
    gates = ops.cat([ops.zeros_like(cx) if p is None else p * s
                     for p, s in zip(parts, slopes, strict=True)], 1)
    return gates, None if for_cell is None else for_cell * keep


@on_arrays()
def lstm_cell_grads(grads, cx, cy, workspace, recording, native):
    """Gradients of all arguments; the fused kernel where no second derivative is wanted."""
    if all(g is None for g in grads):
        return (None,) * 5
    if recording or grads[2] is not None or grads[0] is None:
        gates, for_cx = lstm_cell_pull(grads, cx, cy, workspace)
    else:
        gates, for_cx, _ = native(grads[0], grads[1], cx, cy, workspace, False)
    return gates, gates, for_cx, gates, gates


def lstm_cell_push(input_gates_t, hidden_gates_t, cx, cx_t, input_bias_t, hidden_bias_t, cy,
                   workspace):
    """Tangents of the hidden state, of the cell and of the gates after their activations."""
    moved = input_gates_t + hidden_gates_t
    for bias_t in (input_bias_t, hidden_bias_t):
        moved = added(moved, bias_t)
    write, keep, new, show = ops.chunk(workspace, 4, 1)
    write_t, keep_t, new_t, show_t = ops.chunk(moved, 4, 1)
    write_t, keep_t = write_t * slope_of_sigmoid(write), keep_t * slope_of_sigmoid(keep)
    new_t, show_t = new_t * (1 - new * new), show_t * slope_of_sigmoid(show)
    level = cy.tanh()
    cy_t = keep_t * cx + keep * cx_t + write_t * new + write * new_t
    hy_t = show_t * level + show * (1 - level * level) * cy_t
    return hy_t, cy_t, ops.cat([write_t, keep_t, new_t, show_t], 1)


# ---------------------------------------------------------------------------------------------
# GRU: n = tanh(a + r b), h' = n + z (h - n); workspace is (r, z, n, h, b)


def gru_cell_pull(grads, workspace):
    """Gradients of the input's gates, of the hidden state's gates and of the hidden state."""
    grad_hy, grad_workspace = grads
    reset, keep, new, hidden, inner = ops.chunk(workspace, 5, 1)
    for_reset, for_keep, for_new, for_hidden, for_inner = _parts(grad_workspace, 5)
    if grad_hy is not None:
        for_keep = added(for_keep, grad_hy * (hidden - new))
        for_new = added(for_new, grad_hy * (1 - keep))
        for_hidden = added(for_hidden, grad_hy * keep)
    before = for_new * (1 - new * new)
    for_reset = added(for_reset, before * inner) * slope_of_sigmoid(reset)
    for_keep = for_keep * slope_of_sigmoid(keep)
    for_inner = added(for_inner, before * reset)
    return (ops.cat([for_reset, for_keep, before], 1), ops.cat([for_reset, for_keep, for_inner], 1),
            for_hidden)


def gru_cell_grads(grads, workspace, recording, native):
    """Gradients of all arguments; the fused kernel where no second derivative is wanted."""
    if all(g is None for g in grads):
        return (None,) * 5
    if recording or grads[1] is not None:
        inputs, hiddens, for_hx = gru_cell_pull(grads, workspace)
    else:
        inputs, hiddens, for_hx, _, _ = native(grads[0], workspace, False)
    return inputs, hiddens, for_hx, inputs, hiddens


def gru_cell_push(input_gates_t, hidden_gates_t, hx_t, input_bias_t, hidden_bias_t, workspace):
    """Tangents of the hidden state and of the workspace."""
    reset, keep, new, hidden, inner = ops.chunk(workspace, 5, 1)
    reset_i, keep_i, new_i = ops.chunk(added(input_gates_t, input_bias_t), 3, 1)
    reset_h, keep_h, inner_t = ops.chunk(added(hidden_gates_t, hidden_bias_t), 3, 1)
    reset_t = (reset_i + reset_h) * slope_of_sigmoid(reset)
    keep_t = (keep_i + keep_h) * slope_of_sigmoid(keep)
    new_t = (new_i + reset_t * inner + reset * inner_t) * (1 - new * new)
    hy_t = new_t * (1 - keep) + keep_t * (hidden - new) + keep * hx_t
    return hy_t, ops.cat([reset_t, keep_t, new_t, hx_t, inner_t], 1)
