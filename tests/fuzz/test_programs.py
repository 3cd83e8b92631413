"""Random programs: eager = traced = compiled = mapped one by one, gradients included, in float64.

A program is a list of small integers, interpreted with a stack of tensors: each step takes an
operator of those that fit the shapes at hand, so that every list is a valid program and shrinking
keeps it one.
"""

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import pullback as pb
from pullback import func
from pullback.decomp import decomposition_table
from pullback.fx.make_fx import make_fx

TOLERANCE = 1e-9
LONGEST = 4096  # elements: larger results are not multiplied further


# --- operators ------------------------------------------------------------------------------------
# Each takes the tensors (x, y) and a number that chooses among its variants.  Values stay moderate
# and away from kinks: what is compared are programs, not the accuracy of operators.


def tame(x):
    return pb.tanh(x)


UNARY = [
    lambda x, n: pb.sin(x),
    lambda x, n: pb.tanh(x) * (1 + n % 3),
    lambda x, n: pb.exp(-x * x),
    lambda x, n: pb.sigmoid(x) - 0.3,
    lambda x, n: pb.log1p(x * x),
    lambda x, n: pb.sqrt(x * x + 1 + n % 2),
    lambda x, n: x / (2 + pb.cos(x)),
    lambda x, n: pb.where(x.detach() > 0.1 * (n % 4), x, x * 0.5),
    lambda x, n: x.clamp(-1.5, 1.5),
    lambda x, n: x * 0.5 - (n % 5),
    lambda x, n: pb.erf(x),
    lambda x, n: pb.nn.functional.gelu(x),
    lambda x, n: x.float().double() if n % 4 == 0 else x.double(),
    lambda x, n: x.clone(),
    lambda x, n: x.detach() * x,
]

BINARY = [
    lambda x, y, n: x + y,
    lambda x, y, n: x * y,
    lambda x, y, n: x - 0.5 * y,
    lambda x, y, n: x / (y * y + 1),
    lambda x, y, n: pb.where(x.detach() < y.detach(), x, y * 2),
    lambda x, y, n: pb.atan2(x, y * y + 1),
    lambda x, y, n: pb.lerp(x, y, 0.25),
    lambda x, y, n: pb.addcmul(x, x, y, value=0.5),
]

REDUCE = [
    lambda x, d, k: x.sum(d, keepdim=k),
    lambda x, d, k: x.mean(d, keepdim=k),
    lambda x, d, k: x.logsumexp(d, keepdim=k),
    lambda x, d, k: (x * x + 0.5).sum(d, keepdim=k).sqrt(),
    lambda x, d, k: x.var(d, correction=0, keepdim=k),
    lambda x, d, k: pb.softmax(x, d),
    lambda x, d, k: pb.log_softmax(x, d),
    lambda x, d, k: x.cumsum(d),
    lambda x, d, k: tame(x).prod(d, keepdim=k),
]

ALL = [lambda x: x.sum(), lambda x: x.mean(), lambda x: (x * x).mean()]


def unary(x, y, n):
    return UNARY[n % len(UNARY)](x, n // len(UNARY))


def binary(x, y, n):
    if x.shape != y.shape:
        y = fitted(x, y, n)
    return BINARY[n % len(BINARY)](x, y, n)


def fitted(x, y, n):
    """Something made of y that broadcasts with x."""
    if y.ndim and x.ndim and y.shape[-1] == x.shape[-1]:
        return y.reshape(-1, y.shape[-1])[0]
    return y.mean()


def reduce(x, y, n):
    if not x.ndim:
        return ALL[n % len(ALL)](x)
    f = REDUCE[n % len(REDUCE)]
    n //= len(REDUCE)
    return f(x, n % x.ndim, bool(n // x.ndim % 2))


def reduce_all(x, y, n):
    return ALL[n % len(ALL)](x)


def view(x, y, n):
    kind, n = n % 9, n // 9
    if kind == 0 or not x.ndim:
        return x.unsqueeze(n % (x.ndim + 1))
    d = n % x.ndim
    size = x.shape[d]
    if kind == 1:
        return x.transpose(d, (n // x.ndim) % x.ndim)
    if kind == 2:
        return x.reshape(-1)
    if kind == 3:
        return x.select(d, n // x.ndim % size)
    if kind == 4:
        return x.narrow(d, n % size, size - n % size)
    if kind == 5:
        return x.flip(d)
    if kind == 6 and x.numel() * 2 <= LONGEST:
        return pb.cat([x, x * 2], d)
    if kind == 7 and x.numel() * 3 <= LONGEST:
        return x.unsqueeze(0).expand(3, *x.shape)
    return x.permute(*reversed(range(x.ndim)))


def matmul(x, y, n):
    if not x.ndim:
        return x * 2
    if x.ndim == 1:
        return pb.dot(x, x.flip(0)) if n % 2 else pb.outer(x[:8], x[:8])
    other = (
        y
        if y.ndim == x.ndim and y.shape[:-2] == x.shape[:-2] and y.shape[-2] == x.shape[-1]
        else x.transpose(-1, -2)
    )
    return tame(x) @ other * 0.3


def index(x, y, n):
    if not x.ndim:
        return x + 1
    kind, n = n % 7, n // 7
    d = n % x.ndim
    size = x.shape[d]
    at = pb.arange(3) * (n % 3 + 1) % size
    if kind == 0:
        return x.index_select(d, at)
    if kind == 1:
        return x[at % x.shape[0]]
    if kind == 2:
        return x[..., ::2]
    if kind == 3:
        return x.gather(d, pb.zeros(*x.shape, dtype=pb.int64) + n % size)
    if kind == 4:
        lines = x.narrow(d, 0, 1)
        return x.scatter_add(d, pb.zeros(*lines.shape, dtype=pb.int64) + n % size, lines)
    if kind == 5:
        return x.index_add(d, at, x.index_select(d, at) * 0.5)
    return pb.where(x > 0, x, pb.zeros_like(x)) + x.masked_fill(x.detach() > 1, 0.5)


def write(x, y, n):
    """Writes into a fresh tensor, whole and through views."""
    kind, n = n % 6, n // 6
    z = x * 1
    if kind == 0:
        z.mul_(0.5).add_(x)
    elif kind == 1 and z.ndim:
        z[n % z.shape[0]] = 0.25
    elif kind == 2 and z.ndim:
        z.select(-1, n % z.shape[-1]).add_(x.select(-1, 0))
    elif kind == 3 and z.ndim:
        z.reshape(-1)[:2].mul_(3) if z.is_contiguous() else z.sub_(x * 2)
    elif kind == 4 and z.ndim:
        w = z.transpose(0, -1)
        w.add_(1)
        w[0].zero_()
    else:
        z.copy_(x * x).sub_(0.5)
    return z


STEPS = [unary, binary, unary, reduce, view, matmul, index, write, binary, reduce_all]


def run(program, tensors):
    """The last result of a program, and a number that depends on all of them."""
    stack = list(tensors)
    for what, first, second, n in program:
        x, y = stack[-1 - first % len(stack)], stack[-1 - second % len(stack)]
        if x.numel() == 0:
            x = stack[0]
        step = STEPS[what % len(STEPS)]
        if x.ndim > 4 or x.numel() > LONGEST:
            step = reduce_all
        out = step(x, y, n)
        stack.append(tame(out) if step in (matmul, reduce, reduce_all) else out)
    total = stack[-1].sum()
    for t in stack[len(tensors) : -1]:
        total = total + t.mean() * 0.5
    return stack[-1] * 1, total


def leaves(shapes, seed):
    random = np.random.default_rng(seed)
    return [pb.from_numpy(random.uniform(-1, 1, s)).requires_grad_() for s in shapes]


def with_gradients(function, tensors):
    """Outputs of a function and the gradients of its last one."""
    outs = function(*tensors)
    grads = pb.autograd.grad(outs[-1], tensors, allow_unused=True)
    return [*outs, *[pb.zeros_like(t) if g is None else g for g, t in zip(grads, tensors)]]


def agree(got, expected, what):
    for i, (a, b) in enumerate(zip(got, expected, strict=True)):
        a, b = np.asarray(a.detach().numpy()), np.asarray(b.detach().numpy())
        assert a.shape == b.shape and a.dtype == b.dtype, (
            f"{what}, result {i}: {a.shape} against {b.shape}"
        )
        scale = max(1.0, np.abs(b).max(initial=0))
        np.testing.assert_allclose(
            a, b, rtol=TOLERANCE, atol=TOLERANCE * scale, err_msg=f"{what}, result {i}"
        )


SHAPES = st.sampled_from(
    [
        ((3, 4), (3, 4)),
        ((4, 4), (4,)),
        ((2, 3, 4), (3, 4)),
        ((5,), (5,)),
        ((3, 1), (1, 4)),
        ((17, 33), (33,)),
        ((), (3,)),
        ((2, 1, 3), (2, 3, 1)),
    ]
)
PROGRAMS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(0, 3), st.integers(0, 400)),
    min_size=5,
    max_size=15,
)
EXAMPLES = dict(
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
COMPILED = EXAMPLES | dict(
    phases=[Phase.explicit, Phase.generate]
)  # shrinking would compile for minutes


def problem(shapes, program):
    """A program as a function, tensors for it, and what it gives with gradients."""
    f, tensors = (lambda *tensors: run(program, tensors)), leaves(shapes, len(program))
    return f, tensors, with_gradients(f, tensors)


@settings(max_examples=50, **EXAMPLES)
@given(SHAPES, PROGRAMS)
def test_eager_traced_and_mapped(shapes, program):
    f, tensors, expected = problem(shapes, program)
    plain = [t.detach() for t in tensors]

    def both(*tensors):
        return tuple(with_gradients(f, [t.detach().requires_grad_() for t in tensors]))

    for mode, table in (("real", None), ("fake", decomposition_table.copy())):
        module = make_fx(both, table, mode)(*plain)
        agree(module(*plain), expected, f"traced ({mode})")
    others = [t.detach() for t in leaves(shapes, 99)]
    stacked = [pb.stack([a, b]) for a, b in zip(plain, others)]
    mapped = func.vmap(f)(*stacked)
    one_by_one = [pb.stack([a, b]) for a, b in zip(f(*plain), f(*others))]
    agree(mapped, one_by_one, "mapped")
    mapped = func.vmap(func.grad(lambda *ts: f(*ts)[1], argnums=(0, 1)))(*stacked)
    one_by_one = [
        pb.stack([a, b])
        for a, b in zip(
            with_gradients(f, leaves(shapes, len(program)))[2:],
            with_gradients(f, leaves(shapes, 99))[2:],
        )
    ]
    agree(mapped, one_by_one, "gradients, mapped")


@settings(max_examples=20, **COMPILED)
@given(SHAPES, PROGRAMS)
def test_compiled(shapes, program):
    f, tensors, expected = problem(shapes, program)
    agree(with_gradients(pb.compile(f), tensors), expected, "compiled")


@settings(max_examples=12, **COMPILED)
@given(SHAPES, PROGRAMS)
def test_compiled_loss(shapes, program):
    """A number alone: forward and backward are one graph."""

    def f(*tensors):
        return (run(program, tensors)[1],)

    tensors = leaves(shapes, 3)
    expected = with_gradients(f, tensors)
    compiled = pb.compile(lambda *ts: f(*ts)[0])
    agree(with_gradients(lambda *ts: (compiled(*ts),), tensors), expected, "compiled loss")
