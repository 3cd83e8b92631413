"""`decomposition_table` and what is built from it: PyTorch's interface to decompositions."""

import pytest

import pullback as torch
from pullback import decomp
from pullback.decomp import (
    core_aten_decompositions,
    decomposition_table,
    get_decompositions,
    global_decomposition_table,
    register_decomposition,
    remove_decompositions,
)
from pullback.fx.make_fx import make_fx

aten = torch.ops.aten


def targets(module) -> list[str]:
    return [str(n.target) for n in module.graph.nodes if n.op == "call_function"]


@pytest.fixture
def x():
    return torch.tensor([0.5, -1.0, 2.0])


def test_families_overloads_and_lists_name_operators():
    one = get_decompositions([aten.silu.default])
    assert list(one) == [aten.silu.default]
    assert get_decompositions([aten.silu]) == one
    assert get_decompositions({"a": [aten.silu], "b": aten.mm.default}) == one  # mm is core
    assert len(get_decompositions([aten.xlogy])) == 3
    with pytest.raises(TypeError, match="expected an operator"):
        get_decompositions(["silu"])


def test_a_decomposition_is_called_as_its_operator(x):
    table = decomposition_table
    torch.testing.assert_close(table[aten.silu.default](x), torch.nn.functional.silu(x))
    a = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(
        table[aten.logaddexp.default](a, other=a), torch.logaddexp(a, a)
    )
    with pytest.raises(TypeError):
        table[aten.silu.default]()


def test_overloads_that_write_follow_from_the_pure_one(x):
    found = get_decompositions([aten.silu_, aten.silu.out])
    assert set(found) == {aten.silu_.default, aten.silu.out}
    wanted = torch.nn.functional.silu(x)
    y = x.clone()
    assert found[aten.silu_.default](y) is y
    out = torch.empty(0)
    assert found[aten.silu.out](x, out=out) is out
    torch.testing.assert_close(y, wanted)
    torch.testing.assert_close(out, wanted)


def test_names_find_decompositions(x):
    assert torch.allclose(decomp.gelu(x), torch.nn.functional.gelu(x))
    assert torch.equal(decomp.xlogy(x, 2.0), torch.xlogy(x, 2.0))
    with pytest.raises(AttributeError):
        decomp.no_such_operator


def test_core_operators_stay_in_the_core_table():
    core, full = core_aten_decompositions(), decomposition_table
    assert aten._softmax.default in full and aten._softmax.default not in core
    assert aten.reflection_pad1d.default in core  # tagged core, and taken apart by PyTorch as well
    assert aten.native_layer_norm_backward.default in core
    assert set(core) < set(full)


def test_removing_stays_removed():
    table = core_aten_decompositions()
    remove_decompositions(table, [aten.silu, aten.xlogy.Tensor])
    assert aten.silu.default not in table and aten.xlogy.Tensor not in table
    assert aten.xlogy.Scalar_Other in table
    assert aten.silu.default in decomposition_table
    kept = decomposition_table[aten.silu.default]
    remove_decompositions(decomposition_table, [aten.silu])
    try:
        assert aten.silu.default not in decomposition_table
        assert not get_decompositions([aten.silu])
    finally:
        decomposition_table[aten.silu.default] = kept


def test_users_register_decompositions(x):
    mine: dict = {}

    @register_decomposition([aten.mm.default, aten.bmm], mine)
    def product(a, b):
        return (a.unsqueeze(-1) * b.unsqueeze(-3)).sum(-2)

    assert set(mine) == {aten.mm.default, aten.bmm.default}
    a = torch.arange(6.0).reshape(2, 3)
    module = make_fx(lambda a, b: a @ b, mine)(a, a.T)
    assert "aten.mm.default" not in targets(module)
    assert torch.equal(module(a, a.T), a @ a.T)
    with pytest.raises(RuntimeError, match=r"registrations for aten\.mm\.default"):
        register_decomposition(aten.mm, mine)(product)
    with pytest.raises(RuntimeError, match="duplicate registrations"):
        register_decomposition(aten.silu)(product)
    with pytest.raises(ValueError, match="post_autograd"):
        register_decomposition(aten.mm, type="other")


def test_registering_in_the_global_table_reaches_compiled_functions():
    calls = []

    @register_decomposition(aten.mm)
    def product(a, b):
        calls.append(1)
        return (a.unsqueeze(-1) * b.unsqueeze(-3)).sum(-2)

    try:
        assert decomposition_table[aten.mm.default] is product
        a = torch.arange(6.0).reshape(2, 3)
        assert torch.allclose(torch.compile(lambda a: a @ a.T)(a), a @ a.T)
        assert calls
    finally:
        remove_decompositions(decomposition_table, aten.mm)
    assert global_decomposition_table["post_autograd"] is decomposition_table
    assert not global_decomposition_table["pre_autograd"]


def test_a_users_function_gets_what_the_call_gave(x):
    seen = []

    def sum_up(self, mat1, mat2, *, beta=1, alpha=1):
        seen.append((beta, alpha))
        return self * beta + (mat1 @ mat2) * alpha

    a = torch.arange(6.0).reshape(2, 3)
    bias = torch.ones(2)
    f = lambda bias, a: torch.addmm(bias, a, a.T, alpha=3)
    module = make_fx(f, {aten.addmm: sum_up})(bias, a)
    assert seen == [(1, 3)]
    assert torch.equal(module(bias, a), f(bias, a))


def test_not_implemented_leaves_a_call_as_it_is(x):
    module = make_fx(torch.sin, {aten.sin.default: lambda x: NotImplemented})(x)
    assert targets(module) == ["aten.sin.default"]


def test_a_decomposition_may_return_its_input():
    """Its handle is on the tape already: the result is another one."""
    x = torch.ones(3, requires_grad=True)

    def f(x):
        return torch.autograd.grad(torch.sin(x).sum() + (x * x).sum(), x)[0]

    module = make_fx(f, {aten.sin.default: lambda x: x})(x)
    assert torch.allclose(module(x), torch.cos(x) + 2 * x)


def test_pytorch_paths(without_torch):
    from pullback.torch.install import install_as_torch

    with install_as_torch():
        import torch as named
        from torch._decomp import core_aten_decompositions as core
        from torch._decomp import get_decompositions as get
        from torch._decomp.decompositions import gelu_backward, silu
        from torch._refs import add
        from torch._refs.nn.functional import gelu

        x = named.tensor([1.0, 2.0])
        assert core is core_aten_decompositions and get is get_decompositions
        assert named.equal(add(x, 1), x + 1)
        named.testing.assert_close(silu(x), named.nn.functional.silu(x))
        assert named.equal(gelu(x), named.nn.functional.gelu(x))
        assert gelu_backward(x, x).shape == (2,)
        parts = named._decomp.decompositions  # a module as an attribute, too
        assert parts.threshold_backward(x, x, 1).tolist() == [0, 2]
