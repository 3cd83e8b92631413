"""TorchScript's names over ordinary Python: nothing is scripted, everything runs.

`script` gives an object with TorchScript's interface that runs the Python program it was made from.
`trace` captures the operators and checks that they compute the same.  Archives of TorchScript are
neither written nor read.  `docs/compatibility.md` says what programs can rely on.
"""

from __future__ import annotations

import functools
import inspect
import textwrap
import typing
from typing import Any, Final

from .. import errors
from ..absent import getter
from ..compile.api import compile as _compile
from ..core.handle import Tensor
from ..nn import Module
from ..pytree import tree_flatten
from .futures import Future

__all__ = [
    "Error",
    "Final",
    "Future",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "TopLevelTracedModule",
    "TracingCheckError",
    "annotate",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "optimize_for_inference",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

__path__: list[str] = []  # it has modules below it: `install.py`
Error = RuntimeError
_is = isinstance
_tracing = 0


class TracingCheckError(errors.PullbackError, RuntimeError):
    """A traced function computes something else than its Python."""


def _source(function) -> str:
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return repr(function)


class ScriptFunction:
    """A function with TorchScript's interface; calling it runs the Python function."""

    def __init__(self, function) -> None:
        functools.update_wrapper(self, function)
        self._function = function

    @property
    def name(self) -> str:
        return self._function.__name__

    @property
    def code(self) -> str:
        return _source(self._function)

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    def save(self, f, **kwargs) -> None:
        save(self, f)

    def __repr__(self) -> str:
        return f"<script function {self.__qualname__}>"


class ScriptModule(Module):
    """A module with TorchScript's interface around an ordinary one, whose tensors it shares."""

    def __init__(self, original: Module | None = None) -> None:
        super().__init__()
        if original is not None:
            for name in ("_parameters", "_buffers", "_modules", "training"):
                self.__dict__[name] = original.__dict__[name]
            self.__dict__["_original"] = original

    def __getattr__(self, name: str):
        try:
            return super().__getattr__(name)
        except AttributeError:
            original = self.__dict__.get("_original")
            if original is None:
                raise
            return getattr(original, name)

    def forward(self, *args, **kwargs):
        """The original's."""
        return self._run(*args, **kwargs)

    def _run(self, *args, **kwargs):
        if "_original" not in self.__dict__:
            raise NotImplementedError(f"{type(self).__name__} has no forward()")
        return self._original(*args, **kwargs)

    def train(self, mode: bool = True):
        """Switch this module and the original."""
        if "_original" in self.__dict__:
            self._original.train(mode)
        return super().train(mode)

    @property
    def original_name(self) -> str:
        return type(self.__dict__.get("_original", self)).__name__

    @property
    def code(self) -> str:
        return _source(type(self.__dict__.get("_original", self)).forward)

    def save(self, f, **kwargs) -> None:
        """Refused: see `save` of this module."""
        save(self, f)


class RecursiveScriptModule(ScriptModule):
    """What `script` makes of a module."""

    @property
    def original_name(self) -> str:
        """The name of the class that was scripted."""
        return type(self.__dict__.get("_original", self)).__name__

    def extra_repr(self) -> str:
        return f"original_name={self.original_name}"


def script(obj, optimize=None, _frames_up: int = 0, _rcb=None, example_inputs=None) -> Any:
    """An object with TorchScript's interface that runs `obj` as Python."""
    if _is(obj, (ScriptModule, ScriptFunction)) or _is(obj, type):
        return obj
    if _is(obj, Module):
        return RecursiveScriptModule(obj)
    if _is(obj, (dict, list)):
        return obj
    if not callable(obj):
        raise errors.ArgumentError(f"script() wants a module, a function or a class, got "
                                   f"{type(obj).__name__} ({errors.user_line(2)})")
    return ScriptFunction(obj)


# tracing


class _Traced:
    """What `trace` gives: the operators that ran, captured again for inputs of other shapes."""

    def _capture(self, function) -> None:
        def run(*args, **kwargs):
            global _tracing
            _tracing += 1
            try:
                return function(*args, **kwargs)
            finally:
                _tracing -= 1

        self.__dict__["_compiled"] = _compile(run, backend="numpy")

    @property
    def graph(self):
        """The forward graph of the last capture."""
        return self._compiled.graphs()[0].graph

    @property
    def code(self) -> str:
        return self._compiled.graphs()[0].code


class TracedFunction(_Traced, ScriptFunction):
    """A traced function."""

    def __init__(self, function) -> None:
        ScriptFunction.__init__(self, function)
        self._capture(function)

    def __call__(self, *args, **kwargs):
        return self._compiled(*args, **kwargs)


class TopLevelTracedModule(_Traced, ScriptModule):
    """A traced module."""

    def __init__(self, original: Module) -> None:
        ScriptModule.__init__(self, original)
        self._capture(original)

    def _run(self, *args, **kwargs):
        return self._compiled(*args, **kwargs)


def trace(func, example_inputs=None, optimize=None, check_trace: bool = True, check_inputs=None,
          check_tolerance: float = 1e-5, strict: bool = True, *, example_kwarg_inputs=None,
          **options) -> Any:
    """Capture the operators that a function or module runs on example inputs, and check them."""
    args = example_inputs if _is(example_inputs, (tuple, list)) else (
        () if example_inputs is None else (example_inputs,))
    kwargs = dict(example_kwarg_inputs or {})
    if _is(func, _Traced):
        return func
    traced = TopLevelTracedModule(func) if _is(func, Module) else TracedFunction(func)
    traced(*args, **kwargs)
    for case in ([(tuple(args), kwargs)] if check_trace else []) + [
            (tuple(c) if _is(c, (tuple, list)) else (c,), {}) for c in check_inputs or ()]:
        _check(func, traced, *case, check_tolerance)
    return traced


def _check(func, traced, args, kwargs, tolerance: float) -> None:
    import pullback

    with pullback.random.fork_rng(), pullback.no_grad():
        state = pullback.get_rng_state()
        expected = tree_flatten(func(*args, **kwargs))[0]
        pullback.set_rng_state(state)
        got = tree_flatten(traced(*args, **kwargs))[0]
    for i, (one, two) in enumerate(zip(expected, got, strict=True)):
        if _is(one, Tensor) and not pullback.allclose(one, two, tolerance, tolerance, True):
            raise TracingCheckError(errors.text(
                f"output {i} of the traced {type(func).__name__} differs from what Python computes",
                f"largest difference: {(one - two).abs().max().item():.3g}",
                "make the function depend on its inputs alone"))


def trace_module(mod: Module, inputs: dict, *args, **kwargs):
    """`trace` of a module's `forward`; other methods stay Python."""
    if set(inputs) != {"forward"}:
        raise errors.NotInThisBuild(errors.text(
            f"trace_module of {sorted(set(inputs) - {'forward'})}: only forward is captured",
            cure="trace functions that call the methods"))
    return trace(mod, inputs["forward"], *args, **kwargs)


def is_tracing() -> bool:
    """Is a function being captured by `trace`?"""
    return _tracing > 0


def is_scripting() -> bool:
    """False: scripted functions run as Python."""
    return False


def script_if_tracing(fn):
    """The function itself."""
    return fn


# marks of the TorchScript compiler: accepted, and without effect


def _same(fn):
    return fn


_script_if_tracing = script_if_tracing
_overload = _overload_method = _same  # declarations of further signatures; the last body runs


class _Broadcasting:
    """A type for the TorchScript compiler: a list, or one number for all of it."""

    def __getitem__(self, types) -> None:
        return None


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _Broadcasting()


def ignore(drop: Any = False, **kwargs):
    """A mark for TorchScript's compiler; the function itself."""
    return drop if callable(drop) else _same


def unused(fn):
    """A mark for TorchScript's compiler; the function itself."""
    return fn


def export(fn):
    """A mark for TorchScript's compiler; the function itself."""
    return fn


def interface(obj):
    """A mark for TorchScript's compiler; the class itself."""
    return obj


def script_method(fn):
    """A mark for TorchScript's compiler; the method itself."""
    return fn


def annotate(the_type: Any, the_value):
    """The value."""
    return the_value


def Attribute(value, type: Any):
    """The value."""
    return value


def isinstance(obj, target_type) -> bool:
    """Python's."""
    return _is(obj, target_type)


def freeze(mod: Module, preserved_attrs=None, optimize_numerics: bool = True) -> Module:
    """The module itself, which must be in eval mode as TorchScript demands."""
    if mod.training:
        raise errors.OrderError("Freezing is currently only implemented for modules in eval mode. "
                                "Please call .eval() on your module before freezing.")
    return mod


def optimize_for_inference(mod: Module, other_methods=None) -> Module:
    """The module itself, in eval mode."""
    return mod.eval()


def fork(func, *args, **kwargs) -> Future:
    """Call a function now; `wait` gives its result."""
    future: Future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future):
    """The result of `fork`."""
    return future.wait()


def save(m, f, _extra_files=None) -> None:
    """Refused: TorchScript archives are not written."""
    raise errors.NotInThisBuild(errors.text(
        f"TorchScript archives are not written ({errors.user_line(2)})",
        cure="save the parameters: torch.save(module.state_dict(), file)"))


def load(f, map_location=None, _extra_files=None, **kwargs):
    """Refused: TorchScript archives are not read."""
    raise errors.NotInThisBuild(errors.text(
        f"TorchScript archives hold programs in their own language, and are not read "
        f"({errors.user_line(2)})",
        cure="load a state_dict saved by PyTorch with torch.load(file)"))


_left_out = getter(__name__)


def __getattr__(name: str):
    """Types that programs write in annotations and import from here."""
    if name in ("Dict", "List", "Optional", "Tuple", "Union"):
        return getattr(typing, name)
    return _left_out(name)
