"""Wrappers and modes that answer for operators: `__torch_dispatch__`.

`TwoTensor` does everything to two tensors, so that each half must be what plain tensors give.
"""

import copy
import pickle
import subprocess
import sys

import pytest

import pullback as torch
from pullback import pytree
from pullback.testing.logging_tensor import (
    LoggingTensor,
    capture_logs,
    capture_logs_with_logging_tensor_mode,
    log_input,
)
from pullback.testing.two_tensor import TwoTensor, TwoTensorMode
from pullback.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_current_modes,
    _get_current_dispatch_mode,
    _get_current_dispatch_mode_stack,
    _pop_mode_temporarily,
    is_traceable_wrapper_subclass,
    no_dispatch,
    transform_subclass,
)
from tests.helpers.modes import noting

F = torch.nn.functional
log: list = []


def named(start, names):
    return [start + name for name in names.split()]


def pair(*shape, grad=False, scale=3.0):
    a = torch.arange(1.0, 1 + torch.Size(shape).numel()).reshape(shape) / 4
    return TwoTensor(a, a * scale, requires_grad=grad)


def halves(function, *args):
    """The gradients and values of each half by plain tensors."""
    found = []
    for name in "ab":
        plain = [getattr(t, name).detach().clone().requires_grad_() if isinstance(t, TwoTensor)
                 else t.detach().clone().requires_grad_() for t in args]
        out = function(*plain)
        out.sum().backward()
        found.append((out.detach(), [t.grad for t in plain]))
    return found


@pytest.mark.parametrize("function", [
    lambda x: (x * 2 + 1).sin(), lambda x: x.exp() * x, lambda x: x @ x.t(), lambda x: x[0] * x,
    lambda x: x.softmax(1), lambda x: F.layer_norm(x, (2,)), lambda x: torch.cat([x, x * 2]),
    lambda x: x.view(4).sum(), lambda x: torch.stack(x.unbind(0)[::-1]), lambda x: x.cumsum(0),
    lambda x: F.gelu(x).reshape(-1), lambda x: (x * 1).mul_(3), lambda x: x.clone().t().sigmoid_(),
], ids=range(13))
def test_gradients_of_both_halves(function):
    x = pair(2, 2, grad=True)
    out = function(x)
    assert type(out) is TwoTensor and out.requires_grad and type(out.grad_fn.name()) is str
    out.sum().backward()
    assert type(x.grad) is TwoTensor
    for name, (value, (grad,)) in zip("ab", halves(function, x)):
        assert torch.allclose(getattr(out, name), value)
        assert torch.allclose(getattr(x.grad, name), grad)


def test_plain_tensors_beside_a_wrapper():
    x, p = pair(2, 2, grad=True), torch.ones(2, 2, requires_grad=True)
    (x * p).sum().backward()
    assert type(p.grad) is TwoTensor and torch.equal(p.grad.b, x.b)
    assert torch.equal(x.grad.a, torch.ones(2, 2))
    assert p.is_leaf and not p.grad.requires_grad


def test_second_derivatives_and_hooks():
    x = pair(2, grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(type(g)))
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    assert torch.allclose(h.b, 6 * x.b) and seen == [TwoTensor, TwoTensor]


def test_nested():
    a, b = pair(2), pair(2, scale=5.0)
    x = TwoTensor(a, b).requires_grad_()
    (x * x).sum().backward()
    assert type(x.grad.b) is TwoTensor and torch.allclose(x.grad.b.b, 2 * b.b)


def test_views_and_writes():
    x = pair(2, 2)
    flat = x.view(4)
    assert flat._is_view() and flat._base is x and flat.a.data_ptr() == x.a.data_ptr()
    flat.add_(1)
    x.mul_(x)
    assert x._version == 2 == flat._version
    want = (torch.arange(1.0, 5.0) / 4 + 1) ** 2
    assert torch.allclose(flat.a, want) and torch.allclose(x.a.view(4), want)
    assert x.t_() is x and x.stride() == (1, 2) == x.a.stride()
    x.unsqueeze_(0)
    assert x.shape == (1, 2, 2) == x.b.shape
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        pair(2, grad=True).add_(1)
    y = pair(2, grad=True)
    with torch.no_grad():
        y.add_(1)
    assert y._version == 1 and y.requires_grad
    saved = y.exp()
    (saved * y).sum().backward()
    z = pair(2, grad=True) * 1
    loss = (z * z).sum()
    z.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_copies_pickles_parameters_and_modules():
    x = pair(2, 2, grad=True)
    (x * 2).sum().backward()
    y = copy.deepcopy(x)
    assert type(y) is TwoTensor and y.requires_grad and torch.equal(y.a, x.a)
    assert y.a.data_ptr() != x.a.data_ptr() and torch.equal(y.grad.b, x.grad.b)
    z = pickle.loads(pickle.dumps(x.detach()))
    assert type(z) is TwoTensor and torch.equal(z.b, x.b) and z.stride() == x.stride()
    p = torch.nn.Parameter(x.detach())
    assert type(p) is TwoTensor and isinstance(p, torch.nn.Parameter) and p.requires_grad
    module = torch.nn.Linear(2, 2)
    module.weight = p
    module(torch.ones(1, 2)).sum().backward()
    assert type(module.weight.grad) is TwoTensor and type(module.bias.grad) is TwoTensor
    module.to(torch.float64)
    assert module.weight.dtype is torch.float64 is module.weight.a.dtype
    assert x.sum().item() == x.a.sum().item()
    assert repr(pair(1)) == "TwoTensor(tensor([0.2500]), tensor([0.7500]))" == str(pair(1))
    with pytest.raises(RuntimeError, match="has none of its own"):
        x.detach().numpy()


def test_flatten_and_transform():
    x = pair(2, 2)
    assert is_traceable_wrapper_subclass(x) and not is_traceable_wrapper_subclass(x.a)
    y = transform_subclass(x, lambda name, t: t + (name == "b"))
    assert torch.equal(y.a, x.a) and torch.equal(y.b, x.b + 1)
    with pytest.raises(TypeError, match="inherits from Tensor"):
        torch.Tensor._make_wrapper_subclass(int, (2,))
    with pytest.raises(TypeError, match="must define __torch_dispatch__"):
        torch.Tensor._make_wrapper_subclass(torch.nn.Parameter, (2,))


class Logged(torch.Tensor):
    """A wrapper that notes the operators."""

    @staticmethod
    def __new__(cls, elem, requires_grad=False):
        new = torch.Tensor._make_wrapper_subclass(
            cls, elem.size(), strides=elem.stride(), dtype=elem.dtype, requires_grad=requires_grad)
        new.elem = elem
        return new

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        log.append(str(func))
        assert func.overloadpacket.__name__ == str(func).split(".")[1] and types == (cls,)
        args = pytree.tree_map_only(cls, lambda t: t.elem, args)
        return pytree.tree_map_only(torch.Tensor, cls, func(*args, **(kwargs or {})))


def test_a_logging_tensor():
    x = Logged(torch.ones(2, 2), requires_grad=True)
    log.clear()
    (x @ x).exp().sum().backward()
    assert log == named("aten.",
        "mm.default exp.default detach.default sum.default ones_like.default expand.default "
        "detach.default mul.Tensor t.default mm.default t.default mm.default add.Tensor "
        "detach.default")
    assert type(x.grad) is Logged and torch.allclose(x.grad.elem, 4 * torch.full((2, 2), 2.0).exp())


def test_data_of_its_own():
    class Real(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            log.append(str(func))
            with no_dispatch():
                return func(*args, **(kwargs or {}))

    x = torch.Tensor._make_subclass(Real, torch.ones(2), True)
    log.clear()
    y = x * 2
    y.sum().backward()
    assert log == ["aten.mul.Tensor"] and type(y) is torch.Tensor and x.grad.tolist() == [2, 2]


Noting = noting(TorchDispatchMode, "__torch_dispatch__", log)


def test_modes_see_operators_below_the_tape():
    x, w = torch.ones(2, 3, requires_grad=True), torch.ones(4, 3, requires_grad=True)
    log.clear()
    with Noting("m"):
        y = F.linear(x, w).relu()
        y.sum().backward()
    assert log == named("m:aten.",
        "t.default mm.default relu.default detach.default sum.default ones_like.default "
        "expand.default detach.default threshold_backward.default t.default mm.default t.default "
        "t.default mm.default detach.default t.default detach.default")
    assert y.grad_fn.name() == "ReluBackward0" and x.grad.tolist() == [[4, 4, 4]] * 2
    log.clear()
    with Noting("m"):
        q = torch.zeros(2)
        q.add_(1)
        v = q.view(1, 2)
        v.mul_(3)
    assert log == named("m:aten.",
        "zeros.default add_.Tensor view.default mul_.Tensor")
    assert q.tolist() == [3, 3] and q._version == 2 and v._base is q
    log.clear()
    torch.ones(1) + 1
    assert log == []


def test_modes_nest():
    log.clear()
    with Noting("a") as a, Noting("b") as b:
        assert _get_current_dispatch_mode_stack() == [a, b] and _get_current_dispatch_mode() is b
        torch.ones(2)
        with _pop_mode_temporarily() as popped:
            assert popped is b
            torch.zeros(1)
        with _disable_current_modes() as modes:
            assert modes == [a, b]
            torch.zeros(1)
        with no_dispatch():
            torch.zeros(1)
    assert log == ["b:aten.ones.default", "a:aten.ones.default", "a:aten.zeros.default"]
    x = pair(2)
    log.clear()
    with Noting("m"):
        y = x * 2
    assert type(y) is TwoTensor and log == ["m:aten.mul.Tensor"]
    with TwoTensorMode():
        made = torch.ones(2)
        assert type(made) is TwoTensor and type(made + 1) is TwoTensor
    assert type(torch.ones(2)) is torch.Tensor


def test_refusals():
    class Refuses(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch._ops.aten.ones"), \
            Refuses():
        torch.ones(2)
    assert torch.ones(1).tolist() == [1]


def test_traces_go_through_wrappers():
    def f(a, b):
        return (TwoTensor(a, b) * 2 + TwoTensor(b, a)).sin().a

    graph = torch.make_fx(f)(torch.ones(2), torch.zeros(2))
    assert [str(n.target) for n in graph.graph.nodes if n.op == "call_function"] == [
        "aten.mul.Tensor", "aten.mul.Tensor", "aten.add.Tensor", "aten.add.Tensor",
        "aten.sin.default", "aten.sin.default"]
    assert torch.allclose(graph(torch.ones(2), torch.zeros(2)), torch.full((2,), 2.0).sin())


def test_transforms_come_before_wrappers():
    x = pair(2)
    g = torch.func.grad(lambda t: (t * t).sum())(x)
    assert type(g) is TwoTensor and torch.allclose(g.b, 2 * x.b)


def test_overloads_that_write_are_one_object_each():
    aten = torch.ops.aten
    assert aten.add_.Tensor is aten.add_.Tensor and aten.add.out is aten.add.out
    assert aten.add_.Tensor.overloadpacket is aten.add_ and aten.add.out.overloadpacket is aten.add
    assert str(aten.add.out._schema) == (
        "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)")
    found = []

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            found.append(func)
            return func(*args, **(kwargs or {}))

    x, out = torch.ones(2), torch.empty(2)
    with Seen():
        assert torch.add(x, 1, out=out) is out
        x.add_(1)
    assert found[0] is aten.add.out and found[1] is aten.add_.Tensor
    assert out.tolist() == [2, 2] == x.tolist()
    y = TwoTensor(torch.empty(2), torch.empty(2))
    assert torch.mul(pair(2), 2, out=y) is y and torch.equal(y.b, pair(2).b * 2)


def test_lines_of_a_logging_tensor():
    """As PyTorch's class of this name writes them."""
    with capture_logs() as lines:
        x = LoggingTensor(torch.tensor([3.0]), requires_grad=True)
        log_input("x", x)
        y = x * x
        y.sum(0, keepdim=True)
        torch.cat([x, y])
        x.max(0)
        x.to(torch.float64)
        g = LoggingTensor(torch.tensor([1.0]))
        log_input("g", g)
        (r,) = torch.autograd.grad(y, x, g)
        log_input("r", r)
    assert lines == [
        "$0: f32[1] = input('x')",
        "$1: f32[1] = torch._ops.aten.mul.Tensor($0, $0)",
        "$2: f32[1] = torch._ops.aten.sum.dim_IntList($1, ['0'], True)",
        "$3: f32[2] = torch._ops.aten.cat.default(['$0', '$1'])",
        "('$4: f32[]', '$5: i64[]') = torch._ops.aten.max.dim($0, 0)",
        "$6: f64[1] = torch._ops.aten._to_copy.default($0, dtype=torch.float64)",
        "$7: f32[1] = input('g')",
        "$8: f32[1] = torch._ops.aten.mul.Tensor($7, $0)",
        "$9: f32[1] = torch._ops.aten.mul.Tensor($7, $0)",
        "$10: f32[1] = torch._ops.aten.add.Tensor($9, $8)",
        "$10: f32[1] = input('r')",
    ]
    assert repr(x) == "LoggingTensor(tensor([3.]), requires_grad=True)"
    assert repr(y) == "LoggingTensor(tensor([9.]), grad_fn=<MulBackward0>)"
    z = torch.ones(2)
    with capture_logs_with_logging_tensor_mode() as lines:
        z * 3
    assert lines == ["$1: f32[2] = torch._ops.aten.mul.Tensor($0, 3)"]


def test_paths_of_pytorch():
    code = """
import torch, pullback
from torch.testing._internal.two_tensor import TwoTensor
from torch.testing._internal.logging_tensor import LoggingTensor
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._mode_utils import no_dispatch
from torch.utils.flop_counter import FlopCounterMode
from torch.overrides import TorchFunctionMode, handle_torch_function, has_torch_function
from torch._C import DisableTorchFunctionSubclass, _disabled_torch_function_impl
from torch._functorch._aot_autograd.subclass_parametrization import (
    unwrap_tensor_subclass_parameters)
assert torch is pullback and issubclass(TwoTensor, torch.Tensor)
assert type(TwoTensor(torch.ones(1), torch.ones(1)) + 1) is TwoTensor
"""
    start = "import pullback as pb; pb.install_as_torch()"
    ran = subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True,
                         check=False)
    assert ran.returncode == 0, ran.stderr


class Told(torch.Tensor):
    """A wrapper whose class tells facts of its own."""

    FACTS = {
        "aten.sym_size.default": (5, 7), "aten.sym_stride.default": (7, 1), "aten.dim.default": 2,
        "aten.sym_numel.default": 35, "aten.sym_storage_offset.default": 3,
        "aten.is_contiguous.default": False, "aten.is_contiguous.memory_format": True,
        "prim.device.default": torch.device("meta"), "prim.layout.default": torch.sparse_coo}

    @staticmethod
    def __new__(cls, **kwargs):
        return torch.Tensor._make_wrapper_subclass(cls, (2, 3), **kwargs)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        log.append(str(func))
        return cls.FACTS[str(func)]


def facts(t):
    """What a program reads, and what its class was asked for it."""
    found = {}
    for name, read in {
        "shape": lambda: tuple(t.shape), "size": lambda: t.size(-1), "stride": t.stride,
        "dim": t.dim, "numel": t.numel, "offset": t.storage_offset, "rows": t.is_contiguous,
        "format": lambda: t.is_contiguous(memory_format=torch.channels_last),
        "device": lambda: t.device.type, "cpu": lambda: t.is_cpu, "layout": lambda: t.layout,
        "length": lambda: len(t),
    }.items():
        log.clear()
        found[name] = read(), " ".join(log)
    return found


def test_facts_that_a_class_tells():
    own = {
        "shape": (2, 3), "size": 3, "stride": (3, 1), "dim": 2, "numel": 6, "offset": 0,
        "rows": True, "format": False, "device": "cpu", "cpu": True, "layout": torch.strided,
        "length": 2}
    own = {name: (value, "") for name, value in own.items()}
    strides = {"stride": ((7, 1), "aten.sym_stride.default"),
               "rows": (False, "aten.is_contiguous.default"),
               "format": (True, "aten.is_contiguous.memory_format")}
    sizes = {"shape": ((5, 7), "aten.sym_size.default"),
             "size": (7, "aten.dim.default aten.sym_size.default"),
             "dim": (2, "aten.dim.default"), "numel": (35, "aten.sym_numel.default"),
             "offset": (3, "aten.sym_storage_offset.default"),
             "length": (5, "aten.dim.default aten.sym_size.default")}
    device = {"device": ("meta", "prim.device.default"), "cpu": (False, "prim.device.default")}
    assert facts(Told()) == own
    assert facts(Told(dispatch_sizes_strides_policy="strides")) == own | strides
    assert facts(Told(dispatch_sizes_strides_policy="sizes")) == own | strides | sizes
    assert facts(Told(dispatch_device=True)) == own | device
    assert facts(Told(dispatch_layout=True)) == own | {
        "layout": (torch.sparse_coo, "prim.layout.default")}
    assert facts(Told(layout=torch.sparse_coo)) == own | {"layout": (torch.sparse_coo, "")}
    assert facts(Told()) == own  # others of the class are not asked
    assert torch.ops.prim.device.default(torch.ones(2)) == torch.device("cpu")


@pytest.mark.parametrize("kind, text, given", [
    (ValueError, "expected 'strides' or 'sizes'", {"dispatch_sizes_strides_policy": "all"}),
    (RuntimeError, "dimensionality of strides", {"strides": (1,)}),
    (RuntimeError, "storage offset without stride", {"storage_offset": 4}),
])
def test_wrappers_that_cannot_be(kind, text, given):
    with pytest.raises(kind, match=text):
        Told(**given)


@pytest.mark.parametrize("kind, size", [(TypeError, None), (RuntimeError, (2, -1))])
def test_sizes_that_cannot_be(kind, size):
    with pytest.raises(kind):
        torch.Tensor._make_wrapper_subclass(Told, size)
