"""Averages of a model's weights: over the steps (SWA), or with exponential forgetting (EMA)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from ..array import dtype as dt
from ..autograd.grad_mode import no_grad
from ..core.handle import Tensor
from ..nn.module import Module
from ..nn.normalisation import _BatchNorm
from ..table.packets import ops
from .base_scheduler import LRScheduler, _format_param, _warn_get_lr_called_within_step
from .optimizer import Optimizer

__all__ = ["SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn",
           "get_swa_multi_avg_fn", "update_bn"]


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] "
                         "range.")


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable:
    """A function that moves a list of averages towards a list of present values."""
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param_list: list[Tensor], current_param_list: list[Tensor], _) -> None:
        if ema_param_list[0].dtype.is_inexact:
            ops._foreach_lerp_(ema_param_list, current_param_list, 1 - decay)
            return
        for average, value in zip(ema_param_list, current_param_list, strict=True):
            average.copy_(average * decay + value * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> Callable:
    """A function that adds a list of present values to a list of means of `num_averaged` values."""

    @no_grad()
    def swa_update(averaged_param_list: list[Tensor], current_param_list: list[Tensor],
                   num_averaged: Tensor | int) -> None:
        count = float(num_averaged) + 1
        if averaged_param_list[0].dtype.is_inexact:
            ops._foreach_lerp_(averaged_param_list, current_param_list, 1 / count)
            return
        for average, value in zip(averaged_param_list, current_param_list, strict=True):
            average.copy_(average + (value - average) / count)

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Callable:
    """The next exponential average from the last one and the present value."""
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged) -> Tensor:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Callable:
    """The mean of one value more."""

    @no_grad()
    def swa_update(averaged_param: Tensor, current_param: Tensor,
                   num_averaged: Tensor | int) -> Tensor:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages; `update_parameters` adds the present ones.

    Without a function it keeps the mean.  `use_buffers` averages buffers too; else they are copied.
    """

    n_averaged: Tensor

    def __init__(self, model: Module, device=None, avg_fn: Callable | None = None,
                 multi_avg_fn: Callable | None = None, use_buffers: bool = False) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", ops.zeros([], dtype=dt.int64))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args, **kwargs) -> Any:
        """The averaged model's output."""
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Add the present parameters of a model to the averages."""
        mine, theirs = self.module.parameters(), model.parameters()
        if self.use_buffers:
            mine, theirs = chain(mine, self.module.buffers()), chain(theirs, model.buffers())
        pairs = [(a.detach(), b.detach().to(a.device)) for a, b in zip(mine, theirs)]
        if self.n_averaged == 0:
            for average, value in pairs:
                average.copy_(value)
        elif self.avg_fn is not None:
            for average, value in pairs:
                average.copy_(self.avg_fn(average, value, self.n_averaged))
        elif pairs:
            update = self.multi_avg_fn or get_swa_multi_avg_fn()
            lists = [list(values) for values in zip(*pairs)]
            groups = Optimizer._group_tensors_by_device_and_dtype(lists)
            for (averages, values), _ in groups.values():
                update(averages, values, self.n_averaged)
        if not self.use_buffers:
            for own, other in zip(self.module.buffers(), model.buffers(), strict=True):
                own.detach().copy_(other.detach().to(own.device))
        self.n_averaged += 1


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device=None) -> None:
    """Compute the running statistics of all batch norms anew from the batches of a loader."""
    momenta = {m: m.momentum for m in model.modules() if isinstance(m, _BatchNorm)}
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.reset_running_stats()
        module.momentum = None  # the mean of all batches
    for batch in loader:
        if isinstance(batch, (list, tuple)):
            batch = batch[0]
        model(batch if device is None else batch.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Goes over to a constant rate, along a cosine or a line, and stays there."""

    def __init__(self, optimizer: Optimizer, swa_lr: float | list[float], anneal_epochs: int = 10,
                 anneal_strategy: str = "cos", last_epoch: int = -1) -> None:
        for lr, group in zip(_format_param("swa_lr", optimizer, swa_lr), optimizer.param_groups):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError("anneal_strategy must be one of 'cos' or 'linear', instead got "
                             f"{anneal_strategy}")
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError("anneal_epochs must be equal or greater than 0, got "
                             f"{anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def anneal_func(self, t: float) -> float:
        """How much of the way is gone after a share of the epochs."""
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def _share(self, step: int) -> float:
        return self.anneal_func(max(0, min(1, step / max(1, self.anneal_epochs))))

    def get_lr(self) -> list:
        _warn_get_lr_called_within_step(self)
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        out = []
        for group in self.optimizer.param_groups:
            lr, end = group["lr"], group["swa_lr"]
            start = end if before == 1 else (lr - before * end) / (1 - before)
            out.append(end * now + start * (1 - now))
        return out
