"""Results of compiled functions lie in memory as in eager: of types that C code has, and of those
that go through NumPy; views of results are views."""

import pytest

import pullback as pb


def results(x):
    """Several at once: one compilation per dtype."""
    y = x * 2
    return (x * 3, y.t(), (x * 4)[::2], (x * 5)[:, 1], (x * 6).unfold(1, 2, 1),
            (x * 7).as_strided((3, 2), (1, 2), 1), (x * 8).expand(2, 4, 4), (x * 9).diagonal(),
            (x * 10).view(2, 2, 4).permute(2, 0, 1), (x * 11).split(2, 1)[1].mT)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dtype", [pb.float32, pb.float16, pb.bfloat16, pb.complex64],
                         ids=lambda d: d.name)
def test_strides_and_values_are_those_of_eager(dtype, turned):
    x = pb.arange(16.0).reshape(4, 4).to(dtype)
    x = x.t().contiguous().t() if turned else x
    if turned:
        found = pb.compile(lambda x: results(x)[:2])(x)
    else:
        found = pb.compile(results)(x)
    for k, (a, b) in enumerate(zip(found, results(x))):
        assert a.stride() == b.stride() and a.storage_offset() == b.storage_offset(), k
        assert pb.equal(a, b), k


def test_steps_through_numpy_read_what_lies_otherwise():
    def f(x, y):
        c = (x * y).t()
        d = c[1:] + c[:-1]
        first, second = d.split(2, 1)
        return d.mT, first * 2, second.unfold(0, 2, 1), c.reshape(-1), c.t()[0]

    x, y = (pb.arange(16.0).reshape(4, 4).to(pb.float16).add(k) for k in (0, 1))
    grads = []
    for run in (f, pb.compile(f)):
        a, b = x.t().clone().requires_grad_(), y.clone().requires_grad_()
        outs = run(a, b)
        sum((o * (k + 1)).float().sum() for k, o in enumerate(outs)).backward()
        grads.append([*outs, a.grad, b.grad])
    for eager, compiled in zip(*grads):
        assert pb.equal(eager, compiled) and eager.stride() == compiled.stride()


def test_parts_of_copies_of_an_argument():
    """A product by one, and a clone, are the argument itself in C."""
    def f(x):
        return (x * 1)[..., 0], x.clone().unfold(1, 2, 1)

    x = pb.arange(16).reshape(4, 4)
    for a, b in zip(pb.compile(f)(x), f(x)):
        assert a.stride() == b.stride() and pb.equal(a, b)
