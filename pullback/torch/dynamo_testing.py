"""Backends that count and keep what `compile` gives them, and helpers for comparing printed graphs.

PyTorch has them in `torch._dynamo.testing`; tests of programs use them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ..compile.backends import AotAutograd, lookup_backend
from ..core.handle import Tensor
from ..graph.graph_module import GraphModule
from ..random_api import manual_seed
from ..table.packets import ops
from ..testing.compare import assert_close

__all__ = [
    "AotEagerAndRecordGraphs", "CompileCounter", "CompileCounterWithBackend",
    "EagerAndRecordGraphs", "InductorAndRecordGraphs", "clone_me", "normalize_gm", "rand_strided",
    "reduce_to_scalar_loss", "remove_optimized_module_prefix", "remove_trailing_space",
    "requires_bwd_pass", "reset_rng_state", "same", "strip_comment",
]


class CompileCounter:
    """A backend that runs graphs as they are: `frame_count` of them, `op_count` calls in all."""

    def __init__(self) -> None:
        self.clear()

    def __call__(self, gm: GraphModule, example_inputs: list) -> Callable:
        self._count(gm)
        return gm.forward

    def _count(self, gm: GraphModule) -> None:
        self.frame_count += 1
        self.op_count += sum("call" in node.op for node in gm.graph.nodes)

    def clear(self) -> None:
        """Begin anew."""
        self.frame_count = self.op_count = 0


class CompileCounterWithBackend(CompileCounter):
    """The same for a backend with a name; the graphs are kept."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        super().__init__()

    def __call__(self, gm: GraphModule, example_inputs: list) -> Callable:
        self._count(gm)
        self.graphs.append(gm)
        return lookup_backend(self.backend)(gm, example_inputs)

    def clear(self) -> None:
        """Begin anew."""
        super().clear()
        self.graphs: list[GraphModule] = []


class EagerAndRecordGraphs:
    """A backend that runs graphs as they are, and keeps them."""

    def __init__(self) -> None:
        self.graphs: list[GraphModule] = []

    def __call__(self, gm: GraphModule, example_inputs: list) -> Callable:
        self.graphs.append(gm)
        return gm.forward


class AotEagerAndRecordGraphs(AotAutograd):
    """A backend that differentiates first, runs graphs as they are, and keeps them.

    `graphs` has one for each program, that of its forward: there is none that comes before.
    """

    def __init__(self) -> None:
        self.graphs: list[GraphModule] = []
        self.fw_graphs: list[GraphModule] = []
        self.bw_graphs: list[GraphModule] = []

        def forward(gm: GraphModule, example_inputs: list) -> Callable:
            self.graphs.append(gm)
            self.fw_graphs.append(gm)
            return gm.forward

        def backward(gm: GraphModule, example_inputs: list) -> Callable:
            self.bw_graphs.append(gm)
            return gm.forward

        super().__init__(fw_compiler=forward, bw_compiler=backward)


class InductorAndRecordGraphs:
    """A backend that makes native code, and keeps the graphs that it is made of."""

    def __init__(self) -> None:
        self.graphs: list[GraphModule] = []
        self.inductor_graphs: list[GraphModule] = []

    def __call__(self, gm: GraphModule, example_inputs: list) -> Callable:
        self.graphs.append(gm)
        self.inductor_graphs.append(gm)
        return lookup_backend("native")(gm, example_inputs)


# printed graphs


def strip_comment(code: str) -> str:
    """Code without lines that are comments: these name files."""
    return "\n".join(line for line in code.split("\n") if not line.lstrip(" ").startswith("#"))


def remove_trailing_space(code: str) -> str:
    """Code without blanks at the ends of lines."""
    return "\n".join(line.rstrip() for line in code.split("\n"))


def normalize_gm(gm_str: str) -> str:
    """A printed graph for comparison: no comments, no trailing blanks, no two empty lines."""
    return re.sub(r"\n{3,}", "\n\n", remove_trailing_space(strip_comment(gm_str)))


# values


def clone_me(x: Tensor | None) -> Tensor | None:
    """A copy without history that requires grad as the tensor does."""
    return None if x is None else x.detach().clone().requires_grad_(x.requires_grad)


def remove_optimized_module_prefix(name: str) -> str:
    """The name of a parameter in the module that was compiled."""
    return re.sub(r"^_orig_mod[.]", "", name)


def requires_bwd_pass(out: Any) -> bool:
    """Is there a tensor with a gradient among results?"""
    if isinstance(out, Tensor):
        return out.requires_grad
    return isinstance(out, (list, tuple)) and any(map(requires_bwd_pass, out))


def reduce_to_scalar_loss(out: Any) -> Any:
    """Some number of results whose gradient reaches all of them."""
    if isinstance(out, Tensor):
        return out.sum() / out.numel()
    if isinstance(out, (list, tuple)):
        return sum(reduce_to_scalar_loss(x) for x in out) / len(out)
    if isinstance(out, dict):
        return sum(reduce_to_scalar_loss(x) for x in out.values()) / len(out)
    raise NotImplementedError(f"Don't know how to reduce {type(out)}")


def rand_strided(size: Sequence[int], stride: Sequence[int], dtype: Any = None, device: Any = "cpu",
                 extra_size: int = 0) -> Tensor:
    """Random values in memory with given strides."""
    needed = sum((n - 1) * s for n, s in zip(size, stride)) + 1 + extra_size
    plain = dtype is None or dtype.is_floating_point or dtype.is_complex
    buffer = (ops.randn([needed], dtype=dtype, device=device) if plain
              else ops.zeros([needed], dtype=dtype, device=device))
    return buffer.as_strided(list(size), list(stride))


def reset_rng_state(use_xla: bool = False) -> None:
    """The same random numbers from here on."""
    manual_seed(1337)


def same(ref: Any, res: Any, tol: float = 1e-4, equal_nan: bool = False, **ignored: Any) -> bool:
    """Are two results the same, but for rounding?"""
    try:
        assert_close(res, ref, rtol=tol, atol=tol, equal_nan=equal_nan, check_dtype=False,
                     check_stride=False)
    except AssertionError:
        return False
    return True
