"""What `compile(module)` gives: a module that runs the compiled program of another."""

from __future__ import annotations

from .module import Module


class OptimizedModule(Module):
    """A module compiled; parameters, hooks and attributes are those of the original."""

    def __init__(self, original: Module, compiled) -> None:
        super().__init__()
        self._orig_mod = original
        self.__dict__["_compiled"] = compiled

    @property
    def training(self) -> bool:  # type: ignore[override]
        """Is the original in training?"""
        return self._orig_mod.training

    def forward(self, *args, **kwargs):
        """One call of the compiled program."""
        return self._compiled(*args, **kwargs)

    def __getattr__(self, name: str):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name in ("_orig_mod", "__copy__", "__deepcopy__"):
                raise
            try:
                return getattr(self._orig_mod, name)
            except AttributeError:
                return getattr(self._compiled, name)

    def __setattr__(self, name: str, value) -> None:
        if name == "_orig_mod":
            super().__setattr__(name, value)
        else:  # what the program reads is the original's
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __reduce__(self) -> tuple:
        """The original, to be compiled anew as a copy or in the process that reads it."""
        own = {k: v for k, v in self.__dict__.items() if k not in ("_modules", "_compiled")}
        return self._compiled.recompile, (self._orig_mod,), own

    def __setstate__(self, own: dict) -> None:
        self.__dict__.update(own)

    def __getitem__(self, key):
        return self._orig_mod[key]

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self._orig_mod)})


class AOTModule(Module):
    """A module compiled ahead of time; parameters and buffers are those of the original."""

    def __init__(self, original: Module, state, compiled) -> None:
        super().__init__()
        self.orig_module = original
        self.__dict__["_state"], self.__dict__["_compiled"] = state, compiled

    def forward(self, *args, **kwargs):
        """One call of the compiled program."""
        return self._compiled(*self._state(), *args, **kwargs)
