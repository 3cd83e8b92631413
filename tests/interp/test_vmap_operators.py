"""`vmap` of operators against a loop: mapped dimensions anywhere, nested; views; gradients.

Every entry of the table has its rule checked elsewhere (`../core/test_catalog.py`); here are the
families of PyTorch's own tests, with what they ask besides values.
"""

import pytest

import pullback as torch
from pullback.autograd import grad
from pullback.func import vmap


def numbers(*shape):
    torch.manual_seed(sum(shape))
    return torch.rand(*shape) + 0.5


def stacked(results):
    if isinstance(results[0], (tuple, list)):
        return [torch.stack(parts) for parts in zip(*results)]
    return [torch.stack(results)]


def listed(out):
    return list(out) if isinstance(out, (tuple, list)) else [out]


def in_rows(x):
    return x if x.is_contiguous() else x.contiguous()


VIEWS = {
    "chunk": lambda x: x.chunk(2, 1), "diagonal": lambda x: x.diagonal(),
    "expand": lambda x: x.expand(2, 3, 4),
    "movedim": lambda x: x.movedim(0, 1), "narrow": lambda x: x.narrow(1, 1, 2),
    "permute": lambda x: x.permute(1, 0), "select": lambda x: x.select(1, -1),
    "slice": lambda x: x[:, 1::2], "split": lambda x: x.split(2, 1),
    "squeeze": lambda x: x.unsqueeze(0).squeeze(0), "t": lambda x: x.t(),
    "tensor_split": lambda x: x.tensor_split(3, 1), "transpose": lambda x: x.transpose(0, 1),
    "unbind": lambda x: x.unbind(1), "unfold": lambda x: x.unfold(1, 2, 1),
    "unsqueeze": lambda x: x.unsqueeze(1), "view": lambda x: in_rows(x).view(-1),
    "view_as_complex": lambda x: torch.view_as_complex(in_rows(x).unflatten(1, (2, 2))),
    "real": lambda x: torch.view_as_real(torch.complex(x, x)),
}
OPERATORS = {
    "pointwise": lambda x: (x.exp() * 2 + x.pow(x)).clamp(0, 9).where(x > 1, x),
    "bmm": lambda x: torch.bmm(x.expand(2, 3, 4), x.t().expand(2, 4, 3)),
    "mm": lambda x: torch.mm(x, x.t()), "mv": lambda x: torch.mv(x, x[0]),
    "dot": lambda x: torch.dot(x[0], x[1]), "cat": lambda x: torch.cat([x, x * 2], 1),
    "stack": lambda x: torch.stack([x, x * 2], 1), "clone": lambda x: x.clone(),
    "fill": lambda x: x.clone().fill_(3.0), "copy": lambda x: torch.zeros(3, 4).copy_(x) * x,
    "sum": lambda x: x.sum(0), "mean": lambda x: x.mean(1, keepdim=True),
    "prod": lambda x: x.prod(1), "var": lambda x: x.var(0), "cumsum": lambda x: x.cumsum(1),
    "logsumexp": lambda x: x.logsumexp(0), "softmax": lambda x: x.softmax(1),
    "sort": lambda x: x.sort(1), "topk": lambda x: x.topk(2), "max": lambda x: x.max(0),
    "argmax": lambda x: x.argmax(1), "trace": lambda x: x[:3, :3].trace(),
    "tril": lambda x: x.tril(), "flip": lambda x: x.flip(0), "roll": lambda x: x.roll(1, 1),
    "repeat": lambda x: x.repeat(2, 1), "gather": lambda x: x.gather(1, x.argsort(1)),
    "scatter": lambda x: torch.zeros_like(x).scatter(1, x.argsort(1), x),
    "index": lambda x: x[[0, 2]][:, x[0].argsort()], "index_select": lambda x: x.index_select(
        1, torch.tensor([3, 0])), "masked_fill": lambda x: x.masked_fill(x > 1, 0.0),
    "where": lambda x: torch.where(x > 1, x, x * 0), "new": lambda x: x.new_zeros(3, 4) + x,
    "layer_norm": lambda x: torch.nn.functional.layer_norm(x, (4,)),
    "conv": lambda x: torch.nn.functional.conv1d(x[None], x[None, :, :2]),
    "solve": lambda x: torch.linalg.solve(x[:, :3] @ x[:, :3].t() + torch.eye(3), x),
    "svd": lambda x: torch.linalg.svdvals(x), "det": lambda x: torch.linalg.det(x[:, :3]),
    "pad": lambda x: torch.nn.functional.pad(x, (1, 2)), "to": lambda x: x.to(torch.float64) * 2,
    "einsum": lambda x: torch.einsum("ij,kj->ik", x, x), "cdist": lambda x: torch.cdist(x, x * 2),
    "cross_entropy": lambda x: torch.nn.functional.cross_entropy(x, torch.tensor([0, 3, 1])),
    "embedding": lambda x: torch.nn.functional.embedding(x[0].argsort() % 3, x),
}


@pytest.mark.parametrize("name", [*VIEWS, *OPERATORS])
def test_against_a_loop(name):
    op = VIEWS.get(name) or OPERATORS[name]
    for x, dim in ((numbers(5, 3, 4), 0), (numbers(3, 5, 4), 1), (numbers(3, 4, 5), -1)):
        found = listed(vmap(op, in_dims=dim)(x))
        for a, b in zip(found, stacked([op(t) for t in x.unbind(dim)]), strict=True):
            assert torch.allclose(a, b, rtol=1e-4, atol=1e-5) and a.dtype is b.dtype
    x = numbers(2, 3, 5, 4)
    found = listed(vmap(vmap(op, in_dims=1), out_dims=1)(x))
    loop = [stacked([op(t) for t in rows.unbind(1)]) for rows in x]
    for a, b in zip(found, [torch.stack(parts, 1) for parts in zip(*loop)], strict=True):
        assert torch.allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [n for n in VIEWS if n not in ("real",)])
def test_views_are_views_of_the_input(name):
    x = numbers(5, 3, 4)
    for out in listed(vmap(VIEWS[name])(x)):
        assert out._base is x
    leaf = numbers(5, 3, 4).requires_grad_()
    assert listed(vmap(VIEWS[name])(leaf))[0].requires_grad


def test_layout_inside():
    seen = []

    def look(t):
        seen.append((t.is_contiguous(), t.stride(), t.contiguous().is_contiguous()))
        return t

    x = torch.zeros(3, 2, 7)
    vmap(look)(x)
    vmap(look, in_dims=1)(x)
    vmap(look, in_dims=2)(x)
    vmap(vmap(look))(x)
    vmap(vmap(look), in_dims=2)(x)
    vmap(look)(torch.zeros(3, 0, 3).transpose(1, 2))
    assert [s[:2] for s in seen[:5]] == [(True, (7, 1)), (False, (14, 1)), (False, (14, 7)),
                                         (True, (1,)), (False, (7,))]
    assert seen[5][0] and all(s[2] for s in seen)


GRADIENTS = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y, "expand": lambda x, y: x.expand(2, 3, 3) * 1,
    "index": lambda x, y: x[[1, 0]], "inplace view": lambda x, y: (
        lambda t: (t[0].mul_(2), t.narrow(0, 1, 2).add_(y[1:]), t)[-1])(x * 1),
    "lgamma": lambda x, y: x.lgamma(), "log1p": lambda x, y: x.log1p(), "max": lambda x, y: x.max(),
    "median": lambda x, y: x.median(), "permute": lambda x, y: x.permute(1, 0) * y,
    "reshape": lambda x, y: x.reshape(-1), "sigmoid": lambda x, y: x.sigmoid(),
    "stack": lambda x, y: torch.stack([x, y]), "select": lambda x, y: x.select(1, 1),
    "symeig": lambda x, y: torch.linalg.eigvalsh(x @ x.t()), "threshold": lambda x, y:
    torch.nn.functional.threshold(x, 1, 0.0), "trace": lambda x, y: x.trace(),
    "unrelated": lambda x, y: x.sum() + 0 * y.detach().sum(),
    "attention": lambda x, y: torch.nn.functional.scaled_dot_product_attention(
        x[None], y[None], x[None]),
    "bmm": lambda x, y: torch.bmm(x[None], y[None]),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_batches_of_gradients(name):
    x, y = numbers(3, 3).requires_grad_(), (numbers(3, 3) + 1).requires_grad_()
    out = GRADIENTS[name](x, y)
    seeds = torch.randn(4, *out.shape)
    found = grad(out, (x, y), seeds, is_grads_batched=True, retain_graph=True, allow_unused=True)
    rows = [grad(out, (x, y), s, retain_graph=True, allow_unused=True) for s in seeds]
    for batch, each in zip(found, zip(*rows)):
        assert (batch is None) == (each[0] is None)
        if batch is not None:
            assert torch.allclose(batch, torch.stack(each), rtol=1e-4, atol=1e-5)


def test_batches_of_gradients_of_gradients():
    x = numbers(3).requires_grad_()
    (first,) = grad((x**3).sum(), x, create_graph=True)
    (found,) = grad(first, x, torch.eye(3), is_grads_batched=True)
    assert torch.allclose(found, torch.diag(6 * x.detach()))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("tracked", [True, False])
def test_batch_norm(training, affine, tracked):
    if not training and not tracked:
        tracked = True
    x = numbers(5, 4, 3, 2)
    mean, var = (numbers(5, 3), numbers(5, 3)) if tracked else (None, None)
    weight, bias = (numbers(5, 3), numbers(5, 3)) if affine else (None, None)

    def f(x, mean, var, weight, bias):
        out = torch.nn.functional.batch_norm(x, mean, var, weight, bias, training)
        return (out, mean, var) if tracked else (out,)

    args = (x, mean, var, weight, bias)
    wanted = [f(*[None if a is None else a[i].clone() for a in args]) for i in range(5)]
    dims = tuple(None if a is None else 0 for a in args)
    found = vmap(f, in_dims=dims)(*[None if a is None else a.clone() for a in args])
    for a, b in zip(found, stacked(wanted), strict=True):
        assert torch.allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("write", [
    lambda t, x: t.scatter_(0, torch.tensor([0]), x[:1]), lambda t, x: t.index_put_(
        (torch.tensor([0]),), x[0]), lambda t, x: t.add_(x), lambda t, x: t.__setitem__(0, x[0])])
def test_writes_into_unmapped_tensors(write):
    t = torch.zeros(3)
    with pytest.raises(RuntimeError, match="is not possible"):
        vmap(write, in_dims=(None, 0))(t, numbers(2, 3))
    assert not t.any()


DRAWS = {
    "rand": lambda x: torch.rand(3) + 0 * x, "randn": lambda x: torch.randn(3) * 1 + 0 * x,
    "randint": lambda x: torch.randint(9, (3,)) + 0 * x,
    "randperm": lambda x: torch.randperm(3) + 0 * x,
    "normal": lambda x: torch.normal(0.0, 1.0, (3,)) + 0 * x, "rand_like": torch.rand_like,
    "randn_like": torch.randn_like, "dropout": lambda x: torch.nn.functional.dropout(x + 1, 0.5),
    "bernoulli": lambda x: (x + 1).bernoulli(0.5),
    "uniform_": lambda x: torch.empty(3).uniform_() + 0 * x,
    "multinomial": lambda x: torch.multinomial(torch.ones(5), 3) + 0 * x,
}


@pytest.mark.parametrize("name", DRAWS)
def test_randomness(name):
    draw = DRAWS[name]
    x = torch.zeros(64, 3)
    with pytest.raises(RuntimeError, match="called random operation"):
        vmap(draw)(x)
    torch.manual_seed(0)
    same = vmap(draw, randomness="same")(x)
    assert (same == same[0]).all()
    torch.manual_seed(0)
    chunked = vmap(draw, randomness="same", chunk_size=20)(x)
    assert torch.equal(chunked, same)
    different = vmap(draw, randomness="different")(x)
    assert not (different == different[0]).all()
    with pytest.raises(RuntimeError, match="randomness must be"):
        vmap(draw, randomness="some")(x)
