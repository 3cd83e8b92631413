"""`Op`: one entry of the operator table, and its kinds.

An entry is a class whose attributes say all there is to say about one overload; nothing is parsed
until the operator is first used.  `overload.py` has the runtime object made from an entry,
`table/packets.py` the overloads under one name.  What each attribute means is in the comments of
`Op`; how to write an entry is in CONTRIBUTING.md.  Read next: `formula.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import errors
from ..array import dtype as dt
from ..table.catalog import aliases, families, load, registry
from . import doors
from .schema import Schema


class Op:
    """An operator that is none of the special kinds."""

    schema: str = ""  # exact schema text
    run = None  # kernel: expression text, or function (xp, *arguments)
    native: str | None = None  # the kernel in C that does the same (`compile/runtime/eager.c`)
    promote = "same"  # default | float | bool | real | same | keep: see `array/evaluate.py`
    check = None  # function of the raw arguments before promotion; raises what PyTorch would
    ordered = True  # pointwise kernel: keeps the order that its operands' dims have in memory
    # how other results than pointwise ones lie in memory: in "rows", as "self" lies, or with
    # "channels" last if self has them there and in rows otherwise
    memory_format = "rows"
    arranges = False  # does its kernel see to that by itself?
    promotes: tuple | None = None  # arguments that take part in promotion; None: all tensors
    # beside half precision, what is promoted is rounded to it first, but for these, if they are one
    # number; and so are these further numbers
    unrounded: tuple = ()
    rounds: tuple = ()
    same_dtype: tuple = ()  # tensor arguments that are of one dtype; mixtures are refused
    or_float32: tuple = ()  # further ones of that dtype, or of float32 beside half precision
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
    counted: str | None = None  # and what PyTorch counts: a function of `utils/flop_counter.py`
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
    idle: str | None = None  # Composite: gives its input back where this argument is False
    ahead = False  # do compilers for `aot_function` take it apart if the user does not say?
    widens = False  # may `out_dtype` give its result another dtype?
    picks = None  # function of the arguments -> (source, indices), some of which may be masks
    narrow: str | None = None  # the small form a cut may save: a function of `cut/prepare.py`
    statistics = False  # are the results after the first kept for the derivative, and not detached?
    noop = False  # does it hand its first input on where its result has the same layout and dtype?
    may_alias = False  # may its result share memory with its first argument?
    # the view that a scatter writes through: the same arguments but for the source
    writes_view: str | None = None
    scatter: str | None = None  # View: writes `new` into the viewed region of `base`
    absolute = False  # does it count places in memory, whatever view it is called on?
    ends_history = False  # View: its argument as it is, but without the history
    covers = False  # View: all elements of its argument, each as often as it wants
    wants_rows = False  # View: refuses most memory that is not row-major
    repeats = None  # View: function (shape, *arguments): does it show an element more than once?
    marks = None  # View: marks of its argument (`array/lazy.py`) -> those of its result
    scatter_piece = None  # View of several results: (base, new, number, *arguments) -> new base
    fill = None  # writes what the kernel makes into self, and says so, or gives False
    uniform = False  # does it write the same number everywhere?
    inplace: bool | str = False  # a variant `name_` is derived; text: its overload, if it differs
    method = True  # offered as Tensor method (if the first argument is self)
    function = True  # offered as function of the package
    namespace: str | None = None  # further namespace that offers it ("nn.functional", ...)
    writing: str | None = None  # the overload with out=, if it is not `out` or `OVERLOAD_out`
    with_number: str | None = None  # the overload for a number in the place of `other`
    out: tuple = ()  # what out= must be: "exact", "castable", of "any" dtype; "apart" from inputs
    aliases: tuple = ()  # further public names
    legacy: tuple = ()  # old orders of its arguments that calls may have: "beta self mat1 mat2"
    # takes complex inputs?  None: computes with them, as PyTorch does, but nothing is promised
    complex: bool | None = False
    samples = None  # generator of sample calls for the tests
    structure: dict = {}  # input name -> projection of perturbations (Hermitian...) in tests
    unchecked: tuple = ()  # checks of the test kit that do not apply (straight-through gradients)
    invariant = None  # function of the outputs: removes free signs and phases, for tests
    kind = "op"
    # dtype of its inputs while autocast is on: "lower" (the 16-bit one), "float32" or the "widest"
    autocast: str | None = None
    tags: tuple = ()  # what PyTorch says of the operator (`table/tags.py`); kinds have theirs
    effect: str | None = None  # "ordered": does something besides, in the order of the calls
    # about tensors that are made of others (`parts/`): tested with the package that has these
    of_parts = False
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


class Operators:
    """All operators by their names, those of in-place variants included: `ops.mul(x, y)`.

    Each is a packet of the overloads of its name, which is made when somebody first asks for it.
    """

    def __getattr__(self, name: str):
        return doors.packet(name)

    def __reduce__(self) -> str:
        return "ops"  # the one that is there, not a copy with what it has found

    def __contains__(self, name: str) -> bool:
        try:
            getattr(self, name)
        except AttributeError:
            return False
        return True

    def __dir__(self) -> list[str]:
        return sorted(families)


ops = Operators()
