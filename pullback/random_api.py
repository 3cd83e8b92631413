"""Seeds and generators of the random operators."""

from __future__ import annotations

from .core.handle import Tensor, make
from .core.random import Generator, default_generator

__all__ = [
    "Generator",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


def manual_seed(seed: int) -> Generator:
    """Seed the default generator."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seed the default generator from the system's randomness."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed that the default generator was last given."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator as bytes."""
    return make(default_generator.get_state())


def set_rng_state(new_state: Tensor) -> None:
    """Restore a state that `get_rng_state` gave."""
    default_generator.set_state(new_state._data if isinstance(new_state, Tensor) else new_state)


class fork_rng:
    """Restores the generator's state on exit."""

    def __init__(self, devices=None, enabled: bool = True, **_):
        self.enabled = enabled

    def __enter__(self):
        self.state = default_generator.get_state() if self.enabled else None

    def __exit__(self, *exc):
        if self.enabled:
            default_generator.set_state(self.state)
