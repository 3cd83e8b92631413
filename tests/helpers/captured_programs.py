"""Programs whose captures print as PyTorch's do: `record_captures.py` wrote what that is."""


def programs(torch) -> dict:
    """Name -> (function, arguments)."""
    F = torch.nn.functional
    x, v = torch.ones(3, 4), torch.ones(4)

    def vjp(x):
        out, back = torch.func.vjp(lambda y: y * y, x)
        return back(out)[0]

    def quiet(x):
        with torch.no_grad():
            y = x.sin()
        return y + x

    def inner_gradient(x):
        y = x.clone().requires_grad_()
        y.register_hook(lambda g: g * 2)
        return torch.autograd.grad(y.sin().sum(), y)[0]

    return {
        "slices": (lambda x: (x[:1], x[1:], x[:], x[::2], x[:-1], x[:, 1:3], x[None, :2]), (x,)),
        "factories": (
            lambda x: (torch.zeros(2), torch.ones_like(x), x.new_full((2,), 3), torch.arange(3),
                       torch.eye(3, 4), torch.empty(2, dtype=torch.int64), torch.linspace(0, 1, 5)),
            (x,),
        ),
        "constants": (lambda x: x * torch.tensor(3.0).item() + torch.tensor([1.0, 2, 3, 4]), (v,)),
        "quiet": (quiet, (v,)),
        "inner_gradient": (inner_gradient, (v,)),
        "tuples": (lambda x: (x.split(1), x.unbind(0), x.chunk(3)), (x,)),
        "copies": (lambda x: (torch.select_copy(x, 0, 1), torch.permute_copy(x, (1, 0))), (x,)),
        "linear": (lambda x, w, b: F.linear(x, w, b).relu(), (x, torch.ones(5, 4), torch.ones(5))),
        "vjp": (vjp, (v,)),
        "index": (lambda x, i: x[i] + x[:, None, 0], (x, torch.tensor([0, 1, 2]))),
        "softmax": (lambda x: x.softmax(-1).log_softmax(0), (x,)),
        "layer_norm": (lambda x, w: F.layer_norm(x, (4,), w), (x, v)),
        "max": (lambda x: x.max(1), (x,)),
        "cross_entropy": (lambda x, t: F.cross_entropy(x, t), (x, torch.tensor([0, 1, 2]))),
        "pool": (
            lambda x, w: F.max_pool2d(F.conv2d(x, w), 2),
            (torch.ones(1, 2, 6, 6), torch.ones(3, 2, 3, 3)),
        ),
        "number": (lambda x, n: x * n + n, (v, 3)),
        "views": (
            lambda x: (x.view(2, 2), x.t(), x.detach(), x.expand(2, 4), x.unsqueeze(0).squeeze(0)),
            (v,),
        ),
        "dtypes": (lambda x: x.to(torch.float64).long().float(), (v,)),
        "embedding": (lambda i, w: F.embedding(i, w), (torch.tensor([0, 1]), x)),
        "activations": (
            lambda x: F.gelu(x, approximate="tanh") + F.silu(x) + F.leaky_relu(x) + F.elu(x),
            (v,),
        ),
        "tree": (
            lambda a, d: {"sum": a + d["x"][0], "rest": [d["y"], (a,)]},
            (v, {"x": [v * 2], "y": v * 3}),
        ),
        "dead": (lambda x: (x.sin(), x.max(0), x.cos())[2], (v,)),
        "star": (lambda *args: args[0] * args[1], (v, v * 2)),
    }
