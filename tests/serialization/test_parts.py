"""Files with tensors that are made of parts: nested, sparse, quantised and masked ones.

`content(torch)` is what `tests/data/torch_parts.pt` holds, a file that PyTorch 2.13 wrote;
`python tests/serialization/test_parts.py` writes it anew where PyTorch is installed.
"""

import copy
import io
import pathlib
import pickle

import numpy as np
import pytest

import pullback
from pullback import errors, serialization

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"


def content(torch):
    """One of every kind, with PyTorch's or this package's tensors."""
    def counted(*shape):
        numbers = np.arange(1, 1 + np.prod(shape), dtype=np.float32)
        return torch.from_numpy(numbers.reshape(shape))

    nt, jagged = torch.nested, torch.jagged
    parts = [counted(2, 3), counted(4, 3) * 10, counted(1, 3)]
    ragged = nt.nested_tensor(parts, layout=jagged)
    named = nt.nested_tensor(parts, layout=jagged)
    named.tag = "kept"
    matrix = torch.from_numpy(np.array([[1, 0, 2, 0], [0, 0, 3, 0], [0, 0, 0, 0], [4, 0, 0, 5]],
                                       np.float32))
    tagged = matrix.to_sparse()
    tagged.tag = 3
    scales, zeros = torch.tensor([0.5, 0.25]), torch.tensor([1, 2])
    plain = torch.quantize_per_tensor(counted(2, 3), 0.5, 2, torch.qint8)
    marked = torch.quantize_per_tensor(counted(2), 0.5, 2, torch.quint8)
    marked.tag = "q"
    dynamic = counted(4, 3)
    torch._dynamo.mark_dynamic(dynamic, 0)
    return {
        "jagged": ragged, "jagged twice": ragged * 2, "its values": ragged.values(),
        "jagged leaf": nt.nested_tensor(parts, layout=jagged, requires_grad=True),
        "jagged parameter": torch.nn.Parameter(nt.nested_tensor(parts, layout=jagged)),
        "jagged transposed": ragged.transpose(1, 2),
        "jagged with gaps": nt.nested_tensor_from_jagged(
            counted(7, 2), torch.tensor([0, 3, 7]), torch.tensor([2, 3])),
        "jagged narrowed": nt.narrow(counted(3, 5, 2), 1, torch.tensor([0, 1, 2]),
                                     torch.tensor([5, 2, 1]), layout=jagged),
        "jagged, lengths known": nt.nested_tensor_from_jagged(
            counted(7, 2), torch.tensor([0, 3, 7]), min_seqlen=3, max_seqlen=4),
        "jagged named": named,
        "jagged integers": nt.nested_tensor([torch.tensor([1, 2]), torch.tensor([3])],
                                            layout=jagged),
        "nested": nt.nested_tensor(parts),
        "nested leaf": nt.nested_tensor(parts, requires_grad=True),
        "nested transposed": nt.nested_tensor(parts).transpose(1, 2),
        "nested parameter": torch.nn.Parameter(nt.nested_tensor(parts)),
        "nested sizes": nt.nested_tensor([counted(2, 3), counted(4, 1)]),
        "coo": matrix.to_sparse(), "coo named": tagged,
        "coo uncoalesced": torch.sparse_coo_tensor(
            torch.tensor([[0, 0, 1], [1, 1, 2]]), torch.tensor([1.0, 2.0, 3.0]), (3, 3)),
        "coo hybrid": torch.sparse_coo_tensor(torch.tensor([[0, 2]]), counted(2, 3), (4, 3)),
        "coo parameter": torch.nn.Parameter(matrix.to_sparse()),
        "csr": matrix.to_sparse_csr(), "csc": matrix.to_sparse_csc(),
        "bsr": matrix.to_sparse_bsr((2, 2)), "bsc": matrix.to_sparse_bsc((2, 2)),
        "csr batch": torch.stack([matrix, matrix * 2]).to_sparse_csr(),
        "quantised": plain, "quantised, transposed": plain.t(),
        "quantised parameter": torch.nn.Parameter(plain, requires_grad=False),
        "quantised named": marked,
        "qint32": torch.quantize_per_tensor(counted(2, 3), 0.5, 2, torch.qint32),
        "channels": torch.quantize_per_channel(counted(2, 3), scales, zeros, 0, torch.qint8),
        "channels, real": torch.quantize_per_channel(
            counted(2, 3), scales, torch.tensor([0.5, 1.0]), 0, torch.quint8),
        "channels, four bits": torch.quantize_per_channel(
            counted(2, 4), scales, torch.tensor([0.5, 1.0]), 0, torch.quint4x2),
        "dynamic": dynamic,
    }  # fmt: skip


def described(v):
    """What there is to know of a tensor, the same for both packages."""
    def name(x):
        return str(x).rsplit(".", 1)[-1]

    is_param = type(v).__name__ == "Parameter" or bool(getattr(v, "_is_param", False))
    facts = [name(v.dtype), name(v.layout), v.requires_grad, getattr(v, "tag", None), is_param]
    v = v.detach()
    if v.is_nested and name(v.layout) == "jagged":
        lengths = v.lengths()
        return [*facts, v.values().tolist(), v.offsets().tolist(),
                None if lengths is None else lengths.tolist(), v._ragged_idx]
    if v.is_nested:
        return [*facts, [p.tolist() for p in v.unbind()]]
    facts.append(list(v.shape))
    if v.is_sparse:
        return [*facts, v._indices().tolist(), v._values().tolist(), v.is_coalesced()]
    if name(v.layout).startswith("sparse"):
        return [*facts, v.to_dense().tolist(), list(v.values().shape)]
    if not v.is_quantized:
        return [*facts, v.tolist()]
    facts += [list(v.stride()), v.int_repr().tolist(), v.dequantize().tolist(), name(v.qscheme())]
    if "tensor" in str(v.qscheme()):
        return [*facts, v.q_scale(), v.q_zero_point()]
    scales, zeros = v.q_per_channel_scales(), v.q_per_channel_zero_points()
    return [*facts, scales.tolist(), zeros.tolist(), name(scales.dtype), name(zeros.dtype),
            v.q_per_channel_axis()]


def there_and_back(value, weights_only=True, **options):
    file = io.BytesIO()
    pullback.save(value, file, **options)
    file.seek(0)
    return pullback.load(file, weights_only=weights_only)


@pytest.mark.parametrize("weights_only", [True, False])
def test_a_file_of_pytorch(weights_only):
    got, want = pullback.load(DATA / "torch_parts.pt", weights_only=weights_only), content(pullback)
    assert got.keys() == want.keys()
    for name, value in want.items():
        assert described(got[name]) == described(value), name
    assert got["jagged"].shape == got["jagged twice"].shape
    assert got["jagged"].values().data_ptr() == got["its values"].data_ptr()
    assert serialization.get_unsafe_globals_in_checkpoint(DATA / "torch_parts.pt") == []


@pytest.mark.parametrize("weights_only", [True, False])
def test_a_file_of_ours(weights_only):
    want = content(pullback)
    got = there_and_back(want, weights_only)
    for name, value in want.items():
        assert described(got[name]) == described(value), name
    assert got["jagged"].offsets() is got["jagged twice"].offsets()
    assert got["jagged"].values().data_ptr() == got["its values"].data_ptr()


def test_what_was_read_can_be_used():
    got = pullback.load(DATA / "torch_parts.pt")
    leaf = got["jagged leaf"]
    (leaf * got["jagged"]).sum().backward()
    assert leaf.grad.values().tolist() == got["jagged"].values().tolist()
    got["nested leaf"].values().sum().backward()
    assert got["nested leaf"].grad.values().tolist() == [1.0] * 21
    compiled = pullback.compile(lambda x: x * 2, fullgraph=True)
    assert compiled(got["dynamic"]).sum() == 2 * sum(range(1, 13))
    assert compiled(got["jagged, lengths known"]).values().sum() == 2 * sum(range(1, 15))


def test_the_format_before_zip_files():
    want = {k: v for k, v in content(pullback).items() if not k.startswith("nested")}
    got = there_and_back(want, _use_new_zipfile_serialization=False)
    for name, value in want.items():
        assert described(got[name]) == described(value), name
    with pytest.raises(RuntimeError, match="cannot be read from a file in the format before zip"):
        there_and_back(content(pullback)["nested"], _use_new_zipfile_serialization=False)


def test_masked_tensors_are_read_where_their_class_is_allowed():
    from pullback.masked import MaskedTensor, masked_tensor

    data = pullback.arange(6.0).reshape(2, 3)
    given = masked_tensor(data, data > 2, requires_grad=True)
    given.tag = "kept"
    with pytest.raises(errors.UnsafePickle):
        there_and_back(given)
    with serialization.safe_globals([MaskedTensor]):
        found = [there_and_back(given), there_and_back(given, weights_only=False)]
    for t in found:
        assert type(t) is MaskedTensor and t.requires_grad and t.tag == "kept"
        assert t.get_data().tolist() == data.tolist() and (t.get_mask() == (data > 2)).all()


def test_copies_and_plain_pickles():
    for name, value in content(pullback).items():
        for other in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
            assert described(other) == described(value), name


def damaged(**changes):
    """A jagged tensor whose integers are not what they should be."""
    t = pullback.nested.nested_tensor([pullback.ones(2), pullback.ones(3)], layout=pullback.jagged)
    for name, numbers in changes.items():
        setattr(t, name, numbers)
    return t


@pytest.mark.parametrize("changes", [
    {"offsets_part": pullback.tensor([0, 2, 9])},
    {"offsets_part": pullback.tensor([-1, 2, 5])},
    {"offsets_part": pullback.tensor([0, 4, 2])},
    {"lengths_part": pullback.tensor([2, 4])},
    {"lengths_part": pullback.tensor([2, -1])},
    {"lengths_part": pullback.tensor([2])},
    {"longest_part": pullback.empty(1, 0)},
    {"ragged_idx": 2},
    {"ragged_idx": 0},
    {"offsets_part": pullback.tensor([0.0, 2.0, 5.0])},
    {"offsets_part": pullback.tensor([[0, 2, 5]])},
])  # fmt: skip
def test_damaged_jagged_tensors_are_refused(changes):
    with pytest.raises(errors.FileFormatError, match="nested tensor of the file"):
        there_and_back(damaged(**changes))


@pytest.mark.parametrize("sizes", [((2, 3), (9, 1)), ((10**9, 10**9),), ((-2, 3),)])
def test_damaged_nested_tensors_are_refused(sizes):
    t = pullback.nested.nested_tensor([pullback.ones(2, 3), pullback.ones(4, 1)])
    t.sizes = sizes
    with pytest.raises(errors.FileFormatError, match="nested tensor of the file"):
        there_and_back(t)


@pytest.mark.torch
def test_pytorch_reads_it():
    import torch
    import torch._dynamo

    file = io.BytesIO()
    want = content(pullback)
    pullback.save(want, file)
    for weights_only in (True, False):
        file.seek(0)
        got = torch.load(file, weights_only=weights_only)
        for name, value in want.items():
            assert described(got[name]) == described(value), name
    file = io.BytesIO()
    torch.save(content(torch), file)
    file.seek(0)
    got = pullback.load(file)
    for name, value in content(torch).items():
        assert described(got[name]) == described(value), name


@pytest.mark.torch
def test_masked_tensors_go_both_ways():
    import torch
    from torch.masked import masked_tensor

    data = torch.arange(6.0).reshape(2, 3)
    file = io.BytesIO()
    torch.save(masked_tensor(data, data > 2), file)
    file.seek(0)
    got = pullback.load(file, weights_only=False)
    assert got.get_data().tolist() == data.tolist()
    assert got.get_mask().tolist() == (data > 2).tolist()
    file = io.BytesIO()
    pullback.save(got, file)
    file.seek(0)
    back = torch.load(file, weights_only=False)
    assert type(back).__name__ == "MaskedTensor" and back.get_mask().tolist() == (data > 2).tolist()


def record():
    """Write the recorded file anew."""
    import torch
    import torch._dynamo

    torch.save(content(torch), DATA / "torch_parts.pt")


if __name__ == "__main__":
    record()
