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

import numpy as np

from .. import errors
from ..array.dtype import float16
from ..autograd import engine
from ..autograd.grad_mode import enable_grad
from ..core.handle import Tensor, cell_of, make
from ..core.state import fast, sequence, state, uncast
from ..core.surface import mark_inference, mark_written
from ..core.tape import modified
from ..cut.split import give_away
from ..graph.traits import cost_of, owner
from ..pytree import tree_unflatten
from .decisions import contents
from .eager_forward import pulled_back
from .effects.effect import Call
from .effects.histories import Record
from .effects.order import in_order
from .effects.results import Output, ReturnValue
from .joint import Identity, Joint
from .keys import key_of
from .mutations import memory
from .node import (
    CompiledNode,
    generator_state,
    mark_propagated,
    same_random_numbers,
    users_place,
)
from .saved_tensor_hooks import PackedValues, graph_hooks
from .subclasses import gathered, plain_tangents

_new = object.__new__
WASTED = 3  # fused calls without a backward after which the program splits


class Program:
    """One captured signature of a function; its graphs are compiled when first needed."""

    def __init__(self, joint: Joint, makers: dict, facts: list, fuse: bool):
        self.joint = joint
        # "forward", "backward", "fused", "eager" -> function that makes the callable
        self._makers = makers
        self._made: dict = {}
        self.output_facts = facts  # (shape, dtype) of each graph output; None: the data decide
        self.loose = any(shape is None for shape, _ in facts)
        self.count = joint.forward_count
        self.shared: dict = {}  # programs of the same signature for inputs that share memory
        self.fuse = fuse and "fused" in makers and self._fuses()
        self.inlined: tuple | None = None  # hooks of saved tensors that are part of the graphs
        self.waiting = 0  # fused calls since the last backward
        self.compared = 0  # calls that were compared with the function (`check.py`)
        self.shortened = 0  # how often a short way was made
        self.symbolic = None  # the program with symbolic sizes that this one follows from
        self.values: dict[str, int] = {}  # those of its symbols
        self.marks: list[tuple[int, frozenset]] = []  # user's output -> dims that were symbols
        self.layout = None  # how the graphs differ from the joint graph, see `convention.py`
        self.make = make  # what makes a result a tensor
        self.enter = self.run_on  # how calls come in by the short way
        self._look_at_effects()
        self._look_at_graph()

    def _fuses(self) -> bool:
        """Is it a loss whose gradients scale with the seed?"""
        joint, (shape, dtype) = self.joint, self.output_facts[0] if self.count else ((0,), "f4")
        return (
            joint.differentiable and self.count == 1 and joint.tangent_of == [0]
            and shape == () and np.dtype(dtype).kind == "f"  # a complex seed would not just scale
            and all(e.fuses for e in joint.effects)
            and not (joint.late or joint.wrapped or joint.ruled)  # those need not scale
        )

    def _look_at_effects(self) -> None:
        """What a call does besides computing."""
        joint = self.joint
        outputs = joint.outputs
        self.written = [w.input for w in joint.mutated]
        self.inner = [~i for i in joint.grad_of if i < 0]  # leaves made inside, outputs
        self.simple = not joint.effects and len(outputs) == 1 and joint.out_spec.is_leaf() and (
            isinstance(outputs[0], ReturnValue) and outputs[0].plain)
        self.effects = joint.effects
        if joint.differentiable:
            self.effects = in_order([*joint.effects, Record(self)])
        self.extended = bool(joint.adopted or joint.roots or joint.unique is not None)
        # does it depend on nothing but what a short way compares (`fast_guards.py`)?
        self.comparable = not (
            joint.input_guards or joint.decisions or joint.numbers or joint.roots
            or joint.unique is not None or self.written)

    def _look_at_graph(self) -> None:
        """What it depends on in the graph: draws, constants, inputs that are written and read."""
        joint = self.joint
        nodes = list(joint.module.graph.nodes)
        self.copied = _not_fresh(joint.module.graph.output_node().args[0][: self.count])
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
        joint = self.joint
        if joint.differentiable and (fast["ACTIVE"] or self.inlined) and (
                self.inlined != graph_hooks()):
            return False
        if joint.outside is not None and not joint.outside():
            return False
        for guard in joint.guards:
            if not guard():
                return False
        for t, key in zip(joint.found(arguments)[len(joint.roots):], self.adopted_keys):
            if key_of(t) != key:
                return False
        for guard in joint.input_guards:
            if not guard.fits(joint, arguments):
                return False
        return all(e.fits(joint, arguments) for e in joint.effects)

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
        call = Call(self, tensors, arrays, arguments)
        for effect in self.effects:
            effect.prepare(call)
        self._compute_into(call)
        for effect in self.effects:
            effect.replay(call)
        if not self.simple:
            return tree_unflatten(call.answers(), self.joint.out_spec)
        if self.checked is not None or call.fused:
            self._choose()
        if self.marks:
            mark_propagated(call.made[0], self.marks[0][1])
        return call.made[0]

    def _compute_into(self, call: Call) -> None:
        """The native call, and its results as tensors."""
        differentiable = self.joint.differentiable
        call.packs = fast["ACTIVE"] and differentiable and not self.inlined and (
            state.observers.saved_hooks)
        fused = self.fuse and not call.packs
        if fused:
            if self.waiting >= WASTED:
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
            call.made[k]._data = call.made[k]._data.copy("K")
        if state.inference:
            mark_inference(call.made)

    def _choose(self) -> None:
        """From the second call on: how to run a program that does nothing but compute."""
        joint = self.joint
        if (
            self.random or self.kept or self.copied or self.inner
            or self.saved_copies
            or joint.wrapped or self.count != 1
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
        node.where = users_place(2)
        if self.marks:
            mark_propagated(out, self.marks[0][1])
        return out

    def node(self, tensors, arrays, saved, fused: bool) -> CompiledNode:
        """A node of the tape for a call."""
        joint = self.joint
        node = _new(CompiledNode)
        node.program, node.count, node.fused = self, len(joint.tangent_of), fused
        node.edges = tuple([tensors[i]._edge for i in joint.grad_of if i >= 0])
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
        if joint.unrecorded_write is not None:
            raise errors.NotDifferentiable(errors.text(
                "gradients of gradients do not go through a compiled function that writes a "
                "tensor behind the tape's back: under no_grad(), or through detach() or .data "
                f"({errors.describe_place(joint.unrecorded_write)})",
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
            if joint.eager_forward is not None:
                with enable_grad():  # a capture asks for gradients without recording them
                    made = self.part("eager_forward")(*inputs, *tangents)
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
