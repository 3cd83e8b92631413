"""List operators: each is its operator on every element, in place too, and checks before it writes.

That their derivatives, batching and compiled forms are right follows from the samples of the table
(`test_table.py`); here is what lists add.
"""

import numpy as np
import pytest

import pullback as pb
from pullback import errors
from pullback.core.op import registry
from pullback.core.overload import overload_of
from pullback.func import grad, jvp, vjp, vmap
from pullback.testing import samples

ENTRIES = [op for name, op in sorted(registry.items()) if name.startswith("_foreach_")]
WRITING = [op for op in ENTRIES if op.inplace]
BY_NAME = {"norm": pb.linalg.vector_norm, "powsum": pb.ops.aten.linalg__powsum.default}
BY_NAME |= {name: getattr(pb.ops.aten, name).default for name in ("copy", "zero")}
aten = pb.ops.aten


def ids(op):
    return op.full_name


def tensors(*shapes, dtype=pb.float64):
    return [pb.arange(1, 1 + int(np.prod(s)), dtype=dtype).reshape(s) for s in shapes]


def same(actual, expected):
    assert isinstance(actual, (list, tuple)) and len(actual) == len(expected)
    for a, b in zip(actual, expected):
        assert a.dtype is b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-12)


def element(op, flat, i: int):
    """What the operator gives for one element, called by its public name."""
    name, kwargs, args = op.base_name.removeprefix("_foreach_"), {}, []
    packed = "Tensor scalars" in op.schema
    for a, value in zip(overload_of(op).schema.args, flat):
        value = value[i] if a.is_list or packed and a.name == "scalars" else value
        if a.name == "scalars" and packed:
            value = value.item()
        if name in ("maximum", "minimum") and a.name in ("scalar", "scalars"):
            value = pb.tensor(value, dtype=flat[0][i].dtype)
        if a.name in ("alpha", "value", "dtype") or name[:4] == "addc" and a.name == "scalars":
            kwargs["value" if a.name == "scalars" else a.name] = value
        elif a.name not in ("non_blocking", "memory_format"):
            args.append(value)
    return BY_NAME.get(name, getattr(pb, name, None))(*args, **kwargs)


def case(op):
    return samples.flat(op, samples.cases(op)[0])


def copies(values):
    return [samples.place(samples.host(t)) for t in values]


# values


@pytest.mark.parametrize("op", ENTRIES, ids=ids)
def test_is_the_operator_on_each_element(op):
    flat = case(op)
    count = next(len(v) for v in flat if isinstance(v, list))
    assert count == 2
    given = overload_of(op).schema
    kwargs = dict(zip(given.names[given.kw_only_from :], flat[given.kw_only_from :]))
    result = getattr(pb, op.base_name)(*flat[: given.kw_only_from], **kwargs)
    same(result, [element(op, flat, i) for i in range(count)])


@pytest.mark.parametrize("op", WRITING, ids=ids)
def test_in_place(op):
    flat = case(op)
    expected = [element(op, flat, i) for i in range(2)]
    fits = [tuple(e.shape) == tuple(t.shape) for e, t in zip(expected, flat[0])]
    mine = copies(flat[0])
    memory = [t._payload for t in mine]
    overload = op.full_name.partition(".")[2] or "default"
    write = getattr(getattr(aten, f"{op.base_name}_"), overload)
    given = write.schema.kw_only_from
    kwargs = dict(zip(write.schema.names[given:], flat[given:]))
    if not all(fits):
        with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
            write(mine, *flat[1:given], **kwargs)
        same(mine, flat[0])
        assert [t._version for t in mine] == [0, 0]
        return
    result = write(mine, *flat[1:given], **kwargs)
    assert all(a is b for a, b in zip(result, mine))
    assert all(t._payload is m and t._version == 1 for t, m in zip(mine, memory))
    same(mine, expected)


@pytest.mark.parametrize("op", WRITING, ids=ids)
def test_in_place_has_the_gradients_of_the_operator(op):
    flat = case(op)

    def first(write):
        leaves = [t.requires_grad_() for t in copies(flat[0])]
        values = [t * 1 for t in leaves]
        try:
            outs = aten_of(op, write)(values, *flat[1:])
        except errors.ShapeError:
            return None
        total = sum((o * o).sum() for o in outs)
        if not total.requires_grad:
            return [pb.zeros(1)]
        found = pb.autograd.grad(total, leaves, allow_unused=True)
        return [pb.zeros_like(t) if g is None else g for g, t in zip(found, leaves)]

    written = first(True)
    if written is not None:
        same(written, first(False))


def aten_of(op, write: bool):
    """The overload as a function of flat arguments."""
    found = getattr(aten, op.base_name + ("_" if write else ""))
    found = getattr(found, op.full_name.partition(".")[2] or "default")

    def call(*flat):
        given = found.schema.kw_only_from
        return found(*flat[:given], **dict(zip(found.schema.names[given:], flat[given:])))

    return call


def test_overloads_are_chosen_by_the_arguments():
    x = tensors((2,), (3,))
    one = pb.tensor(2.0, dtype=pb.float64, requires_grad=True)
    same(pb._foreach_mul(x, x), [t * t for t in x])
    same(pb._foreach_mul(x, 2), [t * 2 for t in x])
    same(pb._foreach_mul(x, (2, 3)), [x[0] * 2, x[1] * 3])
    same(pb._foreach_mul(tuple(x), [2.5, 3]), [x[0] * 2.5, x[1] * 3])
    scaled = pb._foreach_mul(x, one)
    assert all(t.requires_grad for t in scaled)
    same(pb._foreach_add(x, x, alpha=3), [t + 3 * t for t in x])
    same(pb._foreach_pow(2.0, x), [2.0**t for t in x])
    same(pb._foreach_addcdiv(x, x, x), [t + 1 for t in x])
    same(pb._foreach_addcdiv(x, x, x, value=2), [t + 2 for t in x])
    with pytest.raises(TypeError):
        pb._foreach_add(x, x, 3)  # alpha is named
    with pytest.raises(TypeError):
        pb._foreach_add(x, 1, alpha=3)
    with pytest.raises(TypeError):
        pb._foreach_exp(x[0])


@pytest.mark.parametrize(
    "call, dtype",
    [
        (lambda x: pb._foreach_div(x, 2), pb.float32),
        (lambda x: pb._foreach_div(x, x), pb.float32),
        (lambda x: pb._foreach_add(x, 1), pb.int64),
        (lambda x: pb._foreach_add(x, 0.5), pb.float32),
        (lambda x: pb._foreach_add(x, 1j), pb.complex64),
        (lambda x: pb._foreach_maximum(x, 2), pb.int64),
        (lambda x: pb._foreach_maximum(x, 1.5), pb.float32),
        (lambda x: pb._foreach_minimum(x, [1.5, 1]), pb.float32),
        (lambda x: pb._foreach_sqrt(x), pb.float32),
        (lambda x: pb._foreach_pow(x, 2), pb.int64),
        (lambda x: pb._foreach_max(x), pb.int64),
    ],
)
def test_elements_promote_like_the_operator(call, dtype):
    assert call(tensors((2,), (3,), dtype=pb.int64))[0].dtype is dtype


def test_each_element_promotes_for_itself():
    x = [pb.ones(2, dtype=pb.int32), pb.ones(2, dtype=pb.float64), pb.ones(2, dtype=pb.bool)]
    found = [t.dtype for t in pb._foreach_mul(x, 2)]
    assert found == [pb.int32, pb.float64, pb.int64]


def test_maximum_with_a_number_shares_the_gradient_of_a_tie():
    x = pb.tensor([1.0, 2.0, 0.5], requires_grad=True)
    (y,) = pb._foreach_maximum([x], 1.0)
    assert pb.autograd.grad(y.sum(), x)[0].tolist() == [0.5, 1.0, 0.0]
    (y,) = pb._foreach_clamp_min([x], 1.0)
    assert pb.autograd.grad(y.sum(), x)[0].tolist() == [1.0, 1.0, 0.0]


# refusals


@pytest.mark.parametrize("op", ENTRIES, ids=ids)
def test_empty_and_uneven_lists_are_refused(op):
    flat = case(op)
    lists = [i for i, v in enumerate(flat) if isinstance(v, list)]
    calls = [aten_of(op, False)] + ([aten_of(op, True)] if op.inplace else [])
    for call in calls:
        with pytest.raises(RuntimeError, match="at least one tensor"):
            call(*[[] if i in lists else v for i, v in enumerate(flat)])
        for shorter in lists if len(lists) > 1 else ():
            with pytest.raises(RuntimeError, match=r"same number of|at least one"):
                call(*[v[:1] if i == shorter else v for i, v in enumerate(flat)])


def test_numbers_in_tensors():
    x = tensors((2,), (3,))
    for name in ("add", "mul", "div"):
        with pytest.raises(RuntimeError, match="0 dim but it has 1 dimensions and 1 elements"):
            getattr(pb, f"_foreach_{name}")(x, pb.ones(1))
    with pytest.raises(RuntimeError, match="of dimension 1"):
        pb._foreach_addcmul(x, x, x, pb.tensor(1.0))
    with pytest.raises(RuntimeError, match="input of length 2 but got 3"):
        pb._foreach_addcmul_(x, x, x, pb.ones(3))


def test_messages_say_where_and_how():
    with pytest.raises(errors.ShapeError) as caught:
        pb._foreach_add(tensors((2,), (3,)), [1.0])
    text = str(caught.value)
    assert "_foreach_add" in text and "test_foreach.py" in text and "Fix:" in text


def unchanged(x, call, kind=RuntimeError):
    before = copies(x)
    with pytest.raises(kind):
        call(x)
    same([t.detach() for t in x], before)
    assert [t._version for t in x] == [0] * len(x)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: pb._foreach_add_(x, tensors((2,), (4,))),  # shapes
        lambda x: pb._foreach_add_(x, tensors((2,), (2, 3))),  # a result that does not fit
        lambda x: pb._foreach_copy_(x, tensors((2,), (2,))),
        lambda x: pb._foreach_add_(x, [1.0, 1j]),  # dtypes
        lambda x: pb._foreach_lerp_(x, [x[0], x[1].float()], 0.5),
        lambda x: pb._foreach_mul_(x, [x[0]]),  # lengths
    ],
)
def test_nothing_is_written_if_something_is_wrong(call):
    unchanged(tensors((2,), (3,)), call)


def test_nothing_is_written_if_a_later_tensor_has_the_wrong_dtype():
    x = [pb.ones(2), pb.ones(2, dtype=pb.int64)]
    unchanged(x, lambda x: pb._foreach_sqrt_(x))
    unchanged(x, lambda x: pb._foreach_div_(x, 2))
    unchanged(x, lambda x: pb._foreach_maximum_(x, 1.5))


def test_leaves_are_not_written():
    x = tensors((2,), (3,))
    x[1].requires_grad_()
    unchanged(x, lambda x: pb._foreach_mul_(x, 2), errors.LeafWriteError)
    with pb.no_grad():
        pb._foreach_mul_(x, 2)
    assert [t._version for t in x] == [1, 1] and x[1].is_leaf


def test_broadcast_tensors_are_not_written():
    x = [pb.ones(2), pb.ones(1).expand(3)]
    unchanged(x, lambda x: pb._foreach_add_(x, 1), errors.ViewWriteError)
    pb._foreach_zero_(x)  # one value for all
    assert x[1].tolist() == [0, 0, 0]


# writes


def test_views_write_their_base():
    base = pb.zeros(3, 4, requires_grad=True)
    whole = base * 1
    pb._foreach_add_([whole[0], whole[:, 1]], [1.0, 2.0])
    expected = np.zeros((3, 4))
    expected[0] += 1
    expected[:, 1] += 2
    np.testing.assert_array_equal(whole.detach().numpy(), expected)
    pb._foreach_mul_([whole[0]], 3)
    (g,) = pb.autograd.grad(whole.sum(), base)
    np.testing.assert_array_equal(g.numpy(), [[3] * 4, [1] * 4, [1] * 4])


def test_elements_are_written_in_order():
    x = pb.ones(2)
    pb._foreach_add_([x, x], 1)
    assert x.tolist() == [3, 3]
    a, b = pb.ones(2), pb.ones(2)
    pb._foreach_add_([a, b], [b, a])
    assert (a.tolist(), b.tolist()) == ([2, 2], [3, 3])


def test_a_saved_value_that_is_written_is_noticed():
    leaf = pb.ones(2, requires_grad=True)
    x = leaf * 1
    y = (x * x).sum()
    pb._foreach_add_([x], 1)
    with pytest.raises(errors.SavedValueModified):
        y.backward()


def test_zero_and_copy():
    x = tensors((2,), (3,), dtype=pb.float32)
    pb._foreach_copy_(x, [pb.tensor([7], dtype=pb.int64), pb.tensor(5.0, dtype=pb.float64)])
    same(x, [pb.full((2,), 7.0), pb.full((3,), 5.0)])
    pb._foreach_zero_(x)
    same(x, [pb.zeros(2), pb.zeros(3)])


# transforms


def step(params, grads, first, second):
    """A step of Adam in list operators, written in place and returned."""
    pb._foreach_lerp_(first, grads, 0.1)
    pb._foreach_mul_(second, 0.99)
    pb._foreach_addcmul_(second, grads, grads, 0.01)
    scale = pb._foreach_sqrt(second)
    pb._foreach_add_(scale, 1e-3)
    return pb._foreach_addcdiv(params, first, scale, -0.1)


def plain_step(params, grads, first, second):
    out = []
    for p, g, m, v in zip(params, grads, first, second):
        m = pb.lerp(m, g, 0.1)
        v = v * 0.99 + 0.01 * g * g
        out.append(p - 0.1 * m / (v.sqrt() + 1e-3))
    return out


def state():
    make = np.random.default_rng(0).normal
    lists = [[make(size=s) for s in ((2, 3), (4,))] for _ in range(4)]
    lists[3] = [abs(a) + 0.1 for a in lists[3]]
    return [[pb.tensor(a) for a in values] for values in lists]


def total(function):
    """The function of the gradients alone, as a number."""
    params, _, first, second = state()

    def run(*grads):
        outs = function(params, list(grads), *([t * 1 for t in v] for v in (first, second)))
        return sum((o * o * o).sum() for o in outs)

    return run


def test_step():
    same(step(*state()), plain_step(*state()))


def test_gradients_of_first_and_second_order():
    grads = state()[1]
    one, two = total(step), total(plain_step)
    for number in (0, 1):
        a, b = grad(one, number)(*grads), grad(two, number)(*grads)
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-10)

    def twice(function):
        return grad(lambda *g: sum((t * t).sum() for t in grad(function, (0, 1))(*g)), 0)(*grads)

    np.testing.assert_allclose(twice(one).numpy(), twice(two).numpy(), rtol=1e-9)


def test_forward_mode():
    grads = state()[1]
    tangents = [pb.ones_like(t) for t in grads]
    value, tangent = jvp(total(step), tuple(grads), tuple(tangents))
    expected, pull = vjp(total(plain_step), *grads)
    np.testing.assert_allclose(value.item(), expected.item(), rtol=1e-12)
    back = sum(g.sum() for g in pull(pb.ones((), dtype=pb.float64)))
    np.testing.assert_allclose(tangent.item(), back.item(), rtol=1e-10)


def test_vmap():
    grads = [pb.stack([t, 2 * t, -t]) for t in state()[1]]
    batched = vmap(total(step))(*grads)
    for i in range(3):
        one = total(plain_step)(*[t[i] for t in grads])
        np.testing.assert_allclose(batched[i].item(), one.item(), rtol=1e-12)


def test_capture():
    lists = state()

    def function(*flat):
        return step(*(list(flat[i : i + 2]) for i in range(0, 8, 2)))

    flat = [t for values in lists for t in values]
    module = pb.make_fx(function)(*[t.clone() for t in flat])
    names = {str(n.target) for n in module.graph.nodes if n.op == "call_function"}
    whole = {name for name in names if "_foreach" in name}  # in place: one node an element
    assert whole == {"aten._foreach_sqrt.default", "aten._foreach_addcdiv.Scalar"}
    same(list(module(*[t.clone() for t in flat])), plain_step(*state()))


@pytest.mark.cc
def test_compiled():
    run = pb.compile(step)
    mine, plain = state(), state()
    same(list(run(*mine)), step(*plain))
    for a, b in zip(mine[2] + mine[3], plain[2] + plain[3]):  # what it wrote
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)
    grads = [t.requires_grad_() for t in state()[1]]
    (got, expected) = (
        pb.autograd.grad(f(*grads), grads) for f in (pb.compile(total(step)), total(plain_step))
    )
    same(list(got), list(expected))


def test_writes_of_unlike_tensors_inside_transforms():
    def function(x, y):
        both = [x * 1, y * 1]
        pb._foreach_mul_(both, [y[:1], x])
        pb._foreach_copy_(both[:1], [both[1].sum().float()])
        return both[0].sum() + (both[1] * both[1]).sum()

    def plain(x, y):
        second = y * x
        return 3 * second.sum().float().double() + (second * second).sum()

    x, y = tensors((3,), (3,))
    assert function(x, y).item() == plain(x, y).item()
    for argnum in (0, 1):
        same([grad(function, argnum)(x, y)], [grad(plain, argnum)(x, y)])
    many = pb.stack([x, -x, 2 * x])
    same([vmap(function)(many, many)], [pb.stack([plain(t, t) for t in many])])
    same([vmap(function, (0, None))(many, y)], [pb.stack([plain(t, y) for t in many])])
    same([pb.make_fx(function)(x, y)(2 * x, y)], [plain(2 * x, y)])

    def wrong(x, y):
        pb._foreach_mul_([x, y], [y, y[:2]])

    for transform in (vmap(wrong), pb.make_fx(wrong), grad(wrong)):
        before = copies([many, many])
        with pytest.raises(RuntimeError):
            transform(many, many)
        same([many, many], before)


def test_packed_numbers_have_a_derivative_and_batch():
    x = tensors((2,), (3,))
    numbers = pb.tensor([0.5, -2.0], dtype=pb.float64)

    def function(s):
        return sum(t.sum() for t in pb._foreach_addcmul(x, x, x, s))

    assert grad(function)(numbers).tolist() == [5.0, 14.0]
    many = pb.stack([numbers, 2 * numbers])
    np.testing.assert_allclose(
        vmap(function)(many).numpy(), [function(many[i]).item() for i in range(2)]
    )
    module = pb.make_fx(function)(numbers)
    assert module(3 * numbers).item() == function(3 * numbers).item()


# the surface


def test_names():
    assert {"_foreach_add", "_foreach_norm"} <= set(dir(pb))
    assert not any(name.startswith("_foreach") for name in dir(pb.Tensor))
    assert repr(aten._foreach_add.List) == "aten._foreach_add.List"
    assert repr(aten._foreach_add_.ScalarList) == "aten._foreach_add_.ScalarList"
    assert aten._foreach_pow_.overloads() == ["List", "Scalar", "ScalarList"]
    with pytest.raises(AttributeError):
        pb._foreach_norm_
    written = aten._foreach_add_.List.schema
    assert str(written) == (
        "_foreach_add_.List(Tensor(a!)[] self, Tensor[] other, *, Scalar alpha=1) -> ()"
    )


@pytest.mark.parametrize("name", ["_foreach_addcmul", "_foreach_addcdiv"])
@pytest.mark.parametrize("first", [[3, 4], [True, False], [0.5, 1.5]])
def test_packed_numbers_keep_their_fractions_when_compiled(name, first):
    def f(a, b, c, scalars):
        return getattr(pb, name)([a], [b], [c], scalars)

    args = (pb.ones(2), pb.tensor(first), pb.tensor([3.5, 4.0]), pb.tensor([2.5]))
    (expected,), (found,) = f(*args), pb.compile(f, backend="numpy")(*args)
    assert found.dtype is expected.dtype and pb.allclose(found, expected)
