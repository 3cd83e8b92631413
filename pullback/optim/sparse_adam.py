"""SparseAdam: Adam for embeddings, where a step only touches the rows that were used.

Those are the rows that a sparse gradient has, also where its numbers are zero: their averages
decay, those of all other rows stay as they are.
"""

from __future__ import annotations

from typing import Any

from ..autograd.grad_mode import enable_grad, no_grad
from ..compile import sparse_loops
from ..core.handle import Tensor
from ..parts.trees import has_parts
from ..table.packets import ops
from . import sparse_rows
from .descent import check, check_betas, zeros
from .optimizer import Optimizer, ParamsT, _to_scalar

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam on the rows that a sparse gradient has."""

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 maximize: bool = False) -> None:
        check(lr, eps=eps)
        for label, value in {"learning rate": lr, "epsilon value": eps}.items():
            if not value > 0.0:
                raise ValueError(f"Invalid {label}: {value}")
        check_betas(betas)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, maximize=maximize))
        sparse = [[i, k] for i, group in enumerate(self.param_groups)
                  for k, p in enumerate(group["params"]) if has_parts(p)]
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense "
                             "parameter tensors")
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
            sparse_rows.of(group)  # refuses them in a capture
            for p in group["params"]:
                if p.grad is None:
                    continue
                if not has_parts(p.grad):
                    raise RuntimeError("SparseAdam does not support dense gradients, please "
                                       "consider Adam instead")
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
        size = lr * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
        numbers = (1 - beta1, 1 - beta2, eps, size, -1 if maximize else 1)
        if sparse_rows.adam_in_c(g, (p, average, square), numbers):
            continue
        with sparse_loops.timed():
            _on_rows(-g if maximize else g, p, average, square, numbers)


def _on_rows(g: Tensor, p: Tensor, average: Tensor, square: Tensor, numbers: tuple) -> None:
    """The step on the rows of a gradient, by operators on tensors."""
    g = g.coalesce()
    rows, part = tuple(g.indices().unbind(0)), g.values()
    if not part.numel():
        return
    new, newer, eps, size, _ = numbers
    m, v = average[rows], square[rows]
    m.add_((part - m).mul_(new))  # the sums of `lerp`, in memory that is there
    v.add_((part * part).sub_(v).mul_(newer))
    average[rows] = m
    square[rows] = v
    p[rows] = p[rows].sub_(m.div_(ops.sqrt(v).add_(eps)).mul_(size))
