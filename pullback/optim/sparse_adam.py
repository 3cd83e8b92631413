"""SparseAdam: Adam for embeddings, where a step only touches the rows that were used.

PyTorch marks those rows by a sparse gradient.  Gradients are dense here, and a row of zeros is one
that was not used: its averages stay as they are.
"""

from __future__ import annotations

from typing import Any

from ..autograd.grad_mode import enable_grad, no_grad
from ..core.handle import Tensor
from ..table.packets import ops
from .descent import check, check_betas, zeros
from .formula import lerp
from .optimizer import Optimizer, ParamsT, _to_scalar

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam on the rows of a parameter whose gradient is not zero."""

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 maximize: bool = False) -> None:
        check(lr, eps=eps)
        for label, value in {"learning rate": lr, "epsilon value": eps}.items():
            if not value > 0.0:
                raise ValueError(f"Invalid {label}: {value}")
        check_betas(betas)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, maximize=maximize))
        found = [[i, k] for i, group in enumerate(self.param_groups)
                 for k, p in enumerate(group["params"]) if p.is_complex()]
        if found:
            raise ValueError(f"Complex params at indices {found}: SparseAdam does not support "
                             "complex parameters")

    @no_grad()
    def step(self, closure=None) -> Any:
        """Update the rows of all parameters that have a gradient there."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            params, grads, averages, squares, steps = [], [], [], [], []
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state.update(step=0, exp_avg=zeros(p), exp_avg_sq=zeros(p))
                state["step"] += 1
                params.append(p)
                grads.append(p.grad)
                averages.append(state["exp_avg"])
                squares.append(state["exp_avg_sq"])
                steps.append(state["step"])
            beta1, beta2 = group["betas"]
            sparse_adam(params, grads, averages, squares, steps, eps=group["eps"], beta1=beta1,
                        beta2=beta2, lr=_to_scalar(group["lr"]),
                        maximize=group.get("maximize", False))
        return loss


def sparse_adam(params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor],
                exp_avg_sqs: list[Tensor], state_steps: list[int], *, eps: float, beta1: float,
                beta2: float, lr: float, maximize: bool) -> None:
    """One step of SparseAdam on lists of tensors."""
    for p, g, average, square, step in zip(params, grads, exp_avgs, exp_avg_sqs, state_steps):
        g = -g if maximize else g
        used = g != 0
        for _ in range(p.ndim - 1):
            used = used.any(-1)
        rows = ops.nonzero(used).squeeze(-1) if p.ndim else slice(None)
        part = g[rows]
        if not part.numel():
            continue
        m = lerp(average[rows], part, 1 - beta1)
        v = lerp(square[rows], part * part, 1 - beta2)
        size = lr * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
        average[rows] = m
        square[rows] = v
        p[rows] = p[rows] - size * (m / (ops.sqrt(v) + eps))
