"""Points that fill a cube more evenly than random ones: `SobolEngine`.

The numbers of Joe and Kuo that span the sequence come from SciPy; the points, and what scrambling
draws from the generator, are those of PyTorch.
"""

from __future__ import annotations

import numpy as np

from .array.dtype import DType, default
from .array.random import randint
from .core.handle import Tensor, make
from .random_api import Generator, default_generator

__all__ = ["SobolEngine"]


class SobolEngine:
    """Points of the Sobol sequence in a unit cube, scrambled on demand."""

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None):
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError("Supported range of dimensionality for SobolEngine is "
                             f"[1, {self.MAXDIM}]")
        from scipy.stats._sobol import _initialize_v

        self.seed, self.scramble, self.dimension = seed, scramble, dimension
        self._bits = np.zeros((dimension, self.MAXBIT), np.uint32)
        _initialize_v(self._bits, dim=dimension, bits=self.MAXBIT)
        self._shift = np.zeros(dimension, np.int64)
        self._bits = self._bits.astype(np.int64)
        if scramble:
            self._scramble()
        self.num_generated = 0

    @property
    def sobolstate(self) -> Tensor:
        """The numbers that span the sequence, one row for each coordinate."""
        return make(self._bits.copy())

    @property
    def shift(self) -> Tensor:
        """The first point, in units of 2**-30."""
        return make(self._shift.copy())

    @property
    def quasi(self) -> Tensor:
        """The last point that was drawn, in units of 2**-30."""
        return make(self._points(max(self.num_generated - 1, 0), 1)[0])

    def _scramble(self) -> None:
        """A random shift, and a random lower triangular matrix of bits for each coordinate."""
        gen = default_generator if self.seed is None else Generator().manual_seed(self.seed)
        bits, dims = self.MAXBIT, self.dimension
        self._shift = randint(gen, (dims, bits), 0, 2) @ (1 << np.arange(bits))
        lower = np.tril(randint(gen, (dims, bits, bits), 0, 2))
        lower[:, np.arange(bits), np.arange(bits)] = 1
        digits = self._bits[:, :, None] >> np.arange(bits - 1, -1, -1) & 1  # the highest first
        mixed = np.einsum("dpk,djk->djp", lower, digits) & 1
        self._bits = mixed @ (1 << np.arange(bits - 1, -1, -1))

    def _points(self, first: int, count: int) -> np.ndarray:
        """Some points of the sequence, by the bits of their Gray codes."""
        number = np.arange(first, first + count)
        code = number ^ number >> 1
        points = np.repeat(self._shift[None], count, 0)
        for bit in range(int(code.max(initial=0)).bit_length()):
            points ^= np.where((code >> bit & 1)[:, None], self._bits[:, bit], 0)
        return points

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """The next `n` points, one in each row."""
        if self.num_generated + n > 1 << self.MAXBIT:
            raise RuntimeError(f"the sequence has {1 << self.MAXBIT} points, and "
                               f"{self.num_generated + n} would have been drawn")
        points = self._points(self.num_generated, n)
        kind = (dtype or default()).np
        drawn = make(points.astype(kind) * kind.type(0.5**self.MAXBIT))
        self.num_generated += n
        if out is None:
            return drawn
        return out.resize_(drawn.shape).copy_(drawn)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """The next 2**m points; only full blocks are balanced."""
        total = self.num_generated + (1 << m)
        if total & (total - 1):
            raise ValueError(
                f"The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                "'SobolEngine.draw()' instead.")
        return self.draw(1 << m, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Begin again."""
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out `n` points."""
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        text = f"dimension={self.dimension}"
        if self.scramble:
            text += ", scramble=True"
        if self.seed is not None:
            text += f", seed={self.seed}"
        return f"{type(self).__name__}({text})"
