"""Storages, `set_`, `resize_`, `.data`, and what copies and pickles of tensors share."""

import copy
import gc
import pickle
import warnings

import numpy as np
import pytest

import pullback as torch


def shares(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def test_one_storage_for_all_who_show_it():
    x = torch.arange(6.0)
    s = x.untyped_storage()
    for alias in (x, x[2:], x.view(2, 3).t(), x.detach(), x.data, x.expand(2, 6)):
        assert alias.untyped_storage() is s
    assert x.clone().untyped_storage() is not s
    assert (s.nbytes(), s.size(), len(s), s.element_size()) == (24, 24, 24, 1)
    assert s.data_ptr() == x.data_ptr() and x[2:].data_ptr() == s.data_ptr() + 8
    assert s._cdata == x[1:].untyped_storage()._cdata and str(s.device) == "cpu"
    assert torch.is_storage(s) and not torch.is_storage(x) and isinstance(s, torch.UntypedStorage)


def test_bytes():
    x = torch.tensor([1.0, 2.0])
    s = x.untyped_storage()
    assert s.tolist() == list(np.array([1, 2], np.float32).tobytes())
    assert s[3] == 63 and s[-1] == 64 and list(s)[:2] == [0, 0] and s[2:4].tolist() == [128, 63]
    s[7] = 65
    assert x[1].item() == 8.0
    other = s.clone()
    assert other is not s and other.tolist() == s.tolist()
    other.fill_(0)
    s.copy_(other)
    assert x.tolist() == [0, 0]
    for bad, error in (
        (lambda: s[8], IndexError),
        (lambda: s["a"], TypeError),
        (lambda: s.copy_(torch.UntypedStorage(3)), RuntimeError),
        (lambda: torch.UntypedStorage(1.5), RuntimeError),
        (lambda: s.resize_(-1), RuntimeError),
    ):
        with pytest.raises(error):
            bad()
    assert torch.UntypedStorage([1, 2, 3]).tolist() == [1, 2, 3]
    one = torch.UntypedStorage(1)
    assert repr(one) == " 0\n[torch.storage.UntypedStorage(device=cpu) of size 1]"
    assert torch.UntypedStorage.from_buffer(b"ab").tolist() == [97, 98]


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.complex64, torch.bool])
def test_resized_memory_keeps_its_content_and_its_tensors(dtype):
    x = torch.arange(6).to(dtype)
    before = x.clone()
    part, alias, other = x[2:4], x.detach(), x.data
    s = x.untyped_storage()
    s.resize_(10 * x.element_size())
    assert s is x.untyped_storage() and all(shares(x, t) for t in (part, alias, other))
    assert x.shape == (6,) and (x == before).all() and (part == before[2:4]).all()
    assert x.untyped_storage().nbytes() == 10 * x.element_size()
    alias.fill_(1)
    assert (part == 1).all() and (other == 1).all()


def test_memory_given_away_and_taken_back():
    x = torch.arange(4.0)
    x.untyped_storage().resize_(0)
    assert x.untyped_storage().size() == 0 and x.shape == (4,)
    assert x.untyped_storage().data_ptr() == 0
    x.untyped_storage().resize_(16)
    x.copy_(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    assert x.tolist() == [1, 2, 3, 4] and x.untyped_storage().nbytes() == 16


def test_resize():
    x = torch.arange(6.0)
    part, alias, data = x[2:4], x.detach(), x.data
    x.resize_(2, 2)
    assert x.tolist() == [[0, 1], [2, 3]] and x.untyped_storage().nbytes() == 24
    assert (x._version, part._version, alias._version, data._version) == (1, 1, 1, 0)
    x.resize_(3, 4)
    assert x.flatten()[:6].tolist() == [0, 1, 2, 3, 4, 5] and x.untyped_storage().nbytes() == 48
    assert shares(x, alias) and alias.shape == (6,)
    alias.add_(1)
    assert x[0, 0].item() == 1 and part.tolist() == [3, 4]
    part.resize_(6)  # from where it begins
    assert part.tolist()[:4] == [3, 4, 5, 6] and part._base is x and part.storage_offset() == 2
    t = torch.ones(2, 3).t()
    assert t.resize_(3, 2).stride() == (1, 3) and t.resize_(2, 3).stride() == (3, 1)
    assert torch.ones(2).resize_as_(torch.ones(3, 3)).shape == (3, 3)
    for tracked in (torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True) * 1):
        with pytest.raises(RuntimeError, match="require grad"):
            tracked.resize_(2)


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized:UserWarning")
def test_memory_that_others_show_stays_where_it_is():
    array = np.ones(2)
    mine, shown = torch.from_numpy(array), torch.ones(3)
    shown.numpy()
    for t in (mine, mine.detach(), shown):
        assert not t.untyped_storage().resizable()
        with pytest.raises(RuntimeError, match="not resizable"):
            t.resize_(9)
        with pytest.raises(RuntimeError, match="not resizable"):
            torch.add(torch.ones(9), 1, out=t)
        assert t.resize_(1).shape == (1,)
    printed = torch.ones(3)
    repr(printed), printed.tolist()
    assert printed.untyped_storage().resizable()


def test_out_grows_in_its_memory():
    buffer = torch.ones(4, 4)
    part = buffer[:2]
    with pytest.warns(UserWarning, match="was resized"):
        torch.add(torch.ones(3), 1, out=part)
    assert part.shape == (3,) and part._base is buffer
    assert buffer.flatten()[:4].tolist() == [2, 2, 2, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        empty = torch.empty(0)
        torch.add(torch.ones(3), 1, out=empty)
    assert empty.tolist() == [2, 2, 2] and empty._version == 1


def test_set():
    x, y = torch.arange(6.0), torch.ones(2, 3)
    v = x[1:]
    assert x.set_(y) is x and x.shape == (2, 3) and shares(x, y)
    assert (x._version, v._version, y._version) == (1, 1, 0) and v.tolist() == [1, 2, 3, 4, 5]
    x.mul_(2)
    assert y.sum().item() == 12 and y._version == 0 and v._base is x
    line = torch.arange(8.0)
    assert x.set_(line.untyped_storage(), 2, (2, 2), (3, 1)).tolist() == [[2, 3], [5, 6]]
    assert x.set_(line.untyped_storage(), 2, (2, 2)).tolist() == [[2, 3], [4, 5]]
    assert x.set_(line, 2, (2,), (1,)).tolist() == [2, 3]
    assert x.set_(line.untyped_storage()).tolist() == line.tolist()
    assert x.set_(line.untyped_storage(), 0, (20,)).untyped_storage().nbytes() == 80
    assert shares(x, line) and line.shape == (8,)
    assert x.set_().shape == (0,) and x.untyped_storage().nbytes() == 0
    leaf = torch.ones(3, requires_grad=True)
    for bad, error in (
        (lambda: x.set_(torch.arange(3)), RuntimeError),
        (lambda: x.set_(3), TypeError),
        (lambda: x.set_(line.untyped_storage(), -1, (2,)), RuntimeError),
        (lambda: leaf.set_(torch.ones(2)), RuntimeError),
    ):
        with pytest.raises(error):
            bad()
    with torch.no_grad():
        leaf.set_(torch.ones(2))
    assert leaf.is_leaf and leaf.requires_grad and leaf.shape == (2,)
    (leaf * 3).sum().backward()
    assert leaf.grad.tolist() == [3, 3]
    lost = (leaf * 1).set_(torch.ones(2))
    with pytest.raises(NotImplementedError, match="set_"):
        lost.sum().backward()


def test_data():
    x = torch.ones(3, requires_grad=True)
    alias = x.data
    alias.mul_(2)
    assert x.tolist() == [2, 2, 2] and x._version == 0 and not alias.requires_grad
    x.data = torch.zeros(2)
    assert x.shape == (2,) and x.requires_grad and x._version == 0
    (x + 1).sum().backward()
    assert x.grad.tolist() == [1, 1]
    base = torch.zeros(4)
    view = base[1:]
    view.add_(1)
    view.data = torch.ones(2)
    assert view._base is base and view._version == 1
    for bad, error in (
        (lambda: setattr(x, "data", 3), TypeError),
        (lambda: setattr(x, "data", torch.arange(2)), RuntimeError),
        (lambda: delattr(x, "data"), RuntimeError),
    ):
        with pytest.raises(error):
            bad()


def test_typed_storages():
    x = torch.arange(4.0)
    with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
        s = x.storage()
    assert (len(s), s.nbytes(), s.dtype, s[1], s.tolist()) == (
        4, 16, torch.float32, 1.0, [0, 1, 2, 3])  # fmt: skip
    s[0] = 9
    assert x[0].item() == 9 and s._untyped_storage is x.untyped_storage()
    s.resize_(6)
    assert x.untyped_storage().nbytes() == 24 and s.type() == "torch.FloatStorage"
    assert isinstance(s, torch.FloatStorage) and not isinstance(s, torch.DoubleStorage)
    assert s.double().dtype is torch.float64 and x.storage_type() is torch.FloatStorage
    with pytest.raises(RuntimeError, match="slices"):
        s[1:2]
    with pytest.warns(UserWarning):
        made = torch.LongStorage([1, 2])
    assert made.dtype is torch.int64 and made.tolist() == [1, 2] and made == made


def test_pickles_of_earlier_versions_find_their_functions():
    x = torch.arange(6.0).view(2, 3)
    new = pickle.dumps((x, x[1]), protocol=0)
    old = new.replace(b"cpullback.tensor.pickling\n", b"cpullback.storage\n")
    assert old != new
    whole, row = pickle.loads(old)
    assert shares(whole, row) and row.tolist() == [3, 4, 5]
    row.zero_()
    assert whole[1].tolist() == [0, 0, 0]
    with pytest.raises(AttributeError, match="no attribute 'elsewhere'"):
        torch.storage.elsewhere


def test_copies_and_pickles_share_what_was_shared():
    b = torch.arange(6.0)
    for again in (copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))):
        b2, v2, t2 = again((b, b[1:4], b.view(2, 3).t()))
        assert shares(b2, v2) and shares(b2, t2) and not shares(b, b2)
        assert t2.stride() == (1, 3) and v2.storage_offset() == 1 and v2._base is None
        v2.zero_()
        assert b2.tolist() == [0, 0, 0, 0, 4, 5] and b.sum().item() == 15
    leaf = torch.ones(2, requires_grad=True)
    leaf.note = "mine"
    leaf.grad = torch.ones(2)
    other = copy.deepcopy(leaf)
    assert other.requires_grad and other.note == "mine" and other.grad.tolist() == [1, 1]
    assert other.grad is not leaf.grad
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(leaf * 1)
    again = pickle.loads(pickle.dumps(leaf * 2))
    assert again.requires_grad and again.is_leaf and again.tolist() == [2, 2]
    both = [leaf, leaf]
    one, two = copy.deepcopy(both)
    assert one is two
    s, t = copy.deepcopy((b.untyped_storage(), b))
    assert t.untyped_storage() is s


def test_shared_memory():
    x = torch.arange(3.0)
    v = x[1:]
    assert not x.is_shared() and x.share_memory_() is x
    assert x.is_shared() and v.is_shared() and shares(x, v) and v.tolist() == [1, 2]


def test_swap():
    swap = torch.utils.swap_tensors
    a, b = torch.nn.Parameter(torch.ones(2)), torch.zeros(3)
    a.note = 1
    holder = [a]
    swap(a, b)
    assert type(a) is torch.Tensor and type(b) is torch.nn.Parameter and b.note == 1
    assert holder[0].tolist() == [0, 0, 0] and b.requires_grad and not a.requires_grad
    (b * 2).sum().backward()
    assert b.grad.tolist() == [2, 2] and a.grad is None


def test_versions_by_hand():
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    z = y * y
    with torch.autograd._unsafe_preserve_version_counter(y):
        y.detach().mul_(2)
    assert y._version == 0
    z.sum().backward()  # nobody noticed
    assert x.grad.tolist() == [4, 4]
    torch.autograd.graph.increment_version([y, y])
    assert y._version == 2
    with pytest.raises(RuntimeError):
        torch.autograd.graph.increment_version(3)


def test_rules_of_grad_and_flags():
    x = torch.ones(3, requires_grad=True)
    for value, error in (
        (3, TypeError), (torch.ones(2), RuntimeError), (x, RuntimeError),
        (torch.ones(3, dtype=torch.float64), RuntimeError),
    ):  # fmt: skip
        with pytest.raises(error):
            x.grad = value
    x.grad = torch.ones(3)
    del x.grad
    assert x.grad is None
    with pytest.raises(RuntimeError, match="bool"):
        x.requires_grad = None
    with pytest.raises(RuntimeError, match="leaf variables"):
        (x * 1).requires_grad = True
    for name in ("grad_fn", "is_leaf", "_base", "shape", "dtype", "_version"):
        with pytest.raises(AttributeError):
            setattr(x, name, None)
    assert x.is_set_to(x.view(3)) and not x.is_set_to(x.clone()) and not x.is_pinned()
    assert x.pin_memory() is x


def test_storages_do_not_keep_memory():
    import weakref

    x = torch.ones(1000)
    s = x.untyped_storage()
    seen = weakref.ref(s)
    del s
    gc.collect()
    assert seen() is None and x.untyped_storage().nbytes() == 4000


def test_tensors_follow_memory_that_has_moved():
    """Each when it is looked at; afterwards reading the data of a tensor is what it was before."""
    plain = vars(torch.Tensor)["_payload"]
    x = torch.arange(4.0)
    part, twice, row = x[1:3], x.detach(), x.view(2, 2)[1]
    deep = part[1:]
    x.resize_(100)
    part.mul_(10)
    assert x[:4].tolist() == [0, 10, 20, 3] and deep.tolist() == [20] and (twice + 0)[1] == 10
    x.untyped_storage().resize_(4000)  # again, before `row` was looked at
    row.fill_(7)
    assert x[:4].tolist() == [0, 10, 7, 7] and deep.item() == 7 and shares(x, deep)
    assert all(shares(x, t) for t in (part, twice, row)) and part.storage_offset() == 1
    assert vars(torch.Tensor)["_payload"] is plain
    y = torch.ones(3)
    kept = y.data
    y.resize_(50)
    assert vars(torch.Tensor)["_payload"] is not plain
    kept.zero_()
    assert y[:3].tolist() == [0, 0, 0] and vars(torch.Tensor)["_payload"] is plain
    y.resize_(200)
    assert vars(torch.Tensor)["_payload"] is not plain  # `kept` shows the old place
    del kept
    assert vars(torch.Tensor)["_payload"] is plain


def test_members_of_subclasses_follow_memory_that_has_moved():
    class Mine(torch.Tensor):
        pass

    x = torch.zeros(2)
    mine = x.as_subclass(Mine)
    x.resize_(50)
    mine.add_(1)
    assert x[:2].tolist() == [1, 1] and type(mine + 1) is Mine and shares(x, mine)


def test_memory_that_becomes_less_stays_where_it_is():
    x = torch.arange(1.0, 5.0)
    s, place = x.untyped_storage(), x.data_ptr()
    s.resize_(8)
    assert x.tolist() == [1, 2, 0, 0] and len(s) == 8 and len(s.tolist()) == 8
    s.resize_(12)
    s.resize_(16)
    assert x.tolist() == [1, 2, 0, 0] and x.data_ptr() == place and len(s) == 16
    s.resize_(20)
    assert x.tolist() == [1, 2, 0, 0] and len(s.tolist()) == 20
