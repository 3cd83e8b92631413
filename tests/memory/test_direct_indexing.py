"""`x[key]` without a record goes to NumPy at once: same elements, layouts, versions and errors."""

import pytest

import pullback as pb
from pullback.memory import direct_indexing as direct_items

ROWS, COLUMNS = pb.tensor([2, 0, -1, 2]), pb.tensor([1, 1, 0, -2], dtype=pb.int32)
MASK = pb.tensor([True, False, True, True])
KEYS = {
    "rows": ROWS, "two dims of rows": pb.tensor([[0, 1], [3, -4]]), "mask": MASK,
    "pairs": (ROWS, COLUMNS), "mask of all": pb.arange(12).reshape(4, 3) % 3 > 0,
    "columns": (slice(None), COLUMNS), "mask and columns": (MASK, pb.tensor([0, 1, 2])),
    "nothing": pb.zeros(0, dtype=pb.int64), "one in a tuple": (ROWS,),
}


def make(transposed: bool = False) -> pb.Tensor:
    x = pb.arange(12.0).reshape(3, 4).t() if transposed else pb.arange(12.0).reshape(4, 3)
    return x * 1


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("key", KEYS)
def test_reads_are_those_of_the_operators(key, transposed):
    x = make(transposed)
    expected = make(transposed).requires_grad_()[KEYS[key]]  # recorded: by operators
    found = x[KEYS[key]]
    assert pb.equal(found, expected) and found.stride() == expected.stride()
    assert found._base is None and found.data_ptr() != x.data_ptr()
    assert transposed or direct_items.read(x, KEYS[key]) is not None


@pytest.mark.parametrize("key", [*KEYS, "number", "slice", "dots", "both"])
def test_writes_are_those_of_the_operators(key):
    more = {"number": 1, "slice": slice(1, None, 2), "dots": (..., 0), "both": (slice(0, 2), -1)}
    key = KEYS.get(key, more.get(key))
    for value in (7, 0.5, pb.tensor(3.0), pb.tensor([[9.0]])):
        x, y = make(), make().requires_grad_()
        view = x.t()
        x[key] = value
        recorded = y * 1
        recorded[key] = value
        assert pb.equal(x, recorded) and x._version == 1 == view._version
        assert pb.equal(view, x.t())


def test_what_was_saved_notices_the_write():
    w, x = pb.ones(3, requires_grad=True), pb.ones(3)
    y = w * x
    x[0] = 2.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_what_needs_more_is_left_to_the_operators():
    leaf = pb.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf[0] = 1.0
    base = leaf * 1
    base[1:][0] = 5.0
    assert base.grad_fn is not None and base.tolist() == [1, 5, 1]
    assert leaf[pb.tensor([0, 1])].requires_grad
    x = make()
    for key in (pb.tensor([4]), pb.tensor([True]), (ROWS, pb.tensor([3])), 4, (0, 3)):
        with pytest.raises(IndexError):
            x[key]
        with pytest.raises(IndexError):
            x[key] = 0.0
    with pytest.raises(RuntimeError):
        x[ROWS] = pb.ones(2)
    assert pb.equal(x, make()) and x._version == 0
    whole = pb.zeros(3, dtype=pb.uint8)
    with pytest.raises(RuntimeError, match="overflow"):
        whole[0] = 300
    with pb.inference_mode():
        assert x[ROWS].is_inference()
    assert pb.func.vmap(lambda row: row[pb.tensor([0, 2])])(x).shape == (4, 2)
