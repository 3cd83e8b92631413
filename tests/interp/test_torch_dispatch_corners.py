"""Corners of `__torch_dispatch__`: super calls, modes that decline, facts by classes, files."""

import copy
import io

import pytest

import pullback as torch
from pullback.overrides import redispatch_function
from pullback.testing.logging_tensor import LoggingTensor, capture_logs, log_input
from pullback.utils._python_dispatch import (
    TorchDispatchMode,
    all_same_mode,
    is_in_torch_dispatch_mode,
)
from tests.helpers.custom_functions import saving


class Super(torch.Tensor):
    """Memory of its own, operators as ever."""

    calls: list = []

    @staticmethod
    def __new__(cls, data, **how):
        return torch.Tensor._make_subclass(cls, data, data.requires_grad, **how)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func)
        return super().__torch_dispatch__(func, types, args, kwargs)


@pytest.fixture(autouse=True)
def forget():
    Super.calls.clear()


class Wrapped(torch.Tensor):
    """A wrapper with a slot."""

    __slots__ = ["elem"]

    @staticmethod
    def __new__(cls, elem, **how):
        new = torch.Tensor._make_wrapper_subclass(
            cls, elem.shape, dtype=elem.dtype, requires_grad=elem.requires_grad, **how)
        new.elem = elem.detach()
        return new

    def __repr__(self):
        return super().__repr__(tensor_contents=str(self.elem.tolist()))

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        bare = lambda v: v.elem if isinstance(v, cls) else v
        out = func(*torch.utils._pytree.tree_map(bare, args), **(kwargs or {}))
        return cls(out) if isinstance(out, torch.Tensor) else out


def test_super_runs_the_operator():
    x = torch.tensor([1.0, 2.0])
    assert torch.equal(Super(x) + Super(x), x + x) and Super.calls == [torch.ops.aten.add.Tensor]


def test_data_is_a_detach():
    x = Super(torch.ones(2))
    x.data
    assert [str(f) for f in Super.calls] == ["aten.detach.default"]
    x.data = torch.zeros(2)
    assert len(Super.calls) == 1 and type(x) is Super and x.tolist() == [0, 0]
    y = LoggingTensor(torch.ones(1))
    before = y._version
    y.detach().add_(2)
    assert y._version == before + 1
    y.data.add_(2)
    assert y._version == before + 1 and y.elem.item() == 5


def test_a_mode_that_declines_stays_active():
    seen = []

    class Polite(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append([t.__name__ for t in types])
            if types:
                return NotImplemented
            return func(*args, **(kwargs or {}))

    x = Wrapped(torch.ones(2))
    with Polite():
        out = x.abs()
    assert type(out) is Wrapped and seen[0] == ["Wrapped"] and [] in seen


def test_refusals():
    class Class(TorchDispatchMode):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*args, **kwargs)

    with Class(), pytest.raises(RuntimeError, match="classmethod is not supported"):
        torch.ones(2)

    class Text(Wrapped):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return "text"

    with pytest.raises(RuntimeError, match="Unable to cast 'text' to Tensor"):
        Text(torch.ones(2)).neg()

    class Plain(torch.Tensor):
        pass

    for make in (lambda w: torch.Tensor._make_subclass(Plain, w), lambda w: w.as_subclass(Plain),
                 Plain):
        with pytest.raises(RuntimeError, match=r"subclass Plain but.*already associated to a "
                           r"python object of type Wrapped"):
            make(Wrapped(torch.ones(2)))
    with pytest.raises(RuntimeError, match="is not supported for tensor subclasses"):
        Wrapped(torch.ones(2)).numpy()


def test_method_of_the_instance():
    class Instance(Wrapped):
        def __torch_dispatch__(self, func, types, args, kwargs=None):
            assert self is args[0]
            with torch.overrides.enable_reentrant_dispatch():
                return func(args[0].elem)

    assert type(Instance(torch.ones(2)).clone()) is torch.Tensor


def test_storage_of_wrappers():
    x = Wrapped(torch.ones(2, 3))
    held = x.untyped_storage()
    assert held.nbytes() == held.size() == 24 and held == x.untyped_storage()
    assert held != Wrapped(torch.ones(2, 3)).untyped_storage()
    for name in ("data_ptr", "resize_", "fill_"):
        with pytest.raises(RuntimeError, match="on an invalid python storage"):
            getattr(held, name)()


@pytest.mark.parametrize("wrapper", [True, False])
def test_facts_by_their_class(wrapper):
    class Telling(Wrapped if wrapper else Super):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            answers = {"aten.sym_size": (7, 8), "aten.dim": 2, "aten.sym_numel": 56,
                       "aten.sym_stride": (8, 1)}
            return answers.get(str(func.overloadpacket), NotImplemented)

    x = Telling(torch.ones(2, 3), dispatch_sizes_strides_policy="sizes")
    assert x.shape == (7, 8) and x.size(1) == 8 and x.stride() == (8, 1)
    assert x.dim() == x.ndim == 2 and len(x) == 7
    with pytest.raises(TypeError, match=r"failed for 'torch.ops.aten.is_contiguous'"):
        x.is_contiguous()
    assert Telling.size is torch.Tensor.size and torch.ones(2, 3).shape == (2, 3)
    assert Telling(torch.ones(2, 3)).shape == (2, 3)  # this one tells nothing


def test_what_factories_are_given():
    seen = {}

    class Look(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen[str(func)] = dict(kwargs or {})
            return func(*args, **(kwargs or {}))

    x = torch.ones(2)
    with Look():
        torch.empty(2), torch.zeros(2, dtype=torch.int64), torch.ones_like(x), x.new_zeros(2)
        torch.ops.aten.full.default([2], 1.0)
    host = {"device": torch.device("cpu"), "pin_memory": False}
    assert seen == {
        "aten.empty.memory_format": host, "aten.zeros.default": {"dtype": torch.int64, **host},
        "aten.ones_like.default": {"pin_memory": False},
        "aten.new_zeros.default": {"pin_memory": False}, "aten.full.default": {}}


def test_saved_tensors_are_of_their_class():
    class Square(saving(lambda x: x**2)):
        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            assert type(grad) is type(x) is LoggingTensor
            return grad * 2 * x

    with capture_logs() as logs:
        x = LoggingTensor(torch.ones(1), requires_grad=True)
        log_input("x", x)
        Square.apply(x).backward(LoggingTensor(torch.ones(1)))
    assert x.grad.elem.item() == 2
    assert [line.partition("aten.")[2].partition("(")[0] for line in logs[1:]][:3] == [
        "pow.Tensor_Scalar", "mul.Tensor", "mul.Tensor"]


def test_plain_gradients_of_wrappers():
    x = Wrapped(torch.ones(2, requires_grad=True))

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.elem * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    Twice.apply(x).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_prints_copies_and_files():
    x = torch.nn.Parameter(Wrapped(torch.ones(2)))
    assert repr(x) == "Parameter(Wrapped([1.0, 1.0], requires_grad=True))"
    copied = copy.deepcopy(x)
    assert type(copied) is Wrapped and copied.elem.tolist() == [1, 1]
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    with pytest.raises(Exception, match="Wrapped"):
        torch.load(file)
    file.seek(0)
    with torch.serialization.safe_globals([Wrapped]):
        loaded = torch.load(file)
    assert type(loaded) is Wrapped and loaded.elem.tolist() == [1, 1] and loaded.requires_grad

    class Odd(Wrapped):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return args[0].elem.clone()

    with pytest.raises(RuntimeError, match="for which cloning returns another instance"):
        copy.deepcopy(Odd(torch.ones(2)))


def test_a_function_once_more_without_asking():
    seen = []

    class Logs(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return redispatch_function(func, types, args, kwargs)

    def mine(x):
        if torch.overrides.has_torch_function((x,)):
            return torch.overrides.handle_torch_function(mine, (x,), x)
        return torch.nn.functional.silu(x.as_subclass(torch.Tensor))

    x = torch.ones(2).as_subclass(Logs)
    assert torch.allclose(mine(x), torch.nn.functional.silu(torch.ones(2)))
    assert seen[0] == "mine"
    del seen[:]
    out = torch.nn.functional.softmin(x, 0)
    assert torch.allclose(out, torch.full((2,), 0.5)) and len(seen) > 1  # what it calls asks again


def test_questions_about_modes():
    class Infra(TorchDispatchMode):
        @classmethod
        def is_infra_mode(cls):
            return True

    with Infra() as mode:
        assert is_in_torch_dispatch_mode()
        assert not is_in_torch_dispatch_mode(include_infra_modes=False)
        assert all_same_mode([mode, mode]) and not all_same_mode([mode, Infra()])
    assert not is_in_torch_dispatch_mode()
