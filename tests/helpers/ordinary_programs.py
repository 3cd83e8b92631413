"""Programs as people write them: each takes a wrapper for the function that it would compile.

They keep state in objects, lists and modules, train, sample, decode and solve, and yield all that
can be seen afterwards.  With `compile` they must yield what they yield without it.
"""

import collections
import dataclasses
import itertools

import pullback as torch
from pullback import nn, optim
from pullback.nn import functional as F

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def mlp(*sizes, act=nn.Tanh):
    layers = [m for a, b in itertools.pairwise(sizes) for m in (nn.Linear(a, b), act())]
    return nn.Sequential(*layers[:-1])


@program
def equation_residuals(compiled):
    """Derivatives of a network with respect to its inputs in the loss."""
    net = mlp(2, 8, 1).double()

    def residual(x, t):
        x, t = x.requires_grad_(), t.requires_grad_()
        u = net(torch.stack([x, t], 1))
        u_x, u_t = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
        (u_xx,) = torch.autograd.grad(u_x.sum(), x, create_graph=True)
        return ((u_t + u[:, 0] * u_x - 0.01 * u_xx) ** 2).mean()

    loss, opt = compiled(residual), optim.Adam(net.parameters(), 1e-2)
    points = torch.rand(2, 10).double()
    for _ in range(3):
        opt.zero_grad()
        found = loss(*points.clone())
        found.backward()
        opt.step()
        yield found
    yield from net.parameters()


@program
def learning_to_learn(compiled):
    def after_steps(w, x, y):
        for _ in range(3):
            (g,) = torch.autograd.grad(F.mse_loss(x @ w, y), w, create_graph=True)
            w = w - 0.1 * g
        return F.mse_loss(x @ w, y)

    w = torch.randn(4, 2, requires_grad=True)
    loss = compiled(after_steps)(w, torch.randn(5, 4), torch.randn(5, 2))
    loss.backward()
    yield loss, w.grad


@program
def gradient_penalty(compiled):
    judge = mlp(3, 6, 1, act=nn.LeakyReLU)
    run = compiled(judge)
    mixed = torch.randn(5, 3, requires_grad=True)
    (slope,) = torch.autograd.grad(run(mixed).sum(), mixed, create_graph=True)
    (run(mixed).mean() + 10 * ((slope.norm(dim=1) - 1) ** 2).mean()).backward()
    yield [p.grad for p in judge.parameters()]


@program
def kernel_fit(compiled):
    x = torch.linspace(0, 1, 8).double()[:, None]
    y = torch.sin(6 * x[:, 0])
    width, noise = torch.tensor([0.0, -2.0]).double().requires_grad_(), torch.tensor(0.1).double()

    def surprise(width):
        near = torch.exp(-0.5 * (torch.cdist(x, x) / width[0].exp()) ** 2)
        low = torch.linalg.cholesky(near + (width[1].exp() + noise) * torch.eye(8).double())
        return y @ torch.cholesky_solve(y[:, None], low)[:, 0] / 2 + low.diagonal().log().sum()

    loss, opt = compiled(surprise), optim.LBFGS([width], max_iter=4)

    def closure():
        opt.zero_grad()
        found = loss(width)
        found.backward()
        return found

    for _ in range(2):
        yield opt.step(closure), width


@program
def whole_step(compiled):
    """The optimizer inside, its rate from a schedule outside."""
    net = mlp(3, 4, 2)
    opt = optim.SGD(net.parameters(), 0.5, momentum=0.9)
    schedule = optim.lr_scheduler.StepLR(opt, 1, 0.5)

    @compiled
    def step(x, y):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step()
        return loss.detach()

    for _ in range(4):
        yield step(torch.randn(4, 3), torch.randn(4, 2)), net[0].weight
        schedule.step()


@program
def statistics_and_modes(compiled):
    net = nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Dropout(0.3),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))
    run = compiled(net)
    for _ in range(3):
        F.cross_entropy(run(torch.randn(4, 2, 6, 6)), torch.randint(0, 3, (4,))).backward()
    yield [p.grad for p in net.parameters()], net[1].running_mean, net[1].num_batches_tracked
    net.eval()
    yield run(torch.ones(1, 2, 6, 6))
    net[0].requires_grad_(False)
    yield run(torch.ones(1, 2, 6, 6)).requires_grad
    with torch.no_grad():
        yield run(torch.ones(1, 2, 6, 6)).requires_grad
    net.double()
    yield run(torch.ones(1, 2, 6, 6).double())


@program
def cached_decoding(compiled):
    """A module that counts and writes into buffers at the place that it counted."""

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.at = nn.Linear(8, 24), 0
            self.register_buffer("keys", torch.zeros(2, 6, 4))
            self.register_buffer("values", torch.zeros(2, 6, 4))

        def forward(self, x):
            q, k, v = self.qkv(x).view(3, 2, 1, 4)
            self.keys[:, self.at] = k[:, 0]
            self.values[:, self.at] = v[:, 0]
            self.at += 1
            seen = self.keys[:, : self.at], self.values[:, : self.at]
            return F.scaled_dot_product_attention(q, *seen).reshape(8)

    net, x = Attention(), torch.randn(8)
    run = compiled(net)
    with torch.no_grad():
        for _ in range(4):
            x = run(x)
            yield x, net.at, net.keys


@program
def structured_results(compiled):
    @dataclasses.dataclass
    class Found:
        mean: torch.Tensor
        rest: list

    Pair = collections.namedtuple("Pair", "low high")

    @compiled
    def look(batch, pair, *more, scale=1.0, name="x"):
        total = sum(more, batch["x"][0] * scale + pair.low)
        return {"found": Found(total.mean(), [total, total]), "pair": Pair(pair.high, None),
                "name": name}

    t = torch.randn(3)
    for options in ({}, {"scale": 2.0}, {"name": "y"}):
        out = look({"x": [t]}, Pair(t + 1, t), t, t * 2, **options)
        first, second = out["found"].rest
        yield out["found"].mean, first, first is second, out["pair"].low, out["name"]


@program
def an_environment(compiled):
    class World:
        def __init__(self):
            self.state, self.time, self.past = torch.zeros(2), 0, []

        def step(self, push):
            self.state = self.state * 0.9 + push
            self.time += 1
            self.past.append(self.time)
            return self.state.sum()

    world = World()
    step = compiled(world.step)
    for k in range(4):
        yield step(torch.full((2,), float(k))), world.state, world.time, list(world.past)


@program
def a_table_that_fills(compiled):
    table, settings = {}, {"rate": 0.1, "layers": [1, 2]}

    @compiled
    def scaled(x):
        if "weight" not in table:
            table["weight"] = torch.ones(2) * 3
        return x * table["weight"] * settings["rate"] * len(settings["layers"])

    yield scaled(torch.ones(2)), sorted(table)
    settings["rate"] = 0.2
    yield scaled(torch.ones(2))
    settings["layers"].append(3)
    yield scaled(torch.ones(2))


@program
def hooks_that_come_later(compiled):
    net, x = mlp(3, 3, 3), torch.randn(2, 3)
    run = compiled(net)
    yield run(x)
    handle = net[0].register_forward_hook(lambda module, given, out: out * 2)
    yield run(x)
    net[0].register_forward_pre_hook(lambda module, given: (given[0] + 1,))
    yield run(x)
    handle.remove()
    net[0].weight.register_hook(lambda g: g * 10)
    run(x).sum().backward()
    yield run(x), net[0].weight.grad


@program
def decided_by_values(compiled):
    def root(a):
        x, steps = a.clone(), 0
        while (x * x - a).abs().max() > 1e-10 and steps < 50:
            x, steps = 0.5 * (x + a / x), steps + 1
        return x, steps

    run = compiled(root)
    for numbers in ([2.0, 3.0], [100.0, 4.0], [1.0, 1.0]):
        a = torch.tensor(numbers).double().requires_grad_()
        x, steps = run(a)
        x.sum().backward()
        yield x, steps, a.grad


@program
def masks(compiled):
    @compiled
    def split(x):
        positive = x > 0
        y = x.clone()
        y[positive] = 0.5
        y[~positive] *= 2
        return y, positive.nonzero(), x[positive], x[positive].numel()

    for _ in range(3):
        x = torch.randn(4, 3, requires_grad=True)
        y, places, chosen, count = split(x)
        (y.sum() + chosen.pow(2).sum()).backward()
        yield y, places, chosen, count, x.grad


@program
def samples(compiled):
    encode, decode = nn.Linear(6, 4), nn.Linear(2, 6)
    normal, between = torch.distributions.Normal, torch.distributions.kl_divergence

    @compiled
    def bound(x):
        mean, spread = encode(x).chunk(2, -1)
        q = normal(mean, spread.exp())
        far = between(q, normal(torch.zeros_like(mean), torch.ones_like(mean))).sum(-1)
        action = torch.distributions.Categorical(logits=decode(q.rsample())).sample()
        return (F.mse_loss(decode(q.rsample()), x, reduction="none").sum(-1) + far).mean(), action

    for _ in range(3):
        loss, action = bound(torch.randn(5, 6))
        loss.backward()
        yield loss, action
    yield encode.weight.grad, torch.rand(2)


@program
def transforms(compiled):
    def energy(w, x):
        return torch.tanh(x @ w).pow(2).sum()

    w, x = torch.randn(4).double(), torch.randn(6, 4).double()
    yield compiled(torch.func.hessian(energy))(w, x)
    yield compiled(torch.func.vmap(torch.func.jacrev(energy), (None, 0)))(w, x)
    inner = compiled(lambda w: energy(w, x))
    yield torch.func.grad(inner)(w), torch.func.jvp(inner, (w,), (w * 2,))


@program
def complex_numbers(compiled):
    @compiled
    def parts(z, w):
        turned = (z * w.conj()).abs().pow(2), (z @ w.mH).real, torch.fft.fft(z).angle()
        return torch.view_as_real(z).sum() + sum(t.sum() for t in turned)

    z = torch.randn(3, 3, dtype=torch.complex128, requires_grad=True)
    parts(z, torch.randn(3, 3, dtype=torch.complex128)).backward()
    yield torch.view_as_real(z.grad)


@program
def beams(compiled):
    scores = torch.randn(6, 6)

    @compiled
    def decode(start, width, steps):
        found, total = start[None].repeat(width, 1), torch.zeros(width)
        total[1:] = -1e9
        for _ in range(steps):
            next_ones = torch.log_softmax(scores[found[:, -1]], -1) + total[:, None]
            total, place = next_ones.view(-1).topk(width)
            found = torch.cat([found[place // 6], (place % 6)[:, None]], 1)
        return found, total

    yield decode(torch.tensor([1]), 3, 4), decode(torch.tensor([2]), 3, 4)
    yield decode(torch.tensor([2]), 2, 5)
