"""Passes as objects, and their order: `PassBase`, `PassResult`, `PassManager`."""

from __future__ import annotations

import abc
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..errors import GraphError

Constraint = Callable[[Callable, Callable], bool]


class PassResult(NamedTuple):
    """A graph module after a pass, and whether it was changed."""

    graph_module: Any
    modified: bool


class PassBase(abc.ABC):
    """A pass: `call` does the work, `requires` and `ensures` may check before and after."""

    def __call__(self, graph_module: Any) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: Any) -> PassResult | None:
        """Change the module, and say so."""

    def requires(self, graph_module: Any) -> None:  # noqa: B027  both are free to do nothing
        """What must hold before."""

    def ensures(self, graph_module: Any) -> None:  # noqa: B027
        """What must hold afterwards."""


def pass_result_wrapper(fn: Callable) -> Callable:
    """A function of a graph module as a pass: what it returns says whether it changed something."""
    if fn is None:
        return None  # type: ignore[return-value]

    @functools.wraps(fn)
    def wrapped(gm: Any) -> PassResult:
        found = fn(gm)
        if isinstance(found, PassResult):
            return found
        if hasattr(found, "graph"):
            return PassResult(found, True)
        return PassResult(gm, True)

    if not inspect.isfunction(fn):
        wrapped.__name__ = type(fn).__name__
    return wrapped


def this_before_that_pass_constraint(this: Callable, that: Callable) -> Constraint:
    """A rule that one pass comes before another."""
    return lambda a, b: not (a == that and b == this)


def _name(one: Callable) -> str:
    return getattr(one, "__name__", type(one).__name__)


def _topological_sort_passes(passes: list[Callable], constraints: list[Constraint]) -> list:
    """The passes in an order that breaks no rule, otherwise as given."""
    if not constraints:
        return passes
    after = {one: [two for two in passes if two is not one
                   and not all(rule(two, one) for rule in constraints)] for one in passes}
    waiting = {one: sum(one in later for later in after.values()) for one in passes}
    ready = [one for one in passes if not waiting[one]]
    for one in ready:  # grows
        for two in after[one]:
            waiting[two] -= 1
            if not waiting[two]:
                ready.append(two)
    if len(ready) < len(passes):
        circle = [one for one in passes if waiting[one]]
        raise GraphError(f"Circular dependency detected within the following passes: {circle}")
    return ready


class Passes:
    """Passes in an order that is validated again when passes or rules come in."""

    passes: list[Callable]
    constraints: list[Callable]
    _validated = False

    def add_pass(self, _pass: Callable) -> None:
        """One more pass at the end."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Callable) -> None:
        """A rule for all pairs of passes, given in their order."""
        self.constraints.append(constraint)
        self._validated = False


class PassManager(Passes):
    """Runs passes in turn, `steps` times or until nothing changes."""

    def __init__(
        self, passes: Sequence[Callable] | None = None,
        constraints: Sequence[Constraint] | None = None, steps: int | None = None,
        run_checks_after_each_pass: bool = False, suppress_check_failures: bool = False,
    ) -> None:
        self.passes, self.constraints = list(passes or []), list(constraints or [])
        self.steps = 1 if steps is None else steps
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures

    def validate_constraints(self) -> None:
        """Refuse an order that breaks a rule."""
        if not self._validated:
            for constraint in self.constraints:
                for i, one in enumerate(self.passes):
                    for two in self.passes[i + 1:]:
                        if not constraint(one, two):
                            raise GraphError(
                                f"pass schedule constraint violated: expected {one} before {two}")
            self._validated = True

    def solve_constraints(self) -> None:
        """Order the passes so that no rule is broken."""
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def check(self, module: Any) -> None:
        """What must hold after a pass; override or `add_checks`."""

    def add_checks(self, check: Callable) -> None:
        """A function of the module that raises where it is not as it should be."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check  # type: ignore[method-assign]

    def __call__(self, module: Any) -> PassResult:
        self.validate_constraints()
        self._checked(module)
        ever = False
        for _ in range(self.steps):
            changed = False
            for one in self.passes:
                try:
                    result = one(module)
                    if not hasattr(result, "graph_module"):
                        raise TypeError(
                            f"The result of the pass {_name(one)} should be type PassResult. "
                            "Please wrap it with pass_result_wrapper()")
                except Exception as error:
                    before = [_name(p) for p in self.passes[:self.passes.index(one)]]
                    raise Exception(
                        f"An error occurred when running the '{_name(one)}' pass after the "
                        f"following passes: {before}") from error
                module, changed = result.graph_module, changed or result.modified
                if hasattr(module, "recompile"):
                    module.recompile()
                if self.run_checks_after_each_pass:
                    self._checked(module)
            ever = ever or changed
            if not changed:
                break
        return PassResult(module, ever)

    def _checked(self, module: Any) -> None:
        try:
            self.check(module)
        except Exception:
            if not self.suppress_check_failures:
                raise


def __getattr__(name: str):
    from ...facade import elsewhere

    return elsewhere(__name__, name)
