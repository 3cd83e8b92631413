"""`make_fx`: run a function once and keep what it did as a graph.

`Recorder` turns operator calls into graph nodes; `Trace` (in `interp/`) calls it.
`capture/capture.py` builds joint graphs with the same recorder.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .. import errors
from ..array import reals
from ..array.fake import Fake, fake_like
from ..array.layout import memory_format
from ..array.size import Symbolic, is_symbolic
from ..autograd.grad_mode import _set_grad_enabled
from ..core.handle import Tensor, is_buffer, make
from ..core.tape import Accumulate
from ..interp.operator_dispatch import Outer, piece
from ..interp.trace import Trace
from ..ops import aten
from ..parts import trees as parts
from ..pytree import tree_flatten, tree_map, tree_unflatten
from ..symbolic import ShapeEnv
from ..tensor.hooks import hooks_as_now
from ..threads.blocks import restored_on_error
from ..threads.state import fast, state
from . import traceback
from .dialect import TABLE, standard
from .graph import Graph
from .graph_module import GraphModule, for_users
from .printer import Trees
from .sizes import SizeNodes, numbers_of, sized_by, symbolic_input
from .tables import normalized
from .traits import viewed


def fake_of(t: Tensor) -> Tensor:
    """A handle with the facts of another, without data or history."""
    data = t._payload
    while not isinstance(data, Fake) and hasattr(data, "inner"):
        data = data.inner._payload
    return make(fake_like(data))


def _example(out: Any) -> Any:
    """The value of a node: facts of tensors, in lists where they came so."""
    if isinstance(out, Tensor):
        return fake_of(out)
    return [_example(o) for o in out] if isinstance(out, (list, tuple)) else out


class TensorMetadata(NamedTuple):
    """What is known of a node's value without its data, under PyTorch's names."""

    shape: tuple
    dtype: Any
    requires_grad: bool
    stride: tuple
    memory_format: Any = None
    is_quantized: bool = False
    qparams: dict = {}


def metadata(value: Any) -> Any:
    """The `TensorMetadata` of an example value, of each of several."""
    if isinstance(value, Tensor):
        return TensorMetadata(value.shape, value.dtype, value.requires_grad, value.stride(),
                              _memory_format(value))
    return [metadata(v) for v in value] if isinstance(value, (list, tuple)) else None


def _memory_format(value: Tensor) -> Any:
    """The layout that an example value has, None for others and for symbolic sizes."""
    if any(type(n) is not int for n in value.shape):
        return None
    names = ("contiguous_format", {4: "channels_last", 5: "channels_last_3d"}.get(value.ndim))
    found = [memory_format.known[name] for name in names if name]
    return next((f for f in found if value.is_contiguous(memory_format=f)), None)


def _formula(rule: Any) -> Any:
    """The formula of a rule that is running, None if none is (the shape of a result, say)."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if code.co_name == "backward" and code.co_filename.startswith("<pullback derivative of"):
            return rule.formula_at(frame.f_lineno)
        frame = frame.f_back
    return None


class Recorder:
    """Builds a graph from operator calls."""

    lifts = True  # tensors from outside may become constants
    dialect = TABLE

    def __init__(self, fake: bool):
        self.graph = Graph()
        self.constants: dict[str, Tensor] = {}
        self.values: dict = {}  # node -> its value, where it follows from constants
        self._nodes: dict[int, tuple] = {}  # id of an outside handle -> (handle, node)
        self._titles: dict[int, str] = {}  # id of the data of a constant -> its name
        self._counts: dict[str, int] = {}  # kind of constants -> the last one's number
        self.fake = fake
        self.origin = None  # the operator whose decomposition is being recorded
        self.pulled = None  # the node of the tape whose formula is running
        self.latest = None  # the last one that ran, of the sweep of a joint graph
        self.annotations: dict[int, dict] = {}  # number of a node of the tape -> what the user said
        self.composing: list = []  # operators that are run by others, the innermost last
        self.fresh: list | None = None  # nodes of a region that wants to know them
        self.sizes: SizeNodes | None = None  # with symbolic sizes: the nodes that compute them

    def placeholder(self, name: str, value: Tensor, example: Tensor | None = None):
        node = self.graph.placeholder(name)
        node.meta["val"] = fake_of(value if example is None else example)
        if self.sizes is not None:
            self.sizes.note(node, node.meta["val"].shape)
        return node

    def call(self, ov, flat: tuple, out):
        """The node of an operator call; trailing defaults are left out."""
        args, kwargs = ov.schema.as_called(flat)
        sizes = self.sizes
        if sizes is not None:
            args, kwargs = sizes.in_place_of(args), sizes.in_place_of(kwargs)
        elif is_symbolic(args) or is_symbolic(kwargs.values()):  # of a graph around this one
            args, kwargs = numbers_of(args), numbers_of(kwargs)
        args = [list(v) if isinstance(v, tuple) else v for v in args]  # sizes print as lists
        ov, args, kwargs = self.dialect.shown(self, ov, flat, args, kwargs)
        node = self.graph.call_function(ov, tuple(args), kwargs)
        meta = node.meta
        meta["val"] = _example(out)
        self.place(meta)
        if self.origin is not None:
            meta["origin"] = self.origin
        if self.fresh is not None:
            self.fresh.append(node)
        if sizes is not None and isinstance(out, Tensor):
            sizes.note(node, out._payload.shape)
        return node

    def place(self, meta: dict) -> None:
        """Where a node comes from: its line; in a backward pass the operator and its formulas."""
        pulled = self.pulled
        if traceback.current_meta:
            meta.update(traceback.noted())
        if pulled is None:
            line = self.latest and errors.traceback_line(self.latest.where)
            meta.setdefault("stack_trace", line or traceback.source_line(3))
            return
        meta["stack_trace"] = errors.traceback_line(pulled.where) or traceback.source_line(3)
        meta["autograd_backward"] = True
        meta["seq_nr"] = pulled.seq
        meta["grad_fn"] = pulled.name()
        rule = getattr(pulled, "rule", None)
        overload = getattr(rule, "overload", None)
        if overload is not None:  # not a function of the user
            meta["entry"] = overload.name
            formula = _formula(rule)
            if formula is not None:
                meta["formula"] = {", ".join(formula.names): formula.text}
        meta["partitioner_tag"] = "is_backward"
        noted = self.annotations.get(pulled.seq)
        if noted:
            meta["custom"] = {**noted, **meta.get("custom", {})}

    def switched(self, mode: bool, leaves: bool) -> None:
        """A change of the grad mode, as a call in the graph; `leaves` at the end of a block."""
        node = self.graph.call_function(_set_grad_enabled, (mode,))
        node.meta.update(traceback.noted(), leaves=leaves)

    def write(self, node, box, cell):
        """What a call does to an input, at its end: the node of the input after that."""
        from ..table.packets import ops

        value = box.inner
        if viewed(box.node) is node:  # another view of its own memory
            steps = [(aten.as_strided_.default, (list(value.shape), list(value.stride())))]
        else:
            steps = [(aten.copy_.default, (box.node,))]
            if tuple(node.meta["val"].shape) != tuple(value.shape):
                steps.insert(0, (ops.resize_.default, (list(value.shape),)))
        if self.sizes is not None:
            steps = [(target, self.sizes.in_place_of(args)) for target, args in steps]
        for target, args in steps:
            node = self.graph.call_function(target, (node, *args))
            node.meta["val"] = fake_of(value)
            node.meta["stack_trace"] = cell and errors.traceback_line(cell.where)
        return node

    def taped(self, node, seq: int) -> None:
        """The call of a node is on the tape under a number; its backward will have that, too."""
        node.meta.setdefault("seq_nr", seq)
        if node.meta.get("custom"):
            self.annotations[seq] = node.meta["custom"]

    def pick(self, node, i: int, out):
        picked = self.graph.call_function(operator.getitem, (node, i))
        picked.meta["val"] = _example(out)
        picked.meta["stack_trace"] = node.meta.get("stack_trace")
        if "nn_module_stack" in node.meta:
            picked.meta["nn_module_stack"] = node.meta["nn_module_stack"]
        if self.fresh is not None:
            self.fresh.append(picked)
        if self.sizes is not None and isinstance(out, Tensor):
            self.sizes.note(picked, out._payload.shape)
        elif isinstance(out, Symbolic):
            self.sizes.defined(out, picked)
        return picked

    def constant(self, t: Tensor):
        """The node of a tensor from outside."""
        found = self._nodes.get(id(t))
        if found is None:
            if not self.lifts:
                raise errors.TransformError(
                    errors.text(
                        "Please convert all Tensors to FakeTensors first: a tensor with data "
                        f"meets ones without ({errors.user_line(3)})",
                        f"tensor: {t.dtype.name}{list(t.shape)}, from outside of the function",
                        [
                            "pass it as an argument",
                            "or make_fx(..., _allow_non_fake_inputs=True): it becomes an attribute",
                        ],
                    )
                )
            kind = "param" if type(t).__name__ == "Parameter" else "tensor"
            name = self._titles.get(id(t._payload))
            if name is None:
                number = self._counts[kind] = self._counts.get(kind, -1) + 1
                name = self._titles[id(t._payload)] = f"_{kind}_constant{number}"
                self.constants[name] = t if kind == "param" else make(t._payload)
            node = self.graph.get_attr(name)
            node.meta["val"] = fake_of(t)
            found = self._nodes[id(t)] = (t, node)
        return found[1]

    def known(self, node):
        """The value of a node that does not depend on the inputs, where it was kept."""
        return self.constants.get(node.target) if node.op == "get_attr" else self.values.get(node)

    def module(self, result, name: str = "GraphModule", kind: Any = None) -> GraphModule:
        """Finish the graph with its output, of a type that the function may have said."""
        self.graph.output(result, kind)
        return GraphModule(self.constants, self.graph, name)


class _Strict(Recorder):
    """For fake inputs that must not meet real tensors from outside."""

    lifts = False

    def __init__(self, fake: bool):
        super().__init__(fake)
        self.level: Any = None

    def constant(self, t: Tensor):
        self.lifts = id(t._payload) in self.level.own or type(t._payload) is Fake
        return super().constant(t)


def _names(function: Callable, count: int) -> list[str]:
    """Parameter names of a function for its `count` arguments."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(names) < count or any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return [f"arg{i}" for i in range(count)]
    return names[:count]


def make_fx(f: Callable, decomposition_table: dict | None = None, tracing_mode: str = "real",
            _allow_non_fake_inputs: bool = False, *, pre_dispatch: bool = False,
            record_module_stack: bool = False, _allow_fake_constant: bool = False,
            _error_on_data_dependent_ops: bool = True, record_stack_traces: bool = False,
            proxy_module_inputs: bool = False) -> Callable[..., GraphModule]:
    """A function that runs `f` on example inputs and returns the graph of what it did.

    `tracing_mode`: "real" runs on the inputs' values, "fake" on shapes alone, "symbolic" likewise.
    Arguments may be trees.  `decomposition_table` says which operators are taken apart, and how.
    `pre_dispatch` keeps composite operators whole.  In "fake" mode tensors that `f` reaches from
    outside are refused unless `_allow_non_fake_inputs`; they become attributes then.
    `record_module_stack` notes on each node which submodules were running; with
    `record_stack_traces` the source shows the user's lines, which nodes know in any case.
    `_error_on_data_dependent_ops=False` lets `f` look at values, which are part of the graph then.
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise ValueError(
            f"tracing_mode must be 'real', 'fake' or 'symbolic', got {tracing_mode!r}"
        )

    options = _Options(decomposition_table, tracing_mode, _allow_non_fake_inputs, pre_dispatch,
                       record_module_stack, not _error_on_data_dependent_ops, record_stack_traces)

    @functools.wraps(f)
    def traced(*args: Any) -> GraphModule:
        if isinstance(get_proxy_mode(), Trace):  # inside of a capture, which is not told of this
            from .isolated import disable_proxy_modes_tracing, example_of

            with disable_proxy_modes_tracing():
                return traced(*tree_map(example_of, args))
        run = _Run(f, args, options)
        return run.module(*run.recorded())

    return traced


class _Options(NamedTuple):
    """What `make_fx` was asked for."""

    table: dict | None
    mode: str
    takes_outside: bool  # may tensors from outside be constants where the inputs are fakes?
    whole: bool
    module_stack: bool
    reads_examples: bool
    shows_lines: bool


class _Run:
    """One run of a function for `make_fx`: its trace, its inputs and what it gave."""

    def __init__(self, f: Callable, args: tuple, options: _Options):
        self.f, self.options = f, options
        args = parts.opened(args) if fast["PARTS"] else args
        self.flat, self.spec = tree_flatten(args)
        self.names, self.leaves = _names(f, len(args)), [tree_flatten(a)[0] for a in args]
        self.nested = not all(len(own) == 1 and own[0] is a for own, a in zip(self.leaves, args))
        fake = options.mode != "real"
        recorder = _Strict(True) if fake and not options.takes_outside else Recorder(fake)
        level = Trace(recorder, fake, normalized(options.table))
        level.reads_examples = options.reads_examples and not fake
        level.keeps_composites, level.keeps_copies = options.whole, True
        level.continues_tape = len(state.stack) == 1  # tensors from outside keep their histories
        level.speak(standard(options.mode, options.whole))
        recorder.level = level
        self.symbolic, env = options.mode == "symbolic", _sizes_of(self.flat)
        if self.symbolic or env is not None:
            recorder.sizes = SizeNodes(recorder, None if self.symbolic else env)
        self.recorder, self.level = recorder, level

    def recorded(self) -> tuple[list, Any]:
        """Run the function: (nodes of its results, their structure)."""
        recorder, level = self.recorder, self.level
        with (restored_on_error(hooks_as_now(self.f)), level,
              _module_stack(self.f, recorder, self.options.module_stack),
              sized_by(recorder.sizes), reals.computing(recorder.fake)):
            titles = [f"{name}_{i}" for name, own in zip(self.names, self.leaves)
                      for i in range(1, len(own) + 1)]
            inputs = [_input(level, recorder, name, v, self.symbolic)
                      for name, v in zip(titles, self.flat)]
            before = [getattr(v, "_payload", None) for v in inputs]
            if recorder.sizes is not None:
                recorder.sizes.live = level
            given = tree_unflatten(inputs, self.spec)
            out = self.f(*(parts.closed(given) if fast["PARTS"] else given))
            results, spec = tree_flatten(parts.opened(out) if fast["PARTS"] else out)
            nodes = self._results(inputs, before, results)
            for outside, _ in recorder._nodes.values():
                left = outside._record and outside._record.grad
                if left is not None and level.mine(left):  # a gradient with an example's value
                    outside._record.grad = make(left._payload.inner._payload)
        return nodes, spec

    def _results(self, inputs: list, before: list, results: list) -> list:
        """The nodes of results, behind those of what inputs have become."""
        recorder, level = self.recorder, self.level
        nodes = [level.node(_current(o)) if isinstance(o, Tensor) else o for o in results]
        written = {
            id(t): recorder.write(box.node, _current(t)._payload, t._cell)
            for t, box in zip(inputs, before)
            if box is not None and _current(t)._payload is not box
        }
        _refuse_shared(self.flat, [id(t) in written for t in inputs])
        nodes = [written.get(id(o), n) for o, n in zip(results, nodes)]
        _copied_once(recorder.graph, list(written.values()), nodes)
        return nodes if recorder.sizes is None else recorder.sizes.in_place_of(nodes)

    def module(self, nodes: list, spec: Any) -> GraphModule:
        """The graph as a module, as users get it."""
        recorder, f = self.recorder, self.f
        composed = fast["PARTS"] > 0 and (parts.has_opened(self.spec) or parts.has_opened(spec))
        if self.nested or composed:
            recorder.graph.trees = Trees(tuple(self.names), self.spec, spec, composed)
            result: Any = nodes
        else:
            result = tree_unflatten(nodes, spec)
            if hasattr(result, "_fields"):
                result = tuple(result)
        recorder.graph.shows_lines = self.options.shows_lines
        for node in recorder.graph.nodes:
            if "val" in node.meta:
                node.meta["tensor_meta"] = metadata(node.meta["val"])
        kind = getattr(f, "__annotations__", {}).get("return")
        module = recorder.module(result, getattr(f, "__name__", type(f).__name__), kind)
        if recorder.sizes is None:
            return for_users(module)
        recorder.sizes.drop_unused()
        module = for_users(module)
        module.shape_env = recorder.sizes.env
        return module


def _refuse_shared(given: list, written: list[bool]) -> None:
    """Refuse a write to memory of several arguments: to a graph they are values of their own."""
    arrays = [t._payload if isinstance(t, Tensor) and is_buffer(t._payload) else None
              for t in given]
    for k, one in enumerate(arrays):
        for i, other in enumerate(arrays):
            if written[k] and i != k and type(one) is type(other) is np.ndarray and (
                    np.shares_memory(one, other)):
                raise errors.ViewWriteError(errors.text(
                    f"make_fx() was given arguments {i} and {k} that share memory, and "
                    f"they are written ({errors.user_line(2)}): in a graph each has its own value",
                    cure="make the view inside of the function, or clone() one of the arguments"))


def _copied_once(graph: Graph, writes: list, results: list) -> None:
    """`x.copy_(y)` on an input is that one write: no `copy` first that nobody else reads."""
    inputs = {w.args[0] for w in writes}
    for write in writes:
        made = write.args[1] if write.target is aten.copy_.default else None
        if getattr(made, "target", None) is not aten.copy.default or len(made.users) != 1:
            continue
        into, source = made.args[:2]
        if into is write.args[0] and viewed(source) not in inputs and made not in results:
            write.args = (into, source)
            graph.erase_node(made)


def _without_data(t: Tensor) -> Tensor:
    """A wrapper around tensors without data."""
    if not isinstance(t._payload, Outer):
        return fake_of(t)
    names, context = t.__tensor_flatten__()
    inner = {name: _without_data(piece(t, name)) for name in names}
    return type(t).__tensor_unflatten__(inner, context, t.shape, t.stride())


def _sizes_of(values: list) -> ShapeEnv | None:
    """The environment of symbolic numbers and of sizes of fakes among arguments."""
    for value in values:
        for n in value.shape if isinstance(value, Tensor) else (value,):
            if isinstance(n, Symbolic):
                return n.node.shape_env
    return None


def _input(level: Trace, recorder: Recorder, name: str, value: Any, symbolic: bool) -> Any:
    """A leaf of the arguments as the function sees it."""
    sizes = recorder.sizes
    if not isinstance(value, Tensor):
        node = recorder.graph.placeholder(name)
        if symbolic and type(value) is int:
            return sizes.number(node, value)
        if sizes is not None and isinstance(value, Symbolic):
            sizes.defined(value, node)
        return value
    if isinstance(value._payload, Outer):
        example = _without_data(value) if recorder.fake else make(value._payload)
    else:
        example = fake_of(value) if recorder.fake else make(value._payload)
    if symbolic and not isinstance(value._payload, Outer):
        example = symbolic_input(sizes.env, example, f"input{sizes.count}", sizes.count)
        sizes.count += 1
    if state.fakes.reals:
        reals.beside(example, value)
    t = level.wrap(example, recorder.placeholder(name, value, example))
    if value.requires_grad:
        t._edge = Accumulate(t)
    return t


@contextlib.contextmanager
def _module_stack(f: Any, recorder: Recorder, wanted: bool) -> Iterator[None]:
    """Note on each node which submodules of a module are running."""
    f = getattr(f, "_orig_mod", f)  # of a function that stands for a module
    if not wanted or not hasattr(f, "named_modules"):
        yield
        return
    stack: dict[str, tuple] = {}
    handles = []

    def enter(path: str) -> Callable:
        def hook(module: Any, args: tuple) -> None:
            stack[path] = (path, type(module))

        return hook

    def leave(path: str) -> Callable:
        def hook(module: Any, args: tuple, out: Any) -> None:
            stack.pop(path, None)

        return hook

    for path, module in f.named_modules():
        handles.append(module.register_forward_pre_hook(enter(path)))
        handles.append(module.register_forward_hook(leave(path), always_call=True))
    call = recorder.call

    def noted(ov: Any, flat: tuple, out: Any) -> Any:
        node = call(ov, flat, out)
        node.meta["nn_module_stack"] = dict(stack)
        return node

    recorder.call = noted  # type: ignore[method-assign]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
        del recorder.call


def get_proxy_mode():
    """The capture that runs, None if none does."""
    return state.stack[state.mode] if state.mode else None


def _current(t: Tensor) -> Tensor:
    if t._link is not None:
        from ..memory.views import refresh

        refresh(t)
    return t
