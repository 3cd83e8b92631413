"""Sparse tensors are copied, pickled, saved, loaded and sent to other processes.

`FROM_TORCH` is a file that PyTorch 2.13 wrote: `torch.save({"coo": ..., "csr": ..., "bsc": ...})`.
What PyTorch loads of ours was looked at once; the names in the pickle are held here.
"""

import base64
import copy
import io
import pickle
import zipfile
import zlib

import pytest

import pullback as torch
from pullback import errors
from pullback.utils.data import DataLoader, Dataset

MATRIX = torch.tensor([[1.0, 0, 2, 0], [0, 0, 3, 4], [0, 0, 0, 0], [5, 0, 0, 6]])
LAYOUTS = ("coo", "csr", "csc", "bsr", "bsc")
FROM_TORCH = """
eNrVmEtsG0UYx9evjeuExAmBPCgh0EBdmjp+PxraBFMWyhbqbGgx5eFs7K29xPHmsyfpAyFFQus2R3pA4oIqJCTUEzfErQeE
OILEkQtCRaAe4MaBCzM7drIzTuIkRUKMspq1d3/f///N7H4zTlZ2uQXB6xXaml8YENRaoayvaVNFFanBlaWKlOkVLjFt3fkB
CIGcCwMFwwBHARmYCeZXkV6p+/I1bXFVrxTz9RW1VtfySKvWjZoPnM3b6lpNVyv6dRXpRtWXL2koX1GvGavIB66cH8ds3kZp
IuA2waOAGNhBhwrk1yI+6AoEcl04RB3fqZY08FLEd86olubpdz44lHPgW0LgoxmsrEK33IOgZ04WZKcsNuAhWZQdDejdKBSM
SkUrEKN13/laUatpxTN6ATvtO6aAH0G/AgNlLFpuCUkVQ0WbSg9bSmEYLHfLIoJHiIJowqOyw4ShjTIJMoxgRIHRJj6vX8fY
Y7JbdjfgsAmPKzB2E8ETDRhX4Enqt16Dp8rO8nZjhS8dMWFCgacD1FWZ5hqBZ7ADD4KjxIHHhABxcIw6eBbBcQUmGSAKJ8rW
oATn8Fhgy1MECFEgjCCiQLQJ0BxjEKM5xps5JgiQpEAKQVqBk+VmXtMmPKfAKQSnGzCjwKyV1mK9AM9vnxa5lDHhBQXOsGnF
4UUs6kIgEVGXCS8R0Zep6FkEryggM0ACzmHAi+DVOWLFhNcIcJ4CWQRzCihMWkmYxwCe6NeJghs/Hs4bcME6cdyAixR8A0FO
gTdb6V0y4S0F3kbwTgPeVSCf85CErugFDRZwgiKbQwpUrOBGsEgfP2cDCiR6A4o0uobgsgIlxlYayhhyItAtyIT3SB5LFKgg
WFagiu1Y0QwTVhSADQS1BtQVQKvBrNzlHfz1x6N38cCTI7tjPRgSpjfrQfCyUVtWUX5Nq9XxCyFlklxZ2HMLEwNf/fHThyQX
cuxsYFRIbhlovtV5XD1K1WWtiqRM9CAeEjFiYOYK/O7EEs5dDfQLM5sGFq8hzSBVQMpMHzR30io6QhWNeDBP/TIiYhVxVw+9
wmmmKk+FpMzJBzDAx3dwvYvrW83J9fz11meS2ddL9/oW8PlCh8wm2MzCUmZc6Ox/fQbDs/gPH+v4uI2Pu7NEd+JeemQYXxzu
oDvJ6kakTEDY7/i1xsHN9aJtHP6+D3cC+DzQwc9h1k9UygwL/8P5i/1H8xf/N+bPyvvn47cPoJ84iP5O8yd0+GzV76t/3Zml
g7irTzfrMyllyPfW+G/TyDxYrdm35sfe6Dx98u3ZwQPop6j+7vmT+J9989374/h8fH/PX3o/zx/RWft8JkgCe3fV6bOtgw++
/kV9RPmHT0sXOq8/Y0JkawG0UmT2z3m9KGWC+zQSjkSTyUQ4FAulEulYLJ4KJZLhZCQWTcUjoVQ8lIpGY5F0PE1c/indurhV
vxzWK9Pyad9D+Nuc878jeNq+ARhif4W4hZ12HXwQ+yI+ygT5yB6kbefAx7EvxP1MnAGP0L4B4HF7texl8I89Ard286y94rHs
isixYZ61ry4s+xvPRvbu+WoXx0b37jnk5dhYm66twrLsFzwbb3vibFWPZQOHODbBs/aKxbLf82ySZ+3ViGWzPo5N8ay9wrDs
lzyb5ll7jehj2OFuga9IPGx/dccY+JYN3r6oZGVRnGyVINcJ2z8I2P5+c8+Q6mmVbpH8/haO+LdKelb2iJTxW/fTe/8BFq1R
5Q==
"""


def sparse(name, scale=1.0):
    more = {"blocksize": (2, 2)} if name[0] == "b" else {}
    return (MATRIX * scale).to_sparse(layout=getattr(torch, f"sparse_{name}"), **more)


def saved(value, **options):
    file = io.BytesIO()
    torch.save(value, file, **options)
    return file.getvalue()


def loaded(data, **options):
    return torch.load(io.BytesIO(data), **options)


def alike(a, b):
    return a.layout is b.layout and a.dtype is b.dtype and repr(a.detach()) == repr(b.detach())


def test_files_of_pytorch_are_read():
    data = zlib.decompress(base64.b64decode(FROM_TORCH))
    for options in ({}, {"weights_only": False}):
        found = loaded(data, **options)
        for name in ("coo", "csr", "bsc"):
            assert alike(found[name], sparse(name)), name
        assert found["coo"].is_coalesced() and not found["twice"].is_coalesced()
        assert found["twice"].to_dense().tolist() == [[0, 3], [0, 0]]


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("name", LAYOUTS)
def test_files_of_ours_are_read(name, old):
    x = sparse(name)
    again = loaded(saved({"x": x}, _use_new_zipfile_serialization=not old))["x"]
    assert alike(x, again)
    assert loaded(saved({"x": x}), map_location="meta")["x"].is_meta


def test_files_have_the_names_of_pytorch():
    with zipfile.ZipFile(io.BytesIO(saved(sparse("csr")))) as file:
        body = file.read("archive/data.pkl")
    for name in (b"torch._utils\n_rebuild_sparse_tensor", b"torch.serialization\n_get_layout",
                 b"torch.sparse_csr", b"torch\nSize"):
        assert name in body


def test_what_files_say_besides():
    csr, coo = sparse("csr").requires_grad_(), sparse("coo").requires_grad_()
    assert loaded(saved(csr)).requires_grad and not loaded(saved(coo)).requires_grad
    coo.note = "kept"
    assert loaded(saved(coo)).note == "kept"
    parameter = torch.nn.Parameter(sparse("coo"))
    assert "Parameter containing" in repr(parameter)
    again = loaded(saved(parameter))
    assert isinstance(again, torch.nn.Parameter) and again.requires_grad and alike(
        again, parameter)


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("change", [
    lambda x: x.indices_part.fill_(9), lambda x: x.indices_part.fill_(0),
    lambda x: x.indices_part.fill_(-1),
])
def test_damaged_files_are_refused(change, old):
    x = sparse("coo")
    x = torch.sparse_coo_tensor(x.indices().clone(), x.values(), x.shape, is_coalesced=True)
    change(x)
    data = saved(x, _use_new_zipfile_serialization=not old)
    for options in ({}, {"weights_only": False}):
        with pytest.raises(errors.FileFormatError, match="sparse tensor of the file is damaged"):
            loaded(data, **options)


@pytest.mark.parametrize("name", LAYOUTS)
def test_deep_copies_and_pickles(name):
    x = sparse(name).requires_grad_()
    (x * x).to_dense().sum().backward()
    x.note = ["kept"]
    y = copy.deepcopy({"x": x, "again": x})
    assert y["x"] is y["again"] and alike(y["x"], x) and y["x"].is_leaf and y["x"].requires_grad
    assert alike(y["x"].grad, x.grad) and y["x"].note == ["kept"] and y["x"].note is not x.note
    with torch.no_grad():
        y["x"].mul_(2)
    assert torch.equal(x.detach().to_dense(), MATRIX)
    with pytest.raises(RuntimeError, match=r"created explicitly by the user \(graph leaves\)"):
        copy.deepcopy(x * 2)
    again = pickle.loads(pickle.dumps(x))
    assert alike(again, x) and again.requires_grad and again.note == ["kept"]
    assert copy.copy(x).note is x.note


def test_copies_share_the_pattern_that_their_originals_share():
    x = sparse("csr")
    pair = copy.deepcopy([x, x * 2])
    assert pair[0].plain_part is pair[1].plain_part and pair[0].plain_part is not x.plain_part
    assert x.clone().plain_part is x.plain_part and x.double().plain_part is x.plain_part
    files = loaded(saved([x, x * 2]))
    assert files[0].plain_part.data_ptr() == files[1].plain_part.data_ptr()


class Matrices(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return sparse("csr" if i % 2 else "coo", i)


@pytest.mark.parametrize("workers", [0, 2])
def test_loaders_give_them(workers):
    found = list(DataLoader(Matrices(), batch_size=None, num_workers=workers))
    for i, x in enumerate(found):
        assert alike(x, sparse("csr" if i % 2 else "coo", i))


def test_state_of_modules():
    class Layer(torch.nn.Module):
        def __init__(self, scale):
            super().__init__()
            self.weight = torch.nn.Parameter(sparse("coo", scale))
            self.register_buffer("matrix", sparse("csr", scale))

    one, other = Layer(1.0), Layer(2.0)
    assert [type(p) for p in one.parameters()] == [type(one.weight)]
    kept = other.weight
    other.load_state_dict(loaded(saved(one.state_dict())))
    assert other.weight is kept and isinstance(kept, torch.nn.Parameter) and kept.requires_grad
    assert alike(other.weight, one.weight) and alike(other.matrix, one.matrix)
    again = copy.deepcopy(one)
    assert alike(again.weight, one.weight) and isinstance(again.weight, torch.nn.Parameter)
    assert again.double().weight.dtype is torch.float64
