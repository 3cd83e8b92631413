"""Seeds and generators of the random operators."""

from __future__ import annotations

import contextlib
import functools

from . import errors
from .array.device import Device
from .array.random import Generator, default_generator
from .core.handle import Tensor

__all__ = [
    "Generator",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "thread_safe_generator",
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
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Restore a state that `get_rng_state` gave."""
    default_generator.set_state(new_state)


class fork_rng:
    """Restores the generator's state at the end of the `with` block or decorated function.

    `devices` are further devices whose generators to keep; the CPU's is always kept.
    """

    def __init__(self, devices=None, enabled: bool = True, _caller: str = "fork_rng",
                 _devices_kw: str = "devices", device_type: str = "cuda"):
        Device(device_type)  # refuses what is no device
        if enabled and devices is not None and list(devices):
            raise errors.DeviceError(errors.text(
                f"{_caller} was asked to keep the generators of {list(devices)} "
                f"({errors.user_line(2)}), but only the CPU has one",
                cure=f"leave {_devices_kw}= away"))
        self.enabled = enabled

    def __enter__(self) -> None:
        self.state = default_generator.get_state() if self.enabled else None

    def __exit__(self, *exc) -> None:
        if self.enabled:
            default_generator.set_state(self.state)

    def __call__(self, function):
        @functools.wraps(function)
        def run(*args, **kwargs):
            with fork_rng(enabled=self.enabled):
                return function(*args, **kwargs)

        return run


@contextlib.contextmanager
def thread_safe_generator():
    """The default generator, which locks itself for every array that it draws."""
    yield default_generator
