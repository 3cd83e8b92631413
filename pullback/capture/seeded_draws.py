"""Draws as functions of a seed and an offset, in graphs that follow PyTorch's convention.

With `config.functionalize_rng_ops` a graph of `aot_function` draws nothing from the generator that
all share: each pass has two inputs more, a seed and a base offset, each draw says at which offset
it is, and the last result is the offset behind them.  So a draw can be made again, wherever a
partitioner wants it, and is the same.  At run time a pass that draws takes its seed from the
default generator, so that `manual_seed` and `set_rng_state` decide on all of its numbers.

Draws from generators that a program has made itself stay what they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..array.fake import Fake
from ..array.generator import Generator
from ..array.random import default_generator
from ..core.handle import Tensor, make
from ..core.overload import overload
from ..cut.prepare import drawn, draws_of_graph, target
from ..graph.graph import Graph
from ..graph.make_fx import fake_of
from ..graph.node import Node

_WORDS = (1 << 64) - 1


@target
def run_with_seed_and_offset(seed: Any, offset: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
    """What an operator draws in the place `offset` of the numbers that follow from a seed."""
    if any(type(getattr(t, "_payload", None)) is Fake for t in (seed, offset)):
        return op(*args, **kwargs)  # the shapes are the same
    generator = Generator().manual_seed(mixed(int(seed), int(offset)))
    with default_generator.lock:
        present = default_generator.get_state()
        try:
            default_generator.set_state(generator.get_state())
            return drawn(op, args, kwargs)
        finally:
            default_generator.set_state(present)


run_with_seed_and_offset.__module__ = "torch.ops.higher_order"  # as such calls print


def mixed(seed: int, offset: int) -> int:
    """A seed for one place: neighbours have nothing in common (splitmix64)."""
    z = seed + (offset + 1) * 0x9E3779B97F4A7C15 & _WORDS
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _WORDS
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _WORDS
    return z ^ z >> 31


class SeededDraws:
    """The inputs of a graph that stand for random numbers, those of the forward before tangents.

    `ends` are the offsets behind the draws of each pass, `count` how many draws it has; `made` maps
    draws from the generator to those by a seed.
    """

    def __init__(self, graph: Graph, passes: tuple[str, ...]):
        self.graph, self.count, self.ends = graph, dict.fromkeys(passes, 0), {}
        self.made: dict[Node, Node] = {}
        self.given = {part: self._inputs(part) for part in passes}
        for node in draws_of_graph(graph):
            late = node.meta.get("partitioner_tag") == "is_backward"
            self._replace(node, passes[-1] if late else passes[0])
        for part in passes:
            self.ends[part] = self._at(part)

    def _inputs(self, part: str) -> list[Node]:
        """Seed and base offset of a pass, behind its other inputs."""
        before = [n for n in self.graph.find_nodes(op="placeholder")
                  if part == "bwd" or "tangents" not in n.name]
        place = self.graph.inserting_after(before[-1]) if before else (
            self.graph.inserting_before(next(iter(self.graph.nodes), None)))
        with place:
            seed = self.graph.placeholder(f"{part}_seed_1")
        with self.graph.inserting_after(seed):
            offset = self.graph.placeholder(f"{part}_base_offset_1")
        for node in (seed, offset):
            node.meta["val"] = fake_of(_number(0))
        return [seed, offset]

    def _at(self, part: str) -> Node:
        """The offset of the next draw of a pass."""
        base, count = self.given[part][1], self.count[part]
        if not count:
            return base
        node = self.graph.call_function(overload("add.Tensor"), (base, count))
        node.meta["val"] = base.meta["val"]
        if part == "bwd":
            node.meta["partitioner_tag"] = "is_backward"
        return node

    def _replace(self, node: Node, part: str) -> None:
        with self.graph.inserting_before(node):
            new = self.graph.call_function(
                run_with_seed_and_offset,
                (self.given[part][0], self._at(part), node.target, *node.args), node.kwargs)
        new.meta = dict(node.meta)
        self.count[part] += 1
        self.made[node] = new
        node.replace_all_uses_with(new)
        self.graph.erase_node(node)

    def values(self, part: str) -> list[Tensor]:
        """Seed and base offset for one run of a pass."""
        seed = default_generator.initial_seed()
        if self.count[part]:
            with default_generator.lock:
                seed = int(default_generator.draw64(1)[0])
        return [_number(seed & _WORDS >> 1), _number(0)]


def _number(value: int) -> Tensor:
    return make(np.array(value, np.int64))
