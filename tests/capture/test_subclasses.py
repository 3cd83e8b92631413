"""Wrapper subclasses in compiled functions: graphs as PyTorch prints them, results as in eager.

`wrapper_programs.py` has the programs, `record_wrappers.py` wrote what PyTorch prints.
"""

import json
from pathlib import Path

import pytest

import pullback as torch
from pullback import pytree
from pullback.aot import (
    aot_function,
    aot_module,
    aot_module_simplified,
    make_boxed_compiler,
    nop,
)
from pullback.nn.utils.unwrapping import unwrap_tensor_subclass_parameters
from pullback.testing.two_tensor import TwoTensor, TwoTensorMode
from pullback.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from tests.helpers.aot_prints import check, prints
from tests.helpers.wrapper_programs import programs

RECORDED = json.loads((Path(__file__).parents[1] / "data/wrappers.json").read_text())
PROGRAMS = programs(torch, TwoTensor)
# PyTorch expects a plain gradient for a wrapper that was written; here it is a wrapper
OTHERWISE = {"both_written backward"}


@pytest.mark.parametrize("name", RECORDED)
def test_graphs_print_as_recorded(name):
    found = prints(torch, aot_function, make_boxed_compiler, *PROGRAMS[name])
    check(name, found, RECORDED[name], OTHERWISE)


def same(a, b):
    """Are two results the same, classes and what is inside included?"""
    if isinstance(a, (list, tuple)):
        assert type(a) is type(b) and len(a) == len(b)
        for x, y in zip(a, b):
            same(x, y)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        same(list(a.values()), list(b.values()))
    elif type(a) is TwoTensor:
        assert type(b) is TwoTensor and a.shape == b.shape and a.stride() == b.stride()
        same(a.a, b.a)
        same(a.b, b.b)
    elif isinstance(a, torch.Tensor):
        assert type(a) is type(b) and torch.allclose(a, b), (a, b)
    else:
        assert a == b


def ran(function, args):
    """What a call leaves behind: results, what they are views of, gradients, arguments."""
    out = function(*args)
    outs = [o for o in (out if isinstance(out, (tuple, list)) else [out])
            if isinstance(o, torch.Tensor)]
    facts = [(o.requires_grad, o.is_leaf, next((n for n, a in enumerate(args) if o._base is a), -1))
             for o in outs]
    tracked = [o for o in outs if o.requires_grad]
    leaves = [a for a in args if a.requires_grad and a.is_leaf]
    grads = torch.autograd.grad(
        tracked, leaves, [torch.ones_like(o) * 2 for o in tracked], allow_unused=True,
    ) if tracked and leaves else []
    return out, facts, list(grads), [a.detach() for a in args], [a._version for a in args]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("way", ["aot_function", "compile"])
def test_results_are_those_of_eager(name, way):
    function, start = PROGRAMS[name]
    made = aot_function(function, nop) if way == "aot_function" else torch.compile(function)
    for _ in range(2):
        same(ran(function, start()), ran(made, start()))


def two(*shape, grad=True, scale=3.0):
    a = torch.arange(1.0, 1 + torch.Size(shape).numel()).reshape(shape) / 8
    return TwoTensor(a, a * scale, requires_grad=grad)


def test_second_call_does_not_capture_again():
    seen = []
    g = torch.compile(lambda x: x.sin() * 2, backend=lambda m, _: seen.append(1) or m)
    for _ in range(3):
        same(g(two(2)), two(2).sin() * 2)
    assert len(seen) == 1
    g(two(3))
    assert len(seen) == 2
    with torch.no_grad():
        assert not g(two(2)).requires_grad


def test_gradients_of_gradients():
    f = torch.compile(lambda x: (x**3).sum())
    x = two(2)
    (g,) = torch.autograd.grad(f(x), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    same(h, (6 * x).detach())


def test_attributes_used_inside():
    f = torch.compile(lambda x: x.a.sin() + x.b)
    x = two(2, grad=False)
    same(f(x), x.a.sin() + x.b)
    nested = TwoTensor(two(2, grad=False), two(2, grad=False, scale=5.0))
    same(torch.compile(lambda x: (x * 2).b.b)(nested), nested.b.b * 2)


def test_parameters_and_closures_that_are_wrappers():
    module = torch.nn.Linear(2, 3)
    module.weight = torch.nn.Parameter(two(3, 2, grad=False))
    compiled, x = torch.compile(module), torch.ones(4, 2)
    for call in (module, compiled, compiled):
        module.zero_grad()
        out = call(x)
        out.sum().backward()
        assert type(out) is TwoTensor and type(module.weight.grad) is TwoTensor
        assert torch.allclose(module.weight.grad.b, torch.full((3, 2), 4.0))
        assert type(module.bias.grad) is TwoTensor
    w = two(2)
    f = torch.compile(lambda p: (p * w).sin())
    for _ in range(2):
        w.grad = None
        f(torch.ones(2)).sum().backward()
        same(w.grad.detach(), w.detach().cos())
    assert type(w) is TwoTensor and type(w.a) is torch.Tensor and w.is_leaf


def test_made_inside_and_modes_inside():
    def f(a):
        with TwoTensorMode():
            return torch.ones(2) * a

    same(torch.compile(f)(torch.ones(2)), f(torch.ones(2)))
    g = torch.compile(lambda a: TwoTensor(a, a * 2).sin())
    same(g(torch.ones(2)), TwoTensor(torch.ones(2), 2 * torch.ones(2)).sin())


def test_modes_around_the_call_see_what_eager_does():
    seen = []

    class Noting(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    f = torch.compile(lambda x: x.sin() * 2)
    f(torch.ones(2))
    with Noting():
        f(torch.ones(2))
    assert seen == ["aten.ones.default", "aten.sin.default", "aten.mul.Tensor"]


def test_modules_for_compilers():
    module = torch.nn.Linear(2, 2)
    module.weight = torch.nn.Parameter(two(2, 2, grad=False))
    seen = []

    def compiler(graph, inputs):
        seen.append(graph.code)
        return graph

    out = aot_module(module, compiler)(torch.ones(1, 2))
    out.sum().backward()
    assert "def forward(self, primals_1, primals_2, primals_3, primals_4):" in seen[0]
    assert "return (t_6, t_7, view, view_1, None)" in seen[1]
    assert type(module.weight.grad) is TwoTensor and type(module.bias.grad) is TwoTensor

    class Pair(torch.nn.Module):
        def forward(self, x):
            return (x * self.w,)

    pair = Pair()
    pair.w = torch.nn.Parameter(two(2, grad=False))
    (y,) = aot_module_simplified(pair, (torch.ones(2),), nop)(torch.ones(2))
    y.sum().backward()
    assert type(y) is TwoTensor and type(pair.w.grad) is TwoTensor


def test_parameters_as_functions_of_what_is_inside():
    module = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False))
    module[0].weight = torch.nn.Parameter(TwoTensor(two(2, 2, grad=False), two(2, 2, grad=False)))
    before = module(torch.ones(1, 2)).detach()
    assert unwrap_tensor_subclass_parameters(module) is module
    names = dict(module.named_parameters())
    assert list(names) == [f"0.parametrizations.weight.original{i}" for i in range(4)]
    assert all(type(p) is torch.nn.Parameter for p in names.values())
    out = module(torch.ones(1, 2))
    same(out.detach(), before)
    out.sum().backward()
    assert all(p.grad.tolist() == [[1, 1], [1, 1]] for p in names.values())


@pytest.mark.parametrize("mode", ["real", "fake"])
def test_traces_of_wrappers_that_are_arguments(mode):
    graph = torch.make_fx(lambda x, y: (x * y).sin(), tracing_mode=mode)(
        two(2, grad=False), torch.ones(2))
    assert [str(n.target) for n in graph.graph.nodes if n.op == "call_function"] == [
        "aten.mul.Tensor", "aten.sin.default"]
    x = two(2, grad=False)
    same(graph(x, torch.ones(2)), x.sin())


class Scaled(torch.Tensor):
    """A wrapper with a constant beside its tensor: values are elem * scale."""

    @staticmethod
    def __new__(cls, elem, scale, requires_grad=False):
        new = torch.Tensor._make_wrapper_subclass(
            cls, elem.shape, strides=elem.stride(), dtype=elem.dtype, requires_grad=requires_grad)
        new.elem, new.scale = elem, scale
        return new

    def __tensor_flatten__(self):
        return ["elem"], self.scale

    @staticmethod
    def __tensor_unflatten__(inner, meta, outer_size, outer_stride):
        return Scaled(inner["elem"], meta)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        scale = next(a.scale for a in args if isinstance(a, cls))
        inside = [a.elem if isinstance(a, cls) else a for a in args]
        out = func(*inside, **(kwargs or {}))
        out = cls(out, scale) if isinstance(out, torch.Tensor) else out
        return return_and_correct_aliasing(func, args, kwargs or {}, out)


class Coerced(Scaled):
    """The same, but gradients are expected with scale 1, whatever they come with."""

    @staticmethod
    def __tensor_unflatten__(inner, meta, outer_size, outer_stride):
        return Coerced(inner["elem"], meta)

    def __coerce_tangent_metadata__(self):
        return Coerced(self.elem, 1)

    def __coerce_same_metadata_as_tangent__(self, expected_metadata, expected_type=None):
        return (expected_type or type(self))(self.elem, expected_metadata)


def test_constants_of_a_class_are_kept():
    x = Scaled(torch.ones(2), 7, requires_grad=True)
    y = torch.compile(lambda x: x * 2)(x)
    assert type(y) is Scaled and y.scale == 7 and y.elem.tolist() == [2, 2]
    y.backward(Scaled(torch.ones(2), 7))
    assert type(x.grad) is Scaled and x.grad.elem.tolist() == [2, 2]
    seen = []
    f = torch.compile(lambda x: x * x.scale, backend=lambda m, _: seen.append(1) or m)
    for scale in (2, 3, 2):
        assert f(Scaled(torch.ones(1), scale)).elem.item() == scale
    assert len(seen) == 2


def test_gradients_of_another_kind_than_expected():
    x = Scaled(torch.ones(2), 7, requires_grad=True)
    y = torch.compile(lambda x: x * 2)(x)
    with pytest.raises(RuntimeError, match=r"guessed its\nmetadata incorrectly\.\n\s+Expected: 7"):
        y.backward(torch.ones(2))
    with pytest.raises(RuntimeError, match=r"incorrectly\.\n\s+Expected: 7.*got: 8"):
        torch.compile(lambda x: x * 2)(x).backward(Scaled(torch.ones(2), 8))
    p = torch.ones(2, requires_grad=True)
    z = torch.compile(lambda p: p * 2)(p)
    with pytest.raises(RuntimeError, match=r"incorrectly\.\n\s+Expected: None.*got: 8"):
        z.backward(Scaled(torch.ones(2), 8))
    c = Coerced(torch.ones(2), 7, requires_grad=True)
    y = torch.compile(lambda x: x * 2)(c)
    y.backward(Coerced(torch.ones(2), 9))
    assert type(y) is Coerced and y.scale == 7 and c.grad.scale == 1


@pytest.mark.parametrize("way", ["aot_function", "compile"])
def test_after_a_wrong_guess_it_is_captured_for_the_gradients_that_came(way):
    def f(x):
        return x * 2, x.sin()

    made = aot_function(f, nop) if way == "aot_function" else torch.compile(f)
    x = Scaled(torch.ones(2), 7, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"(?s)Expected: 7.*got: 8.*compiled for gradients of"):
        made(x)[0].backward(Scaled(torch.ones(2), 8))
    assert x.grad is None
    for _ in range(2):
        x.grad = None
        made(x)[0].backward(Scaled(torch.ones(2), 8))
        assert type(x.grad) is Scaled and x.grad.elem.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match=r"Expected: 8.*got: 7"):
        made(x)[0].backward(Scaled(torch.ones(2), 7))
    x.grad = None
    made(x)[0].backward(Scaled(torch.ones(2), 7))
    assert x.grad.elem.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match=r"Expected: 7") as caught:
        made(x)[0].backward(torch.ones(2))  # a plain one holds no tensors to take its place
    assert "compiled for gradients" not in str(caught.value)


def test_what_is_refused():
    with pytest.raises(RuntimeError, match="Metadata mutations are currently not allowed"):
        torch.compile(lambda x: x.t_())(two(2, 3, grad=False))

    class Opaque(torch.Tensor):
        __torch_dispatch__ = Scaled.__torch_dispatch__

    x = torch.Tensor._make_wrapper_subclass(Opaque, (2,))
    with pytest.raises(RuntimeError, match="how to take it apart"):
        torch.compile(lambda x: x.sin())(x)


def test_memory_is_shared_as_in_eager():
    def f(x):
        x.mul_(2)
        return x.view(-1), x

    for call in (f, torch.compile(f)):
        x = two(2, 2, grad=False)
        inside = x.a
        flat, again = call(x)
        assert again is x and flat._base is x and inside.data_ptr() == flat.a.data_ptr()
        flat.add_(1)
        assert torch.allclose(inside, torch.arange(1.0, 5.0).reshape(2, 2) / 4 + 1)
        assert x._version == 2


def view_of_intermediate():
    b = two(2, 2) * 1
    return [b.view(4), b]


def wrote_view(v, b):
    v.mul_(3)
    return b * 2, v * 1


def wrote_leaf(x):
    return x.mul_(2)


def wrote_inside(x):
    x.a.add_(1)
    return x * 1


def unrecorded_view(x):
    with torch.no_grad():
        v = x.view(-1)
    return v, x * 2


def leaf_made(x):
    return (x.detach() * 2).requires_grad_(), x * 2


def outputs_of_one_memory(x):
    y = x.sin()
    return y, y.view(-1), y.detach()


def same_one_twice(x, y):
    return x.add_(1) * y, x


def now_requires_grad(x, y):
    x.add_(y)
    return x * 2


def wrote_part(x):
    x[:1].mul_(3)
    return x.sum()


def inner_gradient(x):
    (g,) = torch.autograd.grad((x * x).sum(), x, create_graph=True)
    return g * x


@pytest.mark.parametrize(("function", "start"), [
    (wrote_inside, lambda: [two(2, grad=False)]), (unrecorded_view, lambda: [two(2, 2)]),
    (leaf_made, lambda: [two(2)]), (outputs_of_one_memory, lambda: [two(2, 2)]),
    (same_one_twice, lambda: [two(2, grad=False)] * 2), (same_one_twice, lambda: [two(2) * 1] * 2),
    (now_requires_grad, lambda: [two(2, grad=False), two(2)]), (wrote_part, lambda: [two(2) * 1]),
    (inner_gradient, lambda: [two(2)]),
    (lambda x: {"a": [x["p"] * 2, None, 3]}, lambda: [{"p": two(2)}]),
    (lambda x: (x.unbind(0)[0], x.split(1)), lambda: [two(2)]),
    (lambda x, y: (x * y).sum() + y, lambda: [two(2), torch.ones(2, requires_grad=True)]),
], ids=range(12))
@pytest.mark.parametrize("way", ["aot_function", "compile"])
def test_what_calls_leave_behind(function, start, way):
    made = aot_function(function, nop) if way == "aot_function" else torch.compile(function)
    for _ in range(2):
        same(left(function, start()), left(made, start()))


def left(function, args):
    out = function(*args)
    outs = [o for o in pytree.tree_leaves(out) if isinstance(o, torch.Tensor)]
    tensors = [t for t in pytree.tree_leaves(args) if isinstance(t, torch.Tensor)]
    facts = [(o.requires_grad, o.is_leaf, o._version, o.dtype, [o is t for t in tensors],
              [o._base is t for t in tensors]) for o in outs]
    tracked = [o for o in outs if o.grad_fn is not None]
    leaves = [t for t in tensors if t.requires_grad and t.is_leaf]
    grads = torch.autograd.grad(tracked, leaves, [torch.ones_like(o) for o in tracked],
                                allow_unused=True) if tracked and leaves else []
    bare = pytree.tree_map_only(torch.Tensor, lambda t: t.detach(), (out, args))
    return bare, facts, list(grads), [t._version for t in tensors]


def test_leaves_and_shared_memory_are_refused_as_in_eager_or_in_words():
    for made in (wrote_leaf, torch.compile(wrote_leaf), aot_function(wrote_leaf, nop)):
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            made(two(2))
    with pytest.raises(RuntimeError, match="aliased inputs that are mutated"):
        aot_function(wrote_view, nop)(*view_of_intermediate())
    plain = two(2).detach()
    with pytest.raises(RuntimeError, match="is a tensor subclass"):
        aot_function(lambda a, b: (a.mul_(2), b + 1)[1], nop)(plain.view(-1), plain.view(-1))
    same(left(wrote_view, view_of_intermediate()),
         left(torch.compile(wrote_view), view_of_intermediate()))


def views_of_inside(x):
    y = x * 2
    return y.view(-1), y.t(), y


def views_without_it(x):
    y = x * 2
    return y.view(-1), y[0], x.sin()


def written_inside(x):
    y = x * 2
    v = y.view(-1)
    v.mul_(x.view(-1))
    return y, v


def pieces_and_all(x):
    y = x.sin()
    return *y.unbind(0), y


def unnoticed_view(x):
    y = x * 2
    with torch.no_grad():
        v = y.view(-1)
    return v, y


def twice_the_same(x):
    y = x * 2
    return y, y


def two_of_them(x):
    y, z = x * 2, x * 3
    return {"a": (y, y.t()), "b": [z.view(-1), z]}


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("way", ["aot_function", "compile", "numpy"])
@pytest.mark.parametrize("function", [views_of_inside, views_without_it, written_inside,
                                      pieces_and_all, unnoticed_view, twice_the_same, two_of_them])
def test_results_that_show_the_memory_of_one_made_inside(function, way, grad):
    made = {"aot_function": lambda f: aot_function(f, nop), "compile": torch.compile,
            "numpy": lambda f: torch.compile(f, backend="numpy")}[way](function)
    for size in ((2, 3), (2, 3), (4, 3)):
        if function is not written_inside:  # whose results begin with version 0, as plain ones
            same(left(function, [two(*size, grad=grad)]), left(made, [two(*size, grad=grad)]))
        seen = []
        for call in (function, made):
            x = two(*size, grad=grad)
            outs = pytree.tree_leaves(call(x))
            places = {id(o): i for i, o in enumerate(outs)}
            with torch.no_grad():
                outs[-1].mul_(3)
            bases = [places.get(id(o._base)) for o in outs]
            seen.append((bases, [o.detach() for o in outs], [places[id(o)] for o in outs]))
        same(*seen)


def test_gradients_through_writes_into_results_that_share_memory():
    seen = []
    for call in (views_of_inside, torch.compile(views_of_inside),
                 aot_function(views_of_inside, nop)):
        x = two(2, 3)
        flat, turned, whole = call(x)
        whole.mul_(3)
        turned[0].mul_(5)
        flat.sum().backward()
        seen.append((flat.detach(), x.grad))
    same(seen[0], seen[1])
    same(seen[0], seen[2])


class Counted(Scaled):
    """Makes tensors inside of its operators."""

    @staticmethod
    def __tensor_unflatten__(inner, meta, outer_size, outer_stride):
        return Counted(inner["elem"], meta)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        out = super().__torch_dispatch__(func, types, args, kwargs)
        return cls(out.elem + torch.ones(out.shape) * 2, out.scale)


def test_factories_in_operators_and_mixed_classes():
    f = torch.compile(lambda x: x * 3)
    assert f(Counted(torch.ones(2), 1)).elem.tolist() == [5, 5]
    mixed = TwoTensor(Scaled(torch.ones(2), 4), Scaled(torch.ones(2), 4)).requires_grad_()
    y = torch.compile(lambda x: x.sin())(mixed)
    assert type(y.b) is Scaled and y.b.scale == 4
    y.sum().backward()
    assert torch.allclose(mixed.grad.a.elem, torch.ones(2).cos())


def nested_leaves():
    def one():
        return torch.ones(4, requires_grad=True)

    return TwoTensor(TwoTensor(one(), one()), TwoTensor(one(), one()))


def test_tensors_inside_with_histories_of_their_own():
    """`x.a` requires grad by itself: what is done to it goes to `x.a.grad`, not to `x.grad`."""
    def f(x, y):
        whole, part = x + y, x.a + y.b
        return x.sin().cos() + whole.sum() + part.sum()

    found = []
    for call in (f, torch.compile(f), torch.compile(lambda x, y: x.a * 2)):
        x, y = nested_leaves(), nested_leaves()
        call(x, y).sum().backward()
        found.append([x.grad, y.grad, x.a.grad, y.b.grad, x.a.a.grad])
    same(found[0], found[1])
    assert type(found[0][2].a) is TwoTensor and found[0][4] is None
    twos = TwoTensor(torch.full((4,), 2.0), torch.full((4,), 2.0))
    same(found[2], [None, None, twos, None, None])
    seen = []

    def show(graph, inputs):
        seen.append(len(inputs))
        return graph

    aot_function(lambda x: x * 2, show)(nested_leaves())
    assert seen == [4]  # what is inside is no input of its own where nobody asks


def test_attributes_that_are_wrappers_while_freezing():
    """Parameters and attributes that are wrappers, under the setting `freezing`."""
    from pullback._inductor import config
    from pullback.testing.two_tensor import TwoTensor

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(TwoTensor(torch.ones(3, 4), torch.full((3, 4), 2.0)),
                                        requires_grad=False)
            self.shift = torch.full((3, 4), 3.0)

        def forward(self, x):
            chosen = x.index_select(dim=0, index=torch.tensor([0, 2, 1]))
            return chosen + self.shift + self.w

    model, x = Model(), torch.arange(12.0).reshape(3, 4)
    with torch.no_grad(), config.patch(freezing=True):
        compiled = torch.compile(model)
        for _ in range(2):
            out = compiled(x)
    wanted = model(x)
    assert type(out) is TwoTensor
    assert torch.equal(out.a, wanted.a) and torch.equal(out.b, wanted.b)


def _kinds(t):
    """The structure of a tensor: nested pairs of None."""
    return (_kinds(t.a), _kinds(t.b)) if isinstance(t, TwoTensor) else None


def _nested(kind):
    return torch.ones(2) if kind is None else TwoTensor(_nested(kind[0]), _nested(kind[1]))


PAIR = (None, None)


@pytest.mark.parametrize("kinds", [
    (PAIR, PAIR), ((PAIR, None), (None, PAIR)), (PAIR, (PAIR, None))])
def test_several_wrappers_from_outside_get_their_gradients(kinds):
    def f(x):
        for p in parameters:
            x = x + 2 * p
        return x

    found = []
    for function in (f, torch.compile(f, backend="numpy")):
        parameters = [torch.nn.Parameter(_nested(kind)) for kind in kinds]
        function(torch.ones(2)).sum().backward()
        found.append([_kinds(p.grad) for p in parameters])
        assert all({v.sum().item() for v in _plain(p.grad)} == {4.0} for p in parameters)
    assert found[0] == found[1]


def _plain(t):
    return [*_plain(t.a), *_plain(t.b)] if isinstance(t, TwoTensor) else [t]


def test_a_wrapper_that_is_turned_in_place_keeps_its_history():
    leaf = TwoTensor(torch.ones(1, 2, 4), torch.ones(1, 2, 4)).requires_grad_()
    x = leaf.clone()
    x.transpose_(0, 1)
    assert x.shape == x.a.shape == (2, 1, 4)
    (x * 3).sum().backward()
    assert leaf.grad.shape == (1, 2, 4) and torch.equal(leaf.grad.a, torch.full((1, 2, 4), 3.0))


@pytest.mark.parametrize("kinds", [(PAIR,), ((PAIR, None), (None, PAIR))])
def test_unwrapped_parameters_get_gradients_when_compiled(kinds):
    class Product(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for n, kind in enumerate(kinds):
                setattr(self, f"p{n}", torch.nn.Parameter(_nested(kind)))

        def forward(self, x):
            for n in range(len(kinds)):
                x = x * getattr(self, f"p{n}")
            return x

    model = unwrap_tensor_subclass_parameters(Product())
    found = []
    for function in (model, torch.compile(model, backend="numpy")):
        model.zero_grad()
        function(torch.full((2,), 3.0)).sum().backward()
        found.append([_kinds(p.grad) for p in model.parameters()])
        assert all(torch.equal(v, torch.full((2,), 3.0))
                   for p in model.parameters() for v in _plain(p.grad))
    assert found[0] == found[1]


class _Marked(torch.Tensor):
    pass


@pytest.mark.parametrize("make", [
    lambda x: x.as_subclass(_Marked), lambda x: (x + 1).as_subclass(_Marked),
    lambda x: (_Marked(x * 2), x), lambda x: torch.nn.Parameter(x.detach() * 2),
    lambda x: ((x * 2).as_subclass(_Marked) + 1).view(-1)])
@pytest.mark.parametrize("tracked", [False, True])
def test_results_have_the_class_that_the_function_gave_them(make, tracked):
    compiled = torch.compile(make, backend="numpy")
    for _ in range(2):
        x = torch.ones(2, requires_grad=tracked)
        same(compiled(x), make(x))
