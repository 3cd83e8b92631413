"""`Op`: one entry of the operator table, and its kinds.

An entry is a class whose attributes say all there is to say about one overload; nothing is parsed
until the operator is first used.  `OpOverload` is the runtime object made from an entry, and
`Packet` the family of overloads under one name.  What each attribute means is in the comments of
`Op`; how to write an entry is in CONTRIBUTING.md.  Read next: `formula.py`, `stack.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import errors
from ..array import dtype as dt
from ..table.catalog import PUBLIC, Catalog, load
from .schema import Argument, Qualified, Schema
from .state import fast

registry: dict[str, type[Op]] = Catalog(lambda entry: entry)  # "mul.Tensor" -> entry
families: dict[str, list[type[Op]]] = Catalog(lambda entries: entries[0])  # "mul" -> its entries
aliases: dict[str, str] = {  # "multiply" -> "mul"
    name: base for name, base, _, _ in PUBLIC if name != base
}


_LIES = {"self": "lying_like_self", "channels": "lying_with_channels"}


class Op:
    """An operator that is none of the special kinds."""

    schema: str = ""  # exact schema text
    run = None  # kernel: expression text, or function (xp, *arguments)
    promote = "same"  # default | float | bool | real | same | keep: see `array/evaluate.py`
    check = None  # function of the raw arguments before promotion; raises what PyTorch would
    ordered = True  # pointwise kernel: keeps the order that its operands' dims have in memory
    # how other results than pointwise ones lie in memory: in "rows", as "self" lies, or with
    # "channels" last if self has them there and in rows otherwise
    lies = "rows"
    arranges = False  # does its kernel see to that by itself?
    promotes: tuple | None = None  # arguments that take part in promotion; None: all tensors
    # beside half precision, what is promoted is rounded to it first, but for these, if they are one
    # number; and so are these further numbers
    unrounded: tuple = ()
    rounds: tuple = ()
    alike: tuple = ()  # tensor arguments that are of one dtype; mixtures are refused
    wide: tuple = ()  # further ones of that dtype, or of float32 beside half precision
    scalars: tuple = ()  # tensor arguments that also take Python numbers
    ufunc: str | None = None  # the array function that the kernel is if other arguments are default
    grad: dict = {}  # input name(s) -> pullback formula
    push = None  # pushforward formula(s)
    linear: tuple = ()  # jointly linear in these inputs
    multilinear: tuple = ()  # linear in each of these inputs separately
    constant: tuple = ()  # inputs whose derivative is zero
    nondiff: tuple = ()  # inputs that are ignored even if they require grad
    diff_outputs: tuple | str | None = None  # which are differentiable; text: a run-time condition
    # output without a derivative -> operator of the same arguments that gives it with one
    tracked_by: dict[str, str] = {}
    number: int | None = None  # at the end of the node's name, if not the place in the family
    inplace_node: str | None = None  # the node's name after an in-place call, if another
    dispatch: dict = {}  # backend key -> {input or output: formula}, where a backend has its own
    shape = None  # shape rule for fake tensors
    cure: str | None = None  # how to keep its result finite, for the message of `debug`
    fake = None  # in place of the rules: what the kernel returns, of arrays without data
    dtype = None  # result dtype rule, where `promote` does not say
    batch = None  # vmap rule
    by_shape = False  # draws: do they look at a tensor's shape and dtype alone?
    cost = "heavy"  # cheap | view | reduce | heavy | random | create
    equality = False  # does it ask whether numbers are the same?
    intensive = False  # heavy: does its arithmetic outgrow its operands?
    flops: str | None = None  # how much that is: a function of `cut/flops.py`, or a call of one
    c: str | None = None  # C expression over {argument}
    # what compiled programs make of it: a function (builder, example, *arguments), or the name of
    # one in `compile/rules_*.py`: "index.gather", "shape.reduction('sum')"
    lower: Callable | str | None = None
    decomp = None  # the operator in terms of core operators
    # is it of PyTorch's core set?  "apart": and taken apart nevertheless; "out": `name.out` as well
    core: bool | str = False
    kept: str | None = None  # why it has no decomposition: one of `decomp.core.REASONS`
    # does its decomposition leave checks of values to the operator's forward?  "values": it takes
    # what the operator refuses; "indices": it refuses them by another exception
    trusts: bool | str = False
    bad_index: type = IndexError  # what its kernel raises for an index out of range
    compose = None  # Composite: the definition
    noop = False  # does it hand its first input on where its result has the same layout and dtype?
    may_alias = False  # may its result share memory with its first argument?
    # the view that a scatter writes through: the same arguments but for the source
    writes_view: str | None = None
    scatter: str | None = None  # View: writes `new` into the viewed region of `base`
    fill = None  # writes what the kernel makes into self, and says so, or gives False
    inplace: bool | str = False  # a variant `name_` is derived; text: its overload, if it differs
    method = True  # offered as Tensor method (if the first argument is self)
    function = True  # offered as function of the package
    namespace: str | None = None  # further namespace that offers it ("nn.functional", ...)
    out: tuple = ()  # what out= must be: "exact", "castable", of "any" dtype; "apart" from inputs
    aliases: tuple = ()  # further public names
    # takes complex inputs?  None: computes with them, as PyTorch does, but nothing is promised
    complex: bool | None = False
    samples = None  # generator of sample calls for the tests
    structure: dict = {}  # input name -> projection of perturbations (Hermitian...) in tests
    unchecked: tuple = ()  # checks of the test kit that do not apply (straight-through gradients)
    invariant = (
        None  # function of the outputs that removes free signs and phases: what tests look at
    )
    kind = "op"
    # dtype of its inputs while autocast is on: "lower" (the 16-bit one), "float32" or the "widest"
    autocast: str | None = None
    tags: tuple = ()  # what PyTorch says of the operator (`table/tags.py`); kinds have theirs
    effect: str | None = None  # "ordered": does something besides, in the order of the calls
    pure = True  # equal inputs give equal outputs

    def __init_subclass__(cls, **kw):
        super().__init_subclass__(**kw)
        if "schema" not in cls.__dict__:
            return
        text = cls.schema
        full = text[: text.index("(")].strip()
        base = full.partition(".")[0]
        cls.full_name, cls.base_name = full, base
        load(base)  # an addition comes after the table's own entries
        if full in registry.known():
            raise errors.SchemaError(f"two table entries for the operator '{full}'")
        registry[full] = cls
        families.setdefault(base, []).append(cls)
        for other in cls.aliases:
            aliases[other] = base
        for table in _watchers:
            table(cls)

    @classmethod
    def evaluate(cls, *raw):
        """Run the kernel on raw arrays, promotion included."""
        from ..array.evaluate import run_raw

        return run_raw(overload_of(cls), raw)


_watchers: list = []  # called with each new entry, so that later additions reach the surface


class Pointwise(Op):
    """Each output element depends on the input elements at its own (broadcast) position."""

    kind, promote, cost, inplace = "pointwise", "default", "cheap", True
    tags = ("pointwise",)


class Reduction(Op):
    """Reduces dims; has `dim` and `keepdim` or reduces everything."""

    kind, cost = "reduction", "reduce"
    tags = ("reduction",)


class View(Op):
    """Shares memory with its first argument."""

    kind, cost, may_alias = "view", "view", True


class Creation(Op):
    """Makes a tensor from sizes."""

    kind, promote, cost = "creation", "keep", "create"


class Random(Op):
    """Draws from a generator."""

    kind, promote, cost, pure = "random", "keep", "random", False
    tags = ("nondeterministic_seeded",)
    kept: str | None = "draw"


class Composite(Op):
    """Defined by `compose`, a plain function over other operators."""

    kind, cost = "composite", "composite"


def rule_function(rule, schema: Schema, extra: tuple = ()):
    """A callable from an expression text or a function; arguments in schema order after `extra`.

    A rule that a family of entries shares is a class method: it reads off the entry what differs.
    """
    if rule is None:
        return None
    if isinstance(rule, str):
        names = ", ".join((*extra, *(a.name for a in schema.args)))
        import math

        space = {"math": math, "dt": dt, "__name__": "pullback.generated"}
        source = f"lambda {names}: {rule}"
        return eval(compile(source, f"<pullback rule of {schema.full_name}>", "eval"), space)
    return rule


class OpName(str):
    """The name of an overload; called, as PyTorch's programs do, it says the namespace too."""

    __slots__ = ()

    def __call__(self) -> str:
        return f"aten::{self}"


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
        from .stack import bind

        return bind(self.ov, flat)


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
        overload = self.name.partition(".")[2] or "default"
        return f"aten.{self.op.base_name}.{overload}"

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
                raise errors.SchemaError(
                    errors.text(
                        f"an argument must not be called '{arg.name}': formulas use that name",
                        f"entry: {schema}",
                        "rename the argument",
                    )
                )
        return schema

    @functools.cached_property
    def _schema(self) -> Qualified:
        return Qualified(self.schema, self.namespace)

    @property
    def overloadpacket(self):
        """The family of overloads that this one belongs to."""
        from ..table.packets import ops

        return getattr(ops, self.op.base_name)

    @property
    def _overloadname(self) -> str:
        return self.name.partition(".")[2] or "default"

    @functools.cached_property
    def kernel(self):
        made = rule_function(self.op.run, self.schema, ("xp",))
        several = self.kind == "random" and len(self.schema.returns) > 1
        if self.op.lies in _LIES and not self.op.arranges and (several or self.kind == "op"):
            from ..array import evaluate

            lying = getattr(evaluate, _LIES[self.op.lies])
            at = self.followed
            return lambda xp, *args: lying(xp, made(xp, *args), args[at:])
        if self.op.ordered:
            return made
        from ..array.evaluate import relaid

        return lambda xp, *args: relaid(xp, made(xp, *args), args)

    @functools.cached_property
    def followed(self) -> int:
        """The place of the argument that results lie like: `self`, or the first one."""
        names = self.schema.names
        return names.index("self") if "self" in names else 0

    @functools.cached_property
    def in_rows(self) -> bool:
        """Are its results row-major, however its operands lie in memory?"""
        return self.kind in ("op", "reduction") and self.op.lies == "rows"

    @functools.cached_property
    def alike(self) -> tuple[tuple[int, bool], ...]:
        """Positions of the arguments that are of one dtype, and may each be wider than half?"""
        names, op = self.schema.names, self.op
        return (*((names.index(n), False) for n in op.alike),
                *((names.index(n), True) for n in op.wide))

    @functools.cached_property
    def real_only(self) -> bool:
        """Are complex numbers refused, whatever the kernel would make of them?"""
        return self.op.complex is False and not self.custom and self.kind in (
            "pointwise", "reduction", "op")

    @functools.cached_property
    def check(self):
        return rule_function(self.op.check, self.schema)

    @functools.cached_property
    def compose(self):
        made = self.op.compose
        if not self.op.alike:
            return made
        from ..array.evaluate import refuse_mixed

        def alike(*args):
            refuse_mixed(self, args)
            return made(*args)

        return alike

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
        from ..table.tags import tags_of

        return tags_of(self)

    def decompose(self, *args, **kwargs):
        """A call of an operator that is a function of others, by these; else NotImplemented."""
        flat = self.bind(args, kwargs) if self.is_composite else None
        return NotImplemented if flat is None else self.compose(*flat)

    @functools.cached_property
    def shape_rule(self):
        return rule_function(self.op.shape, self.schema)

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
        return tuple(
            i
            for i, a in enumerate(self.schema.args)
            if (a.is_tensor if chosen is None else a.name in chosen)
        )

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
        from ..eager.fast import renew

        renew(self)

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

    def call(self, *flat):
        """Run with the flat argument tuple."""
        kind = (*map(type, flat),)
        plan = self._plans.get(kind)
        if plan is not None:
            return plan(*flat)
        from ..eager.plan import make_plan
        from .stack import bind

        out = bind(self, flat)
        seen = self._seen[kind] = self._seen.get(kind, 0) + 1
        if seen == OFTEN and not fast["ACTIVE"]:
            plan = make_plan(_Single(self), flat, {})
            if plan is not None:
                self._plans[kind] = plan
        return out

    def __call__(self, *args, **kwargs):
        out = kwargs.pop("out", None)
        flat = self.bind(args, kwargs)
        if flat is None:
            raise no_match(self.name, [self], args, kwargs)
        from .stack import bind

        if out is not None:
            from .surface import write_out

            return write_out(self, flat, out)
        return bind(self, flat)


def apart(ov: OpOverload, function: Callable) -> Callable:
    """A decomposition whose results have memory of their own wherever the operator's do.

    Its parts may return an argument, or a view of one; an operator that is no view copies it,
    unless to show its memory is the point of it.
    """
    if ov.is_view or ov.is_composite or "pure" in ov.op.unchecked:
        return function
    from ..memory.views import in_own_memory

    def call(*flat: Any) -> Any:
        return in_own_memory(function(*flat), flat)

    return functools.wraps(function)(call)


def no_match(name: str, overloads: list, args: tuple, kwargs: dict,
             kind: type = errors.ArgumentError) -> errors.ArgumentError:
    """The error for a call that fits no overload."""

    def show(value):
        if hasattr(value, "_edge"):
            return f"Tensor{list(value.shape)}"
        return f"{type(value).__name__}"

    given = [show(a) for a in args] + [f"{k}={show(v)}" for k, v in kwargs.items()]
    return kind(
        errors.text(
            f"{name}() got arguments that fit none of its signatures ({errors.user_line(2)}): "
            f"({', '.join(given)})",
            [str(o.schema) for o in overloads],
        )
    )


@functools.cache
def results_class(name: str, fields: tuple[str, ...]) -> type:
    """The named tuple of an operator's results: one class per operator."""
    from collections import namedtuple

    def text(self) -> str:
        parts = ",\n".join(f"{field}={value!r}" for field, value in zip(fields, self))
        return f"torch.return_types.{name}(\n{parts})"

    made = namedtuple(name, fields, module="torch.return_types")
    made.__repr__ = text
    made.__reduce__ = lambda self: (_results, (name, fields, tuple(self)))
    return made


def _results(name: str, fields: tuple[str, ...], values: tuple) -> tuple:
    return results_class(name, fields)(*values)


@functools.cache
def overload_of(op: type[Op]) -> OpOverload:
    """The runtime object of an entry."""
    return OpOverload(op)


def overload(name: str) -> OpOverload:
    """The runtime object of the operator with this full name."""
    return overload_of(registry[name])
