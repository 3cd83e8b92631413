"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from ..core.handle import Tensor
from ..parts.trees import has_parts
from ..threads.blocks import outside
from . import capture, sparse_rows
from .descent import Descent, check, check_fused, zeros
from .formula import descent, detach, on
from .optimizer import ParamsT, _device_dtype_check_for_fused
from .update import Row, Rule, apply

__all__ = ["SGD", "sgd"]


def _formula(p, g, s, o):
    p, g = descent(p, g, o)
    if on(o.momentum):
        if o.fresh:
            s.momentum_buffer = detach(g)
        else:
            s.momentum_buffer = s.momentum_buffer * o.momentum + g * (1 - o.dampening)
        g = g + s.momentum_buffer * o.momentum if o.nesterov else s.momentum_buffer
    return p - g * o.lr


class SGD(Descent):
    """Gradient descent with momentum, dampening, Nesterov's variant and weight decay."""

    rule = Rule(_formula, counters=())

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3, momentum: float = 0,
                 dampening: float = 0, weight_decay: float | Tensor = 0, nesterov: bool = False, *,
                 maximize: bool = False, foreach: bool | None = None,
                 differentiable: bool = False, fused: bool | None = None,
                 sparse: str | None = None) -> None:
        check(lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, dict(
            lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay,
            nesterov=nesterov, maximize=maximize, foreach=foreach, differentiable=differentiable,
            fused=fused, **sparse_rows.option(sparse)))
        check_fused(self, fused, foreach, differentiable)

    @staticmethod
    def buffers(group: dict) -> tuple[str, ...]:
        return ("momentum_buffer",) if on(group["momentum"]) else ()

    def rows(self, group: dict) -> list[Row]:
        """A momentum begins with the first gradient, so that its buffer may not be there yet."""
        rows = [Row(p, grad, []) for p, grad in self.with_gradients(group)]
        if group["fused"] and self.__dict__.get("_need_device_dtype_check_for_fused"):
            for row in rows:
                _device_dtype_check_for_fused(row.param)
            self._need_device_dtype_check_for_fused = False
        return [self._with_momentum(row, group) for row in rows] if on(group["momentum"]) else rows

    def _with_momentum(self, row: Row, group: dict) -> Row:
        state = self.state[row.param]
        if state.get("momentum_buffer") is None:
            owner = capture.owner()
            with outside():
                state["momentum_buffer"] = zeros(row.param)
            # zeros do as well where the gradient is not dampened: one graph for all steps
            row.fresh = owner is None or on(group["dampening"])
            if owner is not None and row.fresh:
                owner.guard(lambda: False)
        elif sparse_rows.has_rows(row.param, state["momentum_buffer"]):
            # of sparse gradients, and this one is dense
            state["momentum_buffer"] = state["momentum_buffer"].to_dense()
        row.buffers.append(state["momentum_buffer"])
        return row

    # sparse gradients

    def check_sparse(self, group: dict) -> None:
        if on(group["weight_decay"]):
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) "
                               "instead: weight decay changes rows that a sparse gradient does not "
                               "have\n  Fix: pass sparse='lazy', or sparse='dense'")

    def sparse_step(self, group: dict, p: Tensor, g: Any) -> None:
        """The momentum is sparse, too: it has the rows that were ever used."""
        g = -g if group["maximize"] else g
        if on(group["momentum"]):
            state, factor = self.state[p], group["momentum"]
            have = state.get("momentum_buffer")
            have = g if have is None else have * factor + g * (1 - group["dampening"])
            have = state["momentum_buffer"] = have.coalesce() if has_parts(have) else have
            g = g + have * factor if group["nesterov"] else have
        sparse_rows.descend(p, g, group["lr"])

    def start(self, p: Tensor, group: dict) -> dict:
        return {name: zeros(p) for name in self.buffers(group)}

    def forgets(self, group: dict) -> dict:
        return {"momentum_buffer": group["momentum"]}

    def shrinks(self, group: dict) -> bool:
        return True


def sgd(params: list[Tensor], d_p_list: list[Tensor], momentum_buffer_list: list[Tensor | None],
        has_sparse_grad: bool = False, foreach: bool | None = None, fused: bool | None = None,
        grad_scale: Tensor | None = None, found_inf: Tensor | None = None, *, weight_decay: float,
        momentum: float, lr: float, dampening: float, nesterov: bool, maximize: bool) -> None:
    """One step of SGD on lists of tensors; missing momentum buffers are put into their list."""
    options = dict(weight_decay=weight_decay, momentum=momentum, lr=lr, dampening=dampening,
                   nesterov=nesterov, maximize=maximize)
    rows = []
    for i, (p, g) in enumerate(zip(params, d_p_list)):
        row = Row(p, g, [])
        if on(momentum):
            row.fresh = momentum_buffer_list[i] is None
            if row.fresh:
                momentum_buffer_list[i] = zeros(p)
            row.buffers.append(momentum_buffer_list[i])
        rows.append(row)
    apply(SGD.rule, SGD.buffers(options), rows, options)
