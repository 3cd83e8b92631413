"""`compile` and `aot_function`: capture per signature, cut the joint graph, compile both halves, run.

A signature is what the captured graph depends on: the structure of the arguments, shapes, dtypes, which
tensors require grad, which are the same object, and every Python value.
"""

from __future__ import annotations

import functools

import numpy as np

from .. import errors
from ..core import dtype as dt
from ..core.handle import Tensor
from ..core.pytree import tree_flatten
from ..core.state import fast, state
from ..core.surface import refresh
from ..decomp import decompositions as all_decompositions
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.passes import eliminate_common_subexpressions, eliminate_dead_code, remove_noops
from .capture import Joint, capture
from .runtime import Program

_ndarray = np.ndarray


def simplify(module: GraphModule) -> GraphModule:
    """Common subexpressions, no-ops and dead code, until nothing changes."""
    graph = module.graph
    for _ in range(4):
        changed = (eliminate_common_subexpressions(graph) or 0) + (remove_noops(graph) or 0)
        eliminate_dead_code(graph)
        if not changed:
            break
    module.recompile()
    return module


def key_of(value) -> tuple:
    """What the graph depends on, for one argument."""
    if isinstance(value, Tensor):
        if value._link is not None:
            refresh(value)
        data = value._data
        return data.shape, data.dtype, value._edge is not None, data.flags.c_contiguous
    try:
        hash(value)
    except TypeError:
        return ("id", id(value))
    return (type(value), value)


def forward_only(module: GraphModule, count: int) -> GraphModule:
    """The forward part of a joint graph alone: primals -> outputs."""
    graph, copied = Graph(), {}
    for node in module.graph.nodes:
        if node.op == "placeholder" and node.name.startswith("tangents_"):
            continue
        if node.op == "output":
            graph.output(tuple(copied[n] if hasattr(n, "graph") else n for n in node.args[0][:count]))
            break
        if all(n in copied for n in node.all_input_nodes):
            copied[node] = graph.node_copy(node, lambda n: copied[n])
    new = GraphModule(module, graph)
    new.graph.eliminate_dead_code()
    new.recompile()
    return new


class Compiled:
    """A function that is captured and compiled per signature of its arguments."""

    def __init__(self, function, fw_compiler, bw_compiler, partition_fn, decompositions):
        functools.update_wrapper(self, function)
        self.function = function
        self.fw_compiler, self.bw_compiler = fw_compiler, bw_compiler
        self.partition_fn, self.decompositions = partition_fn, decompositions
        self.programs: dict = {}

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args, **kwargs):
        flat, spec = tree_flatten((args, kwargs))
        tensors = [v for v in flat if isinstance(v, Tensor)]
        if fast["ACTIVE"] and (state.mode or len(state.stack) > 1):
            return self.function(*args, **kwargs)
        for t in tensors:
            if type(t._data) is not _ndarray:
                return self.function(*args, **kwargs)
        key = (spec, state.record[0], dt.default(), *[key_of(v) for v in flat], self._aliases(tensors))
        program = self.programs.get(key)
        if program is None or not self._adopted_fit(program):
            program = self.programs[key] = self.build(flat, spec)
        return program.run(tensors)

    @staticmethod
    def _aliases(tensors: list[Tensor]):
        """Which arguments are the same object; None if all differ."""
        ids = [id(t) for t in tensors]
        return None if len(set(ids)) == len(ids) else tuple(ids.index(i) for i in ids)

    @staticmethod
    def _adopted_fit(program: Program) -> bool:
        return all(key_of(t) == k for t, k in zip(program.joint.adopted, program.adopted_keys))

    def build(self, flat: list, spec) -> Program:
        """Capture and compile for one signature."""
        joint = capture(self.function, flat, spec, self.decompositions)
        simplify(joint.module)
        tensors = [v for v in flat if isinstance(v, Tensor)] + joint.adopted
        return make_program(joint, tensors, self.fw_compiler, self.bw_compiler, self.partition_fn)


def make_program(joint: Joint, tensors: list, fw_compiler, bw_compiler, partition_fn) -> Program:
    """Cut the joint graph and compile the forward half."""
    name = "graph"
    if joint.differentiable:
        forward, backward = partition_fn(joint.module, joint.forward_count)
        eager = forward_only(joint.module, joint.forward_count)
        program = Program(joint, fw_compiler(forward, f"{name}_forward"),
                          lambda: bw_compiler(backward, f"{name}_backward"), (eager, None))
        program.graphs = (forward, backward)
    else:
        program = Program(joint, fw_compiler(joint.module, f"{name}_inference"), None, (None, None))
        program.graphs = (joint.module, None)
    program.adopted_keys = [key_of(t) for t in joint.adopted]
    nodes = [n for n in joint.module.graph.output_node().args[0][:joint.forward_count]]
    program.output_facts = [(tuple(n.meta["val"].shape), n.meta["val"].dtype.np) for n in nodes]
    return program


def native(module: GraphModule, name: str):
    """The default backend: C, or NumPy where there is no compiler."""
    from ..compile.backend import compile_graph
    return compile_graph(module, name)


def _min_cut(module: GraphModule, count: int):
    from .partition import min_cut_rematerialization_partition
    found = min_cut_rematerialization_partition(module, count)
    return found[0], found[1]


def compile(model=None, *, fullgraph: bool = False, dynamic=None, backend="native", mode=None, options=None,
            disable: bool = False):
    """Compile a function: one native call per pass, differentiable to any order.

    `backend` is "native" (C), "numpy" (the captured graph on NumPy) or a function from a GraphModule and
    example inputs to a callable.
    """
    if model is None:
        return functools.partial(compile, backend=backend, mode=mode, options=options, disable=disable)
    if disable:
        return model
    if not callable(model):
        raise errors.ArgumentError(f"compile() wants a function, got {type(model).__name__}")
    return Compiled(model, *_backend(backend), _min_cut, all_decompositions())


def _backend(backend):
    if backend in ("native", "inductor", None):
        return native, native
    if backend in ("numpy", "eager", "aot_eager"):
        return interpreted, interpreted
    if callable(backend):
        def run(module, name):
            return boxed(backend(module, examples(module)))
        return run, run
    raise errors.CompileError(f"compile(): unknown backend {backend!r}; known are 'native', 'numpy', or a function")


def examples(module: GraphModule) -> list:
    """Fake inputs of a graph."""
    return [n.meta["val"] for n in module.graph.nodes if n.op == "placeholder"]


def interpreted(module: GraphModule, name: str):
    """Run a graph operator by operator on NumPy."""
    return boxed(module)


def boxed(function):
    """A function of tensors as a function of raw arrays."""
    from ..autograd.grad_mode import no_grad
    from ..core.handle import make

    def run(*arrays):
        handles = [make(a) for a in arrays]
        with no_grad():
            out = function(handles) if getattr(function, "_boxed_call", False) else function(*handles)
        return tuple(o._data if isinstance(o, Tensor) else o for o in out)
    return run


def nop(module, example_inputs=None):
    """A compiler that does nothing."""
    return module


def make_boxed_func(function):
    """A function that takes one list of arguments."""
    def run(args):
        return function(*args)
    run._boxed_call = True
    return run


def make_boxed_compiler(compiler):
    """A compiler whose results take one list of arguments."""
    @functools.wraps(compiler)
    def run(module, example_inputs):
        return make_boxed_func(compiler(module, example_inputs))
    return run


def aot_function(fn, fw_compiler, bw_compiler=None, partition_fn=None, decompositions=None, num_params_buffers=0,
                 keep_inference_input_mutations: bool = False, inference_compiler=None, *, dynamic: bool = False):
    """Capture `fn` into forward and backward graphs and hand them to the user's compilers."""
    from .partition import default_partition

    def adapted(compiler):
        return lambda module, name: boxed(compiler(module, examples(module)))

    def cut(module, count):
        found = (partition_fn or default_partition)(module, count)
        return found[0], found[1]
    from ..fx.make_fx import _overload
    table = {_overload(k): v for k, v in (decompositions or {}).items()}
    return Compiled(fn, adapted(fw_compiler), adapted(bw_compiler or fw_compiler), cut, table)
