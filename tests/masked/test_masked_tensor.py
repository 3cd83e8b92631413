"""Masked tensors: what is left out is in no result and in no gradient; numbers are PyTorch's."""

import copy
import pickle

import pytest

import pullback as torch
from pullback import func
from pullback.masked import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor

NAN, INF = float("nan"), float("inf")
DATA = torch.tensor([[1.0, 2.0, 3.0], [4.0, NAN, 6.0]])
MASK = torch.tensor([[True, False, True], [False, False, True]])


@pytest.fixture
def x():
    return masked_tensor(DATA, MASK)


def rows(t):
    """Nested lists with None for what is left out."""
    def of(v, m):
        return [of(a, b) for a, b in zip(v, m)] if isinstance(m, list) else v if m else None

    return of([round(v, 4) for v in t.get_data().tolist()] if t.ndim == 1
              else t.get_data().tolist(), t.get_mask().tolist())


# making and printing


def test_they_print_as_in_pytorch(x):
    assert repr(x) == """MaskedTensor(
  [
    [  1.0000,       --,   3.0000],
    [      --,       --,   6.0000]
  ]
)"""
    assert str(x[0]) == "MaskedTensor(\n  [  1.0000,       --,   3.0000]\n)"
    assert repr(x[0, 0]) == "MaskedTensor(  1.0000, True)"
    assert repr(x[0, 1]) == "MaskedTensor(--, False)"
    some = torch.tensor([True, False, True])
    assert repr(masked_tensor(torch.arange(3), some)) == "MaskedTensor(\n  [0,       --, 2]\n)"
    assert repr(masked_tensor(some, some)) == "MaskedTensor(\n  [True,       --, True]\n)"
    assert "[1000.1230,        --, 3000.3690]" in repr(masked_tensor(
        DATA.double() * 1000.123, MASK))
    cube = masked_tensor(torch.arange(8.0).reshape(2, 2, 2),
                         torch.arange(8).reshape(2, 2, 2) % 3 == 0)
    assert "    [\n      [  0.0000,       --],\n      [      --,   3.0000]\n    ],\n" in repr(cube)
    assert repr(masked_tensor(torch.zeros(0), torch.zeros(0, dtype=torch.bool))) == (
        "MaskedTensor(\n  []\n)")


@pytest.mark.parametrize(("make", "error", "match"), [
    (lambda: masked_tensor(DATA, MASK[0]), ValueError, r"data.dim\(\) must equal mask.dim\(\)"),
    (lambda: masked_tensor(DATA, MASK.t()), ValueError, r"data.size\(\) must equal mask.size\(\)"),
    (lambda: masked_tensor(DATA, MASK.int()), TypeError, "mask must have dtype bool"),
    (lambda: masked_tensor([1.0], MASK), TypeError, "data must be a Tensor"),
    (lambda: masked_tensor(masked_tensor(DATA, MASK), MASK), TypeError, "data must be a Tensor"),
    (lambda: masked_tensor(DATA * 1j, MASK), TypeError, "complex64 is not supported"),
    (lambda: masked_tensor(DATA.to_sparse(), MASK), TypeError, "must have the same layout"),
])
def test_data_and_mask_must_fit(make, error, match):
    with pytest.raises(error, match=match):
        make()


def test_data_is_copied_or_shared(x):
    data = DATA.clone()
    copied, shared = masked_tensor(data, MASK), as_masked_tensor(data, MASK)
    data[0, 0] = 7
    assert copied.get_data()[0, 0] == 1 and shared.get_data()[0, 0] == 7
    assert is_masked_tensor(x) and isinstance(x, torch.Tensor) and not is_masked_tensor(data)
    assert x.to_tensor(9.0).tolist() == [[1, 9, 3], [9, 9, 6]]
    assert torch.equal(x.get_mask(), MASK) and x.shape == (2, 3) and x.stride() == (3, 1)
    assert isinstance(MaskedTensor(DATA, MASK), MaskedTensor)


def test_single_elements(x):
    assert float(x[0, 0]) == x[0, 0].item() == 1 and bool(x[0, 0])
    with pytest.raises(ValueError, match="left out"):
        x[0, 1].item()
    for method in (x.numpy, x.tolist):
        with pytest.raises(RuntimeError, match="not supported for tensor subclasses"):
            method()


def test_copies_and_pickles(x):
    for other in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone()):
        assert rows(other) == rows(x)


@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_sparse_layouts(x, layout):
    sparse = getattr(x, f"to_sparse_{layout}")()
    assert sparse.layout is getattr(torch, f"sparse_{layout}") is sparse.get_data().layout
    assert sparse.get_mask().layout is sparse.layout
    assert sparse.get_data()._nnz() == 3 and repr(sparse) == repr(x)
    assert repr(sparse.sin()) == repr(x.sin()) and sparse.sin().layout is sparse.layout
    assert sparse.sum().item() == 10 and sparse.to_dense().layout is torch.strided
    given = masked_tensor(sparse.get_data(), sparse.get_mask())
    assert repr(given) == repr(x) and given.layout is sparse.layout


# elements

UNARY = [
    "abs", "absolute", "acos", "arccos", "acosh", "arccosh", "angle", "asin", "arcsin", "asinh",
    "arcsinh", "atan", "arctan", "atanh", "arctanh", "bitwise_not", "ceil", "cos", "cosh",
    "deg2rad", "digamma", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "floor", "frac", "i0",
    "isnan", "lgamma", "log", "log10", "log1p", "log2", "logit", "nan_to_num", "neg", "negative",
    "positive", "rad2deg", "reciprocal", "relu", "round", "rsqrt", "sigmoid", "sign", "sgn",
    "signbit", "sin", "sinc", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
]


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_elements(name):
    data = torch.tensor([3, 1, 2]) if name == "bitwise_not" else torch.tensor([0.25, NAN, 1.0])
    mask = torch.tensor([True, False, True])
    t = masked_tensor(data, mask)
    wanted = getattr(data, name)()
    out = getattr(t, name)()
    assert torch.equal(out.get_mask(), mask)
    assert torch.allclose(out.get_data()[mask].double(), wanted[mask].double(), equal_nan=True)
    assert repr(getattr(torch, name)(t)) == repr(out)
    if wanted.dtype is data.dtype and hasattr(t, f"{name}_"):
        part = t[1:]
        assert getattr(part, f"{name}_")() is part
        assert repr(t[1:]) == repr(out[1:])  # a view was written


BINARY = [
    "add", "sub", "mul", "div", "true_divide", "floor_divide", "fmod", "remainder", "pow",
    "maximum", "minimum", "fmax", "fmin", "atan2", "arctan2", "logaddexp", "logaddexp2", "hypot",
    "nextafter", "eq", "ne", "lt", "le", "gt", "ge",
]


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two(x, name):
    function = getattr(torch, name)
    wanted = function(DATA, DATA * 2)
    for other in (as_masked_tensor(DATA * 2, MASK), masked_tensor(DATA * 2, MASK), DATA * 2):
        out = function(x, other)
        assert torch.equal(out.get_mask(), MASK)
        assert torch.equal(out.get_data()[MASK], wanted[MASK])
    with pytest.raises(ValueError, match="Input masks must match"):
        function(x, masked_tensor(DATA, ~MASK))


def test_numbers_broadcasting_and_writes(x):
    assert rows(1 - x) == [[0, None, -2], [None, None, -5]]
    assert rows(x > 1) == [[False, None, True], [None, None, True]]
    row = masked_tensor(torch.tensor([10.0, 0.0, 20.0]), torch.tensor([True, False, True]))
    both = masked_tensor(DATA, row.get_mask().expand(2, 3))
    assert rows(both + row) == [[11, None, 23], [14, None, 26]]  # masks broadcast
    y = x.clone()
    assert y.add_(x) is y and rows(y) == [[2, None, 6], [None, None, 12]]
    y[0, 0] = 5.0
    y[1] = masked_tensor(torch.ones(3), MASK[1])
    assert rows(y) == [[5, None, 6], [None, None, 1]]
    y *= 2
    y[torch.tensor([0]), torch.tensor([2])] = 0.0
    assert rows(y) == [[10, None, 0], [None, None, 2]]
    y[1] = 3.0  # the mask stays
    assert rows(y) == [[10, None, 0], [None, None, 3]]
    for key in (1, torch.tensor([1])):
        with pytest.raises(ValueError, match="Input masks must match"):
            y[key] = masked_tensor(torch.ones(3), torch.tensor([True, True, False]))
    assert rows(y.fill_(3.0)) == [[3, None, 3], [None, None, 3]]
    square = masked_tensor(DATA[:, :2].clone(), MASK[:, :2])
    assert rows(square.clone().t_()) == rows(square.t())
    assert rows(torch.ones_like(x)) == [[1, None, 1], [None, None, 1]]


def test_what_is_written_in_place_fits(x):
    assert rows(x.clone().gt_(2)) == [[0.0, None, 1.0], [None, None, 1.0]]
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        masked_tensor(torch.arange(3), MASK[0]).div_(2)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x[0].add_(torch.ones(2, 3))


def test_plain_operands_may_be_sparse(x):
    plain = torch.tensor([[2.0, 0.0, 3.0], [1.0, 0.0, 5.0]])
    for layout in ("coo", "csr"):
        sparse = getattr(plain, f"to_sparse_{layout}")()
        t = getattr(x, f"to_sparse_{layout}")()
        assert rows((t * sparse).to_dense()) == rows((sparse * t).to_dense()) == [
            [2, None, 9], [None, None, 30]]
        assert rows(torch.where(MASK, t, sparse).to_dense()) == [[1, 0, 3], [1, 0, 6]]
        assert rows(x @ sparse.t()) == [[11, 16], [18, 30]]
        assert t[0].layout is torch.sparse_coo and t[0].get_data()._nnz() == 2
        assert t[0, 0].layout is torch.strided


def test_where_takes_both_masks(x):
    other = masked_tensor(torch.zeros(2, 3), ~MASK)
    assert rows(torch.where(MASK, x, other)) == [[1, 0, 3], [0, 0, 6]]
    assert rows(torch.where(~MASK, x, other)) == [[None] * 3] * 2
    assert rows(torch.where(MASK, x, torch.zeros(2, 3))) == [[1, 0, 3], [0, 0, 6]]


def test_elements_move_with_their_masks(x):
    wanted = [[1, None], [None, None], [3, 6]]
    for t in (x.t(), x.T, x.transpose(0, 1), x.permute(1, 0), x.mT.contiguous()):
        assert rows(t) == wanted
    assert rows(x.view(3, 2)) == [[1, None], [3, None], [None, 6]]
    assert rows(x.reshape(6)) == rows(x.flatten()) == [1, None, 3, None, None, 6]
    assert rows(x[:, 1:]) == [[None, 3], [None, 6]]
    assert rows(x[torch.tensor([1, 0])]) == rows(x.flip(0)) == [[None, None, 6], [1, None, 3]]
    assert rows(x[MASK]) == [1, 3, 6]
    assert rows(torch.cat([x, DATA[:1]])) == [[1, None, 3], [None, None, 6], [1, 2, 3]]
    assert torch.stack([x, x]).shape == (2, 2, 3)
    assert [rows(t) for t in x.unbind(0)] == [rows(t) for t in x] == [[1, None, 3],
                                                                     [None, None, 6]]
    assert rows(x.gather(1, torch.tensor([[0], [2]]))) == [[1], [6]]
    assert rows(x.index_select(1, torch.tensor([2]))) == [[3], [6]]
    assert rows(torch.nn.functional.pad(x[0], (1, 0), value=7.0)) == [7, 1, None, 3]
    assert x.double().dtype is torch.float64 and x.unsqueeze(0).squeeze(0).shape == (2, 3)


# reductions: (name, options, over all, over rows, over columns)

RECORDED = [
    ("sum", {}, 10.0, [4.0, 6.0], [1.0, None, 9.0]),
    ("mean", {}, 3.3333, [2.0, 6.0], [1.0, None, 4.5]),
    ("prod", {}, 18.0, [3.0, 6.0], [1.0, None, 18.0]),
    ("amin", {}, 1.0, [1.0, 6.0], [1.0, None, 3.0]),
    ("amax", {}, 6.0, [3.0, 6.0], [1.0, None, 6.0]),
    ("argmin", {}, 0.0, [0.0, 2.0], [0.0, None, 0.0]),
    ("argmax", {}, 5.0, [2.0, 2.0], [0.0, None, 1.0]),
    ("var", {}, 6.3333, None, None),
    ("std", {}, 2.5166, None, None),
    ("var", {"correction": 0}, 4.2222, [1.0, 0.0], [0.0, None, 2.25]),
    ("norm", {}, 6.7823, [3.1623, 6.0], [1.0, None, 6.7082]),
    ("all", {}, True, [True, True], [True, None, True]),
    ("any", {}, True, [True, True], [True, None, True]),
    ("logsumexp", {}, None, [3.1269, 6.0], [1.0, None, 6.0486]),
    ("count_nonzero", {}, 3, [2, 1], [1, None, 2]),
    ("max", {}, 6.0, [3.0, 6.0], [1.0, None, 6.0]),
    ("min", {}, 1.0, [1.0, 6.0], [1.0, None, 3.0]),
    ("median", {}, 3.0, [1.0, 6.0], [1.0, None, 3.0]),
    ("nansum", {}, 10.0, [4.0, 6.0], [1.0, None, 9.0]),
    ("nanmean", {}, 3.3333, [2.0, 6.0], [1.0, None, 4.5]),
]


@pytest.mark.parametrize(("name", "options", "whole", "along", "down"), RECORDED)
def test_reductions(x, name, options, whole, along, down):
    for wanted, dim in ((whole, None), (along, 1), (down, 0)):
        if wanted is None:
            continue
        more = dict(options) if dim is None else dict(options, dim=dim)
        out = getattr(x, name)(**more)
        out = out[0] if isinstance(out, tuple) else out
        found = out.item() if dim is None else rows(out)
        assert found == wanted or found == pytest.approx(wanted, abs=1e-4)
    if name != "logsumexp":
        nothing = masked_tensor(DATA, torch.zeros_like(MASK))
        out = getattr(nothing, name)(**options)
        assert not out.get_mask()


def test_along_a_dim(x):
    close = lambda t, wanted: torch.allclose(t.to_tensor(0.0), torch.tensor(wanted), atol=1e-4)
    assert close(x.softmax(1), [[0.1192, 0, 0.8808], [0, 0, 1]])
    assert close(torch.softmax(x, 0), [[1, 0, 0.0474], [0, 0, 0.9526]])
    assert close(x.log_softmax(-1), [[-2.1269, 0, -0.1269], [0, 0, 0]])
    assert close(x.cumsum(1), [[1.0, 0, 4], [0, 0, 6]])
    assert close(x.cumprod(0), [[1.0, 0, 3], [0, 0, 18]])
    assert torch.equal(x.softmax(1).get_mask(), MASK)


def test_products_count_what_is_left_out_as_zero(x):
    zeros = x.to_tensor(0.0)
    assert torch.equal((x @ x.t()).get_data(), zeros @ zeros.t())
    assert torch.equal((x @ torch.ones(3, 2)).get_data(), zeros @ torch.ones(3, 2))
    assert torch.equal(torch.nn.functional.linear(x, torch.ones(2, 3)).get_data(),
                       zeros @ torch.ones(3, 2))
    assert rows(x.t() @ x[:1].t().reshape(3, 1)[:2]) == [[1], [None], [3]]
    assert rows(torch.addmm(torch.ones(2, 2), x, torch.ones(3, 2))) == [[5, 5], [7, 7]]


def test_others_are_refused(x):
    with pytest.raises(NotImplementedError, match="no such operator on masked tensors") as caught:
        x.sort()
    assert "to_tensor" in str(caught.value)


# derivatives

BROKEN = torch.tensor([[1.0, 2.0, NAN], [INF, -1.0, 0.5]], dtype=torch.float64)
KEPT = torch.tensor([[True, True, False], [False, False, True]])
OTHER = torch.tensor([[0.3, 0.2, 0.7], [0.5, 0.4, 0.9]], dtype=torch.float64)
LOSSES = {
    "sqrt": lambda a, w: (a.sqrt() * w).sum(),
    "log": lambda a, w: (a.log() / w).mean(),
    "div": lambda a, w: (w / a).prod(),
    "std": lambda a, w: (a * w).std(),
    "var": lambda a, w: (a * w).var(1, correction=0).sum(),
    "softmax": lambda a, w: (a.softmax(1) * w).sum(),
    "log_softmax": lambda a, w: (a.log_softmax(0) * w).sum(),
    "logsumexp": lambda a, w: (a * w).logsumexp(1).sum(),
    "norm": lambda a, w: (a * w).norm(),
    "matmul": lambda a, w: (a @ w.t()).sum(),
    "matmul of both": lambda a, w: ((a * w) @ a.t()).sum(),
    "cumsum": lambda a, w: (a.cumsum(1) * a * w).sum(),
    "cumprod": lambda a, w: (a.cumprod(1) * w).sum(),
    "amax": lambda a, w: (a * w).amax(1).sum(),
    "median": lambda a, w: (a * w).median(),
    "filled": lambda a, w: (a.exp() * w).to_tensor(0.0).sum(),
    "broadcast": lambda a, w: (a * w[0]).sum(),
    "views": lambda a, w: (a.t()[1:] * w.t()[1:]).sum(),
    "where": lambda a, w: torch.where(w > 0.45, a, w).sum(),
}


def scalar(name):
    def loss(a, w):
        out = LOSSES[name](a, w)
        return out.get_data() if isinstance(out, MaskedTensor) else out

    return loss


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_never_see_what_is_left_out(name):
    loss = scalar(name)
    p, w = BROKEN.clone().requires_grad_(), OTHER.clone().requires_grad_()
    found = torch.autograd.grad(loss(as_masked_tensor(p, KEPT), w), (p, w), create_graph=True)
    q = torch.where(KEPT, BROKEN, 1.0).requires_grad_()
    wanted = torch.autograd.grad(loss(as_masked_tensor(q, KEPT), w), (q, w))
    for ours, theirs in zip(found, wanted):
        assert torch.allclose(ours, theirs)
    assert not found[0][~KEPT].any()
    total = sum((g * g).sum() for g in found)
    again = torch.autograd.grad(total, (p, w), allow_unused=True, materialize_grads=True) if (
        total.requires_grad) else found
    assert all(g.isfinite().all() for g in again)

    def of_values(v, w):
        whole = torch.where(KEPT, BROKEN, 1.0).masked_scatter(KEPT, v)
        return loss(as_masked_tensor(whole, KEPT), w)

    values = BROKEN[KEPT].clone().requires_grad_()
    assert torch.autograd.gradcheck(of_values, (values, w), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(of_values, (values, w))


@pytest.mark.parametrize("name", LOSSES)
def test_leaves_transforms_and_programs(name):
    loss = scalar(name)
    leaf, plain = masked_tensor(BROKEN, KEPT, requires_grad=True), masked_tensor(BROKEN, KEPT)
    loss(leaf, OTHER).backward()
    assert type(leaf.grad) is MaskedTensor and torch.equal(leaf.grad.get_mask(), KEPT)
    wanted = leaf.grad.to_tensor(0.0)
    assert wanted.isfinite().all()
    g = func.grad(loss)(plain, OTHER)
    assert type(g) is MaskedTensor and torch.allclose(g.to_tensor(0.0), wanted)
    ones = plain.with_carrier(torch.ones_like(BROKEN))
    _, tangent = func.jvp(lambda a: loss(a, OTHER), (plain,), (ones,))
    assert torch.allclose(tangent, wanted.sum())
    value = loss(plain, OTHER)
    each = func.vmap(loss, (None, 0))(plain, torch.stack([OTHER, OTHER * 2]))
    assert torch.allclose(each[0], value) and each.shape == (2,)
    many = masked_tensor(torch.stack([BROKEN, BROKEN + 1]), torch.stack([KEPT, KEPT]))
    assert torch.allclose(func.vmap(loss, (0, None))(many, OTHER)[0], value)
    g = func.vmap(func.grad(loss), (0, None))(many, OTHER)
    assert type(g) is MaskedTensor and torch.allclose(g.to_tensor(0.0)[0], wanted)
    compiled, leaf = torch.compile(loss), masked_tensor(BROKEN, KEPT, requires_grad=True)
    for _ in range(2):
        leaf.grad = None
        out = compiled(leaf, OTHER)
        out.backward()
        assert torch.allclose(out, value)
        assert torch.allclose(leaf.grad.to_tensor(0.0), wanted)


def test_results_of_transforms_are_masked():
    t = masked_tensor(torch.stack([BROKEN, BROKEN + 1]), torch.stack([KEPT, ~KEPT]))
    for run in (func.vmap(lambda a: a.exp() * 2), torch.compile(lambda a: a.exp() * 2)):
        out = run(t)
        assert type(out) is MaskedTensor and torch.equal(out.get_mask(), t.get_mask())
        assert torch.allclose(out.to_tensor(0.0), (t.exp() * 2).to_tensor(0.0),
                              equal_nan=True)


def test_masked_losses_have_no_nan_gradients():
    scores = torch.tensor([0.5, 0.0, 2.0], requires_grad=True)
    there = torch.tensor([True, False, True])
    (-as_masked_tensor(scores, there).log()).mean().backward()
    assert torch.allclose(scores.grad, torch.tensor([-1.0, 0.0, -0.25]))


def test_other_tensors_of_parts_are_refused_by_vmap():
    packed = torch.sparse.to_sparse_semi_structured(torch.eye(4))
    with pytest.raises(RuntimeError, match="a semi-structured tensor has no dim of examples"):
        func.vmap(lambda t: t @ torch.ones(4))(packed)
