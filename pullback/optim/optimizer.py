"""`Optimizer`: groups of parameters with options, and the state that belongs to each parameter.

A subclass says how one group is updated; the arithmetic on raw arrays is in `optim/update.py`.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import chain

import numpy as np

from ..autograd.grad_mode import enable_grad
from ..core.handle import Box, Tensor
from ..core.surface import mark_written

REQUIRED = object()  # default of an option that every group must give


class Optimizer:
    """Base of all optimizers."""

    def __init__(self, params: Iterable, defaults: dict):
        if isinstance(params, Tensor):
            raise TypeError("params argument given to the optimizer should be an iterable of "
                            f"Tensors or dicts, but got {type(params).__name__}")
        self.defaults = defaults
        self.state: defaultdict[Tensor, dict] = defaultdict(dict)
        self.param_groups: list[dict] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict) -> None:
        """Add parameters with options of their own."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        group = dict(param_group)
        params = group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError("optimizer parameters need to be organized in ordered collections, but "
                            "the ordering of tensors in sets will change between runs")
        named = [p if isinstance(p, tuple) else (None, p) for p in params]
        group["params"] = [p for _, p in named]
        if any(name is not None for name, _ in named):
            group["param_names"] = [name for name, _ in named]
        for p in group["params"]:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is "
                                f"{type(p).__name__}")
            if not p.is_leaf:
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is REQUIRED and name not in group:
                raise ValueError("parameter group didn't specify a value of required optimization "
                                 f"parameter {name}")
            group.setdefault(name, default)
        seen = {id(p) for other in self.param_groups for p in other["params"]}
        if not seen.isdisjoint(id(p) for p in group["params"]):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if set_to_none:
                    p.grad = None
                else:
                    p.grad.detach_()
                    p.grad.zero_()

    def step(self, closure: Callable | None = None):
        """Update all parameters that have a gradient; a closure recomputes the loss first."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if params:
                self.update(group, params)
                mark_written(*params)
        return loss

    def update(self, group: dict, params: list[Tensor]) -> None:
        """Update parameters of one group, all of which have gradients."""
        raise NotImplementedError

    def state_dict(self) -> dict:
        """State and options, with parameters replaced by their numbers."""
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            packed = {k: v for k, v in group.items() if k != "params"}
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {numbers[id(p)]: values for p, values in self.state.items() if id(p) in numbers}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict) -> None:
        """Take over what `state_dict` of an equally built optimizer gave."""
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"])
               for a, b in zip(self.param_groups, saved, strict=True)):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the "
                             "size of optimizer's group")
        by_number = dict(zip(chain.from_iterable(g["params"] for g in saved),
                             chain.from_iterable(g["params"] for g in self.param_groups),
                             strict=True))
        self.state = defaultdict(dict)
        for number, values in state_dict["state"].items():
            p = by_number[number]
            self.state[p] = {k: _fitted(p, k, v) for k, v in values.items()}
        for group, other in zip(self.param_groups, saved, strict=True):
            for name, value in other.items():
                if name != "params":
                    group[name] = copy.deepcopy(value)

    def __repr__(self) -> str:
        lines = [type(self).__name__ + " ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k != "params"]
        return "\n".join(lines) + "\n)"


def _fitted(param: Tensor, name: str, value):
    """Loaded state as a tensor of its own, in the parameter's dtype unless it counts steps."""
    if not isinstance(value, Tensor):
        return copy.deepcopy(value)
    value = value.detach().clone()
    if name != "step" and param.dtype.is_inexact:
        value = value.to(param.dtype)
    return value


def array_of(tensor: Tensor):
    """The array behind a handle; updates write to it directly."""
    data = tensor._data
    if type(data) is not np.ndarray and isinstance(data, Box):
        raise RuntimeError("optimizer.step() updates arrays in place and cannot run inside a "
                           "function transform or a capture\n  Fix: return the gradients and call "
                           "step() outside")
    return data


def gradients_of(params: list[Tensor]) -> list:
    """The arrays of the gradients."""
    return [array_of(p.grad) for p in params]


def check_not_negative(**options: float) -> None:
    """Refuse negative options."""
    for name, value in options.items():
        if value < 0.0:
            label = {"lr": "learning rate", "eps": "epsilon value"}.get(name, f"{name} value")
            raise ValueError(f"Invalid {label}: {value}")


def number(value) -> float:
    """An option as a Python number; a tensor with one element is read."""
    return float(value.item()) if isinstance(value, Tensor) else value
