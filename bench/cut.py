"""What the minimum cut saves, beside PyTorch's: `python -m bench.cut [names] [--without-torch]`.

Both compilers capture the same functions; their partitioners cut.  Counted are the bytes that live
from the forward to the backward: *all* of them, and *new* ones, without inputs and results, which
are in memory anyway.  A view counts as what it looks at, once.
"""

from __future__ import annotations

import argparse
import importlib
import operator

from . import lines

MODELS: dict = {}


def model(make):
    """`make(torch, F)` gives a function and the tensors to call it with."""
    MODELS[make.__name__] = make
    return make


def through(blocks, *state):
    """What is behind all blocks; `bench.checkpoints` puts `checkpoint` around groups of them."""
    for block in blocks:
        state = block(*state)
    return state


def leaves(torch, *shapes, scale=0.1):
    return [(torch.randn(shape) * scale).requires_grad_() for shape in shapes]


@model
def elementwise(torch, F):
    def fn(x, w, b):
        return (F.gelu(x * w + b, approximate="tanh") * torch.tanh(x)).sum()

    return fn, leaves(torch, (256, 256), (256, 256), (256, 256))


@model
def broadcast(torch, F):
    return elementwise(torch, F)[0], leaves(torch, (256, 256), (256,), (256,))


@model
def cross_entropy(torch, F):
    target = torch.randint(0, 1000, (512,))
    return F.cross_entropy, [*leaves(torch, (512, 1000)), target]


@model
def distillation(torch, F):
    def fn(x, y):
        a, b = F.log_softmax(x / 2, -1), F.log_softmax(y / 2, -1)
        return F.kl_div(a, b, log_target=True, reduction="batchmean") + x.softmax(-1).std()

    return fn, leaves(torch, (128, 512), (128, 512))


@model
def norm_gelu(torch, F):
    def fn(x, gain, shift, c):
        return (F.gelu(F.layer_norm(x, (x.shape[-1],), gain, shift), approximate="tanh") * c).sum()

    return fn, [*leaves(torch, (512, 256), (256,), (256,)), torch.randn(512, 256)]


@model
def norms(torch, F):
    def fn(x, gain, shift, w):
        def gated(x):
            x = F.layer_norm(x, (256,), gain, shift)
            return F.silu(x @ w) + x,

        def scaled(x):
            x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * gain
            return F.layer_norm(x @ w, (256,), gain, shift),

        return through([gated, scaled], x)[0]

    return fn, leaves(torch, (256, 256), (256,), (256,), (256, 256))


@model
def norm_mlp(torch, F):
    def fn(gain, shift, w1, b1, w2, b2, x):
        def wide(x):
            h = F.layer_norm(x, (x.shape[-1],), gain, shift)
            return F.gelu(F.linear(h, w1, b1), approximate="tanh"),

        return through([wide, lambda h: ((F.linear(h, w2, b2) ** 2).mean(),)], x)[0]

    shapes = (128,), (128,), (512, 128), (512,), (128, 512), (128,)
    return fn, [*leaves(torch, *shapes), torch.randn(256, 128)]


@model
def mlp(torch, F):
    def fn(w1, b1, w2, b2, w3, b3, x, t):
        return through([
            lambda x: (F.relu(F.linear(x, w1, b1)),),
            lambda h: (F.relu(F.linear(h, w2, b2)),),
            lambda h: (F.cross_entropy(F.linear(h, w3, b3), t),),
        ], x)[0]

    shapes = (256, 784), (256,), (256, 256), (256,), (10, 256), (10,)
    return fn, [*leaves(torch, *shapes), torch.randn(128, 784), torch.randint(0, 10, (128,))]


@model
def dropout_mlp(torch, F):
    def fn(w1, w2, x):
        return through([lambda x: (F.dropout(F.gelu(x @ w1), 0.1),),
                        lambda h: (F.dropout(h @ w2, 0.1),)], x)[0]

    return fn, leaves(torch, (128, 512), (512, 128), (256, 128))


def attention(torch, q, k, v, F=None):
    if F is not None:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    scores = (q @ k.transpose(-2, -1)) * q.shape[-1] ** -0.5
    seen = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool).tril()
    return scores.masked_fill(~seen, -torch.inf).softmax(-1) @ v


def layer(torch, F, parameters, whole):
    """Both halves of a layer."""
    g1, s1, qkv, qkv_b, proj, proj_b, g2, s2, fc, fc_b, out, out_b = parameters

    def attending(x):
        b, t, c = x.shape
        h = F.linear(F.layer_norm(x, (c,), g1, s1), qkv, qkv_b)
        q, k, v = (z.view(b, t, 4, c // 4).transpose(1, 2) for z in h.split(c, dim=2))
        a = attention(torch, q, k, v, F if whole else None)
        return x + F.linear(a.transpose(1, 2).reshape(b, t, c), proj, proj_b),

    def feeding(x):
        h = F.layer_norm(x, x.shape[-1:], g2, s2)
        h = F.gelu(F.linear(h, fc, fc_b), approximate="tanh")
        return x + F.linear(h, out, out_b),

    return attending, feeding


def layers(torch, F, weights, whole):
    """The halves of all layers with 12 weights each."""
    starts = range(0, len(weights), 12)
    return [half for n in starts for half in layer(torch, F, weights[n:n + 12], whole)]


def parameters(c):
    return ((c,), (c,), (3 * c, c), (3 * c,), (c, c), (c,), (c,), (c,), (4 * c, c), (4 * c,),
            (c, 4 * c), (c,))


def block(torch, F, whole):
    def fn(x, y, *weights):
        (x,) = through(layers(torch, F, weights, whole), x)
        return F.mse_loss(x, y)

    return fn, [*leaves(torch, (4, 64, 128), (4, 64, 128)), *leaves(torch, *parameters(128))]


@model
def transformer_block(torch, F):
    return block(torch, F, False)


@model
def transformer_block_sdpa(torch, F):
    return block(torch, F, True)


@model
def gpt_4_layers(torch, F):
    def fn(words, following, table, places, gain, shift, *weights):
        def head(x):
            x = F.layer_norm(x, (64,), gain, shift) @ table.T
            return F.cross_entropy(x.reshape(-1, 100), following.reshape(-1)),

        x = F.embedding(words, table) + places
        return through([*layers(torch, F, weights, False), head], x)[0]

    words = torch.randint(0, 100, (4, 32))
    own = leaves(torch, (100, 64), (32, 64), (64,), (64,))
    return fn, [words, words, *own, *leaves(torch, *parameters(64) * 4)]


@model
def conv_net(torch, F):
    def fn(w1, g1, s1, w2, g2, s2, fc, fc_b, x, t):
        def half(w, gain, shift):
            def run(x):
                x = F.batch_norm(F.conv2d(x, w, padding=1), None, None, gain, shift, training=True)
                return F.max_pool2d(F.relu(x), 2),
            return run

        (x,) = through([half(w1, g1, s1), half(w2, g2, s2)], x)
        return F.cross_entropy(F.linear(x.flatten(1), fc, fc_b), t)

    shapes = (16, 3, 3, 3), (16,), (16,), (32, 16, 3, 3), (32,), (32,), (10, 32 * 64), (10,)
    return fn, [*leaves(torch, *shapes), torch.randn(8, 3, 32, 32), torch.randint(0, 10, (8,))]


@model
def resnet_block(torch, F):
    def fn(x, w1, g1, s1, w2, g2, s2):
        def first(x):
            h = F.batch_norm(F.conv2d(x, w1, padding=1), None, None, g1, s1, training=True)
            return x, F.relu(h)

        def second(x, h):
            h = F.batch_norm(F.conv2d(h, w2, padding=1), None, None, g2, s2, training=True)
            return F.relu(x + h),

        return through([first, second], x)[0]

    c = 32
    return fn, leaves(torch, (8, c, 16, 16), (c, c, 3, 3), (c,), (c,), (c, c, 3, 3), (c,), (c,))


@model
def lstm(torch, F):
    def fn(wx, wh, bias, x):
        steps, batch, width = x.shape
        h = torch.zeros(batch, width)

        def step(i):
            def run(h, c):
                gates = F.linear(x[i], wx, bias) + F.linear(h, wh)
                i_, f_, g_, o_ = gates.chunk(4, 1)
                c = torch.sigmoid(f_) * c + torch.sigmoid(i_) * torch.tanh(g_)
                return torch.sigmoid(o_) * torch.tanh(c), c
            return run

        h, _ = through([step(i) for i in range(steps)], h, h)
        return (h ** 2).mean()

    return fn, [*leaves(torch, (512, 128), (512, 128), (512,)), torch.randn(8, 32, 128)]


@model
def rnn(torch, F):
    def fn(wx, wh, bias, x):
        def step(i):
            return lambda h: (torch.tanh(x[i] @ wx + h @ wh + bias),)

        h = torch.zeros(x.shape[1], wh.shape[0])
        return through([step(i) for i in range(x.shape[0])], h)[0]

    return fn, [*leaves(torch, (64, 128), (128, 128), (128,)), torch.randn(16, 32, 64)]


@model
def pinn(torch, F):
    """A network and its second derivative by the chain rule, in a residual."""
    def fn(x, w1, b1, w2, b2, w3):
        def first(x):
            h = torch.tanh(x @ w1 + b1)
            d = (1 - h * h) * w1
            return h, d, -2 * h * d * w1

        def second(h, d, e):
            k = torch.tanh(h @ w2 + b2)
            slope = d @ w2
            return k, (1 - k * k) * (e @ w2) - 2 * k * (1 - k * k) * slope * slope

        k, bend = through([first, second], x)
        return ((bend @ w3 + torch.sin(k @ w3)) ** 2).mean()

    return fn, leaves(torch, (512, 1), (1, 64), (64,), (64, 64), (64,), (64, 1))


@model
def logistic_regression(torch, F):
    def fn(w, b, x, y):
        z = x @ w + b
        return (F.softplus(z) - y * z).mean() + 1e-3 * (w * w).sum()

    return fn, [*leaves(torch, (64,), ()), torch.randn(2048, 64), torch.ones(2048)]


@model
def bodies(torch, F):
    def fn(place, speed):
        def pull(p):
            d = p[None] - p[:, None]
            return (d * ((d * d).sum(-1, keepdim=True) + 0.01) ** -1.5).sum(1)

        def step(place, speed):
            speed = speed + 0.005 * pull(place)
            place = place + 0.01 * speed
            return place, speed + 0.005 * pull(place)

        place, speed = through([step] * 3, place, speed)
        return (place * place).sum() + (speed * speed).sum()

    return fn, leaves(torch, (64, 3), (64, 3), scale=1.0)


@model
def pointwise_chain(torch, F):
    def fn(x, y):
        return through([lambda x: (torch.sin(x) * y + torch.sigmoid(x),)] * 12, x)[0]

    return fn, leaves(torch, (256, 256), (256, 256))


@model
def gru(torch, F):
    def fn(wx, wh, bx, bh, x):
        def step(i):
            def run(h):
                a, b = F.linear(x[i], wx, bx).chunk(3, 1), F.linear(h, wh, bh).chunk(3, 1)
                reset, update = torch.sigmoid(a[0] + b[0]), torch.sigmoid(a[1] + b[1])
                return (1 - update) * torch.tanh(a[2] + reset * b[2]) + update * h,
            return run

        h = torch.zeros(x.shape[1], wh.shape[1])
        (h,) = through([step(i) for i in range(x.shape[0])], h)
        return (h ** 2).mean()

    shapes = (384, 64), (384, 128), (384,), (384,)
    return fn, [*leaves(torch, *shapes), torch.randn(8, 32, 64)]


@model
def graph_net(torch, F):
    """Messages along edges, summed where they arrive, twice."""
    def fn(x, w1, w2, w3, start, end):
        def passing(w):
            def run(x):
                message = F.relu(torch.cat([x[start], x[end]], 1) @ w)
                return x + torch.zeros_like(x).index_add(0, end, message),
            return run

        (x,) = through([passing(w1), passing(w2)], x)
        return F.log_softmax(x @ w3, -1)[:, 0].mean()

    edges = [torch.randint(0, 256, (2048,)) for _ in range(2)]
    return fn, [*leaves(torch, (256, 64), (128, 64), (128, 64), (64, 8)), *edges]


def normed_conv(torch, F, x, w, gain, shift, groups=8):
    return F.silu(F.group_norm(F.conv2d(x, w, padding=1), groups, gain, shift))


@model
def u_net(torch, F):
    def fn(x, y, w1, g1, s1, w2, g2, s2, up, w3, g3, s3, last):
        def right(a, b):
            c = torch.cat([a, F.conv_transpose2d(b, up, stride=2)], 1)
            return F.mse_loss(F.conv2d(normed_conv(torch, F, c, w3, g3, s3), last), y),

        return through([
            lambda x: (normed_conv(torch, F, x, w1, g1, s1),),
            lambda a: (a, normed_conv(torch, F, F.max_pool2d(a, 2), w2, g2, s2)),
            right,
        ], x)[0]

    shapes = [(16, 3, 3, 3), (16,), (16,), (32, 16, 3, 3), (32,), (32,), (32, 16, 2, 2),
              (16, 32, 3, 3), (16,), (16,), (3, 16, 1, 1)]
    images = [torch.randn(4, 3, 32, 32) for _ in range(2)]
    return fn, [*images, *leaves(torch, *shapes)]


@model
def diffusion_block(torch, F):
    """Of a denoising U-Net: residual, time embedding, attention over the places."""
    def fn(x, t, w1, g1, s1, w2, g2, s2, time, g3, s3, qkv, out):
        def residual(x):
            h = F.conv2d(F.silu(F.group_norm(x, 8, g1, s1)), w1, padding=1)
            h = h + F.linear(F.silu(t), time)[:, :, None, None]
            return x + F.conv2d(F.silu(F.group_norm(h, 8, g2, s2)), w2, padding=1),

        def attending(x):
            b, c, high, wide = x.shape
            h = F.group_norm(x, 8, g3, s3).reshape(b, c, -1).transpose(1, 2)
            q, k, v = F.linear(h, qkv).chunk(3, -1)
            h = torch.softmax(q @ k.transpose(1, 2) * c ** -0.5, -1) @ v
            return x + F.linear(h, out).transpose(1, 2).reshape(b, c, high, wide),

        return through([residual, attending], x)[0]

    c = 32
    shapes = [(2, c, 16, 16), (2, 64), (c, c, 3, 3), (c,), (c,), (c, c, 3, 3), (c,), (c,), (c, 64),
              (c,), (c,), (3 * c, c), (c, c)]
    return fn, leaves(torch, *shapes)


@model
def vision_transformer(torch, F):
    def fn(x, target, patch, patch_b, token, places, gain, shift, head, head_b, *weights):
        x = F.conv2d(x, patch, patch_b, stride=8).flatten(2).transpose(1, 2)
        x = torch.cat([token.expand(x.shape[0], -1, -1), x], 1) + places
        (x,) = through(layers(torch, F, weights, True), x)
        x = F.layer_norm(x[:, 0], (64,), gain, shift)
        return F.cross_entropy(F.linear(x, head, head_b), target, label_smoothing=0.1)

    own = (64, 3, 8, 8), (64,), (1, 1, 64), (17, 64), (64,), (64,), (10, 64), (10,)
    data = [torch.randn(8, 3, 32, 32), torch.randint(0, 10, (8,))]
    return fn, [*data, *leaves(torch, *own), *leaves(torch, *parameters(64) * 2)]


@model
def mixture_of_experts(torch, F):
    """All experts see all rows; the best two count."""
    def fn(x, gate, w1, w2):
        def gating(x):
            scores = F.softmax(x @ gate, -1)
            best, which = scores.topk(2, -1)
            best = best / best.sum(-1, keepdim=True)
            return x, torch.zeros_like(scores).scatter(1, which, best)

        def mixing(x, share):
            h = F.gelu(torch.einsum("nd,edh->enh", x, w1))
            return torch.einsum("enh,ehd,ne->nd", h, w2, share),

        return through([gating, mixing], x)[0]

    return fn, leaves(torch, (256, 64), (64, 4), (4, 64, 128), (4, 128, 64))


@model
def flow(torch, F):
    """A normalising flow of affine couplings: the likelihood of a batch."""
    def fn(x, *weights):
        def coupling(w1, b1, w2, b2):
            def run(x, total):
                a, b = x.chunk(2, 1)
                scale, move = F.linear(torch.tanh(F.linear(a, w1, b1)), w2, b2).chunk(2, 1)
                scale = torch.tanh(scale)
                x = torch.cat([b * torch.exp(scale) + move, a], 1)
                return x, total + scale.sum(1)
            return run

        x, total = through([coupling(*weights[n:n + 4]) for n in (0, 4, 8, 12)], x, 0)
        return (0.5 * (x * x).sum(1) - total).mean()

    shapes = ((128, 16), (128,), (32, 128), (32,)) * 4
    return fn, [torch.randn(512, 32), *leaves(torch, *shapes)]


@model
def llama_block(torch, F):
    """Rotary embedding, root mean square norms, a gated feed-forward part."""
    def norm(x, gain):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * gain

    def turned(x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat([-b, a], -1) * sin

    def fn(x, cos, sin, g1, wq, wk, wv, wo, g2, up, gate, down):
        def attending(x):
            b, t, c = x.shape
            h = norm(x, g1)
            q, k, v = (F.linear(h, w).view(b, t, 4, c // 4).transpose(1, 2) for w in (wq, wk, wv))
            a = attention(torch, turned(q, cos, sin), turned(k, cos, sin), v)
            return x + F.linear(a.transpose(1, 2).reshape(b, t, c), wo),

        def feeding(x):
            h = norm(x, g2)
            return x + F.linear(F.silu(F.linear(h, gate)) * F.linear(h, up), down),

        return through([attending, feeding], x)[0]

    c = 128
    angles = torch.outer(torch.arange(64.0), 10000 ** -(torch.arange(0.0, 32, 2) / 32))
    angles = torch.cat([angles, angles], 1)
    shapes = [(c,), (c, c), (c, c), (c, c), (c, c), (c,), (3 * c, c), (3 * c, c), (c, 3 * c)]
    return fn, [*leaves(torch, (2, 64, c)), angles.cos(), angles.sin(), *leaves(torch, *shapes)]


@model
def autoencoder(torch, F):
    """Variational: the noise is given."""
    def fn(x, noise, w1, b1, w2, b2, w3, b3, w4, b4):
        def encoder(x):
            return F.linear(F.softplus(F.linear(x, w1, b1)), w2, b2).chunk(2, 1)

        def decoder(mean, log_variance):
            code = mean + torch.exp(0.5 * log_variance) * noise
            return mean, log_variance, F.linear(F.softplus(F.linear(code, w3, b3)), w4, b4)

        mean, log_variance, out = through([encoder, decoder], x)
        cost = F.binary_cross_entropy_with_logits(out, x, reduction="sum")
        return cost - 0.5 * (1 + log_variance - mean ** 2 - log_variance.exp()).sum()

    shapes = (256, 784), (256,), (64, 256), (64,), (256, 32), (256,), (784, 256), (784,)
    return fn, [torch.rand(128, 784), torch.randn(128, 32), *leaves(torch, *shapes)]


@model
def contrastive(torch, F):
    def fn(a, b, wa, wb, scale):
        def compared(a, b):
            scores = scale.exp() * a @ b.T
            where = torch.arange(a.shape[0])
            return (F.cross_entropy(scores, where) + F.cross_entropy(scores.T, where)) / 2,

        return through([
            lambda a, b: (F.normalize(a @ wa, dim=-1), F.normalize(b @ wb, dim=-1)),
            compared,
        ], a, b)[0]

    own = leaves(torch, (256, 64), (192, 64), ())
    return fn, [torch.randn(256, 256), torch.randn(256, 192), *own]


@model
def separable_conv(torch, F):
    def fn(x, deep, g1, s1, flat, g2, s2, squeeze, widen):
        def each(x):
            h = F.conv2d(x, deep, padding=1, groups=32)
            return x, F.hardswish(F.batch_norm(h, None, None, g1, s1, training=True))

        def across(x, h):
            share = F.relu(h.mean((2, 3)) @ squeeze) @ widen
            h = F.conv2d(h * F.hardsigmoid(share)[:, :, None, None], flat)
            return x + F.batch_norm(h, None, None, g2, s2, training=True),

        return through([each, across], x)[0]

    c = 32
    shapes = [(4, c, 16, 16), (c, 1, 3, 3), (c,), (c,), (c, c, 1, 1), (c,), (c,), (c, 8), (8, c)]
    return fn, leaves(torch, *shapes)


@model
def pinn_by_jvp(torch, F):
    """A residual with second derivatives by nested forward mode."""
    def fn(x, w1, b1, w2, b2, w3):
        def net(x):
            return torch.tanh(torch.tanh(x @ w1 + b1) @ w2 + b2) @ w3

        one = torch.ones_like(x)
        slope = lambda x: torch.func.jvp(net, (x,), (one,))[1]
        return ((torch.func.jvp(slope, (x,), (one,))[1] + torch.sin(net(x))) ** 2).mean()

    return fn, leaves(torch, (512, 1), (1, 64), (64,), (64, 64), (64,), (64, 1))


# Counting -----------------------------------------------------------------------------------------


def ours(name: str, backend: str = "native") -> tuple[int, int]:
    """Bytes saved by Pullback's cut: all, new.  On NumPy some operators stay whole."""
    import pullback as torch

    fn, args = MODELS[name](torch, torch.nn.functional)
    compiled = torch.compile(fn, backend=backend, options={"fuse_backward": False})
    compiled(*args)
    (program,) = compiled.programs.values()
    results = program.graphs()[0].graph.output_node().args[0]
    from pullback.fx.traits import cost_of, nbytes

    if SHOW:
        print("our forward", program.graphs()[0].code)
    views = roots(lambda target: target is not operator.getitem and cost_of(target) == "view")
    return count(results, program.count, views, lambda n: nbytes(n.meta["val"]))


def theirs(name: str) -> tuple[int, int]:
    """Bytes saved by the cut that `torch.compile` makes: all, new."""
    import torch
    import torch._dynamo
    from torch._inductor import compile_fx

    class Done(Exception):
        pass

    found = []

    def record(joint, inputs, *, num_fwd_outputs, **rest):
        forward, _ = cut(joint, inputs, num_fwd_outputs=num_fwd_outputs, **rest)
        (output,) = [n for n in forward.graph.nodes if n.op == "output"]
        found.append(count(output.args[0], num_fwd_outputs, views, size))
        if SHOW:
            print("torch's forward", forward.code)
        raise Done

    views = roots(lambda target: getattr(target, "is_view", False))

    def size(node):
        value = node.meta["val"]
        if not isinstance(value, torch.Tensor):
            return 8
        storage = 1
        for extent, stride in zip(value.shape, value.stride()):
            storage *= extent if stride else min(extent, 1)
        return storage * value.itemsize

    cut, compile_fx.min_cut_rematerialization_partition = (
        compile_fx.min_cut_rematerialization_partition, record)
    fn, args = MODELS[name](torch, importlib.import_module("torch.nn.functional"))
    try:
        torch._dynamo.reset()
        with torch._inductor.config.patch(force_disable_caches=True):  # else it may cut nothing
            torch.compile(fn)(*args)
    except torch._dynamo.exc.BackendCompilerFailed as error:
        if not isinstance(error.inner_exception, Done):
            raise
    finally:
        compile_fx.min_cut_rematerialization_partition = cut
    (result,) = found
    return result


def roots(is_view):
    """A function from a node to the one whose memory it looks at."""

    def viewed(node):
        while node.op == "call_function" and is_view(node.target):
            node = node.args[0]
        return node

    return viewed


def count(results, forward_count: int, viewed, size) -> tuple[int, int]:
    """Bytes of what follows the user's results."""
    there = {viewed(n) for n in results[:forward_count] if n is not None}
    saved = {viewed(n): n for n in results[forward_count:]}
    if SHOW:
        for root, n in saved.items():
            print("   ", n.name, root.name, tuple(getattr(n.meta["val"], "shape", ())), size(root))
    new = [n for n in saved if n not in there and n.op != "placeholder"]
    return sum(map(size, saved)), sum(map(size, new))


SHOW = False


def main() -> None:
    """Print a table; fail if a row is above PyTorch's."""
    global SHOW
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(MODELS))
    parser.add_argument("--without-torch", action="store_true")
    parser.add_argument("--show", action="store_true", help="list the saved values")
    options = parser.parse_args()
    SHOW = options.show

    def line(name: str) -> tuple[str, str, bool]:
        all_, new = ours(name)
        begin = f"{name:26}{all_:12,}"
        if options.without_torch:
            return name, f"{begin}{'':20}{new:12,}", False
        their_all, their_new = theirs(name)
        return name, (f"{begin}{their_all:12,}{all_ / max(their_all, 1):8.2f}"
                      f"{new:12,}{their_new:12,}{new / max(their_new, 1):8.2f}"), (
            all_ > their_all or new > their_new)

    columns = f"{'torch':>12}{'ratio':>8}"
    lines.show(f"{'bytes saved':26}{'all':>12}{columns}{'new':>12}{columns}",
               map(line, options.names or MODELS), "above PyTorch's")


if __name__ == "__main__":
    main()
