"""`Module`: parameters, buffers and submodules under names, and what is done to all at once.

Layers are in `nn/layers.py`; the functions that they call are in `nn/functional.py`.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator

from ..autograd.grad_mode import no_grad
from ..core import dtype as dt
from ..core.handle import Tensor
from .parameter import Buffer, Parameter

_IncompatibleKeys = namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])


class _HookHandle:
    """Removes a hook."""

    _numbers = itertools.count()

    def __init__(self, table: dict):
        self.table, self.number = table, next(self._numbers)

    def remove(self) -> None:
        self.table.pop(self.number, None)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


class Module:
    """Base of all layers; subclasses define `forward`."""

    training: bool
    _version = 1

    def __init__(self, *args, **kwargs):
        put = super().__setattr__
        put("training", True)
        put("_parameters", {})
        put("_buffers", {})
        put("_non_persistent_buffers_set", set())
        put("_modules", {})
        put("_forward_hooks", {})
        put("_forward_pre_hooks", {})
        super().__init__(*args, **kwargs)

    def forward(self, *args, **kwargs):
        """What the module computes; subclasses must define it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required '
                                  '"forward" function')

    def __call__(self, *args, **kwargs):
        if not self._forward_pre_hooks and not self._forward_hooks:
            return self.forward(*args, **kwargs)
        for hook, with_kwargs in list(self._forward_pre_hooks.values()):
            changed = hook(self, args, kwargs) if with_kwargs else hook(self, args)
            if changed is not None and with_kwargs:
                args, kwargs = changed
            elif changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        out = self.forward(*args, **kwargs)
        for hook, with_kwargs in list(self._forward_hooks.values()):
            changed = hook(self, args, kwargs, out) if with_kwargs else hook(self, args, out)
            out = out if changed is None else changed
        return out

    # attributes

    def __setattr__(self, name: str, value) -> None:
        state = self.__dict__
        if isinstance(value, Parameter):
            self._remove(name, "_buffers", "_modules")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._check_ready("module")
            self._remove(name, "_parameters", "_buffers")
            state["_modules"][name] = value
        elif isinstance(value, Buffer):
            self._remove(name, "_parameters", "_modules")
            self.register_buffer(name, value, value.persistent)
        elif name in state.get("_parameters", ()):
            if value is not None:
                raise TypeError(f"cannot assign '{type(value).__name__}' as parameter '{name}' "
                                "(nn.Parameter or None expected)")
            state["_parameters"][name] = None
        elif name in state.get("_modules", ()):
            if value is not None:
                raise TypeError(f"cannot assign '{type(value).__name__}' as child module '{name}' "
                                "(nn.Module or None expected)")
            state["_modules"][name] = None
        elif name in state.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"cannot assign '{type(value).__name__}' object to buffer '{name}' "
                                "(Tensor or None required)")
            state["_buffers"][name] = value
        else:
            super().__setattr__(name, value)

    def __getattr__(self, name: str):
        state = self.__dict__
        for table in ("_parameters", "_buffers", "_modules"):
            if table in state and name in state[table]:
                return state[table][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self):
        own = [*self._parameters, *self._buffers, *self._modules]
        return sorted({*super().__dir__(), *own})

    def _check_ready(self, what: str) -> None:
        if "_modules" not in self.__dict__:
            raise AttributeError(f"cannot assign {what} before Module.__init__() call")

    def _remove(self, name: str, *tables: str) -> None:
        self.__dict__.pop(name, None)
        for table in tables:
            self.__dict__.get(table, {}).pop(name, None)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter under a name."""
        self._check_ready("parameters")
        self._check_name("parameter", name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"cannot assign '{type(param).__name__}' object to parameter '{name}' "
                            "(nn.Parameter or None required)")
        if param is not None and param.grad_fn is not None:
            raise ValueError(f"Cannot assign non-leaf Tensor to parameter '{name}'. Model "
                             "parameters must be created explicitly.")
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is state but no parameter."""
        self._check_ready("buffers")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{type(tensor).__name__}' object to buffer '{name}' "
                            "(Tensor or None required)")
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a submodule under a name."""
        self._check_name("module", name, self._modules)
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        self._modules[name] = module

    register_module = add_module

    def _check_name(self, what: str, name: str, table: dict) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {type(name).__name__}")
        if "." in name:
            raise KeyError(f"{what} name can't contain \".\", got: {name}")
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')
        if hasattr(self, name) and name not in table:
            raise KeyError(f"attribute '{name}' already exists")

    # walking

    def named_modules(self, memo: set | None = None, prefix: str = "",
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """All modules of the tree, this one first, with their dotted names."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, path, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """All modules of the tree, this one first."""
        for _, module in self.named_modules():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Direct submodules with their names."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """Direct submodules."""
        for _, module in self.named_children():
            yield module

    def _named_members(self, members: Callable, prefix: str, recurse: bool,
                       remove_duplicate: bool) -> Iterator[tuple[str, Tensor]]:
        seen = set()
        modules = (self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
                   if recurse else [(prefix, self)])
        for path, module in modules:
            for name, value in members(module):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield (f"{path}.{name}" if path else name), value

    def named_parameters(self, prefix: str = "", recurse: bool = True,
                         remove_duplicate: bool = True) -> Iterator[tuple[str, Parameter]]:
        """Parameters with their dotted names."""
        yield from self._named_members(lambda m: m._parameters.items(), prefix, recurse,
                                       remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Parameters."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_buffers(self, prefix: str = "", recurse: bool = True,
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Buffers with their dotted names."""
        yield from self._named_members(lambda m: m._buffers.items(), prefix, recurse,
                                       remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Buffers."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """The submodule with a dotted name."""
        module = self
        for part in target.split(".") if target else ():
            if part not in module._modules:
                raise AttributeError(f"{type(module).__name__} has no attribute `{part}`")
            module = module._modules[part]
        return module

    def get_parameter(self, target: str) -> Parameter:
        """The parameter with a dotted name."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in module._parameters:
            raise AttributeError(f"{type(module).__name__} has no parameter `{name}`")
        return module._parameters[name]

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with a dotted name."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in module._buffers:
            raise AttributeError(f"{type(module).__name__} has no buffer `{name}`")
        return module._buffers[name]

    # changing all at once

    def apply(self, fn: Callable[[Module], None]) -> Module:
        """Call `fn` on every submodule and then on this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor]) -> Module:
        """Replace the data of all parameters and buffers."""
        for module in self.children():
            module._apply(fn)
        for param in self._parameters.values():
            if param is None:
                continue
            with no_grad():
                grad = param.grad
                param.data = fn(param.data)
                if grad is not None:
                    param.grad = fn(grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args, **kwargs) -> Module:
        """Move to a device and/or convert floating parameters to a dtype."""
        device, dtype = _destination(args, kwargs)
        if dtype is not None and not dtype.is_inexact:
            raise TypeError("nn.Module.to only accepts floating point or complex dtypes, but got "
                            f"desired dtype={dtype}")

        def convert(tensor: Tensor) -> Tensor:
            if device is not None:
                tensor = tensor.to(device)
            return tensor.to(dtype) if dtype is not None and tensor.dtype.is_inexact else tensor

        return self._apply(convert)

    def type(self, dst_type) -> Module:
        """Convert all parameters and buffers to a dtype."""
        return self._apply(lambda t: t.to(dst_type))

    def float(self) -> Module:
        """Convert floating parameters and buffers to float32."""
        return self.to(dt.float32)

    def double(self) -> Module:
        """Convert floating parameters and buffers to float64."""
        return self.to(dt.float64)

    def half(self) -> Module:
        """Convert floating parameters and buffers to float16."""
        return self.to(dt.float16)

    def bfloat16(self) -> Module:
        """Convert floating parameters and buffers to bfloat16."""
        return self.to(dt.bfloat16)

    def cpu(self) -> Module:
        """Move to main memory."""
        return self.to("cpu")

    def cuda(self, device=None) -> Module:
        """Move to a GPU."""
        return self.to("cuda" if device is None else device)

    def train(self, mode: bool = True) -> Module:
        """Switch all modules to training mode."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Module:
        """Switch all modules to evaluation mode."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Make all parameters collect gradients, or stop."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters."""
        for param in self.parameters():
            if param.grad is None:
                continue
            if set_to_none:
                param.grad = None
            else:
                param.grad.detach_()
                param.grad.zero_()

    # saving and loading

    def state_dict(self, *args, destination: dict | None = None, prefix: str = "",
                   keep_vars: bool = False) -> dict[str, Tensor]:
        """Parameters and persistent buffers by their dotted names."""
        if args:
            destination = args[0]
            prefix = args[1] if len(args) > 1 else prefix
            keep_vars = args[2] if len(args) > 2 else keep_vars
        destination = OrderedDict() if destination is None else destination
        own = [*self._parameters.items(), *((name, buffer) for name, buffer in self._buffers.items()
                                            if name not in self._non_persistent_buffers_set)]
        for name, tensor in own:
            if tensor is not None:
                destination[prefix + name] = tensor if keep_vars else tensor.detach()
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.",
                                  keep_vars=keep_vars)
        return destination

    def load_state_dict(self, state_dict: dict[str, Tensor], strict: bool = True,
                        assign: bool = False) -> tuple[list[str], list[str]]:
        """Copy parameters and buffers from a dictionary made by `state_dict`."""
        own = self.state_dict(keep_vars=True)
        missing = [name for name in own if name not in state_dict]
        unexpected = [name for name in state_dict if name not in own]
        problems = []
        if strict and unexpected:
            problems.append("Unexpected key(s) in state_dict: "
                            + ", ".join(f'"{k}"' for k in unexpected) + ". ")
        if strict and missing:
            problems.append("Missing key(s) in state_dict: "
                            + ", ".join(f'"{k}"' for k in missing) + ". ")
        for name, tensor in own.items():
            if name not in state_dict:
                continue
            value = state_dict[name]
            if not isinstance(value, Tensor):
                problems.append(f'While copying the parameter named "{name}", expected Tensor but '
                                f"received {type(value)}")
            elif tuple(value.shape) != tuple(tensor.shape):
                problems.append(f"size mismatch for {name}: copying a param with shape "
                                f"{value.shape} from checkpoint, the shape in current model is "
                                f"{tensor.shape}.")
            elif assign:
                self._assign(name, value)
            else:
                with no_grad():
                    tensor.copy_(value)
        if problems:
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t"
                               + "\n\t".join(problems))
        return _IncompatibleKeys(missing, unexpected)

    def _assign(self, target: str, value: Tensor) -> None:
        """Put a tensor itself in the place of a parameter or buffer."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name in module._parameters:
            if not isinstance(value, Parameter):
                value = Parameter(value, module._parameters[name].requires_grad)
            module._parameters[name] = value
        else:
            module._buffers[name] = value

    # hooks

    def register_forward_hook(self, hook: Callable, *, prepend: bool = False,
                              with_kwargs: bool = False, always_call: bool = False) -> _HookHandle:
        """Call `hook(module, args, output)` after forward; it may return another output."""
        return self._add_hook("_forward_hooks", hook, prepend, with_kwargs)

    def register_forward_pre_hook(self, hook: Callable, *, prepend: bool = False,
                                  with_kwargs: bool = False) -> _HookHandle:
        """Call `hook(module, args)` before forward; it may return other arguments."""
        return self._add_hook("_forward_pre_hooks", hook, prepend, with_kwargs)

    def _add_hook(self, table: str, hook: Callable, prepend: bool, with_kwargs: bool):
        hooks = self.__dict__[table]
        handle = _HookHandle(hooks)
        if prepend:
            later = dict(hooks)
            hooks.clear()
            hooks[handle.number] = (hook, with_kwargs)
            hooks.update(later)
        else:
            hooks[handle.number] = (hook, with_kwargs)
        return handle

    # printing

    def extra_repr(self) -> str:
        """What a layer adds to its printed form."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = []
        for key, module in self._modules.items():
            text = repr(module).replace("\n", "\n  ")
            children.append(f"({key}): {text}")
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"


def _destination(args: tuple, kwargs: dict):
    """(device, dtype) of `to(device)`, `to(dtype)`, `to(device, dtype)` or `to(tensor)`."""
    device, dtype = kwargs.get("device"), kwargs.get("dtype")
    for value in args:
        if isinstance(value, Tensor):
            device, dtype = value.device, value.dtype
        elif isinstance(value, dt.DType):
            dtype = value
        elif not isinstance(value, bool) and value is not None:
            device = value
    return device, dt.as_dtype(dtype)
