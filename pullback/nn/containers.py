"""Modules that hold others, or parameters, as lists and dictionaries.

Each keeps what it holds in the tables of `Module` (`nn/module.py`), so that everything that is done
to all parameters reaches them.
"""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from ..core.handle import Tensor
from .module import Module
from .parameter import Parameter


def _position(index: int, size: int) -> int:
    """An index into a list of that size, counted from its start."""
    index = operator.index(index)
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of range")
    return index % size


def _iterable(value, caller: str, what: str = "") -> Iterable:
    if not isinstance(value, Iterable) or isinstance(value, Tensor):
        raise TypeError(f"{caller} should be called with an iterable{what}, but got "
                        f"{type(value).__name__}")
    return value


def _pairs(values, name: str) -> Iterator[tuple[str, Any]]:
    """Keys and values of a mapping or of a sequence of pairs."""
    _iterable(values, f"{name}.update", " of key/value pairs")
    if hasattr(values, "items"):
        yield from values.items()
        return
    for i, pair in enumerate(values):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{name} update sequence element #{i} should be Iterable; is "
                            f"{type(pair).__name__}")
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueError(f"{name} update sequence element #{i} has length {len(pair)}; "
                             "2 is required")
        yield pair


class Container(Module):
    """Modules under the names of keyword arguments; `Module` itself does that, use it instead."""

    def __init__(self, **kwargs) -> None:
        warnings.warn("`nn.Container` is deprecated: derive from `nn.Module`", FutureWarning,
                      stacklevel=2)
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


class _Numbered(Module):
    """What lists of modules have in common: they are numbered in their order."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]

    def _name_at(self, index: int) -> str:
        return list(self._modules)[_position(index, len(self))]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name_at(index), module)

    def __delitem__(self, index: int | slice) -> None:
        names = list(self._modules)[index] if isinstance(index, slice) else [self._name_at(index)]
        for name in names:
            del self._modules[name]
        self._renumber(self)

    def _renumber(self, modules: Iterable[Module]) -> None:
        modules = list(modules)
        self._modules.clear()
        self._modules.update((str(i), module) for i, module in enumerate(modules))

    def append(self, module: Module):
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]):
        """Add several modules at the end."""
        for module in list(_iterable(modules, f"{type(self).__name__}.extend")):
            self.append(module)
        return self

    def insert(self, index: int, module: Module):
        """Add a module in front of an index."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def pop(self, key: int | slice) -> Module:
        """Remove a module, or a slice of them, and return it."""
        removed = self[key]
        del self[key]
        return removed


class Sequential(_Numbered):
    """Modules called one after the other; an OrderedDict gives them names."""

    def __init__(self, *args) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def forward(self, input):
        for module in self:
            input = module(input)
        return input

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._name_at(index)]

    def extend(self, sequential: Iterable[Module]) -> Sequential:
        """Add several modules at the end."""
        return super().extend(sequential)

    def insert(self, index: int, module: Module) -> Sequential:
        """Add a module in front of an index."""
        if isinstance(module, Module) and not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        return super().insert(index, module)

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *self._same_kind(other))

    def __iadd__(self, other: Sequential) -> Sequential:
        return self.extend(self._same_kind(other))

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*list(self) * self._times(other))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Sequential:
        return self.extend(list(self) * (self._times(other) - 1))

    @staticmethod
    def _same_kind(other) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError("add operator supports only objects of Sequential class, but "
                             f"{type(other)} is given.")
        return other

    def _times(self, factor) -> int:
        if not isinstance(factor, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(factor)}")
        if factor <= 0:
            raise ValueError(f"Non-positive multiplication factor {factor} for {type(self)}")
        return factor


class ModuleList(_Numbered):
    """A list of modules."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return self._modules[self._name_at(index)]

    def insert(self, index: int, module: Module) -> None:
        """Add a module in front of an index."""
        super().insert(index, module)

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __repr__(self) -> str:
        """Runs of modules that print alike are printed once."""
        runs: list[list] = []  # [first, last, text]
        for i, module in enumerate(self):
            text = repr(module)
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        lines = []
        for first, last, text in runs:
            head = f"({first}): " if first == last else f"({first}-{last}): {last - first + 1} x "
            lines.append("\n  " + (head + text).replace("\n", "\n  "))
        return f"{self._get_name()}({''.join(lines)}{chr(10) if lines else ''})"


class ModuleDict(Module):
    """A dictionary of modules."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Remove a module and return it."""
        return self._modules.pop(key)

    def keys(self):
        """Names."""
        return self._modules.keys()

    def items(self):
        """Names and modules."""
        return self._modules.items()

    def values(self):
        """Modules."""
        return self._modules.values()

    def update(self, modules: Mapping[str, Module]) -> None:
        """Add or replace several modules."""
        for key, module in _pairs(modules, "ModuleDict"):
            self[key] = module


class _Values(Module):
    """What lists and dictionaries of parameters have in common.

    Tensors become parameters; anything else is kept as it is, as an ordinary attribute.
    """

    def _put(self, name: str, value) -> None:
        plain = isinstance(value, Tensor) and not isinstance(value, Parameter)
        setattr(self, name, Parameter(value) if plain else value)

    def _line(self, key, value, typed) -> str:
        if not isinstance(value, Tensor):
            return f"  ({key}): Object of type: {type(value).__name__}"
        kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
        size = "x".join(map(str, value.shape))
        place = f" ({value.device})" if value.device.type != "cpu" else ""
        return f"  ({key}): {kind} containing: [{typed(value)} of size {size}{place}]"

    def __call__(self, *args, **kwargs):
        raise RuntimeError(f"{type(self).__name__} should not be called.")


class ParameterList(_Values):
    """A list of parameters."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(self[i] for i in range(*index.indices(len(self))))
        return getattr(self, str(_position(index, len(self))))

    def __setitem__(self, index: int, param) -> None:
        self._put(str(_position(index, len(self))), param)

    def __iadd__(self, parameters: Iterable[Any]) -> ParameterList:
        return self.extend(parameters)

    def append(self, value) -> ParameterList:
        """Add a value at the end; a plain tensor becomes a parameter."""
        self._put(str(self._size), value)
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add several values at the end."""
        for value in _iterable(values, "ParameterList.extend"):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(self._line(i, value, lambda t: t.dtype) for i, value in enumerate(self))


class ParameterDict(_Values):
    """A dictionary of parameters."""

    def __init__(self, parameters=None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._checked(key))

    def __setitem__(self, key: str, value) -> None:
        self._put(self._checked(key), value)
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    @staticmethod
    def _checked(key: str) -> str:
        if not isinstance(key, str):
            raise TypeError("Index given to ParameterDict cannot be used as a key as it is not a "
                            f"string (type is '{type(key).__name__}').")
        return key

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def keys(self):
        """Names."""
        return self._keys.keys()

    def values(self) -> Iterator[Any]:
        """Parameters."""
        return (self[key] for key in self._keys)

    def items(self) -> Iterator[tuple[str, Any]]:
        """Names and parameters."""
        return ((key, self[key]) for key in self._keys)

    def get(self, key: str, default=None):
        """A parameter, or the default where there is none."""
        return getattr(self, key) if key in self else default

    def setdefault(self, key: str, default=None):
        """A parameter; where there is none the default becomes it."""
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, parameters) -> None:
        """Add or replace several; a plain dictionary's in the order of their names."""
        pairs = _pairs(parameters, "ParameterDict")
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            pairs = iter(sorted(pairs))
        for key, value in pairs:
            self[key] = value

    def clear(self) -> None:
        """Remove all."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str):
        """Remove a parameter and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove the last and return its name and itself."""
        if not self._keys:
            raise KeyError("popitem(): dictionary is empty")
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def copy(self) -> ParameterDict:
        """Another dictionary of the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def fromkeys(self, keys: Iterable[str], default=None) -> ParameterDict:
        """A new dictionary with one value under all keys."""
        return ParameterDict((key, default) for key in keys)

    def __or__(self, other: ParameterDict) -> ParameterDict:
        both = self.copy()
        both.update(other)
        return both

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        return ParameterDict(OrderedDict(chain(other.items(), self.items())))

    def __ior__(self, other: ParameterDict) -> ParameterDict:
        self.update(other)
        return self

    def extra_repr(self) -> str:
        from ..creation import typename

        return "\n".join(self._line(key, value, typename) for key, value in self.items())
