"""The functions of pointwise operators: all kinds of calls that come often, in one function each.

The function handles plain CPU float tensors of one dtype (or a Python number as second operand)
with no transform active; everything else goes the general way.  It takes any arguments, where a
plan is looked up by their types, and so it asks them itself.  Read `steps.py` first.
"""

from __future__ import annotations

import functools

import numpy as np

from ..array import elementary
from ..core.handle import Tensor
from ..core.overload import OpOverload
from . import steps
from .steps import Call, array_function
from .unroll import indented, set_constant, space, unrolled

# NumPy 2.3 can be asked for arrays where it would return scalars; before, 0-d results are wrapped
ELLIPSIS_OUT = tuple(int(p) for p in np.__version__.split(".")[:2]) >= (2, 3)
_VARIABLES = {"a0", "a1", "c", "d", "e0", "e1", "f", "kt", "n", "r", "t"}  # names not for arguments


def eligible(ov: OpOverload) -> list[str] | None:
    """Names of the tensor operands if the operator fits: pointwise, operands first, one output."""
    op, schema = ov.op, ov.schema
    taken = _VARIABLES | space.keys()
    if op.kind != "pointwise" or op.promote not in ("default", "float", "bool"):
        return None
    if len(schema.returns) != 1 or ov.dtype_rule is not None or not taken.isdisjoint(schema.names):
        return None
    specs = [a for a in schema.args if a.is_tensor]
    tensors = [a.name for a in specs]
    numbers = {a.name for a in schema.args if a.base == "Scalar"}
    if isinstance(op.diff_outputs, str) or any(a.is_list or a.optional for a in specs):
        return None
    if op.promotes is not None and not {*tensors} <= {*op.promotes} <= {*tensors} | numbers:
        return None
    return tensors if len(tensors) in (1, 2) and schema.names[: len(tensors)] == tensors else None


_made: dict[str, list[dict]] = {}  # overload -> constants of the functions generated for it


def compile_fast(ov: OpOverload, slow):
    """The function of an operator, or None where it does not fit; `slow` takes all other calls."""
    tensors = eligible(ov)
    if tensors is None or (ov.rule is None and ov.op.promote != "bool"):
        return None
    try:
        return _Function(ov, slow, len(tensors)).written()
    except LookupError:  # an argument whose default has no text
        return None


def renew(ov: OpOverload) -> None:
    """End what was generated, because the derivative formulas have changed.

    Functions that users have stay what they are and go the general way from now on, which makes
    others of the new formulas.
    """
    from ..table.packets import packets_of

    for constants in _made.pop(ov.name, ()):
        set_constant(constants, "plain", None)  # no array is of that class
    for packet in packets_of(ov.op.base_name):
        packet.forget()


class _Function:
    """A function that is being written; `watched` is the one for inside of checkpoints."""

    def __init__(self, ov: OpOverload, slow, count: int, watched: bool = False):
        self.ov, self.slow, self.count, self.watched = ov, slow, count, watched
        self.own = {"ov": ov, "general": slow, "plain": np.ndarray}
        self.rest = ov.schema.args[count:]
        self.ufunc = array_function(ov, ov.schema.names[:count])
        self.own["kernel"] = getattr(np, self.ufunc) if self.ufunc else ov.kernel
        self.converted = [a.name for a in self.rest if a.name in (ov.op.promotes or ())]
        self.arguments = ", ".join(
            f"{a.name}={a.name}" if a.kwarg_only else a.name for a in ov.schema.args)

    def written(self):
        """The function itself."""
        schema, call = self.ov.schema, self.call(False)
        lines = self.start(call)
        if self.count == 1:
            lines += self.kernel(call)
        else:
            y = schema.names[1]
            if y in self.ov.op.scalars:
                number = self.call(True)
                lines += [f"c = {y}.__class__", "if c is float or c is int:",
                          *indented([*self.kernel(number), *self.result(number)])]
            lines += [
                "try:",
                *indented([f"a1 = {y}._payload",
                           *call.leave("a1.__class__ is not $plain or a1.dtype is not d"),
                           *self.kernel(call)]),
                "except (AttributeError, ValueError):",
                f"    {call.back}",
            ]
        lines += self.result(call)
        parameters = [a.name + self.default(a) for a in schema.args]
        title = f"call of {self.ov.name}{' in checkpoints' if self.watched else ''}"
        made = unrolled(title, f"call({', '.join(parameters)})", lines, self.own)
        _made.setdefault(self.ov.name, []).append(self.own)
        return made

    def call(self, with_number: bool) -> Call:
        """The call of two tensors, or of a tensor and a number."""
        call = Call(self.ov, f"return $general({self.arguments})", self.ov.schema.names)
        call.tensors = list(range(1 if with_number else self.count))
        call.numbers = {1: 0} if with_number else {}
        call.own, call.watched, call.depth = self.own, self.watched, 2 if self.watched else 1
        call.dtype = "BOOL" if self.ov.op.promote == "bool" else "d"
        call.floating, call.refreshed = call.dtype == "d", False
        call.values = [f"asarray({x}, d)" if x in self.converted else x for x in call.raw]
        return call

    def start(self, call: Call) -> list[str]:
        """Tests of what is not the usual, and of the first operand."""
        schema = self.ov.schema
        tests = [_differs(a) for a in self.rest] if self.ufunc else [
            *(f"{n}.__class__ is not float and {n}.__class__ is not int" for n in self.converted),
            *(f"{schema.names[i]}.__class__ is complex" for i in self.ov.numbers)]
        if self.watched:
            lines = call.leave(" or ".join(["ACTIVE != WATCHED", *tests]))
        else:
            self.own["watched"] = functools.cache(
                _Function(self.ov, self.slow, self.count, True).written)
            lines = [f"if {' or '.join(['ACTIVE', *tests])}:",
                     "    if ACTIVE and ACTIVE == WATCHED:",
                     f"        return $watched()({self.arguments})", f"    {call.back}"]
        return [
            *lines,
            "try:",
            f"    a0 = {schema.names[0]}._payload",
            "except AttributeError:",
            f"    {call.back}",
            *call.leave("a0.__class__ is not $plain"),
            "d = a0.dtype",
            *call.leave("d is not F32 and d is not F64"),
        ]

    def kernel(self, call: Call) -> list[str]:
        """The array function itself, where the operator is one, else its kernel."""
        operands = ", ".join(call.values[: self.count])
        if self.ufunc:
            return [_array("$kernel", operands)]
        lines = [f"r = $kernel(np, {', '.join(call.values)})", *steps.finish(call)]
        if not hasattr(self.ov.kernel, "made"):
            return lines
        self.own["made"], self.own["SHARED"] = self.ov.kernel.made, elementary.SHARED
        return ["if $made and d is F32 and a0.size < $SHARED:",
                f"    {_array('$made[0]', operands)}", "else:", *indented(lines)]

    def result(self, call: Call) -> list[str]:
        return [*steps.wrap(call), *steps.record(call), "return t"]

    def default(self, argument) -> str:
        """The text of an argument's default."""
        value = argument.default
        if not argument.has_default or value is None or isinstance(value, (bool, int, str)):
            return f"={value!r}" if argument.has_default else ""
        self.own[f"default_{argument.name}"] = value
        return f"=$default_{argument.name}"


def _array(ufunc: str, operands: str) -> str:
    """A call of an array function whose result is an array, even one without dims."""
    if ELLIPSIS_OUT:
        return f"r = {ufunc}({operands}, out=...)"
    return f"r = asarray({ufunc}({operands}))"


def _differs(argument) -> str:
    """Test that an argument does not have its default."""
    value, name = argument.default, argument.name
    if not argument.has_default or not (value is None or isinstance(value, (bool, int, str))):
        raise LookupError(name)
    if value is None:
        return f"{name} is not None"
    return f"{name}.__class__ is not {type(value).__name__} or {name} != {value!r}"


def family(packet, slow):
    """A function for all overloads of a name by the second operand; None where there is none."""
    made = {}
    for ov in packet.entries():
        tensors = eligible(ov)
        if tensors is None:
            continue
        kind = "number" if ov.schema.names[len(tensors) :] and ov.op.promotes else "tensor"
        if kind not in made:
            function = compile_fast(ov, slow)
            if function is not None:
                made[kind] = function, ov.schema.kw_only_from
                if tensors[1:] and tensors[1] in ov.op.scalars:  # this overload takes numbers, too
                    made.setdefault("number", made[kind])
    if not made:
        return None
    if len(packet.entries()) == 1:
        function, most = made.get("tensor") or made["number"]
        return function if most == 1 else _limited(function, most, slow)
    return _chosen(made.get("tensor", (slow, 2))[0], made.get("number", (slow, 2))[0], slow)


def _limited(function, most: int, slow):
    def call(*args):
        return function(*args) if 0 < len(args) <= most else slow(*args)

    return call


def _chosen(with_tensor, with_number, slow):
    def call(*args):
        if len(args) != 2:
            return slow(*args)
        kind = args[1].__class__
        if kind is float or kind is int:
            return with_number(*args)
        return with_tensor(*args) if kind is Tensor else slow(*args)

    return call
