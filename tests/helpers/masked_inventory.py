"""The rows of the inventory about masked tensors as programs, beside dense arithmetic.

A program is a function of a masked tensor and a dense one, and the same by numbers: of the data,
where nothing is wrong at places that are left out, of the mask and of the dense operand; what is
left out of the result is zero there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pullback as torch
import pullback.nn.functional as F
from pullback.masked import MaskedTensor, as_masked_tensor, masked_tensor

NAMES = {
    "unary": """abs absolute acos arccos acosh arccosh angle asin arcsin asinh arcsinh atan arctan
        atanh arctanh bitwise_not ceil clamp clip conj_physical cos cosh deg2rad digamma erf erfc
        erfinv exp exp2 expm1 fix floor frac lgamma log log10 log1p log2 logit i0 isnan nan_to_num
        neg negative positive pow rad2deg reciprocal round rsqrt sigmoid sign sgn signbit sin sinc
        sinh sqrt square tan tanh trunc""",
    "smooth": """add atan2 arctan2 div divide logaddexp logaddexp2 mul multiply sub subtract
        true_divide maximum minimum fmax fmin""",
    "others": """eq ne le ge greater greater_equal gt less_equal lt less not_equal bitwise_and
        bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift floor_divide fmod nextafter
        remainder""",
}
UNARY, SMOOTH = NAMES["unary"].split(), NAMES["smooth"].split()
BINARY = [*SMOOTH, *NAMES["others"].split()]
NOT_IN_PLACE = ("angle", "positive", "signbit", "isnan")
BINARY_NOT_IN_PLACE = ("logaddexp", "logaddexp2", "maximum", "minimum", "fmax", "fmin")
ARGUMENTS = {"clamp": (0.4, 0.6), "clip": (0.4, 0.6), "pow": (3,)}
STEPS = ("angle", "bitwise_not", "ceil", "fix", "floor", "isnan", "round", "sign", "sgn", "signbit",
         "trunc")  # without slopes
LAYOUTS = ("strided", "sparse_coo", "sparse_csr")

X = torch.tensor([[0.3, 0.7, 0.45], [0.2, 0.55, 0.8], [0.9, 0.35, 0.6]], dtype=torch.float64)
W = torch.tensor([[0.5, 0.25, 0.9], [0.4, 0.75, 0.1], [0.65, 0.2, 0.3]], dtype=torch.float64)
K = torch.tensor([[True, False, True], [False, True, True], [False, False, False]])


def data(x: Any = X) -> Any:
    """Numbers with what is wrong where they are left out."""
    return torch.where(K, x, math.nan)


def made(x: Any, layout: str = "strided") -> MaskedTensor:
    return as_masked_tensor(x, K).shown(layout)


def whole(t: Any) -> Any:
    """A plain tensor that may be sparse."""
    return t if t.layout is torch.strided else t.to_dense()


def dense(out: Any) -> Any:
    return out.to_tensor(0) if isinstance(out, MaskedTensor) else out


@dataclass
class Program:
    """A function of a masked and a dense tensor, and the same by numbers; or a check."""

    function: Callable | None = None  # (masked, dense) -> masked or dense
    numbers: Callable | None = None  # (data, mask, dense) -> dense
    flags: bool = False  # the result has no derivatives
    looks: bool = False  # it asks for data, whose entries are found by numbers if it is sparse
    check: Callable | None = None


def kept(function: Callable) -> Callable:
    """A function of elements, of which only those that are there count."""
    return lambda x, k, w: torch.where(k, function(x, w), 0)


def rows(function: Callable, neutral: Any) -> Callable:
    """A reduction of the rows that have anything; the others are left out."""
    return lambda x, k, w: torch.where(k.any(1), function(torch.where(k, x * w, neutral)), 0)


def each_row(function: Callable) -> Callable:
    """A reduction of rows that is known for dense ones: of what is there."""
    def numbers(x: Any, k: Any, w: Any) -> Any:
        return torch.stack([function(v[m]) if m.any() else v.new_zeros(())
                            for v, m in zip(x * w, k)])

    return numbers


def along_rows(function: Callable) -> Callable:
    """What has a result for each element, of what is there of each row."""
    def numbers(x: Any, k: Any, w: Any) -> Any:
        found = [v.new_zeros(len(v)).masked_scatter(m, function(v[m])) if m.any()
                 else v.new_zeros(len(v)) for v, m in zip(x * w, k)]
        return torch.stack(found)

    return numbers


def argument(name: str, x: Any) -> Any:
    """An argument in the domain of a function."""
    return x + 1 if name in ("acosh", "arccosh") else x


def all_unary(x: Any, w: Any) -> Any:
    """All functions of one element that have slopes, each with a factor."""
    names = [n for n in UNARY if n not in STEPS]
    return sum([w * (k + 1) * getattr(torch, n)(argument(n, x), *ARGUMENTS.get(n, ()))
                for k, n in enumerate(names)])


def all_binary(x: Any, w: Any) -> Any:
    return sum([(k + 1) * getattr(torch, n)(x, w) for k, n in enumerate(SMOOTH)])


# checks of calls by name ------------------------------------------------------------------------


def operands(name: str, layout: str) -> tuple:
    """(masked, its numbers, further arguments) of a function."""
    x = argument(name, X)
    if "bitwise" in name:
        whole = (x * 10).long()
        return masked_tensor(whole, K).shown(layout), whole, ARGUMENTS.get(name, ())
    return masked_tensor(data(x), K).shown(layout), x, ARGUMENTS.get(name, ())


def is_close(out: MaskedTensor, wanted: Any) -> bool:
    assert isinstance(out, MaskedTensor) and out.dtype is wanted.dtype
    assert torch.equal(out.to_dense().get_mask(), K)
    return torch.allclose(out.to_tensor(0), torch.where(K, wanted, 0).to(wanted.dtype))


def unary_names() -> None:
    assert len(UNARY) == 62 and len([n for n in UNARY if n not in NOT_IN_PLACE]) == 58
    for layout in LAYOUTS:
        for name in UNARY:
            t, x, more = operands(name, layout)
            out = getattr(torch, name)(t, *more)
            assert is_close(out, getattr(torch, name)(x, *more)), name
            assert out.layout is t.layout
            if name not in NOT_IN_PLACE:
                assert getattr(t, name + "_")(*more) is t
                assert is_close(t, getattr(torch, name)(x, *more)), name


def binary_names() -> None:
    assert len(BINARY) == 36 and len([n for n in BINARY if n not in BINARY_NOT_IN_PLACE]) == 30
    for layout in LAYOUTS:
        for name in BINARY:
            t, x, _ = operands(name, layout)
            u, y = t * 2, x * 2
            function = getattr(torch, name)
            for a, b in ((t, u), (t, y), (y, t), (t, in_layout(y, layout))):
                of = [y if v is y else x if v is t else x * 2 for v in (a, b)]
                assert is_close(function(a, b), function(*of)), name
            if name not in BINARY_NOT_IN_PLACE:
                wanted = function(x, y).to(x.dtype)
                assert getattr(t, name + "_")(u) is t and is_close(t, wanted), name


def in_layout(t: Any, layout: str) -> Any:
    """A plain operand in the layout of a masked one."""
    return t if layout == "strided" else getattr(t, "to_" + layout)()


def parts() -> None:
    for layout in LAYOUTS:
        t = masked_tensor(in_layout(torch.where(K, X, 0), layout), in_layout(K, layout),
                          requires_grad=True)
        assert t.layout is t.get_data().layout is t.get_mask().layout and t.is_leaf
        assert str(t.layout) == f"torch.{layout}" and t.get_data().shape == X.shape
        assert torch.equal(torch.where(K, whole(t.get_data()), 0), torch.where(K, X, 0))
        (t.get_data().sum() if layout != "strided" else (t.get_data() * K).sum()).backward()
        assert torch.equal(t.grad.to_tensor(0), K.double())
        assert torch.equal(t.detach().to_tensor(-1.0), torch.where(K, X, -1))
        other = t.detach().to_sparse().to_dense().to_sparse_csr().to_dense()
        assert is_close(other, X) and other.layout is torch.strided


def written() -> None:
    t = masked_tensor(data(), K)
    t[0] = masked_tensor(W[0], K[0])
    assert torch.equal(t.to_tensor(0)[0], torch.where(K[0], W[0], 0))
    t[1, 1] = 7.0
    assert t[1, 1].item() == 7 and not t[1, 0].get_mask()


REDUCTIONS = [
    Program(lambda a, w: (a * w).sum(1), lambda x, k, w: torch.where(k, x * w, 0).sum(1)),
    Program(lambda a, w: (a * w).mean(1), each_row(torch.mean)),
    Program(lambda a, w: (a * w).prod(1), rows(lambda v: v.prod(1), 1.0)),
    Program(lambda a, w: (a * w).amin(1), rows(lambda v: v.amin(1), math.inf)),
    Program(lambda a, w: (a * w).amax(1), rows(lambda v: v.amax(1), -math.inf)),
    Program(lambda a, w: (a * w).norm(dim=1), each_row(torch.norm)),
    Program(lambda a, w: (a * w).var(1), each_row(torch.var)),
    Program(lambda a, w: (a * w).std(), lambda x, k, w: (x * w)[k].std()),
    Program(lambda a, w: (a * w).argmin(1).long(), lambda x, k, w: torch.where(
        k, x * w, math.inf).argmin(1), flags=True),
    Program(lambda a, w: (a * w).argmax(1).long(), lambda x, k, w: torch.where(
        k, x * w, -math.inf).argmax(1), flags=True),
    Program(lambda a, w: (a > w).all(1), lambda x, k, w: torch.where(
        k, x > w, True).all(1) & k.any(1), flags=True),
]
PROGRAMS = {
    "masked_tensor": [Program(check=parts), Program(
        lambda a, w: masked_tensor(torch.ones_like(w), whole(a.get_mask())).to_tensor(0) * a * w,
        kept(lambda x, w: x * w), looks=True)],
    "as_masked_tensor": Program(lambda a, w: (
        as_masked_tensor(a.get_data(), a.get_mask()) * w).exp(),
                                kept(lambda x, w: (x * w).exp()), looks=True),
    "get_data get_mask": [Program(check=parts), Program(
        lambda a, w: torch.where(whole(a.get_mask()), whole(a.get_data()), 0) * w,
        kept(lambda x, w: x * w), looks=True)],
    "to_tensor": Program(lambda a, w: (a * w).to_tensor(2.0).exp(),
                         lambda x, k, w: torch.where(k, x * w, 2).exp()),
    "unary functions (62, in place 58)": [Program(check=unary_names),
                                          Program(all_unary, kept(all_unary))],
    "binary functions (36, in place 30)": [Program(check=binary_names),
                                           Program(all_binary, kept(all_binary))],
    "reductions sum mean amin amax argmin argmax prod all norm var std": REDUCTIONS,
    "softmax log_softmax": [
        Program(lambda a, w: (a * w).softmax(1), along_rows(lambda v: v.softmax(0))),
        Program(lambda a, w: (a * w).log_softmax(1), along_rows(lambda v: v.log_softmax(0)))],
    "where": Program(lambda a, w: torch.where(w > 0.35, a * w, -a),
                     kept(lambda x, w: torch.where(w > 0.35, x * w, -x))),
    "indexing and slicing": [
        Program(lambda a, w: (a * w)[:2, 1:], lambda x, k, w: torch.where(k, x * w, 0)[:2, 1:]),
        Program(lambda a, w: (a * w)[torch.tensor([1, 0, 1])],
                lambda x, k, w: torch.where(k, x * w, 0)[torch.tensor([1, 0, 1])]),
        Program(lambda a, w: (a * w)[1], lambda x, k, w: torch.where(k, x * w, 0)[1]),
        Program(check=written)],
    "matmul linear bmm": [
        Program(lambda a, w: a @ w, lambda x, k, w: torch.where(k, x, 0) @ w),
        Program(lambda a, w: F.linear(a, w), lambda x, k, w: torch.where(k, x, 0) @ w.T),
        Program(lambda a, w: torch.bmm(a[None], w[None]),
                lambda x, k, w: (torch.where(k, x, 0) @ w)[None])],
    "cumsum cumprod logsumexp median": [
        Program(lambda a, w: (a * w).cumsum(1), along_rows(lambda v: v.cumsum(0))),
        Program(lambda a, w: (a * w).cumprod(1), along_rows(lambda v: v.cumprod(0))),
        Program(lambda a, w: (a * w).logsumexp(1), each_row(lambda v: v.logsumexp(0))),
        Program(lambda a, w: (a * w).median(1)[0], each_row(lambda v: v.median(0)[0]))],
    "COO and CSR data": [Program(check=parts), Program(
        lambda a, w: (a.to_sparse_csr().exp().to_dense().to_sparse() * w).sum(1),
        lambda x, k, w: torch.where(k, x.exp() * w, 0).sum(1))],
}
