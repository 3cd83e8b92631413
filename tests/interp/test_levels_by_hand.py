"""Levels, boxes and rules by hand: `_C._functorch`, `HigherOrderOperator`, helpers of rules."""

import pytest

import pullback as torch
from pullback import func
from pullback._C import DispatchKey, DispatchKeySet, _ExcludeDispatchKeyGuard
from pullback.autograd.function import Function, _SingleLevelFunction
from pullback.func import contexts, grad, inside, jvp, linearize, vmap
from pullback.torch.higher_order import HigherOrderOperator
from pullback.torch.install import counterpart
from tests.helpers.custom_functions import saving


def test_import_paths():
    for path, name in (("torch._C._functorch", "is_batchedtensor"),
                       ("torch._ops", "HigherOrderOperator"), ("torch._C._nn", "linear"),
                       ("torch._functorch.autograd_function", "CtxWithSavedTensors"),
                       ("torch._functorch.utils", "enable_single_level_autograd_function")):
        assert hasattr(counterpart(path), name)
    assert func.debug_unwrap is inside.debug_unwrap and callable(func.rearrange)


def test_what_a_tensor_is():
    seen = []

    def look(t):
        seen.append((inside.is_batchedtensor(t), inside.is_gradtrackingtensor(t),
                     inside.maybe_get_level(t), inside.dlevel(t), inside.maybe_get_bdim(t)))
        return t.sum()

    x = torch.ones(2, 3)
    look(x)
    vmap(look, in_dims=1)(x)
    grad(look)(x)
    vmap(grad(look))(x)
    jvp(look, (x,), (x,))
    assert seen == [(False, False, -1, 0, -1), (True, False, 1, 1, 1), (False, True, 1, 1, -1),
                    (False, True, 2, 2, -1), (False, True, 1, 1, -1)]
    kept = []
    grad(lambda t: (kept.append(t.sin()) or kept[0]).sum())(x)
    assert inside.is_dead_tensor_wrapper(kept[0])
    assert inside.maybe_get_level(kept[0]) == -2 and inside.dlevel(kept[0]) == -1
    assert not inside.is_functorch_wrapped_tensor(inside.unwrap_if_dead(kept[0]))


def test_unwrapping():
    x, seen = torch.ones(2, 3), []
    vmap(vmap(lambda t: seen.extend(
        [func.debug_unwrap(t), func.debug_unwrap(t, recurse=False)]) or t))(x)
    assert seen[0] is x and inside.is_batchedtensor(seen[1])
    assert func.debug_unwrap(x) is x
    with pytest.raises(RuntimeError, match="belongs to none"):
        inside.get_unwrapped(x)


def test_dims_into_and_out_of_each_other():
    x = torch.arange(24.0).reshape(2, 3, 4)
    assert torch.equal(inside.reshape_dim_into(1, 0, x),
                       x.transpose(0, 1).reshape(6, 4))
    assert torch.equal(inside.reshape_dim_into(0, 1, x), x.transpose(0, 1).reshape(3, 8))
    assert torch.equal(inside.reshape_dim_outof(2, 2, x), x.reshape(2, 3, 2, 2))
    with pytest.raises(RuntimeError, match="cannot be split"):
        inside.reshape_dim_outof(2, 3, x)


def test_levels_are_popped_to_a_depth():
    inside._vmap_increment_nesting(3, "error")
    inside._grad_increment_nesting()
    inside._jvp_increment_nesting()
    assert inside.get_dynamic_layer_stack_depth() == inside.current_level() == 3
    inside.pop_dynamic_layer_stack_and_undo_to_depth(2)
    assert inside.get_dynamic_layer_stack_depth() == 2
    with pytest.raises(RuntimeError, match="levels end in the order"):
        inside._vmap_decrement_nesting()
    inside.pop_dynamic_layer_stack_and_undo_to_depth(0)
    assert inside.get_dynamic_layer_stack_depth() == 0 and inside.maybe_current_level() is None
    assert torch.is_grad_enabled() and vmap(torch.sin)(torch.zeros(2)).tolist() == [0, 0]


def test_a_transform_by_hand():
    level = inside._vmap_increment_nesting(2, "error")
    try:
        x = inside._add_batch_dim(torch.ones(3, 2), 1, level)
        y = inside._remove_batch_dim(x * 2, level, 2, 0)
        z = inside._remove_batch_dim(torch.ones(3), level, 2, 0)
    finally:
        inside._vmap_decrement_nesting()
    assert y.shape == z.shape == (2, 3) and y.sum() == 12


class _Total(HigherOrderOperator):
    def __init__(self):
        super().__init__("total_of_tests")

    def __call__(self, x, dim):
        return super().__call__(x, dim)


total = _Total()


@total.py_impl(inside.TransformType.Vmap)
def _(level, x, dim):
    if not inside.is_batchedtensor(x):
        with level.lower():
            return total(x, dim)
    place, value = inside.maybe_get_bdim(x), inside.get_unwrapped(x)
    with level.lower():
        found = total(value.movedim(place, 0), dim + 1)
    return inside._add_batch_dim(found, 0, level.level())


@total.py_impl(inside.TransformType.Grad)
def _(level, x, dim):
    class Total(_SingleLevelFunction):
        @staticmethod
        def forward(ctx, x, dim):
            ctx.shape, ctx.dim = x.shape, dim
            below = inside._unwrap_for_grad(x, level.level())
            with torch.enable_grad(), level.lower():
                found = total(below, dim)
            return inside._wrap_for_grad(found, level.level())

        @staticmethod
        def backward(ctx, g):
            return g.unsqueeze(ctx.dim).expand(ctx.shape), None

    with contexts.enable_single_level_autograd_function():
        return Total.apply(x, dim)


@total.py_impl(DispatchKey.AutogradCPU)
def _(x, dim):
    return x.sum(dim)


def test_operator_with_a_rule_per_transform():
    x = torch.arange(24.0).reshape(2, 3, 4)
    assert torch.equal(total(x, 1), x.sum(1))
    assert torch.equal(vmap(total, (0, None))(x, 0), x.sum(1))
    assert torch.equal(vmap(vmap(total, (0, None)), (0, None))(x, 0), x.sum(2))
    v = torch.tensor([0.5, 1.0, 2.0])
    assert grad(total)(v, 0).tolist() == [1, 1, 1]
    assert torch.allclose(grad(lambda t: grad(lambda s: total(s.sin(), 0))(t).sum())(v), -v.sin())
    assert torch.equal(vmap(grad(total), (0, None))(x[0], 0), torch.ones(3, 4))
    leaf = v.clone().requires_grad_()
    with torch.no_grad():
        found = grad(total)(leaf, 0)
    assert not found.requires_grad

    def f(t):
        with torch.no_grad():
            shift = total(t**2, 0)
        return total(t**2, 0) - shift

    assert torch.equal(grad(f)(v), 2 * v)
    assert torch.equal(grad(lambda t: grad(f)(t).sum())(v), torch.full_like(v, 2))


def test_operator_without_a_rule():
    with pytest.raises(NotImplementedError, match="no rule for jvp"):
        jvp(lambda x: total(x, 0), (torch.ones(2),), (torch.ones(2),))
    with pytest.raises(RuntimeError, match="already"):
        total.py_impl(DispatchKey.AutogradCPU)
    with pytest.raises(RuntimeError, match="subclassed"):
        HigherOrderOperator("plain")


@pytest.mark.parametrize("key", ["Functionalize", "FuncTorchBatched", "Autograd"])
def test_transforms_do_not_depend_on_excluded_keys(key):
    from pullback._C import _dispatch_tls_local_exclude_set as excluded

    x = torch.tensor([0.5, 1.0])
    with _ExcludeDispatchKeyGuard(DispatchKeySet(DispatchKey[key])):
        assert excluded().has(DispatchKey[key])
        assert torch.equal(grad(lambda t: t.sin().sum())(x), x.cos())
        assert torch.equal(vmap(torch.sin)(x), x.sin())
        assert torch.equal(func.functionalize(lambda t: t.clone().sin_())(x), x.sin())
    assert not excluded().has(DispatchKey[key])


def test_contexts_with_other_saved_tensors():
    y, z = torch.tensor(2.0), torch.tensor(3.0)

    class Scaled(saving(lambda x: x * 1)):
        @staticmethod
        def backward(ctx, g):
            one = contexts.CtxWithSavedTensors(ctx, (y,))
            two = contexts.CtxWithSavedTensors(one, (z,))
            assert one.saved_tensors == (y,) and two.needs_input_grad == (True,)
            two.note = "kept"
            assert ctx.note == one.note == "kept"
            return g * two.saved_tensors[0]

    x = torch.tensor(1.0, requires_grad=True)
    Scaled.apply(x).backward()
    assert x.grad == 3

    class Taken(Function):
        @staticmethod
        def forward(ctx, x):
            ctx._pt_new_saved_tensors = 1
            return x * 1

        @staticmethod
        def backward(ctx, g):
            contexts.CtxWithSavedTensors(ctx, ())

    with pytest.raises(RuntimeError, match="name collision"):
        Taken.apply(x).backward()


def test_reductify_leaf():
    g = torch.arange(24.0).reshape(2, 3, 4)
    assert contexts.reductify_leaf(None, None, 0, 2) is None
    assert torch.equal(contexts.reductify_leaf(g, 0, None, 2), g.sum(0))
    assert torch.equal(contexts.reductify_leaf(g[0], None, 1, 2),
                       g[0].unsqueeze(1).expand(3, 2, 4))
    assert torch.equal(contexts.reductify_leaf(g[0], None, 1, 2, (4,)),
                       g[0].unsqueeze(2).expand(3, 4, 2).sum(0))
    assert torch.equal(contexts.reductify_leaf(g, 0, 1, 2), g.movedim(0, 1))


def test_names_of_nodes_and_forward_mode_inside_of_functions():
    from pullback.autograd.forward_ad import _is_fwd_grad_enabled

    names, enabled = [], []

    class FooBar(Function):
        @staticmethod
        def forward(x):
            enabled.append(_is_fwd_grad_enabled())
            return x * 1

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g

    def f(x):
        y = FooBar.apply(x)
        names.append(type(y.grad_fn).__name__)
        return y

    x = torch.tensor(1.0, requires_grad=True)
    f(x)
    grad(f)(x)
    assert names == ["FooBarBackward", "FooBarGeneratedBackward"]
    assert enabled == [False, False] and _is_fwd_grad_enabled()


def test_linearize_wants_tangents_like_the_primals():
    _, push = linearize(torch.sin, torch.ones(3, 1))
    for tangents, what in ((((torch.ones(3, 1),) * 2,), "same argspec as the primals"),
                           ((torch.ones(1, 3, 1),), "doesn't match the shape"),
                           ((torch.ones(3, 1).double(),), "doesn't match the dtype"),
                           ((torch.ones(3, 1, device="meta"),), "doesn't match the device")):
        with pytest.raises(RuntimeError, match=what):
            push(*tangents)
