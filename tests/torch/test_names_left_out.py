"""Names of PyTorch that this package leaves out: they exist, and say why when they are used."""

import importlib

import pytest

import pullback as pb
from pullback import absent, errors


def holder(path: str):
    """The module of this package that stands for one of PyTorch's."""
    if not path:
        return pb
    found = pb
    for part in path.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("path", absent.NAMES)
def test_every_name_says_why_it_is_not_here(path):
    for names in absent.NAMES[path].values():
        for name in names.split():
            value = getattr(holder(path), name)
            if isinstance(value, type):
                assert not isinstance(3, value)
                type("Derived", (value,), {})
            with pytest.raises(errors.NotInThisBuild, match=rf"\b{name} was asked for") as caught:
                value(1, key=2)
            assert "Fix:" in str(caught.value) and __file__.rpartition("/")[2] in str(caught.value)


@pytest.mark.parametrize("path", ["", "cuda", "jit", "sparse", "distributed", "utils.data"])
def test_other_names_are_unknown(path):
    assert not hasattr(holder(path), "no_such_name")


def test_questions_to_other_layouts():
    x = pb.ones(2, 3)
    assert x.dense_dim() == 2 and x.sparse_dim() == 0 and not x.volatile
    assert x.to_dense() is x and x.to_dense(pb.float64).dtype is pb.float64
    with pytest.raises(RuntimeError, match="expected sparse coordinate tensor layout"):
        x.indices()
    for name in ("q_scale", "int_repr"):
        with pytest.raises(errors.LayoutError, match=f"{name}.*not quantised"):
            getattr(x, name)()
    with pytest.raises(RuntimeError, match=r"now removed(.|\n)*linalg\.solve"):
        pb.solve(x, x)
    with pytest.raises(errors.DeviceError, match="xpu"):
        x.xpu()


def test_dtypes_that_no_tensor_has():
    assert isinstance(pb.qint8, pb.dtype) and repr(pb.qint8) == "torch.qint8"
    assert pb.qint8 != pb.int8 and pb.float32 not in (pb.int4, pb.quint8)
    with pytest.raises(errors.NotInThisBuild, match=r"torch\.int4"):
        pb.zeros(2, dtype=pb.int4)
    assert repr(pb.per_tensor_affine) == "torch.per_tensor_affine"
    assert pb.legacy_contiguous_format is pb.contiguous_format


def test_results_have_classes_of_their_own():
    result = pb.tensor([[1.0, 3.0], [2.0, 0.0]]).max(0)
    assert type(result) is pb.return_types.max and isinstance(result, tuple)
    assert repr(result) == ("torch.return_types.max(\nvalues=tensor([2., 3.]),\n"
                            "indices=tensor([1, 0]))")
    assert "linalg_eigh" in dir(pb.return_types)
    pickle = importlib.import_module("pickle")
    assert type(pickle.loads(pickle.dumps(result))) is type(result)
    with pytest.raises(AttributeError):
        _ = pb.return_types.sin


def test_names_at_the_root_that_live_elsewhere():
    steps, = pb.while_loop(lambda i: i < 3, lambda i: (i + 1,), (pb.tensor(0),))
    assert steps.item() == 3
    assert pb.DisableTorchFunctionSubclass is pb.overrides.DisableTorchFunctionSubclass
    assert str(pb.torch_version.TorchVersion("2.13.0")) == "2.13.0"
    assert pb.quantization is pb.ao.quantization
