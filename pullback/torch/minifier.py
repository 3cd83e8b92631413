"""`minifier`: the smallest graph, and inputs of it, that still fail.

A graph is made smaller in several ways, as long as the given test still says that it fails: it
ends earlier, it returns less, some of its steps are inputs with the values that they had, what
nobody uses goes.  Large pieces are tried first, then smaller ones.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..core.handle import Tensor
from ..graph.errors import GraphError
from ..graph.graph import Graph
from ..graph.graph_module import GraphModule
from ..graph.interpreter import Interpreter
from ..graph.node import Node, map_arg
from ..pytree import tree_map


def dump_state(fx_g: GraphModule, inps: Sequence[Any]) -> None:
    """Print a graph and the inputs that it failed with, as a program."""
    made = [f"torch.zeros({list(i.shape)}, dtype={i.dtype}, device={str(i.device)!r})"
            if isinstance(i, Tensor) else repr(i) for i in inps]
    print(f"# fails with {len(fx_g.graph.nodes)} nodes\ninps = [{', '.join(made)}]\n{fx_g.code}")


def get_placeholders(graph: Graph) -> list[Node]:
    """The inputs of a graph."""
    return graph.find_nodes(op="placeholder")


def get_outputs(graph: Graph) -> list[Node]:
    """The nodes that a graph returns."""
    found: list[Node] = []
    map_arg(graph.output_node().args[0], found.append)
    return found


def minifier(
    fail_f: GraphModule, inps: Sequence[Any],
    module_fails: Callable[[GraphModule, Sequence[Any]], bool],
    dump_state: Callable[[GraphModule, Sequence[Any]], None] = dump_state, *,
    save_dir: str | None = None, offload_to_disk: bool = False, skip_offload: bool = False,
    skip_sanity: bool = False, max_granularity: int | None = None,
) -> tuple[GraphModule, list[Any]]:
    """The smallest graph and inputs for which `module_fails` is true.

    `dump_state` is called with every one that is smaller than those before.  With
    `offload_to_disk` values on the way are kept in files of `save_dir`, which `skip_offload` takes
    as they are.  `max_granularity`, a power of two, is the largest piece that is tried.
    """
    if max_granularity is not None and (
            max_granularity < 1 or max_granularity & (max_granularity - 1)):
        raise GraphError(f"minifier: max_granularity must be a power of two, not {max_granularity}")
    if offload_to_disk and save_dir is None:
        raise GraphError("minifier: offload_to_disk needs a save_dir to put values in")
    store = _Files(save_dir, skip_offload) if offload_to_disk else None
    search = _Search(fail_f, list(inps), module_fails, dump_state, store)
    if not skip_sanity and not search.fails(search.graph, search.inps):
        raise GraphError("minifier: the graph does not fail with these inputs: module_fails() said "
                         "no before anything was made smaller")
    search.run(max_granularity)
    return search.module(search.graph), search.inps


class _Files:
    """Values of nodes in files."""

    def __init__(self, folder: Any, keep: bool) -> None:
        self.folder, self.keep = Path(folder), keep
        self.folder.mkdir(parents=True, exist_ok=True)

    def put(self, name: str, value: Any) -> Callable[[], Any]:
        path = self.folder / f"{name}.pkl"
        if not (self.keep and path.exists()):
            path.write_bytes(pickle.dumps(value))
        return lambda: pickle.loads(path.read_bytes())


class _Values(Interpreter):
    """Notes what every node gives."""

    def __init__(self, module: GraphModule, store: _Files | None) -> None:
        super().__init__(module)
        self.store, self.found = store, {}

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        if isinstance(result, Tensor):
            kept = result.clone()  # it may be written to later
            self.found[n.name] = (lambda: kept) if self.store is None else (
                self.store.put(n.name, kept))
        return result


class _Search:
    """The smallest graph so far, with its inputs."""

    def __init__(self, module: GraphModule, inps: list, test: Callable, dump: Callable,
                 store: _Files | None) -> None:
        self.whole, self.test, self.dump, self.store = module, test, dump, store
        self.graph, self.inps = copy.deepcopy(module.graph), inps

    def module(self, graph: Graph) -> GraphModule:
        return GraphModule(self.whole, graph)

    def fails(self, graph: Graph, inps: list) -> bool:
        graph = copy.deepcopy(graph)
        graph.lint()
        return bool(self.test(self.module(graph), _copied(inps)))

    def run(self, most: int | None) -> None:
        size = 1 << (max(len(self.graph.nodes), 1).bit_length() - 1)
        size = size if most is None else min(size, most)
        while size:
            ways = (self._shorter, self._fewer_results, self._more_inputs)
            if sum(self._try(way(size)) for way in ways):  # each has its turn
                size = max(size, 1 << (len(self.graph.nodes).bit_length() - 2))
                size = size if most is None else min(size, most)
            else:
                size //= 2

    def _try(self, attempts: Iterator[tuple[Graph, list]]) -> bool:
        """Take the first of some smaller graphs that fails, without what nobody uses."""
        for graph, inps in attempts:
            graph, inps = _swept(graph, inps)
            if _size(graph) < _size(self.graph) and self.fails(graph, inps):
                self.graph, self.inps = graph, inps
                self.dump(self.module(copy.deepcopy(graph)), inps)
                return True
        return False

    def _shorter(self, piece: int) -> Iterator[tuple[Graph, list]]:
        """Graphs that end at an earlier node."""
        for place in range(piece, len(self.graph.nodes) - 1, piece):
            graph = copy.deepcopy(self.graph)
            nodes = list(graph.nodes)
            if nodes[place - 1].op not in ("placeholder", "output"):
                output = nodes[-1]
                several = isinstance(output.args[0], (tuple, list))
                output.args = ((nodes[place - 1],) if several else nodes[place - 1],)
                yield graph, self.inps

    def _fewer_results(self, piece: int) -> Iterator[tuple[Graph, list]]:
        """Graphs that return less."""
        results = self.graph.output_node().args[0]
        if not isinstance(results, (tuple, list)) or len(results) < 2:
            return
        for start in range(0, len(results), piece):
            graph = copy.deepcopy(self.graph)
            output = graph.output_node()
            kept = [*output.args[0][:start], *output.args[0][start + piece:]]
            if kept:
                output.args = (tuple(kept),)
                yield graph, self.inps

    def _more_inputs(self, piece: int) -> Iterator[tuple[Graph, list]]:
        """Graphs in which some steps are inputs, with the values that they had."""
        watched = _Values(self.module(copy.deepcopy(self.graph)), self.store)
        watched.run(*_copied(self.inps))
        count = len(self.graph.nodes)
        for start in range(0, count, piece):
            graph = copy.deepcopy(self.graph)
            nodes = list(graph.nodes)
            inps = list(self.inps)
            last = next((n for n in reversed(nodes) if n.op == "placeholder"), graph._root)
            for node in nodes[start:start + piece]:
                if node.op in ("placeholder", "output") or node.name not in watched.found:
                    continue
                with graph.inserting_after(last):
                    last = graph.placeholder(node.name)
                node.replace_all_uses_with(last)
                inps.append(watched.found[node.name]())
            yield graph, inps


def _size(graph: Graph) -> tuple[int, int]:
    """What counts: steps first, then all nodes and results."""
    given = len(graph.find_nodes(op="placeholder"))
    return len(graph.nodes) - given, len(graph.nodes) + len(get_outputs(graph))


def _swept(graph: Graph, inps: list) -> tuple[Graph, list]:
    """Without what nobody uses, inputs included."""
    graph.eliminate_dead_code()
    pairs = list(zip(get_placeholders(graph), inps))
    for node, _ in pairs:
        if not node.users:
            graph.erase_node(node)
    return graph, [value for node, value in pairs if not node._erased]


def _copied(inps: list) -> list:
    """Inputs for one run, which may write to them."""
    return tree_map(lambda v: v.detach().clone().requires_grad_(v.requires_grad)
                    if isinstance(v, Tensor) else v, inps)


__all__ = ["dump_state", "get_outputs", "get_placeholders", "minifier"]
