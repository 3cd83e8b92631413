"""`torch.library` used rightly and wrongly: what PyTorch 2.13 gives, and which errors."""

import typing
from typing import Optional

import pytest

import pullback as torch
from pullback import library
from pullback.aot import aot_function, nop
from pullback.fx.make_fx import make_fx
from pullback.testing.two_tensor import TwoTensor
from pullback.utils._python_dispatch import TorchDispatchMode

T = torch.Tensor
X = torch.tensor([1.0, 2.0, 3.0])


@pytest.fixture
def lib():
    with library._scoped_library("tests_use", "FRAGMENT") as made:
        yield made
    assert not hasattr(torch.ops.tests_use, "f")


def sine(name, **options):
    @library.custom_op(f"tests_use::{name}", mutates_args=(), **options)
    def f(x: T) -> T:
        return x.sin()

    return f


# schemas


def hints(x: T, n: int, z: float = 1.5, s: str = "a", b: bool = True) -> T: ...
def sequences(x: T | None, ys: list[T], n: typing.Sequence[int]) -> tuple[T, T]: ...
def keywords(x: T, *, k: int = 3, d: torch.dtype = torch.float32) -> list[T]: ...
def nothing(x: T) -> None: ...
def numbers(x: T, device: torch.device, s: int | float | bool) -> float: ...
def without(x): ...
def any_number(x: T, *args) -> T: ...
def dictionary(x: dict) -> T: ...
def maybe(x: T) -> Optional[T]: ...  # noqa: UP045
def pair(x: T, n: tuple[int, int]) -> T: ...
def some(x: T) -> tuple[T, ...]: ...


@pytest.mark.parametrize("function, schema", [
    (hints, '(Tensor x, SymInt n, float z=1.5, str s="a", bool b=True) -> Tensor'),
    (sequences, "(Tensor? x, Tensor[] ys, SymInt[] n) -> (Tensor, Tensor)"),
    (keywords, "(Tensor x, *, SymInt k=3, ScalarType d=float32) -> Tensor[]"),
    (nothing, "(Tensor x) -> ()"),
    (numbers, "(Tensor x, Device device, Scalar s) -> float"),
])
def test_schemas_of_hints(function, schema):
    assert library.infer_schema(function, mutates_args=()) == schema


@pytest.mark.parametrize("function", [without, any_number, dictionary, maybe, pair, some])
def test_hints_that_no_schema_has(function):
    with pytest.raises(ValueError, match="infer_schema"):
        library.infer_schema(function, mutates_args=())


def test_schemas_of_arguments_that_are_written():
    assert library.infer_schema(sequences, mutates_args=("ys",)).startswith(
        "(Tensor? x, Tensor(a1!)[] ys")
    for names in (("q",), ("n",), "x"):
        with pytest.raises(ValueError, match="mutates_args"):
            library.infer_schema(hints, mutates_args=names)
    with pytest.raises(ValueError, match="mutates"):
        library.custom_op("tests_use::lies", lambda x: x * 1, mutates_args=(),
                          schema="(Tensor(a!) x) -> Tensor")


# operators


def test_names_of_an_operator(lib):
    f = sine("f")
    lib._names.add("f")
    packet = torch.ops.tests_use.f
    assert str(packet) == "tests_use.f" and packet.overloads() == ["default"]
    overload = packet.default
    assert str(overload) == "tests_use.f.default" and overload.name() == "tests_use::f"
    assert str(overload._schema) == "tests_use::f(Tensor x) -> Tensor"
    assert overload._schema.name == "tests_use::f" and not overload._schema.is_mutable
    assert overload.overloadpacket.default is overload and overload._overloadname == "default"
    assert str(torch.ops.aten.mul.Tensor._schema) == (
        "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor")
    with pytest.raises(AttributeError, match="no overload name"):
        _ = packet.other
    with pytest.raises(AttributeError, match="no attribute"):
        _ = torch.ops.nowhere.f
    for wrong in ((), (X, X), ("a",)):
        for kind in (RuntimeError, TypeError):
            with pytest.raises(kind, match="fit none"):
                f(*wrong)


@pytest.mark.parametrize("body, text", [
    (lambda x: x, "alias"), (lambda x: x[:2], "alias"), (lambda x: 3, "must be a Tensor"),
])
def test_results_that_are_refused(body, text, lib):
    f = library.custom_op("tests_use::f", body, mutates_args=(), schema="(Tensor x) -> Tensor")
    lib._names.add("f")
    with pytest.raises(RuntimeError, match=text):
        f(X)


def test_writes_count(lib):
    @library.custom_op("tests_use::f", mutates_args=("x",))
    def f(x: T) -> None:
        x.add_(1)

    lib._names.add("f")
    x = X.clone()
    assert f(x) is None and x.tolist() == [2, 3, 4] and x._version == 2
    assert torch.ops.tests_use.f.default._schema.is_mutable


def test_overloads(lib):
    assert lib.define("f(Tensor x) -> Tensor") == "f"
    assert lib.define("f.Scalar(Tensor x, Scalar s) -> Tensor") == "f"
    lib.impl("f", lambda x: x + 1, "CPU")
    lib.impl("f.Scalar", lambda x, s: x + s, "CPU")
    f = torch.ops.tests_use.f
    assert f.overloads() == ["default", "Scalar"] and str(f.Scalar) == "tests_use.f.Scalar"
    assert f(X).tolist() == [2, 3, 4] and f(X, 5).tolist() == [6, 7, 8]
    assert f.Scalar(X, 2).tolist() == [3, 4, 5]
    with pytest.raises(RuntimeError, match="fit none"):
        f(X, X, X)
    for name in ("f", "f.Scalar"):
        lib.impl(name, lambda x, *rest: torch.empty_like(x), "Meta")
    assert "torch.ops.tests_use.f.Scalar(x_1, 2)" in make_fx(lambda x: f(x, 2) + f(x))(X).code
    lib._destroy()
    assert torch.ops.tests_use.__class__.__name__ == "Namespace"


def test_functions_before_their_operator(lib):
    lib.impl("f", lambda x: x * 2, "CPU")
    with pytest.raises(AttributeError):
        _ = torch.ops.tests_use.f
    lib.define("f(Tensor x) -> Tensor")
    assert torch.ops.tests_use.f(X).tolist() == [2, 4, 6]


@pytest.mark.parametrize("key, kind", [
    ("FOO", RuntimeError), ("Functionalize", NotImplementedError)])
def test_keys_that_are_refused(key, kind, lib):
    lib.define("f(Tensor x) -> Tensor")
    with pytest.raises(kind):
        lib.impl("f", lambda x: x, key)
    lib.impl("f", library.fallthrough_kernel, "Functionalize")
    for wrong in (3, "other::f"):
        with pytest.raises(RuntimeError):
            lib.impl(wrong, lambda x: x, "CPU")


def test_keys_of_functions(lib):
    lib.define("f(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="no kernel"):
        torch.ops.tests_use.f(X)
    lib.impl("f", lambda x: x.float() * 2, "CompositeExplicitAutograd")
    lib.impl("f", lambda x: torch.ops.tests_use.f(x.bfloat16()).bfloat16(), "AutocastCPU")
    lib.impl("f", lambda keys, x: torch.empty_like(x), "Meta", with_keyset=True)
    assert torch.ops.tests_use.f(X).dtype is torch.float32
    with torch.autocast("cpu"):
        assert torch.ops.tests_use.f(X).dtype is torch.bfloat16
    assert torch.ops.tests_use.f(X.to("meta")).device.type == "meta"


def test_definitions_that_are_refused(lib):
    lib.define("f(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="multiple times"):
        lib.define("f(Tensor x) -> Tensor")
    for name, schema in (("tests_use::g", "Tensor x -> Tensor"), ("g", "(Tensor x) -> Tensor"),
                         ("tests_use::g", "(Foo x) -> Tensor"),
                         ("tests_use::g", "g(Tensor x) -> Tensor")):
        with pytest.raises(ValueError):
            library.define(name, schema)
    with pytest.raises(RuntimeError):
        lib.define("g(Foo x) -> Tensor")
    with pytest.raises(RuntimeError, match="Expected one of"):
        library.impl("tests_use::f", "foo")
    with pytest.raises(ValueError, match="unexpected type"):
        library.register_fake(3, lambda x: x)
    with pytest.raises(AttributeError, match="does not exist"):
        library.register_autograd("tests_use::g", lambda ctx, g: g)
    with pytest.raises(RuntimeError, match="Expected one of"):
        library.register_kernel("tests_use::f", "foo")


def test_the_function_of_a_definition(lib):
    @library.define(lib, "f(Tensor x) -> Tensor", alias_analysis="CONSERVATIVE")
    def f(x):
        return x * 2

    assert torch.ops.tests_use.f(X).tolist() == [2, 4, 6] == f(X).tolist()
    assert torch.ops.tests_use.f.default.decompose(X).tolist() == [2, 4, 6]
    assert torch.ops.aten.linear.default.decompose(X, X[None]).tolist() == [14]
    assert torch.ops.aten.add_.Tensor.decompose(X, X) is NotImplemented
    assert torch.ops.aten.mm.default.decompose(X[None], X[None]) is NotImplemented


def test_defaults_of_all_types():
    @library.custom_op("tests_use::g", mutates_args=())
    def g(x: T, n: typing.Sequence[int], d: torch.dtype = torch.int, e: torch.device = "cpu",
          s: str = "a") -> T:
        assert (n, d, e, s) == ([1, 2], torch.int32, torch.device("cpu"), "a")
        return x.sin()

    class Steps(typing.Sequence):
        def __len__(self):
            return 2

        def __getitem__(self, i):
            return range(1, 3)[i]

    for n in ([1, 2], (1, 2), range(1, 3), Steps()):
        assert torch.equal(g(X, n), X.sin())
    for nested in (list[list[int]], list[list[T]]):
        def h(x): ...

        h.__annotations__ = {"x": nested, "return": T}
        with pytest.raises(ValueError, match="unsupported type"):
            library.infer_schema(h, mutates_args=())


def test_schemas_under_their_names():
    made = torch._C.parse_schema("mine::f.two(Tensor (a!) x, int[]? n=None) -> Tensor(a!)[]")
    assert (made.name, made.overload_name, made.is_mutable) == ("mine::f", "two", True)
    x, n = made.arguments
    assert (x.alias_info.is_write, x.alias_info.before_set, x.type) == (True, {"a"}, "Tensor")
    assert (n.type, n.default_value, n.has_default_value()) == ("Optional[List[int]]", None, True)
    assert [r.type for r in made.returns] == ["List[Tensor]"] and n.alias_info is None
    assert str(torch._C.parse_schema("f(Tensor x) -> ()")) == "f(Tensor x) -> ()"
    assert torch.ops.aten.add_.Tensor._schema.arguments[0].alias_info.is_write


def test_gradients_of_defaults_may_be_left_out(lib):
    lib.define("f(Tensor x, Tensor y, int n=2, *, int k=3) -> Tensor")
    lib.impl("f", lambda x, y, n=2, *, k=3: x * y * n * k, "CPU")
    x = X.clone().requires_grad_()
    library.register_autograd("tests_use::f", lambda ctx, g: (g * 6, None))
    torch.ops.tests_use.f(x, X).sum().backward()
    assert x.grad.tolist() == [6, 6, 6]
    library.register_autograd("tests_use::f", lambda ctx, g: g)
    with pytest.raises(RuntimeError, match="incorrect number of gradients"):
        torch.ops.tests_use.f(x, X).sum().backward()


def test_gradients_of_lists_are_lists(lib):
    lib.define("f(Tensor[] xs) -> Tensor")
    lib.impl("f", lambda xs: xs[0] + xs[1], "CPU")
    xs = [X.clone().requires_grad_(), X.clone().requires_grad_()]
    for grads, text in ((lambda g: [g], "2 gradients but got 1"), (lambda g: g, "list of grad")):
        library.register_autograd("tests_use::f", lambda ctx, g, grads=grads: grads(g))
        with pytest.raises(RuntimeError, match=text):
            torch.ops.tests_use.f(xs).sum().backward()
    library.register_autograd("tests_use::f", lambda ctx, g: None)
    torch.ops.tests_use.f(xs).sum().backward()
    assert xs[0].grad is None


def test_rules_of_classes_and_modes(lib):
    f = sine("f")
    lib._names.add("f")
    f.register_fake(torch.empty_like)

    @library.register_torch_dispatch("tests_use::f", TwoTensor)
    def _(cls, func, types, args, kwargs):
        assert cls is TwoTensor and func is torch.ops.tests_use.f.default
        return TwoTensor(func(args[0].a), -func(args[0].b))

    class Doubling(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    @f.register_torch_dispatch(Doubling)
    def _(mode, func, types, args, kwargs):
        return func(*args) * 2

    two = TwoTensor(X, X * 2)
    out = f(two)
    assert torch.equal(out.a, X.sin()) and torch.equal(out.b, -(X * 2).sin())
    found = aot_function(lambda t: f(t), nop)(two)
    assert torch.equal(found.b, out.b)
    with Doubling():
        assert torch.equal(f(X), X.sin() * 2)
    with pytest.raises(TypeError, match="no class"):
        f.register_torch_dispatch(3)


def test_opcheck(lib):
    f = sine("f")
    lib._names.add("f")
    with pytest.raises(AssertionError, match="test_faketensor"):
        library.opcheck(f, (X,))
    assert library.opcheck(f, (X,), test_utils="test_schema") == {"test_schema": "SUCCESS"}
    f.register_fake(torch.empty_like)
    assert set(library.opcheck(f, (X,)).values()) == {"SUCCESS"}
    with pytest.raises(ValueError, match="subset"):
        library.opcheck(f, (X,), test_utils="test_everything")
    f.register_fake(lambda x: x.new_empty(7))
    found = library.opcheck(torch.ops.tests_use.f.default, (X,), raise_exception=False)
    assert isinstance(found["test_faketensor"], AssertionError)


def test_tags(lib):
    f = sine("f", tags=torch.Tag.pt2_compliant_tag)
    lib._names.add("f")
    assert f._opoverload.tags == [torch.Tag.pt2_compliant_tag]


@pytest.mark.parametrize("name, tags", [
    ("add.Tensor", "core pointwise"), ("add_.Tensor", "inplace pointwise"),
    ("add.out", "out pointwise"), ("rand.default", "core nondeterministic_seeded"),
    ("mean.dim", "core reduction"), ("nonzero.default", "core dynamic_output_shape"),
    ("item.default", "data_dependent_output"), ("transpose_.default", "inplace inplace_view"),
    ("expand_copy.default", "view_copy"), ("linalg_qr.default", ""), ("median.default", ""),
    ("dropout.default", "maybe_aliasing_or_mutating nondeterministic_seeded"),
])
def test_tags_of_the_table(name, tags):
    family, _, overload = name.partition(".")
    found = getattr(getattr(torch.ops.aten, family), overload).tags
    assert torch.Tag.pt2_compliant_tag in found
    assert {t.name for t in found} - {"pt2_compliant_tag"} == {*tags.split()}


def test_sizes_that_values_decide(lib):
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: torch.nonzero(x), "CPU")

    @library.register_fake("tests_use::f")
    def _(x):
        for bounds in ({"min": -1}, {"max": x.numel()}):
            if isinstance(x.shape[0], torch.SymInt) or "min" in bounds:
                with pytest.raises(ValueError, match="SymInt"):
                    library.get_ctx().new_dynamic_size(**bounds)
        size = library.get_ctx().new_dynamic_size()
        return x.new_empty([size, x.dim()], dtype=torch.int64)

    graph = make_fx(lambda x: torch.ops.tests_use.f(x) * 2, tracing_mode="symbolic")(X)
    assert graph(torch.tensor([0.0, 1.0, 1.0])).tolist() == [[2], [4]]
    with pytest.raises(torch.errors.DataDependentError, match="data-dependent shape"):
        make_fx(torch.ops.tests_use.f, tracing_mode="fake")(X)
    assert library.get_ctx() is None


def test_functions_for_dispatch_keys():
    from pullback import library

    with library._scoped_library("keyed", "FRAGMENT") as lib:
        lib.define("twice(Tensor x) -> Tensor")
        library.impl("keyed::twice", "CompositeImplicitAutograd")(lambda x: x * 2)
        assert torch.equal(torch.ops.keyed.twice(torch.ones(2)), torch.full((2,), 2.0))
        with pytest.raises(RuntimeError, match="device type at start of device string: nowhere"):
            library.impl("keyed::twice", "nowhere")(lambda x: x)


def test_gradients_are_prepared_only_if_wanted(lib):
    calls = []

    @library.custom_op("tests_use::f", mutates_args=())
    def f(x: T, y: float) -> T:
        return torch.as_tensor(x.numpy(force=True) + y)

    f.register_autograd(lambda ctx, g: (g, None),
                        setup_context=lambda ctx, inputs, output: calls.append(1))
    lib._names.add("f")
    x = X.clone().requires_grad_()
    with torch.no_grad():
        assert not f(x, 1.0).requires_grad
    f(X, 1.0)
    assert not calls
    f(x, 1.0).sum().backward()
    assert calls == [1] and x.grad.tolist() == [1, 1, 1]


def test_an_operator_that_makes_tensors(lib):
    @library.custom_op("tests_use::f", mutates_args={}, device_types="cpu")
    def f(device: torch.device) -> T:
        return torch.ones(3)

    lib._names.add("f")
    assert f(device="cpu").tolist() == f(torch.device("cpu")).tolist() == [1, 1, 1]


def test_schemas_from_hints(lib):
    def f(x: T, i: torch.device = torch.device("cpu:0")) -> T:  # noqa: B008
        return x

    assert library.infer_schema(f, mutates_args=()) == (
        '(Tensor x, Device i="cpu:0") -> Tensor')
    with pytest.raises(ValueError, match=r"{'y'} in mutates_args were not found"):
        library.infer_schema(f, mutates_args={"y"})
    with pytest.raises(ValueError, match=r"the op mutates {'x'}"):
        library.custom_op("tests_use::refused", f, mutates_args=(), schema="(Tensor(a!) x) -> ()")
    with pytest.raises(ValueError, match="OpOverload"):
        library.opcheck(torch.sin, (X,))


def test_the_older_way():
    from pullback.library import older

    name = "tests_use::scaled"

    @older.custom_op(name)
    def scaled(x: T, n: float) -> T:
        raise NotImplementedError

    try:
        older.impl(name, device_types="cpu",
                   func=lambda x, n: torch.as_tensor(x.numpy(force=True) * n))
        older.impl_abstract(name, func=lambda x, n: torch.empty_like(x))
        older.impl_save_for_backward(name, func=lambda inputs, output: {"n": inputs.n, "y": output})
        older.impl_backward(name, func=lambda ctx, saved, g: {"x": g * saved["n"]})
        x = X.clone().requires_grad_()
        torch.ops.tests_use.scaled(x, 3.0).sum().backward()
        assert x.grad.tolist() == [3, 3, 3]
        run = torch.compile(lambda x: torch.ops.tests_use.scaled(x, 2.0).sum())
        assert torch.autograd.grad(run(x), x)[0].tolist() == [2, 2, 2]
        with pytest.raises(RuntimeError, match="already has a backward"):
            older.impl_backward(name, func=lambda ctx, saved, g: {})
        for flags in (True, [True, False]):
            with pytest.raises(RuntimeError, match="output_differentiability"):
                older.impl_backward(name, flags, func=lambda ctx, saved, g: {})
    finally:
        older._destroy(name)
    older.custom_op(name, "(Tensor x) -> (Tensor[], Tensor)")
    try:
        older.impl(name, func=lambda x: ([x.clone(), x.sin()], x.cos()))
        older.impl_save_for_backward(name, func=lambda inputs, output: [])
        older.impl_backward(name, [False, True], func=lambda ctx, saved, gs, g: {"x": g})
        (a, b), c = torch.ops.tests_use.scaled(x)
        assert (a.requires_grad, b.requires_grad, c.requires_grad) == (False, False, True)
    finally:
        older._destroy(name)
    for schema in ("(Tensor(a!) x) -> Tensor", "(Tensor x) -> ()"):
        with pytest.raises(ValueError, match="only supports functional"):
            older.custom_op(name, schema)
    with pytest.raises(ValueError, match="to have name"):
        older.custom_op(name, lambda x: x)


def test_kernels_for_every_device_take_fakes(lib):
    """`CompositeExplicitAutograd`: a kernel made of operators says the shapes, too."""
    lib.define("halves(Tensor x, float by) -> Tensor[]")
    lib.impl("halves", lambda x, by: [x[:1] * by, x[1:] / by], "CompositeExplicitAutograd")

    def f(x):
        first, second = torch.ops.tests_use.halves(x.sin(), 2.0)
        return first.sum() + second.sum()

    compiled = torch.compile(f, fullgraph=True, dynamic=True)
    for n in (3, 5):
        assert torch.allclose(compiled(torch.ones(n)), f(torch.ones(n)))
    graph = torch.make_fx(f, tracing_mode="symbolic")(torch.ones(3))
    assert "torch.ops.tests_use.halves.default(sin, 2.0)" in graph.code
