"""Functions of nested tensors, and what they do to each part: the rows of the tests."""

from dataclasses import dataclass
from typing import Any

import pullback as torch
import pullback.nn.functional as F

LENGTHS = (2, 4, 1, 3)


@dataclass
class Case:
    """A function of a nested tensor and dense ones, and the same of a part and its number."""

    name: str
    nested: Any  # (nt, *extra) -> nested or dense result
    part: Any  # (part, number, *extra) -> the same for one part
    shape: tuple = (-1, 3)  # of a part: -1 is the length
    extra: tuple = ()  # shapes of dense operands
    whole: Any = None  # (parts, *extra) -> results, where they are not those of each part
    counts: bool = False  # do sizes of the result follow from values?
    breaks: bool = False  # compiled, does it run as it is written?

    def listed(self, out):
        """The results as dense tensors: those for each part, one behind the other."""
        if self.whole is not None:
            return flat(out)
        return [r for o in (out if isinstance(out, (list, tuple)) else [out]) for r in o.unbind()]

    def wanted(self, parts, extra):
        """The same, by the function of the parts."""
        if self.whole is not None:
            return flat(self.whole(parts, *extra))
        rows = [self.part(p, i, *extra) for i, p in enumerate(parts)]
        return [r for column in zip(*rows) for r in column] if isinstance(
            rows[0], (list, tuple)) else rows

    def operands(self, lengths=LENGTHS, dtype=torch.float64):
        """(parts, extra): leaves."""
        torch.manual_seed(5)
        parts = [torch.randn([n if s == -1 else s for s in self.shape], dtype=dtype)
                 for n in lengths]
        return parts, [torch.randn(s, dtype=dtype) for s in self.extra]

    def build(self, parts, holes=False):
        """The nested tensor of parts; with holes, there is something between them."""
        d = self.shape.index(-1)
        if not holes:
            return torch.nested.as_nested_tensor(parts, layout=torch.jagged) if d == 0 or (
                len({p.shape[d] for p in parts}) > 1) else from_parts(parts, d)
        filled, offsets = [], [0]
        for p in parts:
            gap = p.narrow(d, 0, 1).detach() * 0 + 7 if p.shape[d] else None
            filled += [p] if gap is None else [p, gap]
            offsets.append(offsets[-1] + p.shape[d] + (gap is not None))
        lengths = torch.tensor([p.shape[d] for p in parts])
        return torch.nested.nested_tensor_from_jagged(
            torch.cat(filled, d), torch.tensor(offsets), lengths, jagged_dim=d + 1)


def flat(out):
    """Dense tensors in the places of trees of nested ones."""
    if isinstance(out, (list, tuple)):
        return [r for o in out for r in flat(o)]
    return list(out.unbind()) if out.is_nested else [out]


def from_parts(parts, d):
    sizes = torch.tensor([0] + [p.shape[d] for p in parts]).cumsum(0)
    return torch.nested.nested_tensor_from_jagged(torch.cat(list(parts), d), sizes,
                                                  jagged_dim=d + 1)


def plain(name, function, **more):
    """A function that does the same to a nested tensor and to a part."""
    return Case(name, function, lambda p, i, *e: function(p, *e), **more)


def along(name, function, **more):
    """`function(x, dim)` along the ragged dim."""
    return Case(name, lambda x: function(x, 1), lambda p, i: function(p, 0), **more)


def dense(name, function, **more):
    """`function(x, dim)` along the last dim."""
    return plain(name, lambda x: function(x, -1), **more)


REDUCTIONS = {
    "sum": lambda x, d: x.sum(d), "mean": lambda x, d: x.mean(d), "var": lambda x, d: x.var(
        d, correction=0), "std": lambda x, d: (x + 0 * x).std(d, correction=0),
    "prod": lambda x, d: x.prod(d), "amax": lambda x, d: x.amax(d), "amin": lambda x, d: x.amin(d),
    "logsumexp": lambda x, d: x.logsumexp(d), "max": lambda x, d: x.max(d)[0],
    "min": lambda x, d: x.min(d)[0], "norm": lambda x, d: x.norm(dim=d),
    "norm1": lambda x, d: x.norm(1, dim=d), "norm3": lambda x, d: x.norm(3, dim=d),
    "norm-inf": lambda x, d: x.norm(float("inf"), dim=d),
    "keepdim": lambda x, d: x.sum(d, keepdim=True), "var_mean": lambda x, d: (
        lambda o: o[0] + o[1])(torch.var_mean(x, d, correction=0)), "nansum": lambda x, d: x.nansum(
        d), "median": lambda x, d: x.median(d)[0],
}
SAME_SIZE = {
    "softmax": lambda x, d: x.softmax(d), "log_softmax": lambda x, d: x.log_softmax(d),
    "cumsum": lambda x, d: x.cumsum(d), "cumprod": lambda x, d: x.cumprod(d),
    "logcumsumexp": lambda x, d: x.logcumsumexp(d), "cummax": lambda x, d: x.cummax(d)[0],
    "sort": lambda x, d: x.sort(d)[0], "descending": lambda x, d: x.sort(d, descending=True)[0],
    "flip": lambda x, d: x.flip(d),
}
POINTWISE = {
    "sin": torch.sin, "gelu": F.gelu, "relu": torch.relu, "mul": lambda x: x * x, "add": lambda x: (
        2 * x + 1), "pow": lambda x: x ** 2, "clamp": lambda x: x.clamp(-0.5, 0.5),
    "where": lambda x: torch.where(x > 0, x, -2 * x), "rsub": lambda x: 1 - x,
    "silu": F.silu, "masked_fill": lambda x: x.masked_fill(x < 0, 0.0), "tanh": torch.tanh,
    "neg": lambda x: -x, "lerp": lambda x: torch.lerp(x, x * 2, 0.3), "clone": torch.clone,
    "addcmul": lambda x: torch.addcmul(x, x, x), "contiguous": lambda x: x.contiguous() * 2,
}
VIEWS = {
    "unsqueeze": lambda x: x.unsqueeze(-1), "squeeze": lambda x: x.unsqueeze(-1).squeeze(-1),
    "chunk": lambda x: x.chunk(3, -1)[1], "split": lambda x: x.split(2, -1)[1],
    "split_sizes": lambda x: x.split([1, 2], -1)[1], "narrow": lambda x: x.narrow(-1, 1, 2),
    "select": lambda x: x.select(-1, 1), "slice": lambda x: x[..., 1:],
    "item": lambda x: x[..., -1],
    "cat": lambda x: torch.cat([x, x * 2], -1), "stack": lambda x: torch.stack([x, x.sin()], -1),
    "unflatten": lambda x: x.unflatten(-1, (3, 1)), "transpose": lambda x: x.transpose(-1, -2),
    "flatten": lambda x: x.unflatten(-1, (3, 1)).flatten(-2), "mT": lambda x: x.mT * 2,
    "index_select": lambda x: x.index_select(-1, torch.tensor(
        [2, 0], device=x.device)),
    "permute": lambda x: x.unsqueeze(-1).transpose(-1, -3).sin(),
    "pad": lambda x: F.pad(x, (1, 2)), "roll": lambda x: x.roll(1, -1),
    "glu": lambda x: F.glu(torch.cat([x, x * x], -1), -1),
    "kthvalue": lambda x: x.kthvalue(2, -1)[0],
    "gather": lambda x: x.gather(-1, x.argsort(-1)) * 2, "normalize": lambda x: F.normalize(
        x, dim=-1), "cosine": lambda x: F.cosine_similarity(x, x.exp(), dim=-1),
    "each loss": lambda x: F.mse_loss(x, x.sin(), reduction="none"),
    "smooth loss": lambda x: F.smooth_l1_loss(x, x.sin(), reduction="none"),
    "frexp": lambda x: torch.frexp(x.detach())[0] * x,
}
CASES = [
    *[plain(n, f) for n, f in POINTWISE.items()],
    *[dense(f"{n} over a dense dim", f) for n, f in (REDUCTIONS | SAME_SIZE).items()],
    *[along(f"{n} over the ragged dim", f) for n, f in (REDUCTIONS | SAME_SIZE).items()],
    *[Case(f"{n} of transposed", lambda x, f=f: f(x, 2), lambda p, i, f=f: f(p, 1), (3, -1))
      for n, f in (REDUCTIONS | SAME_SIZE).items()],
    *[Case(f"{n} over ragged and dense", lambda x, f=f: f(x, (1, 2)),
           lambda p, i, f=f: f(p, (0, 1))) for n, f in REDUCTIONS.items()
      if n not in ("prod", "max", "min", "median")],
    *[plain(f"view {n}", f) for n, f in VIEWS.items()],
    Case("view with the ragged size", lambda x: x.view(x.size(0), x.size(1), 3, 1),
         lambda p, i: p.unsqueeze(-1)),
    Case("view with -1", lambda x: x.reshape(x.size(0), -1, 1, 3), lambda p, i: p.unsqueeze(1)),
    Case("vector for all", lambda x, w: x * w, lambda p, i, w: p * w, extra=((3,),)),
    Case("once for all", lambda x, w: x * w, lambda p, i, w: p * w[0], extra=((1, 1, 3),)),
    Case("each part's own", lambda x, w: x * w, lambda p, i, w: p * w[i], extra=((4, 1, 3),)),
    Case("each part's number", lambda x, w: w - x, lambda p, i, w: w[i] - p, extra=((4, 1, 1),)),
    Case("padded operand", lambda x, w: x * w, lambda p, i, w: p * w[i, :len(p)],
         extra=((4, 4, 3),)),
    Case("broadcast dense dim", lambda x, w: x * w, lambda p, i, w: p * w, (-1, 1), ((5,),)),
    Case("centred", lambda x: x - x.mean(1, keepdim=True), lambda p, i: p - p.mean(0)),
    Case("linear", F.linear, lambda p, i, w, b: F.linear(p, w, b), extra=((5, 3), (5,))),
    Case("matmul", lambda x, w: x @ w, lambda p, i, w: p @ w, extra=((3, 5),)),
    Case("matmul vector", lambda x, w: x @ w, lambda p, i, w: p @ w, extra=((3,),)),
    Case("matmul each", lambda x, w: x @ w, lambda p, i, w: p @ w[i], extra=((4, 3, 5),)),
    Case("matmul from the left", lambda x, w: w @ x, lambda p, i, w: w[i] @ p, (3, -1),
         ((4, 5, 3),)),
    Case("matmul contracted", lambda x: x.mT @ x.sin(), lambda p, i: p.mT @ p.sin()),
    Case("matmul heads", lambda x, w: x @ w, lambda p, i, w: p @ w, (2, -1, 3), ((3, 5),)),
    Case("matmul inner", lambda x: x @ x.mT, lambda p, i: p @ p.mT, (-1, 2, 3)),
    Case("layer_norm", lambda x, w, b: F.layer_norm(x, (3,), w, b),
         lambda p, i, w, b: F.layer_norm(p, (3,), w, b), extra=((3,), (3,))),
    Case("rms_norm", lambda x, w: F.rms_norm(x, (3,), w), lambda p, i, w: F.rms_norm(p, (3,), w),
         extra=((3,),)),
    Case("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b),
         lambda p, i, w, b: F.group_norm(p[None], 2, w, b)[0], (4, -1), ((4,), (4,))),
    Case("group_norm 4d", lambda x, w, b: F.group_norm(x, 2, w, b),
         lambda p, i, w, b: F.group_norm(p[None], 2, w, b)[0], (4, 2, -1, 3), ((4,), (4,))),
    Case("conv1d", lambda x, w, b: F.conv1d(x, w, b, padding=1),
         lambda p, i, w, b: F.conv1d(p[None], w, b, padding=1)[0], (2, -1), ((5, 2, 3), (5,))),
    Case("conv1d with steps", lambda x, w: F.conv1d(x, w, stride=2, padding=2),
         lambda p, i, w: F.conv1d(p[None], w, stride=2, padding=2)[0], (2, -1), ((5, 2, 3),),
         counts=True),
    Case("padded", lambda x: x.to_padded_tensor(0.5),
         lambda p, i: F.pad(p, (0, 0, 0, 4 - len(p)), value=0.5)),
    Case("padded and back", lambda x: torch.nested.nested_tensor_from_padded_tensor(
        (x * 2).to_padded_tensor(0.0), x.contiguous().offsets()), lambda p, i: p * 2),
    Case("joined parts", lambda x: torch.cat([x, x * 2], 1), lambda p, i: torch.cat([p, p * 2])),
    Case("first of each", lambda x: x[:, 0], lambda p, i: p[0]),
    Case("last of each", lambda x: x[:, -1], lambda p, i: p[-1]),
    Case("beginnings", lambda x: x[:, :2].sin(), lambda p, i: p[:2].sin()),
    Case("endings", lambda x: x[:, -2:] * 2, lambda p, i: p[-2:] * 2),
    Case("topk", lambda x: x.topk(1, 1)[0], lambda p, i: p.topk(1, 0)[0]),
    Case("attention", lambda x: F.scaled_dot_product_attention(x, x.sin(), x.cos()),
         lambda p, i: F.scaled_dot_product_attention(p, p.sin(), p.cos()), (2, -1, 3)),
    Case("causal attention", lambda x: F.scaled_dot_product_attention(
        x, x.sin(), x.cos(), is_causal=True), lambda p, i: F.scaled_dot_product_attention(
            p, p.sin(), p.cos(), is_causal=True), (2, -1, 3)),
    Case("attention to dense keys", lambda x, k, v: F.scaled_dot_product_attention(x, k, v),
         lambda p, i, k, v: F.scaled_dot_product_attention(p, k[i], v[i]), (2, -1, 3),
         ((4, 2, 5, 3), (4, 2, 5, 3))),
    Case("attention of dense queries", lambda x, q: F.scaled_dot_product_attention(
        q, x, x.sin()), lambda p, i, q: F.scaled_dot_product_attention(q[i], p, p.sin()),
        (2, -1, 3), ((4, 2, 5, 3),)),
    Case("attention to other lengths", lambda x, k: (lambda keys: F.scaled_dot_product_attention(
        x, keys, keys.sin()))(other(k)), lambda p, i, k: F.scaled_dot_product_attention(
            p, other(k)[i], other(k)[i].sin()), (2, -1, 3), ((2, 7, 3),)),
    Case("causal attention to other lengths", lambda x, k: (
        lambda keys: F.scaled_dot_product_attention(x, keys, keys.sin(), is_causal=True))(other(k)),
        lambda p, i, k: F.scaled_dot_product_attention(
            p, other(k)[i], other(k)[i].sin(), is_causal=True), (2, -1, 3), ((2, 7, 3),)),
    Case("attention to other lengths with a bias", lambda x, k, b: (
        lambda keys: F.scaled_dot_product_attention(x, keys, keys.sin(), b))(other(k)),
        lambda p, i, k, b: F.scaled_dot_product_attention(
            p, other(k)[i], other(k)[i].sin(), b[i, :, :p.shape[1], :other(k)[i].shape[1]]),
        (2, -1, 3), ((2, 7, 3), (4, 2, 4, 3))),
    Case("attention with a bias", lambda x, b: F.scaled_dot_product_attention(x, x, x, b),
         lambda p, i, b: F.scaled_dot_product_attention(
             p, p, p, b[i, :, :p.shape[1], :p.shape[1]]), (2, -1, 3), ((4, 2, 4, 4),)),
    Case("masked_select", lambda x: x.masked_select(x > 0), lambda p, i: p.masked_select(p > 0),
         counts=True),
]
FLAGS = [
    along("argmax", lambda x, d: x.argmax(d)), along("argmin", lambda x, d: x.argmin(d)),
    along("any", lambda x, d: (x > 0.5).any(d)), along("all", lambda x, d: (x > -0.5).all(d)),
    along("argsort", lambda x, d: x.argsort(d)), along("max", lambda x, d: x.max(d)[1]),
    along("count", lambda x, d: (x > 0).count_nonzero(d)), plain("gt", lambda x: x > 0),
    along("integers", lambda x, d: (x * 5).long().amax(d)), plain("long", lambda x: x.long()),
    along("sum of flags", lambda x, d: (x > 0).sum(d)), plain("isnan", torch.isnan),
    dense("argmax dense", lambda x, d: x.argmax(d)), plain("zeros_like", torch.zeros_like),
    plain("full_like", lambda x: torch.full_like(x, 2)), plain("float32", lambda x: x.float()),
]


def other(k):
    """Keys with lengths of their own."""
    offsets = torch.tensor([0, 3, 4, 5, 7], device=k.device)
    return torch.nested.nested_tensor_from_jagged(k, offsets, jagged_dim=2)
JAGGED_ONLY = (
    "view with the ragged size", "padded operand", "group_norm", "group_norm 4d", "conv1d",
    "conv1d with steps", "padded and back", "attention with a bias",
    "attention to other lengths with a bias", "masked_select", "view gather", "view normalize",
    "view cosine", "view frexp")
DIFFERENT_SIZES = ("masked_select",)  # what it keeps differs from example to example


def name(x):
    return getattr(x, "name", None) or x.__name__
