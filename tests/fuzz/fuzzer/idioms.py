"""Steps as people write them: what is more than one operator, or has a form of its own.

Each function takes a Builder, chooses values and adds a step; `FAMILIES` says how often. Functions
inside of a step name their arguments p to z, since a to h are inputs.
"""

from __future__ import annotations

from .program import Input


def aliased(b) -> None:
    """Now and then an input that is a view of another one."""
    if not b.chance(0.07):
        return
    name = b.choose(list(b.inputs))
    value, spec = b.values[name], b.inputs[name]
    if spec.layout == "expanded" or spec.grad == "leaf":
        return
    ways = [name]
    if value.ndim:
        ways += [f"{name}[1:]", f"{name}.transpose(0, -1)", f"{name}.detach()"]
        ways += [f"{name}[..., 0]"] if value.shape[-1] else []
    of = b.choose(ways)
    other = "abcdefgh"[len(b.inputs)]
    b.inputs[other] = Input(spec.dtype, of=of)
    b.values[other] = eval(of, {}, dict(b.values))


# --- arithmetic -----------------------------------------------------------------------------------

UNARY = ("{x}.relu()", "F.gelu({x})", "F.silu({x})", "{x}.tanh()", "{x}.sigmoid()",
         "F.softplus({x})", "{x}.clamp(-0.9, 1.1)", "F.leaky_relu({x}, 0.1)", "F.elu({x})",
         "torch.where({x} > 0.25, {x}, {x} * 0.5)", "{x}.exp()", "({x} * {x} + 1).log()",
         "{x}.abs().sqrt()", "{x} ** 2", "{x} ** 3", "2 ** {x}", "1 / ({x} * {x} + 0.5)",
         "{x}.sin() * {x}.cos()", "-{x}", "F.gelu({x}, approximate='tanh')", "F.hardswish({x})",
         "F.logsigmoid({x})", "torch.erf({x})", "{x}.square().mean().sqrt() * {x}",
         "torch.nan_to_num({x})", "{x}.sign() * {x}", "F.relu6({x} * 4)", "F.mish({x})",
         "{x}.detach() * {x}", "{x}.clone()", "{x} * 0.5 + 1", "{x}.reciprocal()",
         "torch.log1p({x}.abs())", "{x}.rsqrt()", "F.softsign({x})", "{x}.atan()",
         "({x} * 3).round() + {x}", "{x} - {x}.floor()", "F.threshold({x}, 0.1, 20)")
BINARY = ("{x} + {y}", "{x} - {y}", "{x} * {y}", "{x} / ({y} * {y} + 0.5)", "torch.maximum({x}, {y})",
          "torch.where({x} > {y}, {x}, {y})", "torch.lerp({x}, {y}, 0.25)", "torch.hypot({x}, {y})",
          "torch.atan2({x}, {y})", "torch.logaddexp({x}, {y})", "({x} - {y}) ** 2",
          "({x} - {y}).abs()", "torch.addcmul({x}, {x}, {y}, value=0.5)", "{x} * {y}.sigmoid()",
          "{x}.masked_fill({y} > 0, 0.5)", "{x}.masked_fill({y} > 0, -inf)", "{x} // ({y}.abs() + 1)",
          "{x} % ({y}.abs() + 1)", "torch.fmod({x}, {y}.abs() + 1)", "torch.xlogy({x}, {y}.abs() + 1)",
          "torch.copysign({x}, {y})", "{x} ** {y}", "({x} >= {y}) * {x}", "torch.minimum({x}, {y})",
          "F.smooth_l1_loss({x}, {y}, reduction='none')", "torch.where({y} > 0, {x}, 0.5)")


COMPLEX = ("{x}.abs()", "{x}.conj() * {x}", "{x}.exp()", "{x}.real", "{x}.imag", "{x}.angle()",
           "torch.view_as_real({x})", "{x}.sin()", "{x}.cosh()", "1 / ({x} + 3)", "{x} ** 2",
           "{x}.sum()", "{x} * 2j", "{x}.reciprocal()", "({x} * {x}).mean(0)", "{x}.tanh()",
           "torch.polar({x}.abs(), {x}.real)", "{x}.mH", "{x}.resolve_conj()", "{x}.log()",
           "{x}.sqrt()", "torch.complex({x}.imag, {x}.real)", "{x}.cumsum(0)", "{x}.prod()",
           "{x} @ {x}.mH", "torch.fft.fft({x})", "torch.fft.ifft({x}).real", "{x}.sgn()",
           "{x}.norm()", "{x}.conj()", "{x}.sigmoid()", "torch.linalg.vector_norm({x}, dim=-1)")


def complex_(b) -> bool:
    """A step on complex numbers, or one that makes them."""
    if not any(v.dtype.is_complex for v in b.values.values()):
        x = b.real(1)
        text = b.choose(["torch.complex({x}, {x} * 0.5)", "torch.fft.rfft({x})", "{x} + 1j",
                         "torch.fft.fft({x})", "{x}.to(torch.complex64)"])
    else:
        x = b.pick(lambda v: v.dtype.is_complex)
        text = b.choose(COMPLEX)
    return b.step(text.format(x=x), [x], f"complex {text}")


def plain(b) -> str:
    """A value that is not complex, seldom one that is not floating."""
    return b.pick(lambda v: not v.dtype.is_complex) if b.chance(0.15) else b.real()


def unary(b) -> bool:
    x = plain(b)
    text = b.choose(UNARY)
    return b.step(text.format(x=x), [x], f"unary {text}")


def binary(b) -> bool:
    x = plain(b)
    y = b.partner(x)
    text = b.choose(BINARY)
    return b.step(text.format(x=x, y=y), [x, y], f"binary {text}")


NORMALISE = (
    "F.normalize({x}, dim={d})", "{x} / {x}.norm(dim={d}, keepdim=True)",
    "{x} / ({x}.square().sum({d}, keepdim=True) + 1e-6).sqrt()",
    "({x} - {x}.mean({d}, keepdim=True)) / ({x}.var({d}, keepdim=True, unbiased=False) + 1e-5).sqrt()",
    "({x} - {x}.mean({d}, keepdim=True)) / ({x}.std({d}, keepdim=True) + 1e-3)",
    "F.softmax({x}, {d})", "F.log_softmax({x}, {d})", "{x} - {x}.logsumexp({d}, keepdim=True)",
    "{x} / {x}.abs().amax({d}, keepdim=True)", "{x} / {x}.sum({d}, keepdim=True)",
    "F.layer_norm({x}, {x}.shape[-1:])", "F.rms_norm({x}, {x}.shape[-1:])",
    "{x} * torch.rsqrt({x}.pow(2).mean({d}, keepdim=True) + 1e-6)",
    "F.normalize({x}, p=1.0, dim={d})", "({x} - {x}.amin({d}, keepdim=True))",
    "{x}.exp() / {x}.exp().sum({d}, keepdim=True)", "F.softmin({x}, {d})",
    "({x} - {x}.mean()) / ({x}.std() + 1e-3)",
)
COMBINE = (
    "({x} * {y}).sum({d})", "F.cosine_similarity({x}, {y}, dim={d})", "({x} - {y}).norm(dim={d})",
    "({x} * {y}).mean({d})", "({x} - {y}).square().sum({d}).sqrt()", "F.pairwise_distance({x}, {y})",
    "({x} * {y}).sum({d}, keepdim=True) * {x}", "({x} + {y}).logsumexp({d})",
    "torch.einsum('...i,...i->...', {x}, {y})", "({x} - {y}).abs().amax({d})",
    "({x} * {y}).sum({d}).relu()", "1 - F.cosine_similarity({x}, {y}, dim={d})",
)


def normalise(b) -> bool:
    x = b.real(1)
    text = b.choose(NORMALISE)
    return b.step(text.format(x=x, d=b.dim(x)), [x], f"normalise {text}")


def combine(b) -> bool:
    x = b.real(1)
    y = b.partner(x)
    text = b.choose(COMBINE)
    return b.step(text.format(x=x, y=y, d=b.dim(x)), [x, y], f"combine {text}")


REDUCE = ("sum", "mean", "amax", "amin", "prod", "var", "std", "logsumexp", "norm", "any", "all",
          "argmax", "argmin", "cumsum", "cumprod", "logcumsumexp", "nansum", "nanmean", "median",
          "count_nonzero", "softmax", "max", "min", "cummax", "sort", "flip", "diff", "unique")


def reduce(b) -> bool:
    x = b.pick(lambda v: v.ndim and not v.dtype.is_complex) if b.chance(0.3) else b.real(1)
    name, d = b.choose(REDUCE), b.dim(x)
    keep = ", keepdim=True" if b.chance(0.4) else ""
    if name in ("cumsum", "cumprod", "logcumsumexp", "softmax", "count_nonzero", "cummax", "sort",
                "diff"):
        keep = ""
    if name in ("sum", "mean", "amax", "var", "std", "logsumexp") and b.chance(0.3):
        n = b.values[x].ndim
        d = f"[{', '.join(str(k) for k in range(n) if k != d % n)}]" if n > 1 else d
    if name == "flip":
        return b.step(f"{x}.flip({d})", [x], "flip")
    if name == "unique":
        return b.step(f"{x}.sum()", [x], "sum")
    if name == "diff":
        return b.step(f"torch.diff({x}, dim={d})", [x], "diff")
    tail = ".values" if name in ("median", "max", "min", "cummax", "sort") else ""
    return b.step(f"{x}.{name}(dim={d}{keep}){tail}", [x], name)


def reduce_all(b) -> bool:
    x = plain(b)
    name = b.choose(["sum", "mean", "amax", "prod", "std", "var", "norm", "max", "min", "argmax"])
    return b.step(f"{x}.{name}()", [x], name)


# --- shapes ---------------------------------------------------------------------------------------


def view(b) -> bool:
    x = b.number(1)
    v = b.values[x]
    n, d = v.ndim, b.dim(x)
    e, size = b.dim(x), v.shape[d]
    at = b.below(size) if size else 0
    ways = [f"{x}.transpose({d}, {e})", f"{x}.unsqueeze({b.below(n + 1)})", f"{x}.reshape(-1)",
            f"{x}.narrow({d}, {at}, {size - at})", f"{x}[..., ::2]", f"{x}[1:]", f"{x}.flip({d})",
            f"{x}.unsqueeze(0).expand(3, {', '.join(['-1'] * n)})", f"{x}.squeeze()",
            f"{x}.permute({', '.join(str(k) for k in range(n - 1, -1, -1))})", f"{x}.movedim(0, -1)",
            f"{x}[None]", f"{x}[..., None]", f"{x}.flatten()", f"{x}.roll(1, {d})",
            f"{x}.unbind({d})[{-1 if at else 0}]", f"{x}.chunk(2, {d})[0]", f"{x}.diagonal()",
            f"{x}.unfold({d}, 2, 1)", f"{x}.split(2, {d})[-1]", f"{x}.contiguous()",
            f"{x}.repeat_interleave(2, {d})", f"{x}.repeat(2, {', '.join(['1'] * n)})",
            f"{x}.view({', '.join(map(str, v.shape))})", f"{x}.mT", f"{x}.swapaxes(0, -1)",
            f"torch.broadcast_to({x}, (2, *{x}.shape))", f"{x}.view_as({x})", f"{x}.tril()",
            f"{x}.reshape({x}.shape[0], -1)", f"{x}.expand_as({x})", f"torch.atleast_2d({x})",
            f"{x}.select({d}, {at})", f"F.pad({x}, (1, 2))", f"F.pad({x}, (1, 0), value=2.0)"]
    text = b.choose(ways)
    return b.step(text, [x], text.replace(x, "x"))


def index(b) -> bool:
    x = b.number(1)
    v = b.values[x]
    d = b.dim(x)
    size = v.shape[d]
    if not v.numel():
        raise ValueError
    places = [b.below(2 * size) - size for _ in range(1 + b.below(4))]
    inside = [k % size for k in places]
    first = [k % v.shape[0] for k in places]
    ways = [f"{x}[{first}]", f"{x}[..., torch.tensor({[k % v.shape[-1] for k in places]})]",
            f"{x}.index_select({d}, torch.tensor({inside}))",
            f"{x}.gather({d}, torch.zeros_like({x}, dtype=torch.int64) + {inside[0]})",
            f"torch.take({x}, torch.tensor({first}))", f"{x}[{first[0]}]",
            f"{x}.scatter({d}, torch.zeros_like({x}, dtype=torch.int64) + {inside[0]}, 0.5)",
            f"{x}.scatter_add({d}, torch.zeros_like({x}, dtype=torch.int64) + {inside[0]}, {x})",
            f"{x}.index_add(0, torch.tensor({first}), {x}[{first}])",
            f"{x}.index_fill({d}, torch.tensor({inside}), 0.5)",
            f"torch.cat([{x}, {x} * 2], {d})", f"torch.stack([{x}, -{x}], {d})",
            f"{x}[{x} > 0]", f"torch.where({x} > 0, {x}, torch.zeros_like({x}))",
            f"{x}.index_copy(0, torch.tensor([{first[0]}]), {x}[-1:])",
            f"F.one_hot({x}.argmax({d}), {size})", f"{x}.take_along_dim({x}.argsort({d}), {d})",
            f"{x}.masked_select({x} > 0.5)", f"{x}.topk(1, {d}).values",
            f"torch.index_put({x}, (torch.tensor({first}),), {x}[{first}], accumulate=True)",
            f"{x}[torch.tensor({first})[:, None], :1]", f"{x}[{first[0]}:][:2]",
            f"F.embedding(torch.tensor({first}), {x})"]
    text = b.choose(ways)
    return b.step(text, [x], text.replace(x, "x").split("torch.tensor")[0],
                  traits={"sized"} if ">" in text and "where" not in text else ())


def matmul(b) -> bool:
    x = b.real(2)
    v = b.values[x]
    fits = [n for n, w in b.values.items() if w.ndim == 2 and w.dtype is v.dtype
            and w.shape[0] == v.shape[-1]]
    if fits and b.chance(0.6):
        return _product(b, x, b.choose(fits))
    if b.chance(0.3):
        return b.step(f"{x} @ {x}.transpose(-1, -2)", [x], "matmul")
    if b.chance(0.3):
        return b.step(f"F.scaled_dot_product_attention({x}, {x}, {x})", [x], "attention")
    w = b.fresh((3, v.shape[-1]), str(v.dtype).removeprefix("torch."), layout="")
    return b.step(f"F.linear({x}, {w})", [x, w], "linear")


def _product(b, x: str, y: str) -> bool:
    text = b.choose(["{x} @ {y}", "torch.matmul({x}, {y})", "({x} @ {y}).relu()",
                     "torch.einsum('...i,ij->...j', {x}, {y})", "{x} @ {y} + 1"])
    return b.step(text.format(x=x, y=y), [x, y], "matmul")


def cast(b) -> bool:
    x = b.pick()
    to = b.choose(["float()", "double()", "half()", "bfloat16()", "long()", "int()", "bool()",
                   "to(torch.complex64)", "type_as({y})", "to(torch.uint8)"])
    y = b.pick()
    return b.step(f"{x}.{to.format(y=y)}", [x, y] if "{y}" in to else [x], f"cast {to}")


# --- writes ---------------------------------------------------------------------------------------

WRITES = ("{x}.mul_(0.5)", "{x}.add_({y})", "{x}[0] = 0.25", "{x}[..., -1] = {y}.sum()", "{x}[..., -1] = {x}[..., 0] * 2",
          "{x}.select(-1, 0).add_(1)", "{x}[1:].mul_({x}[:-1].clone())", "{x}[1:].mul_({y}.sum())", "{x}.t().add_(1)", "{x}.copy_({y})",
          "{x}.view(-1)[:2].mul_(3)", "{x}.diagonal().fill_(2.0)", "{x}.zero_()", "{x}.sin_()",
          "{x}.transpose(0, -1)[0].zero_()", "{x}.clamp_(-1, 1)", "{x}.masked_fill_({y} > 0, 0.5)",
          "{x}.index_add_(0, torch.tensor([0]), {x}[:1].clone())", "{x}[:1].copy_({x}[-1:] + 1)",
          "{x}.fill_(0.5)", "{x} += {y}", "{x}[..., 0] += 1", "{x}[[0]] = {x}[-1:] * 3", "{x} *= {x}",
          "{x}.relu_()", "{x}.exp_()", "{x}[{x} > 0] = 0.5", "{x}.unbind(0)[0].mul_(2)",
          "{x}.cumsum_(-1)", "{x}.scatter_(0, torch.zeros_like({x}, dtype=torch.int64), 1.5)",
          "{x}.data.mul_(2)", "{x}.add_({x}.flip(0))", "{x}[..., ::2].neg_()", "{x}.addcmul_({y}, {y})",
          "torch.add({y}, 1, out={x})", "{x}.squeeze().tanh_()", "{x}[None].mul_({y})",
          "{x}.sub_({x}.mean())", "{x}.lerp_({y}, 0.5)", "{x}.div_({y})", "{x}.gt_({y})",
          "{x}.expand(2, *{x}.shape)[0].mul_(2)", "{x}.unfold(0, 2, 2)[0].add_(1)")


def write(b) -> bool:
    """A write into a value, most often a new one, so that it is not a leaf's."""
    text = b.choose(WRITES)
    if b.chance(0.6):
        x = b.real(1) if b.chance(0.8) else b.pick()
        b.step(f"{x}.clone()" if b.chance(0.6) else f"{x} * 2", [x], "clone")
        x = b.steps[-1].makes[0]
        if b.chance(0.4):
            view(b)  # something that sees the write, perhaps
    else:
        x = b.number(1)
    y = b.partner(x)
    with_y = [x, y] if "{y}" in text else [x]
    if "out=" in text or ".data" in text:
        if b.values[x].requires_grad or b.values[y].requires_grad or "out=" in text and (
                b.values[x].shape != b.values[y].shape):
            raise ValueError("a graph keeps values, eager code keeps memory")
    return b.step(text.format(x=x, y=y), with_y, f"write {text}", 0, {"write"})


# --- functions of functions -----------------------------------------------------------------------

CONTROL = (
    "torch.cond({x}.sum() > 0, lambda p: p.sin(), lambda p: p * 2, [{x}])",
    "torch.cond({x}.mean() < 0.1, lambda p, q: p * q, lambda p, q: p - q * 1, [{x}, {y}])",
    "torch._higher_order_ops.scan(lambda p, q: (p + q.tanh(), p * q), {x}[0] * 0, {x})[1]",
    "torch._higher_order_ops.scan(lambda p, q: (p * 0.5 + q, q.exp()), {x}[0], {x})[0]",
    "torch._higher_order_ops.while_loop(lambda p, q: p < 3, lambda p, q: (p + 1, q * 0.7), "
    "(torch.tensor(0), {x}))[1]",
    "torch._higher_order_ops.map(lambda p: p.sin() * 2, {x})",
    "torch._higher_order_ops.associative_scan(lambda p, q: p * q, {x}, dim=0)",
    "torch._higher_order_ops.associative_scan(lambda p, q: p + q, {x}, dim=0)",
)
TRANSFORMS = (
    "torch.func.grad(lambda p: (p * p.sin()).sum())({x})",
    "torch.func.vmap(lambda p: p.softmax(-1) * 2)({x})",
    "torch.func.vmap(lambda p: p.sum() + p.amax())({x})",
    "torch.func.jvp(lambda p: p.tanh() * p, ({x},), ({x} * 0.5,))[1]",
    "torch.func.vjp(lambda p: p.exp() * 2, {x})[1]({x})[0]",
    "torch.func.vmap(torch.func.grad(lambda p: (p ** 3).sum()))({x})",
    "torch.func.hessian(lambda p: (p.sin() * p).sum())({x}.reshape(-1)[:3])",
    "torch.func.jacrev(lambda p: p.cumsum(0) * p)({x}.reshape(-1)[:3])",
    "torch.func.jacfwd(lambda p: p.square().cumsum(0))({x}.reshape(-1)[:3])",
    "torch.func.vmap(lambda p, q: p * q, in_dims=(0, None))({x}, {x}[0])",
    "torch.func.grad(lambda p, q: (p * q).sum(), argnums=1)({x}, {y})",
    "torch.func.vmap(lambda p: p.sin(), out_dims=-1)({x})",
    "torch.func.grad_and_value(lambda p: F.softplus(p).mean())({x})[0]",
    "torch.func.vmap(torch.func.vmap(lambda p: p * p.exp()))({x})",
    "torch.utils.checkpoint.checkpoint(lambda p: (p.sin() * 2).cos(), {x}, use_reentrant=False)",
    "torch.func.functionalize(lambda p: p.clone().mul_(2).t())({x})",
)


def of_one_or_two(b, texts, trait) -> bool:
    x = b.real(1)
    y = b.partner(x)
    text = b.choose(texts)
    return b.step(text.format(x=x, y=y), [x, y] if "{y}" in text else [x], f"{trait} {text[:60]}",
                  traits={trait})


def control(b) -> bool:
    return of_one_or_two(b, CONTROL, "control")


def transform(b) -> bool:
    return of_one_or_two(b, TRANSFORMS, "transform")


FUNCTIONS = (
    """class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, p):
        ctx.save_for_backward(p)
        return p.sin() * 2
    @staticmethod
    def backward(ctx, g):
        (p,) = ctx.saved_tensors
        return g * p.cos() * 2
NEW = Own.apply({x})""",
    """class Own(torch.autograd.Function):
    generate_vmap_rule = True
    @staticmethod
    def forward(p, q):
        return p * q, p - q
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
    @staticmethod
    def backward(ctx, g, r):
        p, q = ctx.saved_tensors
        return g * q + r, g * p - r
NEW = Own.apply({x}, {x} * 0.5)[0]""",
    """class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, p):
        return p.view_as(p)
    @staticmethod
    def backward(ctx, g):
        return -0.5 * g
NEW = Own.apply({x})""",
)
HOOKS = (
    "NEW = {x} * 2\nif NEW.requires_grad:\n    NEW.register_hook(lambda g: g * 0.5)",
    "NEW = {x}.sin()\nif NEW.requires_grad:\n    NEW.register_hook(lambda g: g.clamp(-0.5, 0.5))",
    "NEW = {x} * 1\nif NEW.requires_grad:\n    NEW.register_hook(lambda g: g * (NEW.detach() > 0))",
)
SILENT = (
    "with torch.no_grad():\n    NEW = {x} * 2",
    "with torch.no_grad():\n    s = {x}.mean()\nNEW = {x} - s",
    "with torch.enable_grad():\n    NEW = {x}.exp()",
    "s = {x}\nfor _ in range(3):\n    s = s * 0.5 + {x}.tanh()\nNEW = s",
    "NEW = {x} if {x}.ndim > 1 else {x} * 2",
    "NEW = {x} * {x}.shape[0] + len({x})",
    "s = list({x})\nNEW = s[0] + s[-1]",
    "NEW = torch.zeros({x}.shape[0], dtype={x}.dtype) + {x}.sum()",
    "NEW = {x} + torch.arange({x}.shape[-1])",
    "s = torch.zeros_like({x})\ns[0] = {x}[0] * 2\nNEW = s",
    "s = torch.empty_like({x})\ns[:] = {x}\nNEW = s * 3",
    "NEW = {x} * torch.linspace(0, 1, {x}.shape[-1]).to({x}.dtype)",
    "NEW = torch.full_like({x}, 2.0) * {x}",
    "s, t = {x}.detach(), {x}\nNEW = s * t",
    "s = {x}\nwhile s.ndim > 1:\n    s = s.sum(0)\nNEW = s",
    "if {x}.sum() > 0:\n    NEW = {x} * 2\nelse:\n    NEW = {x}.sin()",
    "NEW = {x} * {x}.mean().item()",
    "NEW = {x}[int({x}.reshape(-1).argmax()) % {x}.shape[0]]",
    "NEW = {x} + float({x}.amax() > 1)",
    "s = {}\nfor k in range({x}.shape[0]):\n    s[k] = {x}[k] * k\nNEW = torch.stack(list(s.values()))",
    "NEW = torch.cat([r * 2 for r in {x}.split(2)])",
    "NEW = {x} * (1.5 if {x}.shape[-1] % 2 else 0.5)",
    "NEW = torch.nonzero({x} > 0).sum(0) + {x}.mean()",
    "s, k = torch.sort({x}, dim=0)\nNEW = s.gather(0, k)",
    "NEW = {x}.reshape(*{x}.shape[:-1], 1, {x}.shape[-1]).expand(*{x}.shape[:-1], 2, -1).flatten(-2)",
)


def own(b) -> bool:
    x = b.real(1)
    return b.step(b.choose(FUNCTIONS).replace("{x}", x), [x], "Function", traits={"function"})


def hook(b) -> bool:
    x = b.real(1)
    return b.step(b.choose(HOOKS).format(x=x), [x], "register_hook", traits={"hook"})


def silent(b) -> bool:
    x = b.real(1)
    text = b.choose(SILENT)
    return b.step(text.replace("{x}", x), [x], text.replace("{x}", "x"))


RANDOM = ("torch.rand_like({x})", "torch.randn_like({x}) * {x}", "F.dropout({x}, 0.5)",
          "torch.bernoulli({x}.sigmoid())", "{x} + torch.rand({x}.shape[-1])", "torch.randn(3)",
          "torch.randint(0, 5, {x}.shape) + {x}", "{x}[torch.randperm({x}.shape[0])]",
          "torch.normal({x}, 0.5)", "{x}.clone().uniform_(0, 1)", "F.gumbel_softmax({x})",
          "torch.multinomial({x}.softmax(-1), 1)", "{x}.clone().bernoulli_(0.3)",
          "F.dropout1d({x}, 0.3)", "{x}.clone().normal_() * {x}", "F.alpha_dropout({x}, 0.2, True)",
          "torch.poisson({x}.abs())", "{x}.clone().exponential_()", "F.rrelu({x}, training=True)")


def random(b) -> bool:
    x = b.real(1)
    text = b.choose(RANDOM)
    return b.step(text.format(x=x), [x], f"random {text}", traits={"random"})


LOSSES = (
    "F.mse_loss({x}, {y})", "F.l1_loss({x}, {y})", "F.huber_loss({x}, {y})",
    "F.cross_entropy({x}, {x}.argmax(-1))", "F.kl_div({x}.log_softmax(-1), {y}.softmax(-1))",
    "F.binary_cross_entropy_with_logits({x}, {y}.sigmoid())", "F.gaussian_nll_loss({x}, {y}, {x} ** 2 + 1)",
    "F.nll_loss({x}.log_softmax(-1), {x}.argmax(-1))", "F.poisson_nll_loss({x}, {y})",
    "F.soft_margin_loss({x}, {y}.sign())", "F.cosine_embedding_loss({x}, {y}, torch.ones({x}.shape[0]))",
    "F.triplet_margin_loss({x}, {y}, {x} + {y})", "F.hinge_embedding_loss({x}, {y}.sign())",
    "F.margin_ranking_loss({x}, {y}, {x}.sign())", "F.multi_margin_loss({x}, {x}.argmax(-1))",
)


def loss(b) -> bool:
    x = b.real(1)
    y = b.partner(x)
    text = b.choose(LOSSES)
    return b.step(text.format(x=x, y=y), [x, y], f"loss {text}")


FAMILIES = (*[unary] * 8, *[binary] * 8, *[normalise] * 6, *[combine] * 6, *[reduce] * 8,
            *[reduce_all] * 2, *[complex_] * 3, *[view] * 8, *[index] * 5, *[matmul] * 4, *[cast] * 3, *[write] * 8,
            *[control] * 2, *[transform] * 3, own, hook, *[silent] * 3, *[random] * 2, *[loss] * 2)


KERNELS = (*[unary] * 4, *[binary] * 4, *[normalise] * 4, *[combine] * 3, *[reduce] * 4,
           reduce_all, *[view] * 3, *[matmul] * 2, index, loss)


def kernel(b) -> bool:
    """A step of what compiled code fuses."""
    return b.choose(KERNELS)(b)


def step(b) -> bool:
    """A step of any family."""
    return b.choose(FAMILIES)(b)
