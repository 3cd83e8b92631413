"""Conjugates and negatives that are put off: views of memory whose elements are meant otherwise."""

import copy
import io
import pickle

import numpy as np
import pytest

import pullback as torch
from pullback import func
from pullback.array import lazy
from pullback.fx.make_fx import make_fx


def numbers(*shape):
    random = np.random.default_rng(3)
    return torch.from_numpy(random.normal(size=shape) + 1j * random.normal(size=shape))


def values(t):
    return t.numpy(force=True)


SHOWN = {  # what is shown: the same of NumPy, (is_conj, is_neg)
    "conj": (lambda x: x.conj(), np.conj, (True, False)),
    "torch.conj": (torch.conj, np.conj, (True, False)),
    "mH": (lambda x: x.mH, lambda a: a.conj().T, (True, False)),
    "H": (lambda x: x.H, lambda a: a.conj().T, (True, False)),
    "adjoint": (torch.adjoint, lambda a: a.conj().T, (True, False)),
    "twice": (lambda x: x.conj().mH, lambda a: a.T, (False, False)),
    "part": (lambda x: x.conj()[1:, 0], lambda a: a.conj()[1:, 0], (True, False)),
    "real": (lambda x: x.conj().real, np.real, (False, False)),
    "imag": (lambda x: x.conj().imag, lambda a: -a.imag, (False, True)),
    "imag of part": (lambda x: x.t().conj()[0].imag, lambda a: -a.T[0].imag, (False, True)),
    "negative": (torch._neg_view, np.negative, (False, True)),
    "both": (lambda x: torch._neg_view(x.conj()), lambda a: -a.conj(), (True, True)),
    "real of both": (lambda x: torch._neg_view(x.conj()).real, lambda a: -a.real, (False, True)),
    "imag of both": (lambda x: torch._neg_view(x.conj()).imag, np.imag, (False, False)),
    "pairs of negatives": (lambda x: torch.view_as_real(torch._neg_view(x)),
                           lambda a: -np.stack([a.real, a.imag], -1), (False, True)),
    "strides": (lambda x: x.conj().as_strided((2,), (3,), 1), lambda a: a.conj().reshape(-1)[1::3],
                (True, False)),
    "expanded": (lambda x: x.conj().expand(2, 2, 3), lambda a: np.broadcast_to(
        a.conj(), (2, 2, 3)), (True, False)),
}


@pytest.mark.parametrize("name", SHOWN)
def test_views(name):
    show, expected, marks = SHOWN[name]
    x = numbers(2, 3)
    y = show(x)
    assert (y.is_conj(), y.is_neg()) == marks == (torch.is_conj(y), torch.is_neg(y))
    assert y._is_view() and y._base is x
    assert y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() == x.data_ptr()
    np.testing.assert_array_equal(values(y), expected(x.numpy()))
    assert y.tolist() == expected(x.numpy()).tolist()
    x.mul_(2 - 1j)
    x[1] = 4j
    x.numpy()[0, 0] = 7 + 1j  # no version counts that
    np.testing.assert_array_equal(values(y), expected(x.numpy()))
    np.testing.assert_array_equal(values(y * 2 + 1), expected(x.numpy()) * 2 + 1)


WRITES = {
    "mul_": lambda y: y.mul_(3),
    "whole": lambda y: y.copy_(torch.arange(y.numel()).reshape(y.shape) + 2),
    "number": lambda y: y.fill_(2.5),
    "item": lambda y: y.__setitem__(0, 1.5),
    "mask": lambda y: y.masked_fill_(y.abs() > 1, 0.5),
    "places": lambda y: y.index_put_((torch.tensor([0]),), torch.tensor(4.0).to(y.dtype)),
    "data": lambda y: y.data.add_(1),
    "detached": lambda y: y.detach().sub_(y.detach().clone() * 2),
    "list": lambda y: torch._foreach_mul_([y, y], 2),
    "out": lambda y: torch.add(y, 1, out=y),
    "itself": lambda y: y.copy_(y.flip(0)),
    "part": lambda y: y[..., 0].zero_(),
}


@pytest.mark.parametrize("name", [n for n in SHOWN if n != "expanded"])
def test_writes_go_through(name):
    show, expected, _ = SHOWN[name]
    for write in WRITES.values():
        x = numbers(2, 3)
        y, beside = show(x), show(x).clone()
        assert not (beside.is_conj() or beside.is_neg())
        untouched = numbers(2, 3).numpy()
        write(y)
        write(beside)
        np.testing.assert_allclose(values(y), values(beside), rtol=1e-12)
        np.testing.assert_allclose(expected(x.numpy()), values(y), rtol=1e-12)
        hidden = {"part": [0, 1, 2, 4, 5], "strides": [0, 2, 3, 5]}.get(name, [])
        np.testing.assert_array_equal(x.numpy().reshape(-1)[hidden], untouched.reshape(-1)[hidden])


def test_copies_are_of_numbers():
    x = numbers(2, 3)
    y = x.conj()
    for made in (y.clone(), y.resolve_conj(), y.conj_physical(), y.t().contiguous(), y + 0,
                 y.flatten().reshape(3, 2).t().reshape(-1), y[[0]], torch.cat([y]), y.to(
                     torch.complex64), torch.empty_like(y), y.repeat(1, 1), y.imag.clone(),
                 y.imag.resolve_neg(), copy.deepcopy(y), torch.tensor(y.tolist())):
        assert not (made.is_conj() or made.is_neg())
    assert y.resolve_neg() is y and x.resolve_conj() is x and y.contiguous() is y
    assert y.to(torch.complex128) is y and y.cpu() is y and y.positive() is y
    real = torch.ones(2)
    assert real.conj() is real and not real.is_conj() and real.resolve_conj() is real
    assert copy.copy(y).is_conj() and torch.nn.Parameter(y).is_conj() and y.detach().is_conj()
    assert copy.deepcopy([x, y])[1].tolist() == y.tolist()
    assert repr(y) == repr(y.clone()) and repr(y.imag) == repr(y.imag.clone())
    assert torch.equal(y, y.clone()) and complex(y[0, 0]) == x[0, 0].item().conjugate()
    sparse = x.to_sparse().conj()
    assert sparse.to_dense().tolist() == y.tolist() and not sparse.values().is_conj()


def test_what_would_share_memory_refuses():
    y = numbers(2, 3).conj()
    with pytest.raises(RuntimeError, match=r"conjugate bit.*\n.*resolve_conj\(\)\.numpy"):
        y.numpy()
    with pytest.raises(RuntimeError, match="resolve_conj"):
        np.asarray(y)
    with pytest.raises(RuntimeError, match=r"negative bit.*\n.*resolve_neg\(\)\.numpy"):
        y.imag.numpy()
    with pytest.raises(BufferError, match="conjugate bit"):
        np.from_dlpack(y)
    with pytest.raises(RuntimeError, match="unresolved conjugated"):
        torch.view_as_real(y)
    with pytest.raises(RuntimeError, match="different dtype"):
        y.view(torch.float64)
    with pytest.raises(NotImplementedError, match="Bool"):
        torch._neg_view(torch.ones(2, dtype=torch.bool))
    assert y.resolve_conj().numpy().shape == (2, 3) == y.numpy(force=True).shape


def test_memory_that_moves():
    x = numbers(3).clone()
    y = x.conj()
    expected = y.tolist()
    x.untyped_storage().resize_(1024)
    x.share_memory_()
    assert y.tolist() == expected and y.is_conj() and y.data_ptr() == x.data_ptr()
    y.resize_(2)
    assert y.is_conj() and y.tolist() == expected[:2]
    assert y.t_().is_conj() and not torch.empty(0, dtype=y.dtype).set_(x).is_conj()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.int32, torch.complex32])
def test_dtypes(dtype):
    x = torch.tensor([1.0, -2.0, 3.0]).to(dtype)
    y = torch._neg_view(x)
    assert y.is_neg() and (y + 1).tolist() == [0, 3, -2]
    y.add_(1)
    assert x.tolist() == [0, -3, 2]
    if dtype.is_complex:
        x.copy_(torch.tensor([1 + 2j, 3j, -1]))
        assert (x.conj() * 1).tolist() == [1 - 2j, -3j, -1]


# histories: gradients and names as PyTorch 2.13 has them


def base_written(b):
    y = b.conj()
    b.mul_(2j)
    return y * b, y


def written(b):
    y = b.conj()
    y.mul_(torch.tensor([1j, 2, 3], dtype=torch.complex128))
    return b * b, y


def part_written(b):
    y = b.conj()[1:]
    y[0] = b.exp()[0]
    return b, y


def imaginary_part_written(b):
    y = b.conj().imag
    y.mul_(3)
    y.exp_()
    return b, y


def negative_written(b):
    y = torch._neg_view(b)
    y.add_(b.conj())
    return y, b


def adjoint_written(b):
    y = b.reshape(3, 1).mH
    y.copy_(b.sum() * torch.ones(1, 3, dtype=torch.float64))
    return (b,)


def conjugated_twice(b):
    y = b.conj()
    z = y.conj()
    z.mul_(y.exp())
    return z, y, b


HISTORIES = {
    base_written: ([336 + 672j, 1968 - 656j, -672 + 336j], ["MulBackward0", "ConjBackward0"]),
    written: ([20 + 48j, 1968 - 640j, -3312 + 1620j], ["MulBackward0", "ConjBackward0"]),
    part_written: ([31.425020011965785 + 1.5282733279951803j, 0, -7 + 4j],
                   ["CopySlices", "AsStridedBackward0"]),
    imaginary_part_written: (
        [3 - 7.373054823993851e-05j, 7 - 4841.145521912821j, -3 - 0.0297450261199963j],
        ["CopySlices", "AsStridedBackward0"]),
    negative_written: ([32j, -16j, 16j], ["NegViewBackward0", "CopySlices"]),
    adjoint_written: ([15 + 12j] * 3, ["CopySlices"]),
    conjugated_twice: (
        [268.6870641379994 + 86.40626441965418j, 31527.756336625287 - 2397.622229800308j,
         0.37044024846352375 + 0.524657941123569j],
        ["ConjBackward0", "ConjBackward0", "CopySlices"]),
}


def loss(outs):
    return sum(o.abs().square().sum() for o in outs) + outs[0].sum().real


@pytest.mark.parametrize("program", HISTORIES)
def test_histories(program):
    a = torch.tensor([1 + 2j, 3 - 1j, -2 + 1j], dtype=torch.complex128, requires_grad=True)
    expected, names = HISTORIES[program]
    outs = program(a * 1)
    assert [o.grad_fn.name().rpartition("::")[2] for o in outs] == names
    found, = torch.autograd.grad(loss(outs), a)
    assert not found.is_conj()
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-12)
    ways = {
        "func": func.grad(lambda b: loss(program(b * 1)))(a.detach()),
        "functionalized": func.grad(lambda b: loss(func.functionalize(program)(b * 1)))(a.detach()),
        "mapped": func.vmap(func.grad(lambda b: loss(program(b * 1))))(a.detach()[None])[0],
        "compiled": torch.autograd.grad(torch.compile(lambda b: loss(program(b * 1)))(a), a)[0],
        "aot": torch.autograd.grad(
            torch.aot.aot_function(lambda b: loss(program(b * 1)), torch.aot.nop)(a), a)[0],
        "traced": func.grad(make_fx(lambda b: loss(program(b * 1)))(a.detach()))(a.detach()),
    }
    for way, found in ways.items():
        np.testing.assert_allclose(values(found), expected, rtol=1e-12, atol=1e-12, err_msg=way)
    assert torch.autograd.gradcheck(lambda b: program(b * 1), a)


@pytest.mark.parametrize("show", [torch.conj, torch._neg_view])
def test_bases_that_are_transposed_in_place(show):
    """PyTorch's gradients are transposed here."""
    weights = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.complex128)
    a = numbers(2, 2).requires_grad_()
    for write in (False, True):
        b = a * 1
        y = show(b)
        b.t_()
        if write:
            y.mul_(weights)
            total, expected = (b * weights).sum().real, [[1, 6], [6, 16]]
        else:
            total = (y * weights).sum().real + 0 * b.sum().real
            expected = show(weights).real.tolist()
        assert torch.autograd.grad(total, a)[0].tolist() == expected


def test_saved_conjugates_notice_writes():
    a = numbers(3).requires_grad_()
    b = a * 1
    out = (b.conj() * a).abs().sum()
    b.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_leaves():
    x = numbers(3).requires_grad_()
    y = x.conj()
    assert not y.is_leaf and y.grad_fn.name() == "ConjBackward0"
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        y.mul_(2)
    leaf = numbers(3).conj().requires_grad_()
    (leaf * leaf.conj()).real.sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), 2 * values(leaf))
    torch.optim.SGD([leaf], lr=0.5).step()
    np.testing.assert_allclose(values(leaf), 0)
    assert leaf.is_conj()


# transforms and graphs


def test_inside_of_transforms():
    seen = []

    def f(v):
        y = v.conj()
        seen.append((v.is_conj(), y.is_conj(), y.imag.is_neg(), y.conj().is_conj()))
        y.mul_(2j)
        seen.append(v.is_conj())
        return y

    made = {
        "plain": (lambda: numbers(2, 3), (False, True, True, False)),
        "conjugate": (lambda: numbers(2, 3).conj(), (True, False, False, True)),
    }
    ways = {
        "vmap": func.vmap(f), "jvp": lambda v: func.jvp(f, (v,), (v.clone(),))[0],
        "vjp": lambda v: func.vjp(f, v)[0], "functionalize": func.functionalize(f)}
    for make, marks in made.values():
        expected = values(make()).conj() * 2j
        graph = make_fx(f)(make())
        for run in (*ways.values(), graph):
            seen.clear()
            given = make()
            np.testing.assert_allclose(values(run(given)), expected)
            np.testing.assert_allclose(values(given), expected.conj())
            assert run is graph or (seen[0] == marks and seen[1] == marks[0])


def test_tangents_whose_marks_differ():
    x, t = numbers(3), numbers(3)
    for primal, tangent in ((x, t.conj()), (x.conj(), t)):
        _, moved = func.jvp(lambda v: (v.imag * v.conj().real, torch.view_as_real(
            v.resolve_conj()).sum()), (primal,), (tangent,))
        p, d = values(primal), values(tangent)
        np.testing.assert_allclose(values(moved[0]), d.imag * p.real + p.imag * d.real)
        np.testing.assert_allclose(values(moved[1]), (d.real + d.imag).sum())


def test_graphs():
    def f(v):
        y = v.conj()
        return y.imag, y.mH * 2

    expected = """
def forward(self, v_1):
    _conj = torch.ops.aten._conj.default(v_1); v_1 = None
    _conj_1 = torch.ops.aten._conj.default(_conj)
    view_as_real = torch.ops.aten.view_as_real.default(_conj_1); _conj_1 = None
    _neg_view = torch.ops.aten._neg_view.default(view_as_real); view_as_real = None
    select = torch.ops.aten.select.int(_neg_view, 2, 1); _neg_view = None
    transpose = torch.ops.aten.transpose.int(_conj, -2, -1); _conj = None
    _conj_2 = torch.ops.aten._conj.default(transpose); transpose = None
    mul = torch.ops.aten.mul.Tensor(_conj_2, 2); _conj_2 = None
    return (select, mul)
"""
    assert make_fx(f)(numbers(2, 3)).code.split() == expected.split()


@pytest.mark.parametrize("way", ["native", "numpy", "aot"])
def test_compiled(way):
    compiled = {
        "native": torch.compile, "numpy": lambda f: torch.compile(f, backend="numpy"),
        "aot": lambda f: torch.aot.aot_function(f, torch.aot.nop)}[way]

    def f(x):
        b = x * 2
        y, z = x.mH, b.conj()
        y[0] = 1j
        z.imag.add_(x.t().real.t())
        return y, y.imag, b, z, x.is_conj(), y.is_conj()

    run = compiled(f)
    for x in (numbers(2, 3), numbers(2, 3), numbers(3, 2).mH, numbers(2, 3).conj()):
        twin = x.clone() if not x.is_conj() else x.conj().clone().conj()
        found, expected = run(x), f(twin)
        np.testing.assert_array_equal(values(x), values(twin))
        assert found[4:] == expected[4:]
        for a, b in zip(found[:4], expected):
            np.testing.assert_allclose(values(a), values(b), rtol=1e-12)
            assert a.stride() == b.stride()
        for view in found[:2]:
            assert view._base is x._base or view._base is x
        assert [t.is_conj() for t in found[:2]] == [t.is_conj() for t in expected[:2]]
        found[0].zero_()
        assert not values(x).any()


@pytest.mark.filterwarnings("ignore:compile")
def test_found_by_a_captured_function():
    x, a = numbers(3), numbers(3)
    y = x.conj()
    run = torch.compile(lambda a: a * y)
    for _ in range(2):
        np.testing.assert_allclose(run(a).numpy(), a.numpy() * x.numpy().conj())
        x.mul_(2)
    with pytest.raises(RuntimeError, match=r"put off[\s\S]*resolve_conj"):
        torch.aot.aot_function(lambda a: a * y, torch.aot.nop)(a)
    graph = make_fx(lambda a: a * y)(a)
    x.mul_(2)
    np.testing.assert_allclose(graph(a).numpy(), a.numpy() * x.numpy().conj())


# files and pickles


def test_files_keep_the_marks():
    x = numbers(3)
    y = x.conj()
    given = [x, y, torch._neg_view(y), torch.nn.Parameter(y.detach()), torch._neg_view(
        torch.ones(2, dtype=torch.bfloat16))]
    for zipped in (True, False):
        file = io.BytesIO()
        torch.save(given, file, _use_new_zipfile_serialization=zipped)
        file.seek(0)
        found = torch.load(file)
        assert [(t.is_conj(), t.is_neg()) for t in found] == [
            (False, False), (True, False), (True, True), (True, False), (False, True)]
        assert [t.tolist() for t in found] == [t.tolist() for t in given]
        found[1].mul_(2)
        assert found[0].tolist() == [2 * v for v in x.tolist()]
    x2, y2 = pickle.loads(pickle.dumps([x, y]))
    assert y2.is_conj() and y2.tolist() == y.tolist() and y2.data_ptr() == x2.data_ptr()


def test_functions_of_numpy_compute_with_the_numbers():
    plain = numbers(2, 3).numpy()
    array = lazy.remarked(plain, lazy.CONJ | lazy.NEG)
    wanted = -plain.conj()
    for found in (array * 1, np.sum(array, 0), array.sum(0), np.stack([array, array])[0],
                  array.astype(np.complex64), array.imag, array.T @ array, array.copy(), abs(array),
                  np.einsum("ij->j", array), array[0, 0]):
        assert not isinstance(found, lazy.Lazy)
    np.testing.assert_array_equal(array.sum(0), wanted.sum(0))
    np.testing.assert_array_equal(array.imag, wanted.imag)
    np.testing.assert_array_equal(array[1], wanted[1])
    assert array[0, 0] == wanted[0, 0] and array.tolist() == wanted.tolist()
    array += 1
    np.testing.assert_array_equal(plain, -(wanted + 1).conj())
    np.copyto(array, wanted)
    np.testing.assert_array_equal(array, wanted)
    with pytest.raises(ValueError, match="read-only"):
        array.sort()
    assert np.shares_memory(array, plain)
