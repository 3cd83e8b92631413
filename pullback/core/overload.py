"""`OpOverload`: the run-time object of an entry of the table; callable with tensors.

What the entry says is worked out when it is first asked for.  Read next: `../table/packets.py`, the
overloads of one name; `../eager/steps.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import errors
from ..array import dtype as dt
from ..array import evaluate, native
from ..memory.out import write_out
from ..memory.views import in_own_memory
from ..table.arguments import no_match
from ..table.qualified import Qualified
from ..table.results import results_class
from ..table.tags import tags_of
from ..threads.blocks import called_by
from ..threads.state import fast
from . import doors, stack
from .op import Op, OpName, ops, registry, rule_function
from .schema import Argument, Schema

_FORMATS = {"self": "lying_like_self", "channels": "lying_with_channels"}


OFTEN = 12  # calls of a kind until it gets a plan, whose making costs as much as hundreds


class _Single:
    """An overload as what a plan is made for: it has been chosen already."""

    _inplace = False

    def __init__(self, ov: OpOverload):
        self.ov = ov

    def entries(self) -> list[OpOverload]:
        return [self.ov]

    def resolve(self, args: tuple, kwargs: dict) -> tuple[OpOverload, tuple]:
        return self.ov, args

    def _general(self, *flat):
        return stack.bind(self.ov, flat)


def _rule(attribute: str) -> Any:
    """A rule of the entry, as a function of all arguments."""
    return functools.cached_property(
        lambda self: rule_function(getattr(self.op, attribute), self.schema))


class OpOverload:
    """The runtime object of one table entry; callable with tensors."""

    namespace = "aten"
    custom = False  # registered by the user, outside of the table

    def __init__(self, op: type[Op]):
        self.op = op
        self.name = OpName(op.full_name)
        self.__name__ = op.full_name
        self.kind = op.kind
        self.is_view = op.kind == "view"
        self.is_composite = op.kind == "composite"
        self.is_random = op.kind == "random"
        self._plans: dict = {}  # kind of call -> the function that does it
        self._seen: dict = {}  # kind of call -> how often it came without a plan

    def __repr__(self) -> str:
        return f"aten.{self.op.base_name}.{self._overloadname}"

    def __reduce__(self):
        return (overload, (self.name,))

    def __copy__(self, memo=None):
        return self

    __deepcopy__ = __copy__

    @functools.cached_property
    def schema(self) -> Schema:
        schema = Schema(self.op.schema)
        for arg in schema.args:
            if arg.name in ("result", "grad_input_mask"):
                raise errors.SchemaError(errors.text(
                    f"an argument must not be called '{arg.name}': formulas use that name",
                    f"entry: {schema}", "rename the argument"))
        return schema

    @functools.cached_property
    def _schema(self) -> Qualified:
        return Qualified(self.schema, self.namespace)

    @property
    def overloadpacket(self):
        """The family of overloads that this one belongs to."""
        return getattr(ops, self.op.base_name)

    @property
    def _overloadname(self) -> str:
        return self.name.partition(".")[2] or "default"

    @functools.cached_property
    def kernel(self):
        return native.kernel_of(self, self._laid())

    def _laid(self):
        made = rule_function(self.op.run, self.schema, ("xp",))
        several = self.kind == "random" and len(self.schema.returns) > 1
        if self.op.memory_format in _FORMATS and not self.op.arranges and (
                several or self.kind == "op"):
            lying = getattr(evaluate, _FORMATS[self.op.memory_format])
            at = self.followed
            return lambda xp, *args: lying(xp, made(xp, *args), args[at:])
        if self.op.ordered:
            return made
        return lambda xp, *args: evaluate.relaid(xp, made(xp, *args), args)

    @functools.cached_property
    def followed(self) -> int:
        """The place of the argument that results lie like: `self`, or the first one."""
        names = self.schema.names
        return names.index("self") if "self" in names else 0

    @functools.cached_property
    def in_rows(self) -> bool:
        """Are its results row-major, however its operands lie in memory?"""
        return self.kind in ("op", "reduction") and self.op.memory_format == "rows"

    @functools.cached_property
    def same_dtype(self) -> tuple[tuple[int, bool], ...]:
        """Positions of the arguments that are of one dtype, and may each be wider than half?"""
        names, op = self.schema.names, self.op
        return (*((names.index(n), False) for n in op.same_dtype),
                *((names.index(n), True) for n in op.or_float32))

    @functools.cached_property
    def real_only(self) -> bool:
        """Are complex numbers refused, whatever the kernel would make of them?"""
        return self.op.complex is False and not self.custom and self.kind in (
            "pointwise", "reduction", "op")

    check = _rule("check")
    shape_rule = _rule("shape")

    @functools.cached_property
    def compose(self):
        made = self.op.compose
        if not self.op.same_dtype:
            return made
        def same_dtype(*args):
            evaluate.refuse_mixed(self, args)
            return made(*args)

        return same_dtype

    @functools.cached_property
    def decomposition(self):
        """The operator in terms of others, as a function of all its arguments, or None."""
        if self.is_composite:
            return self.compose
        made = self.op.decomp
        return made if made is None else apart(self, made)

    @property
    def tags(self) -> list:
        """What PyTorch says of the operator."""
        return tags_of(self)

    def decompose(self, *args, **kwargs):
        """A call of an operator that is a function of others, by these; else NotImplemented."""
        flat = self.bind(args, kwargs) if self.is_composite else None
        return NotImplemented if flat is None else self.compose(*flat)

    @functools.cached_property
    def dtype_rule(self):
        rule = self.op.dtype
        if isinstance(rule, dt.DType):
            return lambda *args: rule
        return rule_function(rule, self.schema)

    @functools.cached_property
    def batch_rule(self):
        rule = self.op.batch
        if getattr(rule, "wants_overload", False):  # bound here: entries share rules
            return functools.partial(rule, self)
        return rule

    @functools.cached_property
    def promoted(self) -> tuple[int, ...]:
        """Positions of the arguments that take part in type promotion."""
        chosen = self.op.promotes
        return tuple(i for i, a in enumerate(self.schema.args)
                     if (a.is_tensor if chosen is None else a.name in chosen))

    @functools.cached_property
    def unrounded(self) -> tuple[int, ...]:
        """Positions of the operands that, being one number, keep their digits."""
        return tuple(self.schema.names.index(n) for n in self.op.unrounded)

    @functools.cached_property
    def rounds(self) -> tuple[int, ...]:
        """Positions of the numbers that are rounded as operands are."""
        return tuple(self.schema.names.index(n) for n in self.op.rounds)

    @functools.cached_property
    def numbers(self) -> tuple[int, ...]:
        """Positions of the numbers that are converted to what the operator computes in."""
        return tuple(i for i, a in enumerate(self.schema.args)
                     if a.base == "Scalar" and i not in self.promoted)

    @functools.cached_property
    def rule(self):
        """The compiled derivative, or None where the operator has none."""
        from .formula import Rule

        return Rule(self) if Rule.exists(self.op) else None

    @functools.cached_property
    def pushforward(self):
        """The compiled forward formulas, or None where the entry gives none."""
        from .formula import Push

        given = self.rule is not None and any(p.push for p in self.rule.parts.values())
        return Push(self) if given else None

    @functools.cached_property
    def never_differentiable(self) -> bool:
        """Does the entry say that no output is?"""
        flags = self.op.diff_outputs
        return flags is not None and not any(flags)

    def forget(self) -> None:
        """Drop what was compiled from the derivative formulas, because they have changed.

        Tensors that have a history keep it; graphs that were captured keep their derivatives.
        """
        self._plans.clear()
        self._seen.clear()
        for name in ("rule", "pushforward", "never_differentiable"):
            self.__dict__.pop(name, None)
        doors.renew(self)

    @functools.cached_property
    def output_names(self) -> list[str]:
        """Names of the outputs inside formulas."""
        returns = self.schema.returns
        if len(returns) == 1:
            return [returns[0].name or "result"]
        return [r.name or f"result{i}" for i, r in enumerate(returns)]

    @functools.cached_property
    def result_class(self):
        """Named tuple of several named returns, or None."""
        returns = self.schema.returns
        if len(returns) < 2 or not all(r.name for r in returns):
            return None
        return results_class(self.op.base_name, tuple([r.name for r in returns]))

    def arguments(self) -> list[Argument]:
        return self.schema.args

    def bind(self, args: tuple, kwargs: dict) -> tuple | None:
        """Flat arguments of a call, or None if it does not match."""
        return self.schema.bind(args, kwargs, self.op.scalars)

    def interpret(self, flat: tuple):
        """Run with all arguments in schema order, whatever levels they are of."""
        return stack.bind(self, flat)

    def call(self, *flat):
        """Run with the flat argument tuple."""
        kind = (*map(type, flat),)
        plan = self._plans.get(kind)
        if plan is not None:
            return plan(*flat)
        out = stack.bind(self, flat)
        seen = self._seen[kind] = self._seen.get(kind, 0) + 1
        if seen == OFTEN and not fast["ACTIVE"]:
            plan = doors.plan(_Single(self), flat, {})
            if plan is not None:
                self._plans[kind] = plan
        return out

    def __call__(self, *args, **kwargs):
        out = kwargs.pop("out", None)
        flat = self.bind(args, kwargs)
        if flat is None:
            raise no_match(self.name, [self], args, kwargs)
        if out is not None:
            return write_out(self, flat, out)
        if not fast["ACTIVE"]:
            return stack.bind(self, flat)
        with called_by(self):
            return stack.bind(self, flat)


def apart(ov: OpOverload, function: Callable) -> Callable:
    """A decomposition whose results have memory of their own wherever the operator's do.

    Its parts may return an argument, or a view of one; an operator that is no view copies it,
    unless to show its memory is the point of it.
    """
    if ov.is_view or ov.is_composite or "pure" in ov.op.unchecked:
        return function
    def call(*flat: Any) -> Any:
        return in_own_memory(function(*flat), flat)

    return functools.wraps(function)(call)


@functools.cache
def overload_of(op: type[Op]) -> OpOverload:
    """The runtime object of an entry."""
    return OpOverload(op)


def overload(name: str) -> OpOverload:
    """The runtime object of the operator with this full name."""
    return overload_of(registry[name])
