"""Compiled code on numbers at the ends of their types: wrapping, casts, literals out of range.

Expected values are those of eager execution, which follows NumPy's and PyTorch's integers.
"""

import numpy as np
import pytest

import pullback as pb
from pullback import errors

I32 = pb.tensor([2**31 - 1, -(2**31), 5] * 7, dtype=pb.int32)
I64 = pb.tensor([2**63 - 1, -(2**63), 5] * 7)
U8 = (pb.arange(24) * 11).to(pb.uint8).reshape(4, 6)


def same(functions: list, *tensors) -> None:
    """All functions, compiled as one: dtypes, strides and every bit as in eager execution."""
    wanted = [f(*tensors) for f in functions]
    got = pb.compile(lambda *ts: [f(*ts) for f in functions], backend="native")(*tensors)
    for i, (a, b) in enumerate(zip(got, wanted, strict=True)):
        assert (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride()), i
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy(), err_msg=str(i))


@pytest.mark.parametrize("x", [I32, I64])
def test_integers_wrap_around(x):
    same([
        lambda x: x + 1 > x,
        lambda x: x - 1 < x,
        lambda x: -x > 0,
        lambda x: x.abs() >= 0,
        lambda x: x[1].abs() >= 0,
        lambda x: (x * 4) // 4,
        lambda x: (x * 3) // 3,
        lambda x: pb.where(x[0] + 1 > x[0], x, x + 1),
        lambda x: x.sum(),
        lambda x: x.sum(dtype=x.dtype),
        lambda x: x.prod(),
        lambda x: x.cumsum(0),
        lambda x: x + 2**31,
        lambda x: x * 2**40 + 1,
        lambda x: x > 2**40,
        lambda x: x == -(2**31),
    ], x)


def test_bytes_with_numbers_out_of_their_range():
    same([
        lambda x: x == -1,
        lambda x: x < -3,
        lambda x: x - 1 > 3,
        lambda x: x + 2**40 + 2**31,
        lambda x: x.clamp(-1, 1),
        lambda x: x.clamp(min=-3),
        lambda x: x.masked_fill(x > 1, -1) >> 1,
        lambda x: pb.full_like(x, -1) + 1,
        lambda x: pb.add(x, x, alpha=-3),
        lambda x: pb.where(x > 9, x, -1),
    ], U8)


def test_bytes_stored_with_steps():
    def written(x):
        y = x.clone()
        y[:, ::2] = x[:, 1::2] + 7
        return y

    same([written, lambda x: pb.stack([x + 1, x + 2], -1), lambda x: pb.stack([x > 9, x < 9], -1)],
         U8)


@pytest.mark.parametrize("backend", ["eager", "native"])
@pytest.mark.parametrize("f", [
    lambda x: x // 2**40,
    lambda x: x % 2**40,
    lambda x: x // (x - x),
    lambda x: x % (x - x),
])
def test_division_by_what_is_zero_in_the_type(f, backend):
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        pb.compile(f, backend=backend)(I32)


HALF = pb.ones(3, dtype=pb.float16)


@pytest.mark.parametrize("backend", ["eager", "native"])
@pytest.mark.parametrize("f, x", [
    (lambda x: x.clamp(max=256), U8),
    (lambda x: x.clamp(min=2**31), I32),
    (lambda x: x.masked_fill(x > 1, 256), U8),
    (lambda x: pb.where(x > 1, x, 2**40), I32),
    (lambda x: pb.add(x, x, alpha=2**31), I32),
    (lambda x: pb.nn.functional.threshold(x, 1, 256), U8),
    (lambda x: pb.nn.functional.pad(x, (1, 1), value=300.0), U8),
    (lambda x: x.masked_fill(x > 0, -1e9), HALF),
    (lambda x: x.clamp(max=1e10), HALF),
    (lambda x: pb.full_like(x, 1e300), pb.ones(2)),
])
def test_numbers_that_do_not_fit_are_refused(f, x, backend):
    with pytest.raises(errors.RefusedValue, match="without overflow"):
        pb.compile(f, backend=backend)(x)


def test_infinite_numbers_fit():
    assert HALF.masked_fill(HALF > 0, -np.inf).tolist() == [-np.inf] * 3
    assert pb.where(HALF > 2, HALF, 1e10).tolist() == [np.inf] * 3


def test_bools_in_the_order_of_numbers():
    m, n = pb.tensor([True, False, True, False] * 5), pb.tensor([True, True, False, False] * 5)
    compare = [getattr(pb, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")]
    same([lambda m, n, f=f: f(m, n) for f in compare], m, n)
    same([lambda m, n, f=f: f(m, True) for f in compare], m, n)
    same([lambda m, n: (m == True).sum(), lambda m, n: pb.where((~m) == False, n, m),  # noqa: E712
          lambda m, n: m[0] < n[1], lambda m, n: pb.add(m, n, alpha=False)], m, n)
    assert pb.add(m, m, alpha=-1).tolist() == m.tolist()


@pytest.mark.parametrize("backend", ["eager", "native"])
def test_what_only_whole_numbers_have(backend):
    with pytest.raises(NotImplementedError, match="bitwise_and_cpu"):
        pb.compile(lambda x: x & 0.5, backend=backend)(I32)
    with pytest.raises(NotImplementedError, match="clamp_scalar_cpu"):
        pb.compile(lambda x: (x > 1).clamp(False, True), backend=backend)(I32)


def test_shifts_by_numbers_out_of_range():
    same([lambda x: x << 256, lambda x: x >> -1, lambda x: x << 9, lambda x: 2**31 >> x], U8)


def test_thresholds_of_whole_numbers_are_whole():
    same([lambda x: pb.nn.functional.threshold(x, -2.5, 5)], I32)


@pytest.mark.parametrize("training", [True, False])
def test_infinite_weights_of_batch_normalisation(training):
    x = (pb.arange(24.0) % 5 - 2).reshape(4, 3, 2)
    weight = pb.tensor([1.0, np.inf, 2.0])

    def gradient(x, weight):
        mean, var = pb.zeros(3), pb.ones(3)
        y = pb.nn.functional.batch_norm(x, mean, var, weight, training=training)
        return pb.autograd.grad(y, x, (pb.arange(24.0) % 7).reshape(4, 3, 2))[0].isfinite()

    same([gradient], x.requires_grad_(), weight)
    assert not gradient(x, weight)[:, 1].all() and gradient(x, weight)[:, ::2].all()


NUMBERS = (np.nan, np.inf, 1e20, -1.5, 300, 2**40, -1)
TYPES = (pb.uint8, pb.int32, pb.int64, pb.float32, pb.bool)


def test_constants_are_elements_of_their_type():
    """What is known when code is written is computed as it would be when it runs."""
    makers = []
    for number in NUMBERS:
        for kind in TYPES:
            try:
                pb.full((3,), number, dtype=kind)
            except RuntimeError:
                continue  # it is refused
            makers += [lambda x, n=number, k=kind, to=to: pb.full((3,), n, dtype=k).to(to)
                       for to in TYPES]
    for kind in TYPES[:3]:
        makers += [
            lambda x, k=kind: (pb.full((3,), 200, dtype=k) + pb.full((3,), 100, dtype=k)).long(),
            lambda x, k=kind: (pb.full((3,), -1, dtype=k) * 3).long(),
            lambda x, k=kind: pb.full((300,), 1, dtype=k).sum(dtype=k).long(),
            lambda x, k=kind: (-pb.full((3,), 1.0)).to(k),
        ]
    makers += [
        lambda x: (pb.full((3,), 2**31 - 1, dtype=pb.int32) + 1).long(),
        lambda x: pb.full((3,), 2**62 + 1) // 3,
        lambda x: pb.full((3,), 1.0) / pb.full((3,), 0.0),
        lambda x: (x * 0.0, x * -0.0)[0].signbit(),
        lambda x: (x * 0.0, x * -0.0)[1].signbit(),
    ]
    with np.errstate(all="ignore"):
        same(makers, pb.tensor([1.0, -2.0]))


def test_real_numbers_beside_integers_have_the_default_dtype():
    def found():
        equal = pb.compile(lambda x: x == 2.0**24 + 1, backend="native")
        return equal(pb.tensor([2**24, 5])).tolist()

    assert found() == [True, False]
    pb.set_default_dtype(pb.float64)
    try:
        assert found() == [False, False]
    finally:
        pb.set_default_dtype(pb.float32)


def test_every_nan_is_the_same_argument():
    captured = []
    f = pb.compile(lambda x, s: x * s, backend=lambda module, _: captured.append(module) or module)
    for number in (float("nan"), float("nan"), 0.0, -0.0):
        got = f(pb.ones(2), number)
        np.testing.assert_array_equal(got.numpy(), np.float32([number, number]))
        np.testing.assert_array_equal(np.signbit(got.numpy()), np.signbit([number, number]))
    assert len(captured) <= 3


def test_powers_of_two_at_the_ends_of_a_type():
    x, y = pb.tensor([3.4e38, -3.4e38, 1e-45, 1.0]), pb.tensor([-0.5, -2.5, -0.5, 128.0])
    wanted = np.float32([3.4e38 * 2**-0.5, -3.4e38 * 2**-2.5, 1e-45, np.inf])
    for f in (pb.ldexp, pb.compile(lambda x, y: pb.ldexp(x, y), backend="native")):
        np.testing.assert_allclose(f(x, y).numpy(), wanted, rtol=1e-6)


NOT_FITTING = (pb.nan, pb.inf, -pb.inf, 1e30, -1e30, 3e9, -3e9, 300.7, -300.7, -1.5,
               2.0**63, 128.0)


@pytest.mark.parametrize("to", ["uint8", "int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_casts_of_numbers_that_do_not_fit(dtype, to):
    dtype, to = getattr(pb, dtype), getattr(pb, to)

    def casts(*given):
        return [made for v, x in zip(NOT_FITTING, given) for made in (
            x.to(to), x.t()[::3].to(to), x[:, [1, 2]].to(to),
            pb.full((3,), v, dtype=dtype).to(to) + pb.zeros(3, dtype=to),
            x.amax(1, keepdim=True).to(to) + pb.zeros(4, 20, dtype=to),
            x.max().to(to) + pb.zeros(4, 20, dtype=to))]

    given = [pb.full((4, 20), v, dtype=dtype) for v in NOT_FITTING]
    with np.errstate(invalid="ignore"):
        expected = casts(*given)
    got = pb.compile(casts, fullgraph=True)(*given)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
