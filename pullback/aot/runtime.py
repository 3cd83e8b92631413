"""Run a compiled function so that nobody can tell it from eager: history, mutations, aliases.

A compiled call is one native call per pass plus what stands here.  There are two ways to
differentiate:

* *split*: the forward graph saves what the min cut chose; the backward graph is compiled when it
  first runs.
* *fused*: if the function gives one number (a loss), its gradients for the seed 1 are computed in
  the forward call, in one graph, and backward only scales them.  Three calls in a row whose
  backward never came go back to split.

A backward that is itself recorded (double backward) runs the captured graph operator by operator.
"""

from __future__ import annotations

import sys

import numpy as np

from .. import errors
from ..autograd.engine import grad as engine_grad
from ..core.handle import Tensor, make, meta_of
from ..core.pytree import tree_unflatten
from ..core.state import fast, sequence, state, uncast
from ..core.surface import assign, bump, mark_written, replay
from ..core.tape import Accumulate, Node, freed, port
from .capture import Joint, Output
from .decisions import contents

_new = object.__new__
WASTED = 3  # fused calls without a backward after which the program splits


class CompiledNode(Node):
    """History of a compiled function's outputs."""

    __slots__ = ("count", "fused", "held", "program")

    class _Rule:
        name, saves = "CompiledFunctionBackward", ()

    rule = _Rule

    @property
    def outputs(self) -> int:
        return self.count

    def apply(self, grads, needs):
        if self.saved is None:
            raise freed(self)
        program = self.program
        if state.record[0]:
            return program.differentiable_backward(self.held, grads, needs)
        if self.fused:
            return program.scaled(self.saved, grads[0])
        return program.backward(self.saved, grads)

    def release(self) -> None:
        self.saved = self.held = None


class Program:
    """One captured signature of a function; its graphs are compiled when first needed."""

    def __init__(self, joint: Joint, makers: dict, facts: list, fuse: bool):
        self.joint = joint
        self._makers = (
            makers  # "forward", "backward", "fused", "eager" -> function that makes the callable
        )
        self._made: dict = {}
        self.output_facts = facts  # (shape, dtype) of each graph output
        self.fuse = (
            fuse
            and joint.differentiable
            and joint.forward_count == 1
            and not joint.mutated
            and not joint.assigned
            and (joint.tangent_of == [0] and facts[0][0] == () and "fused" in makers)
            and np.dtype(facts[0][1]).kind == "f"  # a complex seed would not just scale them
        )
        self.waiting = 0  # fused calls since the last backward
        self.count = joint.forward_count
        self.frozen: list[int] = []  # graph outputs in the memory of the graph's own constants
        outputs = joint.outputs
        self.simple = (
            len(outputs) == 1
            and type(outputs[0]) is Output
            and outputs[0].kind == "graph"
            and not (joint.mutated or joint.assigned or joint.swept)
            and joint.out_spec.is_leaf()
        )
        # does it depend on its arguments alone?
        self.closed = not (joint.adopted or joint.reads or joint.guards or joint.decisions or any(
            g.before is not None for g in joint.gradients) or joint.assigned)

    def part(self, name: str):
        """A compiled graph of the program, made on first use."""
        found = self._made.get(name)
        if found is None:
            found = self._made[name] = self._makers[name]()
        return found

    def fits(self, arguments: list[Tensor]) -> bool:
        """Is what the function found outside still what it was?"""
        joint, key_of = self.joint, self.key_of
        for gradient in joint.gradients:
            if not gradient.fits(arguments):
                return False
        for guard in joint.guards:
            if not guard():
                return False
        for t, key in zip(joint.found(arguments), self.adopted_keys):
            if key_of(t) != key:
                return False
        return all(read.same for read in joint.reads) and self._decides_alike(arguments)

    def _decides_alike(self, arguments: list[Tensor]) -> bool:
        """Would the conditions of the function be told what they were told when captured?"""
        joint = self.joint
        if joint.decisions is None:
            return True
        for array, read in joint.numbers:
            array[()] = read()
        arrays = [t._data for t in (*arguments, *joint.found(arguments))]
        return joint.answers == [contents(a) for a in self.part("decisions")(*arrays)]

    def run(self, tensors: list[Tensor], arrays: list):
        """Call with the user's tensors (adopted ones are added)."""
        joint = self.joint
        arguments = tensors
        if joint.adopted:
            found = joint.found(tensors)
            tensors = [*tensors, *found]
            for array, read in joint.numbers:
                array[()] = read()
            arrays = [*arrays, *[t._data for t in found]]
        fused = self.fuse
        if fused:
            if self.waiting >= WASTED:
                fused = self.fuse = False
            else:
                self.waiting += 1
        try:
            results = self.part("fused" if fused else "forward")(*arrays)
        except errors.PullbackError as error:  # an index out of range, for instance
            errors.located(error)
            raise
        for generator, after in joint.streams:
            generator.set_state(after)
        count = self.count
        made = [make(r) for r in results[:count]]
        for k in self.frozen:
            made[k]._data = made[k]._data.copy()
        if joint.differentiable:
            node = self._node(tensors, results[count:], fused)
            if len(joint.tangent_of) == 1:
                made[joint.tangent_of[0]]._edge = node
            else:
                for number, k in enumerate(joint.tangent_of):
                    made[k]._edge = port(node, number)
        if self.simple:
            return made[0]
        if joint.mutated:
            write_all(joint.mutated, tensors, made)
        for gradient, k, given in joint.assigned:
            _leave(gradient, arguments, given if k is None else made[k])
        if joint.swept:
            used = self._node(tensors, None, False)
            used.count = 1
            for k in joint.swept:
                made[k]._edge = used
        return self._answer(tensors, made)

    def _node(self, tensors, saved, fused: bool) -> CompiledNode:
        joint = self.joint
        node = _new(CompiledNode)
        node.program, node.count, node.fused = self, len(joint.tangent_of), fused
        sources = [tensors[i] for i in joint.grad_of]
        node.edges = tuple([t._edge for t in sources])
        node.metas = self.metas
        node.saved, node.held = saved, tensors
        node.seq, node.stamp, node.hooks, node.level = sequence(), fast["CLOCK"], None, 0
        frame = sys._getframe(3)
        node.where = frame.f_code, frame.f_lasti
        return node

    def _answer(self, tensors, made):
        flat = []
        for o in self.joint.outputs:
            if type(o) is not Output:
                flat.append(o)
            elif o.kind == "graph":
                flat.append(made[o.index])
            elif o.kind == "input":
                flat.append(tensors[o.index])
            else:
                flat.append(replay(tensors[o.index], o.chain))
        return tree_unflatten(flat, self.joint.out_spec)

    def scaled(self, gradients: tuple, seed: Tensor) -> list:
        """The gradients that the forward call computed for the seed 1, for another seed."""
        self.waiting = 0
        scale = seed._data
        if scale == 1:
            return [None if g is None else make(g) for g in gradients]
        return [
            None if g is None else make(np.multiply(g, scale, dtype=g.dtype)) for g in gradients
        ]

    def backward(self, saved: tuple, grads: list) -> list:
        """Gradients of the inputs by the compiled backward graph."""
        tangents = [
            g._data if g is not None else np.zeros(*self.output_facts[k])
            for g, k in zip(grads, self.joint.tangent_of)
        ]
        out = self.part("backward")(*saved, *tangents)
        return [None if o is None else make(o) for o in out]

    def differentiable_backward(self, tensors, grads, needs) -> list:
        """The same with history: run the captured graph on handles and differentiate it."""
        self.waiting = 0
        joint = self.joint
        with uncast():
            outs = self.part("eager")(*tensors)
        chosen = [(outs[k], g) for k, g in zip(joint.tangent_of, grads) if g is not None]
        wanted = [i for i, need in zip(joint.grad_of, needs) if need]
        found = iter(
            engine_grad(
                [o for o, _ in chosen],
                [tensors[i] for i in wanted],
                [g for _, g in chosen],
                create_graph=True,
                allow_unused=True,
            )
        )
        return [next(found) if need else None for need in needs]


def _leave(gradient, arguments: list[Tensor], value: Tensor | None) -> None:
    """Leave a gradient in a tensor's `.grad`: in the memory of the one that is there, unless the
    function has put another in its place."""
    meta = meta_of(gradient.holder(arguments))
    if value is None or meta.grad is None or gradient.replaced:
        meta.grad = value
    elif meta.grad is not value:
        np.copyto(meta.grad._data, value._data)
        bump(meta.grad)


def write_all(mutated: list, tensors: list[Tensor], made: list[Tensor]) -> None:
    """Give inputs the values that the function wrote into them."""
    plain = []
    for i, k, tracked in mutated:
        t = tensors[i]
        edge = t._edge
        if made[k]._data is not t._data and (
            tracked or t._link is not None or edge is not None and not isinstance(edge, Accumulate)
        ):
            assign(t, made[k])
        else:
            if made[k]._data is not t._data:  # not written in place
                np.copyto(t._data, made[k]._data)
            plain.append(t)
    if plain:
        mark_written(*plain)
