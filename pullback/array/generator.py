"""The random generator: PyTorch's CPU stream of bits, the 32-bit Mersenne twister.

A generator gives words of 32 and 64 bits and can be seeded, saved and restored.  What distributions
make of the words is in `random.py`; read that next.
"""

from __future__ import annotations

import operator
import os
import threading

import numpy as np

from ..core.events import RESTORES, SEEDS
from ..core.handle import Tensor, make
from ..threads.state import renewed
from ..threads.state import state as now
from .device import Device

_32 = np.array(32, np.uint64)  # an array, as shifting a small array by one is faster than by an int

# A saved state, field by field as PyTorch lays it out, so that states can be exchanged.
_STATE = np.dtype([
    ("seed", "<u8"), ("left", "<i4"), ("seeded", "<i4"), ("next", "<u8"), ("key", "<u8", 624),
    ("pad0", "<f8"), ("spare", "<f8"), ("pad1", "<f8"), ("has_spare", "<i4"), ("pad2", "u1", 12),
])  # fmt: skip


class Generator:
    """A stream of random numbers; the same seed gives the same numbers as PyTorch on a CPU."""

    def __init__(self, device: str | Device = "cpu") -> None:
        self.device = Device(device)
        self.lock = renewed(threading.RLock())  # held for a whole array: no interleaving
        self.spare: float | None = None  # second half of the last Box-Muller pair of `_pairs`
        self._seed = 67280421310721
        self._twister = None  # made on first use: importing numpy.random takes a while
        self._address: int | None = None  # of the twister's state, 0 if C cannot use it
        if now.mode:
            now.stack[now.mode].event(SEEDS, self)

    def manual_seed(self, seed: int) -> Generator:
        """Restart the stream from `seed`, any integer of 64 bits, signed or not."""
        if isinstance(seed, bool) or not hasattr(seed, "__index__"):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        seed = operator.index(seed)
        if not -(1 << 63) <= seed < 1 << 64:
            raise ValueError(f"Overflow when unpacking long long: the seed {seed} has over 64 bits")
        if now.mode:
            now.stack[now.mode].event(SEEDS, self)
        with self.lock:
            self._seed = seed & ((1 << 64) - 1)
            self.spare = None
            if self._twister is not None:
                self._start()
        return self

    def seed(self) -> int:
        """Restart the stream from a seed the operating system chooses, and return that seed."""
        return self.manual_seed(int.from_bytes(os.urandom(8), "little")).initial_seed()

    def initial_seed(self) -> int:
        """The seed this stream was last started from."""
        return self._seed

    def get_state(self) -> Tensor:
        """All there is to know about the stream: 5056 bytes (uint8) in PyTorch's layout."""
        state = np.zeros(1, _STATE)
        with self.lock:
            twister = (self._twister or self._start()).state["state"]
            key, position = twister["key"], twister["pos"]
            state["seed"], state["seeded"], state["key"] = self._seed, 1, key
            # A twister that was only just seeded has an untouched key, which starts with the seed.
            fresh = position == 624 and int(key[0]) == self._seed & 0xFFFFFFFF
            state["left"], state["next"] = 625 - position, 0 if fresh else position
            if self.spare is not None:
                state["spare"], state["has_spare"] = self.spare, 1
        return make(state.view(np.uint8))

    def set_state(self, new_state: Tensor | np.ndarray) -> Generator:
        """Continue from what `get_state` returned."""
        if isinstance(new_state, Tensor):
            new_state = new_state._payload
        state = np.ascontiguousarray(new_state).reshape(-1)
        if state.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if state.size != _STATE.itemsize:
            raise RuntimeError(f"Expected a CPUGeneratorImplState of size {_STATE.itemsize} but "
                               f"found the input RNG state size to be {state.size}")
        fields = state.view(_STATE)[0]
        if fields["seeded"] != 1 or not 1 <= fields["left"] <= 624 or fields["next"] > 624:
            raise RuntimeError("Invalid mt19937 state")
        if now.mode:
            now.stack[now.mode].event(RESTORES, self, state)
        key, position = fields["key"].astype(np.uint32), 625 - int(fields["left"])
        with self.lock:
            self._seed = int(fields["seed"])
            self.spare = float(fields["spare"]) if fields["has_spare"] else None
            twister = self._twister or self._start()
            twister.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": position}}
        return self

    def clone_state(self) -> Generator:
        """Another generator that will draw what this one would have drawn."""
        return Generator(self.device).set_state(self.get_state())

    graphsafe_get_state = clone_state

    def graphsafe_set_state(self, state: Generator) -> Generator:
        """Continue where another generator is."""
        return self.set_state(state.get_state())

    def __getstate__(self) -> tuple:  # for copy and pickle, as a lock cannot be copied
        return self.device, self.get_state()._payload

    def __setstate__(self, saved: tuple) -> None:
        self.__init__(saved[0])
        self.set_state(saved[1])

    by_c = None  # C's version of `draw32`, where it has been loaded: `compile/fills.py`

    def draw32(self, count: int) -> np.ndarray:
        """The next `count` words of 32 bits, in a uint64 array that the caller may overwrite."""
        if count > 1024 and Generator.by_c is not None and self.address():
            out = np.empty(count, np.uint64)
            Generator.by_c(self.address(), out.ctypes.data, count)
            return out
        return (self._twister or self._start()).random_raw(count)

    def draw64(self, count: int) -> np.ndarray:
        """The next `count` words of 64 bits, each made of two draws, the high half first."""
        words = self.draw32(2 * count)
        high = words[0::2] << _32
        high |= words[1::2]
        return high

    def address(self) -> int:
        """Where the twister's 624 words and its position lie, for C; 0 if that is not sure."""
        if self._address is None:
            import ctypes

            twister = self._twister or self._start()
            found, state = twister.ctypes.state_address, twister.state["state"]
            words = (ctypes.c_uint32 * 624).from_address(found)
            position = ctypes.c_int.from_address(found + 4 * 624).value
            same = position == state["pos"] and list(words) == state["key"].tolist()
            self._address = found if same else 0
        return self._address

    def _start(self) -> np.random.MT19937:
        """Seed the twister the classic way, which uses 32 bits only, and return it."""
        if self._twister is None:
            self._twister = np.random.MT19937(0)
        np.random.RandomState(self._twister).seed(self._seed & 0xFFFFFFFF)
        return self._twister


default_generator = Generator()
