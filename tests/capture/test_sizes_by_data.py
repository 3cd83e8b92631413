"""Numbers and sizes that only the data decide, as symbols of compiled functions."""

import pytest

import pullback as pb
import pullback._dynamo
from pullback.aot import aot_function, nop

F = pb.nn.functional


def some(x):
    return (x > 0).sum().item()


def picked(x):
    found = x[x > 0]
    return found * 2, found.shape[0], found.shape


def selected(x):
    found = pb.masked_select(x, x > -9)
    return found.sort()[0].cumsum(0), pb.argwhere(x.detach() > 0), found.var(0)


def scaled(x):
    total = x.sum().item()
    return x * total, total


def begun(x):
    n = some(x)
    pb._check_is_size(n)
    pb._check(n <= x.shape[0])
    return x[:n]


def parted(x):
    n = some(x)
    pb._check_is_size(n)
    pb._check(n <= x.shape[0])
    first, second = x.split([n, x.shape[0] - n])
    return first * 2, second.exp()


def counted(x):
    values, place = pb.unique((x * 2).round().detach(), return_inverse=True)
    return pb.zeros(values.shape[0], dtype=x.dtype).index_add(0, place, x)


def normed(x):
    rows = x.reshape(-1, 1)
    rows = rows[rows[:, 0] > 0]
    return F.layer_norm(rows.expand(-1, 4), (4,)), rows.softmax(0), rows.mean()


def joined(x):
    plus, minus = x[x > 0], x[x <= 0]
    return pb.cat([plus, minus]), plus.sum() * minus.sum()


def written(x):
    y = x * 1
    y[y > 0] = 0.5
    return y, pb.arange(some(x)) * x.sum()


PROGRAMS = [picked, selected, scaled, begun, parted, counted, normed, joined, written]
WAYS = {
    "aot": lambda f: aot_function(f, nop, dynamic=True),
    "numpy": lambda f: pb.compile(f, dynamic=True, fullgraph=True, backend="numpy"),
    "native": lambda f: pb.compile(f, dynamic=True, fullgraph=True),
}


@pytest.fixture
def captured():
    with pb._dynamo.config.patch(capture_scalar_outputs=True):
        yield


def outputs(out):
    return out if isinstance(out, tuple) else (out,)


def same(a, b):
    if not isinstance(a, pb.Tensor):
        return a == b and type(a) is type(b)
    return (a.shape == b.shape and a.stride() == b.stride() and pb.allclose(a, b, equal_nan=True)
            and a.requires_grad == b.requires_grad and (a._base is None) == (b._base is None))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_as_eager(f, way, captured):
    compiled = WAYS[way](f)
    for seed, n in enumerate((5, 7, 6)):
        pb.manual_seed(seed)
        x = pb.randn(n, dtype=pb.float64, requires_grad=True)
        y = x.detach().clone().requires_grad_()
        grads = []
        for t, out in ((x, outputs(f(x))), (y, outputs(compiled(y)))):
            loss = sum((o * o).sum() for o in out if isinstance(o, pb.Tensor) and o.requires_grad)
            grad, = pb.autograd.grad(loss, t, create_graph=seed == 2)
            grads += [out, grad, *pb.autograd.grad(grad.sum(), t)] if seed == 2 else [out, grad]
        mine, theirs = grads[: len(grads) // 2], grads[len(grads) // 2 :]
        assert all(map(same, mine.pop(0), theirs.pop(0)))
        assert all(map(pb.allclose, mine, theirs))
    assert compiled.recompiles == []


@pytest.mark.parametrize("way", WAYS)
def test_gradients_of_some_results(way, captured):
    x = pb.tensor([1.0, -1, 2, 3], requires_grad=True)
    first, second = WAYS[way](parted)(x)
    first.sum().backward()
    assert x.grad.tolist() == [2, 2, 2, 0] and second.shape == (1,)


def test_results_are_views(captured):
    x = pb.tensor([1.0, -1, 2])
    out = pb.compile(begun, fullgraph=True)(x)
    out.zero_()
    assert out._base is x and x.tolist() == [0, 0, 2]


def test_promises_are_checked_in_every_call(captured):
    def f(x):
        n = x.sum().item()
        pb._check(n < 5)
        return x * n

    compiled = pb.compile(f, fullgraph=True)
    assert compiled(pb.tensor([1, 2])).tolist() == [3, 6]
    with pytest.raises(RuntimeError, match="u0 < 5"):
        compiled(pb.tensor([4, 2]))


def test_what_goes_by_the_value(captured):
    def f(x):
        return x * 2 if some(x) > 1 else x * 3

    with pytest.raises(RuntimeError, match="Could not guard on data-dependent expression u0 > 1"):
        pb.compile(f, fullgraph=True)(pb.ones(3))
    compiled = pb.compile(f)
    assert compiled(pb.ones(3)).tolist() == [2, 2, 2] and compiled(-pb.ones(3)).sum() == -9


def test_off_unless_asked_for():
    with pytest.raises(RuntimeError, match="depends on values"):
        pb.compile(picked, fullgraph=True)(pb.ones(3))
    with pytest.raises(RuntimeError, match="depends on values"):
        aot_function(picked, nop)(pb.ones(3))


def sliced(x):
    found = x[x > 0]
    return found[:2].exp(), found[found.shape[0] // 3 :] * 2, x.new_ones(found[-2:].shape[0])


def spread(x):
    found = x[x > 0]
    return found.expand(found.shape[0], -1).flatten() * 2, found ** (1 / found.shape[0])


def narrowed(x):
    n = some(x)
    pb._check(n <= x.shape[0])
    rest = x.split([n, x.shape[0] - n])[1]
    return pb.cat([rest, x, rest * 2]), rest.softmax(0), rest.logsumexp(0)


@pytest.mark.parametrize("values", [[1, 2, 3, 4], [1, -1, -1, -1], [-1, -1, -1, 2], [1, 1, -1, 1]])
@pytest.mark.parametrize("f", [sliced, narrowed, spread])
def test_special_sizes_come_true(f, values, captured):
    compiled = pb.compile(f, fullgraph=True)
    compiled(pb.tensor([1.0, -2, 3, 4], requires_grad=True))
    x, y = (pb.tensor(values, dtype=pb.float32, requires_grad=True) for _ in range(2))
    mine, theirs = compiled(x), f(y)
    assert all(map(same, mine, theirs)) and compiled.recompiles == []
    for out in (mine, theirs):
        pb.autograd.backward([o.square().sum() for o in out if o.requires_grad])
    assert pb.allclose(x.grad, y.grad, equal_nan=True)


def test_why_sizes_do_not_fit_beside_data(captured):
    def f(x):
        n = some(x)
        pb._check_is_size(n)
        pb._check(n <= x.shape[0])
        return x[:n] * 2 if x.shape[0] < 7 else x

    compiled = pb.compile(f, fullgraph=True, dynamic=True)
    assert compiled(pb.ones(4)).shape == (4,) and compiled(pb.ones(9)).shape == (9,)
    assert "x.size(0) is 9, the program is for 2 to 6" in compiled.recompiles[0]


def test_tensors_of_numbers_by_data(captured):
    def f(x):
        n = x.item()
        return pb.tensor(n), pb.tensor([n, 1]), pb.tensor([[n], [2.5]])

    compiled = pb.compile(f, fullgraph=True)
    for x in (pb.tensor([0.5]), pb.tensor([3]), pb.tensor([True])):
        for mine, theirs in zip(compiled(x), f(x)):
            assert mine.dtype is theirs.dtype and mine.tolist() == theirs.tolist()


def test_settings_of_sizes():
    def count(**settings):
        with pb._dynamo.config.patch(**settings):
            f = pb.compile(lambda x, n: x * n)
            for n in (2, 3, 4, 5):
                f(pb.ones(n), n)
        return len(f.recompiles)

    assert count() == 1 and count(assume_static_by_default=False) == 0
    assert count(automatic_dynamic_shapes=False) == 3 and count(specialize_int=True) == 3


def test_settings_for_the_tests_of_a_class():
    @pb._dynamo.config.patch(verbose=True)
    class Tests:
        def test_it(self):
            return pb._dynamo.config.verbose

    assert Tests().test_it() is True and pb._dynamo.config.verbose is False
