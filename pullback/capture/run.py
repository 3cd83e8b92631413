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
import sys
from copy import copy

import numpy as np

from .. import errors
from ..array.dtype import float16
from ..array.size import Size
from ..autograd import engine
from ..autograd.engine import accumulate, threads_running
from ..autograd.function import Opaque
from ..autograd.grad_mode import enable_grad, inference_mode, set_grad_enabled
from ..core.handle import INFERENCE, Tensor, cell_of, make, meta_of, one_more
from ..core.state import fast, sequence, state, uncast
from ..core.surface import assign, bump, inplace_view, mark_inference, mark_written, replay
from ..core.tape import Accumulate, Node, freed, modified, port
from ..cut.split import give_away
from ..graph.node import map_aggregate
from ..graph.traits import cost_of, owner
from ..memory.storages import owner_of, refuse_held
from ..memory.views import may_write
from ..python_state.side_effects import assign as assign_results
from ..pytree import tree_unflatten
from .decisions import contents
from .forward_again import pulled_back
from .hooks import register
from .joint import Identity, Joint
from .memory import begins
from .mutations import memory
from .results import Output
from .saved_tensor_hooks import PackedValues, graph_hooks, pack
from .subclasses import gathered, plain_tangents

_new = object.__new__
WASTED = 3  # fused calls without a backward after which the program splits


class CompiledNode(Node):
    """History of a compiled function's outputs."""

    __slots__ = ("arrays", "cells", "count", "fused", "program", "random", "shapes", "tensors")

    class _Rule:
        name, saves = "CompiledFunctionBackward", ()

    rule = _Rule
    hides_hooks = True

    @property
    def outputs(self) -> int:
        return self.count

    def apply(self, grads, needs):
        if self.saved is None:
            raise freed(self)
        program = self.program
        if state.record[0]:
            return program.differentiable_backward(self, grads)
        if self.fused:
            return program.scaled(self, grads)
        return program.backward(self, grads)

    def release(self) -> None:
        self.saved = self.tensors = self.arrays = self.cells = None

    @property
    def saved_tensors(self) -> tuple[Tensor, ...]:
        """What the backward will read, with marks where sizes are symbols."""
        if self.saved is None:
            raise freed(self)
        values = self.saved.open() if self.saved.__class__ is PackedValues else self.saved
        made = [make(v) if isinstance(v, np.ndarray) else None for v in values]
        if self.program.symbolic is not None and not self.fused:
            for t, dims in zip(made, self.program.symbolic.saved_marks()):
                if t is not None and dims:
                    mark_propagated(t, dims)
        return tuple([t for t in made if t is not None])

    def at_once(self, out: Tensor, keep) -> bool:
        """The backward of a loss whose gradients are there, into leaves: no sweep is needed."""
        if (
            not self.fused
            or self.saved is None
            or self.hooks is not None
            or out._meta is not None
            or out._link is not None
            or fast["ACTIVE"]
            or fast["LEAFHOOKS"]
            or engine.WATCH is not None
            or threads_running()
        ):
            return False
        edges = self.edges
        for edge in edges:
            if edge.__class__ is not Accumulate or edge.hooks is not None:
                return False
            leaf = edge.leaf()
            if leaf is None or leaf._meta is not None and leaf._meta.post_hooks:
                return False
        self.program.waiting = 0
        gradients = [make(g) if g is not None else None for g in reversed(self.saved)]
        if not keep:
            self.release()
        for edge in edges:
            accumulate(edge, gradients, False, False)
        return True


CompiledNode.__name__ = CompiledNode.__qualname__ = "CompiledFunctionBackward"


def mark_propagated(t: Tensor, dims: frozenset) -> None:
    """Say of a result that sizes of it were symbols, for functions that get it next."""
    known = t.__dict__.get(_PROPAGATED)
    t.__dict__[_PROPAGATED] = set(dims) if known is None else known | dims


_PROPAGATED = "_dynamo_propagated_dynamic_indices"


class Program:
    """One captured signature of a function; its graphs are compiled when first needed."""

    def __init__(self, joint: Joint, makers: dict, facts: list, fuse: bool):
        self.joint = joint
        self._makers = (
            makers  # "forward", "backward", "fused", "eager" -> function that makes the callable
        )
        self._made: dict = {}
        self.output_facts = facts  # (shape, dtype) of each graph output; None: the data decide
        self.loose = any(shape is None for shape, _ in facts)
        self.written = [m.input for m in joint.mutated]
        self.shared: dict = {}  # programs of the same signature for inputs that share memory
        self.fuse = (
            fuse
            and joint.differentiable
            and joint.forward_count == 1
            and not (joint.mutated or joint.assigned or joint.late or joint.began or joint.sets)
            and not (joint.grown or joint.shrunk)
            and not (joint.wrapped or joint.ruled)  # those need not scale with the seed
            and (joint.tangent_of == [0] and facts[0][0] == () and "fused" in makers)
            and np.dtype(facts[0][1]).kind == "f"  # a complex seed would not just scale them
        )
        self.inlined: tuple | None = None  # hooks of saved tensors that are part of the graphs
        self.waiting = 0  # fused calls since the last backward
        self.seen = 0  # calls that were compared with the function (`check.py`)
        self.symbolic = None  # the program with symbolic sizes that this one follows from
        self.values: dict[str, int] = {}  # those of its symbols
        self.marks: list[tuple[int, frozenset]] = []  # user's output -> dims that were symbols
        self.count = joint.forward_count
        outputs = joint.outputs
        self.simple = (
            len(outputs) == 1
            and type(outputs[0]) is Output
            and outputs[0].kind == "graph"
            and not (outputs[0].leaf or outputs[0].opaque or outputs[0].piece or outputs[0].shares)
            and not (joint.mutated or joint.assigned or joint.swept or joint.reviewed or joint.sets)
            and not (joint.grown or joint.shrunk or joint.ended or joint.hooked or joint.retained)
            and not (joint.bumped or joint.held)
            and not outputs[0].retains
            and outputs[0].cls is Tensor
            and joint.out_spec.is_leaf()
        )
        self.recorded = [m.input for m in joint.mutated
                         if m.tracked and m.output in (*joint.tangent_of, *joint.swept)]
        self.early = [o for o in outputs if type(o) is Output and o.early]
        self.inner = [~i for i in joint.grad_of if i < 0]  # leaves made inside, outputs
        self.one_tangent = joint.tangent_of[0] if len(joint.tangent_of) == 1 else None
        self.extended = bool(joint.adopted or joint.roots or joint.unique is not None)
        # does it depend on nothing but what a short way compares (`fast_guards.py`)?
        self.comparable = not (
            joint.reads or joint.decisions or joint.gradients or joint.assigned or joint.numbers
            or joint.roots or joint.unique is not None or joint.mutated or joint.heard
            or joint.beginning)
        self.shortened = 0  # how often a short way was made
        nodes = list(joint.module.graph.nodes)
        results = joint.module.graph.output_node().args[0][: self.count]
        self.copied = _not_fresh(results)
        self.random = _draws(nodes)
        self.decides_by_draws = joint.decisions is not None and _draws(joint.decisions.graph.nodes)
        inputs = [n for n in nodes if n.op == "placeholder" and "tangents" not in n.name]
        self.numbers = {n: i for i, n in enumerate(inputs)}
        # inputs that the function writes and reads: their old values may be wanted once more
        self.kept = [i for i in self.written if inputs[i].users] if joint.differentiable else []
        self.read: list[int] | None = None  # inputs that gradients depend on; None: not yet known
        self.saved_copies: list[int] = []  # saved values that are memory of inputs to be written
        self.checked: list[int] | None = None  # inputs that the backward reads; None: not yet known
        self.checked_outputs: list[int] = []
        self.layout = None  # how the graphs differ from the joint graph, see `convention.py`
        self.make = make  # what makes a result a tensor
        self.enter = self.run_on  # how calls come in by the short way

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
                elif not joint.late or all(i != number for number, _ in joint.late):
                    checked.add(i)
            elif root in outputs:
                checked_outputs.add(outputs[root])
        self.checked, self.checked_outputs = sorted(checked), sorted(checked_outputs)

    def part(self, name: str):
        """A compiled graph of the program, made on first use."""
        found = self._made.get(name)
        if found is None:
            found = self._made[name] = self._makers[name]()
        return found

    def part_without(self, name: str, grads: list):
        """A part that takes gradients of outputs, where some have not got any."""
        absent = tuple([i for i, g in enumerate(grads) if g is None])
        if not absent or self.joint.late:
            return self.part(name)
        found = self._made.get((name, absent))
        if found is None:
            make = self._makers["backward without" if name == "backward" else name]
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
        return self.finds_alike(arguments) and self._decides_alike(arguments)

    def finds_alike(self, arguments: list[Tensor]) -> bool:
        """The same for tensors that it found, not for what it computes from the arguments."""
        joint, key_of = self.joint, self.key_of
        if joint.differentiable and (fast["ACTIVE"] or self.inlined) and (
                self.inlined != graph_hooks()):
            return False
        for gradient in joint.gradients:
            if not gradient.fits(arguments):
                return False
        if joint.heard is not None and not joint.heard.fits(joint, arguments):
            return False
        if joint.outside is not None and not joint.outside():
            return False
        if joint.beginning:
            tensors = joint.inputs(arguments)
            if not all(begins(tensors[i]._data) for i in joint.beginning):
                return False
        for guard in joint.guards:
            if not guard():
                return False
        for t, key in zip(joint.found(arguments)[len(joint.roots):], self.adopted_keys):
            if key_of(t) != key:
                return False
        return all(read.same for read in joint.reads)

    def _decides_alike(self, arguments: list[Tensor]) -> bool:
        """Would the conditions of the function be told what they were told when captured?"""
        joint = self.joint
        if joint.decisions is None:
            return True
        for array, read in joint.numbers:
            array[()] = read()
        arrays = [t._data for t in joint.inputs(arguments)]
        with same_random_numbers(generator_state() if self.decides_by_draws else None):
            found = self.part("decisions")(*arrays)
        return joint.answers == [contents(a) for a in found]

    def run(self, arguments: list[Tensor]):
        """Call with the user's tensors (adopted ones are added)."""
        joint, tensors = self.joint, arguments
        if self.extended:
            tensors = joint.inputs(arguments)
            for array, read in joint.numbers:
                array[()] = read()
        try:
            return self.run_on(tensors, [t._data for t in tensors], arguments)
        except Exception:
            raise
        except BaseException:  # an interrupt must not hide what was written before it
            mark_written(*[tensors[i] for i in self.written])
            raise

    def run_on(self, tensors: list[Tensor], arrays: list, arguments: list | tuple = ()):
        """Call with all tensors that the graphs take."""
        joint = self.joint
        if self.recorded:  # views of leaves must not be written, nor those that others share
            with set_grad_enabled(True):
                for i in self.recorded:
                    may_write(tensors[i], True, 0)
        for i in joint.enlarged:
            refuse_held(owner_of(tensors[i]))
        if joint.grown:
            for i, size in joint.grown:
                tensors[i].untyped_storage().resize_(size)
            arrays = [t._data for t in tensors]
        packs = fast["ACTIVE"] and state.packing and joint.differentiable and not self.inlined
        fused = self.fuse and not packs
        if fused:
            if self.waiting >= WASTED:
                fused = self.fuse = False
            else:
                self.waiting += 1
        random = generator_state() if self.random and joint.differentiable else None
        if self.kept:
            arrays = list(arrays)
            old = [(i, arrays[i].copy()) for i in self.kept]
        try:
            results = self.part("fused" if fused else "forward")(*arrays)
        except errors.PullbackError as error:  # an index out of range, for instance
            errors.located(error)
            raise
        for generator, after in joint.streams:
            generator.set_state(after)
        count = self.count
        handle = self.make
        made = [handle(r) for r in results[:count]]
        if self.copied:
            for k in self.copied:
                made[k]._data = made[k]._data.copy("K")
        for i in joint.began:
            tensors[i].requires_grad_()
        register(joint.hooked, tensors)
        for k in self.inner:
            made[k].requires_grad_()
        if joint.differentiable:
            if self.checked is None and not fused:
                self.look_at_saved()
            saved = results[count:]
            if self.kept:
                for i, array in old:
                    arrays[i] = array
            if self.saved_copies and not fused:
                saved = list(saved)
                for k in self.saved_copies:
                    saved[k - count] = saved[k - count].copy()
            if packs:
                saved = pack(self, saved, tensors)
            node = self._node(tensors, arrays, saved, fused)
            node.random = random
            if self.loose:
                node.shapes = [r.shape for r in results[:count]]
            if self.inner:
                node.edges += tuple([made[k]._edge for k in self.inner])
            node.cells = [cell_of(made[k]) for k in self.checked_outputs]
            if self.one_tangent is not None:
                made[self.one_tangent]._edge = node
            else:
                for number, k in enumerate(joint.tangent_of):
                    made[k]._edge = port(node, number)
        if state.inference:
            mark_inference(made)
        if self.simple:
            if self.checked is not None or fused:
                self._choose()
            if self.marks:
                mark_propagated(made[0], self.marks[0][1])
            return made[0]
        done: dict = {}
        for o in self.early:
            if o.tracked or not joint.ended:
                _made_again(o, tensors, made, done)
        for i, size, writes in joint.shrunk:
            tensors[i].untyped_storage().resize_(size)
            if writes:
                mark_written(tensors[i])
                cell_of(tensors[i]).version += writes - 1
        if joint.ended:  # views that were made before have a history, the others none
            for i in joint.ended:
                tensors[i].detach_()
            for o in self.early:
                _made_again(o, tensors, made, done)
        if joint.mutated or joint.reviewed:
            write_all(joint, tensors, made)
            if joint.differentiable:
                node.stamp = fast["CLOCK"]
        for i, o, writes in joint.sets:
            old = tensors[i]._edge
            with set_grad_enabled(False):
                tensors[i].set_(_made_again(o, tensors, made, done))
            if joint.differentiable and (new := tensors[i]._edge) is not old:
                node.edges = tuple([new if edge is old else edge for edge in node.edges])
            if writes:
                cell_of(tensors[i]).version += writes
        if joint.sets and joint.differentiable:  # gradients arrive at leaves with the new memory
            taken = {i for i, _, _ in joint.sets}
            node.edges = tuple([
                tensors[i]._edge if i in taken else e for i, e in zip(joint.grad_of, node.edges)])
        for gradient, k, given in joint.assigned:
            _leave(gradient, arguments, given if k is None else made[k])
        if joint.swept:
            used = self._node(tensors, arrays, None, False)
            used.count = 1
            for k in joint.swept:
                made[k]._edge = used
        for i, count in joint.bumped:
            mark_written(tensors[i])
            if tensors[i]._cell is not INFERENCE:
                tensors[i]._cell.version += count - 1
        if joint.bumped and joint.differentiable:
            node.stamp = fast["CLOCK"]
        for i, k in joint.owned:
            _has_own(tensors[i], made[k])
        if joint.retained:
            with set_grad_enabled(False):  # views that were left behind may be told, not used
                for i in joint.retained:
                    tensors[i].retain_grad()
        for o in self.early:  # what changed its shape since is not written by that
            link = done[o]._link
            if link is not None and (link.multi or link.hidden) and not o.stale:
                link.seen = done[o]._cell.version
        return self._answer(tensors, made, done)

    def _choose(self) -> None:
        """From the second call on: how to run a program that does nothing but compute."""
        joint = self.joint
        if (
            self.random or self.kept or self.copied or self.inner
            or self.saved_copies
            or joint.streams or joint.began or joint.wrapped or self.count != 1
        ):
            return
        if not joint.differentiable:
            self.enter = self._compute
        elif joint.tangent_of == [0]:
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
        node.edges = tuple([tensors[i]._edge for i in self.joint.grad_of])
        node.metas = self.metas
        node.saved, node.tensors, node.arrays = results[1:], tensors, arrays
        node.cells = (cell_of(out),) if self.checked_outputs and not fused else ()
        node.seq, node.stamp, node.hooks, node.level = sequence(), fast["CLOCK"], None, 0
        node.where = _users_place(2)
        if self.marks:
            mark_propagated(out, self.marks[0][1])
        return out

    def _node(self, tensors, arrays, saved, fused: bool) -> CompiledNode:
        joint = self.joint
        node = _new(CompiledNode)
        node.program, node.count, node.fused = self, len(joint.tangent_of), fused
        node.edges = tuple([tensors[i]._edge for i in joint.grad_of if i >= 0])
        node.metas = self.metas
        node.saved, node.tensors, node.arrays, node.cells = saved, tensors, arrays, ()
        node.seq, node.stamp, node.hooks, node.level = sequence(), fast["CLOCK"], None, 0
        node.where = _users_place(3)
        return node

    def _answer(self, tensors, made, done: dict):
        flat = [
            _made_again(o, tensors, made, done) if type(o) is Output else o
            for o in self.joint.outputs
        ]
        for k, dims in self.marks:
            mark_propagated(flat[k], dims)
        if self.joint.handles:
            again = {id(flat[k]): copy(flat[k]) for k in self.joint.handles}
            for k in self.joint.handles:
                flat[k] = again[id(flat[k])]
        if self.joint.held:
            assign_results(self.joint.held, flat)
        return tree_unflatten(flat, self.joint.out_spec)

    def check(self, node: CompiledNode, again: bool = False) -> None:
        """Refuse a backward whose saved values were overwritten; `again`: one that computes them
        from the inputs.
        """
        if self.checked is None:
            self.look_at_saved()
        stamp = node.stamp
        for i in self.checked if not again else self._read():
            cell = node.tensors[i]._cell
            if cell is not None and cell.stamps and cell.stamps[-1] > stamp:
                raise modified(node, f"input {i}", node.tensors[i])
        for k, cell in zip(self.checked_outputs, node.cells):
            if cell.stamps and cell.stamps[-1] > stamp:
                value = make(self._zeros(node, k))
                value._cell = cell
                raise modified(node, f"output {k}", value)

    def _read(self) -> list[int]:
        """The inputs whose values the gradients depend on, but for those that are written: their
        old values are kept."""
        if self.read is None:
            todo = [n for n in self.joint.module.graph.output_node().args[0][self.count:]
                    if n is not None]
            seen = set(todo)
            while todo:
                node = todo.pop()
                if getattr(node.target, "kind", None) != "creation":  # it wants a shape only
                    fresh = [n for n in node.all_input_nodes if n not in seen]
                    seen.update(fresh)
                    todo += fresh
            self.read = [i for n, i in self.numbers.items() if n in seen and i not in self.written]
        return self.read

    def scaled(self, node: CompiledNode, grads: list) -> list:
        """The gradients that the forward call computed for the seed 1, for another seed."""
        self.waiting = 0
        gradients, scale = node.saved, grads[0]._data
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
        self.check(node, again=True)
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
        given = grads
        if fast["DISPATCHES"]:
            grads = plain_tangents(grads)
        tangents = [
            g._data if g is not None else self._zeros(node, k)
            for g, k in zip(grads, self.joint.tangent_of)
        ]
        late = self.joint.late
        if self.symbolic is not None:  # a backward takes sizes first
            saved = sorted(saved, key=lambda s: isinstance(s, np.ndarray))
        whole = self.layout is not None
        part = self.part("backward") if whole else self.part_without("backward", grads)
        args = [*saved, *tangents]
        again = (list(args), list(grads)) if whole and not late and None in grads else None
        del tangents, saved
        last = state.task is not None and not state.task.keep  # will nobody come here again?
        quiet = node.hooks is None and not late and engine.WATCH is None
        if quiet and (last or self.layout is not None):
            given.clear()  # nobody else is to hold gradients while the backward runs
            grads.clear()
        if self.layout is not None:
            out = part(args)
            if again is not None and not _finite(out):  # zeros for what is absent met infinities
                out = self.part_without("backward", again[1])(again[0])
        elif last and quiet and hasattr(part, "consume"):
            node.release()
            out = part.consume(args)
        else:
            out = part(*args)
        if late:
            self._write_late(node, grads, out)
            out = out[: len(node.edges)]
        found = [None if o is None else make(o) for o in out]
        return gathered(self.joint.wrapped, found) if self.joint.wrapped else found

    def _zeros(self, node: CompiledNode, k: int) -> np.ndarray:
        """An array like a graph output of the call that a node belongs to."""
        shape, dtype = self.output_facts[k]
        return np.zeros(node.shapes[k] if shape is None else shape, dtype)

    def _write_late(self, node: CompiledNode, grads: list, out) -> None:
        """Do what the function's own backward does to inputs and gradients."""
        for number, k in self.joint.late:
            t = grads[~number] if number < 0 else node.tensors[number]
            if t is not None:
                np.copyto(t._data, out[k])
                mark_written(t)

    def _relaid(self, tangents: list[Tensor]) -> list[Tensor]:
        """Tangents as the joint graph expects them to lie in memory: it may view them."""
        from .convention import relaid, strides_of

        names = [n for n in self.joint.module.graph.nodes
                 if n.op == "placeholder" and n.name.startswith("tangents_")]
        return [relaid(t, strides_of(n)) for t, n in zip(tangents, names, strict=True)]

    def differentiable_backward(self, node: CompiledNode, grads: list) -> list:
        """The same with history: run the joint graph on handles."""
        self.waiting = 0
        self.check(node, again=True)
        joint = self.joint
        if any(number >= 0 and node.tensors[number]._edge is not None for number, _ in joint.late):
            raise errors.NotDifferentiable(errors.text(
                "aot_autograd does not support input mutations with requires_grad in backward for "
                f"create_graph=True ({errors.describe_place(node.where)})",
                cure="let the custom backward write into a clone()"))
        if joint.blurred is not None:
            raise errors.NotDifferentiable(errors.text(
                "gradients of gradients do not go through a compiled function that writes a "
                "tensor behind the tape's back: under no_grad(), or through detach() or .data "
                f"({errors.describe_place(joint.blurred)})",
                cure="write it outside of the compiled function, or do not compile it"))
        if joint.grafts_refused is not None:
            raise errors.NotDifferentiable(errors.text(
                "gradients of gradients do not go through a compiled function that registers a "
                f"hook on a grad_fn ({errors.describe_place(joint.grafts_refused)})",
                cure="register the hook on the tensor, or do not compile the function"))
        if self.inner:
            raise errors.NotDifferentiable(errors.text(
                "a compiled function returned a leaf that it made itself, and gradients of "
                f"gradients cannot reach it ({errors.describe_place(node.where)})",
                cure="make the leaf outside, and pass it to the function"))
        inputs = [make(a) for a in node.arrays]
        for i, edge, meta in zip(joint.grad_of, node.edges, node.metas):
            if edge is not None:
                inputs[i]._edge = Identity(edge, meta)
        tangents = [make(self._zeros(node, k)) if g is None else g
                    for g, k in zip(grads, joint.tangent_of)]
        with uncast(), same_random_numbers(node.random):
            if joint.again is not None:
                with enable_grad():  # a capture asks for gradients without recording them
                    made = self.part("again")(*inputs, *tangents)
                return gathered(joint.wrapped, pulled_back(made, inputs, joint, grads))
            tangents = self._relaid(tangents)
            out = self.part_without("eager", grads)(*inputs, *tangents)[self.count:]
        if joint.late:
            self._write_late(node, grads, [None if o is None else o._data for o in out])
            out = out[: len(node.edges)]
        return gathered(joint.wrapped, out) if joint.wrapped else list(out)


def _finite(arrays: tuple) -> bool:
    """Are there only numbers?"""
    return all(a is None or a.dtype.kind not in "fc" or np.isfinite(a).all() for a in arrays)


def _users_place(depth: int) -> tuple:
    """Where the call was written; modules, and the general way, are between."""
    frame = sys._getframe(depth + 1)
    while frame.f_back is not None and not errors.is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_code, frame.f_lasti


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


def generator_state():
    """The state of the default generator, to draw the same numbers once more."""
    from ..array.random import default_generator

    return default_generator.get_state()


class same_random_numbers:
    """Draw from a given state, and go on from the present one afterwards."""

    def __init__(self, given):
        self.given = given

    def __enter__(self):
        if self.given is not None:
            from ..array.random import default_generator

            self.present = default_generator.get_state()
            default_generator.set_state(self.given)

    def __exit__(self, *exc):
        if self.given is not None:
            from ..array.random import default_generator

            default_generator.set_state(self.present)


def _made_again(o: Output, tensors: list, made: list, done: dict) -> Tensor:
    """One tensor of the answer; those that belong together are made from the same."""
    t = done.get(o)
    if t is not None:
        return t
    if o.kind == "graph":
        t = made[o.index]
        if o.opaque is not None:
            number, chain, multi = o.opaque
            base, steps = tensors[number], None
            t._data, t._cell = replay(make(base._data), chain)._data, cell_of(base)
            for step in chain:
                steps = one_more(steps, step)
            t._link = Opaque(base, steps, multi, None, t._cell.version)
        elif o.shares is not None:
            base = _made_again(o.shares[0], tensors, made, done)
            t._data, t._cell = replay(make(base._data), o.shares[1])._data, cell_of(base)
        elif o.piece is not None:
            number, chain = o.piece
            if number is not None:  # of the user's own tensor
                with set_grad_enabled(False):
                    shown = replay(tensors[number], chain)
                shown._edge, shown._link.multi, t = t._edge, True, shown
            if t._link is not None:
                t._link.hidden = None  # gradients come to it as to an output of a function
        elif t._link is not None and t._link.hidden and t._edge is not None:
            t._link = None  # a view in the graph, beside pieces of the same; it has its own
    elif o.kind == "number":
        return made[o.index].item() if not made[o.index].ndim else Size(made[o.index].tolist())
    elif o.kind == "input":
        t = tensors[o.index]
    else:
        base = _made_again(o.of, tensors, made, done)
        chain = o.chain if not o.told else map_aggregate(o.chain, lambda v: (
            _made_again(v, tensors, made, done) if type(v) is Output else v))
        with _mode(o):
            t = replay(base, chain[:-1] if o.half else chain)
        if o.half:
            t = replay(t, chain[-1:])
        if o.apart:
            t = t.detach() if o.writes is None else make(t._data)
            if o.writes:
                cell_of(t).version = o.writes
        if o.own is not None:
            _has_own(t, made[o.own])
        if o.multi and t._link is not None:
            t._link.multi = True
        if o.stale:
            t._link.seen, t._link.multi = -1, t._link.multi or not t._link.hidden
    if o.leaf:
        t.requires_grad_()
    if o.retains and t._edge is not None:
        t.retain_grad()
    if o.cls is not Tensor:
        t.__class__ = o.cls
    done[o] = t
    return t


def _has_own(t: Tensor, result: Tensor) -> None:
    """Let gradients of a view come to the graph as to a result of it, where its hooks are."""
    if result._edge is not None:
        t._edge = result._edge
        if t._link is not None:
            t._link.seen = cell_of(t).version


def _mode(o: Output):
    """The mode in which the views of an output were made."""
    if o.hidden == "inference":
        return inference_mode()
    return set_grad_enabled(not (o.hidden or o.apart))


def _leave(gradient, arguments: list[Tensor], value: Tensor | None) -> None:
    """Leave a gradient in a tensor's `.grad`: in the memory of the one that is there, unless the
    function has put another in its place."""
    meta = meta_of(gradient.holder(arguments))
    if value is None or meta.grad is None or gradient.replaced:
        meta.grad = value
    elif meta.grad is not value:
        np.copyto(meta.grad._data, value._data)
        bump(meta.grad)


def _move(t: Tensor, data, tensors: list[Tensor], saved: bool) -> None:
    """Let a handle look at other memory: an input's, or its own if a backward needs the value."""
    own = saved and all(data is not other._data for other in tensors)
    t._data = data.copy() if own else data


def write_all(joint: Joint, tensors: list[Tensor], made: list[Tensor]) -> None:
    """Give inputs the shapes and the values that the function left in them."""
    for i, steps in joint.reviewed:
        for ov, rest, recorded in steps:
            with set_grad_enabled(recorded):
                inplace_view(ov, (tensors[i], *rest))
    plain = []
    for m in joint.mutated:
        t = tensors[m.input]
        if m.moved:
            _move(t, made[m.output]._data, tensors, joint.differentiable)
            if m.count:
                mark_written(t)
        if m.moved and not m.tracked:
            continue
        if not m.count:
            t._edge = made[m.output]._edge
        elif m.tracked:
            with set_grad_enabled(True):
                assign(t, made[m.output])
        else:
            if made[m.output]._data is not t._data:  # not written in place
                np.copyto(t._data, made[m.output]._data)
            if m.count > m.silent:
                plain.append(t)
            if t._link is not None:
                t._link.seen = -1
    if plain:
        mark_written(*plain)
    for m in joint.mutated:
        if m.count - m.silent > 1:
            cell = cell_of(tensors[m.input])
            if cell is not INFERENCE:
                cell.version += m.count - m.silent - 1
