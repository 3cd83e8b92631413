"""A thousand losses, metrics, attention and normalisation variants as textbooks have them.

A family is a text with gaps, and what may stand in each gap; its programs are all combinations.
`program(number)` is one of them, families taking turns; `python tests/fuzz --textbook` runs them in
all modes, as it runs programs of seeds.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, field

from .program import Input, Written

COUNT = 1000


def real(*shape, grad="leaf", **how) -> Input:
    return Input("float32", shape, grad=grad, **how)


def whole(*shape, high: int) -> Input:
    return Input("int64", shape, low=0, high=high)


@dataclass
class Family:
    """A text with gaps `{name}`, the inputs of its function, and the fillings of every gap."""

    name: str
    inputs: dict[str, Input]
    text: str
    gaps: dict[str, tuple] = field(default_factory=dict)
    traits: frozenset = frozenset()

    def programs(self):
        for choice in itertools.product(*self.gaps.values()):
            chosen = dict(zip(self.gaps, choice))
            lines = fill(fill(self.text, chosen), chosen).strip("\n").splitlines()
            body = "\n".join("    " + line for line in lines)
            text = f"def program({', '.join(self.inputs)}):\n{body}\n"
            inputs = {n: Input(**(vars(i) | {"seed": 31 * k + 7})) if i.values is None else i
                      for k, (n, i) in enumerate(self.inputs.items())}
            label = " ".join(str(c)[:24] for c in choice)
            yield Written(inputs, text, traits=self.traits, operators=(f"{self.name}: {label}",))


def fill(text: str, chosen: dict) -> str:
    """The text with gaps filled; other braces stay."""
    for name, value in chosen.items():
        text = text.replace("{" + name + "}", str(value))
    return text


REDUCTIONS = ("{v}.mean()", "{v}.sum()", "{v}.sum() / ({v}.numel() + 1)", "{v}.max()",
              "({v} ** 2).mean().sqrt()", "{v}.logsumexp(0)")
SIMILARITY = ("F.cosine_similarity({p}, {q}, dim=-1)", "({p} * {q}).sum(-1)",
              "-({p} - {q}).norm(dim=-1)", "-(({p} - {q}) ** 2).sum(-1)",
              "-({p} - {q}).abs().sum(-1)",
              "(F.normalize({p}, dim=-1) * F.normalize({q}, dim=-1)).sum(-1)",
              "({p} * {q}).sum(-1) / ({p}.norm(dim=-1) * {q}.norm(dim=-1) + 1e-8)",
              "1 / (1 + ({p} - {q}).norm(dim=-1))", "torch.exp(-(({p} - {q}) ** 2).sum(-1) / 2)")
SCORES = ("{p} @ {q}.t()", "F.normalize({p}, dim=-1) @ F.normalize({q}, dim=-1).t()",
          "-torch.cdist({p}, {q})", "-torch.cdist({p}, {q}) ** 2",
          "F.cosine_similarity({p}[:, None], {q}[None], dim=-1)")
SCORES_SCALED = ("q @ k.transpose(-1, -2) / 8 ** 0.5", "q @ k.transpose(-1, -2)",
                 "F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-1, -2) * 4",
                 "-torch.cdist(q, k)", "torch.einsum('bid,bjd->bij', q, k) * 0.35")


def of(texts: tuple, **names) -> tuple:
    """Texts with their own gaps filled."""
    return tuple(fill(t, names) for t in texts)


def pointwise_losses():
    yield Family("regression", {"x": real(6, 5), "y": real(6, 5, grad="")}, """
r = x - y
v = {loss}
return {total}""", {
        "loss": ("r ** 2", "r.abs()", "torch.where(r.abs() < 1, 0.5 * r ** 2, r.abs() - 0.5)",
                 "torch.log(torch.cosh(r))", "torch.maximum(0.9 * r, -0.1 * r)",
                 "torch.log1p(r ** 2 / 2)", "1 - torch.exp(-(r ** 2))", "(r ** 2 + 1e-3).sqrt()",
                 "F.softplus(r) + F.softplus(-r)", "r ** 2 / (1 + r ** 2)",
                 "F.huber_loss(x, y, reduction='none', delta=0.5)",
                 "(r.abs() - 0.1).clamp(min=0)", "r.abs() / (x.abs() + y.abs() + 1e-3)",
                 "(1 - (1 - (r / 3) ** 2).clamp(min=0) ** 3)", "(x.exp() - y.exp()) ** 2"),
        "total": of(REDUCTIONS[:5], v="v")})
    yield Family("classification", {"x": real(8, 5), "t": whole(8, high=4), "w": real(5, low=0.2)}, """
p = {logp}
n = -p.gather(1, t[:, None])[:, 0]
v = {weighted}
return {total}""", {
        "logp": ("F.log_softmax(x, -1)", "x - x.logsumexp(-1, keepdim=True)",
                 "torch.log(F.softmax(x, -1) + 1e-9)", "F.log_softmax(x / 0.5, 1)",
                 "F.log_softmax(x - x.max(-1, keepdim=True).values, -1)",
                 "F.log_softmax(4 * F.normalize(x, dim=-1), -1)"),
        "weighted": ("n", "n * w[t]", "n * (1 - (-n).exp()) ** 2", "0.9 * n - 0.1 * p.mean(-1)",
                     "n * (n > 0.5)", "n.clamp(max=3)", "n + 0.01 * x.logsumexp(-1) ** 2"),
        "total": of(REDUCTIONS[:4], v="v")})
    yield Family("binary", {"x": real(6, 4), "y": real(6, 4, grad="", low=0.0, high=1.0)}, """
s = x.sigmoid()
v = {loss}
return {total}""", {
        "loss": ("F.binary_cross_entropy_with_logits(x, y, reduction='none')",
                 "-(y * s.log() + (1 - y) * (1 - s).log())",
                 "F.binary_cross_entropy(s, y, reduction='none')", "x.clamp(min=0) - x * y + "
                 "torch.log1p(torch.exp(-x.abs()))", "(1 - s) ** 2 * -y * s.log()",
                 "(1 - (2 * y - 1) * x).clamp(min=0)", "F.softplus(-(2 * y - 1) * x)",
                 "(s - y) ** 2", "((1 - (2 * y - 1) * x).clamp(min=0)) ** 2",
                 "F.relu(s - y) + 0.5 * F.relu(y - s)"),
        "total": of(REDUCTIONS[:4], v="v")})


def overlap_losses():
    yield Family("overlap", {"x": real(3, 4, 5), "y": real(3, 4, 5, grad="", low=0.0, high=1.0)}, """
p = {prob}
i = (p * y).sum({d})
u = {union}
return {score}""", {
        "prob": ("x.sigmoid()", "x.softmax(1)", "(x.tanh() + 1) / 2", "x.clamp(0, 1)"),
        "d": ("(1, 2)", "(0, 2)", "-1", "(0, 1, 2)"),
        "union": ("p.sum({d}) + y.sum({d})", "(p + y - p * y).sum({d})",
                  "(p ** 2).sum({d}) + (y ** 2).sum({d})",
                  "i + 0.7 * (p * (1 - y)).sum({d}) + 0.3 * ((1 - p) * y).sum({d})"),
        "score": ("(1 - (2 * i + 1) / (u + 1)).mean()", "1 - (i / (u + 1e-6)).mean()",
                  "(1 - i / u) .sum() ** 0.75")})


def metric_losses():
    inputs = {"a": real(6, 8), "b": real(6, 8), "c": real(6, 8)}
    yield Family("triplet", inputs, """
p = {first}
n = {second}
v = {margin}
return {total}""", {
        "first": of(SIMILARITY, p="a", q="b"), "second": of(SIMILARITY[:3], p="a", q="c"),
        "margin": ("F.relu(n - p + 0.3)", "F.softplus(n - p)", "(n - p + 1).clamp(min=0) ** 2"),
        "total": of(REDUCTIONS[:2], v="v")})
    yield Family("contrastive", {"a": real(6, 8), "b": real(6, 8)}, """
s = {scores}
s = {temperature}
{mask}
return {loss}""", {
        "scores": of(SCORES, p="a", q="b"),
        "temperature": ("s / 0.1", "s * 5", "s"),
        "mask": ("t = torch.arange(6)", "s = s - 10 * torch.eye(6)\nt = (torch.arange(6) + 1) % 6",
                 "s = s.masked_fill(torch.ones(6, 6).tril(-2) > 0, -1e9)\nt = torch.arange(6)"),
        "loss": ("F.cross_entropy(s, t)", "(F.cross_entropy(s, t) + F.cross_entropy(s.t(), t)) / 2",
                 "(s.logsumexp(-1) - s.gather(1, t[:, None])[:, 0]).mean()",
                 "F.softplus(-s.diagonal()).mean() + F.softplus(s).mean()",
                 "F.cross_entropy(s, t, label_smoothing=0.1)",
                 "(F.relu(0.2 + s - s.diagonal()[:, None]) * (1 - torch.eye(6))).sum()")})
    yield Family("margin softmax", {"x": real(6, 8), "w": real(5, 8), "t": whole(6, high=4)}, """
c = F.linear(F.normalize(x), F.normalize(w))
o = F.one_hot(t, 5)
m = {margin}
return {loss}""", {
        "margin": ("c - 0.35 * o", "torch.where(o > 0, (c.clamp(-0.99, 0.99).acos() + 0.5).cos(), c)",
                   "c * (1 + o)", "c - o * (c.detach() > 0) * 0.2", "c"),
        "loss": ("F.cross_entropy(16 * m, t)", "F.multi_margin_loss(m, t)",
                 "F.cross_entropy(m / 0.2, t, reduction='sum')",
                 "F.nll_loss(F.log_softmax(8 * m, 1), t)")})


def divergences():
    yield Family("divergence", {"x": real(4, 6), "y": real(4, 6)}, """
p = F.softmax({first}, -1)
q = F.softmax(y, -1)
v = {divergence}
return {total}""", {
        "first": ("x", "x / 0.7", "x + y.detach()"),
        "divergence": ("(p * (p.log() - q.log())).sum(-1)",
                       "0.5 * (p * (2 * p / (p + q)).log() + q * (2 * q / (p + q)).log()).sum(-1)",
                       "(p.cumsum(-1) - q.cumsum(-1)).abs().sum(-1)",
                       "(p.sqrt() - q.sqrt()).square().sum(-1).sqrt()", "(p - q).abs().sum(-1) / 2",
                       "-(p * q).sqrt().sum(-1).log()", "((p - q) ** 2 / q).sum(-1)",
                       "(p ** 1.5 * q ** -0.5).sum(-1).log() / 0.5",
                       "(p.sort(-1).values - q.sort(-1).values).abs().mean(-1)",
                       "F.kl_div(q.log(), p, reduction='none').sum(-1)",
                       "-(p * F.log_softmax(y, -1)).sum(-1)",
                       "(p.cumsum(-1) - q.cumsum(-1)).square().sum(-1)"),
        "total": of(REDUCTIONS[:4], v="v")})
    yield Family("gaussian", {"m": real(5, 3), "s": real(5, 3), "y": real(5, 3, grad="")}, """
d = {scale}
v = {loss}
return {total}""", {
        "scale": ("s.exp()", "F.softplus(s) + 0.1", "s ** 2 + 0.5", "s.abs() + 0.3"),
        "loss": ("0.5 * (((y - m) / d) ** 2 + 2 * d.log() + 1.8379)",
                 "0.5 * (d ** 2 + m ** 2 - 1 - 2 * d.log())", "(y - m).abs() / d + (2 * d).log()",
                 "F.gaussian_nll_loss(m, y, d, reduction='none')",
                 "-torch.distributions.Normal(m, d).log_prob(y)",
                 "d.log() + 2 * torch.log1p(((y - m) / d) ** 2 / 3)"),
        "total": of(REDUCTIONS[:2], v="v")})


MASKS = ("torch.zeros(5, 5)", "torch.full((5, 5), -inf).triu(1)",
         "torch.where((torch.arange(5)[:, None] - torch.arange(5)).abs() > 1, -inf, 0.0)",
         "-0.5 * (torch.arange(5)[:, None] - torch.arange(5)).abs()",
         "torch.where(torch.arange(5) > 3, -1e4, 0.0).expand(5, 5)",
         "torch.where((torch.arange(5)[:, None] < torch.arange(5)), -inf, 0.0) - "
         "0.25 * (torch.arange(5)[:, None] - torch.arange(5)).abs()")


def attention():
    inputs = {"q": real(2, 5, 8), "k": real(2, 5, 8), "v": real(2, 5, 8)}
    yield Family("attention", inputs, """
s = {scores}
s = s + {mask}
p = {normal}
return {result}""", {
        "scores": SCORES_SCALED, "mask": MASKS,
        "normal": ("F.softmax(s, -1)", "(s - s.max(-1, keepdim=True).values).exp() / "
                   "(s - s.max(-1, keepdim=True).values).exp().sum(-1, keepdim=True)",
                   "s.exp() / (1 + s.exp().sum(-1, keepdim=True))", "s.sigmoid()"),
        "result": ("(p @ v).sum()", "p @ v", "(p @ v).square().mean()")})
    yield Family("linear attention", inputs, """
f, g = {feature}
n = {causal}
return {result}""", {
        "feature": ("F.elu(q) + 1, F.elu(k) + 1", "q.exp(), k.exp()", "F.relu(q) + 0.1, F.relu(k) + 0.1",
                    "q.softmax(-1), k.softmax(1)", "q.square() + 0.1, k.square() + 0.1"),
        "causal": ("f @ (g.transpose(-1, -2) @ v) / (f @ g.sum(1)[..., None])",
                   "torch.einsum('bid,bide->bie', f, torch.einsum('bid,bie->bide', g, v).cumsum(1))"
                   " / (f * g.cumsum(1)).sum(-1, keepdim=True)",
                   "f @ (g.transpose(-1, -2) @ v)"),
        "result": ("n", "n.sum()", "(n ** 2).mean()")})
    yield Family("several heads", {"x": real(2, 6, 8), "w": real(24, 8), "o": real(8, 8)}, """
q, k, v = F.linear(x, w).chunk(3, -1)
q, k, v = (t.reshape(2, 6, 2, 4).transpose(1, 2) for t in (q, k, v))
{rotate}
{share}
y = {kernel}
y = y.transpose(1, 2).reshape(2, 6, 8)
return {result}""", {
        "rotate": ("", "r = torch.arange(6)[:, None] * torch.tensor([1.0, 0.1])\n"
                   "q, k = (torch.cat([t[..., :2] * r.cos() - t[..., 2:] * r.sin(), "
                   "t[..., :2] * r.sin() + t[..., 2:] * r.cos()], -1) for t in (q, k))",
                   "q, k = F.rms_norm(q, (4,)), F.rms_norm(k, (4,))"),
        "share": ("", "k, v = (t[:, :1].expand(2, 2, 6, 4) for t in (k, v))",
                  "k, v = (t.mean(1, keepdim=True).expand_as(q) for t in (k, v))"),
        "kernel": ("F.scaled_dot_product_attention(q, k, v)",
                   "F.scaled_dot_product_attention(q, k, v, is_causal=True)",
                   "(q @ k.transpose(-1, -2) / 2).softmax(-1) @ v",
                   "((q @ k.transpose(-1, -2) / 2).tanh() * 5).softmax(-1) @ v",
                   "F.scaled_dot_product_attention(q, k, v, attn_mask="
                   "torch.ones(6, 6, dtype=torch.bool).tril(), scale=0.3)"),
        "result": ("F.linear(y, o).square().mean()", "x + F.linear(y, o)")})


def normalisation():
    yield Family("norm", {"x": real(4, 6, 5), "w": real(6, 1), "b": real(6, 1)}, """
m = {centre}
s = {scale}
y = (x - m) / s
y = {affine}
return {result}""", {
        "centre": ("x.mean({d}, keepdim=True)", "0", "x.median(-1, keepdim=True).values.detach()"),
        "scale": ("(x.var({d}, keepdim=True, unbiased=False) + 1e-5).sqrt()",
                  "(x.pow(2).mean({d}, keepdim=True) + 1e-6).sqrt()",
                  "x.abs().amax({d}, keepdim=True)", "(x.std({d}, keepdim=True) + 0.1)",
                  "(x - m).abs().mean({d}, keepdim=True) + 1e-3",
                  "x.norm(dim={d}, keepdim=True) + 1e-6"),
        "d": ("-1", "1", "(0, 2)", "(1, 2)"),
        "affine": ("y", "y * w + b", "F.gelu(y * w)"),
        "result": ("y", "(y ** 3).mean()", "y.relu().sum()")})
    yield Family("norm functions", {"x": real(4, 6, 5), "w": real(6), "b": real(6), "g": real(5)}, """
y = {norm}
return {result}""", {
        "norm": ("F.layer_norm(x, (5,), g)", "F.layer_norm(x, (6, 5))", "F.group_norm(x, 3, w, b)",
                 "F.group_norm(x, 1)", "F.instance_norm(x)", "F.rms_norm(x, (5,), g)",
                 "F.batch_norm(x, None, None, w, b, True)", "F.normalize(x, dim=1)",
                 "F.local_response_norm(x, 3)", "F.normalize(x, p=1.0, dim=-1) * g",
                 "x / (x.flatten(1).norm(dim=1)[:, None, None] / 2).clamp(min=1)",
                 "F.group_norm(x, 6, w)", "F.instance_norm(x, weight=w, bias=b)",
                 "F.layer_norm(x.transpose(1, 2), (6,), w, b)",
                 "x * torch.sigmoid(F.rms_norm(x, (5,)))"),
        "result": ("y", "y.tanh().sum()", "(y * x).mean()", "(y.softmax(-1) * y).sum(-1).exp().mean()",
                   "(y - y.roll(1, 0)).abs().mean()")})
    yield Family("weight norm", {"x": real(4, 6), "v": real(3, 6), "g": real(3)}, """
w = {weight}
y = F.linear(x, w)
return {result}""", {
        "weight": ("g[:, None] * v / v.norm(dim=1, keepdim=True)",
                   "v / torch.linalg.matrix_norm(v, 2)", "v / v.norm()",
                   "(v - v.mean(1, keepdim=True)) / (v.std(1, keepdim=True) + 1e-4) * g[:, None]",
                   "v / ((u := F.normalize(v.t() @ torch.ones(3), dim=0)) @ v.t()).norm()",
                   "F.normalize(v, dim=0) * g[:, None]", "v / v.abs().sum(1, keepdim=True)"),
        "result": ("y", "y.relu().sum()", "F.cross_entropy(y, torch.tensor([0, 1, 2, 0]))",
                   "(y ** 2).mean()")})


def gates_and_pools():
    yield Family("gated", {"x": real(4, 6), "w": real(6, 10), "o": real(5, 6)}, """
a, b = (x @ w).chunk(2, -1)
h = {gate}
y = {out}
return {result}""", {
        "gate": ("a * b.sigmoid()", "a * F.gelu(b)", "a * F.silu(b)", "a * b", "a * b.relu()",
                 "a * b.tanh()", "a * b.softmax(-1)", "torch.where(b > 0, a, 0.1 * a)",
                 "F.gelu(a, approximate='tanh') * b"),
        "out": ("h @ o", "x + h @ o", "F.layer_norm(x + h @ o, (6,))", "F.rms_norm(h @ o, (6,)) + x"),
        "result": ("y", "y.square().mean()", "F.cross_entropy(y, torch.tensor([1, 0, 5, 2]))")})
    yield Family("pooled", {"x": real(3, 5, 4), "m": whole(3, 5, high=1), "w": real(4)}, """
k = (m > 0) | (torch.arange(5) == 0)
y = {pool}
return {result}""", {
        "pool": ("(x * k[..., None]).sum(1) / k.sum(1, keepdim=True)",
                 "x.masked_fill(~k[..., None], -inf).amax(1)",
                 "(x * (x @ w).masked_fill(~k, -inf).softmax(1)[..., None]).sum(1)",
                 "x.masked_fill(~k[..., None], -inf).logsumexp(1)",
                 "(x.clamp(min=1e-3) ** 3 * k[..., None]).mean(1) ** (1 / 3)", "x[:, 0]",
                 "(x * k[..., None]).cumsum(1)[:, -1]"),
        "result": ("y", "y.norm(dim=-1).sum()", "F.softmax(y, -1).square().sum()",
                   "(F.normalize(y, dim=-1) @ F.normalize(y, dim=-1).t()).exp().mean()")})


def sequences():
    yield Family("ctc", {"x": real(6, 2, 5), "t": Input("int64", (2, 2), values=[[1, 2], [3, 3]])}, """
p = {logp}
return F.ctc_loss(p, t, torch.tensor([6, {short}]), torch.tensor([2, {target}]), {how})""", {
        "logp": ("F.log_softmax(x, -1)", "F.log_softmax(x * 2, -1)",
                 "x - x.logsumexp(-1, keepdim=True)"),
        "short": (6, 5), "target": (2, 1), "how": ("reduction='mean'", "reduction='sum'",
                                                   "zero_infinity=True", "reduction='none'")})
    yield Family("ranking", {"x": real(4, 6), "y": real(4, 6, grad="")}, """
d = x[:, :, None] - x[:, None]
s = (y[:, :, None] > y[:, None]).float()
v = {loss}
return {total}""", {
        "loss": ("F.softplus(-d) * s", "F.relu(1 - d) * s", "-(s * F.logsigmoid(d))",
                 "-(y.softmax(-1) * F.log_softmax(x, -1))",
                 "x.gather(1, y.argsort(1, descending=True)).flip(1).logcumsumexp(1).flip(1) "
                 "- x.gather(1, y.argsort(1, descending=True))",
                 "(torch.sigmoid(d / 0.5).sum(-1) - y.argsort(1).argsort(1)) ** 2"),
        "total": of(REDUCTIONS[:3], v="v")})
    yield Family("recurrent", {"x": real(3, 5, 4), "w": real(4, 4), "u": real(4, 4)}, """
h = torch.zeros(3, 4)
o = []
for t in range(5):
    z = x[:, t] @ w + h @ u
    h = {cell}
    o.append(h)
y = torch.stack(o, 1)
return {result}""", {
        "cell": ("z.tanh()", "0.5 * h + 0.5 * z.relu()", "z.sigmoid() * h + (1 - z.sigmoid()) * x[:, t]",
                 "h + 0.1 * (z - h).tanh()", "F.normalize(z, dim=-1)"),
        "result": ("y", "y[:, -1].sum()", "((y[:, 1:] - x[:, :-1]) ** 2).mean()")})


GROUPS = (pointwise_losses, overlap_losses, metric_losses, divergences, attention, normalisation,
          gates_and_pools, sequences)


@functools.cache
def everything() -> list[Written]:
    """All programs, families taking turns."""
    families = [list(f.programs()) for group in GROUPS for f in group()]
    mixed = [[f[k * 7919 % len(f)] for k in range(len(f))] for f in families]
    turns = [p for row in itertools.zip_longest(*mixed) for p in row if p is not None]
    return list({str(p): p for p in turns}.values())[:COUNT]


def program(number: int) -> Written:
    """One of them; its number is its seed."""
    made = everything()[number]
    made.seed = number
    return made

