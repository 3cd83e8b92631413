"""Constructors, facts, printing, refusals and writes of nested tensors: what PyTorch 2.13 says."""

import copy
import pickle

import pytest

import pullback as torch
from pullback import func, nested

A = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
B = torch.arange(12.0).reshape(4, 3)


def jagged(**options):
    return nested.nested_tensor([A, B], layout=torch.jagged, **options)


def test_facts():
    x = jagged(requires_grad=True)
    assert x.layout is torch.jagged and x.is_nested and x.is_leaf and x.requires_grad
    assert x.dim() == x.ndim == 3 and x.numel() == 18 and len(x) == 2 and x.size(2) == 3
    assert x.offsets().tolist() == [0, 2, 6] and x.lengths() is None
    assert x.values().shape == (6, 3) and x.is_contiguous() and x.storage_offset() == 0
    assert isinstance(x.size(1), type(x.shape[1])) and not A.is_nested
    j = x.size(1)
    assert str(j).startswith("j") and repr(3 * j) == f"3*{j}" == repr(j * 3)
    assert x.stride() == (3 * j, 3, 1) and tuple(x.shape) == (2, j, 3) and j != 4
    with pytest.raises(ValueError, match="relation is indeterminate"):
        bool(j > 3)
    assert repr(x) == (f"NestedTensor(size=(2, {j}, 3), offsets=tensor([0, 2, 6]), "
                       "requires_grad=True, contiguous=True)")
    assert str(x.transpose(1, 2)).endswith("contiguous=False)")
    assert torch.nested.nested_tensor is nested.nested_tensor


def test_equal_lengths_are_equal_wherever_they_come_from():
    x = jagged()
    y = nested.nested_tensor_from_jagged(torch.ones(6, 3), torch.tensor([0, 2, 6]))
    z = nested.nested_tensor_from_jagged(torch.ones(6, 3), torch.tensor([0, 3, 6]))
    assert x.size(1) == y.size(1) and x.shape == y.shape and x.is_same_size(y)
    assert x.size(1) != z.size(1) and not x.is_same_size(z)
    assert torch.equal((x + y).values(), x.values() + 1)
    with pytest.raises(RuntimeError, match="cannot call binary pointwise function add") as caught:
        x + z
    assert "test_tensors.py" in str(caught.value)
    assert torch.equal(torch.compile(lambda a, b: a + b)(x, y).values(), x.values() + 1)


def test_gaps():
    x = nested.nested_tensor_from_jagged(
        torch.arange(6.0), torch.tensor([0, 3, 6]), torch.tensor([1, 2]))
    assert not x.is_contiguous() and x.numel() == 3 and x.lengths().tolist() == [1, 2]
    assert [p.tolist() for p in x.unbind()] == [[0], [3, 4]]
    tight = x.contiguous()
    assert tight.lengths() is None and tight.values().tolist() == [0, 3, 4]
    assert tight.size(1) == x.size(1)
    assert (x + tight).tolist() == [[0], [6, 8]] and x.sum(1).tolist() == [0, 7]
    assert x.to_padded_tensor(-1.0).tolist() == [[0, -1], [3, 4]]


def test_constructors():
    x = nested.nested_tensor([[1.0, 2.0], [3.0]], layout=torch.jagged, dtype=torch.float64)
    assert x.dtype is torch.float64 and x.tolist() == [[1, 2], [3]]
    leaf = A.clone().requires_grad_()
    assert not nested.nested_tensor([leaf, B], layout=torch.jagged).requires_grad
    nested.as_nested_tensor([leaf, B], layout=torch.jagged).sin().values().sum().backward()
    assert torch.allclose(leaf.grad, A.cos())
    even = nested.as_nested_tensor(torch.ones(2, 3, 4), layout=torch.jagged)
    assert even.offsets().tolist() == [0, 3, 6] and even.values().shape == (6, 4)
    assert nested.as_nested_tensor(even, layout=torch.jagged) is even
    padded = jagged().to_padded_tensor(0.0)
    assert padded.shape == (2, 4, 3) and not padded[0, 2:].any()
    back = nested.nested_tensor_from_padded_tensor(padded, torch.tensor([0, 2, 6]))
    assert torch.equal(back.values(), jagged().values())
    assert nested.to_padded_tensor(jagged(), 0.0, (2, 6, 3)).shape == (2, 6, 3)
    assert nested.to_padded_tensor(jagged(), 0.0, (2, 3, 3)).tolist() == padded[:, :3].tolist()
    rows = torch.arange(10.0).reshape(2, 5)
    cut = nested.narrow(rows, 1, torch.tensor([0, 1]), torch.tensor([3, 2]), layout=torch.jagged)
    assert cut.tolist() == [[0, 1, 2], [6, 7]] and cut.values().shape == (10,)
    assert nested.narrow(rows, 1, 1, 2, layout=torch.jagged).tolist() == [[1, 2], [6, 7]]
    assert nested.masked_select(rows, rows % 3 == 0).tolist() == [[0, 3], [6, 9]]
    assert nested.nested_tensor_from_jagged(
        torch.arange(4), lengths=torch.tensor([1, 3])).offsets().tolist() == [0, 1, 4]
    assert cut.offsets().tolist() == [0, 6, 8] and cut.lengths().tolist() == [3, 2]
    assert len(nested.narrow(rows[:0], 1, 0, 2, layout=torch.jagged)) == 0
    bounded = nested.nested_tensor_from_jagged(
        torch.arange(4), torch.tensor([0, 1, 4]), min_seqlen=1, max_seqlen=3)
    assert bounded._get_min_seqlen() == 1 and bounded._get_max_seqlen() == 3
    three = nested.nested_tensor([torch.ones(2, 3), torch.ones(2, 5)], layout=torch.jagged)
    assert three._ragged_idx == 2 and three.values().shape == (2, 8)


@pytest.mark.parametrize("make, kind, said", [
    (lambda: nested.nested_tensor(3), TypeError, "list / tuple"),
    (lambda: nested.nested_tensor([torch.ones(2, 3), torch.ones(3, 4)], layout=torch.jagged),
     RuntimeError, "Cannot represent given tensor list"),
    (lambda: nested.nested_tensor([torch.ones(2), torch.ones(3, 4)], layout=torch.jagged),
     RuntimeError, "same number of dimensions"),
    (lambda: nested.nested_tensor([], layout=torch.jagged), RuntimeError, "empty list"),
    (lambda: nested.nested_tensor([A], layout=torch.sparse_coo), RuntimeError, "layout"),
    (lambda: nested.nested_tensor_from_jagged(A), RuntimeError, "offsets or lengths"),
    (lambda: jagged().sum(0), RuntimeError, "reducing along the batch dimension"),
    (lambda: jagged().softmax(0), RuntimeError, "across the batch dimension"),
    (lambda: jagged().transpose(0, 1), RuntimeError, "not supported on the batch dimension"),
    (lambda: jagged().unsqueeze(0), RuntimeError, "dim=0"),
    (lambda: jagged().reshape(-1), RuntimeError, "cannot view shape"),
    (lambda: jagged().view(2, -1, -1), RuntimeError, "cannot view shape"),
    (lambda: jagged().flatten(1, 2), RuntimeError, "ragged dim"),
    (lambda: jagged() @ jagged().mT, RuntimeError, "not supported between inputs"),
    (lambda: jagged() + torch.ones(6, 3), RuntimeError, "binary pointwise"),
    (lambda: jagged().numpy(), RuntimeError, "subclasses"),
    (lambda: jagged().item(), RuntimeError, "cannot be converted to Scalar"),
    (lambda: jagged().unbind(1), RuntimeError, "only supported for NestedTensor on dim=0"),
    (lambda: torch.linalg.inv(jagged()), NotImplementedError, "nested tensors"),
    (lambda: jagged().to_dense(), NotImplementedError, "different lengths"),
    (lambda: torch.stack([jagged(), jagged()]), RuntimeError, "dim=0"),
    (lambda: jagged()[5], IndexError, "out of bounds"),
    (lambda: jagged().T, RuntimeError, "not supported on the batch dimension"),
    (lambda: nested.narrow(A, 1, torch.tensor([0, 1, 2]), 1, layout=torch.jagged), RuntimeError,
     "must broadcast"),
    (lambda: torch.utils.data.default_collate([jagged(), jagged()]), RuntimeError,
     "default collate_fn"),
    (lambda: nested.to_packed(nested.nested_tensor([A, A[:0]], layout=torch.jagged)),
     RuntimeError, "at least 1"),
    (lambda: A.to_padded_tensor(0.0), NotImplementedError, "expected a nested tensor"),
    (lambda: nested.nested_tensor([A, B]).size(1), RuntimeError, "is irregular"),
    (lambda: nested.nested_tensor([A, B]).transpose(0, 1), RuntimeError, "dimension 0"),
    (lambda: torch._nested_tensor_from_mask(torch.ones(1, 2, 3), torch.tensor([[False, True]])),
     RuntimeError, "left-aligned"),
    *[(lambda f=f, layout=layout: f([A, A.to("meta")], layout=layout), RuntimeError, "same device")
      for f in (nested.nested_tensor, nested.as_nested_tensor)
      for layout in (torch.strided, torch.jagged)],
    (lambda: nested.nested_tensor_from_jagged(A, torch.tensor([0, 2]).to("meta")), AssertionError,
     "values and offsets must be on the same device"),
    (lambda: nested.narrow(A, 1, torch.tensor([0, 1]).to("meta"), 1, layout=torch.jagged),
     RuntimeError, "start is on meta"),
])
def test_refusals(make, kind, said):
    with pytest.raises(kind, match=said) as caught:
        make()
    assert "test_tensors.py" in str(caught.value)


def test_writes():
    x = jagged()
    values = x.values()
    x.mul_(2).add_(1)
    assert torch.equal(values[:2], A * 2 + 1)
    x[0] = 0.0
    assert not values[:2].any() and values[2:].any()
    x[..., 1] = 7.0
    assert (values[:, 1] == 7).all()
    x.copy_(jagged())
    assert torch.equal(values[:2], A)
    x.zero_()
    assert not values.any()
    leaf = jagged(requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        leaf.mul_(2)
    y = leaf * 1
    y.mul_(torch.full_like(y, 3.0))
    y.values().sum().backward()
    assert (leaf.grad.values() == 3).all()
    leaf.grad = None
    (leaf * leaf).values().sum().backward()
    assert leaf.grad.layout is torch.jagged and leaf.grad.shape == leaf.shape


@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
def test_what_is_written_in_place_fits(layout):
    x = nested.nested_tensor([torch.tensor([[1], [2]]), torch.tensor([[3]])], layout=layout)
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        x.div_(2)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x.add_(torch.ones(3, dtype=torch.int64))
    assert x.mul_(2).tolist() == [[[2], [4]], [[6]]]
    assert x.gt_(3).dtype is torch.int64 and x.tolist() == [[[0], [1]], [[1]]]
    assert x.to(torch.float32).div_(2).tolist() == [[[0], [0.5]], [[0.5]]]


def test_gradients_are_nested_and_can_be_given():
    x = jagged(requires_grad=True)
    (x * x).backward(torch.ones_like(x))
    assert torch.equal(x.grad.values(), 2 * x.detach().values())
    (g,) = torch.autograd.grad(x.sin(), x, torch.full_like(x, 2.0))
    assert g.is_nested and torch.allclose(g.values(), 2 * x.detach().values().cos())
    values = x.values().detach().double().requires_grad_()
    offsets = x.offsets()
    assert torch.autograd.gradcheck(lambda v: nested.nested_tensor_from_jagged(
        v, offsets).softmax(1).to_padded_tensor(0.5), (values,), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(lambda v: nested.nested_tensor_from_jagged(
        v, offsets).softmax(1).to_padded_tensor(0.5), (values,))


def test_copies():
    x = jagged(requires_grad=True)
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x.detach())), x.clone(),
                  copy.copy(x)):
        assert torch.equal(other.detach(), x.detach()) and other.is_nested
    assert x.to(torch.float64).dtype is torch.float64 and x.to("cpu") is not None
    assert x.half().dtype is torch.float16 and x.detach().requires_grad is False


def test_empty_parts_and_batches():
    x = nested.nested_tensor([torch.ones(0, 2), torch.ones(3, 2)], layout=torch.jagged)
    assert x.sum(1).tolist() == [[0, 0], [3, 3]] and x.softmax(1).values().shape == (3, 2)
    assert x.amax(1)[0].tolist() == [float("-inf")] * 2 and x.mean(1)[0].isnan().all()
    assert x.to_padded_tensor(0.0).shape == (2, 3, 2) and x.cumsum(1).values().shape == (3, 2)
    none = nested.nested_tensor_from_jagged(torch.ones(0, 2), torch.tensor([0]))
    assert len(none) == 0 and (none * 2).values().shape == (0, 2) and none.sum(1).shape == (0, 2)
    assert none.unbind() == () or none.unbind() == []
    zeros = nested.nested_tensor_from_jagged(torch.ones(0, 2), torch.tensor([0, 0, 0]))
    assert zeros.to_padded_tensor(1.0).shape == (2, 0, 2) and zeros.sum(1).tolist() == [[0, 0]] * 2


@pytest.mark.parametrize("dtype", [torch.complex128, torch.int64, torch.bool, torch.float16])
def test_dtypes(dtype):
    parts = [(A * 2 - 5).to(dtype), (B - 4).to(dtype)]
    x = nested.nested_tensor(parts, layout=torch.jagged)
    assert x.dtype is dtype
    for f in (lambda p, d: p.sum(d), lambda p, d: (p == p).any(d), lambda p, d: p.count_nonzero(d)):
        for got, part in zip(f(x, 1), parts):
            assert torch.allclose(got, f(part, 0)) and got.dtype is f(part, 0).dtype
    if dtype is torch.complex128:
        for layout in (torch.jagged, torch.strided):
            y = nested.nested_tensor([p * (1 + 2j) for p in parts], layout=layout)
            assert torch.equal(y.mH[1], y[1].mH) and torch.equal(y.mT[1], y[1].mT)
        assert torch.allclose(x.var(1)[1], parts[1].var(0)) and torch.allclose(
            x.norm(dim=1)[1], parts[1].norm(dim=0))
    else:
        assert torch.equal(x.amax(1)[1], parts[1].amax(0))
        assert torch.equal(x.argmax(1)[1], parts[1].long().argmax(0))
        assert torch.equal(x.sort(1)[0][1], parts[1].sort(0)[0])


def test_indexing():
    x = jagged()
    assert torch.equal(x[0], A) and torch.equal(x[-1], B) and torch.equal(x[1, 2], B[2])
    assert torch.equal(x[1, :, 0], B[:, 0]) and torch.equal(x[:, 0], torch.stack([A[0], B[0]]))
    assert x[..., 0].tolist() == [A[:, 0].tolist(), B[:, 0].tolist()]
    assert x[1:].tolist() == [B.tolist()] and x[::2].tolist() == [A.tolist()]
    assert x[[1, 0]].tolist() == [B.tolist(), A.tolist()]
    assert x[torch.tensor([False, True])].tolist() == [B.tolist()]
    assert x[:, None].shape == (2, 1, x.size(1), 3) and x[:, 1:].tolist() == [
        A[1:].tolist(), B[1:].tolist()]
    assert x[x > 5].tolist() == [A[A > 5].tolist(), B[B > 5].tolist()]
    assert torch.cat([x, x[:1]]).tolist() == [*x.tolist(), A.tolist()]
    assert [len(c) for c in x.chunk(2)] == [1, 1] and x.split([1, 1])[1].tolist() == [B.tolist()]
    y = torch.index_put(x, (torch.tensor([0, 1]), torch.tensor([1, 3])), torch.tensor(-1.0))
    assert y[0][1].tolist() == [-1, -1, -1] and y[1][3, 0] == -1 and y[1][0].tolist() == [0, 1, 2]


def test_losses_and_files(tmp_path):
    x, y = jagged(), jagged() * 2
    f = torch.nn.functional
    for loss in (f.mse_loss, f.l1_loss, f.smooth_l1_loss, f.huber_loss):
        for reduction in ("mean", "sum"):
            assert torch.allclose(loss(x, y, reduction=reduction),
                                  loss(x.values(), y.values(), reduction=reduction))
    for t in (x, nested.nested_tensor([A, B])):
        torch.save({"x": t}, tmp_path / "file.pt")
        assert torch.equal(torch.load(tmp_path / "file.pt", weights_only=False)["x"], t)
    torch.testing.assert_close(x, x.clone())
    assert torch.nn.Parameter(x).requires_grad
    assert isinstance(x.size(1), torch.SymInt)
    assert torch.nested is nested and [t.shape for t in torch.broadcast_tensors(
        x, torch.ones(3))] == [x.shape] * 2


def test_packed_sequences():
    rnn = torch.nn.utils.rnn
    torch.manual_seed(0)
    parts = [torch.randn(n, 3, requires_grad=True) for n in (2, 5, 3, 5, 1)]
    x = nested.as_nested_tensor(parts, layout=torch.jagged)
    ours, theirs = nested.to_packed(x), rnn.pack_sequence(parts, enforce_sorted=False)
    for name in ("data", "batch_sizes", "sorted_indices", "unsorted_indices"):
        assert torch.equal(getattr(ours, name), getattr(theirs, name)), name
    assert torch.equal(nested.from_packed(theirs).detach(), x.detach())
    ordered = sorted(parts, key=len, reverse=True)
    back = nested.from_packed(rnn.pack_sequence(ordered))
    assert all(torch.equal(a, b) for a, b in zip(back.unbind(), ordered))
    gru = torch.nn.GRU(3, 4)
    out = nested.from_packed(gru(ours)[0])
    want = [gru(p.unsqueeze(1))[0].squeeze(1) for p in parts]
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(out.unbind(), want))
    found = torch.autograd.grad(out.values().sum(), parts)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(
        found, torch.autograd.grad(torch.cat(want).sum(), parts)))


def test_loaders_take_a_function_for_batches():
    def rows(numbers):
        return nested.nested_tensor([torch.ones(n, 2) for n in numbers], layout=torch.jagged)

    loader = torch.utils.data.DataLoader([1, 2, 3, 4], batch_size=2, collate_fn=rows)
    assert [b.offsets().tolist() for b in loader] == [[0, 1, 3], [0, 3, 7]]
    joined = torch.utils.data.DataLoader([rows([1]), rows([2, 3])], batch_size=2,
                                         collate_fn=torch.cat)
    assert [b.offsets().tolist() for b in joined] == [[0, 1, 3, 6]]


def test_compiled_functions_ask_whether_lengths_are_equal():
    """What a capture cannot know is asked when the function runs as it is written."""
    x, offsets = jagged(), torch.tensor([0, 2, 6])

    def product(x, values):
        return x * nested.nested_tensor_from_jagged(values, offsets)

    for run in (product, torch.compile(product)):
        assert torch.equal(run(x, x.values()), x * x)


def test_vmap_over_parts():
    x = jagged()
    assert torch.allclose(func.vmap(lambda p: p.sum(0))(x), x.sum(1))
    out = func.vmap(lambda p, s: p * s)(x, torch.tensor([2.0, 3.0]))
    assert out.is_nested and out.tolist() == [(A * 2).tolist(), (B * 3).tolist()]
    grads = func.vmap(func.grad(lambda p: p.sin().sum()))(x)
    assert torch.allclose(grads.values(), x.values().cos())


def test_vmap_over_dense_dims():
    x = jagged()
    assert torch.allclose(func.vmap(lambda c: c.sum(1), in_dims=2, out_dims=1)(x), x.sum(1))
    out = func.vmap(lambda c: c.softmax(1), in_dims=2, out_dims=2)(x)
    assert out.shape == x.shape and torch.allclose(out.values(), x.softmax(1).values())
    front = x.transpose(1, 2)
    out = func.vmap(lambda c, s: c * s, in_dims=(1, 0), out_dims=1)(front, torch.arange(3.0))
    assert out.shape == front.shape and torch.equal(
        out.values(), front.values() * torch.arange(3.0)[:, None])
    scaled = func.vmap(lambda s: x * s, out_dims=-1)(torch.arange(2.0))
    assert scaled.shape == (*x.shape, 2) and torch.equal(scaled[..., 1].values(), x.values())
    for call in (lambda: func.vmap(lambda s: x * s)(torch.arange(2.0)),
                 lambda: func.vmap(lambda c: c.sum(0), in_dims=1)(x)):
        with pytest.raises(RuntimeError, match="vmap"):
            call()


def test_operators_of_the_table():
    aten = torch.ops.aten
    values, offsets = torch.arange(6.0), torch.tensor([0, 2, 6])
    x = aten._nested_view_from_jagged(values, offsets, aten._nested_get_jagged_dummy(values))
    assert x.tolist() == [[0, 1], [2, 3, 4, 5]]
    assert aten._nested_get_values(x).data_ptr() == values.data_ptr()
    assert aten._nested_get_values_copy(x).data_ptr() != values.data_ptr()
    assert aten._nested_get_offsets(x) is offsets and aten._nested_get_ragged_idx(x) == 1
    assert aten._nested_get_max_seqlen(x).shape == (4, 0)
    assert aten._nested_get_min_seqlen(x).shape == (2, 0)
    assert aten.to_padded_tensor(x, 0.0).shape == (2, 4)
    assert aten._nested_from_padded_tensor(aten.to_padded_tensor(x, 0.0), offsets,
                                           x).tolist() == x.tolist()
    assert aten._nested_view_from_jagged_copy(values, offsets, x).tolist() == x.tolist()
    sizes, strides = torch.tensor([[2, 1], [2, 2]]), torch.tensor([[1, 1], [2, 1]])
    for name in ("_nested_view_from_buffer", "_nested_view_from_buffer_copy"):
        y = getattr(aten, name)(values, sizes, strides, torch.tensor([0, 2]))
        assert y.tolist() == [[[0], [1]], [[2, 3], [4, 5]]]
    turned = aten._nested_view_from_buffer(values, sizes, torch.tensor([[1, 1], [1, 2]]),
                                           torch.tensor([0, 2]))
    assert turned.tolist() == [[[0], [1]], [[2, 4], [3, 5]]]
    assert aten._nested_tensor_size(y).tolist() == sizes.tolist()
    assert aten._nested_tensor_storage_offsets(y).tolist() == [0, 2]
    padded = torch.arange(8.0).reshape(2, 2, 2)
    assert aten._nested_from_padded(padded, sizes).tolist() == [[[0], [2]], [[4, 5], [6, 7]]]
    heads = aten._nested_from_padded(padded.reshape(1, 2, 2, 2), torch.tensor([[1, 4]]), True)
    assert heads.tolist() == [[[0, 1, 4, 5]]]
    mask = torch.tensor([[True, False], [True, True]])
    assert aten._nested_tensor_from_mask(padded, mask).tolist() == [[[0, 1]], [[4, 5], [6, 7]]]
    assert aten._nested_tensor_from_mask_left_aligned(padded, mask) is True
    for layout in (torch.jagged, torch.strided):
        t = nested.nested_tensor([A, B], layout=layout)
        for keep, grad in ((True, t.sum(-1, keepdim=True)), (False, t.sum(-1))):
            found = aten._nested_sum_backward(grad, t, [-1], keep)
            assert torch.equal(found[1], B.sum(-1, keepdim=True).expand(4, 3))
        found = aten._nested_tensor_softmax_with_shape(torch.zeros(2, 1, 4, 4), t)
        assert found[0, 0].tolist() == [[0.5, 0.5, 0, 0]] * 2 + [[0] * 4] * 2
        assert (found[1] == 0.25).all()
    made = aten._nested_tensor_from_tensor_list([A, B])
    assert made.layout is torch.strided and made.tolist() == [A.tolist(), B.tolist()]


def test_gradients_of_the_operators_of_the_table():
    aten = torch.ops.aten
    v = torch.arange(6.0, dtype=torch.float64).requires_grad_()
    offsets = torch.tensor([0, 2, 6])
    dummy = aten._nested_get_jagged_dummy(v)
    sizes, strides = torch.tensor([[2, 1], [2, 2]]), torch.tensor([[1, 1], [2, 1]])
    starts = torch.tensor([0, 2])
    mask = torch.tensor([[True, False, False], [True, True, False]])
    for make in (
            lambda v: aten._nested_view_from_jagged(v, offsets, dummy),
            lambda v: aten._nested_from_padded_tensor(v.reshape(2, 3), torch.tensor([0, 1, 4]),
                                                      dummy),
            lambda v: aten._nested_view_from_buffer(v, sizes, strides, starts),
            lambda v: aten._nested_from_padded(v.reshape(2, 3), torch.tensor([[1], [3]])),
            lambda v: aten._nested_tensor_from_mask(v.reshape(2, 3, 1), mask),
            lambda v: aten._nested_tensor_from_tensor_list([v[:2], v[2:]])):
        for out in (lambda v: aten.to_padded_tensor((make(v) * make(v)), 0.0),
                    lambda v: aten._nested_get_values_copy(make(v).sin())):
            assert torch.autograd.gradcheck(out, (v,), check_forward_ad=True)
            assert torch.autograd.gradgradcheck(out, (v,))


def test_strided_layout():
    x = nested.nested_tensor([A, B], requires_grad=True)
    assert x.layout is torch.strided and x.is_nested and x.numel() == 18 and x.size(-1) == 3
    assert repr(nested.nested_tensor([torch.tensor([1.0]), torch.tensor([2.0, 3.0])])) == (
        "nested_tensor([\n  tensor([1.]),\n  tensor([2., 3.])\n])")
    assert repr(nested.nested_tensor([])) == "nested_tensor([\n\n])"
    assert repr(nested.nested_tensor([torch.tensor([1.0])], requires_grad=True)) == (
        "nested_tensor([\n  tensor([1.], requires_grad=True)\n], requires_grad=True)")
    (x * x).values().sum().backward()
    assert torch.equal(x.grad.unbind()[0], 2 * A)
    y = nested.nested_tensor([A, torch.ones(4, 5)])
    assert y.to_padded_tensor(1.0).shape == (2, 4, 5)
    assert y.to_padded_tensor(1.0, (2, 6, 6)).shape == (2, 6, 6)
    assert (y + y).is_same_size(y) and not y.is_same_size(x)
    assert len(nested.nested_tensor([])) == 0
    other = pickle.loads(pickle.dumps(y))
    assert torch.equal(other, y)
    y.mul_(2)
    assert torch.equal(y[0], A * 2)
    assert nested.narrow(B, 1, 0, 2).tolist() == B[:, :2].tolist()


def test_what_is_not_ragged_needs_no_padding():
    """Memory and time of attention follow the squares of the lengths, not of the longest."""
    from pullback.nested.groups import grouped
    from pullback.nested.ragged import lengths_of

    lengths = [500] + [10] * 63
    about = lengths_of(torch.tensor([0, *lengths]).cumsum(0))
    groups = grouped([about], [about.longest], 2)
    padded = sum(g.longest[0] ** 2 * len(g.members) for g in groups)
    assert padded <= 1.5 * sum(n * n for n in lengths)


@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
def test_memory(layout):
    x = nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)], layout=layout)
    assert x.untyped_storage().nbytes() == 36 and not x.is_shared()
    assert x.share_memory_() is x and x.is_shared()


def test_parts_of_other_dtypes():
    """In the strided layout all become what the first is, else they are refused."""
    for first, other in ((torch.float32, torch.float64), (torch.float64, torch.float32),
                         (torch.int64, torch.float32)):
        parts = [torch.ones(2, dtype=first), torch.full((3,), 1.5, dtype=other)]
        found = nested.nested_tensor(parts)
        assert found.dtype == first and torch.equal(found.unbind()[1], parts[1].to(first))
        with pytest.raises(RuntimeError, match="same dtype"):
            nested.nested_tensor(parts, layout=torch.jagged)
