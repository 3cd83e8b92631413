"""Functions of all families of operators; `record_printed.py` wrote how their AOT graphs print."""

import math


def programs(torch):
    F = torch.nn.functional

    def r(*s):
        return (
            torch.linspace(-1.3, 1.7, max(1, int(math.prod(s)))).reshape(s).clone().requires_grad_()
        )

    def p(*s):
        return (
            (torch.linspace(0.2, 1.7, max(1, int(math.prod(s)))).reshape(s))
            .clone()
            .requires_grad_()
        )

    P = {}

    def a(name, f, *start):
        P[name] = (f, lambda s=start: [t() if callable(t) else t for t in s])

    R = lambda *s: lambda: r(*s)
    Q = lambda *s: lambda: p(*s)
    I = lambda *v: lambda: torch.tensor(v)
    a("linear", lambda x, w, b: F.linear(x, w, b), R(4, 3), R(5, 3), R(5))
    a("linear3", lambda x, w, b: F.linear(x, w, b), R(2, 4, 3), R(5, 3), R(5))
    a("linear3nb", lambda x, w: F.linear(x, w), R(2, 4, 3), R(5, 3))
    a(
        "mlp",
        lambda x, w, b, v, c: F.linear(F.relu(F.linear(x, w, b)), v, c).sum(),
        R(4, 3),
        R(5, 3),
        R(5),
        R(2, 5),
        R(2),
    )
    a("layer_norm", lambda x, w, b: F.layer_norm(x, (3,), w, b), R(4, 3), R(3), R(3))
    a("rms_norm", lambda x, w: F.rms_norm(x, (3,), w), R(4, 3), R(3))
    a("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), R(2, 4, 3), R(4), R(4))
    a("batch_norm", lambda x, w, b: F.batch_norm(x, None, None, w, b, True), R(4, 3), R(3), R(3))
    a("instance_norm", lambda x: F.instance_norm(x), R(2, 3, 4))
    for n in [
        "gelu",
        "silu",
        "elu",
        "leaky_relu",
        "softplus",
        "mish",
        "hardtanh",
        "hardswish",
        "hardsigmoid",
        "selu",
        "celu",
        "logsigmoid",
        "relu6",
        "tanhshrink",
        "softsign",
        "softshrink",
        "hardshrink",
        "glu",
        "prelu",
    ]:
        if n == "glu":
            a(n, lambda x: F.glu(x), R(3, 4))
        elif n == "prelu":
            a(n, lambda x, w: F.prelu(x, w), R(3, 4), R(4))
        else:
            a(n, lambda x, n=n: getattr(F, n)(x), R(3, 4))
    a("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), R(3, 4))
    for n in [
        "sin",
        "cos",
        "tan",
        "tanh",
        "sigmoid",
        "exp",
        "log",
        "sqrt",
        "rsqrt",
        "reciprocal",
        "abs",
        "neg",
        "square",
        "log1p",
        "expm1",
        "erf",
        "atan",
        "asinh",
        "sinh",
        "cosh",
        "log2",
        "log10",
        "exp2",
        "erfc",
        "sign",
        "floor",
        "lgamma",
        "digamma",
    ]:
        a("u_" + n, lambda x, n=n: getattr(x, n)(), Q(3, 4))
    for n in [
        "add",
        "sub",
        "mul",
        "div",
        "pow",
        "maximum",
        "minimum",
        "atan2",
        "fmod",
        "remainder",
        "hypot",
    ]:
        a("b_" + n, lambda x, y, n=n: getattr(torch, n)(x, y), Q(3, 4), Q(4))
    a("scalar", lambda x: (x * 2 + 1 - 0.5) / 3, R(3))
    a("rscalar", lambda x: 2 / (1 - x), R(3))
    a("pow2", lambda x: x**2, R(3))
    a("pow3", lambda x: x**3.5, Q(3))
    a("2pow", lambda x: 2**x, R(3))
    a("softmax", lambda x: x.softmax(-1), R(3, 4))
    a("log_softmax", lambda x: x.log_softmax(0), R(3, 4))
    a("logsumexp", lambda x: x.logsumexp(1), R(3, 4))
    a("ce", lambda x, y: F.cross_entropy(x, y), R(3, 4), I(0, 1, 3))
    a("ce_ls", lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1), R(3, 4), I(0, 1, 3))
    a("nll", lambda x, y: F.nll_loss(x, y), R(3, 4), I(0, 1, 3))
    a("mse", lambda x, y: F.mse_loss(x, y), R(3, 4), Q(3, 4))
    a("l1", lambda x, y: F.l1_loss(x, y), R(3, 4), Q(3, 4))
    a("huber", lambda x, y: F.huber_loss(x, y), R(3, 4), Q(3, 4))
    a("smooth", lambda x, y: F.smooth_l1_loss(x, y), R(3, 4), Q(3, 4))
    a(
        "bce",
        lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.detach().sigmoid()),
        R(3, 4),
        Q(3, 4),
    )
    a("bcel", lambda x, y: F.binary_cross_entropy_with_logits(x, y.detach()), R(3, 4), Q(3, 4))
    a("kl", lambda x, y: F.kl_div(x, y, reduction="batchmean"), R(3, 4), Q(3, 4))
    a("cos_sim", lambda x, y: F.cosine_similarity(x, y), R(3, 4), Q(3, 4))
    a("triplet", lambda x, y, z: F.triplet_margin_loss(x, y, z), R(3, 4), Q(3, 4), R(3, 4))
    a("conv1d", lambda x, w, b: F.conv1d(x, w, b), R(1, 2, 5), R(3, 2, 2), R(3))
    a("conv2d", lambda x, w, b: F.conv2d(x, w, b, padding=1), R(1, 2, 4, 4), R(3, 2, 3, 3), R(3))
    a("conv2d_alone", lambda x, w: F.conv2d(x, w, padding=1), R(1, 2, 4, 4), R(3, 2, 3, 3))
    a("conv1d_groups", lambda x, w: F.conv1d(x, w, groups=2), R(1, 2, 5), R(2, 1, 3))
    a(
        "conv_norm_relu",
        lambda x, w, b, m, v: F.relu(F.batch_norm(F.conv2d(x, w), m, v, b, b, True)),
        R(2, 2, 4, 4), R(3, 2, 3, 3), R(3), lambda: torch.zeros(3), lambda: torch.ones(3),
    )
    a("convt", lambda x, w: F.conv_transpose2d(x, w, stride=2), R(1, 2, 3, 3), R(2, 3, 2, 2))
    a("maxpool", lambda x: F.max_pool2d(x, 2), R(1, 2, 4, 4))
    a("avgpool", lambda x: F.avg_pool2d(x, 2), R(1, 2, 4, 4))
    a("adavg", lambda x: F.adaptive_avg_pool2d(x, 1), R(1, 2, 4, 4))
    a("adavg2", lambda x: F.adaptive_avg_pool2d(x, 2), R(1, 2, 4, 4))
    a("maxpool1", lambda x: F.max_pool1d(x, 2), R(1, 2, 4))
    a("embedding", lambda w, i: F.embedding(i, w), R(5, 3), I(0, 2, 2))
    a("onehot", lambda w, i: F.one_hot(i, 5).float() @ w, R(5, 3), I(0, 2, 2))
    a(
        "sdpa",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
        R(1, 2, 3, 4),
        R(1, 2, 3, 4),
        R(1, 2, 3, 4),
    )
    a(
        "sdpac",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        R(1, 2, 3, 4),
        R(1, 2, 3, 4),
        R(1, 2, 3, 4),
    )
    a(
        "attn",
        lambda q, k, v: ((q @ k.transpose(-2, -1)) / 2).softmax(-1) @ v,
        R(1, 2, 3, 4),
        R(1, 2, 3, 4),
        R(1, 2, 3, 4),
    )
    a("mm", lambda x, y: x @ y, R(2, 3), R(3, 4))
    a("bmm", lambda x, y: torch.bmm(x, y), R(2, 2, 3), R(2, 3, 4))
    a("mv", lambda x, y: x @ y, R(2, 3), R(3))
    a("dot", lambda x, y: x @ y, R(3), R(3))
    a("mmb", lambda x, y: x @ y, R(2, 2, 3), R(3, 4))
    a("mm4", lambda x, y: x @ y, R(2, 2, 2, 3), R(2, 3, 4))
    a("vm", lambda x, y: x @ y, R(3), R(3, 4))
    a("einsum", lambda x, y: torch.einsum("bij,bjk->bik", x, y), R(2, 2, 3), R(2, 3, 4))
    a("einsum2", lambda x, y: torch.einsum("ij,kj->ik", x, y), R(2, 3), R(4, 3))
    a("outer", lambda x, y: torch.outer(x, y), R(2), R(3))
    a("tensordot", lambda x, y: torch.tensordot(x, y, dims=([1], [0])), R(2, 3), R(3, 4))
    a("addmm", lambda b, x, y: torch.addmm(b, x, y, beta=2, alpha=3), R(2, 4), R(2, 3), R(3, 4))
    a("baddbmm", lambda b, x, y: torch.baddbmm(b, x, y), R(2, 2, 4), R(2, 2, 3), R(2, 3, 4))
    for n, f in {
        "sum": lambda x: x.sum(),
        "sum1": lambda x: x.sum(1),
        "sumk": lambda x: x.sum(0, keepdim=True),
        "mean": lambda x: x.mean(),
        "mean1": lambda x: x.mean(-1),
        "var": lambda x: x.var(),
        "var1": lambda x: x.var(1, unbiased=False),
        "std": lambda x: x.std(1),
        "prod": lambda x: x.prod(),
        "prod1": lambda x: x.prod(1),
        "amax": lambda x: x.amax(1),
        "max": lambda x: x.max(),
        "max1": lambda x: x.max(1).values,
        "min1": lambda x: x.min(1)[0],
        "norm": lambda x: x.norm(),
        "norm1": lambda x: x.norm(dim=1),
        "cumsum": lambda x: x.cumsum(1),
        "cumprod": lambda x: x.cumprod(1),
        "sort": lambda x: x.sort(1)[0],
        "topk": lambda x: x.topk(2, 1)[0],
        "median": lambda x: x.median(1)[0],
        "vn": lambda x: torch.linalg.vector_norm(x, 3),
        "all": lambda x: x * (x > 0).all(),
        "argmax": lambda x: x.argmax(1),
        "logcumsumexp": lambda x: x.logcumsumexp(1),
        "norm1p": lambda x: x.norm(1, 1),
        "var_mean": lambda x: torch.var_mean(x, 1),
        "diff": lambda x: torch.diff(x),
        "nansum": lambda x: x.nansum(),
        "renorm": lambda x: x.renorm(2, 0, 1.0),
        "unbind": lambda x: torch.stack(x.unbind(0)),
        "normalize": lambda x: F.normalize(x),
    }.items():
        a("r_" + n, f, Q(3, 4))
    for n, f in {
        "view": lambda x: x.view(4, 3),
        "reshape": lambda x: x.t().reshape(-1),
        "t": lambda x: x.t(),
        "permute": lambda x: x.permute(1, 0) * 2,
        "unsq": lambda x: x.unsqueeze(1) * 2,
        "sq": lambda x: x.unsqueeze(0).squeeze() * 2,
        "expand": lambda x: x[:, :1].expand(3, 4) * 2,
        "slice": lambda x: x[1:, ::2] * 2,
        "select": lambda x: x[1] * 2,
        "idx": lambda x: x[torch.tensor([0, 2])],
        "mask": lambda x: torch.where(x > 0.5, x, x * 2),
        "mfill": lambda x: x.masked_fill(x > 0.5, 1.0),
        "cat": lambda x: torch.cat([x, x * 2], 1),
        "stack": lambda x: torch.stack([x, x.sin()]),
        "split": lambda x: x.split(2, 1),
        "chunk": lambda x: [c * 2 for c in x.chunk(2, 1)],
        "flip": lambda x: x.flip(0),
        "roll": lambda x: x.roll(1, 0),
        "pad": lambda x: F.pad(x, (1, 2)),
        "padr": lambda x: F.pad(x[None], (1, 2), mode="reflect"),
        "tril": lambda x: x.tril(),
        "diag": lambda x: x.diagonal() * 2,
        "diage": lambda x: torch.diag_embed(x),
        "gather": lambda x: x.gather(1, torch.tensor([[0, 1], [1, 2], [3, 0]])),
        "scatter": lambda x: x.scatter(1, torch.tensor([[0], [1], [2]]), 0.0),
        "scadd": lambda x: torch.zeros(3, 4).scatter_add(1, torch.tensor([[0, 1, 1, 2]] * 3), x),
        "repeat": lambda x: x.repeat(2, 1),
        "rint": lambda x: x.repeat_interleave(2, 0),
        "isel": lambda x: x.index_select(0, torch.tensor([0, 2])),
        "clamp": lambda x: x.clamp(0.3, 1.0),
        "clampmin": lambda x: x.clamp(min=0.5),
        "to": lambda x: x.double() * 2,
        "flatten": lambda x: x.flatten(),
        "movedim": lambda x: x.movedim(0, 1) * 2,
        "unfold": lambda x: x.unfold(1, 2, 1),
        "narrow": lambda x: x.narrow(1, 1, 2) * 2,
        "take": lambda x: x.take(torch.tensor([0, 5])),
        "lerp": lambda x: torch.lerp(x, x * 2, 0.3),
        "addcmul": lambda x: torch.addcmul(x, x, x, value=2),
        "interp": lambda x: F.interpolate(x[None, None], scale_factor=2),
        "interpb": lambda x: F.interpolate(x[None, None], size=(6, 8), mode="bilinear"),
        "ps": lambda x: F.pixel_shuffle(x.view(1, 4, 3, 1), 2),
        "nan_to_num": lambda x: x.nan_to_num(),
        "ones": lambda x: x + torch.ones(3, 4),
        "arange": lambda x: x * torch.arange(4),
        "zl": lambda x: x + torch.zeros_like(x),
        "full": lambda x: x * torch.full((4,), 2.0),
        "rand": lambda x: F.dropout(x, 0.5),
        "clone": lambda x: x.clone(),
        "contig": lambda x: x.t().contiguous(),
        "detach": lambda x: x * x.detach(),
        "logit": lambda x: (x / 2).logit(),
        "xlogy": lambda x: torch.xlogy(x, x),
        "copysign": lambda x: torch.copysign(x, -x),
        "index_add": lambda x: x.index_add(0, torch.tensor([0, 1]), x[:2]),
        "index_put": lambda x: x.index_put((torch.tensor([0]),), x[1]),
        "setitem": lambda x: (lambda y: (y.__setitem__(0, 1.0), y)[1])(x * 2),
        "inplace": lambda x: (x * 2).add_(1).mul_(x),
    }.items():
        a("s_" + n, f, Q(3, 4))
    S = lambda: (torch.eye(3) * 2 + 0.1).requires_grad_()
    for n, f in {
        "inv": lambda x: torch.linalg.inv(x),
        "chol": lambda x: torch.linalg.cholesky(x @ x.mT),
        "det": lambda x: torch.linalg.det(x),
        "slogdet": lambda x: torch.linalg.slogdet(x)[1],
        "solve": lambda x: torch.linalg.solve(x, x.sin()),
        "eigh": lambda x: torch.linalg.eigh(x + x.mT)[0],
        "svd": lambda x: torch.linalg.svdvals(x),
        "qr": lambda x: torch.linalg.qr(x)[1],
        "matrix_exp": lambda x: torch.matrix_exp(x),
        "pinv": lambda x: torch.linalg.pinv(x),
        "trace": lambda x: x.trace(),
        "tri": lambda x: torch.linalg.solve_triangular(x, x, upper=True),
        "mpow": lambda x: torch.linalg.matrix_power(x, 3),
    }.items():
        a("l_" + n, f, S)
    a("fft", lambda x: torch.fft.rfft(x).abs(), Q(8))
    a("fft2", lambda x: torch.fft.irfft(torch.fft.rfft(x)), Q(8))
    a(
        "gru",
        lambda x, h, w, u, b, c: torch.gru_cell(x, h, w, u, b, c),
        R(2, 3),
        R(2, 4),
        R(12, 3),
        R(12, 4),
        R(12),
        R(12),
    )
    a(
        "lstmc",
        lambda x, h, k, w, u, b, c: torch.lstm_cell(x, (h, k), w, u, b, c),
        R(2, 3),
        R(2, 4),
        R(2, 4),
        R(16, 3),
        R(16, 4),
        R(16),
        R(16),
    )
    a("cdist", lambda x, y: torch.cdist(x, y), Q(3, 4), Q(2, 4))
    a("pdist", lambda x: F.pdist(x), Q(3, 4))
    a("bilinear", lambda x, y, w: F.bilinear(x, y, w), R(2, 3), R(2, 4), R(5, 3, 4))
    return P
