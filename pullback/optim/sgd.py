"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.handle import Tensor
from ..core.table import ops
from . import update
from .optimizer import Optimizer, array_of, check_not_negative, gradients_of, number


class SGD(Optimizer):
    """Gradient descent with momentum, dampening, Nesterov's variant and weight decay."""

    def __init__(self, params: Iterable, lr: float | Tensor = 1e-3, momentum: float = 0.0,
                 dampening: float = 0.0, weight_decay: float | Tensor = 0.0,
                 nesterov: bool = False, *, maximize: bool = False, foreach: bool | None = None,
                 differentiable: bool = False, fused: bool | None = None):
        check_not_negative(lr=number(lr), momentum=momentum, weight_decay=number(weight_decay))
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        if differentiable:
            raise NotImplementedError("optimizers that are differentiated through are not written "
                                      "yet; write the update with tensor operators")
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize, "foreach": foreach,
            "differentiable": differentiable, "fused": fused,
        })

    def update(self, group: dict, params: list[Tensor]) -> None:
        """One step of one group."""
        buffers = fresh = [None] * len(params)
        if group["momentum"]:
            buffers, fresh = [], []
            for p in params:
                state = self.state[p]
                missing = state.get("momentum_buffer") is None
                if missing:
                    state["momentum_buffer"] = ops.zeros_like(p.detach())
                fresh.append(missing)
                buffers.append(array_of(state["momentum_buffer"]))
        update.sgd([array_of(p) for p in params], gradients_of(params), buffers, fresh,
                   lr=number(group["lr"]), momentum=group["momentum"],
                   dampening=group["dampening"], weight_decay=number(group["weight_decay"]),
                   nesterov=group["nesterov"], maximize=group["maximize"])
