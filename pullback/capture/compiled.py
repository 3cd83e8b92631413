"""`Compiled`: capture per signature, cut the joint graph, compile both halves, run.

A signature is what the captured graph depends on: the structure of the arguments, shapes, dtypes,
which tensors require grad, which are the same object, and every Python value.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable

import numpy as np

from .. import errors
from ..array import dtype as dt
from ..core.handle import Tensor
from ..cut.settings import config, dynamo
from ..graph import counters
from ..graph.graph_module import GraphModule
from ..parts.trees import closed, has_parts, on_parts, opened
from ..python_state.module_tensors import ModuleTree, roots_of
from ..python_state.reachable import compared_by_identity
from ..python_state.side_effects import Effects, Filled
from ..pytree import tree_flatten, tree_unflatten
from ..threads.blocks import exclusive_capture, restored_on_error
from ..threads.state import fast, state
from . import shared_inputs as sharing
from .build import Backend, Request
from .capture import Postponed
from .dynamic_dims import DynamicDims, is_number, local, loose_key, names_of
from .fast_guards import Short, in_line, short
from .guards import aliases, key_of
from .hooks import InputHooksCalled
from .joint import Sizes
from .run import Program
from .subclasses import Inside, Wrapped, desugared

_ndarray = np.ndarray
DECISIONS = 8  # captures of one signature for different values that the function reads
SIZES = 64  # programs for single sizes that are kept, of all that follow from a symbolic one
FACTS = 5  # entries of a signature before the arguments
EFFECTS = 3  # captures of a function that does what no program does for it
CHECKED = 2  # calls of a program that are compared with the function, if asked for
VARIANTS = 4  # programs of one signature, for different things found outside of the function


class Compiled:
    """A function that is captured and compiled per signature of its arguments."""

    strided = False  # are inputs that share memory places of it in the graphs, or views?
    kinds: tuple = int, float  # of numbers that may be symbols
    recompile: Callable | None = None  # compiles another function in the same way
    input_hooks: list | None = None  # hooks of inputs, while a function is captured that calls them
    filled = False  # was it said that it fills a cache?
    checks = False  # are the first calls of every program compared with the function?

    def __init__(self, function, backend: Backend, dynamic: bool | None = None):
        functools.update_wrapper(self, function, updated=() if hasattr(
            function, "_modules") else ("__dict__",))
        self.function, self.backend, self.dynamic = function, backend, dynamic
        self.families: dict = {}  # arguments but for their sizes -> Family
        self.recompiles: list[str] = []  # why it was captured again, each time
        self.programs: dict = {}
        self.captures: dict = {}  # signature -> how often its decisions were new
        self._on_parts: Compiled | None = None  # the same for tensors that are made of others
        self.strangers: dict = {}  # class of an object among the arguments -> how many there were
        self._modules: ModuleTree | None = None  # that the function reaches; None: not yet known
        self._given: dict = {}  # identities of modules among arguments -> these, and their trees
        self._last: Short | None = None  # the short way of the last call
        self._recent: dict = {}  # those of earlier ones, by the shapes of their tensors

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        function = self.function
        code = getattr(function, "__code__", None)
        place = f" ({errors.describe_place((code, 0))})" if code is not None else ""
        name = getattr(function, "__qualname__", type(function).__qualname__)
        count = len(self.programs)
        return f"<compiled {name}{place}, {count} program{'' if count == 1 else 's'}>"

    def __copy__(self) -> Compiled:  # as functions are
        return self

    def __deepcopy__(self, memo: dict) -> Compiled:
        return self

    def __reduce__(self) -> tuple:
        """The function, to be compiled where the pickle is read."""
        if self.recompile is None:
            raise TypeError(errors.text(
                f"cannot pickle a function with compilers of its own ({errors.user_line(1)})",
                cure="pickle the function, and compile it again"))
        return self.recompile, (self.function,)

    def like(self, function) -> Compiled:
        """Another one for another function, with the same compilers."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        new.function, new._last, new._modules = function, None, None
        new.families, new.programs, new.captures, new._recent = {}, {}, {}, {}
        new._given = {}
        new.strangers, new._on_parts = {}, None
        return new

    def __call__(self, *args, **kwargs):
        last = self._last
        if last is not None and not (fast["ACTIVE"] or fast["GRADOFF"] and state.inference):
            fits, record, default, program, rest = last
            given = in_line(args, kwargs) if kwargs else args
            found = fits(given)
            if (
                found is not None
                and record == state.record[0]
                and default is dt._default
                and (not rest or all(check() for check in rest))
            ):
                return program.enter(*found)
            if self._returns_to(given):
                return self(*args, **kwargs)
        return self._general(args, kwargs)

    def _returns_to(self, given: tuple) -> bool:
        """Is there a short way of an earlier call that was like this one?  It is the next."""
        for other in self._recent.get(_shapes(given), ()):
            if other is not self._last and other.record == state.record[0] and (
                    other.default is dt._default and other.fits(given) is not None
                    and all(check() for check in other.rest)):
                self._last = other
                return True
        return False

    def _shorten(self, program: Program, given: tuple) -> None:
        """Let the next call like this one come in by a short way."""
        made = short(program, given, self._modules)
        if made is None:
            return
        if len(self._recent) >= SIZES:
            self._recent.pop(next(iter(self._recent)))
        known = self._recent.setdefault(_shapes(given), [])
        known[:] = [made, *[s for s in known if s.program is not program][:VARIANTS]]
        self._last = made

    def _general(self, args, kwargs):
        """A call that is like none before: find its program, or make one, and run it."""
        flat, spec = tree_flatten((args, kwargs))
        tensors = [v for v in flat if isinstance(v, Tensor)]
        if fast["PARTS"] and any(map(has_parts, tensors)):
            if self._on_parts is None:
                self._on_parts = self.like(on_parts(self.function))
            args, kwargs = opened((args, kwargs))
            return closed(self._on_parts(*args, **kwargs))
        if fast["DISPATCHES"] and not (
                state.mode or len(state.stack) > 1 or state.dispatch.operator_modes):
            out = desugared(self, flat, spec)
            if out is not NotImplemented:
                return out
        if fast["ACTIVE"] and _is_watched() or any(
                type(t._payload) is not _ndarray for t in tensors):
            return self.function(*args, **kwargs)
        if fast["ACTIVE"]:
            with exclusive_capture():  # another thread may be capturing what this one reads
                pass
        key = self.key(flat, spec, tensors)
        refused, filled = "", False
        try:
            program = self._program(key, flat, spec, tensors, args, kwargs)
        except Wrapped as met:
            return desugared(self, flat, spec, met)
        except Postponed:  # an optimizer without state, for instance; the next call is captured
            return self.function(*args, **kwargs)
        except Effects as error:
            if error.__cause__ is not None and self.backend.undecided is None:
                raise error.__cause__  # noqa: B904
            refused, filled = str(error), isinstance(error, Filled)
        except errors.DataDependentError as error:
            if self.backend.undecided is None:
                raise
            self.captures[key] = DECISIONS
            self.backend.undecided(self.function, str(error).splitlines()[0])
            return self.function(*args, **kwargs)
        if refused:
            return self._as_written(refused, self._family(key, flat), filled, args, kwargs)
        if program is None:
            return self.function(*args, **kwargs)
        return self._run(program, key, flat, tensors, args, kwargs)

    def _program(self, key: tuple, flat: list, spec, tensors: list, args: tuple,
                 kwargs: dict) -> Program | None:
        """The program for a call, made if there is none; None: the function runs as it is."""
        program = (self._known(key, tensors) or self._accepted(key, tensors)
                   or self._instance(key, flat, tensors))
        if program is None:
            if (self.captures.get(key, 0) >= DECISIONS
                    or self._family(key, flat).effects >= EFFECTS or self._is_strange(flat)):
                return None
            why = self._explain(key, flat, tensors, args, kwargs)
            if state.switches.stance != "default" and self.programs:
                if state.switches.stance == "eager_on_recompile":
                    return None
                raise errors.CompileError(errors.text(
                    "a compiled function would have to be compiled again "
                    f"({errors.user_line(2)}), and the stance is fail_on_recompile", why,
                    cure="call it with inputs of the shapes and dtypes that it was compiled for"))
            program = self._with_filled_caches(lambda: self._with_hooks_of_inputs(
                lambda: self._new_program(key, flat, spec, tensors, args, kwargs)))
            if program.joint.guards.decisions is not None or (
                    (key, 0) in self.programs and self.backend.undecided is not None):
                self._count(key, program)
            self._keep(key, program)
        return self._apart(program, flat, spec, tensors) if program.written else program

    def _run(self, program: Program, key: tuple, flat: list, tensors: list, args: tuple,
             kwargs: dict):
        """Run a program; the next call like this one may come in by the short way."""
        if self.checks and program.compared < CHECKED and not isinstance(self.function, Inside):
            from .check import check

            check(self, program, flat, tensors, args, kwargs)
        elif (not (state.autocast or state.inference or state.switches.devices)
                and key[-1] is None and program.comparable):
            self._shorten(program, in_line(args, kwargs))
        if fast["ACTIVE"]:
            with exclusive_capture():
                return program.run(tensors)
        return program.run(tensors)

    def _as_written(self, why: str, family: Family, filled: bool, args: tuple, kwargs: dict):
        """Call a function that does what no program does; perhaps it does that only once, or, where
        it has filled a cache, for some sizes."""
        if filled and not self.filled:
            self.filled = True
            self.backend.written(self.function, f"{why}; it is compiled when that is done")
        out = self.function(*args, **kwargs)
        before = family.effects
        family.effects += EFFECTS / DECISIONS if filled else 1
        if before < EFFECTS <= family.effects:
            self.backend.written(self.function, why)
        return out

    def _is_strange(self, flat: list) -> bool:
        """Is an object of the user's among the arguments the next of many?"""
        for kind in {type(v) for v in flat if compared_by_identity(v)}:
            count = self.strangers[kind] = self.strangers.get(kind, 0) + 1
            if count == DECISIONS:
                self.backend.written(self.function, f"a {kind.__name__} among its arguments is "
                                     "another each time")
            if count >= DECISIONS:
                return True
        return False

    def key(self, flat: list, spec, tensors: list[Tensor]) -> tuple:
        """The signature of arguments."""
        record = "inference" if state.inference else state.record[0]
        devices = state.switches.devices
        cast = (state.autocast, devices) if devices else state.autocast
        facts = record, dt.default(), cast, self._modes(flat)
        return (spec, *facts, *[key_of(v) for v in flat], aliases(tensors))

    def _modes(self, flat: list) -> tuple | None:
        """The modules that the function reaches, and which of them are in training."""
        given = [v for v in flat if hasattr(v, "_modules")]
        if given:
            key = tuple(map(id, given))
            if key not in self._given:
                if len(self._given) >= DECISIONS:
                    self._given.clear()
                self._given[key] = given, ModuleTree(roots_of(self.function, *given))
            return self._given[key][1].modes()
        if self._modules is None:
            self._modules = ModuleTree(roots_of(self.function))
        return self._modules.modes() if self._modules.roots else None

    def parts(self) -> dict:
        """What has been compiled so far: (program number, part) -> compiled graph."""
        return {
            (i, name): part
            for i, program in enumerate(self.programs.values())
            for name, part in program._made.items()
            if "eager" not in (name, name[0])
        }

    def source_paths(self) -> list[str]:
        """The generated C files."""
        paths = (getattr(part, "source_path", None) for part in self.parts().values())
        return [str(path) for path in paths if path]

    def graphs(self, program: int = -1) -> tuple[GraphModule, GraphModule | None]:
        """Forward and backward graph of a program (the last one made)."""
        return list(self.programs.values())[program].graphs()

    def report(self, program: int = -1):
        """What of a program (the last one made) is saved for the backward and what is computed
        again, why, and what that takes: a table (`str`, `show`) and its rows."""
        made = [p for p in self.programs.values() if p.cut is not None]
        if not made:
            raise errors.CompileError(errors.text(
                f"report(): nothing was compiled with a backward yet ({errors.user_line()})",
                cure="call the function first, with inputs that require grad"))
        return made[program].report()

    def _known(self, key: tuple, tensors: list) -> Program | None:
        """The program of a signature that fits what the function will find outside."""
        for number in range(VARIANTS):
            program = self.programs.get((key, number))
            if program is None or program.fits(tensors):
                return program
        return None

    def _accepted(self, key: tuple, tensors: list) -> Program | None:
        """A program of another signature that serves this one, too."""
        return None

    def _count(self, key: tuple, program: Program) -> None:
        """One more program for other decisions; too many, and there will be no more."""
        count = self.captures[key] = self.captures.get(key, 0) + 1
        if count == DECISIONS:
            decisions, read = program.joint.guards.decisions, "outside of it"
            if decisions is not None:
                node = decisions.graph.output_node().all_input_nodes[-1]
                read = f"from tensors ({(node.stack_trace or '').strip()})"
            self.backend.undecided(
                self.function, f"what it reads {read} was new in {count} calls of the same kind")

    def _keep(self, key: tuple, program: Program) -> None:
        """Put a program beside those of the same signature; the oldest makes room."""
        count = sum((key, number) in self.programs for number in range(VARIANTS))
        if count == VARIANTS:
            for number in range(1, VARIANTS):
                self.programs[key, number - 1] = self.programs[key, number]
            count -= 1
        self.programs[key, count] = program

    def _apart(self, program: Program, flat: list, spec, tensors: list) -> Program:
        """The program for inputs that share memory with one that is written."""
        joint = program.joint
        inputs = joint.inputs.of(tensors)
        owners = joint.inputs.unique or list(range(len(tensors)))
        owners = [*owners, *inputs[len(owners):]]
        found = sharing.groups([t._payload for t in inputs], program.written)
        if not found:
            return program
        if isinstance(self.function, Inside):
            self.function.refuse_shared(inputs, found, self.strided)
        if config.strict_input_aliases:
            args, kwargs = tree_unflatten(flat, spec)
            sharing.refuse_mixed_bases(
                inputs, found, names_of(self.function, args, kwargs), joint.differentiable)
        pattern = sharing.pattern(inputs, found)
        known = program.shared.get(pattern)
        if known is None or not known.fits(tensors):
            roots, shared = sharing.describe(inputs, owners, found, self.strided)
            known = program.shared[pattern] = self._with_hooks_of_inputs(
                lambda: self.build(flat, spec, roots, shared))
        return known

    def _with_filled_caches(self, make: Callable[[], Program]) -> Program:
        """Capture; once more if the function meets caches that can be filled before."""
        for _ in range(DECISIONS):
            try:
                return make()
            except Filled as met:
                if not met.fill():
                    raise
        return make()

    def _with_hooks_of_inputs(self, make: Callable[[], Program]) -> Program:
        """Capture; once more if sweeps of the function call hooks that its inputs have."""
        try:
            with restored_on_error():
                return make()
        except InputHooksCalled as met:
            self.input_hooks = met.hooks
        try:
            with restored_on_error():
                return make()
        finally:
            self.input_hooks = None

    def _family(self, key: tuple, flat: list) -> Family:
        """What is known of calls that differ in their sizes alone."""
        loose = (*key[:FACTS], *[loose_key(v, self.kinds) for v in flat], key[-1])
        found = self.families.get(loose)
        if found is None:
            found = self.families[loose] = Family()
        return found

    def _instance(self, key: tuple, flat: list, tensors: list) -> Program | None:
        """The program of these sizes from one that was captured with symbolic sizes, or None."""
        if not self.families:
            return None
        family = self._family(key, flat)
        shapes = [t._payload.shape for t in tensors] + [(n,) for n in self.numbers(flat).values()]
        for symbolic in family.programs:
            values = symbolic.check.bind(shapes)
            if (type(values) is dict and symbolic.keeps_limit(values)
                    and symbolic.first.finds_same(tensors)):
                program = symbolic.instance(tensors, values)
                if program.fits(tensors):
                    if len(family.instances) >= SIZES:
                        self.programs.pop(family.instances.pop(0), None)
                    family.instances.append((key, 0))
                    self._keep(key, program)
                    return program
        return None

    def _new_program(self, key: tuple, flat: list, spec, tensors: list, args, kwargs) -> Program:
        """A new program, with symbolic sizes if some have been seen to differ or were marked."""
        family, numbers = self._family(key, flat), self.numbers(flat)
        varying = self._varying()
        dynamic_dims = DynamicDims(tensors, varying, family.captured, list(numbers.values()))
        now = [t._payload.shape for t in tensors], list(numbers.values())
        if now not in family.captured:  # a capture that fails comes again
            family.captured.append(now)
        reads = self.reads()
        if not (dynamic_dims or reads) or family.fixed:
            return self.build(flat, spec)
        names = names_of(self.function, args, kwargs)
        sizes = self.sizes(flat, names, dynamic_dims)
        sizes.data = sizes.checks = reads
        try:
            program = self.build(flat, spec, sizes=sizes, dynamic_dims=dynamic_dims)
        except Postponed:
            raise
        except Filled as met:
            if dynamic_dims.demanded or met.calls is not None:
                raise
            family.fixed = True  # a cache takes a symbol for something new, each time
            return self.build(flat, spec)
        except Exception as error:
            failed = getattr(error, "__cause__", None) if isinstance(error, Effects) else error
            if isinstance(failed or error, errors.DataDependentError):
                if not reads or self.backend.undecided is None:
                    raise
                return self.build(flat, spec)  # it goes by what it reads
            if varying is not None or dynamic_dims.demanded:
                raise
            error = failed
            program = self.build(flat, spec)  # which raises it again if it is the user's
            family.fixed = True
            name = getattr(self.function, "__name__", type(self.function).__name__)
            warnings.warn(
                f"compile(): sizes of {name} stay fixed, for it cannot be captured with "
                f"symbolic ones ({str(error).splitlines()[0]})", stacklevel=4)
            return program
        family.programs.append(program.symbolic)
        return program

    def _varying(self) -> bool | None:
        """`dynamic` as it was given, or as settings say."""
        if self.dynamic is None and not dynamo.assume_static_by_default:
            return True
        if self.dynamic is None and not dynamo.automatic_dynamic_shapes:
            return False
        return self.dynamic

    def reads(self) -> bool:
        """Is what the function reads from data, a number or a size, a symbol of its graphs?"""
        return dynamo.capture_scalar_outputs or dynamo.capture_dynamic_output_shape_ops

    def numbers(self, flat: list) -> dict:
        """The numbers among arguments that may be symbols, by their place."""
        return {k: v for k, v in enumerate(flat) if is_number(v, self.kinds)}

    def sizes(self, flat: list, names: list[str], dynamic_dims) -> Sizes:
        """What is to be symbolic, and what that is called."""
        tensors, numbers = self._named(flat)
        made = Sizes(dynamic_dims.dims, [names[k] for k in (*tensors, *numbers)],
                     sources=[local(names[k]) for k in tensors],
                     numbers={k: (local(names[k]), w)
                              for k, w in zip(numbers, dynamic_dims.numbers)})
        made.env.plain = True
        return self._of_wrappers(made, tensors)

    def _of_wrappers(self, sizes: Sizes, tensors: list[int]) -> Sizes:
        """With what is known of numbers that are sizes of wrappers."""
        if isinstance(self.function, Inside):
            sizes.sizes, sizes.strides = self.function.numbers(), self.function.strides
            for k, (i, d) in self.function.following(tensors).items():
                sizes.numbers[k] = sizes.numbers[k][0], sizes.wanted[i][d] is not False
        return sizes

    def _named(self, flat: list) -> tuple[list[int], list[int]]:
        """Places of tensors and of numbers."""
        return [k for k, v in enumerate(flat) if isinstance(v, Tensor)], list(self.numbers(flat))

    def _explain(self, key: tuple, flat: list, tensors: list, args, kwargs) -> str:
        """Why no program fits a call; kept, and printed if asked for."""
        if not self.programs:
            return ""
        from .explain import why_again

        text = why_again(self, key, self._family(key, flat), tensors, args, kwargs)
        self.recompiles.append(text)
        return text

    def request(self, flat: list, spec, roots=(), shared: dict | None = None, sizes=None,
                dynamic_dims=None) -> Request:
        """What is to be captured for a call."""
        return Request(flat, spec, roots, shared, sizes, dynamic_dims, self.numbers(flat),
                       self.input_hooks)

    def build(self, *given, **options) -> Program:
        """Capture and compile for one signature; arguments are those of `request`."""
        request = self.request(*given, **options)
        return counters.counted(lambda: self.backend.program(self.function, request))


class Family:
    """What is known of calls that differ in their sizes alone."""

    def __init__(self) -> None:
        self.captured: list = []  # shapes of the arguments, of each capture
        self.programs: list = []  # with symbolic sizes
        self.instances: list = []  # keys of the programs made of these
        self.effects = 0.0  # captures in which the function changed what no program can change
        self.fixed = False  # did a symbolic capture fail that nobody had asked for?


def _is_watched() -> bool:
    """Is there a mode or a level that is to see the operators of a function?"""
    return bool(state.mode or state.dispatch.operator_modes or state.dispatch.function_modes
                or len(state.stack) > 1 or state.switches.watched
                or state.switches.stance == "force_eager")


def _shapes(given: tuple) -> tuple:
    return tuple([a._payload.shape for a in given if isinstance(a, Tensor)])
