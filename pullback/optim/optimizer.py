"""`Optimizer`: groups of parameters with options, the state of each parameter, hooks.

Third parties derive from it with a `step` of their own, as in PyTorch.  The optimizers of this
package are given by a formula instead: see `descent.py`.
"""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from ..array import dtype as dt
from ..autograd.grad_mode import _Switch
from ..core.handle import Tensor
from ..creation import from_dlpack, typename
from ..table.packets import ops
from ..tensor.hooks import RemovableHandle, of_all_steps
from ..threads.state import fast, state

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]

ParamsT: TypeAlias = Iterable
_global_optimizer_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_optimizer_post_hooks: OrderedDict[int, Callable] = OrderedDict()
of_all_steps += [_global_optimizer_pre_hooks, _global_optimizer_post_hooks]


class _RequiredParameter:
    """Default of an option that every group must give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


def _add_hook(table: OrderedDict, hook: Callable, prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(table)
    table[handle.id] = hook
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def _hooks(first: OrderedDict, then: OrderedDict) -> list | tuple:
    return [*first.values(), *then.values()] if first or then else ()


def register_optimizer_step_pre_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before every step of every optimizer."""
    return _add_hook(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after every step of every optimizer."""
    return _add_hook(_global_optimizer_post_hooks, hook)


_HOOKS = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


class Optimizer:
    """Base of all optimizers."""

    _captured = False  # does `step` know what to do inside of a compiled function?

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        for name in _HOOKS:
            setattr(self, name, OrderedDict())
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError("params argument given to the optimizer should be an iterable of "
                            f"Tensors or dicts, but got {typename(params)}")
        self.state: defaultdict[Tensor, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    # steps

    def step(self, closure: Callable | None = None) -> Any:
        """Update all parameters that have a gradient."""
        raise NotImplementedError

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or fill them with zeros."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    if state.mode or fast["PARTS"]:  # a capture wants to know, parts have it
                        p.grad = None
                    elif p._record is not None:
                        p._record.grad = None
                    continue
                grad = p.grad
                if grad is None:
                    continue
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    @staticmethod
    def profile_hook_step(func: Callable) -> Callable:
        """A `step` with the hooks around it."""

        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            self = args[0]
            if state.mode:
                from . import capture

                capture.watch_hooks(self)
            for hook in _hooks(_global_optimizer_pre_hooks, self._optimizer_step_pre_hooks):
                result = hook(self, args, kwargs)
                if result is None:
                    continue
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError(f"{func} must return None or a tuple of (new_args, "
                                       f"new_kwargs), but got {result}.")
                args, kwargs = result
            if state.mode and not self._captured:
                out = capture.foreign(self, functools.partial(func, *args, **kwargs))
            else:
                out = func(*args, **kwargs)
            self._optimizer_step_code()
            for hook in _hooks(self._optimizer_step_post_hooks, _global_optimizer_post_hooks):
                hook(self, args, kwargs)
            return out

        return wrapper

    def _optimizer_step_code(self) -> None:
        """Called after every step; profilers look for it."""

    def _patch_step_function(self) -> None:
        """Put the hooks around the `step` of the class, once."""
        self._zero_grad_profile_name = f"Optimizer.zero_grad#{type(self).__name__}.zero_grad"
        cls = type(self)
        if not getattr(cls.step, "hooked", False):
            cls.step = self.profile_hook_step(cls.step)
            cls.step.hooked = True

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before a step; it may return new arguments."""
        return _add_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after a step."""
        return _add_hook(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable, prepend: bool = False):
        """Call `hook(optimizer)` before `state_dict()`."""
        return _add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable, prepend: bool = False):
        """Call `hook(optimizer, state_dict)` after `state_dict()`; it may return another."""
        return _add_hook(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable, prepend: bool = False):
        """Call `hook(optimizer, state_dict)` before loading; it may return another."""
        return _add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable, prepend: bool = False):
        """Call `hook(optimizer)` after loading."""
        return _add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # groups

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError("optimizer parameters need to be organized in ordered collections, but "
                            "the ordering of tensors in sets will change between runs. Please use "
                            "a list instead.")
        params = [params] if isinstance(params, Tensor) else list(params)
        names = [p[0] for p in params if isinstance(p, tuple)]
        if names and len(names) != len(params):
            raise ValueError("all optimizer params should be with/without names. Some param names "
                             "are missing")
        params = [p[1] if isinstance(p, tuple) else p for p in params]
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is "
                                f"{typename(p)}")
            if not self.defaults.get("differentiable") and not (p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError("parameter group didn't specify a value of required optimization "
                                 f"parameter {name}")
        seen = {id(p) for other in self.param_groups for p in other["params"]}
        if any(bool(names) != ("param_names" in other) for other in self.param_groups):
            raise ValueError("all optimizer param groups should be with/without names. cannot add "
                             f"param group {'with' if names else 'without'} names to the optimizer")
        if not seen.isdisjoint(id(p) for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        if len({id(p) for p in params}) != len(params):
            warnings.warn("optimizer contains a parameter group with duplicate parameters; in "
                          "future, this will cause an error", stacklevel=3)
        param_group["params"] = params
        if names:
            param_group["param_names"] = names
        for name, default in self.defaults.items():
            param_group.setdefault(name, default)
        self.param_groups.append(param_group)

    def __repr__(self) -> str:
        lines = [type(self).__name__ + " ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k != "params"]
        return "\n".join(lines) + "\n)"

    # state

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOKS:
            self.__dict__.setdefault(name, OrderedDict())
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def state_dict(self) -> dict[str, Any]:
        """State and options, with parameters replaced by their numbers."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        groups, start = [], 0
        for group in self.param_groups:
            for i, p in enumerate(group["params"], start):
                numbers.setdefault(id(p), i)
            packed = {k: v for k, v in group.items() if k != "params"}
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            start += len(packed["params"])
            groups.append(packed)
        found = {numbers[id(k)] if isinstance(k, Tensor) else k: v for k, v in self.state.items()}
        out = {"state": found, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            result = hook(self, out)
            out = out if result is None else result
        return out

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` of an equally built optimizer gave."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            result = hook(self, state_dict)
            state_dict = state_dict if result is None else result
        saved = deepcopy(state_dict["param_groups"])
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(self.param_groups, saved)):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the "
                             "size of optimizer's group")
        by_number = dict(zip(chain.from_iterable(g["params"] for g in saved),
                             chain.from_iterable(g["params"] for g in self.param_groups)))
        given = state_dict["param_groups"]
        found: defaultdict[Any, Any] = defaultdict(dict)
        for k, v in state_dict["state"].items():
            p = by_number.get(k)
            found[k if p is None else p] = v if p is None else _fitted(p, v, k, given)
        for group, new in zip(self.param_groups, saved):
            new["params"] = group["params"]
            if "param_names" in group:
                new.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": found, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    @staticmethod
    def _process_value_according_to_param_policy(
        param: Tensor, value: Tensor, param_id: int, param_groups: list[dict[Any, Any]],
        key: Hashable = None,
    ) -> Tensor:
        """A loaded tensor in the parameter's dtype and place; steps stay as they are."""
        group = next((g for g in param_groups if param_id in g["params"]), {})
        if key == "step":
            if group.get("capturable") or group.get("fused"):
                return value.to(dtype=dt.float32, device=param.device)
            return value
        dtype = param.dtype if param.is_floating_point() else value.dtype
        return value.to(dtype=dtype, device=param.device)

    @staticmethod
    def _group_tensors_by_device_and_dtype(tensorlistlist: list,
                                           with_indices: bool = False) -> dict:
        """(device, dtype) of the first list -> (lists of the tensors there, their places)."""
        found: dict = {}
        for i, t in enumerate(tensorlistlist[0]):
            lists, places = found.setdefault((t.device, t.dtype),
                                             ([[] for _ in tensorlistlist], []))
            for mine, theirs in zip(lists, tensorlistlist):
                mine.append(theirs[i] if theirs else None)
            places.append(i)
        return found

    def _accelerator_graph_capture_health_check(self) -> None:
        """There are no stream captures that a step could disturb."""

    _cuda_graph_capture_health_check = _accelerator_graph_capture_health_check


def _fitted(param: Tensor, value, number, groups: list, key=None):
    """Loaded state for a parameter, containers included; it shares no memory with its source."""
    if hasattr(value, "__dlpack__") and not isinstance(value, (Tensor, np.ndarray)):
        value = from_dlpack(value)  # a tensor of another library: PyTorch's state loads, too
    if isinstance(value, Tensor):
        fit = Optimizer._process_value_according_to_param_policy
        return fit(param, value.detach().clone(), number, groups, key)
    if isinstance(value, dict):
        return {k: _fitted(param, v, number, groups, k) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return type(value)(_fitted(param, v, number, groups) for v in value)
    return value


# what third parties import from here


def _use_grad_for_differentiable(func: Callable) -> Callable:
    """A `step` that records only if the optimizer is differentiable."""

    @functools.wraps(func)
    def step(self, *args, **kwargs) -> Any:
        with _Switch(self.defaults["differentiable"]):
            return func(self, *args, **kwargs)

    return step


def captured() -> bool:
    """Is the step part of a function that is being captured?"""
    return bool(state.mode)


def _get_value(x):
    """The number in a tensor; the tensor itself in a capture."""
    return x.item() if isinstance(x, Tensor) and not captured() else x


def _stack_if_compiling(x):
    return ops.stack(list(x)) if captured() else x


def _dispatch_sqrt(x):
    """The root of a number or a tensor."""
    return x.sqrt() if isinstance(x, Tensor) else x**0.5


def _to_scalar(x):
    """A tensor of one element without dimensions; anything else as it is."""
    return x.squeeze() if isinstance(x, Tensor) and x.ndim else x


def _view_as_real(params: list, *state_and_grads: list) -> None:
    """Replace complex tensors in the lists by pairs of real numbers."""
    for i, p in enumerate(params):
        if p.is_complex():
            for values in (params, *state_and_grads):
                values[i] = ops.view_as_real(values[i])


def _get_scalar_dtype(is_fused: bool | None = None):
    """The dtype of step counters."""
    return dt.float64 if not is_fused and dt.default() is dt.float64 else dt.float32


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """(fused, foreach) that PyTorch would choose: on CPUs neither, unless fused is asked for."""
    floats = all(p is None or p.is_floating_point() for p in params)
    return use_fused and not differentiable and floats, False


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    return ["cpu", "cuda"]


def _device_dtype_check_for_fused(p: Tensor, cuda_unsupported: bool = False) -> None:
    """`fused=True` is for floating-point parameters."""
    if not p.is_floating_point():
        raise RuntimeError("`fused=True` requires all the params to be floating point Tensors, "
                           f"but got {p.dtype} on {p.device.type}")


def _disable_dynamo_if_unsupported(single_tensor_fn: Callable | None = None) -> Callable:
    """A decorator that does nothing: captures take any update."""
    return lambda func: func


