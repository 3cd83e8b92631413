"""`Module`: parameters, buffers and submodules under names, and what is done to all at once.

Hooks are in `nn/module_hooks.py`, saving and loading in `nn/module_state.py`.  `nn/linear.py` shows
a layer; the functions that layers call are in `nn/functional/`.
"""

from __future__ import annotations

import inspect
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Self

from .. import __future__ as switches
from ..array import dtype as dt
from ..array.device import Device
from ..autograd.grad_mode import no_grad
from ..core.handle import Tensor
from ..table.packets import ops
from . import module_hooks as all_modules
from .module_hooks import (
    Hooked,
    _ask,
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_forward_hooks,
    _global_forward_pre_hooks,
)
from .module_state import Stateful, _IncompatibleKeys  # noqa: F401  programs import it from here
from .parameter import Buffer, Parameter


def _addindent(text: str, spaces: int) -> str:
    """The text with all lines after the first indented."""
    return text.replace("\n", "\n" + " " * spaces)


def _typename(value) -> str:
    from ..creation import typename

    return typename(value)


def _forward_unimplemented(self, *input) -> None:
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" '
                              "function")


_TABLES = ("_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_hooks_with_kwargs",
           "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs",
           "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
           "_load_state_dict_post_hooks")


class Module(Hooked, Stateful):
    """Base of all layers; subclasses define `forward`."""

    dump_patches = False
    training: bool
    call_super_init = False  # hand arguments on to the next class of a diamond
    _compiled_call_impl: Callable | None = None
    forward: Callable = _forward_unimplemented

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and (args or kwargs):
            name = type(self).__name__
            if kwargs:
                raise TypeError(f"{name}.__init__() got an unexpected keyword argument "
                                f"'{next(iter(kwargs))}'")
            raise TypeError(f"{name}.__init__() takes 1 positional argument but {len(args) + 1} "
                            "were given")
        state = self.__dict__
        state["training"] = True
        state["_parameters"] = {}
        state["_buffers"] = {}
        state["_non_persistent_buffers_set"] = set()
        state["_is_full_backward_hook"] = None
        for table in _TABLES:
            state[table] = OrderedDict()
        state["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_call_impl" in cls.__dict__ and "__call__" not in cls.__dict__:
            cls.__call__ = Module._wrapped_call_impl  # no shortcut past the class's own

    @staticmethod
    def _graph_module_class() -> type:
        """What a graph made from a module is an instance of."""
        from .traced import TracedModule

        return TracedModule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        state = self.__dict__
        try:
            plain = not (state["_forward_hooks"] or state["_forward_pre_hooks"]
                         or state["_backward_hooks"] or state["_backward_pre_hooks"]
                         or _global_forward_hooks or _global_forward_pre_hooks
                         or _global_backward_hooks or _global_backward_pre_hooks
                         or "_compiled_call_impl" in state)
        except KeyError as missing:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute {missing}: "
                                 "call super().__init__() in its __init__") from None
        if plain:
            return self.forward(*args, **kwargs)
        return self._wrapped_call_impl(*args, **kwargs)

    def _wrapped_call_impl(self, *args, **kwargs):
        """Call as compiled, if it is, or with all hooks."""
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        return self._call_impl(*args, **kwargs)

    def compile(self, *args, **kwargs) -> None:
        """Compile the calls of this module in place; arguments as for `pullback.compile`."""
        from ..compile.api import compile

        self._compiled_call_impl = compile(self._call_impl, *args, **kwargs)

    # attributes

    def __setattr__(self, name: str, value: Any) -> None:
        state = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in state:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_buffers", "_modules")
            self.register_parameter(name, value)
        elif name in state.get("_parameters", ()):
            if value is not None:
                raise TypeError(f"cannot assign '{_typename(value)}' as parameter '{name}' "
                                "(torch.nn.Parameter or None expected)")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if "_modules" not in state:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "_parameters", "_buffers")
            state["_modules"][name] = _ask(all_modules._global_module_registration_hooks, self,
                                           name, value)
        elif name in state.get("_modules", ()):
            if value is not None:
                raise TypeError(f"cannot assign '{_typename(value)}' as child module '{name}' "
                                "(torch.nn.Module or None expected)")
            state["_modules"][name] = _ask(all_modules._global_module_registration_hooks, self,
                                           name, value)
        elif name in state.get("_buffers", ()) or isinstance(value, Buffer):
            self._set_buffer(name, value)
        else:
            super().__setattr__(name, value)

    def _forget(self, name: str, *tables: str) -> None:
        """Take a name away from wherever else it is."""
        state = self.__dict__
        state.pop(name, None)
        for table in tables:
            state[table].pop(name, None)
        state["_non_persistent_buffers_set"].discard(name)

    def _set_buffer(self, name: str, value) -> None:
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(f"cannot assign '{_typename(value)}' as buffer '{name}' "
                            "(torch.nn.Buffer, torch.Tensor or None expected)")
        if isinstance(value, Buffer):
            persistent = value.persistent
        else:
            persistent = name not in self._non_persistent_buffers_set
        register = self.register_buffer
        if (getattr(register, "__func__", None) is Module.register_buffer
                or "persistent" in inspect.signature(register).parameters):
            register(name, value, persistent)
        elif persistent:
            register(name, value)
        else:
            raise RuntimeError("Registering a non-persistent buffer on a Module subclass that "
                               "implements register_buffer() without the persistent argument is "
                               "not allowed.")

    def __getattr__(self, name: str) -> Any:
        state = self.__dict__
        if "_parameters" in state:
            if name in (table := state["_parameters"]):
                return table[name]
            if name in (table := state["_buffers"]):
                return table[name]
            if name in (table := state["_modules"]):
                return table[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self):
        own = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        return sorted(name for name in own if not name[0].isdigit())

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter under a name."""
        self._check_name("parameter", name, "_parameters")
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(f"cannot assign '{_typename(param)}' object to parameter '{name}' "
                                "(torch.nn.Parameter or None required)")
            if param.grad_fn is not None:
                raise ValueError(f"Cannot assign non-leaf Tensor to parameter '{name}'. Model "
                                 f"parameters must be created explicitly. To express '{name}' as "
                                 "a function of another Tensor, compute the value in the "
                                 "forward() method.")
            param = _ask(all_modules._global_parameter_registration_hooks, self, name, param)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is state but no parameter; saved with the state if persistent."""
        self._check_name("buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{_typename(tensor)}' object to buffer '{name}' "
                            "(torch Tensor or None required)")
        self._buffers[name] = _ask(all_modules._global_buffer_registration_hooks, self, name,
                                   tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a submodule under a name."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_typename(module)} is not a Module subclass")
        self._check_name("module", name, "_modules")
        self._modules[name] = _ask(all_modules._global_module_registration_hooks, self, name,
                                   module)

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as `add_module`."""
        self.add_module(name, module)

    def _check_name(self, what: str, name: str, table: str) -> None:
        if table not in self.__dict__:
            raise AttributeError(f"cannot assign {what} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {_typename(name)}")
        if "." in name:
            got = f", got: {name}" if what == "module" else ""
            raise KeyError(f"{what} name can't contain \".\"{got}")
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')
        if name not in self.__dict__[table] and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    # pickling

    def __getstate__(self) -> dict:
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        return state

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        own = self.__dict__
        for table in _TABLES:  # what was saved long ago may lack some
            own.setdefault(table, OrderedDict())
        own.setdefault("_non_persistent_buffers_set", set())
        own.setdefault("_is_full_backward_hook", None)

    def _replicate_for_data_parallel(self) -> Module:
        """A copy with tables of its own but the same buffers and modules, and no parameters."""
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers = self._buffers.copy()
        replica._modules = self._modules.copy()
        replica._is_replica = True
        return replica

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

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """All modules of the tree, this one first."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
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

    def _named_members(self, get_members_fn: Callable, prefix: str = "", recurse: bool = True,
                       remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        seen = set()
        modules = (self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
                   if recurse else [(prefix, self)])
        for path, module in modules:
            for name, value in get_members_fn(module):
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
            module = module._part(part)
            if not isinstance(module, Module):
                raise AttributeError(f"`{part}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put a module in the place of a dotted name; `strict`: there must be one already."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if (strict or hasattr(parent, name)) and not isinstance(parent._part(name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter with a dotted name."""
        path, _, name = target.rpartition(".")
        param = self.get_submodule(path)._part(name)
        if not isinstance(param, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return param

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with a dotted name."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        buffer = module._part(name)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return buffer

    def _part(self, name: str):
        if not hasattr(self, name):
            raise AttributeError(f"{self._get_name()} has no attribute `{name}`")
        return getattr(self, name)

    # changing all at once

    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Call `fn` on every submodule and then on this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the data of all parameters, of their gradients, and all buffers.

        Parameters stay the same objects, since optimizers hold them; only one without memory
        gives way to another.
        """
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, param in self._parameters.items():
            if param is None:
                continue
            with no_grad():
                new = fn(param)
                grad = None if param.grad is None else fn(param.grad)
            if new.is_meta != param.is_meta or switches._overwrite_module_params_on_conversion:
                self._parameters[name] = new = Parameter(new, param.requires_grad)
                new.grad = grad
                continue
            if switches._swap_module_params_on_conversion:
                new = type(param)(new, param.requires_grad)
                new.grad = grad
                from ..utils.swapping import swap_tensors

                swap_tensors(param, new)
                continue
            param.data = new
            if grad is not None:
                param.grad.data = grad
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args, **kwargs) -> Self:
        """Move to a device and/or convert floating parameters and buffers to a dtype."""
        device, dtype, options = _destination(*args, **kwargs)
        if dtype is not None and not dtype.is_inexact:
            raise TypeError("nn.Module.to only accepts floating point or complex dtypes, but got "
                            f"desired dtype={dtype}")
        if dtype is not None and dtype.is_complex:
            warnings.warn("Complex modules are a new feature: some layers may not work with "
                          "complex parameters", stacklevel=2)

        def convert(tensor: Tensor) -> Tensor:
            if tensor.is_meta and device is not None and device.type != "meta":
                raise NotImplementedError("Cannot copy out of meta tensor; no data! Please use "
                                          "torch.nn.Module.to_empty() instead of "
                                          "torch.nn.Module.to() when moving module from meta to a "
                                          "different device.")
            extra = options if tensor.ndim in (4, 5) else {}
            if device is not None:
                extra = {**extra, "device": device}
            if dtype is not None and tensor.dtype.is_inexact:
                extra = {**extra, "dtype": dtype}
            return tensor.to(**extra) if extra else tensor

        return self._apply(convert)

    def to_empty(self, *, device, recurse: bool = True) -> Self:
        """Move to a device without the values."""

        def empty(tensor: Tensor) -> Tensor:
            place = tensor.device if device is None else device
            return ops.empty(list(tensor.shape), dtype=tensor.dtype, device=place)

        return self._apply(empty, recurse=recurse)

    def type(self, dst_type) -> Self:
        """Convert all parameters and buffers to a dtype."""
        return self._apply(lambda t: t.type(dst_type))

    def _floating(self, dtype: dt.DType) -> Self:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self) -> Self:
        """Convert floating parameters and buffers to float32."""
        return self._floating(dt.float32)

    def double(self) -> Self:
        """Convert floating parameters and buffers to float64."""
        return self._floating(dt.float64)

    def half(self) -> Self:
        """Convert floating parameters and buffers to float16."""
        return self._floating(dt.float16)

    def bfloat16(self) -> Self:
        """Convert floating parameters and buffers to bfloat16."""
        return self._floating(dt.bfloat16)

    def cpu(self) -> Self:
        """Move to main memory."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device=None) -> Self:
        """Move to a GPU."""
        return self._apply(lambda t: t.cuda(device))

    def share_memory(self) -> Self:
        """Put all parameters and buffers into memory that other processes can be given."""
        return self._apply(lambda t: t.share_memory_())

    def train(self, mode: bool = True) -> Self:
        """Switch all modules to training mode."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Switch all modules to evaluation mode."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Make all parameters collect gradients, or stop."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters."""
        if getattr(self, "_is_replica", False):
            warnings.warn("zero_grad() has no effect on a replica made by nn.DataParallel: its "
                          "parameters are copies", stacklevel=2)
        for param in self.parameters():
            grad = param.grad
            if grad is None:
                continue
            if set_to_none:
                param.grad = None
            else:
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    # printing

    def extra_repr(self) -> str:
        """What a layer adds to its printed form."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_addindent(repr(module), 2)}"
                    for name, module in self._modules.items()]
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"


def _destination(*args, device=None, dtype=None, non_blocking: bool = False, copy: bool = False,
                 memory_format=None):
    """Device, dtype and the rest of what `to(...)` was given, in whatever form."""
    for value in args:
        if isinstance(value, Tensor):
            device, dtype = value.device, value.dtype
        elif isinstance(value, dt.DType):
            dtype = value
        elif isinstance(value, (str, int, Device)) and not isinstance(value, bool):
            device = value
        elif value is not None and not isinstance(value, bool):
            raise TypeError("to() received an invalid combination of arguments: expected a device, "
                            f"a dtype or a Tensor, got {_typename(value)}")
    options = {} if memory_format is None else {"memory_format": memory_format}
    if device is not None:
        device = Device("cuda", device) if isinstance(device, int) else Device(device)
    return device, dt.as_dtype(dtype), options
