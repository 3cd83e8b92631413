"""Run a compiled function so that nobody can tell it from eager: history, mutations, aliases.

A compiled call is one native call per pass plus what stands here.  There are two ways to
differentiate:

* *split*: the forward graph saves what the min cut chose; the backward graph is compiled when it
  first runs.
* *fused*: if the function gives one number (a loss), its gradients for the seed 1 are computed in
  the forward call, in one graph, and backward only scales them.  Three calls in a row whose
  backward never came go back to split, and so does a seed by which they cannot be scaled.

A backward that is itself recorded (double backward) runs the captured joint graph operator by
operator, on the values that the inputs had.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import errors
from ..array.dtype import float16
from ..autograd import engine
from ..autograd.grad_mode import enable_grad
from ..core.handle import Tensor, cell_of, make
from ..cut.split import give_away
from ..errors import modified
from ..graph.traits import cost_of, memory, owner, viewed
from ..memory.versions import mark_inference, mark_written
from ..pytree import tree_unflatten
from ..threads.blocks import exclusive_capture, uncast
from ..threads.state import fast, sequence, state
from .eager_forward import pulled_back
from .effects.effect import Call, Effect
from .effects.histories import Record
from .effects.numbers import ReadNumber
from .effects.order import in_order
from .effects.results import Output, ReturnValue
from .guards import contents, key_of
from .joint import Identity, Joint
from .node import (
    CompiledNode,
    generator_state,
    mark_propagated,
    same_random_numbers,
    users_place,
)
from .saved_tensor_hooks import PackedValues, graph_hooks
from .subclasses import plain_tangents
from .wrapped_gradients import gathered

if TYPE_CHECKING:
    from .build import CompiledParts

_new = object.__new__
WASTED = 3  # fused calls without a backward after which the program splits


def arrays_of(tensors: list[Tensor]) -> list:
    """What tensors hold; what another thread captures is given back first."""
    arrays = [t._payload for t in tensors]
    if any(getattr(getattr(a, "interp", None), "adopts", False) for a in arrays):
        with exclusive_capture():
            arrays = [t._payload for t in tensors]
    return arrays


class Program:
    """One captured signature of a function; its graphs are compiled when first needed."""

    def __init__(self, joint: Joint, parts: CompiledParts, tensors: list[Tensor]):
        self.joint, self.parts = joint, parts
        self.differentiable, self.grad_of = joint.differentiable, joint.backward.grad_of
        self._made: dict = {}  # parts that have been needed
        # (shape, dtype) of each graph output; None: the data decide
        self.output_facts = facts = parts.facts()
        self.loose = any(shape is None for shape, _ in facts)
        self.count = joint.forward_count
        self.shared: dict = {}  # programs of the same signature for inputs that share memory
        self.inlined = parts.hooks  # hooks of saved tensors that are part of the graphs
        self.waiting = 0  # fused calls since the last backward
        self.compared = 0  # calls that were compared with the function (`check.py`)
        self.shortened = 0  # how often a short way was made
        self.symbolic = None  # the program with symbolic sizes that this one follows from
        self.values: dict[str, int] = {}  # those of its symbols
        self.marks: list[tuple[int, frozenset]] = []  # user's output -> dims that were symbols
        self.layout = parts.backend.layout  # how the graphs differ from the joint graph, if so
        self.make = make if self.layout is None else _handle  # what makes a result a tensor
        self.enter = self.run_on  # how calls come in by the short way
        self.adopted_keys = [
            key_of(t) for t in tensors[len(tensors) - len(joint.inputs.adopted):]]
        self.metas = tuple([
            (tensors[i]._payload.shape, tensors[i]._payload.dtype) if i >= 0 else facts[~i]
            for i in self.grad_of])
        self._look_at_effects()
        self._look_at_graph()
        self.fuse = self._fuses() and parts.fuses()

    @property
    def graphs(self) -> Callable:
        """Gives the forward and the backward graph, None where there is no backward."""
        return self.parts.halves

    @property
    def cut(self) -> Callable | None:
        """Gives what the partitioner made of the joint graph; None if there is no backward."""
        return self.parts.cut if self.differentiable else None

    def _fuses(self) -> bool:
        """Is it a loss whose gradients scale with the seed?"""
        joint, back = self.joint, self.joint.backward
        shape, dtype = self.output_facts[0] if self.count else ((0,), "f4")
        return (
            self.differentiable and self.count == 1 and back.tangent_of == [0]
            and shape == () and np.dtype(dtype).kind == "f"  # a complex seed would not just scale
            and all(e.fuses for e in joint.effects)
            and not (back.late or back.wrapped or back.ruled)  # those need not scale
        )

    def _look_at_effects(self) -> None:
        """What a call does besides computing."""
        joint = self.joint
        outputs = joint.outputs
        self.written = [w.input for w in joint.mutated]
        self.inner = [~i for i in self.grad_of if i < 0]  # leaves made inside, outputs
        self.simple = not joint.effects and len(outputs) == 1 and joint.out_spec.is_leaf() and (
            isinstance(outputs[0], ReturnValue) and outputs[0].plain)
        self.effects = joint.effects
        if self.differentiable:
            self.effects = in_order([*joint.effects, Record(self)])
        inputs, guards = joint.inputs, joint.guards
        self.extended = bool(inputs.adopted or inputs.roots or inputs.unique is not None)
        # does it depend on nothing but what a short way compares (`fast_guards.py`)?
        self.comparable = not (
            guards.inputs or guards.decisions or joint.of(ReadNumber) or inputs.roots
            or inputs.unique is not None or self.written
            or self.parts.inlines or any(type(e).fits is not Effect.fits for e in joint.effects))

    def _look_at_graph(self) -> None:
        """What it depends on in the graph: draws, constants, inputs that are written and read."""
        joint = self.joint
        nodes = list(joint.module.graph.nodes)
        results = joint.module.graph.output_node().args[0][: self.count]
        self.copied = _not_fresh(results)
        if self.layout is not None and not self.differentiable:  # they share memory as shown there
            self.copied = [k for k, n in enumerate(results) if viewed(n).op == "get_attr"]
        elif self.layout is not None:
            self.copied = [k for k in self.copied if k not in self.layout.pieces]
        self.random = _draws(nodes)
        inputs = [n for n in nodes if n.op == "placeholder" and "tangents" not in n.name]
        self.numbers = {n: i for i, n in enumerate(inputs)}
        # inputs that the function writes and reads: their old values may be wanted once more
        self.kept = [i for i in self.written if inputs[i].users] if self.differentiable else []
        self.saved_copies: list[int] = []  # saved values that are memory of inputs to be written
        self.checked: list[int] | None = None  # inputs that the backward reads; None: not yet known
        self.checked_outputs: list[int] = []

    def __repr__(self) -> str:
        parts = ", ".join(self._made) or "nothing"
        inputs = len(self.numbers)
        return (f"<program of {inputs} input{'' if inputs == 1 else 's'} and {self.count} "
                f"result{'' if self.count == 1 else 's'}, compiled: {parts}>")

    def look_at_saved(self) -> None:
        """Find out what the backward reads that is memory of inputs or outputs."""
        joint, count = self.joint, self.count
        forward = self.graphs()[0]
        if self.layout is None:
            results = forward.graph.output_node().args[0]
            made, saved = results[:count], results[count:]
            inputs = {n.name: i for n, i in self.numbers.items()}
        else:
            made, saved, inputs = self.layout.saved(forward)
        private = {*self.copied, *[m.output for m in joint.mutated]}  # nobody else has them
        outputs = {memory(n): k for k, n in enumerate(made) if k not in private}
        facts = {n.name: n for n in self.graphs()[1].graph.nodes if n.op == "placeholder"}
        checked, checked_outputs = set(), set()
        for k, node in enumerate(saved):
            root = memory(node) if hasattr(node, "graph") else None
            if root is None:
                continue
            if root.op == "placeholder":
                i = inputs.get(root.name)  # None: a number
                if i is None:
                    continue
                if i in self.written:
                    self.saved_copies.append(count + k)
                elif _only_facts(facts.get(node.name)):
                    continue
                elif all(i != number for number, _ in joint.backward.late):
                    checked.add(i)
            elif root in outputs:
                checked_outputs.add(outputs[root])
        self.checked, self.checked_outputs = sorted(checked), sorted(checked_outputs)

    def part(self, name: str):
        """A compiled graph of the program, made on first use."""
        found = self._made.get(name)
        if found is None:
            found = self._made[name] = self.parts.makers[name]()
        return found

    def part_without(self, name: str, grads: list):
        """A part that takes gradients of outputs, where some have not got any."""
        absent = tuple([i for i, g in enumerate(grads) if g is None])
        if not absent or self.joint.backward.late:
            return self.part(name)
        found = self._made.get((name, absent))
        if found is None:
            make = self.parts.makers["backward without" if name == "backward" else name]
            found = self._made[name, absent] = make(absent)
        return found

    def report(self):
        """What the partitioner decided, as far as it tells."""
        cut = self.cut()
        found = getattr(cut, "report", None)
        if self.fuse and getattr(cut, "fused", None) is not None:
            found = cut.fused
        if found is None:
            from ..cut.report import of_halves

            found = of_halves(*tuple(cut)[:2], self.count)
        return found if self.symbolic is None else self.symbolic.report(found, self.values)

    @property
    def bw_donated_idxs(self) -> list[int]:
        """Which of the saved values nobody but the backward has: it may overwrite them."""
        count = self.count if self.layout is None else self.layout.count
        return give_away(*self.graphs(), count)

    def fits(self, arguments: list[Tensor]) -> bool:
        """Is what the function found outside still what it was?"""
        return self.finds_same(arguments) and self._decides_same(arguments)

    def finds_same(self, arguments: list[Tensor]) -> bool:
        """The same for tensors that it found, not for what it computes from the arguments."""
        joint, inputs = self.joint, self.joint.inputs
        if self.differentiable and (fast["ACTIVE"] or self.inlined) and (
                self.inlined != graph_hooks()):
            return False
        for guard in joint.guards.python:
            if not guard():
                return False
        for t, key in zip(inputs.found(arguments)[len(inputs.roots):], self.adopted_keys):
            if key_of(t) != key:
                return False
        for guard in joint.guards.inputs:
            if not guard.fits(joint, arguments):
                return False
        return all(e.fits(joint, arguments) for e in joint.effects)

    def _decides_same(self, arguments: list[Tensor]) -> bool:
        """Would the conditions of the function be told what they were told when captured?"""
        joint = self.joint
        if joint.guards.decisions is None:
            return True
        for number in joint.of(ReadNumber):
            number.renew()
        arrays = arrays_of(joint.inputs.of(arguments))
        draws = _draws(joint.guards.decisions.graph.nodes)
        with same_random_numbers(generator_state() if draws else None):
            found = self.part("decisions")(*arrays)
        return joint.guards.answers == [contents(a) for a in found]

    def run(self, arguments: list[Tensor]):
        """Call with the user's tensors (adopted ones are added)."""
        tensors = self.joint.inputs.of(arguments) if self.extended else arguments
        try:
            return self.run_on(tensors, arrays_of(tensors), arguments)
        except Exception:
            raise
        except BaseException:  # an interrupt must not hide what was written before it
            mark_written(*[tensors[i] for i in self.written])
            raise

    def run_on(self, tensors: list[Tensor], arrays: list, arguments: list | tuple = ()):
        """Call with all tensors that the graphs take."""
        call = Call(self, tensors, arrays, arguments)
        for effect in self.effects:
            effect.prepare(call)
        self._compute_into(call)
        for effect in self.effects:
            effect.replay(call)
        if not self.simple:
            return tree_unflatten(call.answers(), self.joint.out_spec)
        if not self.differentiable or self.checked is not None or call.fused:
            self._choose()
        if self.marks:
            mark_propagated(call.made[0], self.marks[0][1])
        return call.made[0]

    def _compute_into(self, call: Call) -> None:
        """The native call, and its results as tensors."""
        call.packs = fast["ACTIVE"] and self.differentiable and not self.inlined and (
            state.observers.saved_hooks)
        fused = self.fuse and not call.packs
        if fused:
            if self.waiting >= WASTED:
                self.part("forward")  # before other threads look for it
                fused = self.fuse = False
            else:
                self.waiting += 1
        call.fused = fused
        try:
            results = self.part("fused" if fused else "forward")(*call.arrays)
        except errors.PullbackError as error:  # an index out of range, for instance
            errors.located(error)
            raise
        handle = self.make
        call.results, call.made = results, [handle(r) for r in results[:self.count]]
        for k in self.copied:
            call.made[k]._payload = call.made[k]._payload.copy("K")
        if state.inference:
            mark_inference(call.made)

    def _choose(self) -> None:
        """From the second call on: how to run a program that does nothing but compute."""
        back = self.joint.backward
        if (
            self.random or self.kept or self.copied or self.inner
            or self.saved_copies
            or back.wrapped or self.count != 1
        ):
            return
        if not self.differentiable:
            self.enter = self._compute
        elif back.tangent_of == [0]:
            self.enter = self._record

    def _compute(self, tensors, arrays):
        try:
            out = self.make(self._made["forward"](*arrays)[0])
        except errors.PullbackError as error:
            errors.located(error)
            raise
        if self.marks:
            mark_propagated(out, self.marks[0][1])
        return out

    def _record(self, tensors, arrays):
        fused = self.fuse
        if fused:
            if self.waiting >= WASTED:
                self.enter = self.run_on
                return self.run_on(tensors, arrays)
            self.waiting += 1
        try:
            results = self._made["fused" if fused else "forward"](*arrays)
        except errors.PullbackError as error:
            errors.located(error)
            raise
        node = _new(CompiledNode)
        out = self.make(results[0])
        out._edge = node
        node.program, node.count, node.fused = self, 1, fused
        node.random = None
        node.edges = tuple([tensors[i]._edge for i in self.grad_of])
        node.metas = self.metas
        node.saved, node.tensors, node.arrays = results[1:], tensors, arrays
        node.cells = (cell_of(out),) if self.checked_outputs and not fused else ()
        node.seq, node.stamp, node.hooks, node.level = sequence(), fast["CLOCK"], None, 0
        node.where = users_place(2)
        if self.marks:
            mark_propagated(out, self.marks[0][1])
        return out

    def node(self, tensors, arrays, saved, fused: bool) -> CompiledNode:
        """A node of the tape for a call."""
        node = _new(CompiledNode)
        node.program, node.count, node.fused = self, len(self.joint.backward.tangent_of), fused
        node.edges = tuple([tensors[i]._edge for i in self.grad_of if i >= 0])
        node.metas = self.metas
        node.saved, node.tensors, node.arrays, node.cells = saved, tensors, arrays, ()
        node.seq, node.stamp, node.hooks, node.level = sequence(), fast["CLOCK"], None, 0
        node.where = users_place(3)
        return node

    def answers(self, call: Call) -> list:
        """The user's results, then what is assigned to places in objects."""
        flat = [o.make(call) if isinstance(o, Output) else o for o in self.joint.outputs]
        for k, dims in self.marks:
            mark_propagated(flat[k], dims)
        return flat

    def check(self, node: CompiledNode, recomputes: bool = False) -> None:
        """Refuse a backward whose saved values were overwritten, or one that `recomputes` them from
        inputs which were.
        """
        if self.checked is None:
            self.look_at_saved()
        stamp = node.stamp
        for i in self.checked if not recomputes else self.read:
            cell = node.tensors[i]._cell
            if cell is not None and cell.stamps and cell.stamps[-1] > stamp:
                raise modified(node, f"input {i}", node.tensors[i])
        for k, cell in zip(self.checked_outputs, node.cells):
            if cell.stamps and cell.stamps[-1] > stamp:
                value = make(self._zeros(node, k))
                value._cell = cell
                raise modified(node, f"output {k}", value)

    @functools.cached_property
    def read(self) -> list[int]:
        """The inputs whose values the gradients depend on, but for those that are written: their
        old values are kept."""
        todo = [n for n in self.joint.module.graph.output_node().args[0][self.count:]
                if n is not None]
        seen = set(todo)
        while todo:
            node = todo.pop()
            if getattr(node.target, "kind", None) != "creation":  # it wants a shape only
                fresh = [n for n in node.all_input_nodes if n not in seen]
                seen.update(fresh)
                todo += fresh
        return [i for n, i in self.numbers.items() if n in seen and i not in self.written]

    def scaled(self, node: CompiledNode, grads: list) -> list:
        """The gradients that the forward call computed for the seed 1, for another seed."""
        self.waiting = 0
        gradients, scale = node.saved, grads[0]._payload
        if scale == 1:
            return [None if g is None else make(g) for g in gradients]
        if not self.narrow:
            with np.errstate(all="ignore"):
                found = [None if g is None else np.asarray(np.multiply(g, scale.astype(g.dtype)))
                         for g in gradients]
                # a sum is a number only if all of its summands are, and takes no memory
                total = sum([0.0 if g is None else np.add.reduce(g, axis=None) for g in found])
            if np.isfinite(total):
                return [None if g is None else make(g) for g in found]
        return self._for_seed(node, grads)

    @functools.cached_property
    def narrow(self) -> bool:
        """Are there float16 values, which vanish or overflow for one seed and not for another?"""
        values = [n.meta.get("val") for n in self.joint.module.graph.nodes]
        return any(isinstance(v, Tensor) and v.dtype is float16 for v in values)

    def _for_seed(self, node: CompiledNode, grads: list) -> list:
        """The same where they do not just scale: 0 times infinity is no number, but a gradient
        that a mask makes 0 stays 0.  Both graphs run, from now on."""
        self.check(node, recomputes=True)
        self.waiting = WASTED
        with same_random_numbers(node.random):
            node.saved = self.part("forward")(*node.arrays)[self.count:]
        node.fused = False
        return self.backward(node, grads)

    def backward(self, node: CompiledNode, grads: list) -> list:
        """Gradients of the inputs by the compiled backward graph."""
        saved = node.saved
        if saved.__class__ is PackedValues:
            saved = saved.open()
        else:
            self.check(node)
        given, back = grads, self.joint.backward
        if fast["DISPATCHES"]:
            grads = plain_tangents(grads)
        tangents = [
            g._payload if g is not None else self._zeros(node, k)
            for g, k in zip(grads, back.tangent_of)
        ]
        late = back.late
        if self.symbolic is not None:  # a backward takes sizes first
            saved = sorted(saved, key=lambda s: isinstance(s, np.ndarray))
        whole = self.layout is not None
        part = self.part("backward") if whole else self.part_without("backward", grads)
        args = [*saved, *tangents]
        spare = (list(args), list(grads)) if whole and not late and None in grads else None
        del tangents, saved
        last = state.task is not None and not state.task.keep  # will nobody come here again?
        quiet = node.hooks is None and not late and engine.WATCH is None
        if quiet and (last or self.layout is not None):
            given.clear()  # nobody else is to hold gradients while the backward runs
            grads.clear()
        if self.layout is not None:
            out = part(args)
            if spare is not None and not _finite(out):  # zeros for what is absent met infinities
                out = self.part_without("backward", spare[1])(spare[0])
        elif last and quiet and hasattr(part, "consume"):
            node.release()
            out = part.consume(args)
        else:
            out = part(*args)
        if late:
            self._write_late(node, grads, out)
            out = out[: len(node.edges)]
        found = [None if o is None else make(o) for o in out]
        return gathered(back.wrapped, found) if back.wrapped else found

    def _zeros(self, node: CompiledNode, k: int) -> np.ndarray:
        """An array like a graph output of the call that a node belongs to."""
        shape, dtype = self.output_facts[k]
        return np.zeros(node.shapes[k] if shape is None else shape, dtype)

    def _write_late(self, node: CompiledNode, grads: list, out) -> None:
        """Do what the function's own backward does to inputs and gradients."""
        for number, k in self.joint.backward.late:
            t = grads[~number] if number < 0 else node.tensors[number]
            if t is not None:
                np.copyto(t._payload, out[k])
                mark_written(t)

    def _relaid(self, tangents: list[Tensor]) -> list[Tensor]:
        """Tangents as the joint graph expects them to lie in memory: it may view them."""
        from .layouts import relaid, strides_of

        names = [n for n in self.joint.module.graph.nodes
                 if n.op == "placeholder" and n.name.startswith("tangents_")]
        return [relaid(t, strides_of(n)) for t, n in zip(tangents, names, strict=True)]

    def differentiable_backward(self, node: CompiledNode, grads: list) -> list:
        """The same with history: run the joint graph on handles."""
        self.waiting = 0
        self.check(node, recomputes=True)
        back, recorded = self.joint.backward, self.joint.backward.recorded
        if any(number >= 0 and node.tensors[number]._edge is not None for number, _ in back.late):
            raise errors.NotDifferentiable(errors.text(
                "aot_autograd does not support input mutations with requires_grad in backward for "
                f"create_graph=True ({errors.describe_place(node.where)})",
                cure="let the custom backward write into a clone()"))
        if recorded.refused is not None:
            what, where, cure = recorded.refused
            raise errors.NotDifferentiable(errors.text(
                f"gradients of gradients do not go through a compiled function that {what} "
                f"({errors.describe_place(where)})", cure=cure))
        if self.random and getattr(self.layout, "states", 0):
            raise errors.NotDifferentiable(errors.text(
                "draws of a compiled function are functions of a seed, and gradients of gradients "
                f"would have to make them once more ({errors.describe_place(node.where)})",
                "aot.config.functionalize_rng_ops is True",
                "set it to False, or differentiate twice without compiling"))
        if self.inner:
            raise errors.NotDifferentiable(errors.text(
                "a compiled function returned a leaf that it made itself, and gradients of "
                f"gradients cannot reach it ({errors.describe_place(node.where)})",
                cure="make the leaf outside, and pass it to the function"))
        inputs = [make(a) for a in node.arrays]
        for i, edge, meta in zip(back.grad_of, node.edges, node.metas):
            if edge is not None:
                inputs[i]._edge = Identity(edge, meta)
        tangents = [make(self._zeros(node, k)) if g is None else g
                    for g, k in zip(grads, back.tangent_of)]
        with uncast(), same_random_numbers(node.random):
            if recorded.forward is not None:
                with enable_grad():  # a capture asks for gradients without recording them
                    made = self.part("eager_forward")(*inputs, *tangents)
                return gathered(back.wrapped, pulled_back(made, inputs, back, grads))
            tangents = self._relaid(tangents)
            out = self.part_without("eager", grads)(*inputs, *tangents)[self.count:]
        if back.late:
            self._write_late(node, grads, [None if o is None else o._payload for o in out])
            out = out[: len(node.edges)]
        return gathered(back.wrapped, out) if back.wrapped else list(out)


def _handle(value: Any) -> Tensor:
    """A result as the run time returns it; views that a graph returned stay views."""
    return value if isinstance(value, Tensor) else make(value)


def _finite(arrays: tuple) -> bool:
    """Are there only numbers?"""
    return all(a is None or a.dtype.kind not in "fc" or np.isfinite(a).all() for a in arrays)


def _not_fresh(results: tuple) -> list[int]:
    """Graph outputs that must be copied: constants of the graph, and second uses of one value."""
    seen, found = set(), []
    for k, node in enumerate(results):
        root = owner(node)
        if root.op == "get_attr" or root in seen:
            found.append(k)
        if root.op != "placeholder":
            seen.add(root)
    return found


def _only_facts(saved) -> bool:
    """Does a backward want nothing of a saved value but its shape and dtype?"""
    return saved is not None and all(
        getattr(user.target, "kind", None) == "creation"
        or cost_of(user.target) == "view" and _only_facts(user) for user in saved.users)


def _draws(nodes) -> bool:
    return any(cost_of(n.target) == "random" for n in nodes if n.op == "call_function")
