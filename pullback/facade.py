"""`Facade`: a module of PyTorch's tree whose names live elsewhere in this package.

Programs import classes from the files in which PyTorch keeps them.  A facade stands for such a file
and looks names up in ours when they are asked for.  `Shelf` is a package of ours whose files are
loaded on demand, `Package` one with functions that are named as its files.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
import types
from collections.abc import Iterator

OWN = __package__.partition(".")[0]


class Facade(types.ModuleType):
    """A module without content: `places` says where its names are, in order of the search.

    A place is a path below this package, "." the package itself, `path.*` all files of a package.
    Names found in `further` places can be imported too, but are not listed.
    """

    def __init__(self, name: str, places: str, further: str = ""):
        super().__init__(name, f"Names of {OWN}: {places}.")
        self.__path__: list[str] = []  # modules below are asked for by name, never searched
        self._places, self._further = places.split(), further.split()
        self._replaced: dict[str, tuple] = {}  # by assignment: where, and what was there

    def _modules(self, further: bool = False) -> Iterator[types.ModuleType]:
        for place in self._places + self._further if further else self._places:
            path = OWN if place == "." else f"{OWN}.{place}"
            if not path.endswith(".*"):
                yield importlib.import_module(path)
                continue
            package = importlib.import_module(path[:-2])
            for found in pkgutil.iter_modules(package.__path__, path[:-1]):
                if not found.ispkg:
                    yield importlib.import_module(found.name)

    def __getattr__(self, name: str):
        if name == "__all__":
            return [n for n in dir(self) if not n.startswith("_")]
        if not name.startswith("__"):
            for module in self._modules(further=True):
                try:
                    return getattr(module, name)
                except AttributeError:
                    continue
        return elsewhere(self.__name__, name)

    def __call__(self, *args, **kwargs):
        # importing a path puts the module in its parent's place of that name, where a function of
        # the same name may have been: `torch.autograd.gradcheck`
        return getattr(self, self.__name__.rpartition(".")[2])(*args, **kwargs)

    def __setattr__(self, name: str, value) -> None:
        held = None if name.startswith("_") or isinstance(value, types.ModuleType) else (
            next((m for m in self._modules() if name in _held(m)), None))
        if held is None:
            super().__setattr__(name, value)
        else:  # who replaces a name means the one that is used
            self._replaced.setdefault(name, (held, _held(held)[name]))
            setattr(held, name, value)

    def __delattr__(self, name: str) -> None:
        if name in self._replaced:
            held, before = self._replaced.pop(name)
            setattr(held, name, before)
        else:
            super().__delattr__(name)

    def __dir__(self):
        listed = map(_names, self._modules())
        return sorted({*self.__dict__, *(name for names in listed for name in names)})


def elsewhere(module: str, name: str) -> types.ModuleType:
    """What PyTorch has under a module at a path that this package keeps elsewhere, or loads later.

    The end of every module's `__getattr__`: AttributeError where PyTorch has no such path.
    """
    if not name.startswith("__"):
        own = module.startswith(f"{OWN}.")
        path = ".".join(["torch", *filter(None, [public_path(module)])]) if (
            own or module == OWN) else module
        found = file_of(f"{module}.{name}") if own else None
        if found is not None:
            return found
        aliases = importlib.import_module(f"{OWN}.torch.install")
        if f"{path}.{name}" in aliases.PLACES:
            return aliases.counterpart(f"{path}.{name}")
    shown = f"{OWN}.{public_path(module)}" if module.startswith(f"{OWN}.") else module
    raise AttributeError(f"module {shown!r} has no attribute {name!r}")


def file_of(path: str) -> types.ModuleType | None:
    """A module of this package, None if there is no such file."""
    if path in sys.modules:
        return sys.modules[path]
    parent, _, _ = path.rpartition(".")
    if parent and not hasattr(file_of(parent), "__path__"):
        return None
    return importlib.import_module(path) if importlib.util.find_spec(path) else None


def for_torch(name: str) -> types.ModuleType:
    """A file of `torch/`, which nothing imports: it is loaded when PyTorch's form of something is
    asked for."""
    return importlib.import_module(f"{OWN}.torch.{name}")


def public_path(module: str) -> str:
    """The path below `torch` under which users know a module of this package."""
    path = module.partition(".")[2].removeprefix("torch.")
    return f"fx{path[5:]}" if path.partition(".")[0] == "graph" else path


class Shelf(types.ModuleType):
    """A module that loads its names on demand; who looks into its `__dict__` finds them all."""

    @property
    def __dict__(self):
        held = _held(self)
        for name in self.__all__:
            if name not in held:
                held[name] = getattr(self, name)
        return held


_held = types.ModuleType.__dict__["__dict__"].__get__


class Package(Shelf):
    """A package with functions that are named as files of it: importing one hides no function."""

    def __setattr__(self, name: str, value) -> None:
        if not (isinstance(value, types.ModuleType) and name in self.__all__):
            super().__setattr__(name, value)


def _names(module: types.ModuleType) -> list[str]:
    """What a module offers: what it lists or defines, not what it imports."""
    own = _held(module)
    if "__all__" in own or "__getattr__" in own:
        return own.get("__all__") or dir(module)
    return [name for name, value in own.items()
            if getattr(value, "__module__", None) == module.__name__]
