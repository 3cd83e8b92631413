"""Classes for passes and partitioners of one's own, with a name for caches: `uuid()`.

An object of `CustomPartitionerFn` is a partitioner wherever one is asked for: as `partition_fn` of
`aot_function`, or for `compile` as `_inductor.config.custom_partitioner_fn`.
"""

from __future__ import annotations

import functools
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from ..graph.graph import Graph
from ..graph.graph_module import GraphModule


class CustomPassBase(ABC):
    """What all of them say: which implementation this is."""

    @abstractmethod
    def uuid(self) -> Any | None:
        """What tells this implementation from others; None: do not cache what it made."""


class CustomGraphPass(CustomPassBase):
    """A pass that changes a graph in place."""

    @abstractmethod
    def __call__(self, graph: Graph) -> None: ...


class CustomGraphModulePass(CustomPassBase):
    """A pass that changes a module of a graph in place."""

    @abstractmethod
    def __call__(self, gm: GraphModule) -> None: ...


class CustomInferenceAwareGraphPass(CustomGraphPass):
    """A pass that is told whether the graph belongs to a program without a backward."""

    @abstractmethod
    def __call__(self, graph: Graph, is_inference: bool) -> None: ...


class CustomSchedulerPass(CustomPassBase):
    """A pass over the kernels of a program, a list in the order in which they run."""

    @abstractmethod
    def __call__(self, nodes: list) -> list: ...


class CustomRuntimeEstimator(CustomPassBase):
    """How long a node takes, in milliseconds."""

    @abstractmethod
    def __call__(self, node: Any) -> float: ...


class CustomPartitionerFn(CustomPassBase):
    """A partitioner: a joint graph becomes a pair, forward and backward."""

    @abstractmethod
    def __call__(self, gm: GraphModule, joint_inputs: Sequence[object],
                 **kwargs: Any) -> tuple[GraphModule, GraphModule]: ...


CustomPartitionerFnType = CustomPartitionerFn | None
CustomGraphPassCallable = CustomGraphPass | Callable[[Graph], None]
CustomGraphPassType = (CustomGraphPassCallable | list[CustomGraphPassCallable]
                       | tuple[CustomGraphPassCallable, ...] | None)


def get_custom_graph_passes(custom_pass: Any) -> tuple:
    """The passes of a setting: none, one, or several."""
    if custom_pass is None:
        return ()
    return tuple(custom_pass) if isinstance(custom_pass, (list, tuple)) else (custom_pass,)


@functools.lru_cache(1)
def get_hash_for_files(paths: tuple[str, ...], extra: str = "") -> bytes:
    """A digest of the contents of files: a `uuid` for what is written in them."""
    digest = hashlib.sha256(extra.encode())
    for path in paths:
        with open(path, "rb") as file:
            digest.update(file.read())
    return digest.digest()
