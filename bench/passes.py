"""Does every pass over graphs take linear time?  `python -m bench.passes [names] [--nodes n]`.

Each pass runs on graphs with n and with 4 n nodes of several forms: a chain, a wide graph (many
values from one input, all of them results), a sum of many terms, and a chain that keeps reading its
input. Printed are seconds of the processor for both, and their ratio: 4 where time is linear. It
fails where a ratio is above 6, or where something recurses: all run with little room on the stack.
The partitioner for users' backends is only shown: it compares groups that cannot be joined.
"""

from __future__ import annotations

import argparse
import copy
import gc
import io
import pickle
import sys
import time
from collections.abc import Callable

NODES = 2_000
MOST = 6.0
STACK = 150  # frames of Python beyond those that are there


def forms(torch) -> dict[str, Callable[[int], Callable]]:
    """Name -> a function with about so many operators."""

    def chain(n):
        def run(x):
            for _ in range(n // 2):
                x = torch.sin(x) * 0.5
            return x
        return run

    def wide(n):
        return lambda x: [x * float(k + 2) for k in range(n)]

    def terms(n):
        return lambda x: sum([x * float(k + 2) for k in range(n // 2)], x)

    def ladder(n):
        def run(x):
            y = x
            for _ in range(n // 2):
                y = torch.tanh(y) + x
            return y
        return run

    return {"chain": chain, "wide": wide, "terms": terms, "ladder": ladder}


def scalar(torch, function: Callable) -> Callable:
    """The same with one number as its result."""
    def run(x):
        out = function(x)
        if isinstance(out, list):
            return torch.stack(out).sum()
        return out.sum()
    return run


PASSES: dict[str, Callable] = {}


def on(kind: str) -> Callable:
    """Marks `run(torch, thing, x)` as a pass on functions, on graphs, or on joint graphs."""
    def mark(function: Callable) -> Callable:
        function.kind = kind
        PASSES[function.__name__.replace("_", " ").strip()] = function
        return function
    return mark


# On functions -------------------------------------------------------------------------------------


@on("function")
def backward(torch, f, x):
    f = scalar(torch, f)
    loss = f(x)
    loss.backward()
    del loss
    held = f(x)  # a tape that was not used goes away, too
    del held


@on("function")
def second_derivative(torch, f, x):
    (first,) = torch.autograd.grad(scalar(torch, f)(x * x), x, create_graph=True)
    assert torch.autograd.grad(first.sum(), x)


@on("function")
def vmap(torch, f, x):
    torch.func.vmap(f)(x)


@on("function")
def jvp(torch, f, x):
    torch.func.jvp(f, (x,), (torch.ones_like(x),))


@on("function")
def grad(torch, f, x):
    torch.func.grad(scalar(torch, f))(x)


@on("function")
def capture(torch, f, x):
    torch.make_fx(f)(x)


@on("function")
def capture_with_sizes(torch, f, x):
    torch.make_fx(f, tracing_mode="symbolic")(x)


@on("function")
def symbolic_trace(torch, f, x):
    torch.fx.symbolic_trace(f)


@on("function")
def joint_capture(torch, f, x):
    joint_graph(torch, f, x)


@on("function")
def export(torch, f, x):
    exported(torch, f, x)


# On graphs ----------------------------------------------------------------------------------------


@on("graph")
def call(torch, graph, x):
    graph(x)


@on("graph")
def capture_again(torch, graph, x):
    torch.make_fx(graph)(x)


@on("graph")
def interpreter(torch, graph, x):
    torch.fx.Interpreter(graph).run(x)


@on("graph")
def transformer(torch, graph, x):
    torch.fx.Transformer(graph).transform()


@on("graph")
def source(torch, graph, x):
    graph.recompile()
    assert graph.code


@on("graph")
def readable(torch, graph, x):
    assert str(graph.graph) and graph.print_readable(print_output=False)


@on("graph")
def pickled(torch, graph, x):
    pickle.loads(pickle.dumps(graph))


@on("graph")
def copied(torch, graph, x):
    copy.deepcopy(graph)
    copy.copy(graph)


@on("graph")
def dead_code(torch, graph, x):
    graph.graph.eliminate_dead_code()


@on("graph")
def all_dead(torch, graph, x):
    new = copy.deepcopy(graph)
    (given,) = (n for n in new.graph.nodes if n.op == "placeholder")
    new.graph.output_node().args = (given,)
    assert new.graph.eliminate_dead_code()


@on("graph")
def common_subexpressions(torch, graph, x):
    from pullback.fx.passes import eliminate_common_subexpressions

    eliminate_common_subexpressions(copy.deepcopy(graph.graph))


@on("graph")
def noops_and_constants(torch, graph, x):
    from pullback.fx.passes import fold_constants, remove_noops

    new = copy.deepcopy(graph)
    remove_noops(new.graph)
    fold_constants(new.graph, new)


@on("graph")
def lint(torch, graph, x):
    graph.graph.lint()


@on("graph")
def shapes(torch, graph, x):
    from pullback.fx.passes.shape_prop import ShapeProp

    ShapeProp(graph).propagate(x)


@on("graph")
def fake_shapes(torch, graph, x):
    from pullback.fx.passes.fake_tensor_prop import FakeTensorProp

    FakeTensorProp(graph).propagate(x)


@on("graph")
def sort(torch, graph, x):
    from pullback.fx.passes.order import stable_topological_sort

    stable_topological_sort(graph)


@on("graph")
def split(torch, graph, x):
    from pullback.fx.passes.split_module import split_module

    places = {node: k for k, node in enumerate(graph.graph.nodes)}
    part = max(len(places) // 8, 1)
    split_module(graph, graph, lambda node: places[node] // part)


@on("graph")
def partitioner(torch, graph, x):
    from pullback.fx.passes.partitioner import CapabilityBasedPartitioner, create_op_support

    names = {node.name for node in list(graph.graph.nodes)[::2]}
    support = create_op_support(lambda modules, node: node.name in names)
    CapabilityBasedPartitioner(
        graph, support, allows_single_node_partition=True).propose_partitions()


@on("graph")
def replaced_pattern(torch, graph, x):
    from pullback.fx.subgraph_rewriter import replace_pattern

    aten = torch.ops.aten
    replace_pattern(copy.deepcopy(graph), lambda a: aten.mul.Tensor(a, 0.5),
                    lambda a: aten.div.Tensor(a, 2.0))


@on("graph")
def in_place(torch, graph, x):
    from pullback.fx.passes.reinplace import reinplace

    reinplace(copy.deepcopy(graph), x.detach())


@on("graph")
def drawn(torch, graph, x):
    from pullback.fx.passes.graph_drawer import FxGraphDrawer

    assert str(FxGraphDrawer(graph, "graph").get_dot_graph())


# On joint graphs ----------------------------------------------------------------------------------


def joint_graph(torch, f, x):
    """Forward and backward in one graph, captured by the compiler."""
    made = torch.compile(scalar(torch, f), backend="numpy", options={"fuse_backward": False})
    made(x)
    (program,) = made.programs.values()
    return program.joint.module


@on("joint")
def minimum_cut(torch, joint, x):
    from pullback.cut.partition import min_cut_rematerialization_partition

    min_cut_rematerialization_partition(joint, 1)


@on("joint")
def default_cut(torch, joint, x):
    from pullback.cut.partition import default_partition

    default_partition(joint, (), num_fwd_outputs=1)


@on("joint")
def least_memory(torch, joint, x):
    from pullback.cut.partition import min_cut_rematerialization_partition

    min_cut_rematerialization_partition(joint, 1, memory=0.0)


@on("joint")
def footprint(torch, joint, x):
    from pullback.cut.simulate import footprint

    footprint(joint)


@on("joint")
def lowered_and_written(torch, joint, x):
    from pullback.compile.lower import lower
    from pullback.compile.schedule import schedule
    from pullback.compile.unit import make_unit

    lowered = lower(joint)
    make_unit(lowered, schedule(lowered), "graph", 32)


# On exported programs -----------------------------------------------------------------------------


def exported(torch, f, x):
    """An exported program."""
    class Module(torch.nn.Module):
        def forward(self, x):
            return f(x)

    return torch.export.export(Module(), (x.detach(),))


@on("program")
def saved_and_loaded(torch, program, x):
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    torch.export.load(file)


@on("program")
def decomposed(torch, program, x):
    program.run_decompositions()


@on("program")
def unlifted(torch, program, x):
    program.module()


@on("program")
def unflattened(torch, program, x):
    torch.export.unflatten(program)


@on("program")
def printed(torch, program, x):
    assert str(program)


MAKE = {
    "function": lambda torch, f, x: f,
    "graph": lambda torch, f, x: torch.make_fx(f)(x.detach()),
    "joint": joint_graph,
    "program": exported,
}


def seconds(torch, run: Callable, form: Callable, n: int, least: int = 1) -> float:
    """Time of the processor of one pass, the best of some, with little room on the stack."""
    x = torch.randn(4, requires_grad=True)
    thing = MAKE[run.kind](torch, form(n), x)
    limit, taken = sys.getrecursionlimit(), []
    for _ in range(least):
        gc.collect()
        gc.freeze()
        sys.setrecursionlimit(depth() + STACK)
        begun = time.process_time()
        try:
            run(torch, thing, x)
        finally:
            taken.append(time.process_time() - begun)
            sys.setrecursionlimit(limit)
            gc.unfreeze()
    return min(taken)


def depth() -> int:
    """How many frames there are."""
    frame, n = sys._getframe(), 0
    while frame is not None:
        frame, n = frame.f_back, n + 1
    return n


def main() -> None:
    """Print a line for every pass and form; fail where one is not linear."""
    import pullback as torch

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--forms", nargs="*")
    options = parser.parse_args()
    n, bad = options.nodes, []
    print(f"{'':28}{'':8}{f'{n:,} nodes':>14}{f'{4 * n:,} nodes':>14}{'ratio':>8}")
    for name in options.names or PASSES:
        for form, make in forms(torch).items():
            if options.forms and form not in options.forms:
                continue
            title = f"{name:28}{form:8}"
            try:
                seconds(torch, PASSES[name], make, 64)
                few, many = (seconds(torch, PASSES[name], make, k, 2) for k in (n, 4 * n))
            except Exception as error:
                bad.append(f"{name}, {form}")
                print(f"{title}  {type(error).__name__}: {str(error).splitlines()[:1]}", flush=True)
                continue
            ratio = many / max(few, 1e-3)
            if ratio > MOST and name != "partitioner":
                bad.append(f"{name}, {form}")
            print(f"{title}{few:13.3f}s{many:13.3f}s{ratio:8.1f}", flush=True)
    if bad:
        raise SystemExit("not linear, or recursive: " + "; ".join(bad))


if __name__ == "__main__":
    main()
