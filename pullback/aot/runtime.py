"""Run a compiled function so that nobody can tell it from eager: history, mutations, aliases.

A compiled call is one native call per pass plus what stands here.  The backward pass is compiled when it first runs;
a backward that is itself recorded (double backward) runs the captured graph operator by operator.
"""

from __future__ import annotations

from ..autograd.engine import grad as engine_grad
from ..core.handle import Tensor, make
from ..core.pytree import tree_unflatten
from ..core.state import fast, sequence, state
from ..core.surface import assign, bump, replay
from ..core.tape import Accumulate, Node, place, port
from .capture import Joint, Output


class CompiledNode(Node):
    """History of a compiled function's outputs."""

    __slots__ = ("count", "held", "program")

    class _Rule:
        name, saves = "CompiledFunctionBackward", ()

    def name(self) -> str:
        return "CompiledFunctionBackward"

    @property
    def outputs(self) -> int:
        return self.count

    def apply(self, grads, needs):
        if self.saved is None:
            from ..core.tape import freed
            raise freed(self)
        if state.record[0]:
            return self.program.differentiable_backward(self.held, grads, needs)
        return self.program.backward(self.saved, grads)

    def release(self) -> None:
        self.saved = self.held = None


class Program:
    """One captured signature of a function, compiled."""

    def __init__(self, joint: Joint, forward, backward_maker, split: tuple):
        self.joint = joint
        self.forward = forward  # raw arrays -> raw arrays: outputs, then saved values
        self._backward_maker = backward_maker
        self._backward = None
        self.eager_module, self.saved_inputs = split

    def run(self, tensors: list[Tensor]):
        """Call with the user's tensors (adopted ones are added)."""
        joint = self.joint
        if joint.adopted:
            tensors = tensors + joint.adopted
        results = self.forward(*[t._data for t in tensors])
        count = joint.forward_count
        made: list = [None] * count
        node = None
        if joint.differentiable:
            node = self._node(tensors, results[count:])
        for k in range(count):
            made[k] = make(results[k])
        if node is not None:
            for number, k in enumerate(joint.tangent_of):
                made[k]._edge = port(node, number)
        for i, k, tracked in joint.mutated:
            write_back(tensors[i], made[k], tracked)
        return self._answer(tensors, made)

    def _node(self, tensors, saved) -> CompiledNode:
        joint = self.joint
        node = object.__new__(CompiledNode)
        node.rule, node.program, node.count = CompiledNode._Rule, self, len(joint.tangent_of)
        sources = [tensors[i] for i in joint.grad_of]
        node.edges = tuple([t._edge for t in sources])
        node.metas = tuple([(t._data.shape, t._data.dtype) for t in sources])
        node.saved = saved
        node.held = tensors
        node.seq, node.stamp, node.hooks, node.level = sequence(), fast["CLOCK"], None, 0
        node.where = place()
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
        if self.single:
            return flat[0]
        return tree_unflatten(flat, self.joint.out_spec)

    @property
    def single(self) -> bool:
        return False

    def backward(self, saved, grads):
        """Gradients of the inputs by the compiled backward graph."""
        if self._backward is None:
            self._backward = self._backward_maker()
        joint = self.joint
        tangents = [g._data if g is not None else None for g in grads]
        if None in tangents:
            tangents = self._filled(tangents)
        out = self._backward(*saved, *tangents)
        del joint
        return [None if o is None else make(o) for o in out]

    def _filled(self, tangents):
        import numpy as np
        filled = []
        for t, k in zip(tangents, self.joint.tangent_of):
            val = self.output_facts[k]
            filled.append(np.zeros(val[0], val[1]) if t is None else t)
        return filled

    def differentiable_backward(self, tensors, grads, needs):
        """The same with history: run the captured graph on handles and differentiate it."""
        joint = self.joint
        outs = self.eager_module(*tensors)
        chosen = [(outs[k], g) for k, g in zip(joint.tangent_of, grads) if g is not None]
        wanted = [i for i, need in zip(joint.grad_of, needs) if need]
        found = engine_grad([o for o, _ in chosen], [tensors[i] for i in wanted], [g for _, g in chosen],
                            create_graph=True, allow_unused=True)
        found = iter(found)
        return [next(found) if need else None for need in needs]


def write_back(t: Tensor, new: Tensor, tracked: bool) -> None:
    """Give an input the value that the function wrote into it."""
    if tracked or t._edge is None or not isinstance(t._edge, Accumulate):
        assign(t, new)
    else:
        import numpy as np
        np.copyto(t._data, new._data)
        bump(t)
