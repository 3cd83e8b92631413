"""How each row of `tests/data/sparse_nested.tsv` about sparse layouts is run.

A program is a function of a sparse tensor and dense operands, and the same in dense arithmetic;
`test_inventory.py` runs it in all layouts and all kinds of derivatives that its row asks for.
"""

from __future__ import annotations

import math

import pullback as torch
from pullback.nn import functional as F
from tests.helpers import sparse_cases as cases

aten = torch.ops.aten
D = torch.float64


def d(*shape):
    """A dense operand, between 0.5 and 1.5."""
    count = math.prod(shape)
    return (torch.arange(count, dtype=D) * 0.7).sin().abs().reshape(shape) + 0.5


def strided(values):
    """The same matrix as in the layouts, made by indexing alone."""
    full = torch.zeros(4, 6, dtype=values.dtype)
    return full.index_put(tuple(torch.tensor(cases.ENTRIES).t()), values)


MAKES = {"coo": (cases.coo, cases.uncoalesced), "csr": (cases.csr,), "csc": (cases.csc,),
         "bsr": (cases.bsr,), "bsc": (cases.bsc,), "strided": (strided,)}


class Program:
    """A function, dense operands, and what it is in dense arithmetic.

    `refused` are layouts that PyTorch's operator is not about, and `said` is what the refusal says;
    `randomness` is that argument of `vmap`; `traced` says that the pattern is made inside of the
    function, which is then no one graph.
    """

    def __init__(self, function, *operands, dense=None, refused=(), said="", randomness="error",
                 traced=False):
        self.function, self.operands, self.dense = function, operands, dense or function
        self.refused, self.said, self.randomness = refused, said, randomness
        self.traced = traced


def once(x):
    """Every place once, where a layout may have it twice."""
    return x.coalesce() if x.layout is torch.sparse_coo else x


def there(x):
    """One where there is an entry; none of them is zero in these tests."""
    return (x != 0).to(x.dtype)


def at(x, function):
    """A function of entries alone."""
    zero = x == 0
    return torch.where(zero, 0, function(torch.where(zero, 1, x)))


def flat(*results):
    """Several results as one."""
    return torch.cat([cases.whole(r).flatten() for r in results])


def number(n):
    return torch.tensor(float(n), dtype=D)


def fact(function, wanted, **more):
    """A program whose result does not depend on values."""
    return Program(lambda x: number(function(x)), dense=lambda x: number(wanted), **more)


FULL = torch.zeros(4, 6, dtype=D).index_put(
    (torch.tensor([0, 1, 2, 3, 3, 1]), torch.tensor([1, 0, 3, 2, 4, 5])),
    torch.arange(1, 7).to(D))
OTHERS = {"coo": FULL.to_sparse(), "csr": FULL.to_sparse_csr(), "csc": FULL.to_sparse_csc(),
          "bsr": FULL.to_sparse_bsr((2, 3)), "bsc": FULL.to_sparse_bsc((2, 3))}


def other(x):
    """Another pattern in the layout of a tensor."""
    return FULL if x.layout is torch.strided else OTHERS[str(x.layout)[-3:]]


COMPRESSED = ("csr", "csc", "bsr", "bsc")
ONLY_COO = {"refused": COMPRESSED, "said": "coordinate"}

# functions of elements ----------------------------------------------------------------------------

NARROW = {"asin", "atanh", "log1p", "erfinv"}  # of numbers between -1 and 1
NAMES = """abs angle asin asinh atan atanh ceil conj_physical deg2rad erf erfinv expm1 floor frac
    log1p nan_to_num neg rad2deg relu round sgn sign sin sinh square tan tanh trunc"""
PLAIN = NAMES.split()


def elementwise(name):
    factor = 0.3 if name in NARROW else 1.0
    return lambda x: getattr(torch, name)(x * factor)


def in_place(name):
    factor = 0.3 if name[:-1] in NARROW else 1.0
    return lambda x: getattr(x * factor, name)()


def rooted(x):
    return at(x, lambda t: (t * t).sqrt())


PROGRAMS = {name: Program(elementwise(name)) for name in PLAIN}
PROGRAMS |= {f"{name}_": Program(in_place(f"{name}_")) for name in PLAIN
             if name not in ("square", "angle")}
PROGRAMS |= {
    "log1p_backward": Program(elementwise("log1p")),
    "_conj_physical": Program(lambda x: aten._conj_physical(x) * x),
    "sqrt": Program(lambda x: (x * x).sqrt(), dense=rooted),
    "sqrt_": Program(lambda x: (x * x).sqrt_(), dense=rooted),
    "pow": Program(lambda x: x.pow(3)), "pow 2": Program(lambda x: x**2),
    "pow 3": Program(lambda x: x**3), "complex mul": Program(
        lambda x: (x * (2 + 1j)).abs(), dense=lambda x: at(x, lambda t: (t * (2 + 1j)).abs())),
    "mul": [Program(lambda x: x * x), Program(lambda x, y: x * y, d(4, 6)),
            Program(lambda x: x * other(x))],
    "mul_": [Program(lambda x: x.clone().mul_(2)), Program(lambda x, y: x.clone().mul_(y), d(6))],
    "mul scalar": Program(lambda x: x * 2.5), "mul sparse sparse": Program(lambda x: x * other(x)),
    "mul sparse dense": Program(lambda x, y: x * y, d(4, 6)),
    "mul dense sparse": Program(lambda x, y: y * x, d(4, 6)),
    "mul sparse row vector": Program(lambda x, y: x * y, d(6)),
    "mul sparse column vector": Program(lambda x, y: x * y, d(4, 1)),
    "div": [Program(lambda x: x / 2), Program(lambda x, y: x / y, d(4, 6))],
    "div_": [Program(lambda x: x.clone().div_(2)), Program(lambda x, y: x.clone().div_(y), d(6))],
    "div scalar": Program(lambda x: x / 2.5),
    "floor_divide": Program(lambda x: torch.floor_divide(x, 0.3)),
    "floor_divide_": Program(lambda x: x.clone().floor_divide_(0.3)),
    "add": [Program(lambda x: x + other(x)), Program(lambda x: torch.add(x, x * x, alpha=2))],
    "add_": Program(lambda x: x.clone().add_(other(x), alpha=2)),
    "add sparse sparse": Program(lambda x: x + other(x)),
    "add dense sparse": Program(lambda x, y: y + x, d(4, 6)),
    "sub": Program(lambda x: x - other(x)), "sub_": Program(lambda x: x.clone().sub_(other(x))),
    "sub sparse sparse": Program(lambda x: other(x) - x),
    "threshold_backward": Program(lambda x: aten.threshold_backward(x, x * 2, 0.5)),
    "where mask": [
        Program(lambda x, y: torch.where(y > 1, x.to_dense(), y), d(4, 6)),
        Program(lambda x: torch.where(d(4, 6) > 1, x, 0)),
        Program(lambda x, y: torch.where(y > 1, x, other(x)), d(4, 6))],
    "isinf": Program(lambda x: torch.isinf(once(x) * math.inf).double(), dense=there),
    "isnan": Program(lambda x: torch.isnan(once(x) * math.nan).double(), dense=there),
    "isposinf": Program(lambda x: torch.isposinf(once(x) * math.inf).double(),
                        dense=lambda x: (x > 0).double()),
    "isneginf": Program(lambda x: torch.isneginf(once(x) * math.inf).double(),
                        dense=lambda x: (x < 0).double()),
    "signbit": Program(lambda x: torch.signbit(x).double()),
}

# parts, constructors and conversions --------------------------------------------------------------

INTEGERS = {  # names of the integers -> what they are in the layouts
    "crow_indices": {"csr": [0, 2, 3, 3, 6], "bsr": [0, 1, 3]},
    "col_indices": {"csr": [1, 4, 0, 1, 2, 5], "bsr": [1, 0, 1]},
    "ccol_indices": {"csc": [0, 1, 3, 4, 4, 5, 6], "bsc": [0, 1, 3]},
    "row_indices": {"csc": [1, 0, 3, 3, 0, 3], "bsc": [1, 0, 1]},
    "indices": {"coo": [[0, 0, 1, 3, 3, 3], [1, 4, 0, 1, 2, 5]]},
    "_indices": {"coo": [[0, 0, 1, 3, 3, 3], [1, 4, 0, 1, 2, 5]]},
}


def integers(name):
    """A program that shows integers of a tensor, as a function of the layout."""
    kind = name.removesuffix("_copy")

    def made(layout):
        wanted = torch.tensor(INTEGERS[kind][layout], dtype=D)
        call = getattr(aten, name) if kind != name else lambda x: getattr(x, name)()
        return Program(lambda x: call(sorted_once(x)).double(), dense=lambda x: wanted)

    return made


def sorted_once(x):
    """The entries of `cases.coo` whatever the coordinates were."""
    if x.layout is torch.sparse_coo and not x.is_coalesced():
        return cases.coo(x.coalesce()._values().new_ones(6))
    return x


def entries(name):
    """A program that shows values, as a function of the layout."""
    def made(layout):
        def dense(x):
            if layout in ("coo", "csr"):
                return x[x.detach() != 0]
            if layout == "csc":
                return x.t()[x.t().detach() != 0]
            blocks = x.reshape(2, 2, 2, 3).transpose(1, 2).reshape(4, 2, 3)
            number = [1, 2, 3] if layout == "bsr" else [2, 1, 3]
            return blocks[torch.tensor(number)]

        call = getattr(aten, name) if name.endswith("_copy") else lambda x: getattr(x, name)()
        return Program(lambda x: call(once(x)), dense=dense)

    return made


def remade(x, function):
    """A tensor made anew of the integers of another one."""
    values = function(x.values() if x.layout is not torch.sparse_coo else once(x).values())
    if x.layout is torch.sparse_coo:
        return torch.sparse_coo_tensor(once(x).indices(), values, x.shape)
    if "csr" in str(x.layout) or "bsr" in str(x.layout):
        parts = x.crow_indices(), x.col_indices()
    else:
        parts = x.ccol_indices(), x.row_indices()
    return torch.sparse_compressed_tensor(*parts, values, x.shape, layout=x.layout)


def same(x):
    return x


def converted(name, *args):
    return Program(lambda x: getattr(aten, name)(x, *args), dense=same)


PROGRAMS |= {name: integers(name) for name in INTEGERS}
PROGRAMS |= {f"{name}_copy": integers(f"{name}_copy") for name in INTEGERS}
PROGRAMS |= {name: entries(name) for name in ("values", "_values", "values_copy", "_values_copy")}
PROGRAMS |= {
    "values_backward": entries("values"),
    "values().sum": Program(lambda x: once(x).values().sum(), dense=torch.sum),
    "values then constructor": Program(lambda x: remade(x, lambda v: v * v), dense=lambda x: x * x),
    "sparse_constructor_values_backward": Program(
        lambda x: remade(x, lambda v: v * v), dense=lambda x: x * x),
    "sparse_compressed_tensor.comp_plain_value_size": Program(
        lambda x: remade(x, torch.sin), dense=torch.sin),
    "_sparse_coo_tensor_with_dims_and_tensors": Program(
        lambda x: aten._sparse_coo_tensor_with_dims_and_tensors(
            2, 0, (4, 6), once(x).indices(), once(x).values(), dtype=D), dense=same),
    "_sparse_coo_tensor_with_dims": Program(
        lambda x: aten._sparse_coo_tensor_with_dims(2, 0, (4, 6), dtype=D) + x, dense=same,
        traced=True),
    "_coalesce": Program(lambda x: aten._coalesce(x) * 2, dense=lambda x: x * 2),
    "coalesce": Program(lambda x: x.coalesce() * 2, dense=lambda x: x * 2),
    "to_dense": Program(lambda x: x.to_dense(), dense=same),
    "to_dense masked_grad=False": Program(lambda x: x.to_dense(masked_grad=False), dense=same),
    "_to_dense": Program(lambda x: aten._to_dense(x), dense=same),
    "_to_sparse": [Program(lambda x: aten._to_sparse(x, layout=torch.sparse_csr), dense=same),
                   Program(lambda x: aten._to_sparse(x), dense=same)],
    "_to_sparse.sparse_dim": Program(lambda x: aten._to_sparse.sparse_dim(x, 1), dense=same),
    "_to_sparse_csr": converted("_to_sparse_csr"), "_to_sparse_csc": converted("_to_sparse_csc"),
    "_to_sparse_bsr": converted("_to_sparse_bsr", (2, 3)),
    "_to_sparse_bsc": converted("_to_sparse_bsc", (2, 3)),
    "to_sparse coo": Program(lambda x: x.to_sparse(), dense=same),
    "to_sparse csr": Program(lambda x: x.to_sparse_csr(), dense=same),
    "to_sparse csc": Program(lambda x: x.to_sparse_csc(), dense=same),
    "to_sparse bsr": Program(lambda x: x.to_sparse_bsr((2, 3)), dense=same),
    "to_sparse bsc": Program(lambda x: x.to_sparse_bsc((2, 3)), dense=same),
    "to_sparse_backward": [Program(lambda x: x.to_sparse_csr(), dense=same),
                           Program(lambda x: x.to_dense().to_sparse(), dense=same, traced=True)],
    "_to_copy": Program(lambda x: aten._to_copy(x, dtype=torch.float32).double(),
                        dense=lambda x: x.float().double()),
    "_to_copy_backward": Program(lambda x: x.to(torch.complex128).abs(), dense=lambda x: at(
        x, lambda t: t.to(torch.complex128).abs())),
    "to float32": Program(lambda x: x.to(torch.float32).double(),
                          dense=lambda x: x.float().double()),
    "clone": Program(lambda x: x.clone() * x), "transpose": Program(lambda x: x.transpose(0, 1)),
}

# masks, sums and softmax --------------------------------------------------------------------------


def inside(x):
    """What a softmax over specified entries sees."""
    return torch.where(x == 0, -math.inf, x)


def softmax(x, dim, function=torch.softmax):
    out = function(inside(x), dim)
    return torch.where(x == 0, 0, out)


def soft_backward(x, log):
    out, g = softmax(x, 1), x * 3
    return (there(x) * g - out * g.sum(1, True)) if log else out * (g - (out * g).sum(1, True))


def largest(x):
    out = inside(x).amax(1)
    return torch.where((x != 0).any(1), out, 0)


def masked(function):
    return lambda x: cases.whole(function(x, 1))


def multiplied(x):
    return torch.where((x != 0).any(1, True), torch.where(x == 0, 1, x).prod(1, True), 0)


def of_other(function, also=()):
    """A program that takes the values of a tensor at the places of another pattern."""
    def made(layout):
        y = other(MAKES[layout][0](cases.values()))
        full = there(y if layout == "strided" else once(y).clone().fill_(1).to_dense())
        return [Program(function, dense=lambda x: x * full), *also]

    return made


def mask_of(x):
    return other(x).to_sparse() if x.layout is torch.strided else once(other(x))


SOFT = Program(lambda x: torch.sparse.softmax(x, 1), dense=lambda x: softmax(x, 1))
LOG_SOFT = Program(lambda x: torch.sparse.log_softmax(x, 1),
                   dense=lambda x: softmax(x, 1, torch.log_softmax))
PROGRAMS |= {
    "sparse_mask": of_other(lambda x: aten.sparse_mask(x, mask_of(x)), [
        Program(lambda x, y: aten.sparse_mask(y, once(x) if x.layout is not torch.strided else
                                              x.to_sparse()), d(4, 6),
                dense=lambda x, y: y * there(x))]),
    "sparse_mask of dense": Program(lambda x, y: y.sparse_mask(once(x)), d(4, 6),
                                    dense=lambda x, y: y * there(x)),
    "sparse_mask of sparse": of_other(lambda x: x.sparse_mask(mask_of(x))),
    "sparse_mask_backward": Program(lambda x, y: y.sparse_mask(once(x)) * x, d(4, 6),
                                    dense=lambda x, y: y * x),
    "sparse_mask_like_grad": Program(lambda x: other(x).sparse_mask(once(x)) * x,
                                     dense=lambda x: other(x) * x),
    "_sparse_mask_projection": of_other(lambda x: aten._sparse_mask_projection(x, other(x))),
    "sum": Program(lambda x: x.sum()), "sum dim 0": Program(lambda x: x.sum(0)),
    "sum dim 1": Program(lambda x: x.sum(1)),
    "sum dim 1 keepdim": Program(lambda x: x.sum(1, keepdim=True)),
    "sparse.sum dim 0": Program(lambda x: torch.sparse.sum(x, 0), dense=lambda x: x.sum(0)),
    "_sparse_sum.dim": Program(lambda x: aten._sparse_sum.dim(x, [1]), dense=lambda x: x.sum(1)),
    "_sparse_sum_backward": Program(
        lambda x, g: aten._sparse_sum_backward(g, once(x), [1]) * x, d(4),
        dense=lambda x, g: x * g[:, None]),
    "_sparse_csr_sum": Program(lambda x: torch._sparse_csr_sum(x, [1], True),
                               dense=lambda x: x.sum(1, True)),
    "_sparse_csr_prod": Program(lambda x: torch._sparse_csr_prod(x, [1], True), dense=multiplied),
    "mean": Program(lambda x: x.mean()), "norm": Program(lambda x: x.norm()),
    "native_norm": [Program(lambda x: torch.native_norm(x), dense=lambda x: x.norm()),
                    Program(lambda x: torch.native_norm(x, 1, [0, 1], False, None),
                            dense=lambda x: x.abs().sum())],
    "any": Program(lambda x: x.any().double()),
    "sparse.softmax 1": SOFT, "sparse.log_softmax 1": LOG_SOFT,
    "sparse.softmax 0": Program(lambda x: torch.sparse.softmax(x, 0),
                                dense=lambda x: softmax(x, 0)),
    "_sparse_softmax": Program(lambda x: aten._sparse_softmax.default(x, 1, False),
                               dense=lambda x: softmax(x, 1)),
    "_sparse_log_softmax": Program(lambda x: aten._sparse_log_softmax.default(x, 1, False),
                                   dense=LOG_SOFT.dense),
    "_sparse_softmax_backward_data": Program(
        lambda x: aten._sparse_softmax_backward_data(x * 3, torch.sparse.softmax(x, 1), 1, x),
        dense=lambda x: soft_backward(x, False)),
    "_sparse_log_softmax_backward_data": Program(
        lambda x: aten._sparse_log_softmax_backward_data(
            x * 3, torch.sparse.log_softmax(x, 1), 1, x), dense=lambda x: soft_backward(x, True)),
    "masked.sum 1": Program(masked(torch.masked.sum), dense=lambda x: x.sum(1)),
    "masked.mean 1": Program(masked(torch.masked.mean), dense=lambda x: x.sum(1) / (
        there(x).sum(1).clamp(min=1))),
    "masked.amax 1": Program(masked(torch.masked.amax), dense=largest),
    "masked.softmax 1": Program(lambda x: torch.masked.softmax(x, 1),
                                dense=lambda x: softmax(x, 1)),
}

# products -----------------------------------------------------------------------------------------

W, LEFT = d(6, 3), d(3, 4)


def turned(x):
    """Another pattern, of a matrix that can stand behind."""
    return other(x).t()


def reduced(kind):
    def dense(x, y):
        products = x.unsqueeze(2) * y
        lacking = (x == 0).unsqueeze(2)
        count = there(x).sum(1, True)
        if kind == "sum":
            return products.sum(1)
        if kind == "mean":
            return products.sum(1) / count.clamp(min=1)
        worst = -math.inf if kind == "amax" else math.inf
        out = getattr(torch.where(lacking, worst, products), kind)(1)
        return torch.where(count > 0, out, 0)

    return dense


def by(kind):
    return Program(lambda x, y: torch.sparse.mm(x, y, kind), W, dense=reduced(kind))


def reduce_backward(kind):
    def function(x, g, y):
        empty = torch.empty(0, dtype=torch.int64)
        return flat(*aten._sparse_mm_reduce_impl_backward(once(x), g, y, kind, empty, [True, True]))

    def dense(x, g, y):
        g = g / there(x).sum(1, True).clamp(min=1) if kind == "mean" else g
        return flat((g @ y.t()) * there(x), x.t() @ g)

    return Program(function, d(4, 3), W, dense=dense)


def square(x):
    return x.to_sparse_coo() @ x.to_sparse_coo().t()


ADDED = d(4, 3)
MM, MM_LEFT = Program(torch.mm, W), Program(lambda x, y: torch.mm(y, x), LEFT)
ADDMM = Program(lambda x, c, y: torch.addmm(c, x, y, beta=0.5, alpha=2), ADDED, W)
TWO = Program(lambda x: torch.mm(x, turned(x)))
SAMPLED = Program(
    lambda x, a, b: torch.sparse.sampled_addmm(once(x), a, b, beta=0.5, alpha=2), d(4, 3), d(3, 6),
    dense=lambda x, a, b: x * 0.5 + 2 * there(x) * (a @ b))
PROGRAMS |= {
    "mm": [MM, MM_LEFT, TWO], "mm sparse dense": MM, "mm dense sparse": MM_LEFT,
    "mm sparse sparse": TWO, "mm square sparse sparse": Program(
        lambda x: square(x), dense=lambda x: x @ x.t()),
    "sparse.mm sparse dense": Program(lambda x, y: torch.sparse.mm(x, y), W, dense=torch.mm),
    "mm_mat1_sparse_backward": MM, "mm_mat1_backward": MM_LEFT, "mm_mat2_backward": MM,
    "strides_or_error": Program(lambda x, y: torch.mm(x, y.t()), d(3, 6)),
    "sparse_sparse_matmul_backward": TWO, "sparse_sampled_addmm_backward": SAMPLED,
    "_sparse_sparse_matmul": Program(lambda x: aten._sparse_sparse_matmul(x, turned(x)),
                                     dense=lambda x: x @ turned(x)),
    "_foreach_mm": Program(lambda x, y: flat(*torch._foreach_mm([x, x * 2], [y, y])), W),
    "mv": Program(torch.mv, d(6)), "addmv": Program(
        lambda x, y: torch.addmv(d(4), x, y, beta=0.5, alpha=2), d(6)),
    "addmm": [ADDMM, Program(lambda x, c, y: torch.addmm(c, y, x), d(3, 6), LEFT)],
    "addmm_": Program(lambda x, c, y: (c * 1).addmm_(x, y, beta=0.5, alpha=2), ADDED, W),
    "sparse.addmm": Program(lambda x, c, y: torch.sparse.addmm(c, x, y, beta=0.5, alpha=2), ADDED,
                            W, dense=ADDMM.dense),
    "_sparse_addmm": Program(lambda x, c, y: aten._sparse_addmm(c, x, y, beta=0.5, alpha=2), ADDED,
                             W, dense=ADDMM.dense),
    "linear sparse weight": Program(lambda x, y: F.linear(y, x), d(2, 6)),
    "linear": [Program(lambda x, y, b: F.linear(y, x, b), d(2, 3, 6), d(4)),
               Program(lambda x, y: F.linear(x, y), d(3, 6))],
    "bmm": Program(lambda x, y: torch.bmm(torch.stack([x, x * 2]), y), d(2, 6, 3)),
    **{f"mm reduce {kind}": by(kind) for kind in ("sum", "mean", "amax", "amin")},
    "_sparse_mm_reduce_impl": [
        Program(lambda x, y, k=k: aten._sparse_mm_reduce_impl(x, y, k)[0], W, dense=reduced(k))
        for k in ("mean", "amax")],
    "_sparse_mm_reduce_impl_backward": [reduce_backward("sum"), reduce_backward("mean")],
    "sampled_addmm": SAMPLED, "sparse_sampled_addmm": Program(
        lambda x, a, b: aten.sparse_sampled_addmm(once(x), a, b, beta=0.5, alpha=2), d(4, 3),
        d(3, 6), dense=SAMPLED.dense),
    "hspmm": Program(lambda x, y: torch.hspmm(x, y), W, dense=torch.mm),
    "sspaddmm": Program(lambda x, y: torch.sspaddmm(other(x)[:, :3], x, y, beta=0.5, alpha=2), W,
                        dense=lambda x, y: other(x)[:, :3] * 0.5 + 2 * (x @ y)),
    "requires_grad leaf, two uses": Program(lambda x, y: x @ y + (x * x) @ y, W),
}

# shapes and indices -------------------------------------------------------------------------------

PICK, PLACES, BAGS = torch.tensor([2, 0, 2]), torch.tensor([[0, 3], [2, 0]]), torch.tensor([0, 2])
HIGH = torch.tensor([[0, 3, 1, 2, 3, 3]])
PROGRAMS |= {
    "index_select": [Program(lambda x: x.index_select(0, PICK)),
                     Program(lambda x: x.index_select(1, PICK))],
    "index_select 0": Program(lambda x: x.index_select(0, PICK)),
    "index_select 1": Program(lambda x: x.index_select(1, PICK)),
    "select": [Program(lambda x: x.select(0, 1)), Program(lambda x: x.select(1, -2))],
    "select_copy": Program(lambda x: torch.select_copy(x, 0, 3)),
    "select 0": Program(lambda x: x.select(0, 3)), "select 1": Program(lambda x: x.select(1, 1)),
    "x[2]": Program(lambda x: x[2]), "x[1:3]": Program(lambda x: x[1:3]),
    "x[2, 4]": Program(lambda x: x[2, 4] + x[0, 4]), "narrow": Program(lambda x: x.narrow(1, 1, 3)),
    "narrow_copy": Program(lambda x: x.narrow_copy(0, 1, 3)),
    "cat": Program(lambda x: torch.cat([x, x * 2])), "stack": Program(
        lambda x: torch.stack([x, x * x])),
    "unsqueeze": Program(lambda x: x.unsqueeze(0)), "reshape": Program(lambda x: x.reshape(3, 8)),
    "permute": Program(lambda x: x.permute(1, 0)),
    "_sparse_broadcast_to": Program(lambda x: aten._sparse_broadcast_to(x, (2, 4, 6)),
                                    dense=lambda x: x.expand(2, 4, 6)),
    "view_as_real": Program(lambda x: torch.view_as_real(x * (1 + 2j))),
    "view_as_complex": Program(
        lambda x: torch.view_as_complex(torch.view_as_real(x * (1 + 2j)) * 2).imag,
        dense=lambda x: x * 4),
    "gather": Program(lambda x: x.gather(0, HIGH)),
    "embedding": [Program(lambda x: F.embedding(PLACES, x)),
                  Program(lambda x, w: F.embedding(PICK, w, sparse=True), W)],
    "_embedding_bag": [
        Program(lambda x: F.embedding_bag(PICK, x, BAGS)),
        Program(lambda x, w: F.embedding_bag(PICK, w, BAGS, mode="sum", sparse=True), W)],
}

# facts, memory and random numbers -----------------------------------------------------------------


def counted(layout):
    n = {"bsr": 3, "bsc": 3}.get(layout, 6)
    return fact(lambda x: x._nnz(), n)


def written(function):
    """What a function leaves in a tensor of another pattern."""
    def program(x):
        y = other(x).clone()
        function(y, x)
        return y

    return program


NO_BLOCKS = {"refused": ("bsr", "bsc"), "said": "block"}
PROGRAMS |= {
    "_nnz": counted, "sparse_dim": fact(lambda x: aten.sparse_dim(x), 2),
    "dense_dim": fact(lambda x: aten.dense_dim(x), 0),
    "_dimI": fact(lambda x: x._dimI(), 2), "_dimV": fact(lambda x: x._dimV(), 0),
    "is_coalesced": fact(lambda x: x.coalesce().is_coalesced(), True, **ONLY_COO),
    "is_pinned": fact(lambda x: x.is_pinned(), False),
    "_coalesced_": Program(lambda x: aten._coalesced_(x.coalesce(), True).values().sum(),
                           dense=torch.sum, **ONLY_COO),
    "_pin_memory": Program(lambda x: aten._pin_memory(x), dense=same),
    "fill_": Program(lambda x: once(x).clone().fill_(2.0), dense=lambda x: there(x) * 2),
    "normal_": Program(lambda x: once(x).clone().normal_(5.0, 1e-9), dense=lambda x: there(x) * 5,
                       randomness="different"),
    "zero_": Program(lambda x: x.clone().zero_(), dense=lambda x: x.detach() * 0),
    "copy_": Program(written(lambda y, x: y.copy_(x)), dense=same),
    "copy_sparse_to_sparse_": Program(written(aten.copy_sparse_to_sparse_), dense=same),
    "empty": Program(lambda x: torch.empty(4, 6, dtype=D, layout=x.layout),
                     dense=lambda x: torch.zeros(4, 6, dtype=D), **NO_BLOCKS),
    "zeros": Program(lambda x: torch.zeros(4, 6, dtype=D, layout=x.layout),
                     dense=lambda x: torch.zeros(4, 6, dtype=D), **NO_BLOCKS),
    "empty_like": fact(lambda x: torch.empty_like(x).numel(), 24),
    "resize_as_sparse_": Program(
        lambda x: number(torch.zeros_like(x).resize_as_sparse_(x).numel()),
        dense=lambda x: number(24)),
    "resize_": Program(lambda x: number(other(x).clone().resize_(8, 6).numel()),
                       dense=lambda x: number(48), refused=("coo",), said="no memory of its own"),
    "sparse_resize_": Program(
        lambda x: written(lambda y, x: y.sparse_resize_((5, 6), 2, 0))(x),
        dense=lambda x: torch.cat([other(x), torch.zeros(1, 6, dtype=D)]), **ONLY_COO),
    "sparse_resize_and_clear_": Program(
        lambda x: x.clone().sparse_resize_and_clear_((2, 3), 1, 1),
        dense=lambda x: torch.zeros(2, 3, dtype=D), **ONLY_COO),
}
