"""Operators by PyTorch's parts: those that are one kernel here, or are made of other operators.

`PARTS` are of C++ there, `TRACED` of Python: those are taken apart where it dispatches in Python
(AOT, symbolic sizes).  `EXPLICIT` are taken apart everywhere and say more than the table's.
Entries take the arguments of the operator in the order of its schema; `calls.py` uses them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ...array import dtype as dt
from ...array.dims import broadcast_shapes, infer_size, numel, view_strides
from ...array.layout import STRIDED
from ...core.handle import is_buffer, make
from ...ops.arrange import converted
from ...ops.attention import attention, fusable, fused
from ...ops.contraction import _common_sizes, read_equation
from ...ops.dropout import _dropped
from ...table.packets import ops

PARTS: dict[str, Callable] = {}
TRACED: dict[str, Callable] = {}
EXPLICIT: dict[str, Callable] = {}


def shows(*names: str, table: dict = PARTS):
    """Enter the parts of operators."""
    def enter(function: Callable) -> Callable:
        table.update(dict.fromkeys(names, function))
        return function
    return enter


def number(value, like, dtype=None):
    """A number as a tensor, as C++ makes it."""
    return ops.scalar_tensor(value, dtype=dtype or like.dtype, layout=STRIDED, device=like.device)


# numbers and masks


@shows("where.ScalarOther")
def _where_other(condition, self, other):
    dtype = dt.result_type([self._payload, other])
    return ops.where(condition, self.to(dtype), number(other, self, dtype))


@shows("where.ScalarSelf")
def _where_self(condition, self, other):
    dtype = dt.result_type([other._payload, self])
    return ops.where(condition, number(self, other, dtype), other.to(dtype))


@shows("where.Scalar")
def _where_both(condition, self, other):
    dtype = dt.result_type([self, other])
    second = number(other, condition, dtype)
    return ops.where(condition, number(self, condition, dtype), second)


@shows("isfinite")
def _isfinite(self):
    if not (self.dtype.is_floating_point or self.dtype.is_complex):
        return ops.ones_like(self, dtype=dt.bool_)
    finite = self.abs() != math.inf
    return (self == self) * finite


@shows("special_ndtr")
def _ndtr(self):
    if not self.dtype.is_floating_point:
        self = self.to(dt.default())
    scaled = self * math.sqrt(0.5)
    small = scaled.abs() < 1
    low = ops.mul(ops.erf(scaled) + 1, 0.5)
    tail = ops.mul(ops.erfc(scaled.abs()), 0.5)
    return ops.where(small, low, ops.where(scaled > 0, 1 - tail, tail))


# matrices


@shows("linalg_svdvals")
def _svdvals(A, driver):
    return ops._linalg_svd(A, False, True, driver=driver)[1]


@shows("linalg_eigvalsh")
def _eigvalsh(self, UPLO):
    return ops._linalg_eigh(self, UPLO, True)[0]


@shows("linalg_eigvals")
def _eigvals(self):
    return ops.linalg_eig(self)[0]


# sums of products


@shows("einsum")
def _einsum(equation, tensors, path):
    inputs, output = read_equation(equation, [t.ndim for t in tensors])
    sizes = _common_sizes(tensors, inputs)
    order = [*output, *_summed_labels(inputs, output)]
    place = {label: i for i, label in enumerate(order)}
    factors, counts = [], dict.fromkeys(order, 0)
    for tensor, labels in zip(tensors, inputs):
        tensor, labels = _diagonals(tensor, list(labels))
        for label, size in zip(labels, tensor.shape):
            counts[label] += size != 1
        factors.append(_laid_out(tensor, labels, place))
    if path or len(factors) > 2:
        steps = list(path or [])
    else:
        steps = []
    kept = len(output)
    if len(factors) == 1:
        spare = list(range(kept, len(order)))
        return factors[0].sum(spare) if spare else factors[0]
    while len(factors) > 1:
        i, j = (steps.pop(0), steps.pop(0)) if steps else (0, 1)
        i, j = min(i, j), max(i, j)
        b, a = factors.pop(j), factors.pop(i)
        shared, of_a, of_b = [], [], []
        for d in range(kept, len(order)):
            label = order[d]
            if a.shape[d] != 1 and b.shape[d] != 1:
                counts[label] -= 1
                if counts[label] == 1:
                    shared.append(d)
                    counts[label] = 0
            elif counts[label] == 1:
                if a.shape[d] != 1:
                    of_a.append(d)
                    counts[label] = 0
                elif b.shape[d] != 1:
                    of_b.append(d)
                    counts[label] = 0
        a = a.sum(of_a, True) if of_a else a
        b = b.sum(of_b, True) if of_b else b
        product = _pair(a, b, shared) if shared else a * b
        if steps or path:
            factors.append(product)
        else:
            factors.insert(0, product)
    (out,) = factors
    if len(order) > kept:
        return out.reshape([sizes[label] for label in output])
    return out


def _summed_labels(inputs: list, output: list) -> list:
    every = {label for labels in inputs for label in labels} - set(output)
    return sorted(every, key=lambda x: (isinstance(x, str), str(x)))


def _diagonals(tensor, labels: list):
    """Repeated labels once, with the diagonal of their dims."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            i = labels.index(label)
            j = labels.index(label, i + 1)
            tensor = tensor.diagonal(0, i, j).movedim(-1, i)
            del labels[j]
    return tensor, labels


def _laid_out(tensor, labels: list, place: dict):
    """An operand with a dim for every label, in one order."""
    order = [-1] * len(place)
    for i, label in enumerate(labels):
        order[place[label]] = i
    for i, dim in enumerate(order):
        if dim < 0:
            order[i] = tensor.ndim
            tensor = tensor.unsqueeze(tensor.ndim)
    return tensor.permute(order)


def _pair(a, b, shared: list[int]):
    """Two operands multiplied and summed, as one batched product of matrices."""
    both, left, right = [], [], []
    for d in range(a.ndim):
        if d in shared:
            continue
        thick = a.shape[d] != 1, b.shape[d] != 1
        (both if all(thick) else left if thick[0] else right).append(d)
    count = numel(a.shape[d] for d in both)
    rows, columns = numel(a.shape[d] for d in left), numel(b.shape[d] for d in right)
    inner = numel(a.shape[d] for d in shared)
    first = a.permute([*both, *left, *shared, *right]).reshape([count, rows, inner])
    second = b.permute([*both, *shared, *right, *left]).reshape([count, inner, columns])
    out = ops.bmm(first, second)
    out = out.view([*[a.shape[d] for d in (*both, *left)], *[1] * len(shared),
                    *[b.shape[d] for d in right]])
    found = [*both, *left, *shared, *right]
    return out.permute([found.index(d) for d in range(a.ndim)])


@shows("matmul")
def _matmul(self, other):
    return _stacks(self, other, ops._unsafe_view)


@shows("matmul", table=TRACED)
def _matmul_traced(self, other):
    return _stacks(self, other, ops.view)


def _stacks(a, b, shaped):
    """Two stacks of matrices, with every step."""
    if a.ndim < 3 or b.ndim < 3:
        return NotImplemented
    lead = list(broadcast_shapes(a.shape[:-2], b.shape[:-2]))
    count = numel(lead)
    first = a.expand([*lead, *a.shape[-2:]]).reshape([count, *a.shape[-2:]])
    second = b.expand([*lead, *b.shape[-2:]]).reshape([count, *b.shape[-2:]])
    return shaped(ops.bmm(first, second), [*lead, a.shape[-2], b.shape[-1]])


@shows("diag")
def _diag(self, diagonal):
    return ops.diagonal_copy(self, diagonal) if self.ndim == 2 else NotImplemented


# normalisation and distances


@shows("rms_norm")
def _rms_norm(input, normalized_shape, weight, eps):
    return _fused_rms_norm(input, normalized_shape, weight, eps)[0]


@shows("_fused_rms_norm")
def _fused_rms_norm(input, normalized_shape, weight, eps):
    dtype = input.dtype
    x = input.to(dt.float32) if dtype.itemsize == 2 else input
    eps = dt.finfo(x.dtype).eps if eps is None else eps
    dims = list(range(x.ndim - len(normalized_shape), x.ndim))
    scale = (x.pow(2).mean(dims, True) + eps).rsqrt()
    out = x * scale
    out = out if weight is None else out * weight
    return (out if out.dtype is dtype else out.to(dtype)), scale


@shows("cosine_similarity")
def _cosine_similarity(x1, x2, dim, eps):
    common = dt.promote_types(x1.dtype, x2.dtype)  # 0-d tensors count as all others here
    shape = broadcast_shapes(x1.shape, x2.shape)
    a, b = (x if tuple(x.shape) == tuple(shape) else x.expand(shape)
            for x in (x1.to(common), x2.to(common)))
    first = ops.linalg_vector_norm(a, 2, [dim], True).clone()
    second = ops.linalg_vector_norm(b, 2, [dim], True).clone()
    least = ops.scalar_tensor(eps, dtype=first.dtype, device=first.device)
    first, second = _at_least(first, least), _at_least(second, least)
    other = b / second
    return (a / first * other).sum(dim)


def _at_least(x, least):
    """Clamped, with the derivative of what is clamped."""
    return make(ops.clamp_min(make(x._payload), least)._payload, x._edge)


@shows("scaled_dot_product_attention")
def _attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    if fusable(query, key, value, attn_mask, dropout_p, enable_gqa):
        return fused(query, key, value, attn_mask, is_causal, scale)
    if attn_mask is None and not (is_causal or dropout_p or enable_gqa) and query.ndim > 2 and (
            query.dtype.itemsize > 2 and query.shape[-1]):
        return _attention_by_products(query, key, value, scale)
    return attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)[0]


def _attention_by_products(query, key, value, scale):
    """Both factors scaled by the root."""
    root = math.sqrt(1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    query = query * root
    weights = ops.matmul(query, key.transpose(-2, -1) * root)
    return ops.matmul(ops._safe_softmax(weights, -1), value)


# cells


@shows("gru_cell")
def _gru_cell(input, hx, w_ih, w_hh, b_ih, b_hh):
    _check(input, (hx,), w_ih, w_hh)
    own = ops.unsafe_chunk(ops.linear(input, w_ih, b_ih), 3, 1)
    past = ops.unsafe_chunk(ops.linear(hx, w_hh, b_hh), 3, 1)
    reset = (past[0] + own[0]).sigmoid()
    update = (past[1] + own[1]).sigmoid()
    new = (own[2] + past[2] * reset).tanh()
    return (hx - new) * update + new


@shows("lstm_cell")
def _lstm_cell(input, hx, w_ih, w_hh, b_ih, b_hh):
    _check(input, hx, w_ih, w_hh)
    gates = ops.linear(hx[0], w_hh, b_hh)
    gates = gates + ops.linear(input, w_ih, b_ih)
    parts = ops.unsafe_chunk(gates, 4, 1)
    inner, forget = parts[0].sigmoid(), parts[1].sigmoid()
    cell, outer = parts[2].tanh(), parts[3].sigmoid()
    state = forget * hx[1] + inner * cell
    return outer * state.tanh(), state


@shows("rnn_tanh_cell")
def _rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih, b_hh):
    return _simple(input, hx, w_ih, w_hh, b_ih, b_hh).tanh()


@shows("rnn_relu_cell")
def _rnn_relu_cell(input, hx, w_ih, w_hh, b_ih, b_hh):
    return _simple(input, hx, w_ih, w_hh, b_ih, b_hh).relu()


def _simple(input, hx, w_ih, w_hh, b_ih, b_hh):
    _check(input, (hx,), w_ih, w_hh)
    past = ops.linear(hx, w_hh, b_hh)
    out = past + ops.linear(input, w_ih, b_ih)
    return out if out.dtype is past.dtype else out.to(past.dtype)


def _check(input, hidden, w_ih, w_hh) -> None:
    from ...ops.rnn import _check_cell

    for label, part in enumerate(hidden):
        _check_cell(input, part, w_ih, w_hh, label)


# what says more


@shows("reshape", table=EXPLICIT)
def _reshape(self, shape):
    if is_buffer(self._payload):
        return NotImplemented
    size = infer_size(shape, self.numel())
    if view_strides(self.shape, self.stride(), size) is not None:
        return ops.view(self, shape)
    copy = ops.clone(self, memory_format="contiguous_format")
    return ops._unsafe_view(copy, list(size))  # a copy is no view of anything


@shows("to.other", table=EXPLICIT)
def _to_other(self, other, non_blocking, copy, memory_format):
    said = {"layout": STRIDED, "pin_memory": False, "device": other.device}
    return converted(self, other.dtype, other.device, copy, memory_format, said)


@shows("to.device", table=EXPLICIT)
def _to_device(self, device, dtype, non_blocking, copy, memory_format):
    return converted(self, dtype, device, copy, memory_format, {"device": device})


@shows("to.dtype_layout", table=EXPLICIT)
def _to_dtype_layout(self, dtype, layout, device, pin_memory, non_blocking, copy, memory_format):
    said = {} if device is None else {"device": device}
    return converted(self, dtype, device, copy, memory_format, said)


@shows("type_as", table=EXPLICIT)
def _type_as(self, other):
    said = {"layout": STRIDED, "device": other.device}
    return converted(self, other.dtype, other.device, False, None, said)


# what PyTorch takes apart in Python


@shows("dropout", table=TRACED)
def _dropout(input, p, train):
    if not train or p == 0:
        return input.clone()
    # without any chance nothing is drawn: what comes after it draws the same numbers as in eager
    return _dropped(input, p, True) if p == 1 else ops.native_dropout(input, p, True)[0]


@shows("hardshrink", table=TRACED)
def _hardshrink(self, lambd):
    return ops.where(self.abs() <= lambd, 0, self)


@shows("softshrink", table=TRACED)
def _softshrink(self, lambd):
    far = self.abs() > lambd
    return ops.where(far, self - ops.sign(self) * lambd, self * 0)


def _nearest(name: str, dims: int, shift: float) -> None:
    def taken_apart(self, output_size, *scales):
        places = []
        for i, (size, scale) in enumerate(zip(output_size, scales)):
            old = self.shape[2 + i]
            step = old / size if scale is None else 1.0 / scale
            if (size - 1 + shift) * step >= old:  # factors that do not fit: the kernel knows
                return NotImplemented
            line = ops.arange(size, dtype=dt.float32, device=self.device, pin_memory=False)
            line = ((line + shift) * step).to(dt.int64)
            for _ in range(dims - 1 - i):
                line = line.unsqueeze(-1)
            places.append(line)
        out = ops._unsafe_index(self, [None, None, *places])
        last = {2: "channels_last", 3: "channels_last_3d"}.get(dims)
        if last is None or self.is_contiguous() or not self.is_contiguous(memory_format=last):
            return out
        return out.contiguous(memory_format=last)

    def by_factors(input, output_size, scale_factors):
        sizes = output_size or [
            math.floor(n * s) for n, s in zip(input.shape[2:], scale_factors)]
        return taken_apart(input, sizes, *(scale_factors or [None] * dims))

    shows(name, table=TRACED)(taken_apart)
    shows(f"{name}.vec", table=TRACED)(by_factors)


for _dims in (1, 2, 3):
    _nearest(f"upsample_nearest{_dims}d", _dims, 0.0)
    _nearest(f"_upsample_nearest_exact{_dims}d", _dims, 0.5)
