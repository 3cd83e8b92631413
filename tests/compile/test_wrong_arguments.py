"""Compiled functions refuse what eager ones refuse, with the same exception, and change nothing.

The first sample of each entry of the table, with one argument made wrong.
"""

import math
import zlib

import numpy as np
import pytest

import pullback as pb
from pullback.core.consult import consult
from pullback.core.evaluate import raw_of
from pullback.core.handle import Tensor
from pullback.core.op import overload_of, registry
from pullback.testing import samples

DIMS = ("dim", "dims", "dim0", "dim1", "dim2", "axis")
# what both refuse, for another reason each: the first of the parts that objects is another one
OTHER_REASON = {
    "narrow.Tensor",  # its start is a value: where it ends is found by an index that is too large
    "_pad_packed_sequence",  # is captured with the values at hand
    "_bessel_i", "_bessel_j", "_bessel_k", "_bessel_y",  # 99 derivatives take long
    "_normal_hazard",
}


def wrong_dims(argument, value):
    if argument.name in DIMS:
        several = isinstance(value, (list, tuple)) or value is None and argument.is_list
        yield [99, *(value or ())[1:]] if several else 99


def wrong_ints(argument, value):
    if argument.name in DIMS or argument.base not in ("int", "SymInt"):
        return
    for bad in (-1, 0, 99, -99):
        if isinstance(value, (list, tuple)) and value:
            yield [bad, *value[1:]]
            yield [*value[:-1], bad]
        elif type(value) is int:
            yield bad
    if isinstance(value, (list, tuple)):
        yield from ([], [*value[:-1]], [*value, 1])


def wrong_floats(argument, value):
    if argument.base in ("float", "Scalar") and isinstance(value, (int, float)):
        yield from (math.nan, math.inf, -1.0, -3, 1 + 2j)


def wrong_dtypes(argument, value):
    if isinstance(value, Tensor):
        for dtype in (pb.int64, pb.bool, pb.complex128, pb.float16, pb.float64):
            if dtype is not value.dtype:
                yield value.detach().to(dtype)


def wrong_ranks(argument, value):
    if isinstance(value, Tensor):
        yield value.detach()[None].clone()
        yield value.detach()[..., None].clone()
        if value.numel() and value.ndim:
            yield from (value.detach()[0].clone(), value.detach()[..., 0].clone())


def wrong_sizes(argument, value):
    if not isinstance(value, Tensor) or not value.numel():
        return
    for dim in range(value.ndim):
        yield pb.cat([value.detach(), value.detach().narrow(dim, 0, 1)], dim)
        yield value.detach().narrow(dim, 0, value.shape[dim] - 1).clone()
        yield value.detach().narrow(dim, 0, 0).clone()


def wrong_places(argument, value):
    """Indices, targets and counts that are out of range: values, which only a run can see."""
    if isinstance(value, Tensor) and value.dtype is pb.int64 and value.numel():
        for bad in (99, -99):
            flat = value.detach().clone().reshape(-1)
            flat[-1] = bad
            yield flat.reshape(value.shape)


def wrong_nothing(argument, value):
    if value is not None:
        yield None


KINDS = {  # the wrong values of an argument, one of how many is tried, how many refusals at least
    "dims": (wrong_dims, 1, 150),
    "ints": (wrong_ints, 4, 100),
    "floats": (wrong_floats, 2, 20),
    "dtypes": (wrong_dtypes, 6, 200),
    "ranks": (wrong_ranks, 6, 200),
    "sizes": (wrong_sizes, 6, 150),
    "places": (wrong_places, 2, 25),
    "nothing": (wrong_nothing, 8, 100),
}


def entries():
    for name in sorted(registry):
        op = registry[name]
        cases = samples.cases(op) if op.__module__.startswith("pullback.ops.") else None
        if cases:
            yield name, overload_of(op), samples.flat(op, cases[0])


def wrong_calls(kind: str):
    """(what, call, tensors) for the chosen ones of all wrong arguments."""
    make, one_of, _ = KINDS[kind]
    for name, ov, flat in entries():
        if name in OTHER_REASON:
            continue
        for i, argument in enumerate(ov.schema.args):
            for k, value in enumerate(make(argument, flat[i])):
                what = f"{name}({argument.name}: {kind} {k})"
                if zlib.crc32(what.encode()) % one_of == 0:
                    yield what, *as_function(ov, [*flat[:i], value, *flat[i + 1 :]])


def as_function(ov, given: list):
    """A function of the tensors among the arguments, and these."""
    tensors: list = []

    def place(value):
        if isinstance(value, Tensor):
            tensors.append(value.detach().clone())
            return len(tensors) - 1, None
        return [place(v) for v in value] if isinstance(value, (list, tuple)) else value

    places = [place(v) for v in given]

    def call(*args):
        def filled(value):
            if isinstance(value, tuple):
                return args[value[0]]
            return [filled(v) for v in value] if isinstance(value, list) else value

        values = list(zip(ov.schema.args, map(filled, places)))
        return ov(*[v for a, v in values if not a.kwarg_only],
                  **{a.name: v for a, v in values if a.kwarg_only})

    return call, tensors


@pytest.mark.parametrize("kind", list(KINDS))
def test_refused_as_in_eager_mode(kind):
    checked, wrong = 0, []
    for what, call, tensors in wrong_calls(kind):
        before = [t.clone().numpy() for t in tensors]  # nothing may share their memory
        try:
            call(*tensors)
            continue
        except Exception as error:
            wanted = type(error)
        tensors = [pb.tensor(b) for b in before]
        checked += 1
        try:
            pb.compile(call, backend="numpy")(*tensors)
            wrong.append(f"{what}: {wanted.__name__}, compiled nothing")
        except Exception as error:
            if type(error) is not wanted:
                wrong.append(f"{what}: {wanted.__name__}, compiled {type(error).__name__}: {error}")
        for t, b in zip(tensors, before, strict=True):
            np.testing.assert_array_equal(t.numpy(), b, err_msg=what)
    assert not wrong, "\n".join(wrong)
    assert checked >= KINDS[kind][2]


def test_kernels_have_nothing_against_their_samples():
    """Asked without data, a kernel must not refuse what it takes with data."""
    for name, ov, flat in entries():
        if not ov.is_composite:
            try:
                consult(ov, [raw_of(v) for v in flat])
            except Exception as error:
                raise AssertionError(f"{name}: {error}") from error
