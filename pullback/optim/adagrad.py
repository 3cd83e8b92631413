"""Adagrad: steps scaled by the sum of all squared gradients."""

from __future__ import annotations

from ..core.handle import Tensor
from .descent import Descent, check, check_fused, counter, full, functional
from .formula import descent, on, sqrt
from .optimizer import ParamsT
from .update import Rule

__all__ = ["Adagrad", "adagrad"]


def _formula(p, g, s, o):
    p, g = descent(p, g, o)
    s.sum = s.sum + g * g
    size = o.lr / (1 + (o.step - 1) * o.lr_decay)
    return p - g * size / (sqrt(s.sum) + o.eps)


class Adagrad(Descent):
    """Gradients divided by the root of the sum of their squares."""

    rule = Rule(_formula)
    held = ("sum",)

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-2, lr_decay: float = 0,
                 weight_decay: float = 0, initial_accumulator_value: float = 0,
                 eps: float = 1e-10, foreach: bool | None = None, *, maximize: bool = False,
                 differentiable: bool = False, fused: bool | None = None) -> None:
        check(lr, lr_decay=lr_decay, weight_decay=weight_decay,
              initial_accumulator_value=initial_accumulator_value, eps=eps)
        super().__init__(params, dict(
            lr=lr, lr_decay=lr_decay, eps=eps, weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value, foreach=foreach,
            maximize=maximize, differentiable=differentiable, fused=fused))
        check_fused(self, fused, foreach, differentiable)
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p] = self.start(p, group)

    def check_sparse(self, group: dict) -> None:
        if on(group["weight_decay"]):
            raise RuntimeError("weight_decay option is not compatible with sparse gradients\n"
                               "  Fix: pass sparse='dense' in the group")

    def share_memory(self) -> None:
        """Put the sums into shared memory."""
        for values in self.state.values():
            values["sum"].share_memory_()

    def start(self, p: Tensor, group: dict) -> dict:
        return {"step": counter(0.0, group),
                "sum": full(p, self.defaults["initial_accumulator_value"])}


_LISTS = {"state_sums": "sum", "state_steps": "step"}


def adagrad(params: list[Tensor], grads: list[Tensor], state_sums: list[Tensor],
            state_steps: list[Tensor], fused: bool | None = None,
            grad_scale: Tensor | None = None, found_inf: Tensor | None = None,
            has_sparse_grad: bool = False, foreach: bool | None = None,
            differentiable: bool = False, has_complex: bool = False, *, lr: float,
            weight_decay: float, lr_decay: float, eps: float, maximize: bool) -> None:
    """One step of Adagrad on lists of tensors."""
    functional(Adagrad, _LISTS, locals())
