"""Kernels of eager execution in C (`runtime/eager.c`) against those of the table."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import pullback as torch
from pullback import errors
from pullback.array import dtype as dt
from pullback.compile import eager_kernels, native, toolchain
from pullback.compile.errors import CompilerNotFound
from pullback.core.op import registry
from pullback.core.overload import overload_of
from pullback.eager.unroll import space
from pullback.errors import ShapeError
from pullback.table.catalog import load_all
from pullback.testing import samples

load_all()
ENTRIES = sorted(name for name, op in registry.items() if op.native)


@pytest.fixture(scope="module")
def maker():
    try:
        toolchain.find()
    except CompilerNotFound:
        pytest.skip("no C compiler")
    found = eager_kernels.maker(True)
    assert found is not None
    eager_kernels.share_threads(True)
    for double in (False, True):
        eager_kernels._bring_convolution(double)
    return found


def both(maker, name):
    """The kernel in C, one of the table's that counts its calls, and the calls."""
    ov, calls = overload_of(registry[name]), []
    own = ov._laid()

    def counted(*args):
        calls.append(args)
        return own(*args)

    return maker(ov.op.native, counted), own, calls


MOVES = {"cat", "stack", "gather", "index_select", "embedding"}  # they compute nothing


def same(found, wanted, dtype, exact=False, view=False):
    found = found if type(found) in (tuple, list) else (found,)
    wanted = wanted if type(wanted) in (tuple, list) else (wanted,)
    assert len(found) == len(wanted)
    for f, w in zip(found, wanted):
        if w is None:
            assert f is None
            continue
        f, w = np.asarray(f), np.asarray(w)  # the table's may be numbers
        if view:
            assert f.strides == w.strides and f.flags.writeable == w.flags.writeable
            assert f.ctypes.data == w.ctypes.data
        assert f.shape == w.shape and f.dtype is w.dtype
        if w.dtype.kind in "ib" or exact:
            assert f.tobytes() == w.tobytes()
            continue
        near = 3e-5 if dtype == np.float32 else 1e-12
        scale = max(1.0, float(np.abs(w[np.isfinite(w)]).max(initial=0)))
        np.testing.assert_allclose(f, w, rtol=near, atol=near * scale)


def raw(value):
    if isinstance(value, torch.Tensor):
        return value._payload
    return [raw(v) for v in value] if type(value) in (list, tuple) else value


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64], ids=str)
@pytest.mark.parametrize("name", ENTRIES)
def test_samples_of_the_table(maker, name, dtype):
    op = registry[name]
    kernel, own, calls = both(maker, name)
    cases = [raw(list(samples.flat(op, c))) for c in samples.cases(op, dtype)]
    for args in cases:
        same(kernel(np, *args), own(np, *args), dtype.np, op.native in MOVES, op.kind == "view")
    assert len(calls) < len(cases)  # it has done some


def drawn(rng, dtype, *shape):
    return np.asarray(3 * rng.standard_normal(shape), dtype)


def softmax_args(rng, d):
    for shape, dim in (((5, 1), 1), ((7, 33), -1), ((3, 1500), 1), ((300, 257), 1),
                       ((4, 37, 19), 1), ((40, 5), 0), ((2, 3, 4, 5), 2)):
        x = 4 * drawn(rng, d, *shape)
        yield x, dim, False
    odd = drawn(rng, d, 6, 21)
    odd[0, 3], odd[1, 20], odd[2, :], odd[3, 20], odd[4, 5] = (
        np.nan, np.inf, -np.inf, np.nan, -np.inf)
    yield odd, 1, False
    yield np.ascontiguousarray(odd.T), 0, False


def softmax_backward_args(rng, d):
    for shape in ((5, 1), (7, 33), (300, 257), (3, 1500)):
        yield drawn(rng, d, *shape), -np.abs(drawn(rng, d, *shape)), 1, dt.of(np.dtype(d))


def layer_norm_args(rng, d):
    for rows, n in ((5, 1), (7, 33), (3, 1500), (300, 257)):
        x, w, b = drawn(rng, d, rows, n), drawn(rng, d, n), drawn(rng, d, n)
        for weight, bias in ((w, b), (None, b), (w, None), (None, None)):
            yield x + 3, [n], weight, bias, 1e-5
    yield drawn(rng, d, 2, 3, 4), [3, 4], drawn(rng, d, 3, 4), None, 1e-3
    x = drawn(rng, d, 4, 20)
    x[1, 19], x[2, 3] = np.nan, np.inf
    yield x, [20], None, None, 1e-5


def layer_norm_backward_args(rng, d):
    for rows, n in ((5, 1), (7, 33), (3, 1500), (700, 57)):
        x, g = drawn(rng, d, rows, n), drawn(rng, d, rows, n)
        mean, rstd = drawn(rng, d, rows, 1), np.abs(drawn(rng, d, rows, 1)) + 0.5
        w = drawn(rng, d, n)
        for weight, mask in ((w, [True] * 3), (None, [True] * 3), (w, [False, True, False]),
                             (None, [True, False, False])):
            yield g, x, [n], mean, rstd, weight, None, mask


def pointwise_args(count, *rest):
    def args(rng, d):
        for shape in ((), (1,), (0, 3), (17,), (300, 257)):
            yield (*(drawn(rng, d, *shape) for _ in range(count)), *rest)
        odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e4, -1e4], d)
        yield (*(odd if i == count - 1 else np.ones(7, d) for i in range(count)), *rest)
    return args


def nll_args(rng, d):
    for rows, n in ((1, 1), (8, 16), (3000, 5)):
        target = rng.integers(0, n, rows)
        for weight in (None, np.abs(drawn(rng, d, n))):
            for reduction in (0, 1, 2):
                yield drawn(rng, d, rows, n), target, weight, reduction, -100
                yield drawn(rng, d, rows, n), target, weight, reduction, 0
    yield drawn(rng, d, 2, 3), np.array([-100, -100]), None, 1, -100


def nll_backward_args(rng, d):
    for x, target, weight, reduction, ignored in nll_args(rng, d):
        g = drawn(rng, d, *(() if reduction else target.shape))
        yield g, x, target, weight, reduction, ignored, np.array(2.5, d)


def batch_norm_args(rng, d):
    for shape in ((3, 4), (2, 3, 8, 8), (40, 5), (4, 6, 700), (1, 1, 1)):
        c = shape[1]
        x = drawn(rng, d, *shape) + 1
        for weight, bias in ((drawn(rng, d, c), drawn(rng, d, c)), (None, None)):
            yield x, weight, bias, drawn(rng, d, c), np.abs(drawn(rng, d, c)), True, 0.1, 1e-3


def batch_norm_fixed_args(rng, d):
    for *args, _, momentum, eps in batch_norm_args(rng, d):
        yield *args, momentum, eps


def batch_norm_backward_args(rng, d):
    for x, weight, _, mean, var, _, _, eps in batch_norm_args(rng, d):
        for train in (True, False):
            for mask in ([True] * 3, [False, True, False], [True, False, True]):
                g = drawn(rng, d, *x.shape)
                yield g, x, weight, mean, var, mean, var + 0.5, train, eps, mask


def max_pool_args(rng, d):
    for shape in ((1, 3, 8, 8), (2, 9, 9), (3, 2, 40, 301)):
        x = drawn(rng, d, *shape)
        for rest in (([2], [], [0], [1], False), ([3, 2], [2, 1], [1, 0], [1, 2], True),
                     ([3], [2], [1], [1], False)):
            yield x, *rest
    x = drawn(rng, d, 1, 1, 6, 6)
    x[0, 0, 2, 3], x[0, 0, 4, 4], x[0, 0, 0, :2] = np.nan, np.inf, -np.inf
    yield x, [2], [1], [0], [1], False
    yield np.zeros((1, 1, 4, 4), d), [2], [1], [1], [1], False  # the first of equals


def max_pool_backward_args(rng, d):
    pool = overload_of(registry["max_pool2d_with_indices"])._laid()
    for x, *rest in max_pool_args(rng, d):
        out, where = pool(np, x, *rest)
        yield drawn(rng, d, *out.shape), x, *rest, where


def lstm_args(rng, d):
    for rows, n in ((1, 1), (2, 16), (5, 37), (64, 256)):
        gates = (drawn(rng, d, rows, 4 * n) for _ in range(2))
        yield *gates, drawn(rng, d, rows, n), None, None


def lstm_backward_args(rng, d):
    for gates, _, c, *_ in lstm_args(rng, d):
        g, h = drawn(rng, d, *c.shape), drawn(rng, d, *c.shape)
        for grads in ((g, h), (g, None), (None, h)):
            yield *grads, c, drawn(rng, d, *c.shape), gates, False


def mm_args(rng, d):
    for m, k, n in ((8, 16, 16), (1, 1, 1), (3, 7, 33), (2, 40, 5), (5, 3, 16), (90, 70, 80),
                    (2, 300, 3), (0, 3, 4), (3, 0, 4)):
        a, b = drawn(rng, d, m, k), drawn(rng, d, k, n)
        yield a, b
        yield a, np.ascontiguousarray(b.T).T
        yield np.ascontiguousarray(a.T).T, drawn(rng, d, k, n + 3)[:, :n]


def addmm_args(rng, d):
    for a, b in mm_args(rng, d):
        yield drawn(rng, d, b.shape[1]), a, b, 1, 1
        yield drawn(rng, d, a.shape[0], b.shape[1]), a, b, 1.0, 1


def cat_args(rng, d):
    yield [drawn(rng, d, 2, 3), drawn(rng, d, 4, 3)], 0
    yield [drawn(rng, d, 2, 3, 2), drawn(rng, d, 2, 1, 2), drawn(rng, d, 2, 0, 2)], -2
    yield [drawn(rng, d, 5)], 0
    yield [rng.integers(0, 9, (3, 2)), rng.integers(0, 9, (3, 4))], 1
    yield [np.array([True, False]), np.array([True])], 0


def stack_args(rng, d):
    for dim in (0, 1, -1, -3):
        yield [drawn(rng, d, 2, 3) for _ in range(3)], dim
    yield [drawn(rng, d), drawn(rng, d)], 0
    yield [drawn(rng, d, 0, 2)], 1


def gather_args(rng, d):
    for shape, wanted, dim in (((8, 16), (8, 1), 1), ((4, 5), (7, 5), 0), ((6,), (0,), 0),
                               ((2, 3, 4), (2, 9, 4), -2), ((3, 5), (3, 8), -1)):
        yield drawn(rng, d, *shape), dim, rng.integers(0, shape[dim], wanted), False
    yield rng.integers(0, 9, (3, 4)).astype(np.int16), 1, rng.integers(0, 4, (3, 2)), False


def index_select_args(rng, d):
    for shape, dim in (((8, 16), 0), ((4, 5), 1), ((2, 3, 4), -2), ((6,), 0)):
        yield drawn(rng, d, *shape), dim, rng.integers(0, shape[dim], 7)
    yield np.array([True, False]), 0, np.array([1, 1, 0])


def embedding_args(rng, d):
    for shape in ((), (4,), (2, 3), (0,)):
        yield drawn(rng, d, 10, 6), rng.integers(0, 10, shape), -1, False, False


def embedding_backward_args(rng, d):
    for shape in ((), (4,), (20, 30), (0,)):
        for padding in (-1, 3):
            yield drawn(rng, d, *shape, 70), rng.integers(0, 10, shape), 10, padding, False


def convolution_args(rng, d):
    for image, weight, *numbers, groups in (
            ((2, 3, 8, 8), (5, 3, 3, 3), [1], [1], [1], 1),
            ((1, 4, 9, 7), (6, 2, 2, 3), [2, 1], [1, 2], [2, 1], 2),
            ((3, 3, 20), (3, 1, 5), [3], [2], [1], 3),
            ((1, 2, 4, 5, 6), (3, 2, 2, 2, 2), [1], [0], [1], 1),
            ((4, 16, 30, 30), (32, 16, 3, 3), [2, 2], [1, 1], [1, 1], 1)):
        x, w = drawn(rng, d, *image), drawn(rng, d, *weight)
        numbers = (*numbers, False, [0], groups)
        yield x, w, drawn(rng, d, weight[0]), *numbers
        yield x, w, None, *numbers


def convolution_backward_args(rng, d):
    forward = overload_of(registry["convolution"])._laid()
    for x, w, bias, *numbers in convolution_args(rng, d):
        g = drawn(rng, d, *forward(np, x, w, None, *numbers).shape)
        mask = [bias is not None, True, bias is None]
        yield g, x, w, [w.shape[0]], *numbers, mask


def reduced_args(*between):
    def args(rng, d):
        for shape, dim in (((8, 16), [-1]), ((3, 5, 7), [1, 2]), ((3, 5, 7), [2, 1]), ((33,), [0]),
                           ((4, 3000), [1]), ((200, 300), [1])):
            for keepdim in (False, True):
                yield drawn(rng, d, *shape), *between, dim, keepdim, None
        yield drawn(rng, d, 300, 400), *between, None, False, None
        yield drawn(rng, d, 70, 40), *between, [], True, None
    return args


def summed_args(rng, d):
    yield from reduced_args()(rng, d)
    for shape, dim in (((8, 16), [0]), ((3, 5, 7), [1]), ((300, 200), [0]), ((2, 3, 4, 5), [0, 1]),
                       ((70, 3), [0])):
        yield drawn(rng, d, *shape), dim, False, None
        yield drawn(rng, d, *shape), dim, True, None
    odd = drawn(rng, d, 3, 40)
    odd[0, 3], odd[1, 39], odd[2, 2] = np.nan, np.inf, -np.inf
    yield odd, [1], False, None


def summed_all_args(rng, d):
    for shape in ((), (1,), (8, 16), (300, 500)):
        yield drawn(rng, d, *shape), None


def variance_args(rng, d):
    for x, dim, keepdim, _ in reduced_args()(rng, d):
        for correction in (None, 1, 0):
            yield x, dim, correction, keepdim


def highest_args(rng, d):
    for shape, dim in (((8, 16), -1), ((3, 5, 7), 2), ((33,), 0), ((200, 300), 1)):
        for keepdim in (False, True):
            yield np.round(drawn(rng, d, *shape)), dim, keepdim
    odd = drawn(rng, d, 5, 40)
    odd[0, 3], odd[1, 39], odd[2], odd[3, 7] = np.nan, np.inf, -np.inf, np.inf
    odd[3, 30] = np.nan
    yield odd, 1, False


def argmax_args(rng, d):
    yield from highest_args(rng, d)
    yield drawn(rng, d, 8, 16), None, False


def shown(rng, d):
    yield drawn(rng, d, 3, 4, 2)
    yield drawn(rng, d, 4, 2, 3).transpose(2, 0, 1)
    yield drawn(rng, d, 6, 8, 4)[::2, ::-2, ::2]
    yield np.asfortranarray(drawn(rng, d, 3, 4, 2))
    repeated = np.lib.stride_tricks.as_strided(drawn(rng, d, 3, 1, 2), (3, 4, 2), (8, 0, 4))
    yield repeated  # a view of a copy would lose what is written


def view_args(rng, d):
    for size in ([24], (2, 12), [-1, 6], [1, 3, 8, 1], [4, -1, 2]):
        yield drawn(rng, d, 3, 4, 2), size
    yield drawn(rng, d), [1, 1]


def unsqueeze_args(rng, d):
    for x in (*shown(rng, d), drawn(rng, d)):
        for dim in (0, -1, *((1, 2, -2) if x.ndim else ())):
            yield x, dim


def expand_args(rng, d):
    for size in ([3, 4, 2], [5, 3, 4, 2], [1, 1, 3, 4, 2], [2, 1, -1, 4, -1]):
        for x in shown(rng, d):
            yield x, size, False
    yield drawn(rng, d, 3, 1, 2), [2, 3, 7, -1], False
    yield drawn(rng, d), [4, 1], False


def select_args(rng, d):
    for x in shown(rng, d):
        for dim, index in ((0, 0), (1, -1), (-1, 1), (-3, 2)):
            yield x, dim, index
    yield drawn(rng, d, 5), 0, 3


def slice_args(rng, d):
    for x in shown(rng, d):
        for numbers in ((0, 1, 3, 1), (1, None, None, 1), (-2, -3, -1, 1), (1, 0, 9, 3),
                        (2, 0, 9223372036854775807, 1), (0, -10, 2, 2)):
            yield x, *numbers


def gru_args(rng, d):
    for rows, n in ((1, 1), (2, 16), (5, 37), (64, 256)):
        gates = (drawn(rng, d, rows, 3 * n) for _ in range(2))
        yield *gates, drawn(rng, d, rows, n), None, None


def gru_backward_args(rng, d):
    for _, _, h, *_ in gru_args(rng, d):
        yield drawn(rng, d, *h.shape), drawn(rng, d, h.shape[0], 5 * h.shape[1]), False


ARGUMENTS = {
    "softmax": softmax_args, "log_softmax": softmax_args,
    "softmax_backward": softmax_backward_args, "log_softmax_backward": softmax_backward_args,
    "layer_norm": layer_norm_args, "layer_norm_backward": layer_norm_backward_args,
    "gelu": pointwise_args(1, "none"), "gelu_backward": pointwise_args(2, "tanh"),
    "silu": pointwise_args(1), "silu_backward": pointwise_args(2),
    "nll": nll_args, "nll_backward": nll_backward_args, "batch_norm": batch_norm_args,
    "batch_norm_fixed": batch_norm_fixed_args, "batch_norm_backward": batch_norm_backward_args,
    "max_pool2d": max_pool_args, "max_pool2d_backward": max_pool_backward_args,
    "lstm_cell": lstm_args, "lstm_cell_backward": lstm_backward_args,
    "gru_cell": gru_args, "gru_cell_backward": gru_backward_args,
    "convolution": convolution_args, "convolution_backward": convolution_backward_args,
    "sum": summed_all_args, "sum_dims": summed_args, "mean": summed_all_args,
    "mean_dims": summed_args, "norm": reduced_args(2), "variance": variance_args,
    "view": view_args, "unsqueeze": unsqueeze_args,
    "expand": expand_args, "select": select_args, "slice": slice_args, "max_along": highest_args,
    "argmax": argmax_args, "mm": mm_args, "addmm": addmm_args, "cat": cat_args,
    "stack": stack_args,
    "gather": gather_args, "index_select": index_select_args, "embedding": embedding_args,
    "embedding_backward": embedding_backward_args,
}  # fmt: skip


@pytest.fixture(params=[1, 3], ids=["alone", "threads"])
def threads(request, maker):
    before = native.get_num_threads()
    native.set_num_threads(request.param)
    yield request.param
    native.set_num_threads(before)


@pytest.mark.parametrize("d", [np.float32, np.float64])
@pytest.mark.parametrize("name", ENTRIES)
def test_random_arguments(maker, threads, name, d):
    kernel, own, calls = both(maker, name)
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        for args in ARGUMENTS[registry[name].native](rng, d):
            op = registry[name]
            same(kernel(np, *args), own(np, *args), d, op.native in MOVES, op.kind == "view")
    assert not calls  # it has done all


@pytest.mark.parametrize("name", ENTRIES)
def test_results_do_not_depend_on_threads(maker, name):
    kernel, _, _ = both(maker, name)
    found = []
    before = native.get_num_threads()
    try:
        for count in (1, 4):
            native.set_num_threads(count)
            rng = np.random.default_rng(0)
            arguments = ARGUMENTS[registry[name].native](rng, np.float32)
            with np.errstate(all="ignore"):
                found.append([kernel(np, *a) for a in arguments])
    finally:
        native.set_num_threads(before)
    for one, other in zip(*found):
        one, other = (r if type(r) is tuple else (r,) for r in (one, other))
        for a, b in zip(one, other):
            assert a is b is None or a.tobytes() == b.tobytes()


def flat_arrays(values):
    for v in values:
        if type(v) is list:
            yield from flat_arrays(v)
        elif isinstance(v, np.ndarray):
            yield v


@pytest.mark.parametrize("name", ENTRIES)
def test_gives_way(maker, name):
    """Arrays in another order, or of another byte order, go to the table's kernel."""
    kernel, _, calls = both(maker, name)
    if registry[name].kind == "view":
        return  # they take all
    args = next(iter(ARGUMENTS[registry[name].native](np.random.default_rng(0), np.float64)))
    def changed(value, change):
        if type(value) is list:
            return [changed(v, change) for v in value]
        floats = isinstance(value, np.ndarray) and value.dtype.kind == "f"
        return change(value) if floats else value

    def spaced(a):
        wide = np.zeros((*a.shape, 2))
        wide[..., 0] = a
        return wide[..., 0]

    def swapped(a):
        return a.astype(">f8")

    if registry[name].native == "mm":  # it takes all steps
        spaced = swapped
    for change in (spaced, swapped):
        calls.clear()
        given = [changed(a, change) for a in args]
        if any(a.size > 1 for a in flat_arrays(given)):
            kernel(np, *given)
            assert len(calls) == 1 or registry[name].native in MOVES and change is swapped


@pytest.mark.parametrize("name", [name for name in ENTRIES if "backward" in name])
def test_gradients_that_are_spread(maker, name):
    """The gradient of a sum shows one element everywhere."""
    kernel, own, calls = both(maker, name)
    with np.errstate(all="ignore"):
        for first, *rest in ARGUMENTS[registry[name].native](np.random.default_rng(0), np.float64):
            if first is None or first.size < 2:
                continue
            spread = np.broadcast_to(np.float64(0.5), first.shape)
            same(kernel(np, spread, *rest), own(np, spread, *rest), np.float64)
    assert not calls


def test_refuses_what_the_table_refuses(maker):
    kernel, _, calls = both(maker, "nll_loss_forward")
    with pytest.raises(IndexError, match="out of bounds"):
        kernel(np, np.zeros((2, 3)), np.array([0, 3]), None, 1, -100)
    kernel, _, calls = both(maker, "native_layer_norm")
    with pytest.raises(ShapeError, match="normalized_shape"):
        kernel(np, np.zeros((2, 3)), [4], None, None, 1e-5)
    assert len(calls) == 1


def test_results_are_own_memory(maker):
    for name in ENTRIES:
        if registry[name].kind == "view":
            continue
        kernel, _, _ = both(maker, name)
        for args in ARGUMENTS[registry[name].native](np.random.default_rng(0), np.float32):
            arrays = list(flat_arrays(args))
            before = [a.tobytes() for a in arrays]
            for a in arrays:
                a.flags.writeable = False
            with np.errstate(all="ignore"):
                out = kernel(np, *args)
            for o in out if type(out) is tuple else (out,):
                if isinstance(o, np.ndarray):
                    assert o.flags.writeable and not any(np.shares_memory(o, a) for a in arrays)
            assert [a.tobytes() for a in arrays] == before
            break


def test_large_results_can_be_resized(maker):
    """Memory of the runtime is not another library's."""
    kernel, _, _ = both(maker, "_softmax")
    x = np.random.default_rng(0).standard_normal((600, 600))
    y = torch.from_numpy(x).softmax(-1)
    y._payload = kernel(np, x, -1, False)
    assert not y._payload.flags.owndata
    before = y.clone()
    y.resize_(700, 700)
    assert y.shape == (700, 700) and torch.equal(y.reshape(-1)[:360000], before.reshape(-1))


def test_places(maker):
    """Nodes know the user's line, from whatever depth they are made."""
    assert space["place"] is eager_kernels._module.place
    here = {}
    exec(compile("def make(f):\n    return f()", "<pullback plan of nothing>", "exec"), here)
    found = here["make"](lambda: here["make"](lambda: space["place"](1)))
    line = sys._getframe().f_lineno - 1
    assert found[0].co_filename == __file__
    assert errors.describe_place(found) == f"{os.path.basename(__file__)}:{line}"
    layer, x = torch.nn.TransformerEncoderLayer(8, 2, 8), torch.randn(3, 2, 8)
    for _ in range(20):
        out = layer(x)
        line = sys._getframe().f_lineno - 1
        assert errors.describe_place(out.grad_fn.where).endswith(f":{line}")
        seen, todo = set(), [out.grad_fn]
        while todo:
            node = todo.pop()
            if node is None or node in seen or not hasattr(node, "where"):
                continue
            seen.add(node)
            if "Accumulate" not in node.name():
                assert errors.describe_place(node.where).endswith(f":{line}"), node
            todo += [n for n, _ in node.next_functions]
        assert len(seen) > 20


PROGRAM = """
import sys, threading, time
import pullback as torch
from pullback.array import native
from pullback.core.overload import overload
F = torch.nn.functional
x = torch.randn(4, 8, requires_grad=True)
ov = overload("_softmax")

def step():
    y = F.softmax(x, -1)
    (g,) = torch.autograd.grad(y.square().sum(), x)
    return y.detach().clone(), g

first = step()
native.LOOK, native.BUILD, native._next = 3, 6, 3
"""


def program(text, **environment):
    env = {**os.environ, "PULLBACK_EAGER_KERNELS": "", **environment}
    done = subprocess.run([sys.executable, "-c", PROGRAM + textwrap.dedent(text)], env=env,
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_built_beside_the_program(maker, tmp_path):
    """While a slow build goes on calls run as before; then kernels change places."""
    out = program("""
    from pullback.compile import cache, eager_kernels
    held, load, intact = threading.Event(), eager_kernels._load, cache.intact

    def slow(name):
        held.wait(60)
        return load(name)

    eager_kernels._load = slow
    cache.intact = lambda name: held.is_set() and intact(name)  # not built yet
    for _ in range(40):
        again = step()
        assert torch.equal(again[0], first[0]) and torch.equal(again[1], first[1])
    assert native._maker is None and type(ov.kernel).__name__ == "function"
    held.set()
    for _ in range(1000):
        if native._maker is not None:
            break
        time.sleep(0.05)
    assert type(ov.kernel).__name__ == "Kernel", ov.kernel
    again = step()
    assert torch.allclose(again[0], first[0]) and torch.allclose(again[1], first[1])
    from pullback.eager.unroll import space
    held = [v for n, v in space.items() if n.startswith("kernel_") and "counting" in repr(v)]
    assert not [h for h in held if "softmax" in repr(h.__closure__)], held
    print("done")
    """)
    assert "done" in out


def test_a_library_in_the_cache_is_loaded_at_a_certain_call(maker):
    """All runs of a program change kernels at the same place: their results have the same bits."""
    out = program("""
    seen = []
    for _ in range(10):
        step()
        seen.append(type(ov.kernel).__name__)
    assert native._maker is not None
    print(seen.index("Kernel"), set(seen[seen.index("Kernel"):]))
    """)
    assert out.split() == ["0", "{'Kernel'}"]


def test_without_a_compiler():
    out = program("""
    for _ in range(40):
        again = step()
    for _ in range(1000):
        if native._refused:
            break
        time.sleep(0.02)
    again = step()
    assert native._refused and native._maker is None, (native._calls, native._next)
    assert "counting" not in repr(ov.kernel), ov.kernel
    assert torch.equal(again[0], first[0]) and torch.equal(again[1], first[1])
    print("done")
    """, PULLBACK_CC="/nowhere/cc", PATH="/nowhere")
    assert "done" in out


def test_switched_off(maker):
    out = program("""
    for _ in range(40):
        step()
    assert native._refused and native._maker is None
    print("done")
    """, PULLBACK_EAGER_KERNELS="0")
    assert "done" in out


def test_at_once(maker):
    out = program("""
    assert type(ov.kernel).__name__ == "Kernel"
    print("done")
    """, PULLBACK_EAGER_KERNELS="1")
    assert "done" in out
