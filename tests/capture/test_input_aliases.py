"""Memory that inputs and views of a compiled function share: all found by random programs."""

import pytest

import pullback as pb

WAYS = [lambda f: f, lambda f: pb.compile(f, backend="numpy"),
        lambda f: pb.aot.aot_function(f, pb.aot.nop)]


@pytest.mark.parametrize("wrap", WAYS)
@pytest.mark.parametrize("view", [pb.view_as_real, lambda x: x.as_strided((2,), (1,)),
                                  lambda x: x.unfold(0, 2, 1)[0]])
def test_views_by_strides_share_memory(wrap, view):
    """Arrays that NumPy's stride tricks made hide the array that has the memory."""
    def f(x, y):
        y.mul_(2)
        return x * 1

    x = pb.complex(pb.ones(2), pb.ones(2)) if view is pb.view_as_real else pb.ones(2)
    before = x.clone()
    assert pb.equal(wrap(f)(x, view(x)), before * 2) and pb.equal(x, before * 2)


@pytest.mark.parametrize("wrap", WAYS)
def test_complex_inputs_written_as_real_numbers(wrap):
    def f(x, parts):
        parts.mul_(2)
        return (x * x).real.sum()

    leaf = pb.tensor([1.0 + 2.0j], requires_grad=True)
    x = leaf * 1
    wrap(f)(x, pb.view_as_real(x)).backward()
    assert leaf.grad.tolist() == [8.0 - 16.0j]


@pytest.mark.parametrize("wrap", WAYS)
def test_one_of_several_results_may_be_overwritten(wrap):
    """The backward of max needs the places, not the values."""
    leaf = pb.tensor([[1.0, 5.0], [3.0, 2.0]], requires_grad=True)
    values = wrap(lambda x: x.max(0)[0])(leaf * 1)
    values.mul_(2)
    values.sum().backward()
    assert leaf.grad.tolist() == [[0, 2], [2, 0]]


@pytest.mark.parametrize("wrap", [*WAYS, lambda f: pb.compile(f, backend="numpy", dynamic=True)])
def test_writes_through_expanded_views(wrap):
    def f(x):
        x.expand_as(x).mul_(3)
        repeated = x.expand(2, 2, 3)
        repeated[0].add_(1)
        return x * 2, repeated[1]

    leaf = pb.ones(2, 3, requires_grad=True)
    out, row = wrap(f)(leaf * 1)
    assert out.tolist() == [[8] * 3] * 2 and row.tolist() == [[4] * 3] * 2
    out.sum().backward()
    assert leaf.grad.tolist() == [[6] * 3] * 2


@pytest.mark.parametrize("wrap", WAYS)
def test_writes_through_parts_of_expanded_inputs(wrap):
    def f(x):
        x[0].add_(1)
        return x * 1

    x = pb.zeros(3).expand(2, 3)
    assert wrap(f)(x).tolist() == x.tolist() == [[1] * 3] * 2


@pytest.mark.parametrize("wrap", WAYS)
def test_places_of_views_by_strides_are_those_of_the_memory(wrap):
    def f(x):
        return x.as_strided((2, 2), (2, 1), 1).as_strided((2, 2), (2, 1), 1)

    view = wrap(f)(pb.arange(6.0))
    assert view.tolist() == [[1, 2], [3, 4]] and view.storage_offset() == 1


@pytest.mark.parametrize("wrap", WAYS)
def test_versions_by_data(wrap):
    def f(x, alias):
        alias.mul_(2)
        alias[0] = 7
        x.add_(1)
        return x * 1

    x = pb.ones(2)
    alias = x.data
    assert wrap(f)(x, alias).tolist() == x.tolist() == [8, 3]
    assert (x._version, alias._version) == (1, 2)


@pytest.mark.parametrize("wrap", WAYS)
@pytest.mark.parametrize("kind", ["piece", "hidden"])
def test_views_left_behind_by_writes(wrap, kind):
    """They may be returned and detached, but have no history that may be asked for."""
    def view(x):
        if kind == "piece":
            return x.unbind(0)[0]
        with pb.no_grad():
            return x[0]

    def left(x):
        v = view(x)
        x.mul_(2)
        return v, v.detach() * 1, v.shape[0]

    def used(x):
        v = view(x)
        x.mul_(2)
        return v * 1

    v, values, size = wrap(left)(pb.ones(2, 3, requires_grad=True) * 1)
    assert values.tolist() == [2, 2, 2] and size == 3 and v.requires_grad
    with pytest.raises(RuntimeError, match="modified inplace"):
        v.grad_fn
    with pytest.raises(RuntimeError, match="modified inplace"):
        wrap(used)(pb.ones(2, 3, requires_grad=True) * 1)


@pytest.mark.parametrize("wrap", WAYS)
def test_numbers_that_share_memory(wrap):
    def f(x, alias):
        alias.view(-1).add_(1)
        return x * 1

    x = pb.tensor(2.0)
    assert wrap(f)(x, x.data) == x == 3


@pytest.mark.parametrize("wrap", WAYS)
@pytest.mark.parametrize("dtype", [pb.int32, pb.float32])
def test_bytes_read_as_another_dtype_have_no_history(wrap, dtype):
    def f(x):
        view = x.view(dtype)
        view[0] = 0
        return view, x * 1

    leaf = pb.ones(2, requires_grad=True)
    x = leaf * 1
    view, out = wrap(f)(x)
    assert out.tolist() == x.tolist() == [0, 1]
    assert not view.requires_grad and view._base is None and view.data_ptr() == x.data_ptr()
    assert x.grad_fn.name() == "MulBackward0"
    out.sum().backward()
    assert leaf.grad.tolist() == [1, 1]


@pytest.mark.parametrize("wrap", WAYS)
def test_data_of_expanded_inputs(wrap):
    def f(x):
        x.data[0] = 5
        return x * 1

    x = pb.zeros(3).expand(2, 3)
    assert wrap(f)(x).tolist() == x.tolist() == [[5] * 3] * 2 and x._version == 0


@pytest.mark.parametrize("wrap", WAYS)
def test_numbers_assigned_to_expanded_tensors_are_refused(wrap):
    def f(x):
        x[:] = 5
        return x * 1

    with pytest.raises(RuntimeError, match="single memory location"):
        wrap(f)(pb.zeros(3).expand(2, 3))


@pytest.mark.parametrize("wrap", WAYS[1:])
def test_writes_by_strides_into_tensors_with_gaps(wrap):
    def inside(x):
        x.as_strided((2,), (2,), 0).add_(1)
        return x * 1

    def outside(x):
        x.as_strided((2,), (1,), 0).add_(1)
        return x * 1

    assert wrap(inside)(pb.zeros(2, 4)[:, ::2]).tolist() == [[1, 1], [0, 0]]
    if wrap is WAYS[2]:
        with pytest.raises(RuntimeError, match="does not show"):
            wrap(outside)(pb.zeros(2, 4)[:, ::2])
    else:
        with pytest.warns(pb.errors.CompileWarning, match="operator by operator"):
            assert wrap(outside)(pb.zeros(2, 4)[:, ::2]).tolist() == [[1, 0], [0, 0]]


@pytest.mark.parametrize("wrap", WAYS)
def test_copies_by_reshape_are_no_views(wrap):
    def f(x):
        flat = x.t().reshape(-1)
        return flat, flat.unbind(0)[0]

    flat, piece = wrap(f)(pb.ones(2, 3, requires_grad=True) * 1)
    assert piece._base is flat


def data_then_write(x, y):
    x.data = y
    x.mul_(2)
    return y * 1


def larger_out(x, y):
    pb.add(pb.cat([y, y]), 1, out=x)
    return x * 1


def smaller_after_write(x, y):
    flat = x.view(-1)
    x.add_(y)
    x.resize_(1)
    return flat * 1


def set_tracked(x, y):
    y = (y * 1).requires_grad_()
    z = y * 2
    z.set_(x)
    return z.detach() * 1


@pytest.mark.filterwarnings("ignore:An output with")
@pytest.mark.parametrize("f", [data_then_write, larger_out, smaller_after_write, set_tracked])
def test_what_is_done_to_memory_without_a_graph(f):
    """`compile` runs such functions as they are written, and says so; graphs refuse them."""
    x, y = pb.ones(2), pb.full((2,), 3.0)
    again = pb.ones(2), pb.full((2,), 3.0)
    out = f(x, y)
    with pytest.warns(pb.errors.CompileWarning, match="operator by operator"):
        found = pb.compile(f, backend="numpy")(*again)
    assert found.tolist() == out.tolist()
    assert [t.tolist() for t in again] == [x.tolist(), y.tolist()]
    with pytest.raises(pb.errors.TransformError):
        pb.aot.aot_function(f, pb.aot.nop)(pb.ones(2), pb.full((2,), 3.0))
