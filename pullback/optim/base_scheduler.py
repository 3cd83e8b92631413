"""The base class of learning rate schedulers, and how they read and set options of groups.

The schedulers themselves are in `lr_scheduler.py`, which offers these names too.
"""

from __future__ import annotations

import warnings
import weakref
from functools import wraps

from ..core.handle import Tensor
from ..threads.state import state
from .optimizer import Optimizer, _to_scalar

_PUBLIC = f"{__package__}.lr_scheduler"  # where programs and pickles find the classes
EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` is deprecated: call `scheduler.step()` without it. "
    "With it, the closed form of the schedule is used where there is one.")


def _copied(value):
    return value.clone() if isinstance(value, Tensor) else value


def _format_param(name: str, optimizer: Optimizer, param) -> list:
    """One value per group."""
    count = len(optimizer.param_groups)
    if not isinstance(param, (list, tuple)):
        param = [param] * count
    elif len(param) != count:
        raise ValueError(f"{name} must have the same length as optimizer.param_groups. {name} has "
                         f"{len(param)} values, param_groups has {count}.")
    return [_copied(p) for p in param]


def _param_groups_val_list(optimizer: Optimizer, key: str) -> list:
    """An option of all groups."""
    return [_copied(group[key]) for group in optimizer.param_groups]


def _update_param_group_val(param_group: dict, key: str, val) -> None:
    """Change an option; one that is a tensor stays that tensor."""
    if isinstance(param_group[key], Tensor):
        param_group[key].fill_(_to_scalar(val))
    else:
        param_group[key] = val


def _require_optimizer(optimizer) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


class _Flag:
    """Sets an attribute of a scheduler for a block."""

    def __init__(self, scheduler, name: str) -> None:
        self.scheduler, self.name = scheduler, name

    def __enter__(self):
        setattr(self.scheduler, self.name, True)
        return self

    def __exit__(self, *exc):
        setattr(self.scheduler, self.name, False)


def _enable_get_lr_call(scheduler) -> _Flag:
    return _Flag(scheduler, "_get_lr_called_within_step")


def _initial_mode(scheduler) -> _Flag:
    return _Flag(scheduler, "_is_initial")


def _track_steps(optimizer: Optimizer) -> None:
    """Let the optimizer remember that it has made a step."""
    step = optimizer.step
    if hasattr(step, "_wrapped_by_lr_sched"):
        return
    function, reference = step.__func__, weakref.ref(optimizer)

    @wraps(function)
    def tracked(*args, **kwargs):
        owner = reference()
        owner._opt_called = True
        return function.__get__(owner, type(owner))(*args, **kwargs)

    tracked._wrapped_by_lr_sched = True
    optimizer.step = tracked


class LRScheduler:
    """Base of all schedulers: `get_lr()` says the rates of the epoch `self.last_epoch`."""

    __module__ = _PUBLIC
    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        _require_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(f"param 'initial_lr' is not specified in param_groups[{i}] when "
                               "resuming scheduler with last_epoch >= 0: load the optimizer's "
                               "state first, or leave last_epoch away in a fresh run")
        self.base_lrs: list = _param_groups_val_list(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _track_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        """Set the rates of the first epoch."""
        self._step_count = 0
        with _initial_mode(self):
            self.step()

    def state_dict(self) -> dict:
        """Everything but the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict) -> None:
        """Take over what `state_dict` gave."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list:
        """The rates that were set last."""
        return self._last_lr

    def get_lr(self) -> list:
        """The rates of this epoch."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next epoch."""
        if self._step_count == 1:
            self._check_order()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _check_order(self) -> None:
        if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            warnings.warn("Seems like `optimizer.step()` has been overridden after learning rate "
                          "scheduler initialization. Please, make sure to call `optimizer.step()` "
                          "before `lr_scheduler.step()`.", UserWarning, stacklevel=3)
        elif not getattr(self.optimizer, "_opt_called", False):
            warnings.warn("Detected call of `lr_scheduler.step()` before `optimizer.step()`: the "
                          "first value of the schedule is skipped. Call `optimizer.step()` first.",
                          UserWarning, stacklevel=3)

    def _update_lr(self, epoch: int | None = None) -> None:
        with _enable_get_lr_call(self):
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", None)
                values = self.get_lr() if closed is None else closed()
        self._set(values)

    def _set(self, values: list) -> None:
        """Give the groups their rates."""
        if state.mode:
            raise RuntimeError(
                "a learning rate scheduler cannot step inside of a function that is being captured"
                "\n  Fix: call scheduler.step() outside; compiled steps read the rate at each call")
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            _update_param_group_val(group, "lr", lr)
        self._last_lr: list = _param_groups_val_list(self.optimizer, "lr")


class _LRScheduler(LRScheduler):
    """The old name of the base class."""

    __module__ = _PUBLIC


def _warn_get_lr_called_within_step(scheduler: LRScheduler) -> None:
    if not scheduler._get_lr_called_within_step:
        warnings.warn("To get the last learning rate computed by the scheduler, please use "
                      "`get_last_lr()`.", UserWarning, stacklevel=2)
