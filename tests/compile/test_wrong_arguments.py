"""Compiled functions refuse what eager ones refuse, with the same exception, and change nothing.

The first sample of each entry of the table, with one argument made wrong.
"""

import math
import zlib

import numpy as np
import pytest

import pullback as pb
from pullback.array.consult import consult
from pullback.array.evaluate import raw_of
from pullback.core.handle import Tensor
from pullback.core.op import registry
from pullback.core.overload import overload_of
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


@pytest.mark.filterwarnings("ignore:compile.*runs operator by operator")
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


# kinds of arguments that are odd: compiled, they are refused as in eager mode or give the same


def agree(call, *tensors, exact: bool = False):
    """Eager and compiled: the same exception or the same results; says which."""
    try:
        wanted = call(*tensors)
    except Exception as error:
        wanted = type(error)
    try:
        found = pb.compile(call, backend="numpy")(*tensors)
    except Exception as error:
        assert type(error) is wanted, error
        return wanted
    assert not isinstance(wanted, type), f"{wanted.__name__}, compiled nothing"
    several = isinstance(wanted, (list, tuple))
    for w, f in zip(wanted, found, strict=True) if several else ((wanted, found),):
        assert w is None and f is None or (w.dtype, w.shape) == (f.dtype, f.shape)
        if w is not None:
            tolerance = {"rtol": 0, "atol": 0} if exact else {"rtol": 1e-10, "atol": 1e-12}
            np.testing.assert_allclose(w.double().numpy(), f.double().numpy(), **tolerance)
    return "the same"


def test_operands_of_one_dtype():
    """Entries say which operands are of one dtype: one of another is refused, whichever it is."""
    count = 0
    for name, ov, flat in entries():
        places = [i for i, _ in ov.same_dtype if isinstance(flat[i], Tensor)]
        for i in places if len(places) > 1 else ():
            odd = pb.float64 if flat[i].dtype is pb.float32 else pb.float32
            call, tensors = as_function(ov, [*flat[:i], flat[i].detach().to(odd), *flat[i + 1 :]])
            assert agree(call, *tensors) is pb.errors.DTypeError, (name, i)
            count += 1
    assert count > 120


def test_parameters_may_be_wider_than_half():
    x, w = pb.rand(3, 4), pb.rand(4)
    half = agree(lambda x, w: pb.nn.functional.layer_norm(x, (4,), w, w), x.half(), w, exact=True)
    assert half == "the same"
    refused = agree(lambda x, w: pb.nn.functional.layer_norm(x, (4,), w, w), x.double(), w)
    assert refused is pb.errors.DTypeError


REDUCED = {  # what another number than 0, 1 or 2 is
    "none": (lambda f, a, b, r: f.huber_loss(a, b, r), lambda f, a, b, r: f.kl_div(a, b, r),
             lambda f, a, b, r: f.binary_cross_entropy(a, b, None, r)),
    "sum": (lambda f, a, b, r: f.soft_margin_loss(a, b, r),
            lambda f, a, b, r: f.multi_margin_loss(a, pb.tensor([1, 0]), 1, 1, None, r),
            lambda f, a, b, r: f.nll_loss(a, pb.tensor([1, 0]), None, r)),
    "refused": (lambda f, a, b, r: f.mse_loss(a, b, r),
                lambda f, a, b, r: f.smooth_l1_loss(a, b, r),
                lambda f, a, b, r: f.cross_entropy_loss(a, b, None, r)),
}


@pytest.mark.parametrize("kind", REDUCED)
def test_unknown_reductions(kind):
    a, b = pb.rand(2, 3, dtype=pb.float64) * 0.8 + 0.1, pb.rand(2, 3, dtype=pb.float64)
    for loss in REDUCED[kind]:
        for number in (-1, 7):
            def call(a, b, number=number, loss=loss):
                return loss(pb.ops.aten, a, b, number)

            got = agree(call, a, b)
            assert got == ("the same" if kind != "refused" else pb.errors.RefusedValue)
            if kind != "refused":
                known = loss(pb.ops.aten, a, b, {"none": 0, "sum": 2}[kind])
                assert pb.equal(call(a, b), known)


def test_complex_numbers_among_real_ones():
    x = pb.rand(3)
    for call in (
        lambda x: pb.addcmul(x, x, x, value=1j), lambda x: pb.lerp(x, x, 1j),
        lambda x: pb.nn.functional.leaky_relu(x, 1j),
        lambda x: pb.nn.functional.pad(x, (1, 1), value=1j),
        lambda x: x.index_add(0, pb.tensor([1]), x[:1], alpha=1j), lambda x: pb.isin(x, 1j),
        lambda x: pb.linalg.vector_norm(x, 1j),
    ):
        assert issubclass(agree(call, x), RuntimeError)
    assert agree(lambda x: x == 1j, x) == "the same"
    assert pb.compile(lambda x: (x == 1j, x != 1j))(x)[1].all()
    assert agree(lambda x: pb.addcmul(x, x, x, value=1j).abs(), x.to(pb.complex128)) == "the same"


def test_truth_values_are_numbers():
    assert pb.compile(lambda: pb.arange(True, 5))().tolist() == [1, 2, 3, 4]
    assert agree(lambda end: pb.linspace(True, end, 5), pb.tensor(3.0)) == "the same"


def test_decompositions_promote_first():
    """A decomposition must not compute in the dtype of one operand what is promoted as a whole."""
    x = pb.rand(50, dtype=pb.float64) * 0.8 + 0.1
    aten = pb.ops.aten
    for call in (aten.gelu_backward, aten.logit_backward, aten.hardswish_backward, pb.xlogy):
        for a, b in ((x.half(), x), (x, x.half()), (x, (4 * x).long())):
            assert agree(call, a, b) == "the same"
    assert agree(lambda x: pb.copysign(x, -2), (4 * x).int()) == "the same"


@pytest.mark.parametrize("dtype", [pb.float16, pb.bfloat16])
def test_half_precision_rounds_once(dtype):
    """Kernels compute in float32: so do the parts of a decomposition."""
    f = pb.nn.functional
    x, y = (pb.randn(40, 5) * 2).to(dtype), (pb.rand(40, 5) + 0.1).to(dtype)
    for call in (lambda x, y: f.gelu(x), lambda x, y: f.silu(x), pb.xlogy,
                 lambda x, y: f.glu(y[:, :4]), lambda x, y: f.huber_loss(x, y),
                 lambda x, y: pb.lerp(x, y, 0.3),
                 lambda x, y: x.var(1), lambda x, y: f.layer_norm(x, (5,), y[0], y[1])):
        assert agree(call, x, y, exact=True) == "the same"


def test_gradients_of_views_fill_their_place():
    g = pb.rand(1, dtype=pb.float64)
    aten = pb.ops.aten
    for call in (lambda g: aten.select_backward(g, [3, 4], 0, 1),
                 lambda g: aten.slice_backward(g, [3, 4], 0, 1, 3, 1),
                 lambda g: aten.diagonal_backward(g, [3, 4], 0, 0, 1)):
        assert agree(call, g) == "the same"
        assert agree(call, g.reshape(1, 1, 1)) is pb.errors.ShapeError


def test_observers_change_nothing_when_they_refuse():
    x, on = pb.rand(2, 3), pb.tensor([1])
    for place in range(4):
        state = [*pb.tensor([[-0.5], [2.0], [1.0]]).unbind(), pb.tensor([0], dtype=pb.int32)]
        state[place] = state[place][:0].clone()
        before = [t.clone() for t in state]

        def call(x, on, *state):
            return pb.ops.aten.fused_moving_avg_obs_fake_quant(x, on, on, *state, 0.01, 0, 255, 0)

        assert agree(call, x, on, *state) is pb.errors.ShapeError
        assert all(map(pb.equal, state, before))
