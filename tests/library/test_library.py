"""`pullback.library`: registered operators under every transform, and `testing.check` over them."""

import copy
import gc
import pickle
from collections.abc import Sequence

import numpy as np
import pytest

import pullback as torch
from pullback import Tensor, func
from pullback.testing import check

library = torch.library
grad = torch.autograd.grad
POINTS = np.array([0.5, -1.25, 2.0])


def plain(*values):
    return torch.tensor(values, dtype=torch.float64)


def leaf(*values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def close(t, expected):
    assert np.allclose(t.detach().numpy(), expected, rtol=1e-10, atol=1e-12)


@library.custom_op("tests_library::wave", mutates_args=())
def wave(x: Tensor, k: float = 1.0) -> Tensor:
    """sin(k x) by NumPy"""
    return torch.as_tensor(np.sin(k * x.numpy()))


@wave.register_fake
def _(x, k=1.0):
    return torch.empty_like(x)


def _wave_setup(ctx, inputs, output):
    x, ctx.k = inputs
    ctx.save_for_backward(x)


def _wave_backward(ctx, g):
    (x,) = ctx.saved_tensors
    return g * ctx.k * torch.cos(ctx.k * x), None


wave.register_autograd(_wave_backward, setup_context=_wave_setup)


@wave.register_vmap
def _(info, in_dims, x, k):
    return wave(x, k), in_dims[0]


def test_the_operator():
    x = torch.tensor(POINTS)
    close(wave(x, 2.0), np.sin(2 * POINTS))
    close(wave(x, k=2.0), np.sin(2 * POINTS))
    close(torch.ops.tests_library.wave(x), np.sin(POINTS))
    close(torch.ops.tests_library.wave.default(x), np.sin(POINTS))
    assert str(wave.schema) == "wave(Tensor x, float k=1.0) -> Tensor"
    assert wave.__doc__ == "sin(k x) by NumPy" and wave.__name__ == "wave"
    assert repr(torch.ops.tests_library.wave.default) == "tests_library.wave.default"
    own = torch.ops.tests_library
    aten = torch.ops.aten
    for operator in (own, own.wave, own.wave.default, aten.add, aten.add.out, aten.mul_.Scalar):
        again = pickle.loads(pickle.dumps(operator))
        assert again is copy.copy(operator) is copy.deepcopy(operator) is operator
    with pytest.raises(TypeError, match="fit none"):
        wave(3.0)
    with pytest.raises(AttributeError, match="nothing"):
        _ = torch.ops.tests_library.nothing
    with pytest.raises(AttributeError):
        _ = torch.ops.no_such_namespace.nothing


def test_derivatives():
    x = torch.tensor(POINTS, requires_grad=True)
    d = x.detach()
    (g,) = grad(wave(x, 2.0).sum(), x, create_graph=True)
    close(g, 2 * np.cos(2 * POINTS))
    close(grad(g.sum(), x)[0], -4 * np.sin(2 * POINTS))

    def f(x):
        return wave(x, 2.0).sum()

    close(func.grad(f)(d), 2 * np.cos(2 * POINTS))
    close(func.jvp(f, (d,), (d * 0 + 1,))[1], 2 * np.cos(2 * POINTS).sum())
    close(func.hessian(f)(d), np.diag(-4 * np.sin(2 * POINTS)))
    close(func.jacrev(func.jacfwd(f))(d), np.diag(-4 * np.sin(2 * POINTS)))
    close(func.vmap(func.grad(lambda x: wave(x, 2.0)))(d), 2 * np.cos(2 * POINTS))
    close(func.vmap(func.grad(func.grad(lambda x: wave(x, 2.0))))(d), -4 * np.sin(2 * POINTS))


def test_captured_and_compiled():
    x = torch.tensor(POINTS, requires_grad=True)

    def f(x):
        return (wave(x, 2.0) * x).sum()

    expected = np.sin(2 * POINTS) + 2 * POINTS * np.cos(2 * POINTS)
    graph = torch.make_fx(func.grad(f))(x.detach())
    assert "ops.tests_library.wave.default(x_1, 2.0)" in graph.code
    close(graph(x.detach()), expected)
    compiled = torch.compile(f)
    close(compiled(x), (np.sin(2 * POINTS) * POINTS).sum())
    compiled(x).backward()
    close(x.grad, expected)
    fake = torch.make_fx(f)(x.detach())
    close(grad(fake(x), x)[0], expected)  # a captured graph that runs eagerly has derivatives


def test_without_registrations():
    @library.custom_op("tests_library::bare", mutates_args=())
    def bare(x: Tensor) -> Tensor:
        return torch.as_tensor(x.numpy() * 2)

    x = leaf(1.0, 2.0)
    y = bare(x)
    assert y.requires_grad
    with pytest.raises(NotImplementedError, match="no autograd formula was registered"):
        y.sum().backward()
    with pytest.raises(NotImplementedError, match="no autograd formula"):
        func.jvp(bare, (x.detach(),), (x.detach(),))
    with pytest.warns(UserWarning, match="no batching rule"):
        assert func.vmap(bare)(x.detach()).tolist() == [2, 4]
    with pytest.warns(UserWarning, match="has no fake"):
        assert torch.compile(bare)(x.detach()).tolist() == [2, 4]
    with pytest.raises(NotImplementedError, match="has no fake"):
        torch.compile(bare, dynamic=True)(x.detach())


def test_loop_is_differentiable():
    @library.custom_op("tests_library::looped", mutates_args=())
    def looped(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x * y, x + y

    def setup(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    def backward(ctx, a, b):
        x, y = ctx.saved_tensors
        return a * y + b, a * x + b

    looped.register_autograd(backward, setup_context=setup)
    x, y = torch.tensor(POINTS), torch.tensor(2.0, dtype=torch.float64)

    def f(x, y):
        a, b = func.vmap(looped, in_dims=(0, None))(x, y)
        return (a * 10 + b).sum()

    with pytest.warns(UserWarning, match="no batching rule"):
        dx, dy = func.grad(f, argnums=(0, 1))(x, y)
    close(dx, [21, 21, 21])
    close(dy, 10 * POINTS.sum() + 3)
    assert check(looped, (x, x + 1), checks=["gradient", "forward", "vmap"]).ok


def test_lists_keywords_and_options():
    @library.custom_op("tests_library::blend", mutates_args=())
    def blend(
        items: Sequence[Tensor], weight: Tensor | None, sizes: list[int], *, scale: float = 2.0
    ) -> list[Tensor]:
        return [t * scale if weight is None else t * weight * scale for t in items]

    def setup(ctx, inputs, keyword_only_inputs, output):
        items, weight, sizes = inputs
        assert sizes == [1, 2] and isinstance(output, list)
        ctx.scale = keyword_only_inputs["scale"]
        assert len(ctx.needs_input_grad[0]) == 2
        ctx.save_for_backward(weight, *items)

    def backward(ctx, grads):
        weight, *items = ctx.saved_tensors
        given = [g * ctx.scale if weight is None else g * weight * ctx.scale for g in grads]
        dw = (
            None if weight is None else sum((g * t * ctx.scale).sum() for g, t in zip(grads, items))
        )
        return given, dw, None

    blend.register_autograd(backward, setup_context=setup)
    assert str(blend.schema) == (
        "blend(Tensor[] items, Tensor? weight, SymInt[] sizes, *, float scale=2.0) -> Tensor[]"
    )
    a, b, w = leaf(1.0, 2.0), leaf(3.0), torch.tensor(5.0, dtype=torch.float64, requires_grad=True)
    one, two = blend([a, b], w, [1, 2], scale=3.0)
    assert one.tolist() == [15, 30] and two.tolist() == [45]
    (one.sum() + 10 * two.sum()).backward()
    assert a.grad.tolist() == [15, 15] and b.grad.tolist() == [150] and w.grad.item() == 99
    one, two = blend([a, b], None, [1, 2])
    assert grad(one.sum(), a)[0].tolist() == [2, 2]

    def f(a, b):
        return blend([a, b], None, [1, 2])[0].sum()

    assert func.grad(f)(a.detach(), b.detach()).tolist() == [2, 2]


def test_writing():
    @library.custom_op("tests_library::scale_", mutates_args=("x",))
    def scale_(x: Tensor, k: float) -> None:
        array = x.numpy()
        array *= k

    @scale_.register_fake
    def _(x, k):
        return None

    assert str(scale_.schema) == "scale_(Tensor(a0!) x, float k) -> ()"
    x = plain(1.0, 2.0)
    assert scale_(x, 3.0) is None
    assert x.tolist() == [3, 6] and x._version == 1
    scale_(x[1:], 2.0)
    assert x.tolist() == [3, 12]

    def f(x):
        y = x * 1
        scale_(y, 3.0)
        return y.sum()

    graph = torch.make_fx(f)(x)
    assert "ops.tests_library.scale_.functional" in graph.code
    assert graph(x).item() == torch.compile(f)(x).item() == f(x).item() == 45
    y = plain(1.0, 2.0)
    torch.compile(lambda y: scale_(y, 2.0))(y)
    assert y.tolist() == [2, 4]
    z = leaf(1.0)
    with pytest.raises(RuntimeError, match="requires grad"):
        scale_(z * 1, 2.0)
    with torch.no_grad():
        scale_(z, 2.0)
    assert z.item() == 2
    with pytest.raises(RuntimeError, match="Cannot register autograd"):
        scale_.register_autograd(lambda ctx, g: g)
    report = check(scale_, (plain(1.0, 2.0), 3.0))
    assert [row.status for row in report.rows].count("success") == 3


def test_saved_values_notice_a_write():
    @library.custom_op("tests_library::zero_", mutates_args=("x",))
    def zero_(x: Tensor) -> None:
        x.zero_()

    x = leaf(1.0)
    y = x * 1
    z = y.sin()
    with torch.no_grad():
        zero_(y)
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        z.backward(plain(1.0))


def test_dishonest_operators():
    @library.custom_op("tests_library::same", mutates_args=())
    def same(x: Tensor) -> Tensor:
        return x

    @library.custom_op("tests_library::part", mutates_args=())
    def part(x: Tensor) -> Tensor:
        return x[:1]

    @library.custom_op("tests_library::sly", mutates_args=())
    def sly(x: Tensor) -> Tensor:
        x.add_(1)
        return x * 1

    @library.custom_op("tests_library::many", mutates_args=())
    def many(x: Tensor) -> tuple[Tensor, Tensor]:
        return (x * 1,)

    x = plain(1.0, 2.0)
    for op in (same, part):
        with pytest.raises(RuntimeError, match="may not alias"):
            op(x)
    with pytest.raises(TypeError, match="returned 1 values, its schema says 2"):
        many(x)
    report = check(sly, (x,), raise_on_failure=False)
    assert not report.ok and "changed an input" in str(report)
    with pytest.raises(AssertionError, match="changed an input"):
        check(sly, (x,))


def test_errors_of_the_function_are_its_own():
    @library.custom_op("tests_library::failing", mutates_args=())
    def failing(x: Tensor) -> Tensor:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        failing(plain(1.0))


def test_kernels_by_device():
    @library.custom_op("tests_library::placed", mutates_args=(), device_types="cuda")
    def placed(x: Tensor) -> Tensor:
        return x * 1

    with pytest.raises(NotImplementedError, match="no kernel for cpu"):
        placed(plain(1.0))

    @placed.register_kernel("cpu")
    def _(x):
        return x * 2

    assert placed(plain(1.0)).item() == 2


def test_own_jvp():
    seen = []

    @library.custom_op("tests_library::pushed", mutates_args=())
    def pushed(x: Tensor) -> Tensor:
        return x * x

    pushed.register_autograd(
        lambda ctx, g: 2 * g * ctx.saved_tensors[0],
        setup_context=lambda ctx, inputs, output: (
            ctx.save_for_backward(*inputs),
            ctx.save_for_forward(*inputs),
        ),
    )

    def jvp(ctx, t):
        seen.append(1)
        return 2 * ctx.saved_tensors[0] * t

    x = plain(3.0)
    assert func.jvp(pushed, (x,), (plain(1.0),))[1].item() == 6 and not seen
    library.register_jvp("tests_library::pushed", jvp)
    assert func.jvp(pushed, (x,), (plain(1.0),))[1].item() == 6 and seen


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda x: x, "must have a type annotation"),
        (lambda *x: x, "fixed number of parameters"),
    ],
)
def test_hints_are_needed(function, message):
    with pytest.raises(ValueError, match=message):
        library.infer_schema(function, mutates_args=())


def test_schemas_from_hints():
    def f(
        x: Tensor,
        n: int,
        s: str = "a",
        b: bool = False,
        d: torch.dtype | None = None,
        v: Sequence[float] | None = None,
        *,
        u: int | float | bool = 3,
    ) -> tuple[Tensor, int]:
        pass

    with pytest.raises(ValueError, match="mutates_args"):
        library.infer_schema(f, mutates_args=("other",))
    with pytest.raises(ValueError, match="sequence of the names"):
        library.infer_schema(f, mutates_args="x")
    assert library.infer_schema(f, mutates_args=("x",)) == (
        '(Tensor(a0!) x, SymInt n, str s="a", bool b=False, ScalarType? d=None, float[]? v=None, '
        "*, Scalar u=3) -> (Tensor, SymInt)"
    )

    def g(x: dict) -> Tensor:
        pass

    with pytest.raises(ValueError, match="unsupported type"):
        library.infer_schema(g, mutates_args=())


def test_libraries():
    lib = library.Library("tests_lib", "DEF")
    assert lib.define("twice(Tensor x, int n=1) -> Tensor") == "twice"
    lib.impl("twice", lambda x, n=1: torch.as_tensor(x.numpy() * 2 * n), "CPU")
    lib.impl("twice", lambda x, n=1: torch.empty_like(x), "Meta")
    assert torch.ops.tests_lib.twice(plain(1.0), 3).item() == 6
    library.register_autograd("tests_lib::twice", lambda ctx, g: (g * 2, None))
    x = leaf(1.0)
    assert grad(torch.ops.tests_lib.twice(x).sum(), x)[0].item() == 2
    assert torch.compile(lambda x: torch.ops.tests_lib.twice(x) + 1)(x.detach()).item() == 3
    lib.define("composed(Tensor x) -> Tensor")
    lib.impl("composed", lambda x: x.sin() * 2)  # made of operators: their derivatives are its own
    y = torch.ops.tests_lib.composed(x)
    assert np.isclose(grad(y.sum(), x)[0].item(), 2 * np.cos(1.0))
    library.define("tests_lib::third", "(Tensor x) -> Tensor")

    @library.impl("tests_lib::third", "cpu")
    def _(x):
        return x * 3

    assert torch.ops.tests_lib.third(plain(2.0)).item() == 6
    with pytest.raises(ValueError, match="Unsupported kind"):
        library.Library("tests_lib", "NEW")
    with pytest.raises(ValueError, match="reserved"):
        library.Library("aten", "DEF")
    with pytest.raises(RuntimeError, match="does not exist"):
        library.register_fake("tests_lib::absent")
    lib._destroy()
    with pytest.raises(AttributeError):
        _ = torch.ops.tests_lib.twice


def test_bad_names_and_second_definitions():
    with pytest.raises(ValueError, match="namespace::name"):
        library.define("nameless", "(Tensor x) -> Tensor")
    library.define("tests_library::again", "(Tensor x) -> Tensor")
    with pytest.warns(UserWarning, match="defined before"):
        library.custom_op("tests_library::again", lambda x: x, mutates_args=(),
                          schema="(Tensor x) -> Tensor")


# the kit


def test_a_report():
    report = check(wave, (torch.tensor(POINTS, dtype=torch.float32), 2.0))
    assert report.ok and [row.status for row in report.rows] == ["success"] * 7
    assert str(report).startswith("tests_library::wave(float32[3], 2.0)\n  pure         ok")
    assert set(library.opcheck(wave, (torch.tensor(POINTS), 2.0)).values()) == {"SUCCESS"}


def test_wrong_rules_are_found():
    @library.custom_op("tests_library::wrong", mutates_args=())
    def wrong(x: Tensor) -> Tensor:
        return x**3

    wrong.register_fake(lambda x: torch.empty(7))
    wrong.register_vmap(lambda info, dims, x: (x**2, dims[0]))
    wrong.register_autograd(
        lambda ctx, g: 2 * g * ctx.saved_tensors[0] ** 2,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    wrong.register_jvp(lambda ctx, t: t)
    report = check(wrong, (torch.tensor(POINTS),), raise_on_failure=False)
    failed = {row.name for row in report.rows if row.status == "failed"}
    assert {"gradient", "forward", "vmap", "fake"} <= failed
    with pytest.raises(AssertionError, match="FAILED"):
        check(wrong, (torch.tensor(POINTS),))


def test_a_function_is_checked_too():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, n):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            return 3 * g * ctx.saved_tensors[0] ** 2, None

    report = check(Cube, (torch.tensor(POINTS), "constant"))
    assert {row.name: row.status for row in report.rows} == {
        "pure": "success",
        "gradient": "success",
        "forward": "success",
        "second_order": "success",
        "vmap": "refused",
        "fake": "success",
        "compile": "success",
    }
    assert check(torch.nn.functional.softplus, (torch.tensor(POINTS),), {"beta": 2.0}).ok
    integers = check(lambda x: x + 1, (torch.tensor([1, 2]),))
    assert integers.ok and integers.rows[1].status == "skipped"
    values = check(lambda x: torch.as_tensor(x.numpy() * 2), (torch.tensor([1, 2]),))
    assert [row.name for row in values.rows if row.status == "refused"] == [
        "vmap",
        "fake",
        "compile",
    ]


def test_random_operations_are_not_pure():
    state = iter(range(100))

    def drifting(x):
        return x + next(state)

    with pytest.raises(AssertionError, match="a second call"):
        check(drifting, (torch.tensor(POINTS),))


# what surrounds a call


def doubled(name: str):
    @library.custom_op(f"surroundings::{name}", mutates_args=())
    def op(x: torch.Tensor) -> torch.Tensor:
        assert not torch.is_autocast_enabled("cpu") or name == "plain"
        return x * 2

    return op


def test_autocast_of_registered_operators():
    op, x = doubled("cast"), torch.tensor([1.5], requires_grad=True)
    library.register_autocast(op, "cpu", torch.bfloat16)
    op.register_autograd(lambda ctx, g: g * 2)
    assert op(x).dtype is torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = op(x)
        assert y.dtype is torch.bfloat16
        assert op(torch.tensor([1])).dtype is torch.int64
    y.sum().backward()
    assert x.grad.dtype is torch.float32 and x.grad.item() == 2
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert doubled("plain")(x).dtype is torch.float32
    with pytest.raises(ValueError, match="device type"):
        op.register_autocast("abacus", torch.float32)


def test_kernels_can_be_switched_off(caplog):
    op = doubled("switched")
    op.register_kernel("cpu")(lambda x: x * 10)
    x = torch.tensor([1.0])
    assert op(x).item() == 10
    with op.set_kernel_enabled("cpu", False):
        assert op(x).item() == 2
        with op.set_kernel_enabled("cpu"):
            assert op(x).item() == 10
    assert op(x).item() == 10
    assert not caplog.records
    with op.set_kernel_enabled("cuda", False), op.set_kernel_enabled("cpu"):
        assert "no kernel was registered" in caplog.text and "already enabled" in caplog.text


def test_older_names():
    lib = library.Library("surroundings", "FRAGMENT")
    lib.define("triple(Tensor x) -> Tensor")
    lib.impl("triple", lambda x: x * 3, "CPU")
    lib.impl("triple", library.fallthrough_kernel, "Autograd")
    with pytest.warns(FutureWarning, match="register_fake"):
        library.impl_abstract("surroundings::triple", torch.empty_like)
    assert torch.ops.surroundings.triple(torch.tensor([1.0], requires_grad=True)).item() == 3
    with pytest.raises(NotImplementedError):
        library.fallthrough_kernel()


def test_a_name_is_defined_once_while_its_library_lives():
    lib = torch.library.Library("tests_once", "DEF")
    lib.define("f(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="multiple times"):
        lib.define("f(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="multiple times"):
        torch.library.define("tests_once::f", "(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="single TORCH_LIBRARY"):
        torch.library.Library("tests_once", "DEF")
    more = torch.library.Library("tests_once", "FRAGMENT")
    more.define("g(Tensor x) -> Tensor")
    del lib, more
    gc.collect()
    again = torch.library.Library("tests_once", "DEF")
    again.define("f(Tensor x) -> Tensor")
    assert "tests_once::g" not in torch.library.definitions


def test_operators_for_triton_are_functions_of_others():
    @torch.library.triton_op("tests_lib::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    x = torch.ones(3, requires_grad=True)
    twice(x).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    with pytest.raises(torch.errors.NotInThisBuild, match="Triton"):
        torch.library.wrap_triton(lambda: None)
    assert torch.library.get_ctx() is None  # no fake is running
