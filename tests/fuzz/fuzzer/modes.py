"""Ways to run a program, each compared with eager mode.

A mode is a function of a `Case` (a program with what eager mode makes of it) that returns None, or
a `Finding`'s words. `MODES` lists them. Add one by writing such a function: usually it makes
another function of the program's function and hands it to `case.check`.
"""

from __future__ import annotations

import functools
import re
import warnings
from dataclasses import replace

import numpy as np

import pullback as pb
from pullback import errors, func
from pullback.aot import nop
from pullback.capture.entry import aot_function
from pullback.cut.partition import default_partition, min_cut_rematerialization_partition
from pullback.decomp import core_aten_decompositions
from pullback.fx.make_fx import make_fx
from pullback.pytree import tree_map
from pullback.utils._python_dispatch import TorchDispatchMode

from . import compare
from .compare import Refused, cotangent, difference, flat, observe, roots_of, spread, written
from .program import FLOATS, WIDE, Input, arguments

# What modes may say no to, in documented words: values that decide sizes or branches
REFUSALS = (errors.DataDependentError, errors.BatchedWriteError, errors.OverBudget)
# Derivatives that there are not, with the reason; any other that is missing is a finding
UNDERIVED = (
    (errors.DerivativeNotWritten, "geqrf|histogram|linalg_ldl_factor", "nor has PyTorch"),
    (errors.DerivativeNotWritten, "for 'n' is not", "the degree of a polynomial is a whole number"),
    (errors.NotDifferentiable, "which is arbitrary", "phases of vectors, bases of complements"),
    (errors.NotDifferentiable, "gradients of gradients do not go through a compiled",
     "hooks, and writes behind the tape's back, in compiled functions"),
    (errors.NotDifferentiable, r"through a hook inside of a compiled function[^\0]*is not linear",
     "its gradients come in parts there, and what is clipped is not the sum of clipped parts"),
    (errors.SavedValueModified, "", "the program overwrites what its gradient needs"),
    (errors.ViewWriteError, "is a view and|view was created in no_grad mode",
     "the program writes one of several views, or the base of one that a Function has made"),
    (errors.ViewWriteError, "functionalization encountered .* that has internal overlap",
     "the program writes through windows that overlap: not in graphs; so in PyTorch"),
    (errors.DTypeError, "expected scalar type|expected both operands to have the same dtype",
     "gradients of losses and products of two dtypes; so in PyTorch"),
)


def underived(error: BaseException, traits) -> str | None:
    """Why there is no derivative, if that is known."""
    for kind, words, reason in UNDERIVED:
        if isinstance(error, kind) and re.search(words, str(error)) and (
                kind not in (errors.SavedValueModified, errors.ViewWriteError)
                or "write" in traits):
            return reason
    return None


# A graph writes an argument at its end, all of it: refused where elements or arguments share memory
UNWRITTEN = ("more than one element of the written-to tensor refers to a single memory location"
             "|was given arguments .* that share memory")
# What PyTorch refuses under vmap, too: operators without a rule, `.data`, and views (`view`, that
# as complex numbers) where one example lies as they need and the batch does not
REFUSED_MAPPED = ("does not have vmap support", "accessing `data`", "a stride divisible by 2",
                  "a last dimension with stride 1", "view size is not compatible")


class Case:
    """A program, its function, and what eager mode makes of it."""

    def __init__(self, program):
        self.program, self.inputs = program, program.inputs
        self.traits = program.traits
        self.function = program.function(pb)
        self.gradients, self.error = True, None
        try:
            self.wanted = observe(pb, self.function, self.inputs)
        except Refused as error:  # values are compared all the same
            self.gradients, self.error = False, error.__cause__
            self.wanted = observe(pb, self.function, self.inputs, False)
        if self.gradients and (self._singular() or self._behind() or self._begins_with_zero()):
            self.gradients = False
            self.wanted = observe(pb, self.function, self.inputs, False)
        self.eps = compare.rounding(*[s.dtype for s in self.wanted],
                                    *[i.dtype for i in self.inputs.values()])
        self._room = None
        self.whole = None  # was it captured as one graph?

    def _singular(self) -> bool:
        """Is there an infinite gradient of a determinant's logarithm, or an infinite matrix that
        is solved with?  What is infinite then and what is no number is an accident of the way."""
        source = self.program.source()
        if "solve" in source and any(i.odd for i in self.inputs.values()):
            return True
        return "logdet" in source and infinite(
            [s for s in self.wanted if s.place.startswith("gradient")])

    def _behind(self) -> bool:
        """Does it write through `.data` what a recorded step keeps for backward?  Eager mode reads
        there what was written, as PyTorch's does; graphs and forward mode have what was there."""
        if not self.written or ".data" not in self.program.source():
            return False

        def copied(*given):
            with pb.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
                return self.function(*given)

        try:
            found = observe(pb, copied, self.inputs)
        except Exception:
            return False  # hooks that the program itself has
        eps = compare.rounding(*[s.dtype for s in self.wanted])
        return difference(found, self.wanted, eps) is not None

    def _begins_with_zero(self) -> bool:
        """Is there a `scan` whose last carry nobody reads, and an infinite value or NaN?  Backward
        of a captured one begins with a zero for that carry, which makes NaN of an infinite slope;
        so in PyTorch's. The loop of eager mode has nothing there."""
        return bool(re.search(r"\bscan\(.*\)\[1\]", self.program.source())) and (
            infinite(self.wanted))

    @property
    def written(self) -> bool:
        return "write" in self.traits

    def seen(self, function) -> list:
        return observe(pb, function, self.inputs, self.gradients)

    def check(self, function, again: int = 1, lost: bool = False) -> str | None:
        """What another function of the same arguments does otherwise; may gradients be NaN?"""
        for _ in range(again):
            seen = self.seen(function)
            if lost:
                forgive_nan([(s, w) for s, w in zip(seen, self.wanted)
                             if w.place.startswith("gradient")])
            found = self.differs(seen)
            if found:
                return found
        return None

    def differs(self, seen: list) -> str | None:
        found = difference(seen, self.wanted, self.eps)
        if found:
            found = difference(seen, self.wanted, self.eps, self.room)
        return found

    @property
    def room(self) -> list | None:
        """How far values move when every value on the way is rounded otherwise."""
        if self._room is None:
            self._room = room_of(self.program, self.wanted, self.eps, self.gradients)
        return self._room


def infinite(seen: list) -> bool:
    """Is there a value that is infinite or no number?"""
    return any(not s.is_text and s.value.dtype.kind in "fc" and not np.isfinite(s.value).all()
               for s in seen)


class Shaken:
    """Moves values by rounding, each differently."""

    def __init__(self, eps: float, seed: int):
        self.eps, self.random = eps, np.random.default_rng(seed)

    def __call__(self, t, zeros: bool = False):
        """The tensor moved; signs of `zeros` too?"""
        if not isinstance(t, pb.Tensor) or not (t.dtype.is_floating_point or t.dtype.is_complex):
            return t
        # what is narrower than all that is seen of the program has a rounding of its own
        eps = max(self.eps, 4 * compare.ROUNDING.get(str(t.dtype).removeprefix("torch."), 0.0))
        noise = 1 + eps * self.random.uniform(-1, 1, tuple(t.shape))
        moved = t * pb.tensor(noise).to(t.dtype if t.dtype.itemsize > 2 else pb.float32).to(t.dtype)
        return self.turned(moved, zeros)

    def turned(self, t, zeros: bool = False):
        """With other signs of NaN, which `signbit` and `copysign` read and nobody promises."""
        some = pb.tensor(self.random.random(tuple(t.shape)) < 0.5)
        loose = t.isnan().logical_or(t == 0) if zeros else t.isnan()
        return pb.where(loose.logical_and(some), -t, t)


# products are subtracted inside of them, in one rounding or in two: what is left of equal ones is 0
# or noise, which is seen where their parts are moved
CANCELLING = ("aten::linalg_cross",)


# zeros of whole numbers that are exact in eager mode; by way of pi, as in graphs and in PyTorch, a
# rounding error of 1 is left
FROM_PI = ("aten::sinc", "aten::special_sinc")


def from_pi(t, shake: Shaken):
    return t + shake(pb.ones_like(t)) - 1


# their results are elements of what they get, without rounding; gradients ask which ones
CHOOSING = ("aten::amax", "aten::amin", "aten::max", "aten::min", "aten::aminmax", "aten::median",
            "aten::nanmedian")


# sums of -0.0 are -0.0, unless they began with a zero, as those of `sum` and `mean` do
ADDING = frozenset(f"aten::{name}" for name in (
    "cumsum", "mm", "bmm", "mv", "dot", "vdot", "addmm", "addmv", "addbmm", "baddbmm",
    "convolution"))


class EveryOperator(TorchDispatchMode):
    """Moves the results of all operators, those of backward too: what cancels there is seen.

    What is left of two numbers that are equal but for rounding is 0 in a run that is `exact`: of
    noise, and of 0, functions may make whatever they like.
    """

    def __init__(self, shake: Shaken, exact: bool = False):
        super().__init__()
        self.shake, self.exact = shake, exact

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func._schema.name in CANCELLING:
            with self:
                return func.decomposition(*func.bind(args, kwargs or {}))
        out = func(*args, **(kwargs or {}))
        if self.exact and func._schema.name in ("aten::add", "aten::sub", "aten::rsub"):
            return self._without_noise(out, *args[:2])
        if func._schema.name in FROM_PI:
            return from_pi(out, self.shake)
        exact = func.is_view or func._schema.name in CHOOSING
        adding = func._schema.name in ADDING
        return out if exact else tree_map(lambda t: self.shake(t, adding), out)

    def _without_noise(self, out, a, b):
        size = pb.maximum(*[t.abs().to(pb.float64) for t in map(pb.as_tensor, (a, b))])
        return pb.where(out.abs() <= 16 * self.shake.eps * size, pb.zeros_like(out), out)


class FreshOnly(TorchDispatchMode):
    """Turns signs of NaN and moves what comes from pi, nothing else: no promise is broken by that,
    so that programs with writes and draws bear it."""

    def __init__(self, shake: Shaken):
        super().__init__()
        self.shake = shake

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if func.is_view:
            return out
        pi = func._schema.name.rstrip("_") in FROM_PI

        def other(t):
            if not isinstance(t, pb.Tensor) or not t.dtype.is_floating_point:
                return t
            new = from_pi(t, self.shake) if pi else self.shake.turned(t) if t.isnan().any() else t
            if new is t or not func._schema.is_mutable:
                return new
            t.data.copy_(new)  # behind the tape's back: what it keeps is still what it was
            return t

        return tree_map(other, out)


def room_of(program, wanted: list, eps: float, gradients: bool, of=lambda f: f) -> list:
    """Spread of the results of shaken runs, `of` its function, with room for many roundings of its
    steps, and for some of each operator; or how far eager mode is from what float64 gives."""
    steps, operators = [], []
    inside = not {"write", "random"} & program.traits
    for seed in range(4):
        shake = Shaken(eps * 4, seed)
        moved = {n: replace(i, values=_moved(i, eps, seed)) if i.dtype in FLOATS and not i.of else i
                 for n, i in program.inputs.items()}
        after = (lambda s: [f"{n} = shake({n})" for n in s.makes]) if inside else None
        try:
            shaken = of(program.function(pb, after, shake=shake))
            steps.append(observe(pb, shaken, moved, gradients))
            if inside:
                for exact in (False, True) if seed == 0 else (False,):
                    with EveryOperator(shake, exact):
                        operators.append(observe(pb, of(program.function(pb)), moved, gradients))
            elif re.search("copysign|signbit|sinc", program.source()):
                with FreshOnly(shake):
                    operators.append(observe(pb, of(program.function(pb)), program.inputs,
                                             gradients))
        except Exception:
            return [np.inf] * len(wanted)  # it cannot bear rounding
    rooms = [spread(steps, wanted, 50.0), spread(operators, wanted, 2.0)]
    if None in rooms:
        return [np.inf] * len(wanted)
    rooms.append(own_error(program, wanted, gradients, of) or rooms[0])
    return [functools.reduce(np.maximum, parts) for parts in zip(*rooms)]


def own_error(program, wanted: list, gradients: bool, of) -> list | None:
    """How far eager mode is from what it would be in float64."""
    inputs = program.inputs
    wide = {n: replace(i, dtype=WIDE.get(i.dtype, i.dtype)) for n, i in inputs.items()}
    if "random" in program.traits or wide == inputs:
        return None
    try:
        return spread([observe(pb, of(program.function(pb)), wide, gradients)], wanted, 8.0)
    except Exception:
        return None


def _moved(spec: Input, eps: float, seed: int):
    random = np.random.default_rng(seed)
    array = spec.array()
    return (array * (1 + 4 * eps * random.uniform(-1, 1, array.shape))).tolist()


def quiet(make, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(*args, **kwargs)


# --- capture --------------------------------------------------------------------------------------


def _by_operators(torch, t, number: int):
    """The direction of `cotangent` for sizes that are symbols."""
    return ((torch.arange(t.numel()) * 0.7 + number + 0.3).cos() + 0.2).reshape(t.shape).to(t.dtype)


def joint(case: Case, direction=cotangent):
    """(what makes a function of plain tensors that gives results and gradients, its inputs)."""
    inputs = {n: replace(i, grad="") for n, i in case.inputs.items()}
    grads = [i.grad for i in case.inputs.values()]

    def both(function, *given):
        leaves, args = [], []
        for t, grad in zip(given, grads):
            if grad:
                t = t.detach().requires_grad_()
                leaves.append(t)
                t = t.clone() if grad == "inner" else t
            args.append(t)
        versions = [t._version for t in args]
        outs = flat(function(*args))
        ends = outs + written(args, versions)
        roots, along = roots_of(pb, ends, direction) if case.gradients else ([], [])
        found = [None] * len(leaves)
        if roots and leaves:
            found = pb.autograd.grad(roots, leaves, along, allow_unused=True)
        return [o.detach() if isinstance(o, pb.Tensor) else o for o in outs] + [
            pb.zeros_like(t) if g is None else g for t, g in zip(leaves, found)]

    return lambda function: functools.partial(both, function), inputs


def forgive_nan(pairs) -> None:
    """NaN of the first are what the second are."""
    for mine, other in pairs:
        if mine.value.shape == other.value.shape:
            mine.value = np.where(np.isnan(mine.value), other.value, mine.value)


PARTS = re.compile(r"softshrink|\b(max|min|median|nanmedian)(\.default)?\(\w*\)")


def parts_differ(case: Case) -> bool:
    """Are gradients products with masks in graphs as PyTorch prints them, and does that make NaN of
    what is infinite: `softshrink`, and `max` of all?"""
    return bool(PARTS.search(case.program.source())) and infinite(case.wanted)


def copied(case: Case) -> bool:
    """Does it write to what literal captures copy, as PyTorch's do: `dropout` in evaluation?"""
    return case.written and "dropout" in case.program.source()


class Sizing(TorchDispatchMode):
    """Is there a size that values decide and that is 1?"""

    found = False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if pb.Tag.dynamic_output_shape in func.tags:
            self.found |= any(1 in t.shape for t in flat(out))
        return out


def sized_one(case: Case) -> bool:
    """Does it find one element where others are found?  Graphs for any sizes take such sizes for
    others than 1, which are not broadcast; so in PyTorch."""
    with Sizing() as sizing:
        observe(pb, case.function, case.inputs, False)
    return sizing.found


def captured(case: Case, tracing: str, table=None) -> str | None:
    if copied(case):
        return None
    of, inputs = joint(case, _by_operators if tracing == "symbolic" else cotangent)
    both = of(case.function)
    wanted = observe(pb, both, inputs, False)
    pb.manual_seed(11)
    _, given = arguments(pb, inputs)
    try:
        module = make_fx(both, table, tracing)(*given)
        try:
            seen = observe(pb, module, inputs, False)
        except errors.ShapeError:
            if tracing == "symbolic" and sized_one(case):
                return None
            raise
    except errors.ViewWriteError as error:
        shared = any(i.layout == "expanded" or i.of for i in inputs.values())
        if shared and re.search(UNWRITTEN, str(error)):
            return None
        raise
    if parts_differ(case):
        leaves = sum(bool(i.grad) for i in case.inputs.values())
        results = [k for k, w in enumerate(wanted) if w.place.startswith("result")]
        forgive_nan([(seen[k], wanted[k]) for k in results[len(results) - leaves:]])
    found = difference(seen, wanted, case.eps)
    if found:
        room = room_of(replace(case.program, inputs=inputs), wanted, case.eps, False, of)
        found = difference(seen, wanted, case.eps, room)
    return found


def make_fx_real(case: Case) -> str | None:
    return captured(case, "real")


def make_fx_fake(case: Case) -> str | None:
    return captured(case, "fake")


def make_fx_symbolic(case: Case) -> str | None:
    return captured(case, "symbolic")


def decomposed(case: Case) -> str | None:
    return captured(case, "fake", core_aten_decompositions())


def aot_min_cut(case: Case) -> str | None:
    if copied(case):
        return None
    compiled = aot_function(case.function, nop, partition_fn=min_cut_rematerialization_partition)
    return case.check(compiled, 2, parts_differ(case))


def aot_default(case: Case) -> str | None:
    if copied(case):
        return None
    compiled = aot_function(case.function, nop, partition_fn=default_partition,
                            decompositions=core_aten_decompositions())
    return case.check(compiled, 1, parts_differ(case))


def on_numpy(case: Case) -> str | None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = case.check(pb.compile(case.function, backend="numpy"), 2)
    case.whole = not any("operator by operator" in str(w.message) for w in said)
    return found


def loss_of(function):
    """A number made of the results: forward and backward of it are one compiled graph."""

    def loss(*given):
        total = 0.0
        for k, out in enumerate(flat(function(*given))):
            if isinstance(out, pb.Tensor) and (out.dtype.is_floating_point or out.dtype.is_complex):
                part = out.sum() if k % 2 == 0 else (out * out).mean()
                total = total + (part.real if part.dtype.is_complex else part) * (k + 1)
        return total

    return loss


def alone(case: Case, **options) -> str | None:
    """A compiled loss, and its gradients, which come at once."""
    if not case.gradients or not any(i.grad for i in case.inputs.values()):
        return None
    loss = loss_of(case.function)
    wanted = observe(pb, loss, case.inputs)
    compiled = pb.compile(loss, **options)
    for _ in range(2):
        seen = observe(pb, compiled, case.inputs)
        found = difference(seen, wanted, case.eps)
        if found:
            room = room_of(case.program, wanted, case.eps, True, loss_of)
            found = difference(seen, wanted, case.eps, room)
        if found:
            return found
    return None


def loss(case: Case) -> str | None:
    return alone(case, backend="numpy")


def native_loss(case: Case) -> str | None:
    return alone(case)


def memory(case: Case) -> str | None:
    for limit in (0.0, 0.4):
        found = case.check(pb.compile(case.function, backend="numpy", memory=limit))
        if found:
            return f"memory={limit}: {found}"
    return None


def again(case: Case) -> str | None:
    """Eager mode learns plans from calls: the fifteenth is the first."""
    return case.check(case.function, 15)


# --- sizes ----------------------------------------------------------------------------------------


def sizes_of(program, factor: int) -> list:
    """The program's inputs at other sizes: one size of them, wherever it is, becomes another."""
    found = []
    common = [n for i in program.inputs.values() for n in i.shape if n > 1]
    for size in dict.fromkeys(sorted(common, key=common.count, reverse=True)):
        for new in ((size + 1, size + 4) if factor == 1 else (size * factor,)):
            changed = program.with_inputs(lambda i: i if i.values is not None or i.of else replace(
                i, shape=tuple(new if n == size else n for n in i.shape)))
            found.append(changed.inputs)
    return found


def resized(case: Case, compiled, factor: int = 1, most: int = 2) -> str | None:
    taken = 0
    for inputs in sizes_of(case.program, factor):
        other = replace(case.program, inputs=inputs)
        if sum(np.prod(i.shape) for i in inputs.values()) > 200_000:
            continue
        try:
            there = Case(other)
        except Exception:
            continue  # nor does eager mode take this size
        try:
            found = there.check(compiled)
        except errors.PullbackError:
            if there.error is None:
                raise
            continue  # eager mode refuses the backward of this size, too
        if found:
            shapes = {n: i.shape for n, i in inputs.items()}
            return f"at sizes {shapes}: {found}"
        taken += 1
        if taken == most:
            break
    return None


def dynamic(case: Case) -> str | None:
    compiled = pb.compile(case.function, dynamic=True, backend="numpy")
    return case.check(compiled) or resized(case, compiled)


def native_dynamic(case: Case) -> str | None:
    compiled = pb.compile(case.function, dynamic=True)
    return case.check(compiled) or resized(case, compiled)


def sizes_learned(case: Case) -> str | None:
    compiled = pb.compile(case.function, backend="numpy")
    return case.check(compiled) or resized(case, compiled)


def threads(case: Case) -> str | None:
    """Sizes for which threads pay, on several of them."""
    compiled, before = pb.compile(case.function), pb.get_num_threads()
    pb.set_num_threads(3)
    try:
        for factor in (512, 128, 32):
            found = resized(case, compiled, factor, 1)
            if found:
                return found
    finally:
        pb.set_num_threads(before)
    return None


# --- transforms -----------------------------------------------------------------------------------


def vmap(case: Case) -> str | None:
    """Mapped at once is mapped one by one, gradients and writes included."""
    # hooks: what runs inside does not require grad; ambiguous: a batch may choose another basis
    if {"random", "ambiguous", "hook"} & case.traits or any(i.of for i in case.inputs.values()):
        return None
    if case.written and "contiguous" in case.program.source():
        return None  # a copy where the batch does not lie as the example does; so in PyTorch
    if re.search(r"transpose_\W", case.program.source()):
        return None  # turns the argument itself, of which a loop has a view; so in PyTorch
    if re.search("bucketize|searchsorted", case.program.source()):
        return None  # tables that are not sorted: what is found depends on the way of searching
    count, dims, inputs = 2, [], {}
    for name, spec in case.inputs.items():
        random = np.random.default_rng([max(case.program.seed, 0), ord(name[0])])
        if random.random() < 0.25 and not case.written:  # in a loop the next would see the write
            dims.append(None)
            inputs[name] = spec
            continue
        one, two = spec.array(), replace(spec, seed=spec.seed + 1).array()
        dims.append(0 if not spec.shape or random.random() < 0.6 else len(spec.shape))
        stacked = np.stack([one, two], dims[-1])
        inputs[name] = replace(spec, shape=stacked.shape, values=stacked.tolist(), layout="",
                               odd="", grad=spec.grad)
    if all(d is None for d in dims):
        return None

    def looped(function):
        def run(*given):
            singles = [flat(function(*[t if d is None else t.select(d, k)
                                       for t, d in zip(given, dims)])) for k in range(count)]
            return [pb.stack(parts) for parts in zip(*singles)]
        return run

    there = replace(case.program, inputs=inputs)
    try:
        wanted = observe(pb, looped(case.function), inputs, case.gradients)
    except Exception:
        return None  # leaves that are written through views, results of several sizes
    mapped = func.vmap(lambda *t: tuple(flat(case.function(*t))), tuple(dims))
    try:
        seen = observe(pb, mapped, inputs, case.gradients)
    except (errors.TransformError, errors.ShapeError) as error:
        if any(words in str(error) for words in REFUSED_MAPPED):
            return None
        raise
    shared = {f"gradient of {n}" for n, d in zip(inputs, dims) if d is None}
    for mine, other in zip(seen, wanted):  # added up before or after a factor that is infinite
        if other.place in shared and mine.value.shape == other.value.shape:
            lost = ~np.isfinite(mine.value) & np.isnan(other.value)
            mine.value = np.where(lost, other.value, mine.value)
    if re.search(r"beta=0(?![.\d])", case.program.source()):
        # what counts for nothing is left out, in one example its gradient is 0 times what comes in
        forgive_nan([(w, s) for s, w in zip(seen, wanted) if w.place.startswith("gradient")])
    found = difference(seen, wanted, case.eps)
    if found:
        room = room_of(there, wanted, case.eps, case.gradients, looped)
        found = difference(seen, wanted, case.eps, room)
    return found


def _wide(case: Case) -> dict:
    return {n: replace(i, dtype=WIDE.get(i.dtype, i.dtype), odd="", layout="",
                       grad="inner" if i.grad else "") for n, i in case.inputs.items()}


class Smooth:
    """A program in float64 as a function of its inputs with gradients, results weighted."""

    def __init__(self, case: Case):
        self.case, self.inputs = case, _wide(case)
        self.leaves, self.given = arguments(pb, self.inputs)
        self.places = [k for k, i in enumerate(self.inputs.values()) if i.grad]
        random = np.random.default_rng(5)
        self.points = [t.detach() for t in self.leaves]
        self.directions = [_direction(random, t) for t in self.points]
        self.chosen = None
        with np.errstate(all="ignore"):
            self.chosen = [o.requires_grad for o in self.results(
                *[p.clone().requires_grad_() for p in self.points])] if self.points else []

    def results(self, *points):
        _, given = arguments(pb, {n: replace(i, grad="") for n, i in self.inputs.items()})
        for k, p in zip(self.places, points):
            given[k] = p.clone()
        pb.manual_seed(11)
        outs = [o for o in flat(self.case.function(*given)) if isinstance(o, pb.Tensor)
                and (o.dtype.is_floating_point or o.dtype.is_complex)]
        return outs if self.chosen is None else [o for o, c in zip(outs, self.chosen) if c]

    def weighted(self, *points):
        """<v, f(x)>, a real number."""
        total = None
        for k, o in enumerate(self.results(*points)):
            part = (o.to(pb.complex128 if o.dtype.is_complex else pb.float64)
                    * cotangent(pb, o, k).conj()).sum()
            part = part.real if part.dtype.is_complex else part
            total = part if total is None else total + part
        return total

    def along(self, step: float) -> float:
        with np.errstate(all="ignore"), pb.no_grad():
            return float(self.weighted(*[p + step * d for p, d in zip(self.points,
                                                                      self.directions)]))


def _direction(random, t):
    values = random.normal(size=tuple(t.shape))
    if t.dtype.is_complex:
        values = values + 1j * random.normal(size=tuple(t.shape))
    return pb.tensor(np.asarray(values)).to(t.dtype)


def _dot(xs, ys) -> float:
    return float(sum(np.sum(np.real(np.conj(np.asarray(x.detach().resolve_conj().numpy()))
                                    * np.asarray(y.detach().resolve_conj().numpy())))
                     for x, y in zip(xs, ys)))


def _fits(traits) -> bool:
    """A step may stop derivatives on purpose, or lie about them: nothing to compare with."""
    return not {"hook", "function", "random", "control", "tolerance"} & traits


def smooth(case: Case) -> Smooth | None:
    """The program in float64, if there is something to differentiate."""
    if not case.gradients or not _fits(case.traits) or "no_grad" in case.program.source():
        return None  # forward mode goes through `no_grad`, as PyTorch's does
    try:
        f = Smooth(case)
        if any(f.chosen or ()):
            func.vjp(f.weighted, *f.points)[1](pb.ones((), dtype=pb.float64))
    except Exception:
        return None  # eager mode does not take it in this dtype
    return f if any(f.chosen or ()) else None


def _rounded(case: Case) -> bool:
    """Does it go through a narrow dtype?"""
    text = case.program.source().lower()
    return any(w in text for w in (
        "float()", "half", "bfloat16", "float32", "torch.float", "_cast_", "linspace", "window",
        "complex64", "torch.tensor(", "torch.rand", "torch.zeros(", "float16", "type_as",
        "logspace"))


def jvp(case: Case) -> str | None:
    """Forward mode is reverse mode, and both are what differences say."""
    f = smooth(case)
    if f is None:
        return None
    with np.errstate(all="ignore"):
        total, pull = func.vjp(f.weighted, *f.points)
        grads = pull(pb.ones_like(total))
        pushed = func.jvp(f.weighted, tuple(f.points), tuple(f.directions))[1]
    reverse, forward = _dot(grads, f.directions), float(pushed)
    scale = float(sum(np.abs(np.asarray(g.detach().resolve_conj().numpy())).sum() for g in grads))
    if not np.isfinite(reverse) or not np.isfinite(forward) or not np.isfinite(scale):
        return None  # compared at finite values only
    room = 3e-2 if _rounded(case) else 1e-7
    if abs(reverse - forward) > room * (scale + abs(reverse) + 1e-3):
        return None if unstable(f) else f"forward mode {forward}, reverse mode {reverse}"
    return _differences(f, reverse, scale)


def unstable(f: Smooth) -> bool:
    """Do first derivatives move much when inputs or values on the way are rounded otherwise?"""
    def gradients(points):
        leaves = [p.detach().requires_grad_() for p in points]
        found = pb.autograd.grad(f.weighted(*leaves), leaves, allow_unused=True)
        return np.concatenate([np.zeros(1), *(
            np.asarray(g.detach().resolve_conj().numpy()).reshape(-1) for g in found
            if g is not None)])

    runs = shaken_runs(f, gradients)
    finite = np.isfinite(runs)
    if (finite != finite[0]).any():  # whether it is a number at all is a matter of rounding
        return True
    runs = runs[:, finite[0]]
    spread_ = np.abs(np.ptp(np.real(runs), 0)) + np.abs(np.ptp(np.imag(runs), 0))
    return bool(np.max(spread_) > 1e-9 * (np.abs(runs).max() + 1e-3))


def shaken_runs(f: Smooth, of) -> np.ndarray:
    """What `of` makes of the points, and of points and values on the way that are rounded
    otherwise."""
    with np.errstate(all="ignore"):
        runs = [of(f.points)]
        for seed in range(4):
            shake = Shaken(1e-15, seed)
            points = [shake(p) for p in f.points]
            with EveryOperator(shake):
                runs.append(of(points))
    return np.array(runs)


def _differences(f: Smooth, reverse: float, scale: float) -> str | None:
    text = f.case.program.source()
    if {"cut", "ambiguous"} & f.case.traits or _rounded(f.case) or any(w in text for w in (
            "detach", "no_grad", ".data", "ctc_loss", "fake_quantize", "batch_norm", ".item()",
            "float(", "int(", "binary_cross_entropy_backward", "bincount", "nextafter")):
        # derivatives that are cut off, or made for other values (probabilities), or values rounded
        return None
    if re.search(r"clamp\((?:\w+, )?(\w+), \1\)", text):
        return None  # between equal bounds only the upper one has a gradient, as in PyTorch
    slopes = [(8 * (f.along(h) - f.along(-h)) - (f.along(2 * h) - f.along(-2 * h))) / (12 * h)
              for h in (1e-3, 2.5e-4, 1e-5)]
    if not np.all(np.isfinite(slopes)):
        return None
    # of a large value small steps leave nothing but rounding, which may be the same in all of them
    spread_ = max(slopes) - min(slopes) + 1e-15 * abs(f.along(0.0)) / 1e-5
    if spread_ > 1e-5 * (scale + abs(slopes[0]) + 1e-3):
        return None  # not smooth here
    # at a kink (`relu` of 0) any slope between those of both sides is a derivative
    bend = abs(f.along(1e-5) - 2 * f.along(0.0) + f.along(-1e-5)) / 1e-5
    if abs(slopes[1] - reverse) > bend + 100 * spread_ + 1e-4 * (scale + abs(reverse) + 1e-3):
        return None if unstable(f) else f"differences {slopes[1]}, derivative {reverse}"
    return None


def second(case: Case) -> str | None:
    """Forward over reverse is reverse over reverse, and so is a compiled function's."""
    f = smooth(case)
    if f is None or any(w in case.program.source() for w in (
            "fake_quantize", "binary_cross_entropy_backward")):
        return None  # gradients of no function (beyond probabilities): second ones need not be
        # symmetric

    def gradient(*points):
        found = func.grad(f.weighted, argnums=tuple(range(len(points))))(*points)
        return found

    def twice(points):
        leaves = [p.clone().requires_grad_() for p in points]
        first = pb.autograd.grad(f.weighted(*leaves), leaves, create_graph=True,
                                 allow_unused=True)
        pairs = [(g, d) for g, d in zip(first, f.directions)
                 if g is not None and g.requires_grad]
        found = [None] * len(leaves)
        if pairs:
            found = pb.autograd.grad([g for g, _ in pairs], leaves, [d for _, d in pairs],
                                     allow_unused=True)
        return [np.asarray((pb.zeros_like(t) if g is None else g).detach().resolve_conj().numpy())
                for g, t in zip(found, leaves)]

    with np.errstate(all="ignore"):
        _, pushed = func.jvp(gradient, tuple(f.points), tuple(f.directions))
        pulled = twice(f.points)
    for k, (a, b) in enumerate(zip(pushed, pulled)):
        a = np.asarray(a.detach().resolve_conj().numpy())
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            continue
        top = max(np.abs(b).max(initial=0.0), 1e-3)
        gap = np.abs(a - b).max(initial=0.0)
        if gap > (5e-2 if _rounded(case) else 1e-6) * top:
            # large terms that cancel leave their rounding
            runs = shaken_runs(f, lambda points, k=k: twice(points)[k])
            return None if unstable(f) or gap <= np.abs(runs - runs[0]).max(initial=0.0) else (
                f"second derivative of input {k}: forward over reverse {a.reshape(-1)[:3]}, "
                f"reverse over reverse {b.reshape(-1)[:3]}")
    return None


def second_compiled(case: Case) -> str | None:
    """Gradients of gradients through a captured function are those of eager mode."""
    if not case.gradients or case.written:
        return None
    compiled = aot_function(case.function, nop, partition_fn=min_cut_rematerialization_partition)

    def gradients(function):
        def run(*given):
            outs, along = roots_of(pb, flat(function(*given)))
            leaves = [t for t in given if t.requires_grad]
            if not outs or not leaves:
                return []
            grads = pb.autograd.grad(outs, leaves, along, create_graph=True, allow_unused=True)
            return [pb.zeros_like(t) if g is None else g for g, t in zip(grads, leaves)]
        return run

    inputs = {n: replace(i, grad="inner" if i.grad else "") for n, i in case.inputs.items()}
    try:
        wanted = observe(pb, gradients(case.function), inputs)
    except Exception:
        return None
    seen = observe(pb, gradients(compiled), inputs)
    # norms and deviations at zero: NaN, as PyTorch's norms
    forgive_nan([(s, w) for s, w in zip(seen, wanted)
                 if w.place.startswith("gradient") or parts_differ(case)])
    found = difference(seen, wanted, case.eps)
    if found:
        room = room_of(replace(case.program, inputs=inputs), wanted, case.eps, True, gradients)
        # terms of the size of the first derivatives may cancel: that leaves their rounding
        sizes = [np.abs(w.value[np.isfinite(w.value)]).max(initial=0.0) for w in wanted
                 if not w.is_text and w.value.dtype.kind in "fc"]
        found = difference(seen, wanted, case.eps,
                           [r + 16 * case.eps * max(sizes, default=0.0) for r in room])
    return found


# name -> (function, how many programs of a hundred take it, at most)
MODES = {
    "again": (again, 6), "make_fx": (make_fx_real, 25), "make_fx_fake": (make_fx_fake, 25),
    "make_fx_symbolic": (make_fx_symbolic, 20), "decomposed": (decomposed, 35),
    "aot_min_cut": (aot_min_cut, 100), "aot_default": (aot_default, 35),
    "numpy": (on_numpy, 100), "loss": (loss, 20), "native_loss": (native_loss, 3),
    "vmap": (vmap, 100), "jvp": (jvp, 100), "second": (second, 50),
    "second_compiled": (second_compiled, 30), "memory": (memory, 6), "dynamic": (dynamic, 12),
    "sizes_learned": (sizes_learned, 8), "native_dynamic": (native_dynamic, 1),
    "threads": (threads, 1),
}
