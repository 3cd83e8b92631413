"""Operators that draw from a generator.

What is drawn, and in which order, is decided in `array/random.py`, which follows PyTorch's CPU stream;
a new array is filled in row-major order, and a given one in the order of its memory. In-place
fills are derived from the functional entries here.
Under vmap the rules below draw different numbers for each example.  Read next: `rejection.py`,
`dropout.py`.
"""

from __future__ import annotations

import numpy as np

from ..array import dtype as dt
from ..array import random as rng
from ..array.dims import broadcast_shapes
from ..array.layout import memory_order, order_like, ordered
from ..core.op import Random
from ..errors import DTypeError
from ..table.packets import ops
from ..threads.state import state
from .batching import of_overload
from .create import LONG_OPTIONS, OPTIONS, checked_size, given, given_or_self, made_like
from .layout import in_front, pad_rank
from .pointwise import title


def source(generator):
    """The generator to draw from."""
    return rng.default_generator if generator is None else generator


def placed(xp, array):
    """A drawn array on the device of the kernel."""
    return array if xp.__name__ == "numpy" else xp.asarray(array)


def on_host(array):
    """A parameter array where the generator lives."""
    return array.get() if hasattr(array, "get") else array


def _float_only(dtype, name: str):
    """The NumPy dtype, if draws of this kind exist in it."""
    if dtype.category < 2:
        raise NotImplementedError(f"\"{name}\" not implemented for '{dtype.name}'")
    return dtype.np


def drawn(xp, self, draw, generator, *numbers, **options):
    """What a function of `array/random.py` draws for the elements of an array, one after the other
    as they lie in memory."""
    gen = source(generator)
    make = lambda shape: draw(gen, shape, self.dtype, *numbers, **options)
    return placed(xp, ordered(make, self.shape, memory_order(self)))


def _chances(gen, shape, dtype, p):
    return rng.bernoulli(gen, p, shape, dtype)


def _integers(gen, shape, dtype, low, high):
    return rng.randint(gen, shape, low, high, dtype)


# --- new tensors ----------------------------------------------------------------------------------


def _rand(xp, size, generator, dtype):
    dtype = dtype or dt.default()
    kind = _float_only(dtype, "check_uniform_bounds")
    return placed(xp, rng.uniform(source(generator), checked_size(size), kind, 0.0, 1.0))


def _randn(xp, size, generator, dtype, mean=0.0, std=1.0, blocks=True):
    dtype = dtype or dt.default()
    kind = _float_only(dtype, "normal_kernel_cpu")
    gen = source(generator)
    return placed(xp, rng.normal(gen, checked_size(size), kind, mean, std, blocks=blocks))


class rand(Random):
    """Numbers evenly spread over [0, 1)."""

    schema = f"rand(SymInt[] size, *, {OPTIONS}) -> Tensor"
    core = True
    shape = "tuple(size)"
    dtype = given(1)

    def run(xp, size, dtype, layout, device, pin_memory):
        return _rand(xp, size, None, dtype)

    def batch(n, batched, size, dtype, layout, device, pin_memory):
        return ops.rand((n, *size), dtype=dtype, device=device)

    samples = lambda s: [s((2, 3)), s(())]


class rand_generator(Random):
    """Numbers evenly spread over [0, 1), from a generator."""

    schema = f"rand.generator(SymInt[] size, *, Generator? generator, {OPTIONS}) -> Tensor"
    shape = "tuple(size)"
    dtype = given(2)

    def run(xp, size, generator, dtype, layout, device, pin_memory):
        return _rand(xp, size, generator, dtype)

    def batch(n, batched, size, generator, dtype, layout, device, pin_memory):
        return ops.rand((n, *size), generator=generator, dtype=dtype, device=device)


class randn(Random):
    """Standard normal numbers."""

    schema = f"randn(SymInt[] size, *, {OPTIONS}) -> Tensor"
    core = True
    shape = "tuple(size)"
    dtype = given(1)

    def run(xp, size, dtype, layout, device, pin_memory):
        return _randn(xp, size, None, dtype)

    def batch(n, batched, size, dtype, layout, device, pin_memory):
        return ops.randn((n, *size), dtype=dtype, device=device)

    samples = lambda s: [s((2, 3)), s((5, 5))]


class randn_generator(Random):
    """Standard normal numbers from a generator."""

    schema = f"randn.generator(SymInt[] size, *, Generator? generator, {OPTIONS}) -> Tensor"
    shape = "tuple(size)"
    dtype = given(2)

    def run(xp, size, generator, dtype, layout, device, pin_memory):
        return _randn(xp, size, generator, dtype)

    def batch(n, batched, size, generator, dtype, layout, device, pin_memory):
        return ops.randn((n, *size), generator=generator, dtype=dtype, device=device)


def _randint(xp, low, high, size, generator, dtype):
    kind = (dtype or dt.int64).np
    return placed(xp, rng.randint(source(generator), checked_size(size), low, high, kind))


class randint(Random):
    """Integers from 0 up to but not including `high`."""

    schema = f"randint(SymInt high, SymInt[] size, *, {LONG_OPTIONS}) -> Tensor"
    shape = "tuple(size)"

    def dtype(high, size, dtype, layout, device, pin_memory):
        return dtype or dt.int64

    def run(xp, high, size, dtype, layout, device, pin_memory):
        return _randint(xp, 0, high, size, None, dtype)

    def batch(n, batched, high, size, dtype, layout, device, pin_memory):
        return ops.randint(high, (n, *size), dtype=dtype, device=device)

    samples = lambda s: [s(10, (2, 3))]


class randint_low(Random):
    """Integers from `low` up to but not including `high`."""

    schema = f"randint.low(SymInt low, SymInt high, SymInt[] size, *, {LONG_OPTIONS}) -> Tensor"
    shape = "tuple(size)"

    def dtype(low, high, size, dtype, layout, device, pin_memory):
        return dtype or dt.int64

    def run(xp, low, high, size, dtype, layout, device, pin_memory):
        return _randint(xp, low, high, size, None, dtype)

    def batch(n, batched, low, high, size, dtype, layout, device, pin_memory):
        return ops.randint(low, high, (n, *size), dtype=dtype, device=device)

    samples = lambda s: [s(-5, 10, (2, 3))]


class randint_generator(Random):
    """Integers from 0 up to but not including `high`, from a generator."""

    schema = (
        f"randint.generator(SymInt high, SymInt[] size, *, Generator? generator, {LONG_OPTIONS})"
        " -> Tensor"
    )
    shape = "tuple(size)"

    def dtype(high, size, generator, dtype, layout, device, pin_memory):
        return dtype or dt.int64

    def run(xp, high, size, generator, dtype, layout, device, pin_memory):
        return _randint(xp, 0, high, size, generator, dtype)

    def batch(n, batched, high, size, generator, dtype, layout, device, pin_memory):
        return ops.randint(high, (n, *size), generator=generator, dtype=dtype, device=device)


class randint_low_generator(Random):
    """Integers from `low` up to but not including `high`, from a generator."""

    schema = (
        "randint.low_generator(SymInt low, SymInt high, SymInt[] size, *, Generator? generator, "
        f"{LONG_OPTIONS}) -> Tensor"
    )
    shape = "tuple(size)"

    def dtype(low, high, size, generator, dtype, layout, device, pin_memory):
        return dtype or dt.int64

    def run(xp, low, high, size, generator, dtype, layout, device, pin_memory):
        return _randint(xp, low, high, size, generator, dtype)

    def batch(n, batched, low, high, size, generator, dtype, layout, device, pin_memory):
        return ops.randint(low, high, (n, *size), generator=generator, dtype=dtype, device=device)


def _randperm(xp, n, generator, dtype):
    if n < 0:
        raise RuntimeError(f"n must be non-negative, got{n}")
    return placed(xp, rng.randperm(source(generator), n, (dtype or dt.int64).np))


class randperm(Random):
    """The numbers below n in random order."""

    schema = f"randperm(SymInt n, *, {LONG_OPTIONS}) -> Tensor"
    core = True
    shape = "(n,)"

    def dtype(n, dtype, layout, device, pin_memory):
        return dtype or dt.int64

    def run(xp, n, dtype, layout, device, pin_memory):
        return _randperm(xp, n, None, dtype)

    def batch(count, batched, n, dtype, layout, device, pin_memory):
        rows = [ops.randperm(n, dtype=dtype, device=device) for _ in range(count)]
        return ops.stack(rows)

    samples = lambda s: [s(5), s(0)]


class randperm_generator(Random):
    """The numbers below n in random order, from a generator."""

    schema = f"randperm.generator(SymInt n, *, Generator? generator, {LONG_OPTIONS}) -> Tensor"
    shape = "(n,)"

    def dtype(n, generator, dtype, layout, device, pin_memory):
        return dtype or dt.int64

    def run(xp, n, generator, dtype, layout, device, pin_memory):
        return _randperm(xp, n, generator, dtype)

    def batch(count, batched, n, generator, dtype, layout, device, pin_memory):
        options = {"generator": generator, "dtype": dtype, "device": device}
        return ops.stack([ops.randperm(n, **options) for _ in range(count)])


def _rand_like(xp, self, generator, dtype, memory_format):
    draw = lambda shape, _: _rand(xp, shape, generator, dtype or dt.of(self.dtype))
    return made_like(draw, self, dtype, memory_format)


def _randn_like(xp, self, generator, dtype, memory_format):
    dtype = dtype or dt.of(self.dtype)
    order = order_like(self, memory_format)
    draw = lambda shape: _randn(xp, shape, generator, dtype, blocks=order is None)
    return ordered(draw, self.shape, order)


def _randint_like(xp, self, low, high, generator, dtype, memory_format):
    draw = lambda shape, _: _randint(xp, low, high, shape, generator, dtype or dt.of(self.dtype))
    return made_like(draw, self, dtype, memory_format)


LIKE = f"{OPTIONS}, MemoryFormat? memory_format=None"


class RandomLike(Random):
    """Draws with the shape of another tensor."""

    by_shape = True
    memory_format = "self"
    method = False
    nondiff = ("self",)
    shape = "tuple(self.shape)"

    @of_overload
    def batch(ov, n, batched, self, *rest):
        return ov.call(in_front(self, batched[0], n), *rest[:-1], None)


class rand_like(RandomLike):
    """`rand` with the shape of another tensor."""

    schema = f"rand_like(Tensor self, *, {LIKE}) -> Tensor"
    dtype = given_or_self(1)

    def run(xp, self, dtype, layout, device, pin_memory, memory_format):
        return _rand_like(xp, self, None, dtype, memory_format)

    samples = lambda s: [s(s.real(2, 3))]


class rand_like_generator(RandomLike):
    """`rand` with the shape of another tensor, from a generator."""

    schema = f"rand_like.generator(Tensor self, *, Generator? generator, {LIKE}) -> Tensor"
    memory_format = "rows"
    dtype = given_or_self(2)

    def run(xp, self, generator, dtype, layout, device, pin_memory, memory_format):
        return _rand_like(xp, self, generator, dtype, memory_format)


class randn_like(RandomLike):
    """`randn` with the shape of another tensor."""

    schema = f"randn_like(Tensor self, *, {LIKE}) -> Tensor"
    dtype = given_or_self(1)

    def run(xp, self, dtype, layout, device, pin_memory, memory_format):
        return _randn_like(xp, self, None, dtype, memory_format)

    samples = lambda s: [s(s.real(2, 3))]


class randn_like_generator(RandomLike):
    """`randn` with the shape of another tensor, from a generator."""

    schema = f"randn_like.generator(Tensor self, *, Generator? generator, {LIKE}) -> Tensor"
    memory_format = "rows"
    dtype = given_or_self(2)

    def run(xp, self, generator, dtype, layout, device, pin_memory, memory_format):
        return _randn_like(xp, self, generator, dtype, memory_format)


class randint_like(RandomLike):
    """`randint` with the shape and dtype of another tensor."""

    schema = f"randint_like(Tensor self, SymInt high, *, {LIKE}) -> Tensor"
    dtype = given_or_self(2)

    def run(xp, self, high, dtype, layout, device, pin_memory, memory_format):
        return _randint_like(xp, self, 0, high, None, dtype, memory_format)

    samples = lambda s: [s(s.real(2, 3), 10)]


class randint_like_low_dtype(RandomLike):
    """`randint` from `low` with the shape and dtype of another tensor."""

    schema = f"randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, {LIKE}) -> Tensor"
    dtype = given_or_self(3)

    def run(xp, self, low, high, dtype, layout, device, pin_memory, memory_format):
        return _randint_like(xp, self, low, high, None, dtype, memory_format)

    samples = lambda s: [s(s.real(2, 3), -3, 10)]


# --- draws with parameters ------------------------------------------------------------------------


class bernoulli(Random):
    """Ones with the probabilities that a tensor gives, else zeros."""

    schema = "bernoulli(Tensor self, *, Generator? generator=None) -> Tensor"
    narrow = "mask"
    constant = ("self",)
    shape = "tuple(self.shape)"

    def run(xp, self, generator):
        _float_only(dt.of(self.dtype), "bernoulli_tensor_cpu_p_")
        drawn = rng.bernoulli(source(generator), on_host(self), self.shape, self.dtype)
        return placed(xp, drawn)

    def batch(n, batched, self, generator):
        return ops.bernoulli(in_front(self, batched[0], n), generator=generator)

    samples = lambda s: [s(s.real(2, 3, low=0.1, high=0.9))]


class bernoulli_Tensor(Random):
    """Ones with the probabilities that another tensor gives, in the dtype of self."""

    schema = "bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor"
    narrow = "mask"
    memory_format = "self"
    inplace = True
    constant = ("self", "p")
    shape = "tuple(self.shape)"

    def run(xp, self, p, generator):
        _float_only(dt.of(p.dtype), "bernoulli_tensor_cpu_self_")
        chances = on_host(xp.broadcast_to(p, self.shape))
        order = memory_order(self)
        chances = chances if order is None else chances.transpose(order)
        return drawn(xp, self, _chances, generator, chances)

    def batch(n, batched, self, p, generator):
        self = in_front(self, batched[0], n)
        p = pad_rank(p, self.ndim - 1) if batched[1] else p
        return ops.bernoulli(self, p.expand(self.shape), generator=generator)

    samples = lambda s: [s(s.real(2, 3), s.real(2, 3, low=0.1, high=0.9))]


class bernoulli_p(Random):
    """Ones with probability p, else zeros, in the dtype of self."""

    schema = "bernoulli.p(Tensor self, float p=0.5, *, Generator? generator=None) -> Tensor"
    narrow = "mask"
    writing = "float_out"
    by_shape = True
    inplace = "float"
    constant = ("self",)
    shape = "tuple(self.shape)"

    def fill(self, p, generator):
        if memory_order(self) is None or not self.flags.writeable:
            return False
        self[...] = drawn(np, self, _chances, generator, float(p))
        return True

    def run(xp, self, p, generator):
        return placed(xp, rng.bernoulli(source(generator), float(p), self.shape, self.dtype))

    def batch(n, batched, self, p, generator):
        self = in_front(self, batched[0], n)
        if state.switches.filling:  # in the order of memory, in which `run` draws in none
            return ops.bernoulli_(ops.empty_like(self), p, generator=generator)
        return ops.bernoulli(self, p, generator=generator)

    samples = lambda s: [s(s.real(2, 3), 0.5)]


def _scaled_normal(xp, shape, np_dtype, mean, std, generator):
    """Standard normals times std plus mean, as PyTorch does with tensor parameters."""
    drawn = placed(xp, rng.normal(source(generator), shape, np_dtype, 0.0, 1.0))
    return (drawn * std + mean).astype(np_dtype)


def _check_std(std) -> None:
    if hasattr(std, "dtype"):
        if std.size and not (std >= 0).all():
            raise RuntimeError("normal expects all elements of std >= 0.0")
    elif not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


class normal_Tensor_Tensor(Random):
    """Normal numbers with the means and deviations that tensors give."""

    schema = "normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor"
    number = 3
    method = False
    constant = ("mean", "std")

    def shape(mean, std, generator):
        return broadcast_shapes(mean.shape, std.shape)

    def run(xp, mean, std, generator):
        _check_std(std)
        shape = broadcast_shapes(mean.shape, std.shape)
        return _scaled_normal(xp, shape, mean.dtype, mean, std, generator)

    def batch(n, batched, mean, std, generator):
        rank = max(mean.ndim - batched[0], std.ndim - batched[1])
        mean = pad_rank(in_front(mean, batched[0], n), rank)
        std = pad_rank(in_front(std, batched[1], n), rank)
        return ops.normal(mean, std, generator=generator)

    samples = lambda s: [s(s.real(2, 3), s.real(3, low=0.5, high=1))]


class normal_Tensor_float(Random):
    """Normal numbers with the means that a tensor gives."""

    schema = "normal.Tensor_float(Tensor mean, float std=1, *, Generator? generator=None) -> Tensor"
    method = False
    constant = ("mean",)
    shape = "tuple(mean.shape)"

    def run(xp, mean, std, generator):
        _check_std(std)
        drawn = placed(xp, rng.normal(source(generator), mean.shape, mean.dtype, 0.0, std))
        return drawn + mean

    def batch(n, batched, mean, std, generator):
        return ops.normal(in_front(mean, batched[0], n), std, generator=generator)

    samples = lambda s: [s(s.real(2, 3), 2.0)]


class normal_float_Tensor(Random):
    """Normal numbers with the deviations that a tensor gives."""

    schema = "normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor"
    method = False
    constant = ("std",)
    shape = "tuple(std.shape)"

    def run(xp, mean, std, generator):
        _check_std(std)
        return _scaled_normal(xp, std.shape, std.dtype, mean, std, generator)

    def batch(n, batched, mean, std, generator):
        return ops.normal(mean, in_front(std, batched[1], n), generator=generator)

    samples = lambda s: [s(1.0, s.real(2, 3, low=0.5, high=1))]


class normal_float_float(Random):
    """Normal numbers of one mean and deviation."""

    schema = (
        "normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, "
        f"{OPTIONS}) -> Tensor"
    )
    method = False
    shape = "tuple(size)"
    dtype = given(4)

    def run(xp, mean, std, size, generator, dtype, layout, device, pin_memory):
        _check_std(std)
        return _randn(xp, size, generator, dtype, mean, std)

    def batch(n, batched, mean, std, size, generator, dtype, layout, device, pin_memory):
        options = {"generator": generator, "dtype": dtype, "device": device}
        return ops.normal(mean, std, (n, *size), **options)

    samples = lambda s: [s(1.0, 2.0, (2, 3))]


def _fillable(array) -> bool:
    """Can numbers be drawn right into this array?"""
    return array.dtype.kind == "f" and array.dtype.itemsize > 2 and array.flags.carray


def _filled(draw, array, one, two, generator) -> bool:
    draw(source(generator), array.shape, array.dtype, one, two, out=array)
    return True


# --- fills: the functional halves of uniform_, normal_, ... -----------------------------------------


def _fill_batch(name: str):
    """Batch rule of a fill: draw for the whole batch."""

    def rule(n, batched, self, *rest):
        *numbers, generator = rest
        return getattr(ops, name)(in_front(self, batched[0], n), *numbers, generator=generator)

    return rule


class _Draw(Random):
    """Values drawn in place of those of a tensor."""

    constant = ("self",)
    function = False
    inplace = True


class uniform(_Draw):
    """The shape of self filled with numbers evenly spread over [from, to)."""

    schema = (
        "uniform(Tensor self, float from=0, float to=1, *, Generator? generator=None) -> Tensor"
    )
    by_shape = True
    memory_format = "self"
    batch = _fill_batch("uniform")

    def shape(self, low, high, generator):
        return tuple(self.shape)

    def fill(self, low, high, generator):
        return _fillable(self) and _filled(rng.uniform, self, low, high, generator)

    def run(xp, self, low, high, generator):
        _float_only(dt.of(self.dtype), "check_uniform_bounds")
        return drawn(xp, self, rng.uniform, generator, low, high)

    samples = lambda s: [s(s.real(2, 3), -1.0, 1.0)]


def _normal(xp, self, mean, std, generator):
    _check_std(std)
    _float_only(dt.of(self.dtype), "normal_kernel_cpu")
    blocks = bool(self.flags.c_contiguous)
    return drawn(xp, self, rng.normal, generator, mean, std, blocks=blocks)


class normal_functional(Random):
    """The shape of self filled with normal numbers."""

    schema = (
        "normal_functional(Tensor self, float mean=0, float std=1, *, Generator? generator=None)"
        " -> Tensor"
    )
    by_shape = True
    memory_format = "self"
    method = function = False
    constant = ("self",)
    shape = "tuple(self.shape)"
    batch = _fill_batch("normal_functional")
    run = _normal

    samples = lambda s: [s(s.real(2, 3), 1.0, 2.0)]


class normal_fill(Random):
    """What `normal_` fills a tensor with."""

    schema = "normal.fill(Tensor self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor"
    by_shape = True
    kept = None
    memory_format = "self"
    inplace = "default"
    constant = ("self",)
    shape = "tuple(self.shape)"

    def fill(self, mean, std, generator):
        if not _fillable(self):
            return False
        _check_std(std)
        return _filled(rng.normal, self, mean, std, generator)

    run = _normal

    def batch(n, batched, self, mean, std, generator):
        return ops.normal_functional(in_front(self, batched[0], n), mean, std, generator=generator)

    def decomp(self, mean, std, generator):
        return ops.normal_functional(self, mean, std, generator=generator)


def _integer_bounds(self, low, high) -> tuple[int, int]:
    """The range of random_: `high` None means the largest number of the dtype."""
    dtype = dt.of(self.dtype)
    if high is None:
        if dtype.category == 1:
            return low, int(np.iinfo(dtype.np).max) + 1
        digits = {"float16": 11, "bfloat16": 8, "float32": 24}.get(dtype.name, 53)
        return low, 2 if dtype.category == 0 else 2**digits + 1
    return _held(dtype, "from", low), _held(dtype, "to - 1", high - 1) + 1


def _held(dtype: dt.DType, name: str, bound: int) -> int:
    """A bound, if a dtype of integers can hold it."""
    if dtype.category == 1:
        info = dt.iinfo(dtype)
        if not info.min <= bound <= info.max:
            raise RuntimeError(f"{name} is out of bounds for {title(dtype)}: {bound}")
    return bound


class random(_Draw):
    """The shape of self filled with integers over the range of its dtype."""

    schema = "random(Tensor self, *, Generator? generator=None) -> Tensor"
    by_shape = True
    memory_format = "self"
    number = 2
    shape = "tuple(self.shape)"

    def run(xp, self, generator):
        return drawn(xp, self, rng.random, generator)

    def batch(n, batched, self, generator):
        return ops.random(in_front(self, batched[0], n), generator=generator)

    samples = lambda s: [s(s.int(2, 3))]


class random_to(_Draw):
    """The shape of self filled with integers below a bound."""

    schema = "random.to(Tensor self, int to, *, Generator? generator=None) -> Tensor"
    by_shape = True
    memory_format = "self"
    shape = "tuple(self.shape)"

    def run(xp, self, to, generator):
        _integer_bounds(self, 0, to)
        return drawn(xp, self, _integers, generator, 0, to)

    def batch(n, batched, self, to, generator):
        return ops.random(in_front(self, batched[0], n), to, generator=generator)

    samples = lambda s: [s(s.int(2, 3), 7)]


class random_from(_Draw):
    """The shape of self filled with integers between bounds."""

    schema = "random.from(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor"
    by_shape = True
    memory_format = "self"
    number = 0

    def shape(self, low, high, generator):
        return tuple(self.shape)

    def run(xp, self, low, high, generator):
        low, high = _integer_bounds(self, low, high)
        return drawn(xp, self, _integers, generator, low, high)

    def batch(n, batched, self, low, high, generator):
        return ops.random(in_front(self, batched[0], n), low, high, generator=generator)

    samples = lambda s: [s(s.int(2, 3), -3, 7)]


def _continuous(np_dtype, name: str) -> None:
    """Refuse dtypes that cannot hold numbers of a continuous distribution."""
    if dt.of(np_dtype).category < 2:
        raise DTypeError(f"{name} distribution is a continuous probability distribution. dtype "
                         f"must be a floating point but you specified {title(np_dtype)}")


class exponential(_Draw):
    """The shape of self filled with waiting times."""

    schema = "exponential(Tensor self, float lambd=1, *, Generator? generator=None) -> Tensor"
    by_shape = True
    memory_format = "self"
    shape = "tuple(self.shape)"
    batch = _fill_batch("exponential")

    def run(xp, self, lambd, generator):
        _continuous(self.dtype, "Exponential")
        return drawn(xp, self, rng.exponential, generator, lambd)

    samples = lambda s: [s(s.real(2, 3), 2.0)]


class geometric(_Draw):
    """The shape of self filled with numbers of trials up to a success."""

    schema = "geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor"
    by_shape = True
    memory_format = "self"
    shape = "tuple(self.shape)"
    batch = _fill_batch("geometric")

    def run(xp, self, p, generator):
        return drawn(xp, self, rng.geometric, generator, p)

    samples = lambda s: [s(s.real(2, 3), 0.3)]


class cauchy(_Draw):
    """The shape of self filled with numbers of the Cauchy distribution."""

    schema = (
        "cauchy(Tensor self, float median=0, float sigma=1, *, Generator? generator=None) -> Tensor"
    )
    by_shape = True
    memory_format = "self"
    shape = "tuple(self.shape)"
    batch = _fill_batch("cauchy")

    def run(xp, self, median, sigma, generator):
        _continuous(self.dtype, "Cauchy")
        return drawn(xp, self, rng.cauchy, generator, median, sigma)

    samples = lambda s: [s(s.real(2, 3), 1.0, 2.0)]


class log_normal(_Draw):
    """The shape of self filled with exponentials of normal numbers."""

    schema = (
        "log_normal(Tensor self, float mean=1, float std=2, *, Generator? generator=None) -> Tensor"
    )
    by_shape = True
    memory_format = "self"
    shape = "tuple(self.shape)"
    batch = _fill_batch("log_normal")

    def run(xp, self, mean, std, generator):
        _float_only(dt.of(self.dtype), "log_normal_")
        return drawn(xp, self, rng.log_normal, generator, mean, std)

    samples = lambda s: [s(s.real(2, 3), 0.0, 0.5)]


class multinomial(Random):
    """Indices drawn in proportion to the weights in the last dim."""

    schema = (
        "multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, "
        "Generator? generator=None) -> Tensor"
    )
    out = ("exact",)
    nondiff = ("self",)
    dtype = dt.int64
    shape = "(*self.shape[:-1], num_samples)"

    def run(xp, self, num_samples, replacement, generator):
        if dt.of(self.dtype).category != 2:
            raise RuntimeError(
                f"multinomial only supports floating-point dtypes for input, got: {self.dtype}"
            )
        if self.ndim and self.shape[-1] > 2**24:
            raise RuntimeError("number of categories cannot exceed 2^24")
        drawn = rng.multinomial(source(generator), on_host(self), num_samples, replacement)
        return placed(xp, drawn)

    def batch(n, batched, self, num_samples, replacement, generator):
        self = in_front(self, batched[0], n)
        rows = self.reshape((-1, self.shape[-1]))
        out = ops.multinomial(rows, num_samples, replacement, generator=generator)
        return out.reshape((*self.shape[:-1], num_samples))

    def samples(s):
        yield s(s.real(4, low=0.1, high=1), 2)
        yield s(s.real(3, 4, low=0.1, high=1), 5, True)
