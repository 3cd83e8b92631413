"""Run an optimizer on other parameters and state for a while."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from typing import Any

from ..core.handle import Tensor
from .optimizer import Optimizer


def _refuse(text: str) -> RuntimeError:
    return RuntimeError(f"swap_in_optimizer_params_and_state requires {text}")


def _checked(optimizer: Optimizer, given: Any, count: int) -> tuple[dict, list]:
    """State and groups of a state_dict that fits the optimizer."""
    if not optimizer.state:
        raise _refuse("initialized optimizer state.")
    if not isinstance(given, dict):
        raise _refuse("an optimizer state_dict.")
    state, groups = given.get("state"), given.get("param_groups")
    if not isinstance(state, dict) or not all(isinstance(k, int) for k in state):
        raise _refuse("'state' to be a dict from parameter numbers to the state of each.")
    if not all(isinstance(v, dict) for v in state.values()):
        raise _refuse("the state of each parameter to be a dict.")
    if not isinstance(groups, list) or len(groups) != len(optimizer.param_groups):
        raise _refuse("'param_groups' to be a list of as many groups as the optimizer has.")
    for i, (own, new) in enumerate(zip(optimizer.param_groups, groups)):
        if not isinstance(new, dict) or new.keys() != own.keys():
            raise _refuse(f"param group {i} to have the keys of the optimizer's own: "
                          f"{sorted(own)}")
        numbers = new["params"]
        if not isinstance(numbers, list) or not all(isinstance(n, int) for n in numbers):
            raise _refuse(f"the 'params' of group {i} to be a list of numbers.")
        if len(numbers) != len(own["params"]):
            raise _refuse(f"group {i} to have {len(own['params'])} parameters, not "
                          f"{len(numbers)}.")
    numbers = {n for g in groups for n in g["params"]}
    if extra := [k for k in state if k not in numbers]:
        raise _refuse(f"'state' to have no other keys than the groups' parameters; got {extra}.")
    if count < sum(len(g["params"]) for g in groups):
        raise _refuse("a tensor for each parameter of the groups.")
    return state, groups


@contextlib.contextmanager
def swap_in_optimizer_params_and_state(optimizer: Optimizer, swapin_parameters: dict[str, Tensor],
                                       swapin_optim_state: dict[str, Any]):
    """For the block, the optimizer has the given parameters and state.

    `swapin_optim_state` is what `state_dict()` gives; parameters are taken in its order.  In-place
    updates reach the given tensors; everything else about the optimizer is as before afterwards.
    """
    given, groups = _checked(optimizer, swapin_optim_state, len(swapin_parameters))
    params = iter(swapin_parameters.values())
    state, before = optimizer.state, [dict(g) for g in optimizer.param_groups]
    try:
        optimizer.state = defaultdict(dict)
        for own, new in zip(optimizer.param_groups, groups):
            own.update(new)
            own["params"] = [next(params) for _ in new["params"]]
            for p, number in zip(own["params"], new["params"]):
                optimizer.state[p] = dict(given.get(number, {}))
        yield
    finally:
        for own, old in zip(optimizer.param_groups, before):
            own.clear()
            own.update(old)
        optimizer.state = state
