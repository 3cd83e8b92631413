"""Operators that may arrive whole and are pointwise operations and reductions underneath."""

from __future__ import annotations

from math import prod, sqrt

from .builder import Builder, Unsupported
from .ir import Ref
from .lower import dtype_code, shape_of
from .rules_shape import mean_of, moments


class Maths:
    """Arithmetic on refs of one type, so that formulas below read like formulas."""

    def __init__(self, b: Builder, t: str):
        if t not in "fd":
            raise Unsupported("floating point only")
        self.b, self.t = b, t

    def __getattr__(self, op: str):
        return lambda *args: self.b.pointwise(op, *args, dtype=self.t)


_K0, _K1 = sqrt(2 / 3.141592653589793), 0.044715


def gelu(b: Builder, ex: object, x: Ref, approximate: str = "none") -> Ref:
    m = Maths(b, dtype_code(ex))
    if approximate == "tanh":
        cube = m.mul(m.mul(x, x), x)
        t = m.tanh(m.mul(m.add(x, m.mul(cube, _K1)), _K0))
    else:
        t = m.erf(m.mul(x, sqrt(0.5)))
    return m.mul(m.mul(x, 0.5), m.add(t, 1.0))


def gelu_backward(b: Builder, ex: object, g: Ref, x: Ref, approximate: str = "none") -> Ref:
    m = Maths(b, dtype_code(ex))
    if approximate == "tanh":
        square = m.mul(x, x)
        t = m.tanh(m.mul(m.add(x, m.mul(m.mul(square, x), _K1)), _K0))
        left = m.mul(m.add(t, 1.0), 0.5)
        slope = m.mul(m.add(m.mul(square, 3 * _K1), 1.0), _K0)
        right = m.mul(m.mul(m.mul(x, 0.5), m.sub(1.0, m.mul(t, t))), slope)
    else:
        left = m.mul(m.add(m.erf(m.mul(x, sqrt(0.5))), 1.0), 0.5)
        bell = m.exp(m.mul(m.mul(x, x), -0.5))
        right = m.mul(m.mul(bell, x), 1 / sqrt(2 * 3.141592653589793))
    return m.mul(g, m.add(left, right))


def silu(b: Builder, ex: object, x: Ref) -> Ref:
    m = Maths(b, dtype_code(ex))
    return m.mul(x, m.sigmoid(x))


def silu_backward(b: Builder, ex: object, g: Ref, x: Ref) -> Ref:
    m = Maths(b, dtype_code(ex))
    s = m.sigmoid(x)
    return m.mul(g, m.mul(s, m.add(m.mul(x, m.sub(1.0, s)), 1.0)))


def tanh_backward(b: Builder, ex: object, g: Ref, y: Ref) -> Ref:
    m = Maths(b, dtype_code(ex))
    return m.mul(g, m.sub(1.0, m.mul(y, y)))


def sigmoid_backward(b: Builder, ex: object, g: Ref, y: Ref) -> Ref:
    m = Maths(b, dtype_code(ex))
    return m.mul(g, m.mul(m.sub(1.0, y), y))


def threshold_backward(b: Builder, ex: object, g: Ref, x: Ref, threshold: float) -> Ref:
    t = dtype_code(ex)
    low = b.pointwise("le", x, threshold, dtype="b", ct=x.dtype)
    return b.pointwise("where", low, 0, g, dtype=t)


def leaky_relu(b: Builder, ex: object, x: Ref, slope: float = 0.01) -> Ref:
    m = Maths(b, dtype_code(ex))
    up = b.pointwise("gt", x, 0, dtype="b", ct=m.t)
    return m.where(up, x, m.mul(x, slope))


def softplus(b: Builder, ex: object, x: Ref, beta: float = 1, threshold: float = 20) -> Ref:
    m = Maths(b, dtype_code(ex))
    z = m.mul(x, beta)
    far = b.pointwise("gt", z, threshold, dtype="b", ct=m.t)
    return m.where(far, x, m.div(m.log1p(m.exp(z)), beta))


def softmax(log: bool):
    def rule(b: Builder, ex: object, x: Ref, dim: int, *rest: object) -> Ref:
        m = Maths(b, dtype_code(ex))
        if not x.shape or not prod(x.shape):
            raise Unsupported("softmax of nothing")
        top = b.reduce("max", x if x.dtype == m.t else b.cast(x, m.t), [dim], True)
        d = m.sub(x, top)
        e = m.exp(d)
        total = b.reduce("sum", e, [dim], True)
        return m.sub(d, m.log(total)) if log else m.div(e, total)

    return rule


def softmax_backward(log: bool):
    def rule(b: Builder, ex: object, g: Ref, y: Ref, dim: int, dtype: object = None) -> Ref:
        m = Maths(b, dtype_code(ex))
        if log:
            total = b.reduce("sum", g, [dim], True)
            return m.sub(g, m.mul(m.exp(y), total))
        w = m.mul(g, y)
        return m.sub(w, m.mul(y, b.reduce("sum", w, [dim], True)))

    return rule


def layer_norm(
    b: Builder, ex: list, x: Ref, shape: list, weight: Ref | None, bias: Ref | None, eps: float
) -> list[Ref]:
    m = Maths(b, dtype_code(ex[0]))
    dims = list(range(len(x.shape) - len(shape), len(x.shape)))
    mean, var = moments(b, x, dims, 0.0, m.t)
    rstd = m.rsqrt(m.add(var, eps))
    y = m.mul(m.sub(x, mean), rstd)
    if weight is not None:
        y = m.mul(y, weight)
    if bias is not None:
        y = m.add(y, bias)
    return [y, b.reshape(mean, shape_of(ex[1])), b.reshape(rstd, shape_of(ex[2]))]


def layer_norm_backward(
    b: Builder,
    ex: list,
    g: Ref,
    x: Ref,
    shape: list,
    mean: Ref,
    rstd: Ref,
    weight: Ref | None,
    bias: Ref | None,
    mask: list[bool],
) -> list:
    m = Maths(b, g.dtype)
    inner = list(range(len(x.shape) - len(shape), len(x.shape)))
    outer = list(range(len(x.shape) - len(shape)))
    h = m.mul(m.sub(x, mean), rstd)
    gw = m.mul(g, weight) if weight is not None else g
    out: list = [None, None, None]
    if mask[0]:
        s0 = mean_of(b, gw, inner, True, m.t)
        s1 = mean_of(b, m.mul(gw, h), inner, True, m.t)
        out[0] = m.mul(rstd, m.sub(m.sub(gw, s0), m.mul(h, s1)))
    if mask[1] and weight is not None:
        out[1] = b.reduce("sum", m.mul(g, h), outer, False) if outer else m.mul(g, h)
    if mask[2] and bias is not None:
        out[2] = b.reduce("sum", g, outer, False) if outer else g
    return out


def _picked(b: Builder, x: Ref, target: Ref, ignore: int) -> tuple[Ref, Ref]:
    """x[row, target[row]] where the target counts (zero elsewhere), and that condition."""
    counts = b.pointwise("ne", target, ignore, dtype="b", ct="l")
    safe = b.pointwise("where", counts, target, 0, dtype="l")
    rows = x.shape[0]
    index = Ref(safe.value, (rows,), safe.offset, safe.strides)
    base = Ref(x.value, (rows,), x.offset, (x.strides[0],))
    return b.gather(base, [(index, x.strides[1], x.shape[1])], False), counts


def nll_loss(
    b: Builder, ex: list, x: Ref, target: Ref, weight: Ref | None, reduction: int, ignore: int
) -> list[Ref]:
    m = Maths(b, x.dtype)
    if weight is not None or len(x.shape) != 2 or target.dtype != "l":
        raise Unsupported("weighted nll_loss")
    picked, counts = _picked(b, x, target, ignore)
    loss = m.where(counts, m.neg(picked), 0.0)
    total = b.reduce("sum", b.cast(counts, m.t), None, False)
    if reduction == 0:
        return [loss, b.full((), 0.0, m.t)]
    out = b.reduce("sum", loss, None, False)
    return [m.div(out, total) if reduction == 1 else out, total]


def nll_loss_backward(
    b: Builder,
    ex: object,
    g: Ref,
    x: Ref,
    target: Ref,
    weight: Ref | None,
    reduction: int,
    ignore: int,
    total: Ref,
) -> Ref:
    m = Maths(b, x.dtype)
    if weight is not None or len(x.shape) != 2 or target.dtype != "l":
        raise Unsupported("weighted nll_loss")
    if not x.shape[1]:
        raise Unsupported("no classes: its kernel says so")
    seed = m.neg(m.div(g, total)) if reduction == 1 else m.neg(g)
    column = Ref(target.value, target.shape + (1,), target.offset, target.strides + (0,))
    counts = b.pointwise("ne", column, ignore, dtype="b", ct="l")
    at = b.bounded(b.pointwise("where", counts, column, 0, dtype="l"), x.shape[1])
    here = b.pointwise("eq", b.iota(x.shape, 1), at, dtype="b", ct="l")
    if len(seed.shape) == 1:
        seed = Ref(seed.value, seed.shape + (1,), seed.offset, seed.strides + (0,))
    return m.where(b.pointwise("and", here, counts, dtype="b"), seed, 0.0)


def mse(b: Builder, ex: object, x: Ref, y: Ref, reduction: int = 1) -> Ref:
    m = Maths(b, dtype_code(ex))
    d = m.sub(x, y)
    square = m.mul(d, d)
    if reduction == 0:
        return square
    return (
        mean_of(b, square, None, False, m.t)
        if reduction == 1
        else b.reduce("sum", square, None, False)
    )


def mse_backward(b: Builder, ex: object, g: Ref, x: Ref, y: Ref, reduction: int = 1) -> Ref:
    m = Maths(b, dtype_code(ex))
    scale = 2.0 / prod(x.shape) if reduction == 1 else 2.0
    return m.mul(m.mul(m.sub(x, y), scale), g)


def softplus_backward(
    b: Builder, ex: object, g: Ref, x: Ref, beta: float = 1, threshold: float = 20
) -> Ref:
    m = Maths(b, dtype_code(ex))
    z = m.mul(x, beta)
    far = b.pointwise("gt", z, threshold, dtype="b", ct=m.t)
    return m.where(far, g, m.mul(g, m.sigmoid(z)))
