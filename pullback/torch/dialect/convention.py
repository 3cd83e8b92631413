"""PyTorch's calling convention: what `aot_function` hands to compilers, and how to call the result.

A captured function has graph outputs for what the run time needs.  PyTorch's graphs have more of
them, in an order of their own, and compilers, partitioners and tests rely on it:

* inputs: bases of inputs that share memory, then all arguments (numbers and None, too); they are
  called `primals_N`, or `argN_1` where nothing is to be differentiated;
* an input that is written and takes part in autograd is cloned first;
* forward results: new values of inputs, the user's outputs, then the tensors that outputs are
  views of; writes that autograd does not see may stay inside, as `copy_` at the end;
* backward results: a gradient or None for every input.

`TorchConvention` is what a capture asks, and keeps what `Layout` wants to know of it.  That makes
the graph, and translates between it and what a `Program` (`capture/run.py`) calls.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ... import errors
from ...array.layout import STRIDED
from ...array.size import Symbolic, is_symbolic
from ...capture.effect_tokens import Threaded, effectful
from ...capture.effects.memory import TakeMemory
from ...capture.effects.metadata import ChangeMetadata
from ...capture.effects.results import Output, ReturnNumber, ReturnValue, ReturnView
from ...capture.effects.storages import GrowStorage, ShrinkStorage
from ...capture.joint import Joint
from ...capture.layouts import coerced, strides_of
from ...capture.results import root_of
from ...capture.seeded_draws import SeededDraws
from ...capture.subclasses import Inside
from ...core.handle import Tensor, make
from ...core.overload import overload
from ...cut.refusals import results
from ...cut.settings import config
from ...cut.split import ancestors, is_number
from ...graph.dialect import Convention
from ...graph.graph import Graph
from ...graph.graph_module import GraphModule, for_users
from ...graph.make_fx import metadata
from ...graph.node import Node, map_arg
from ...graph.passes import eliminate_dead_code
from ...graph.printer import Trees
from ...graph.sizes import argument
from ...graph.traits import memory
from ...memory.storage_calls import RESIZE, SET, MemoryCall
from ...pytree import tree_flatten
from ...table.derived_overloads import InplaceOverload
from ...threads.state import state
from .in_place_writes import rewritten

if TYPE_CHECKING:
    from ...capture.build import Request
    from ...capture.capture import Capture

_WRITE, _SIZE = InplaceOverload(overload("copy")), overload("sym_size.int")


class TorchConvention(Convention):
    """What a capture is to know of the convention, and what is noted during one."""

    keeps_strides = keeps_pieces = returns_views = shows_hooks = True
    refreshes_unused = follows_python = False

    def __init__(self) -> None:
        self.leaves: list = []  # the user's flat outputs: nodes and plain values
        self.ends: list = []  # the node of each input, at the end
        # nodes before and after each write; was it the backward's?  (`in_place_writes.py`)
        self.writes: list[tuple[Node, Node, bool]] = []

    def refusal(self, text: str, kind: type[Exception]) -> Exception:
        return kind(text)

    def detached(self, level: Capture, t: Tensor) -> Tensor:
        return level.detached(t)

    def made(self, level: Capture, t: Tensor) -> Tensor:
        made = level.constant(t)
        copy = overload("lift_fresh_copy")
        copy = overload("clone") if level.decompositions.get(copy) else copy
        node = level.recorder.call(copy, (made._payload.node,), made)
        level.recorder.values[node] = t
        return level.wrap(made._payload.inner, node)

    def written(self, level: Capture, t: Tensor, new: Tensor) -> Tensor:
        if any(old is t and root_of(o) is not old for o, old in level.memory.sets.values()):
            raise errors.TransformError(errors.text(
                "cannot mutate tensors with frozen storage: this tensor shows memory that an input "
                f"had before set_() gave it other memory ({errors.user_line(3)})",
                f"tensor: {t.dtype.name}{list(t.shape)}",
                "write before set_(), or through the input"))
        if level.mine(t) and level.mine(new):
            if any(m.root.input is t for m in level.shared.values()):
                new = level.memory.in_place_of(t, new)  # inputs are places of it, by strides
            self.writes.append((t._payload.node, new._payload.node, level.late))
        return new

    def arranges(self, ov: Any) -> bool:
        return not ov.in_rows and ov.op.memory_format == "channels"

    def took_memory(self, number: int, tracked: bool) -> None:
        if tracked:
            raise AssertionError(errors.text(
                f"input {number} took other memory by set_(), but the input has other mutations "
                "that we cannot keep inside of the graph: it was written while autograd "
                "recorded", cure="write it under no_grad(), or before set_()"))

    def returned(self, level: Capture, leaves: list, inputs: list[Tensor]) -> None:
        self.leaves = [level.node(o) if isinstance(o, Tensor) else o for o in leaves]
        self.ends = [level.node(t) for t in inputs]

    def ended(self, level: Capture) -> None:
        sizes = level.recorder.sizes
        if sizes is not None:
            self.leaves = sizes.of_forward(self.leaves)

    def in_order(self, varying: list[tuple], first: list[int], returned: list[int]) -> list[tuple]:
        """Inputs that were written come first, then the user's results, each time that one is
        returned, then what views of intermediates are made of."""
        values = dict(varying)
        order = [*first, *returned]
        order += [k for k in values if k not in order]
        return [(k, values[k]) for k in order if k in values]

    def layout(self, joint: Joint, request: Request, *options: Any) -> Layout:
        """The graph that compilers get."""
        return Layout(self, joint, request, *options)


class Layout:
    """The graph of a captured function under PyTorch's convention."""

    def __init__(self, convention: TorchConvention, joint: Joint, request: Request, keep: bool,
                 wrappers: Inside | None, writes: bool):
        self.joint, self.keep, self.wrappers = joint, keep and not writes, wrappers
        self.leaves, self.ends_of, self.pairs = (
            convention.leaves, convention.ends, convention.writes)
        # places of inputs that are one wrapper with those before them: one None is all they get
        self.silent: set[int] = set()
        self.ends: dict[int, list] = {}  # last tensor of a wrapper -> nodes of its gradient's sizes
        old = joint.module.graph
        self.old_inputs = [n for n in old.nodes if n.op == "placeholder"]
        self.tangents = [n for n in self.old_inputs if n.name.startswith("tangents_")]
        self.old_inputs = self.old_inputs[: len(self.old_inputs) - len(self.tangents)]
        self.results = old.output_node().args[0]
        self.symbols = {n.args[0]: n for n in old.find_nodes(  # of numbers among the arguments
            op="call_function", target=argument)}
        self.slots = self._slots(request)
        self.graph, self.new = Graph(), {}
        self.raw: dict[int, Node] = {}  # input -> its placeholder
        self.shapes: dict[int, list] = {}  # input -> its sizes, where they were needed
        self.names: dict[str, int] = {}  # placeholder -> input
        self._placeholders()
        self.writes = {m.input: m.output for m in joint.mutated}
        self.reshaped = {  # `t_()` of a vector does nothing
            e.input for e in joint.of(ChangeMetadata)
            if _facts(self.ends_of[e.input]) != _facts(self.old_inputs[e.input])}
        self.kept = self._kept()
        self.resized = False  # does the graph say what happens to the memory of inputs?
        for e in joint.of(GrowStorage):
            self._memory(RESIZE, e.input, e.size)
        self._copies()
        for node in old.nodes:
            if node.op not in ("placeholder", "output") and node.target is not argument:
                self.new[node] = self._copy(node)
        self.position: dict[int, int] = {}  # output of the joint graph -> output here
        # outputs that share memory as the graph has them: pieces, and what they are pieces of
        self.pieces = {o.index for o in joint.outputs if isinstance(o, ReturnValue) and o.piece}
        if self.pieces:
            self.pieces |= {o.index for o in joint.outputs if isinstance(o, ReturnValue)}
        forward = self._forward()
        backward = self._backward() if joint.differentiable else []
        self.tokens = self.late = 0  # inputs before and after all others that stand for effects
        if effectful(self.graph):
            forward, backward = self._threaded(forward, backward)
        self.draws: SeededDraws | None = None
        self.states = 0  # inputs of each pass that stand for random numbers
        if config.functionalize_rng_ops:
            forward, backward = self._seeded(forward, backward)
        self.count = len(forward)
        self._finish(forward, backward, writes)
        name = joint.module.__class__.__name__
        self.module = for_users(GraphModule(joint.module, self.graph, name))

    def _finish(self, forward: list, backward: list, writes: bool) -> None:
        """Let the graph return its results; with `writes` it has the function's own writes."""
        joint = self.joint
        if joint.differentiable:  # partitioners get a function of two lists
            results = [*forward, *backward]
            inputs = len(self.slots) + self.tokens + self.states
            late = len(self.tangents) + self.late + self.states
            given = [0] * inputs, [0] * late
            self.graph.trees = Trees(("primals", "tangents"), tree_flatten(given)[1],
                                     tree_flatten([0] * len(results))[1])
            self.graph.output(results)
        else:
            self.graph.output(tuple(forward))
        eliminate_dead_code(self.graph)
        if writes:
            pairs = [(self.new[a], self.new[b], late) for a, b, late in self.pairs
                     if a in self.new and b in self.new]
            there = set(self.graph.nodes)
            rewritten(self.graph, [p for p in pairs if p[0] in there and p[1] in there])
            eliminate_dead_code(self.graph)
        for node in self.graph.nodes:
            if isinstance(node.meta.get("val"), Tensor):
                node.meta["tensor_meta"] = metadata(node.meta["val"])

    def _slots(self, request: Request) -> list[tuple]:
        """The inputs of the graph in order: ("input", number), ("value", what it is) or
        ("number", its place among the arguments)."""
        joint, flat, given = self.joint, request.flat, request.tensors
        count, unique = len(given), joint.inputs.unique
        own = {i: n for n, i in enumerate(range(count) if unique is None else unique)}
        # inputs that follow from a root
        members = {n for i, n in own.items() if id(given[i]) in (request.shared or ())}
        roots = range(len(own), len(own) + len(joint.inputs.roots))
        slots: list[tuple] = [("input", i) for i in roots]
        tensors = iter(range(count))
        hidden = set() if self.wrappers is None else self.wrappers.numbers()
        at: dict[int, int] = {}  # place among the arguments -> place here
        for k, v in enumerate(flat):
            if not isinstance(v, Tensor):
                if k in self.symbols or k not in hidden:
                    at[k] = len(slots)
                    slots.append(("number", k) if k in self.symbols else ("value", v))
                continue
            number = own.get(next(tensors))
            if number is not None and number not in members:
                at[k] = len(slots)
                slots.append(("input", number))
        if self.wrappers is not None:
            for n, (span, plan) in enumerate(zip(self.wrappers.spans, self.wrappers.plans)):
                if plan is not None:
                    self.silent |= {at[k] for k in span[1:] if k in at}
                    last = max((at[k] for k in span[:plan.count] if k in at), default=-1)
                    self.ends[last] = self.wrappers.sized_gradients.get(n, [])
        first = len(own) + len(joint.inputs.roots)
        return slots + [("input", i) for i in range(first, first + len(joint.inputs.adopted))]

    def _placeholders(self) -> None:
        named = "primals_{1}" if self.joint.differentiable else "arg{0}_1"
        for n, (kind, what) in enumerate(self.slots):
            node = self.graph.placeholder(named.format(n, n + 1))
            node.meta["val"] = what
            if kind == "number":
                self._stands_for(node, self.symbols[what])
            if kind == "input":
                self._stands_for(node, self.old_inputs[what])
                self.raw[what], self.names[node.name] = node, what
        for old in self.tangents:
            self._stands_for(self.graph.placeholder(old.name), old)

    def _stands_for(self, node: Node, old: Node) -> None:
        node.meta = dict(old.meta)
        self.new[old] = node

    def _kept(self) -> set[int]:
        """Inputs whose new values are written inside of the graph."""
        if not self.keep:
            return set()
        joint, users = self.joint, self._late_readers()
        return {
            m.input for m in joint.mutated
            if not m.tracked and m.input not in self.reshaped and m.count
            and not joint.backward.late and self.old_inputs[m.input] not in users
        }

    def _memory(self, call: MemoryCall, i: int, what: Any) -> None:
        """Say what happens to the memory of an input; the run time does it."""
        if self.keep:
            node = self.graph.call_function(call, (self.raw[i], what))
            node.meta["in_order"] = self.resized = True

    def _late_readers(self) -> set[Node]:
        """Memory that a backward reads, itself or by views: it must hold what it held before."""
        count = self.joint.forward_count
        forward = ancestors(self.results[:count])
        late = ancestors([n for n in self.results[count:] if n is not None]) - forward
        found = {memory(n) for node in late if not is_number(node)
                 for n in node.all_input_nodes if n not in late}
        return found

    def _copies(self) -> None:
        """Clones of inputs that are written and views of those that change their shape."""
        joint = self.joint
        if not joint.differentiable:
            return
        tracked = {m.input for m in joint.mutated if m.tracked} | set(joint.backward.grad_of)
        for kind, i in self.slots:
            if kind != "input" or i in self.kept:
                continue
            old = self.old_inputs[i]
            if i in self.writes and i in tracked:
                node = self.graph.call_function(overload("clone"), (self.raw[i],))
            elif i in self.reshaped:
                node = self.graph.call_function(overload("view"), (self.raw[i], self._shape(i)))
            else:
                continue
            self._stands_for(node, old)

    def _shape(self, i: int) -> list:
        """The sizes of an input; symbolic ones as nodes."""
        if i not in self.shapes:
            found = self.shapes[i] = list(self.old_inputs[i].meta["val"].shape)
            for d, n in enumerate(found):
                if isinstance(n, Symbolic):
                    found[d] = self.graph.call_function(_SIZE, (self.raw[i], d))
                    found[d].meta["val"] = n
        return list(self.shapes[i])

    def _copy(self, node: Node) -> Node:
        if node.meta.get("silent"):
            return self.new[node.args[0]]
        if node.target is _SIZE and node.args[0].op == "placeholder":  # before any copy of it
            new = {**self.new, **{self.old_inputs[i]: n for i, n in self.raw.items()}}
        else:
            new = self.new
        args, kwargs = (map_arg(a, new.__getitem__) for a in (node.args, node.kwargs))
        if node.meta.get("grad_fn") == "ToCopyBackward0" and node.target is overload("_to_copy"):
            kwargs = {**kwargs, "layout": STRIDED, "device": node.meta["val"].device}
        made = self.graph.create_node(node.op, node.target, args, kwargs)
        made.meta = dict(node.meta)
        return made

    def _forward(self) -> list:
        """Forward results."""
        joint, position, found = self.joint, self.position, []
        inside = {}
        for e in joint.of(TakeMemory):
            self._memory(SET, e.input, self.new[self.ends_of[e.input]])
        for kind, i in self.slots:
            if kind != "input" or not (i in self.writes or i in self.reshaped):
                continue
            value = self.new[self.results[self.writes[i]] if i in self.writes else self.ends_of[i]]
            if i in self.kept:
                node = self.graph.call_function(_WRITE, (self.raw[i], value))
                node.meta = dict(value.meta)
                inside[i] = node
                continue
            if i in self.writes:
                position[self.writes[i]] = len(found)
            found.append(value)
        for e in joint.of(ShrinkStorage):
            self._memory(RESIZE, e.input, e.size)
        for o, leaf in zip(joint.outputs, self.leaves):
            if isinstance(o, Output) and o.kind not in ("number", "handle"):
                if o.kind == "graph":
                    position.setdefault(o.index, len(found))
                if o.kind == "input" and o.index in inside:
                    found.append(inside[o.index])
                    continue
            elif isinstance(o, ReturnNumber) or is_symbolic((o,)):  # a size, or several
                found += [self.new.get(n, n) if isinstance(n, Node) else n
                          for n in (leaf if isinstance(leaf, tuple) else (leaf,))]
                continue
            found.append(self._late_view(o) or self.new[leaf] if isinstance(leaf, Node) else leaf)
        for k in range(joint.forward_count):
            if k not in position and k not in (self.writes[i] for i in self.kept):
                position[k] = len(found)
                found.append(self.new[self.results[k]])
        return found

    def _late_view(self, o: Output) -> Node | None:
        """Views of inputs that were cloned and written are made once more, at the end.

        So are others of what was written that nothing has used.
        """
        if not self.joint.differentiable or not isinstance(o, ReturnView):
            return None
        i = getattr(o.of, "index", None)
        if o.computed or any(number is not None for _, _, number in o.chain):
            return None
        if o.of.kind == "input" and i in self.writes and not {i} & (self.reshaped | self.kept):
            value = self.new[self.results[self.writes[i]]]
        elif o.of.kind == "graph" and o.late:
            value = self.new[self.results[i]]
        else:
            return None
        for ov, rest, _ in o.chain:
            args, _ = ov.schema.as_called((value, *rest))
            args = [list(v) if isinstance(v, tuple) else v for v in args]
            value = self.graph.call_function(ov, tuple(args))
        value.meta = dict(self.new[self.leaves[self.joint.outputs.index(o)]].meta)
        return value

    def _threaded(self, forward: list, backward: list) -> tuple[list, list]:
        """The graph with effects as chains of tokens, and its results then."""
        named = "primals_{1}" if self.joint.differentiable else "arg{0}_1"
        found = Threaded(self.graph, named, not config.unlift_effect_tokens)
        copied, self.graph = found.copied, found.graph
        self.names = {copied[self.raw[i]].name: i for i in self.raw}
        self.tokens, self.late = len(found.last), len(found.late)
        self.position = {k: n + self.tokens for k, n in self.position.items()}
        forward, backward = (
            [copied[n] if isinstance(n, Node) else n for n in some] for some in (forward, backward))
        return [*found.last, *forward], [*backward, *found.late]

    def _seeded(self, forward: list, backward: list) -> tuple[list, list]:
        """The graph with draws as functions of seeds and offsets, and its results then."""
        passes = ("fwd", "bwd") if self.joint.differentiable else ("fwd",)
        self.draws, self.states = SeededDraws(self.graph, passes), 2
        ends, made = self.draws.ends, self.draws.made
        self.new = {old: made.get(n, n) for old, n in self.new.items()}
        forward, backward = ([made.get(n, n) for n in some] for some in (forward, backward))
        return [*forward, ends["fwd"]], [*backward, ends["bwd"]] if backward else []

    def _backward(self) -> list:
        """A gradient or None for every input; then what else the backward computes."""
        joint = self.joint
        nodes = [None if n is None else self.new[n] for n in self.results[joint.forward_count:]]
        numbers: dict[int, list[int]] = {}  # input -> its gradients: several make a wrapper
        for k, i in enumerate(joint.backward.grad_of):
            numbers.setdefault(i, []).append(k)
        for i in self.reshaped & numbers.keys() - self.writes.keys():
            (k,) = numbers[i]
            if nodes[k] is not None:
                made = self.graph.call_function(overload("view"), (nodes[k], self._shape(i)))
                made.meta, nodes[k] = dict(self.old_inputs[i].meta), made
        found, self.gradients = [], [-1] * len(nodes)
        for position, (kind, i) in enumerate(self.slots):
            own = numbers.get(i, ()) if kind == "input" else ()
            if not own and position not in self.silent:
                found.append(None)
            for k in own:
                self.gradients[k] = len(found)
                found.append(nodes[k])
            if own:  # sizes of a gradient that is a wrapper
                sizes = joint.backward.wrapper_sizes.get(own[0]) or self.ends.get(position, ())
                found += [self.new[n] if isinstance(n, Node) else n for n in sizes]
        for k, node in enumerate(nodes):
            if self.gradients[k] < 0:
                self.gradients[k] = len(found)
                found.append(node)
        return found

    # calls: arrays of the run time's order in and out

    def forward(self, compiled):
        """A compiled forward graph as the run time calls it."""
        slots, kept = self.slots, {self.writes[i]: i for i in self.kept}
        take = [(kept.get(k), self.position.get(k)) for k in range(self.joint.forward_count)]
        count, as_given = self.count, not self.joint.differentiable
        pieces, tokens, beside = self.pieces, [None] * self.tokens, self.resized
        draws = self.draws

        def run(*arrays, values=None):
            args = [make(arrays[what]) if kind == "input" else
                    what if kind == "value" else numbers[what].value(values.__getitem__)
                    for kind, what in slots]
            args = [*tokens, *args] if tokens else args
            if draws is not None:
                args += draws.values("fwd")
            MemoryCall.beside = beside
            try:
                out = results(called(compiled, args, not as_given), count, "forward")
            finally:
                MemoryCall.beside = False
            found = [arrays[i] if i is not None else out[k] for i, k in take]
            if not as_given:
                found = [o if k in pieces else _raw(o) for k, o in enumerate(found)]
            return (*found, *[_raw(o) for o in out[count:]])

        numbers = {k: n.meta["val"].node.raw for k, n in self.symbols.items()}
        if any(kind == "number" for kind, _ in slots):
            run.at = lambda values: partial(run, values=values)
        return run

    def backward(self, compiled):
        """A compiled backward graph as the run time calls it."""
        take, strides = self.gradients, [strides_of(n) for n in self.tangents]
        tokens, most, draws = [None] * self.late, max(take, default=-1) + 1, self.draws

        def run(arrays: list):
            first = len(arrays) - len(strides)
            args = [make(a) if hasattr(a, "dtype") else a for a in arrays[:first]]
            args += [make(coerced(a, s)) for a, s in zip(arrays[first:], strides)]
            args += tokens
            if draws is not None:
                args += draws.values("bwd")
            arrays.clear()
            out = results(called(compiled, args), most, "backward")
            return tuple([_raw(out[k]) for k in take])

        return run

    def saved(self, forward: GraphModule) -> tuple[list, list, dict]:
        """Of a forward graph: results in the run time's order, saved values, names of inputs."""
        results = forward.graph.output_node().args[0]
        known = [results[self.position[k]] if k in self.position else None
                 for k in range(self.joint.forward_count)]
        return known, results[self.count:], self.names


def called(compiled, args: list, quiet: bool = True):
    """Call what a compiler returned; `quiet`: without a tape, which inference does not need."""
    record, policy, before = state.record, state.autocast, state.record[0]
    state.autocast = None  # the dtypes have been chosen already
    if quiet:
        record[0] = False
    try:
        return compiled(args) if getattr(compiled, "_boxed_call", False) else compiled(*args)
    finally:
        record[0], state.autocast = before, policy


def _raw(value):
    return value._payload if isinstance(value, Tensor) else value


def _facts(node: Node) -> tuple:
    """Where a value lies in its memory."""
    value = node.meta["val"]
    return tuple(value.shape), tuple(value.stride()), value.storage_offset()
