"""Tensors of a module as functions of others: `register_parametrization`.

The class of the module is replaced by a subclass of its own in which the tensor's name is a
property.  What is trained lies in `module.parametrizations.NAME`, a `ParametrizationList`.
`nn/utils/parametrizations.py` has ready-made ones.
"""

from __future__ import annotations

import contextlib
import copy
import copyreg
from collections.abc import Iterator, Sequence

from ...autograd.grad_mode import no_grad
from ...core.handle import Tensor
from ..containers import ModuleDict, ModuleList
from ..module import Module
from ..parameter import Parameter

_cache_enabled = 0  # how many `cached` contexts are open
_cache: dict[tuple[int, str], Tensor] = {}


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """While this is open a parametrized tensor is computed once only."""
    global _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache.clear()


def _register(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _check_same(what: str, facts: str, before: Tensor, after: Tensor,
                names: tuple[str, str]) -> None:
    """Refuse another dtype or shape."""
    for fact in facts.split():
        old, new = getattr(before, fact), getattr(after, fact)
        if old != new:
            raise ValueError(f"{what.format(fact)}\n{names[0].format(fact)}: {old}\n"
                             f"{names[1].format(fact)}: {new}")


def _name(value) -> str:
    return type(value).__name__


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in order, with the tensors that they start from."""

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with no_grad():
            new = original
            for module in reversed(self):
                if hasattr(module, "right_inverse"):
                    with contextlib.suppress(NotImplementedError):  # it starts from what is there
                        new = module.right_inverse(new)
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError("'right_inverse' must return a Tensor or a Sequence of tensors (list, "
                             f"tuple...). Got {_name(new)}")
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            _check_same("When `right_inverse` outputs one tensor, it may not change the {}.",
                        "dtype device", original, new,
                        ("original.{}", "right_inverse(original).{}"))
            original.data = new.detach()
            _register(self, "original", original)
        else:
            for i, part in enumerate(new):
                if not isinstance(part, Tensor):
                    raise ValueError("'right_inverse' must return a Tensor or a Sequence of "
                                     f"tensors (list, tuple...). Got element {i} of the sequence "
                                     f"with type {_name(part)}.")
                if isinstance(original, Parameter):
                    part = Parameter(part, original.requires_grad)
                part.requires_grad_(original.requires_grad)
                _register(self, f"original{i}", part)
        if not unsafe:
            self._check_result(self(), shape, dtype)

    def _check_result(self, result, shape, dtype) -> None:
        if not isinstance(result, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {_name(result)}.")
        for fact, old in (("dtype", dtype), ("shape", shape)):
            if getattr(result, fact) != old:
                raise ValueError(f"Registering a parametrization may not change the {fact} of the "
                                 "tensor, unless `unsafe` flag is enabled.\n"
                                 f"unparametrized {fact}: {old}\n"
                                 f"parametrized {fact}: {getattr(result, fact)}")

    def right_inverse(self, value: Tensor) -> None:
        """Set what the parametrizations start from such that they give `value`."""
        with no_grad():
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {_name(module)} does not implement "
                                       "right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor and not isinstance(value, Tensor):
                raise ValueError(f"`right_inverse` should return a tensor. Got {_name(value)}")
            if not self.is_tensor and not isinstance(value, Sequence):
                raise ValueError("'right_inverse' must return a sequence of tensors. Got "
                                 f"{_name(value)}.")
            values = [value] if self.is_tensor else value
            if len(values) != self.ntensors:
                raise ValueError("'right_inverse' must return a sequence of tensors of length "
                                 f"{self.ntensors}. Got a sequence of length {len(values)}.")
            originals = self._originals()
            for i, (own, new) in enumerate(zip(originals, values, strict=True)):
                if not isinstance(new, Tensor):
                    raise ValueError("'right_inverse' must return a sequence of tensors. Got "
                                     f"element {i} of type {_name(new)}.")
                if own.dtype != new.dtype:
                    raise ValueError(f"Tensor {i} returned by `right_inverse` has dtype "
                                     f"{new.dtype} while its original has dtype {own.dtype}")
            for own, new in zip(originals, values, strict=True):
                own.data = new.detach()

    def _originals(self) -> list[Tensor]:
        names = ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]
        return [getattr(self, name) for name in names]

    def forward(self) -> Tensor:
        first, *rest = self
        value = first(*self._originals())
        for module in rest:
            value = module(value)
        return value


# ---------------------------------------------------------------------------------------------
# Modules with parametrized tensors


def _deepcopy(self, memo: dict):
    replica = type(self).__new__(type(self))
    memo[id(self)] = replica
    replica.__dict__ = copy.deepcopy(self.__dict__, memo)
    for slot in copyreg._slotnames(type(self)):
        if hasattr(self, slot):
            setattr(replica, slot, copy.deepcopy(getattr(self, slot), memo))
    return replica


def _refuse_pickle(self):
    raise RuntimeError("Serialization of parametrized modules is only supported through "
                       "state_dict(). Save module.state_dict(); to load it, make the module, "
                       "register the same parametrizations and call load_state_dict.")


def _inject_new_class(module: Module) -> None:
    """Give a module a class of its own, so that properties can be added to it."""
    cls = type(module)
    own = {"__getstate__": _refuse_pickle}
    if not hasattr(cls, "__deepcopy__"):
        own["__deepcopy__"] = _deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), own)


def _inject_property(module: Module, name: str) -> None:
    """Make a name compute its tensor when it is read, and invert it when it is assigned."""
    def read(self) -> Tensor:
        if not _cache_enabled:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def write(self, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(read, write))


def register_parametrization(module: Module, tensor_name: str, parametrization: Module, *,
                             unsafe: bool = False) -> Module:
    """Replace a parameter or buffer by `parametrization(what it was)`.

    If the parametrization has a method `right_inverse` it says what to start from, one tensor or
    several, and the name can be assigned.  `unsafe`: dtype and shape may change unchecked.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_another(module, tensor_name, parametrization)
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_new_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = made
    else:
        raise ValueError(f"Module '{module}' does not have a parameter, a buffer, or a "
                         f"parametrized element with name '{tensor_name}'")
    return module


def _check_another(module: Module, name: str, parametrization: Module) -> None:
    """Refuse a further parametrization that gives something of another kind."""
    before = getattr(module, name)
    after = parametrization(before)
    if not isinstance(after, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {_name(after)}.")
    _check_same("Registering a parametrization may not change the {} of the tensor, unless the "
                "`unsafe` flag is enabled.", "dtype shape", before, after,
                (f"module.{name}.{{}}", f"parametrization(module.{name}).{{}}"))
    if hasattr(parametrization, "right_inverse"):
        try:
            back = parametrization.right_inverse(after)
        except NotImplementedError:
            return
        if not isinstance(back, Tensor):
            raise ValueError("parametrization.right_inverse must return a tensor. Got: "
                             f"{_name(back)}")
        _check_same("The tensor returned by parametrization.right_inverse must have the same {} "
                    f"as module.{name}, unless the `unsafe` flag is enabled.", "dtype shape",
                    before, back, (f"module.{name}.{{}}", "returned {}"))


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Does a module have parametrizations, of this tensor or at all?"""
    made = getattr(module, "parametrizations", None)
    if not isinstance(made, ModuleDict):
        return False
    return len(made) > 0 if tensor_name is None else tensor_name in made


def remove_parametrizations(module: Module, tensor_name: str,
                            leave_parametrized: bool = True) -> Module:
    """Make a tensor an ordinary one again, with its current value or with the original's."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    made = module.parametrizations[tensor_name]
    if not made.is_tensor and not leave_parametrized:
        raise ValueError("Cannot leave unparametrized (`leave_parametrized=False`) a tensor that "
                         "is parametrized in terms of a sequence of tensors.")
    if made.is_tensor:
        original = made.original
        if leave_parametrized:
            with no_grad():
                original.data = getattr(module, tensor_name).detach()
    else:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of a module, or what it was before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Module, to_module: Module,
                                         tensor_name: str | None = None) -> Module:
    """Parametrize another module in the same way, with the same tensors to start from."""
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        source = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        for key, own in list(source._parameters.items()) + list(source._buffers.items()):
            setattr(to_module.parametrizations[name], key, own)
    return to_module
