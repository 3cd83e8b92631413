"""Hooks of modules: those of one module, those of all, and how they are called.

`Module` (`nn/module.py`) inherits `Hooked`; a call without any hook does not come here.  Backward
hooks stand on two nodes that compute nothing, one around the inputs and one around the outputs;
hooks of nodes themselves are in `tensor/hooks.py`.
"""

from __future__ import annotations

import functools
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable

from ..autograd.function import Function
from ..autograd.grad_mode import is_grad_enabled
from ..core.handle import Tensor
from ..parts.tensor import PartsTensor
from ..tensor.hooks import RemovableHandle, of_all_modules
from ..threads.state import fast

__all__ = [
    "BackwardHook",
    "BackwardHookFunction",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

# hooks of all modules
_global_buffer_registration_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_module_registration_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_parameter_registration_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_forward_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_forward_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_forward_hooks_with_kwargs: OrderedDict[int, bool] = OrderedDict()
_global_forward_hooks_always_called: OrderedDict[int, bool] = OrderedDict()
_global_backward_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_backward_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_is_full_backward_hook: bool | None = None
of_all_modules += [_global_forward_pre_hooks, _global_forward_hooks, _global_backward_pre_hooks,
                   _global_backward_hooks]


def _add(table: OrderedDict, hook: Callable, prepend: bool = False,
         flags: tuple[tuple[OrderedDict, bool], ...] = ()) -> RemovableHandle:
    """Put a hook into its table and note it in the tables of the flags that are set."""
    handle = RemovableHandle(table, extra_dict=[flag for flag, _ in flags])
    table[handle.id] = hook
    if prepend:
        table.move_to_end(handle.id, last=False)
    for flag, is_set in flags:
        if is_set:
            flag[handle.id] = True
    return handle


def _ask(table: OrderedDict, module, name: str, value):
    """What registration hooks want registered in place of a value."""
    for hook in table.values():
        changed = hook(module, name, value)
        value = value if changed is None else changed
    return value


def register_module_buffer_registration_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, name, buffer)` for every buffer registered; it may return another."""
    return _add(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, name, submodule)` for every module registered; it may return another."""
    return _add(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, name, param)` for every parameter registered; it may return another."""
    return _add(_global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, args)` before forward of every module."""
    return _add(_global_forward_pre_hooks, hook)


def register_module_forward_hook(hook: Callable, *, with_kwargs: bool = False,
                                 always_call: bool = False) -> RemovableHandle:
    """Call `hook(module, args, output)` after forward of every module."""
    return _add(_global_forward_hooks, hook,
                flags=((_global_forward_hooks_with_kwargs, with_kwargs),
                       (_global_forward_hooks_always_called, always_call)))


def register_module_backward_hook(hook: Callable) -> RemovableHandle:
    """Like `Module.register_backward_hook`, for every module."""
    _one_kind(_global_is_full_backward_hook, False, "as a global Module hook")
    globals()["_global_is_full_backward_hook"] = False
    return _add(_global_backward_hooks, hook)


def register_module_full_backward_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` in backward of every module."""
    _one_kind(_global_is_full_backward_hook, True, "as a global Module hook")
    globals()["_global_is_full_backward_hook"] = True
    return _add(_global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, grad_output)` in backward of every module, before anything else."""
    return _add(_global_backward_pre_hooks, hook)


def _one_kind(have: bool | None, want: bool, where: str) -> None:
    if have is not None and have != want:
        raise RuntimeError("Cannot use both regular backward hooks and full backward hooks "
                           f"{where}. Please use only one of them.")


class WithModule:
    """A hook that gets its module first, without keeping it alive."""

    def __init__(self, hook: Callable, module) -> None:
        functools.update_wrapper(self, hook)
        self.hook, self.module = hook, weakref.ref(module)

    def __call__(self, *args):
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args)

    def __getstate__(self) -> tuple:
        return self.hook, self.module()

    def __setstate__(self, state: tuple) -> None:
        self.__init__(*state)


# backward hooks


class BackwardHookFunction(Function):
    """Computes nothing: its node is where a module's gradients pass."""

    @staticmethod
    def forward(ctx, *args):
        ctx.mark_non_differentiable(*[a for a in args if not a.requires_grad])
        return args

    @staticmethod
    def backward(ctx, *grads):
        return grads


class BackwardHook:
    """The backward hooks of one call of a module."""

    def __init__(self, module, user_hooks: list, user_pre_hooks: list) -> None:
        self.module, self.user_hooks, self.user_pre_hooks = module, user_hooks, user_pre_hooks
        self.grad_outputs: tuple | None = None  # while a sweep is inside of the module
        self.inputs: list[int] | None = None  # which inputs are tensors; None: none needs grad

    def setup_input_hook(self, args: tuple) -> tuple:
        """The arguments behind a node that runs the hooks."""
        self.count = len(args)
        args, self.inputs = _through_node(args, self._leaving)
        return args

    def setup_output_hook(self, result):
        """The result behind a node that gets its gradients first."""
        results = result if isinstance(result, tuple) else (result,)
        results, self.outputs = _through_node(results, self._entering)
        self.width = len(results)
        return results if isinstance(result, tuple) else results[0]

    def _entering(self, _, grads: tuple) -> tuple:
        self.grad_outputs = _spread(grads, self.outputs, self.width)
        for hook in self.user_pre_hooks:
            new = hook(self.module, self.grad_outputs)
            if new is not None:
                _same_number(new, self.grad_outputs, "Backward pre hook", "grad_output")
                self.grad_outputs = new
        passed = self.grad_outputs
        if self.inputs is None:
            self._without_inputs()
        return tuple(passed[i] for i in self.outputs)

    def _without_inputs(self) -> None:
        warnings.warn("Full backward hook is firing when gradients are computed with respect to "
                      "module outputs since no inputs require gradients", stacklevel=5)
        nothing = (None,) * self.count
        for hook in self.user_hooks:
            new = hook(self.module, nothing, self.grad_outputs)
            if new is not None and not (isinstance(new, tuple) and all(g is None for g in new)):
                raise RuntimeError("Backward hook for Modules where no input requires gradient "
                                   "should always return None or None for all gradients.")
        self.grad_outputs = None

    def _leaving(self, grads: tuple, _) -> tuple | None:
        if self.grad_outputs is None:  # the outputs were not used in this sweep
            return None
        found = _spread(grads, self.inputs, self.count)
        for hook in self.user_hooks:
            new = hook(self.module, found, self.grad_outputs)
            if new is not None:
                _same_number(new, found, "Backward hook", "grad_input")
                found = new
        self.grad_outputs = None
        return tuple(found[i] for i in self.inputs)


def _same_number(new, old: tuple, who: str, what: str) -> None:
    if len(new) != len(old):
        raise RuntimeError(f"{who} returned an invalid number of {what}, got {len(new)}, but "
                           f"expected {len(old)}")


def _spread(values, places: list[int], count: int) -> tuple:
    out = [None] * count
    for place, value in zip(places, values, strict=True):
        out[place] = value
    return tuple(out)


def _through_node(values: tuple, hook: Callable) -> tuple[tuple, list[int] | None]:
    """The tensors among the values behind a node with the hook, and their places."""
    places = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
    if not is_grad_enabled() or not any(values[i].requires_grad for i in places):
        return values, None
    behind = BackwardHookFunction.apply(*(values[i] for i in places))
    node = next(t.grad_fn for t in behind if t.grad_fn is not None)
    node.register_hook(_of_whole(hook, behind) if fast["PARTS"] else hook)
    out = list(values)
    for i, tensor in zip(places, behind, strict=True):
        out[i] = tensor
    return (tuple(out) if type(values) is tuple else type(values)(*out)), places


def _of_whole(hook: Callable, values: tuple) -> Callable:
    """A hook that gets gradients of tensors that are made of parts as such tensors."""
    if not any(isinstance(v, PartsTensor) for v in values):
        return hook

    def around(*both):
        new = hook(*[tuple([v.with_carrier(g) if isinstance(v, PartsTensor) and g is not None else g
                            for v, g in zip(values, grads)]) for grads in both])
        return None if new is None else tuple([
            v.cotangent(g) if isinstance(v, PartsTensor) and g is not None else g
            for v, g in zip(values, new)])

    return around


def _warn_if_incomplete(inputs, result, node) -> None:
    """Say so where a hook on the last node does not see what its user expects."""
    missing, kind = "", "output"
    results = (result,) if isinstance(result, Tensor) else result
    inputs = (inputs,) if isinstance(inputs, Tensor) else inputs
    if not (isinstance(results, tuple) and all(isinstance(r, Tensor) for r in results)):
        missing = "on a Module that does not return a single Tensor or a tuple of Tensors"
    elif not (isinstance(inputs, tuple) and all(isinstance(i, Tensor) for i in inputs)):
        missing, kind = ("on a Module that does not take as input a single Tensor or a tuple of "
                         "Tensors"), "input"
    else:
        nodes = {r.grad_fn for r in results if r.grad_fn is not None}
        if len(nodes) > 1:
            missing = "when outputs are generated by different autograd Nodes"
        elif node not in nodes:
            missing = "when outputs are nested in python data structure"
        elif ({i.grad_fn for i in inputs if i.grad_fn is not None}
              != {n for n, _ in node.next_functions}):
            missing, kind = "when the forward contains multiple autograd Nodes", "input"
    if missing:
        warnings.warn(f"Using a non-full backward hook {missing} is deprecated: this hook will be "
                      f"missing some grad_{kind}. Please use register_full_backward_hook.",
                      FutureWarning, stacklevel=4)


# one module


class Hooked:
    """The part of `Module` that is about hooks."""

    forward: Callable
    _backward_pre_hooks: OrderedDict
    _backward_hooks: OrderedDict
    _is_full_backward_hook: bool | None
    _forward_hooks: OrderedDict
    _forward_hooks_with_kwargs: OrderedDict
    _forward_hooks_always_called: OrderedDict
    _forward_pre_hooks: OrderedDict
    _forward_pre_hooks_with_kwargs: OrderedDict

    def register_forward_hook(self, hook: Callable, *, prepend: bool = False,
                              with_kwargs: bool = False,
                              always_call: bool = False) -> RemovableHandle:
        """Call `hook(module, args, output)` after forward; it may return another output."""
        return _add(self._forward_hooks, hook, prepend,
                    ((self._forward_hooks_with_kwargs, with_kwargs),
                     (self._forward_hooks_always_called, always_call)))

    def register_forward_pre_hook(self, hook: Callable, *, prepend: bool = False,
                                  with_kwargs: bool = False) -> RemovableHandle:
        """Call `hook(module, args)` before forward; it may return other arguments."""
        return _add(self._forward_pre_hooks, hook, prepend,
                    ((self._forward_pre_hooks_with_kwargs, with_kwargs),))

    def register_full_backward_pre_hook(self, hook: Callable,
                                        prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` when backward enters; it may return other gradients."""
        return _add(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook: Callable,
                                    prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when backward has passed the module.

        It may return other gradients of the inputs.
        """
        _one_kind(self._is_full_backward_hook, True, "on a single Module")
        self._is_full_backward_hook = True
        return _add(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` after the node of the output has run.

        Where forward consists of several operators this sees only the last; prefer
        `register_full_backward_hook`.
        """
        _one_kind(self._is_full_backward_hook, False, "on a single Module")
        self._is_full_backward_hook = False
        return _add(self._backward_hooks, hook)

    def _get_backward_hooks(self) -> tuple[list, list]:
        """Full backward hooks and the others, those of all modules first."""
        found: dict[bool, list] = {True: [], False: []}
        if _global_is_full_backward_hook is not None:
            found[_global_is_full_backward_hook] += _global_backward_hooks.values()
        if self._is_full_backward_hook is not None:
            found[self._is_full_backward_hook] += self._backward_hooks.values()
        return found[True], found[False]

    def _get_backward_pre_hooks(self) -> list:
        return [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]

    def _call_impl(self, *args, **kwargs):
        """Call with all hooks."""
        called: list = []  # the call as far as it got: [args, kwargs, result], then ids of hooks
        try:
            return self._call_with_hooks(args, kwargs, called)
        except Exception:
            self._call_regardless(called)
            raise

    def _call_with_hooks(self, args: tuple, kwargs: dict, called: list):
        called.extend((args, kwargs, None))
        for number, hook in (*_global_forward_pre_hooks.items(), *self._forward_pre_hooks.items()):
            if number in self._forward_pre_hooks_with_kwargs:
                new = hook(self, args, kwargs)
                if new is not None:
                    if not isinstance(new, tuple) or len(new) != 2:
                        raise RuntimeError("forward pre-hook must return None or a tuple of "
                                           f"(new_args, new_kwargs), but got {new}.")
                    args, kwargs = new
            else:
                new = hook(self, args)
                if new is not None:
                    args = new if isinstance(new, tuple) else (new,)
            called[:2] = args, kwargs
        full, last_node = self._get_backward_hooks()
        pre = self._get_backward_pre_hooks()
        around = BackwardHook(self, full, pre) if full or pre else None
        if around is not None:
            args = called[0] = around.setup_input_hook(args)
        result = called[2] = self.forward(*args, **kwargs)
        for number, hook in (*_global_forward_hooks.items(), *self._forward_hooks.items()):
            called.append(number)
            new = self._forward_hook(number, hook, args, kwargs, result)
            if new is not None:
                result = called[2] = new
        if around is not None:
            if not isinstance(result, (Tensor, tuple)):
                warnings.warn("For backward hooks to be called, module output should be a Tensor "
                              f"or a tuple of Tensors but received {type(result)}", stacklevel=3)
            result = around.setup_output_hook(result)
        if last_node:
            self._hook_last_node(last_node, args, result)
        return result

    def _forward_hook(self, number: int, hook: Callable, args: tuple, kwargs: dict, result):
        if (number in self._forward_hooks_with_kwargs
                or number in _global_forward_hooks_with_kwargs):
            return hook(self, args, kwargs, result)
        return hook(self, args, result)

    def _hook_last_node(self, hooks: list, args: tuple, result) -> None:
        first = result
        while not isinstance(first, Tensor):
            if isinstance(first, dict):
                first = next(v for v in first.values() if isinstance(v, Tensor))
            else:
                first = first[0]
        if first.grad_fn is not None:
            for hook in hooks:
                first.grad_fn.register_hook(WithModule(hook, self))
            _warn_if_incomplete(args, result, first.grad_fn)

    def _call_regardless(self, called: list) -> None:
        """After an error: run the hooks that asked for it and have not run."""
        args, kwargs, result, *done = called
        for kind, table, always in (
                ("global module", _global_forward_hooks, _global_forward_hooks_always_called),
                ("module", self._forward_hooks, self._forward_hooks_always_called)):
            for number, hook in table.items():
                if number not in always or number in done:
                    continue
                try:
                    new = self._forward_hook(number, hook, args, kwargs, result)
                    result = result if new is None else new
                except Exception as error:
                    warnings.warn(f"{kind} forward hook with ``always_call=True`` raised an "
                                  "exception that was silenced as another error was raised in "
                                  f"forward: {error}", stacklevel=3)
