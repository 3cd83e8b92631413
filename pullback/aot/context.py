"""Which graph is being compiled: names for compilers that log or store what they get."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ..core.settings import Settings

config = Settings(
    "aot.config", "Settings of ahead-of-time compilation.",
    # of backward graphs: "same_as_forward", "off", or arguments of autocast, one dict for each
    backward_pass_autocast="same_as_forward",
    debug_assert=False,  # check at every call what a program was compiled for
    functionalize_rng_ops=False,  # of CUDA's draws in PyTorch; exports refuse it, as there
    saved_tensors_hooks_filtering_mode="donated",  # for hooks that are graphs: see packing.py
    unlift_effect_tokens=False,  # do graphs make the tokens of effects, instead of taking them?
    activation_memory_budget=1.0,  # of min-cut partitions: from 0, least memory, to 1, least work
)

_names: list[str] = []
_model = "model"
_count = 0  # graphs compiled so far
_programs = 0  # functions compiled so far


def next_program() -> int:
    """The number of a function that is about to be compiled."""
    global _programs
    _programs += 1
    return _programs - 1


@contextlib.contextmanager
def compiling(program: int, part: str) -> Iterator[None]:
    """A graph of a program is being compiled."""
    global _names, _count
    before, _names = _names, [f"{program}_{part}"]
    try:
        yield
    finally:
        _names = before
        _count += 1


def set_model_name(name: str) -> None:
    """The name that graphs begin with."""
    global _model
    _model = name


def get_aot_compilation_context() -> tuple[list[str], str, int]:
    """The graph being compiled (`["0_forward"]`), the model's name, graphs compiled before."""
    return list(_names), _model, _count


def get_aot_graph_name() -> str:
    """All of that as one name, for a file for instance."""
    return f"{_model}__{'_'.join(_names)}_{_count}"


get_graph_being_compiled = get_aot_graph_name
