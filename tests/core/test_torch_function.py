"""Subclasses, modes and strangers that answer for functions: `__torch_function__`.

Which function each expression hands over is recorded from PyTorch 2.13 (`functions.json`).
"""

import copy
import inspect
import json
import pathlib
import pickle
import subprocess
import sys
import types

import pytest

import pullback as torch
from pullback.interp.function_overrides import Marked
from pullback.overrides import (
    BaseTorchFunctionMode,
    DisableTorchFunctionSubclass,
    TorchFunctionMode,
    _get_current_function_mode,
    _get_current_function_mode_stack,
    get_overridable_functions,
    get_testing_overrides,
    handle_torch_function,
    has_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
    is_tensor_like,
    is_tensor_method_or_property,
    resolve_name,
    wrap_torch_function,
)
from tests.helpers.modes import noting

F = torch.nn.functional
RECORDED = json.loads((pathlib.Path(__file__).parent.parent / "data/functions.json").read_text())
log: list = []


def named(start, names):
    return [start + name for name in names.split()]


class Plain(torch.Tensor):
    """A class that changes nothing."""


class Logging(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        log.append(resolve_name(func))
        return super().__torch_function__(func, types, args, kwargs)


Pickled = Plain


@pytest.mark.parametrize("text", RECORDED)
def test_what_is_handed_over(text):
    x = torch.arange(1.0, 10.0).reshape(3, 3).as_subclass(Logging)
    given = {"x": x, "p": torch.ones(3, 3), "torch": torch, "F": F,
             "i": torch.ones(2, 2, dtype=torch.int64).as_subclass(Logging)}
    log.clear()
    result = eval(text, given)
    names, kind = RECORDED[text]
    assert log == names
    kind = {"S": "Logging", "dtype": "DType", "tuple": type(result).__name__}.get(kind, kind)
    assert type(result).__name__ == kind


def test_results_are_of_the_class_and_keep_their_history():
    x = torch.rand(3, requires_grad=True)
    y = x.as_subclass(Plain)
    assert type(y) is Plain and not y.is_leaf and y.grad_fn.name() == "AliasBackward0"
    assert y._base is x and y.data_ptr() == x.data_ptr()
    z = (y * 2).exp()
    assert type(z) is Plain and isinstance(z, torch.Tensor)
    z.sum().backward()
    assert torch.allclose(x.grad, 2 * (2 * x.detach()).exp()) and type(x.grad) is torch.Tensor
    values, indices = y.max(0)
    assert type(values) is Plain and type(indices) is Plain
    assert all(type(t) is Plain for t in y.split(1))
    assert type(y.as_subclass(torch.Tensor)) is torch.Tensor
    leaf = torch.Tensor._make_subclass(Plain, torch.ones(2), True)
    (leaf * leaf).sum().backward()
    assert leaf.is_leaf and leaf.grad.tolist() == [2, 2]
    for wrong in (int, 3):
        with pytest.raises(TypeError, match="inherits from Tensor"):
            x.as_subclass(wrong)


def test_writes_reach_the_memory_that_is_shared():
    base = torch.zeros(2, 2)
    x = base.as_subclass(Plain)
    x[0] = 1
    x += 1
    x.T.mul_(2)
    assert base.tolist() == [[4, 4], [2, 2]] and type(x) is Plain and x._version == 3
    out = torch.empty(2, 2)
    assert torch.add(x, 1, out=out) is not None and out.tolist() == [[5, 5], [3, 3]]


def test_a_subclass_before_its_base():
    order = []

    class A(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            order.append((cls.__name__, [t.__name__ for t in types]))
            return NotImplemented

    class B(A):
        pass

    a, b = torch.ones(1).as_subclass(A), torch.ones(1).as_subclass(B)
    with pytest.raises(TypeError, match=r"no implementation found for 'torch.add'.*B.*A"):
        torch.add(a, b)
    assert order == [("B", ["B", "A"]), ("A", ["B", "A"])]
    order.clear()
    with pytest.raises(TypeError, match="no implementation found"):
        torch.stack([torch.ones(1), a])
    assert order == [("A", ["A"])]


def test_unrelated_classes_do_not_take_each_other():
    class Other(torch.Tensor):
        pass

    with pytest.raises(TypeError, match="no implementation found"):
        torch.add(torch.ones(1).as_subclass(Plain), torch.ones(1).as_subclass(Other))


def test_attributes_metadata_example():
    class Tagged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            tags = [a.tag for a in args if isinstance(a, cls) and hasattr(a, "tag")]
            out = super().__torch_function__(func, types, args, kwargs or {})
            if isinstance(out, cls):
                out.tag = "+".join(tags)
            return out

    x, y = torch.ones(2).as_subclass(Tagged), torch.ones(2).as_subclass(Tagged)
    x.tag, y.tag = "x", "y"
    assert (x + y).tag == "x+y" and (x.sin() * y).tag == "x+y"


def test_strangers():
    """Arguments that are no tensors."""
    handled = {}

    class Scalar:
        def __init__(self, value):
            self.value = value

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return handled[func](*args, **(kwargs or {})) if func in handled else NotImplemented

    handled |= {
        torch.mean: lambda s: s.value, F.gelu: lambda s: ("gelu", s.value),
        torch.cat: lambda items, dim=0: len(items), torch.Tensor.add: lambda a, b: ("add", b.value),
        F.dropout: lambda s, p=0.5: ("dropout", p), torch.sin: lambda s: ("sin", s.value),
    }
    assert torch.mean(Scalar(3)) == 3 and F.gelu(Scalar(4)) == ("gelu", 4)
    assert torch.cat([torch.ones(1), Scalar(1)]) == 2 and torch.ones(1) + Scalar(5) == ("add", 5)
    assert torch.sin(Scalar(1)) == ("sin", 1) and F.dropout(Scalar(1), p=0.25) == ("dropout", 0.25)
    with pytest.raises(TypeError, match=r"no implementation found for 'torch.cos'"):
        torch.cos(Scalar(1))
    assert is_tensor_like(Scalar(1)) and not is_tensor_like(3)


def test_functions_of_users():
    @wrap_torch_function(lambda x, y=None: (x, y))
    def ours(x, y=None):
        return "plain"

    assert ours(torch.ones(1)) == "plain"
    x = torch.ones(1).as_subclass(Logging)
    log.clear()
    assert ours(torch.ones(1), x) == "plain" and log == [None]
    assert has_torch_function((x,)) and has_torch_function_unary(x)
    assert not has_torch_function_variadic(torch.ones(1), 3, torch.nn.Parameter(torch.ones(1)))
    with DisableTorchFunctionSubclass():
        assert not has_torch_function((x,))
        assert type(x + 1) is torch.Tensor
    log.clear()
    y = handle_torch_function(torch.add, (x,), x, 1)
    assert log == ["torch.add"] and y.tolist() == [2]


Named = noting(TorchFunctionMode, "__torch_function__", log, resolve_name)


def test_modes_see_everything():
    log.clear()
    with Named("f"):
        a = torch.randn(3)
        a + 1
        a.size(), a.shape
        F.dropout(a, 0.0)
        a[0] = 1
        float(a[1])
        torch.stack([a, a])
        a.add_(1)
        -a
    assert log == named("f:torch.",
        "randn Tensor.add Tensor.size Tensor.shape.__get__ nn.functional.dropout "
        "Tensor.__setitem__ Tensor.__getitem__ Tensor.__float__ stack Tensor.add_ Tensor.neg")
    log.clear()
    a + 1
    assert log == [] and _get_current_function_mode() is None


def test_modes_nest_and_come_before_subclasses():
    x = torch.ones(2).as_subclass(Logging)
    log.clear()
    with Named("f") as outer, Named("g") as inner:
        assert _get_current_function_mode_stack() == [outer, inner]
        assert type(torch.add(x, 1)) is Logging
    assert log == ["g:torch.add", "f:torch.add", "torch.add"]
    with BaseTorchFunctionMode():
        assert type(x + 1) is Logging

    class Refuses(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match="no implementation found"), Refuses():
        torch.ones(2)
    with Refuses(), torch._C.DisableTorchFunction():
        assert torch.ones(2).tolist() == [1, 1]

    class Replaces(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return "ones" if func is torch.ones else func(*args, **(kwargs or {}))

    with Replaces():
        assert torch.ones(2) == "ones" and torch.zeros(1).tolist() == [0]


def test_what_there_is_to_override():
    found = get_overridable_functions()
    assert torch.add in found[torch] and torch.Tensor.add in found[torch.Tensor]
    assert F.gelu in found[F] and torch.Tensor.shape.__get__ in found[torch.Tensor]
    assert set(get_testing_overrides()) == {f for fs in found.values() for f in fs}
    assert resolve_name(torch.add) == "torch.add" and resolve_name(F.relu) == (
        "torch.nn.functional.relu")
    assert resolve_name(torch.Tensor.grad.__set__) == "torch.Tensor.grad.__set__"
    assert is_tensor_method_or_property(torch.Tensor.add)
    assert is_tensor_method_or_property(torch.Tensor.shape.__get__)
    assert not is_tensor_method_or_property(torch.add)


METHODS = """
import inspect
import pickle
import pullback as torch
from pullback.threads.state import fast

added = torch.Tensor.__add__
sinh, keys = torch.Tensor.sinh, {torch.Tensor.sinh: "sinh", torch.Tensor.mul: "mul"}
for _ in range(20):
    torch.ones(2).sinh().mul(torch.ones(2)) + 1
assert torch.Tensor.sinh is sinh and set(keys) == {torch.Tensor.sinh, torch.Tensor.mul}
assert torch.Tensor.__add__ is added and pickle.loads(pickle.dumps(sinh)) is sinh
assert sinh.__code__.co_filename.startswith("<pullback call of sinh")
assert sinh.__globals__ is fast and sinh.__qualname__ == "Tensor.sinh"
dropout = torch.nn.functional.dropout
assert list(inspect.signature(dropout).parameters) == ["input", "p", "training", "inplace"]
"""


def test_methods_stay_the_objects_that_they_were():
    """The generated functions are there before anybody has one.

    In a process of its own: derivatives that tests write anew leave an operator its general way.
    """
    subprocess.run([sys.executable, "-c", METHODS], check=True)


def test_memory_is_marked_only_while_the_class_is_asked():
    x = torch.ones(2).as_subclass(Plain)
    assert type(x._payload) is Marked
    with DisableTorchFunctionSubclass():
        assert type(x._payload) is not Marked
    p = torch.nn.Parameter(torch.ones(2))
    assert type(p._payload) is not Marked and type(p * 2) is torch.Tensor


def test_copies_pickles_and_print():
    x = torch.ones(2, 2).as_subclass(Pickled)
    x.tag = [1]
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(y) is Pickled and y.tolist() == [[1, 1], [1, 1]] and y.tag == [1]
        assert y.tag is not x.tag
    assert repr(x) == "Plain([[1., 1.],\n       [1., 1.]])"


def test_parameters_of_a_class():
    p = torch.nn.Parameter(torch.ones(2).as_subclass(Plain))
    assert type(p) is Plain and isinstance(p, torch.nn.Parameter) and p.requires_grad and p.is_leaf
    module = torch.nn.Module()
    module.p = p
    assert [n for n, _ in module.named_parameters()] == ["p"]
    assert not isinstance(torch.ones(2).as_subclass(Plain), torch.nn.Parameter)
    (module.p * 3).sum().backward()
    assert p.grad.tolist() == [3, 3]
    assert repr(p) == "Parameter(Plain([1., 1.], requires_grad=True))"
    assert [type(t) for t in p.detach()] == [Plain, Plain]


def test_conditions_in_compiled_functions_are_still_the_users():
    torch.ones(1).as_subclass(Plain)  # functions ask from now on

    @torch.compile
    def either(x):
        return x if x.sum() > 0 else -x

    assert either(torch.ones(3)).tolist() == [1] * 3 == either(-torch.ones(3)).tolist()
    assert len(either.programs) == 2


def test_a_device_as_a_mode():
    from pullback.utils._device import DeviceContext, set_device

    with DeviceContext("meta"):
        assert torch.ones(2).is_meta and torch.tensor([1.0]).is_meta and torch.randn(2).is_meta
        assert torch.nn.Linear(2, 2).weight.is_meta
        assert torch.arange(3, device="cpu").device.type == "cpu"
        assert torch.zeros_like(torch.ones(1, device="cpu")).device.type == "cpu"
    assert torch.ones(1).device.type == "cpu"
    assert set_device("meta")(lambda: torch.ones(1))().is_meta


def test_frames_of_functions_that_ask_can_be_looked_at():
    program = """
import sys, pullback as pb
from pullback.overrides import TorchFunctionMode

class Mode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))

with Mode():
    pb.ones(2)
try:
    pb.func.vmap(lambda x: x.storage())(pb.ones(2))
except Exception:
    at = sys.exc_info()[2]
    while at:
        assert type(dict(at.tb_frame.f_locals)) is dict
        at = at.tb_next
    print("seen")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "seen", done.stderr


@pytest.mark.parametrize("name", ["_data", "_meta"])
def test_a_class_may_use_names_of_slots(name):
    class Named(torch.Tensor):
        def __new__(cls, value, note):
            made = torch.Tensor._make_subclass(cls, value)
            setattr(made, name, note)
            return made

    class Plain(torch.Tensor):
        pass

    x, plain = Named(torch.ones(2), "note"), Plain(torch.ones(2))
    assert getattr(x, name) == "note" == getattr(copy.deepcopy(x), name)
    assert (x + 1).tolist() == [2, 2] and x.mul_(3).tolist() == [3, 3] and type(x * 2) is Named
    x.requires_grad_()
    (x * x).sum().backward()
    assert x.grad.tolist() == [6, 6] and getattr(x, name) == "note"
    assert (plain + 1).tolist() == [2, 2]


def test_a_wrapper_may_call_what_it_holds_data():
    class Box(torch.Tensor):
        def __new__(cls, inner):
            made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
            made._data = inner
            return made

        def __tensor_flatten__(self):
            return ["_data"], None

        @staticmethod
        def __tensor_unflatten__(inner, meta, size, stride):
            return Box(inner["_data"])

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            out = func(*[a._data if isinstance(a, Box) else a for a in args], **(kwargs or {}))
            if func is torch.ops.aten.sub.Tensor:
                return None
            return Box(out) if isinstance(out, torch.Tensor) else out

    for way in (lambda f: f, torch.compile):
        x = Box(torch.ones(2)).requires_grad_()
        y = way(lambda x: x * x + x)(x)
        y.backward(Box(torch.ones(2)))
        assert y._data.tolist() == [2, 2] and x.grad._data.tolist() == [3, 3]
    assert (x - x) is None  # so the class answers, whether there is a history or not


def test_autograd_grad_asks():
    found = []

    class Asked(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            found.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    x = Asked(torch.ones(2)).requires_grad_()
    (grad,) = torch.autograd.grad((x * 2).sum(), x)
    assert torch.autograd.grad in found and type(grad) is Asked
    with pytest.raises(TypeError, match="no implementation"):
        torch.autograd.grad(Declining(), x)


class Declining:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


def test_functions_beside_their_modules_ask():
    class Asked(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__

    x = Asked(torch.ones(3, 3))
    assert torch.lobpcg(x) == "lobpcg"
    given = [x, x, x, 3, 1, x, x, None, None, False, 0.0, x, x]
    assert F.multi_head_attention_forward(*given) == "multi_head_attention_forward"


@pytest.mark.parametrize("name, shown", [
    ("__getitem__", None), ("__setitem__", None), ("half", None), ("detach", None), ("dim", None),
    ("__rsub__", None), ("__eq__", None), ("type", None), ("__pow__", "pow"),
])
def test_names_of_methods(name, shown):
    method = getattr(torch.Tensor, name)
    assert method.__name__ == (shown or name) and method.__qualname__ == f"Tensor.{shown or name}"


@pytest.mark.parametrize("module", [F, torch.functional, torch.linalg])
def test_every_function_that_is_written_in_python_asks(module):
    class Told(Exception):
        pass

    class Tells(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            raise Told(function)

    for name, function in list(vars(module).items()):
        if name[0] == "_" or type(function) is not types.FunctionType or not (
                function.__module__.startswith(module.__name__)) or name == "reduction_code":
            continue
        needed = [p for p in inspect.signature(function).parameters.values()
                  if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
        with Tells(), pytest.raises(Told) as met:
            function(*[1] * sum(p.kind is not p.KEYWORD_ONLY for p in needed),
                     **{p.name: 1 for p in needed if p.kind is p.KEYWORD_ONLY})
        assert met.value.args == (function,)


def test_arguments_as_handlers_get_them():
    """As they were given, but for defaults; what has one in PyTorch's functions is a keyword."""
    seen = []

    class Sees(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append((function, args, kwargs))
            return function(*args, **(kwargs or {}))

    x, w, b = torch.ones(2, 2), torch.ones(3, 2), torch.ones(3)
    with Sees():
        F.relu(x), F.relu(x, False), F.dropout(x, 0.0), F.linear(x, w), F.linear(x, w, bias=b)
        x.size(0), x.dim(), F.gelu(x, approximate="tanh"), torch.functional.block_diag(x, w)
    assert seen == [
        (F.relu, (x,), {}), (F.relu, (x,), {}), (F.dropout, (x,), {"p": 0.0}),
        (F.linear, (x, w), {}), (F.linear, (x, w, b), {}), (torch.Tensor.size, (x, 0), {}),
        (torch.Tensor.dim, (x,), {}), (F.gelu, (x,), {"approximate": "tanh"}),
        (torch.functional.block_diag, (x, w), {})]
