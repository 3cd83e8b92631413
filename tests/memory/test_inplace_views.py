"""In-place operators and views: values, history of bases and views, versions, refusals, `out=`.

A write through a view must do what the same program without mutation does.  Most tests state the
pure program and compare values and gradients with it.
"""

import numpy as np
import pytest

import pullback as torch

grad = torch.autograd.grad


def leaf(*shape, dtype=torch.float64):
    """1, 2, 3, ... / 8 as a leaf that requires grad."""
    count = int(np.prod(shape))
    values = torch.arange(1, count + 1, dtype=torch.float64).reshape(shape) / 8
    return values.to(dtype).clone().detach().requires_grad_()


def weights(*shape):
    """Distinct weights, so that a misplaced gradient shows."""
    count = int(np.prod(shape))
    return (torch.arange(count, dtype=torch.float64) % 7 + 1).reshape(shape)


def close(a, b):
    np.testing.assert_allclose(np.asarray(a.detach()), np.asarray(b.detach()), rtol=1e-12)


def same_gradients(mutating, pure, *leaves):
    """Two programs agree in value and in all gradients."""
    one, two = mutating(*leaves), pure(*leaves)
    close(one, two)
    w = weights(*one.shape)
    w = w.to(one.dtype)
    for g, h in zip(
        grad(one, leaves, w, allow_unused=True),
        grad(two, leaves, w, allow_unused=True),
        strict=True,
    ):
        assert (g is None) == (h is None)
        if g is not None:
            close(g, h)


# writes through views


VIEWS = {
    "select": lambda x: x[1],
    "select of the last dim": lambda x: x.select(-1, 2),
    "slice": lambda x: x[1:3],
    "slice with a step": lambda x: x[:, ::2],
    "narrow": lambda x: x.narrow(1, 1, 2),
    "transpose": lambda x: x.transpose(0, 1),
    "T of a slice": lambda x: x[:2].T,
    "permute": lambda x: x.permute(1, 0),
    "view": lambda x: x.view(2, 8),
    "view of a slice": lambda x: x[1:3].view(-1),
    "reshape": lambda x: x.reshape(16),
    "flatten": lambda x: x.flatten(),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "squeeze": lambda x: x.unsqueeze(0).squeeze(0),
    "diagonal": lambda x: x.diagonal(),
    "off diagonal of a view": lambda x: x[:3].diagonal(1),
    "as_strided": lambda x: x.as_strided((2, 3), (5, 2), 1),
    "as_strided of a view": lambda x: x[1:].as_strided((2, 2), (3, 1), 5),
    "select of select": lambda x: x[2][3],
    "slice, transpose, select": lambda x: x[1:].transpose(0, 1)[2],
    "slice, diagonal, slice": lambda x: x[:, 1:].diagonal()[1:],
    "unflatten, select": lambda x: x.unflatten(1, (2, 2))[:, 1],
    "alias": lambda x: x[...],
    "everything with a new axis": lambda x: x[None, :, 1],
    "movedim": lambda x: x.movedim(0, 1),
    "swapaxes": lambda x: x.swapaxes(0, 1)[1],
    "unfold": lambda x: x.unfold(0, 2, 2),
}


@pytest.mark.parametrize("name", VIEWS)
def test_write_through_view(name):
    """`view.mul_(c)` on an intermediate: value and gradient of the base."""
    view = VIEWS[name]
    inside = np.zeros((4, 4))
    view(torch.from_numpy(inside)).fill_(1)  # from the outside: which elements the view covers
    mask = torch.from_numpy(inside.astype(bool))

    def mutating(x):
        y = x * 2
        view(y).mul_(3)
        return y

    def pure(x):
        y = x * 2
        return torch.where(mask, y * 3, y)

    assert mask.any()
    same_gradients(mutating, pure, leaf(4, 4))


@pytest.mark.parametrize("name", VIEWS)
def test_write_a_tracked_value_through_view(name):
    """`view.copy_(z)`: gradients reach z and stop at the overwritten part of the base."""
    view = VIEWS[name]
    number = torch.arange(16).reshape(4, 4).clone()
    place = view(number)

    def mutating(x, z):
        y = x * 2
        view(y).copy_(z * z)
        return y.sin()

    def pure(x, z):
        y = (x * 2).reshape(-1)
        return y.index_put([place.reshape(-1)], (z * z).reshape(-1)).reshape(4, 4).sin()

    same_gradients(mutating, pure, leaf(4, 4), leaf(*place.shape))


@pytest.mark.parametrize("name", VIEWS)
def test_views_see_writes_to_the_base(name):
    view = VIEWS[name]

    def mutating(x, z):
        y = x * 2
        v = view(y)
        y.mul_(z)
        return v * v

    def pure(x, z):
        v = view(x * 2 * z)
        return v * v

    same_gradients(mutating, pure, leaf(4, 4), leaf(4, 4))


def test_views_see_writes_through_other_views():
    def mutating(x):
        y = x * 1
        row, column = y[1], y[:, 2]
        row.mul_(3)
        column.add_(row[2].clone())
        return torch.cat([row, column, y.reshape(-1)])

    def pure(x):
        row = x[1] * 3
        y = torch.stack([x[0], row, x[2]])
        column = y[:, 2] + row[2]
        y = torch.cat([y[:, :2], column[:, None], y[:, 3:]], 1)
        return torch.cat([y[1], y[:, 2], y.reshape(-1)])

    same_gradients(mutating, pure, leaf(3, 4))


def test_real_and_imaginary_parts_are_views():
    x = leaf(3)
    z = torch.view_as_complex(torch.stack([x, x * 2], -1))
    z.real.mul_(3)
    z.imag.add_(1)
    close(z, torch.view_as_complex(torch.stack([x * 3, x * 2 + 1], -1)))
    (g,) = grad(z.real.sum() + 2 * z.imag.sum(), x)
    assert g.tolist() == [7, 7, 7]
    y = torch.zeros(2, dtype=torch.complex128)
    torch.view_as_real(y)[:, 1] = torch.tensor([1.0, 2.0], dtype=torch.float64)
    assert y.tolist() == [1j, 2j]


def test_expanded_tensors_refuse_writes():
    x = torch.zeros(3, 1).expand(3, 4)
    for write in (lambda: x.add_(1), lambda: x[0].mul_(2), lambda: x.copy_(torch.ones(3, 4))):
        with pytest.raises(RuntimeError, match="single memory location"):
            write()
    assert x.sum().item() == 0 and x._version == 0
    x[:, :1].add_(1)  # one element each: fine
    assert x.sum().item() == 12
    assert x.clone().add_(1)[0, 0].item() == 2


def test_write_into_fresh_zeros():
    def mutating(x):
        out = torch.zeros(3, dtype=torch.float64)
        for i in range(3):
            out[i] = x[i] * (i + 1)
        return out

    same_gradients(mutating, lambda x: x * torch.tensor([1.0, 2.0, 3.0]), leaf(3))


def test_base_becomes_tracked_by_a_write():
    x = leaf(2)
    buffer = torch.zeros(4, dtype=torch.float64)
    early = buffer[1:]
    assert not buffer.requires_grad
    buffer[1:3] = x
    assert buffer.requires_grad and not buffer.is_leaf and early.requires_grad
    assert buffer.grad_fn.name().endswith("CopySlices")
    close(
        grad(early, x, torch.tensor([5.0, 6.0, 7.0], dtype=torch.float64))[0],
        torch.tensor([5.0, 6.0]),
    )


def test_history_of_view_after_write():
    x = leaf(4)
    y = x * 2
    v = y[:2]
    before = v.grad_fn
    v.add_(1)
    assert v._base is y and v.grad_fn is not before and y.grad_fn.name().endswith("CopySlices")
    close(grad(v, x, torch.ones(2, dtype=torch.float64))[0], torch.tensor([2.0, 2, 0, 0]))


def test_overwritten_history_is_forgotten():
    x, z = leaf(3), leaf(3)
    y = x * 2
    y.copy_(z)
    gx, gz = grad(y.sum(), (x, z), allow_unused=True)
    assert gx is None or gx.abs().sum().item() == 0
    assert gz.tolist() == [1, 1, 1]
    y = x * 2
    y.zero_()
    (gx,) = grad(y.sum(), x, allow_unused=True)
    assert gx is None or gx.abs().sum().item() == 0


def test_inplace_on_itself():
    same_gradients(lambda x: (x * 1).mul_(x), lambda x: x * x, leaf(3))

    def square(x):
        y = x * 1
        y.mul_(y)
        return y

    same_gradients(square, lambda x: x * x, leaf(3))

    def shifted(x):
        y = x * 1
        y[1:].add_(y[:-1].clone())
        return y

    same_gradients(shifted, lambda x: torch.cat([x[:1], x[1:] + x[:-1]]), leaf(4))


def test_overlapping_copy_takes_the_old_values():
    x = torch.arange(5.0)
    x[1:] = x[:-1].clone()
    assert x.tolist() == [0, 0, 1, 2, 3]


def test_chain_of_inplace_operators():
    def mutating(x):
        y = x.clone()
        y.add_(1).mul_(2).sin_().pow_(2).neg_()
        y += 3
        y *= y
        y -= x
        y /= 2
        y **= 2
        return y

    def pure(x):
        y = -(((x + 1) * 2).sin() ** 2) + 3
        return ((y * y - x) / 2) ** 2

    same_gradients(mutating, pure, leaf(3))


# versions


def test_versions_count_writes():
    x = torch.zeros(3)
    assert x._version == 0
    x.add_(1)
    x[0] = 2
    x.zero_()
    assert x._version == 3
    y = x + 1
    assert x._version == 3 and y._version == 0
    torch.add(y, 1, out=y)
    assert y._version == 1


def test_views_and_detached_aliases_share_the_version():
    x = torch.zeros(3, 3)
    view, alias = x[0], x.detach()
    view.add_(1)
    assert x._version == view._version == alias._version == 1
    alias.mul_(2)
    assert x._version == view._version == 2
    late = x.T
    assert late._version == 2
    assert x.clone()._version == 0


def test_saved_input_modified():
    x = leaf(3)
    y = x * 1
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as caught:
        z.sum().backward()
    assert "is at version 1; expected version 0" in str(caught.value)


def test_saved_output_modified():
    x = leaf(3)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_saved_value_modified_through_a_view_or_alias():
    for touch in (
        lambda t: t[0].zero_(),
        lambda t: t.view(3).zero_(),
        lambda t: t.detach().zero_(),
    ):
        x = leaf(3)
        y = x * 1
        z = y * y
        touch(y)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()


def test_saved_view_modified_through_the_base():
    x = leaf(4)
    y = x * 1
    z = y[:2].exp() * y[:2]
    with torch.no_grad():
        y.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_what_was_not_saved_may_change():
    x = leaf(3)
    y = x * 1
    z = y + y  # addition saves nothing
    y.zero_()
    close(grad(z.sum(), x)[0], torch.tensor([2.0, 2.0, 2.0]))
    y = x * 1
    z = y.exp()  # saves the result, not the input
    y.zero_()
    close(grad(z.sum(), x)[0], x.exp())
    y = x * 1
    z = y * 2  # the other factor is a number
    y.zero_()
    close(grad(z.sum(), x)[0], torch.tensor([2.0, 2.0, 2.0]))


def test_write_before_saving_is_fine():
    x = leaf(3)
    y = x * 1
    y.add_(1)
    z = y * y
    close(grad(z.sum(), x)[0], 2 * (x + 1))


# refusals


def test_leaf_that_requires_grad():
    x = leaf(3)
    for write in (
        lambda: x.add_(1),
        lambda: x.__setitem__(0, 1.0),
        lambda: x[0].mul_(2),
        lambda: x.view(3).zero_(),
        lambda: x.copy_(torch.zeros(3)),
    ):
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            write()
    assert x._version == 0 and (x * 8).tolist() == [1, 2, 3]
    with torch.no_grad():
        x.add_(1)
        x[0] = 7
    assert x.requires_grad and x.is_leaf and x[0].item() == 7 and x._version == 2


def test_leaf_without_grad_gets_history():
    x = leaf(3)
    y = torch.zeros(3, dtype=torch.float64)
    y.add_(x)
    assert y.requires_grad and not y.is_leaf
    close(grad(y.sum(), x)[0], torch.ones(3))


@pytest.mark.parametrize(
    "split",
    [
        lambda y: y.split(2),
        lambda y: y.chunk(2),
        lambda y: y.unbind(0),
        lambda y: y.split([1, 3]),
        lambda y: tuple(y),
    ],
)
def test_multi_output_views_refuse(split):
    y = leaf(4) * 1
    part = split(y)[0]
    with pytest.raises(RuntimeError, match="multiple views"):
        part.mul_(2)
    with pytest.raises(RuntimeError, match="multiple views"):
        part.view(-1).mul_(2)
    assert y._version == 0
    free = split(torch.zeros(4))[0]
    free.add_(1)  # nothing to lose
    assert free.sum().item() == free.numel()
    part.clone().mul_(2)


def test_views_made_under_no_grad():
    y = leaf(4) * 1
    with torch.no_grad():
        v = y[:2]
        v.add_(1)  # still under no_grad
    with pytest.raises(RuntimeError, match="no_grad"):
        v.mul_(2)
    with pytest.raises(RuntimeError, match="no_grad"):
        v[0].mul_(2)


def test_no_grad_write_keeps_history():
    x = leaf(3)
    y = x * 2
    with torch.no_grad():
        y.add_(5)
    assert y.requires_grad
    close(grad(y.sum(), x)[0], torch.full((3,), 2.0))


def test_inplace_shape_and_dtype_errors():
    x = torch.zeros(3)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x.add_(torch.zeros(2, 3))
    with pytest.raises(RuntimeError):
        x.add_(torch.zeros(2))
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.zeros(3, dtype=torch.int64).add_(1.5)
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.zeros(3, dtype=torch.bool).add_(1)
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.zeros(3).mul_(1j)
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.ones(3, dtype=torch.int32).div_(2)
    assert x._version == 0 and x.sum().item() == 0
    wide = torch.zeros(3, dtype=torch.int16)
    wide.add_(torch.full((3,), 300, dtype=torch.int64))  # the category fits
    assert wide.dtype is torch.int16 and wide.tolist() == [300] * 3
    small = torch.zeros(3)
    small += torch.ones(3, dtype=torch.float64)
    assert small.dtype is torch.float32


def test_copy_converts_and_broadcasts():
    x = torch.zeros(2, 3)
    x.copy_(torch.tensor([1, 2, 3]))
    assert x.tolist() == [[1, 2, 3], [1, 2, 3]]
    i = torch.zeros(2, dtype=torch.int64)
    i.copy_(torch.tensor([1.9, -1.9]))
    assert i.tolist() == [1, -1]
    with pytest.raises(RuntimeError):
        x.copy_(torch.zeros(4))
    z = leaf(3)
    y = torch.zeros(2, 3)  # float32 from float64: the gradient comes back in float64
    y.copy_(z)
    (g,) = grad(y.sum(), z)
    assert g.dtype is torch.float64 and g.tolist() == [2, 2, 2]


# indexing


def numbers():
    return np.arange(60.0).reshape(3, 4, 5)


INDEX = torch.tensor([2, 0])
MASK = numbers() % 3 == 0
KEYS = {
    "int": 1,
    "negative": -1,
    "pair": (1, 2),
    "full": (2, 3, 4),
    "slice": slice(1, 3),
    "step": (slice(None), slice(0, 4, 2)),
    "ellipsis": (Ellipsis, 2),
    "middle": (1, Ellipsis, 2),
    "newaxis": (None, 1, None),
    "all": Ellipsis,
    "empty slice": slice(2, 1),
    "colon": slice(None),
    "list": [0, 2],
    "list at dim 1": (slice(None), [1, 3]),
    "array": INDEX,
    "two arrays": (INDEX, torch.tensor([1, 3])),
    "arrays broadcast": (INDEX[:, None], torch.tensor([0, 1, 3])),
    "array and int": (INDEX, 1),
    "int and array": (1, INDEX),
    "apart": (INDEX, slice(None), INDEX),
    "together": (slice(None), INDEX, INDEX),
    "negative array": torch.tensor([-1, -3]),
    "mask": torch.from_numpy(MASK),
    "row mask": torch.tensor([True, False, True]),
    "mask at dim 1": (slice(None), torch.tensor([True, False, False, True])),
    "mask of two dims": torch.from_numpy(MASK[:, :, 0].copy()),
    "mask and int": (torch.tensor([True, False, True]), 1),
    "numpy array": np.array([0, 1]),
    "True": True,
    "False": False,
    "0-d tensor": torch.tensor(1),
    "tuple of lists": ([0, 1], [2, 3]),
    "slice and array with newaxis": (None, slice(1, 3), INDEX),
    "empty list": [],
    "array and ellipsis": (INDEX, Ellipsis, 0),
}


def as_numpy(key):
    if isinstance(key, tuple):
        return tuple(as_numpy(k) for k in key)
    if isinstance(key, torch.Tensor):
        return np.asarray(key)
    return np.array(key, int) if isinstance(key, list) else key


@pytest.mark.parametrize("name", KEYS)
def test_read_by_index(name):
    key = KEYS[name]
    a = numbers()
    x = torch.from_numpy(a.copy()).requires_grad_()
    y = x[key]
    expected = a[as_numpy(key)]
    assert y.shape == expected.shape
    np.testing.assert_array_equal(y.detach().numpy(), expected)
    w = np.arange(1.0, expected.size + 1).reshape(expected.shape)
    (g,) = grad(y, x, torch.from_numpy(w))
    counted = np.zeros_like(a)
    np.add.at(counted, as_numpy(key), w)
    np.testing.assert_array_equal(g.numpy(), counted)


@pytest.mark.parametrize("name", KEYS)
def test_write_by_index(name):
    key = KEYS[name]
    a = numbers()
    shape = a[as_numpy(key)].shape
    value = np.asarray(-np.arange(1.0, np.prod(shape) + 1).reshape(shape))
    x = torch.from_numpy(a.copy())
    a[as_numpy(key)] = value
    x[key] = torch.from_numpy(value)
    np.testing.assert_array_equal(x.numpy(), a)
    assert x._version == 1
    a[as_numpy(key)] = 9
    x[key] = 9
    np.testing.assert_array_equal(x.numpy(), a)


@pytest.mark.parametrize("name", KEYS)
def test_gradient_of_write_by_index(name):
    key = KEYS[name]
    shape = numbers()[as_numpy(key)].shape
    base = torch.from_numpy(numbers() / 60).requires_grad_()
    value = torch.full(shape, 0.25, dtype=torch.float64, requires_grad=True)
    x = base * 2
    x[key] = value * 3
    w = weights(3, 4, 5)
    gb, gv = grad(x, (base, value), w)
    hit = np.zeros((3, 4, 5), bool)
    hit[as_numpy(key)] = True
    np.testing.assert_allclose(gb.numpy(), np.where(hit, 0, 2 * w.numpy()))
    np.testing.assert_allclose(gv.numpy(), 3 * w.numpy()[as_numpy(key)])


def test_write_by_index_broadcasts_and_converts():
    x = torch.zeros(2, 3)
    x[:, 1] = torch.tensor(4)
    x[0] = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    x[1:, :] = torch.ones(1, 1, 3)  # leading ones are dropped
    assert x.tolist() == [[1, 2, 3], [1, 1, 1]]
    i = torch.zeros(2, dtype=torch.int64)
    i[0] = 2.7
    assert i.tolist() == [2, 0]
    x[x > 1] = 0
    assert x.tolist() == [[1, 0, 0], [1, 1, 1]]
    x[0, :2] += 5
    assert x.tolist() == [[6, 5, 0], [1, 1, 1]]


def test_repeated_indices():
    x = torch.zeros(3)
    x.index_put_((torch.tensor([1, 1, 2]),), torch.tensor([1.0, 2.0, 3.0]), accumulate=True)
    assert x.tolist() == [0, 3, 3]


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (3, IndexError),
        (-4, IndexError),
        ((0, 0, 0, 0), IndexError),
        ("a", (TypeError, IndexError)),
        (1.5, (TypeError, IndexError)),
        (torch.tensor([3]), IndexError),
        (slice(None, None, -1), ValueError),
        (torch.tensor([True, False]), IndexError),
        (torch.tensor([0.5]), IndexError),
    ],
)
def test_bad_index(key, error):
    x = torch.zeros(3, 4, 5)
    with pytest.raises(error):
        x[key]
    with pytest.raises(error):
        x[key] = 1
    assert x._version == 0 and x.sum().item() == 0


def test_bad_value():
    x = torch.zeros(3)
    for value, error in (
        (torch.zeros(2), RuntimeError),
        (torch.zeros(2, 3), RuntimeError),
        ("a", TypeError),
    ):
        with pytest.raises(error):
            x[:] = value
    assert x._version == 0


def test_index_of_number():
    with pytest.raises(IndexError, match="0-dim"):
        torch.tensor(1.0)[0]
    assert torch.tensor(1.0)[...].item() == 1 and torch.tensor(1.0)[None].shape == (1,)
    x = torch.tensor(1.0)
    x[...] = 3
    assert x.item() == 3


# out=


def test_out_writes_into_the_buffer():
    x, out = torch.ones(3), torch.zeros(3)
    memory = out.data_ptr()
    assert torch.add(x, 1, out=out) is out
    assert out.tolist() == [2, 2, 2] and out.data_ptr() == memory and out._version == 1
    view = torch.zeros(2, 3)
    torch.mul(x, 5, out=view[1])
    assert view.tolist() == [[0, 0, 0], [5, 5, 5]]
    values, places = torch.zeros(0), torch.zeros(0, dtype=torch.int64)
    torch.max(torch.tensor([[1.0, 3.0], [5.0, 2.0]]), 1, out=(values, places))
    assert values.tolist() == [3, 5] and places.tolist() == [1, 0]


def test_out_resizes_an_empty_buffer():
    out = torch.zeros(0)
    torch.add(torch.ones(2, 3), 1, out=out)
    assert out.shape == (2, 3) and out.sum().item() == 12


def test_out_converts():
    out = torch.zeros(2, dtype=torch.float64)
    torch.add(torch.ones(2), 1, out=out)
    assert out.dtype is torch.float64 and out.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.add(torch.ones(2), 1, out=torch.zeros(2, dtype=torch.int64))


def test_out_refuses_gradients():
    x = leaf(3)
    out = torch.zeros(3, dtype=torch.float64)
    with pytest.raises(RuntimeError, match=r"out=.*automatic differentiation"):
        torch.mul(x, 2, out=out)
    with pytest.raises(RuntimeError, match=r"out=.*automatic differentiation"):
        torch.mul(x.detach(), 2, out=x)
    assert out._version == 0 and x._version == 0
    with torch.no_grad():
        torch.mul(x, 2, out=out)
    close(out, x * 2)
    assert not out.requires_grad


@pytest.mark.parametrize(
    "name",
    ["add_.Tensor", "pow_.Scalar", "pow_.Tensor", "float_power_.Scalar", "floor_divide_.Tensor",
     "ldexp_.default", "transpose_.default", "bernoulli_.float", "normal_.default"],
)  # fmt: skip
def test_overloads_of_in_place_operators_have_names_of_their_own(name):
    base, _, overload = name.partition(".")
    found = getattr(getattr(torch.ops.aten, base), overload)
    assert repr(found) == f"aten.{name}" and found.schema.args[0].is_write
    assert overload in getattr(torch.ops.aten, base).overloads()


def test_leaf_that_is_a_view():
    base = torch.arange(6.0)
    x = base.reshape(2, 3).requires_grad_()
    for refused in (x, x[0]):
        with pytest.raises(torch.errors.LeafWriteError):
            refused.mul_(2)
    base.mul_(2)
    assert x.is_leaf and x.requires_grad and base.is_leaf and not base.requires_grad
    assert x[1].tolist() == [6, 8, 10]
    with torch.no_grad():
        x[0].mul_(2)
    (x * x).sum().backward()
    close(x.grad, 2 * x.detach())


def test_augmented_assignment_keeps_the_object():
    x = torch.ones(2)
    y = x
    x += 1
    x[0] -= 5
    assert y is x and y.tolist() == [-3, 2]


def test_second_order_through_writes():
    x = leaf(3)

    def f(x):
        y = x * x
        y[1:].mul_(x[:2])
        return (y * y).sum()

    def pure(x):
        y = torch.cat([x[:1] ** 2, x[1:] ** 2 * x[:2]])
        return (y * y).sum()

    for order in range(2):
        one, two = f(x), pure(x)
        for _ in range(order + 1):
            (one,) = grad(one.sum(), x, create_graph=True)
            (two,) = grad(two.sum(), x, create_graph=True)
        close(one, two)


OFTEN = 20  # calls, after which a kind of call has a function of its own


def test_writes_that_come_often_do_what_the_first_one_did():
    x = torch.zeros(3, 4)
    row, other = x[1], x[:, 2]
    for _ in range(OFTEN):
        row.add_(1.0)
        other.copy_(torch.ones(3))
        x[2].zero_()
        x[0].fill_(2)
    assert x.tolist() == [[2, 2, 2, 2], [OFTEN, OFTEN, 1, OFTEN], [0] * 4]
    assert x._version == row._version == 4 * OFTEN
    y = leaf(2, 4).float() * 1
    y[1].add_(1.0)  # the base has a history: it is recorded, the function notwithstanding
    y[0].copy_(torch.ones(4))
    assert y.grad_fn.name().endswith("CopySlices")
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        leaf(2, 4)[0].add_(1.0)
    with pytest.raises(RuntimeError, match="more than one element"):
        torch.zeros(1).expand(4).add_(1.0)
    assert torch.zeros(1).expand(4).fill_(3).tolist() == [3] * 4


@pytest.mark.parametrize("write", [
    lambda t: t.zero_(), lambda t: t.fill_(1.0), lambda t: t.copy_(torch.ones(4)),
    lambda t: t.add_(1.0)])
def test_memory_that_must_not_be_written_is_not(write):
    array = np.zeros(4, np.float32)
    array.flags.writeable = False
    for _ in range(OFTEN):
        write(torch.zeros(4))
        with pytest.raises(torch.errors.ViewWriteError, match="read-only"):
            write(torch.from_numpy(array))
    assert not array.any()


def test_what_a_copy_does_not_take_is_refused_however_often():
    for _ in range(OFTEN):
        torch.zeros(4).copy_(torch.ones(4))
        for shape in ((3,), (1, 4), (2, 4)):
            with pytest.raises(RuntimeError):
                torch.zeros(4).copy_(torch.ones(shape))
        assert torch.zeros(4, dtype=torch.int64).copy_(torch.full((4,), 2.5)).tolist() == [2] * 4
        assert torch.zeros(2).copy_(torch.tensor([1 + 2j, 3j])).tolist() == [1, 0]
        with pytest.raises(RuntimeError, match="without overflow"):
            torch.zeros(4, dtype=torch.uint8).fill_(1e10)


def test_out_is_a_view_whose_base_got_a_history():
    base = torch.zeros(4)
    view = base[1:]
    base.mul_(torch.ones(4, requires_grad=True))
    with pytest.raises(RuntimeError, match=r"out=.*automatic differentiation"):
        torch.sin(torch.ones(3), out=view)


def test_views_of_views_from_before_the_base_was_turned():
    """A write through one of them is to the places that they show, in the layout of that time."""
    for _ in range(30):  # by the general way, and by plans
        x = torch.arange(1.0, 17.0).reshape(4, 4).requires_grad_()
        base = x * 1
        rows = base[::2]
        base.t_()
        part = rows[0][1:2]
        part.mul_(1.5)
        (part * part).sum().backward()
        assert x.grad.flatten().tolist() == [0, 9.0] + [0] * 14
