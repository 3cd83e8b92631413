"""Adafactor: the average of squares of a matrix as the product of a row and a column."""

from __future__ import annotations

from ..array.dtype import finfo
from ..core.handle import Tensor
from ..table.packets import ops
from . import capture
from .descent import Descent, check, counter, zeros
from .formula import lerp, on
from .optimizer import ParamsT
from .update import Row, Rule, apply

__all__ = ["Adafactor", "adafactor"]


def _mean_square(x: Tensor) -> Tensor:
    return ops.linalg_vector_norm(x) / x.numel() ** 0.5


def _least(x, bound):
    """`x`, but no more than `bound`."""
    if isinstance(x, Tensor):
        return ops.minimum(x, bound) if isinstance(bound, Tensor) else ops.clamp_max(x, bound)
    return ops.clamp_max(bound, x) if isinstance(bound, Tensor) else min(x, bound)


def _mean(x: Tensor, dim: int) -> Tensor:
    """The mean of the squares along a dim."""
    return ops.linalg_vector_norm(x, 2, [dim], True).square() / x.shape[dim]


def _formula(p, g, s, o):
    g = -g if o.maximize else g
    weight = o.step**o.beta2_decay
    eps1 = finfo(p.dtype).eps if o.eps1 is None else o.eps1
    rho = _least(1 / o.step**0.5, o.lr)
    size = ops.clamp_min(_mean_square(p), o.eps2) * rho
    if on(o.weight_decay):
        p = p * (1 - o.lr * o.weight_decay)
    if g.ndim > 1:
        s.row_var = lerp(s.row_var, _mean(g, -1), weight)
        s.col_var = lerp(s.col_var, _mean(g, -2), weight)
        square = s.row_var @ s.col_var / ops.clamp_min(s.row_var.mean(-2, keepdim=True), eps1)
    else:
        square = s.variance = lerp(s.variance, g * g, weight)
    change = ops.rsqrt(ops.clamp_min(square, eps1 * eps1)) * g
    return p - change * (size / ops.clamp_min(_mean_square(change) / o.d, 1.0))


class Adafactor(Descent):
    """Adam's scaling with little memory: a row and a column in place of a matrix of averages."""

    rule = Rule(_formula, elementwise=False)
    pairs = {"eps": ("eps1", "eps2")}

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-2, beta2_decay: float = -0.8,
                 eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0,
                 weight_decay: float = 0.0, *, foreach: bool | None = None,
                 maximize: bool = False) -> None:
        if isinstance(lr, Tensor):
            check(lr)
        bounds = {"Learning rate": (lr, 0), "epsilon1": (0.0 if eps[0] is None else eps[0], 0),
                  "epsilon2": (eps[1], 0), "Clipping threshold d": (d, 1),
                  "weight_decay": (weight_decay, 0)}
        for label, (value, least) in bounds.items():
            if not value >= least:
                raise ValueError(f"{label} should be >= {least} but is: {value}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        super().__init__(params, dict(
            lr=lr, beta2_decay=beta2_decay, eps=eps, d=d, weight_decay=weight_decay,
            foreach=foreach, maximize=maximize))

    @staticmethod
    def buffers(group: dict) -> tuple[str, ...]:
        return ()  # they depend on the parameter: see `rows`

    def start(self, p: Tensor, group: dict) -> dict:
        if p.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        state = {"step": counter(0.0, group)}
        if p.ndim < 2:
            return {**state, "variance": zeros(p)}
        shape = list(p.shape)
        return {**state, "row_var": ops.zeros([*shape[:-1], 1], dtype=p.dtype),
                "col_var": ops.zeros([*shape[:-2], 1, shape[-1]], dtype=p.dtype)}

    def update(self, group: dict, rows: list[Row]) -> None:
        options, owner = self.options(group), capture.owner()
        if owner is not None:
            options = capture.fed(owner, self, group, options)
            capture.watch(owner, self, group)
        for row in rows:
            names = ("variance",) if row.param.ndim < 2 else ("row_var", "col_var")
            state = self.state[row.param]
            row.buffers = [state[n] for n in names]
            apply(self.rule, names, [row], options)


def adafactor(params: list[Tensor], grads: list[Tensor], row_vars: list[Tensor | None],
              col_vars: list[Tensor | None], variances: list[Tensor | None],
              state_steps: list[Tensor], foreach: bool | None = None,
              grad_scale: Tensor | None = None, found_inf: Tensor | None = None,
              has_complex: bool = False, *, d: float, lr: float | Tensor, beta2_decay: float,
              weight_decay: float, eps1: float | None, eps2: float, maximize: bool) -> None:
    """One step of Adafactor on lists of tensors."""
    options = dict(d=d, lr=lr, beta2_decay=beta2_decay, weight_decay=weight_decay, eps1=eps1,
                   eps2=eps2, maximize=maximize)
    for p, g, row, col, variance, step in zip(params, grads, row_vars, col_vars, variances,
                                              state_steps):
        names = ("variance",) if g.ndim < 2 else ("row_var", "col_var")
        buffers = [variance] if g.ndim < 2 else [row, col]
        apply(Adafactor.rule, names, [Row(p, g, buffers, [step])], options)
