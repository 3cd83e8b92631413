"""Forward mode by hand: dual tensors, writes, both orders of mixing with reverse mode."""

import numpy as np
import pytest

import pullback as torch
import pullback.autograd.forward_ad as fw
from pullback.func import grad, jvp, vmap


def tensor(values, **kwargs):
    return torch.tensor(values, dtype=torch.float64, **kwargs)


def close(a, b):
    assert np.allclose(a.detach().numpy(), b.detach().numpy()), (a, b)


X, T = [0.5, 1.5, -2.0], [1.0, -1.0, 0.5]


def test_make_and_unpack():
    x, t = tensor(X), tensor(T)
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        primal, tangent = unpacked = fw.unpack_dual(dual)
        assert isinstance(unpacked, fw.UnpackedDualTensor)
        assert unpacked.tangent is tangent is t
        close(primal, x)
        out = fw.unpack_dual(torch.sin(dual) * dual)
        close(out.primal, torch.sin(x) * x)
        close(out.tangent, t * (torch.cos(x) * x + torch.sin(x)))
        assert fw.unpack_dual(x).tangent is None
        assert fw.unpack_dual(x).primal is x
        assert fw.unpack_dual(torch.ones_like(dual)).tangent is None
        assert repr(fw.make_dual(torch.ones(2), torch.ones(2))) == (
            "tensor([1., 1.], tangent=tensor([1., 1.]))"
        )


def test_after_the_level_duals_are_primals():
    x, t = tensor(X), tensor(T)
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        out = dual.exp()
        view = out[1:]
    assert fw.unpack_dual(out).tangent is None
    close(out, torch.exp(x))
    out.mul_(2)
    close(view, 2 * torch.exp(x[1:]))
    assert "tangent" not in repr(out)
    with fw.dual_level():
        close(fw.unpack_dual(fw.make_dual(out, t) * 2).tangent, 2 * t)


def test_same_as_jvp():
    a, b = tensor(np.arange(12.0).reshape(3, 4) / 10), tensor(np.arange(12.0).reshape(4, 3) / 7)
    ta, tb = torch.ones_like(a), torch.cos(b)

    def f(a, b):
        m = torch.linalg.svdvals(a @ b + torch.eye(3, dtype=torch.float64))
        return torch.softmax(m, 0).cumsum(0), torch.logsumexp(a, 1)

    values, tangents = jvp(f, (a, b), (ta, tb))
    with fw.dual_level():
        outs = [fw.unpack_dual(o) for o in f(fw.make_dual(a, ta), fw.make_dual(b, tb))]
    for o, v, t in zip(outs, values, tangents):
        close(o.primal, v)
        close(o.tangent, t)


# errors


def test_no_level():
    with pytest.raises(RuntimeError, match="no level exists") as caught:
        fw.make_dual(tensor(X), tensor(T))
    assert "test_forward_ad.py:" in str(caught.value).splitlines()[0]
    with pytest.raises(RuntimeError, match="positive number"):
        fw.exit_dual_level()
    x = tensor(X)
    assert fw.unpack_dual(x) == (x, None)


def test_levels_do_not_nest():
    assert fw.enter_dual_level() == 0
    try:
        with pytest.raises(RuntimeError, match="Nested forward mode AD"):
            fw.enter_dual_level()
        with pytest.raises(RuntimeError, match="not the last one"):
            fw.exit_dual_level(level=1)
        with pytest.raises(RuntimeError, match="Invalid level"):
            fw.make_dual(tensor(X), tensor(T), level=1)
    finally:
        fw.exit_dual_level()


def test_what_can_be_dual():
    x, t = tensor(X), tensor(T)
    with fw.dual_level():
        with pytest.raises(RuntimeError, match="different size"):
            fw.make_dual(x, t[:2])
        with pytest.raises(ValueError, match="primal to be floating point"):
            fw.make_dual(torch.ones(3, dtype=torch.int64), t)
        with pytest.raises(ValueError, match="tangent to be floating point"):
            fw.make_dual(x, torch.ones(3, dtype=torch.int64))
        dual = fw.make_dual(x, t)
        with pytest.raises(RuntimeError, match="already has a forward gradient"):
            fw.make_dual(dual, t)
        close(fw.unpack_dual(fw.make_dual(dual.detach(), 2 * t)).tangent, 2 * t)


def test_exception_leaves_the_level():
    with pytest.raises(KeyError), fw.dual_level():
        raise KeyError
    with fw.dual_level():
        pass


def test_decorator():
    @fw.dual_level()
    def slope(x):
        return fw.unpack_dual(fw.make_dual(x, torch.ones_like(x)).exp()).tangent

    close(slope(tensor(X)), torch.exp(tensor(X)))
    close(slope(tensor(X)), torch.exp(tensor(X)))


# writes


def test_inplace_writes_primal_and_tangent():
    x, t = tensor(X), tensor(T)
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        dual.mul_(3)
        close(x, 3 * tensor(X))
        close(t, 3 * tensor(T))
        assert dual._version == x._version == 1
        x.add_(1)
        close(fw.unpack_dual(dual).primal, 3 * tensor(X) + 1)
        dual.pow_(2)
        close(fw.unpack_dual(dual).tangent, 2 * (3 * tensor(X) + 1) * 3 * tensor(T))
        dual.zero_()
        close(x, torch.zeros(3))
        close(fw.unpack_dual(dual).tangent, torch.zeros(3))


def test_writes_through_views():
    with fw.dual_level():
        y = fw.make_dual(tensor(X), tensor(T)).clone()
        view = y[1:]
        view.mul_(10)
        close(fw.unpack_dual(y).tangent, tensor([1.0, -10.0, 5.0]))
        y[0] = 7
        close(fw.unpack_dual(y).primal, tensor([7.0, 15.0, -20.0]))
        close(fw.unpack_dual(y).tangent, tensor([0.0, -10.0, 5.0]))
        y.mul_(2)
        close(fw.unpack_dual(view).tangent, tensor([-20.0, 10.0]))


def test_plain_tensors_become_duals():
    plain, base = torch.zeros(3, dtype=torch.float64), torch.zeros(4, dtype=torch.float64)
    view, memory = base[1:], base.numpy()
    with fw.dual_level():
        dual = fw.make_dual(tensor(X), tensor(T))
        plain.copy_(dual)
        close(fw.unpack_dual(plain).tangent, tensor(T))
        view.copy_(dual * 2)
        close(fw.unpack_dual(base).tangent, tensor([0.0, *(2 * v for v in T)]))
        close(fw.unpack_dual(base[1:]).primal, 2 * tensor(X))
    close(plain, tensor(X))
    close(base, tensor([0.0, *(2 * v for v in X)]))
    close(view, 2 * tensor(X))
    assert np.allclose(memory, base.numpy())


def test_leaf_is_not_written():
    x = tensor(X, requires_grad=True)
    with fw.dual_level():
        dual = fw.make_dual(x, tensor(T))
        with pytest.raises(RuntimeError, match="leaf"):
            dual.mul_(2)


def test_saved_values_notice_writes():
    x = tensor(X, requires_grad=True)
    with fw.dual_level():
        y = x * 1
        dual = fw.make_dual(y, tensor(T))
        out = dual.sin()
        dual.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            torch.autograd.grad(out.sum(), x)


# switches


def test_detach_and_modes():
    with fw.dual_level():
        dual = fw.make_dual(tensor(X), tensor(T))
        assert fw.unpack_dual(dual.detach()).tangent is None
        assert fw.unpack_dual(dual.data).tangent is None
        with torch.no_grad():
            close(fw.unpack_dual(dual * 2).tangent, 2 * tensor(T))
        with torch.inference_mode():
            assert fw.unpack_dual(dual * 2).tangent is None
        assert fw._is_fwd_grad_enabled()
        with fw.set_fwd_grad_enabled(False):
            assert not fw._is_fwd_grad_enabled()
            assert fw.unpack_dual(dual * 2).tangent is None
        assert fw._is_fwd_grad_enabled()
        close(fw.unpack_dual(dual * 2).tangent, 2 * tensor(T))


# with reverse mode


def test_forward_over_reverse():
    x, t = tensor(X, requires_grad=True), tensor(T)
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        out = (dual**3).sum()
        assert out.requires_grad
        for target in (x, dual):
            (g,) = torch.autograd.grad(out, target, retain_graph=True)
            close(fw.unpack_dual(g).primal, 3 * x**2)
            close(fw.unpack_dual(g).tangent, 6 * x * t)
            assert not fw.unpack_dual(g).tangent.requires_grad
        (g,) = torch.autograd.grad(out, x, create_graph=True)
        (third,) = torch.autograd.grad(fw.unpack_dual(g).tangent.sum(), x)
        close(third, 6 * t)
        out.backward()
    close(x.grad, 3 * x**2)


def test_reverse_over_forward():
    x, t = tensor(X, requires_grad=True), tensor(T, requires_grad=True)
    with fw.dual_level():
        out = fw.unpack_dual((fw.make_dual(x, t) ** 3).sum())
    out.tangent.backward()
    close(x.grad, 6 * x * t)
    close(t.grad, 3 * x**2)
    x.grad = None
    out.primal.backward()
    close(x.grad, 3 * x**2)


def test_weights_without_tangents_get_gradients():
    w = tensor([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]], requires_grad=True)
    b = tensor([0.1, 0.2], requires_grad=True)
    x, t = tensor(X), tensor(T)

    def loss(w, b, x):
        return torch.tanh((w * 2) @ x + b).pow(2).sum()

    wanted = jvp(lambda x: grad(loss, (0, 1))(w.detach(), b.detach(), x), (x,), (t,))
    with fw.dual_level():
        found = torch.autograd.grad(loss(w, b, fw.make_dual(x, t)), (w, b))
        found = [fw.unpack_dual(g) for g in found]
    for f, value, tangent in zip(found, *wanted):
        close(f.primal, value)
        close(f.tangent, tangent)


def test_backward_after_the_level():
    x = tensor(X, requires_grad=True)
    with fw.dual_level():
        out = fw.make_dual(x, tensor(T)).sin().exp()
    out.sum().backward()
    close(x.grad, torch.cos(x) * torch.exp(torch.sin(x)))


# with transforms


def test_inside_and_outside_of_transforms():
    x, t = tensor(X), tensor(T)

    def slope(x, t):
        with fw.dual_level():
            return fw.unpack_dual((fw.make_dual(x, t) ** 3).sum()).tangent

    close(grad(slope)(x, t), 6 * x * t)
    basis = torch.eye(3, dtype=torch.float64)
    close(vmap(slope, in_dims=(None, 0))(x, basis), 3 * x**2)
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        g = grad(lambda x: (x**3).sum())(dual)
        close(fw.unpack_dual(g).tangent, 6 * x * t)
        v = vmap(lambda x: x**3)(dual)
        close(fw.unpack_dual(v).tangent, 3 * x**2 * t)
        _, inner = jvp(lambda x: x**3, (dual,), (t,))
        close(fw.unpack_dual(inner).tangent, 6 * x * t * t)


def test_complex():
    x = torch.tensor([1 + 2j, 0.5 - 1j], dtype=torch.complex128)
    t = torch.tensor([1j, 1 + 1j], dtype=torch.complex128)
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        close(fw.unpack_dual(dual * dual).tangent, 2 * x * t)
        close(fw.unpack_dual(dual.abs()).tangent, (x.conj() * t).real / x.abs())
        close(fw.unpack_dual(dual.real).tangent, t.real)


# what is visible from outside


def test_gradients_of_leaves_carry_no_tangent():
    x = tensor(X, requires_grad=True)
    with fw.dual_level():
        dual = fw.make_dual(x, tensor(T))
        dual.pow(3).sum().backward()
        close(x.grad, 3 * x * x)
        assert fw.unpack_dual(x.grad).tangent is None
        (g,) = torch.autograd.grad(dual.pow(3).sum(), x)  # what is returned does
        close(fw.unpack_dual(g).tangent, 6 * x * tensor(T))
        x.grad = None
        dual.pow(3).sum().backward(create_graph=True)
        close(fw.unpack_dual(x.grad).tangent, 6 * x * tensor(T))


def test_a_dual_of_a_leaf_is_a_view_of_it():
    x, y = tensor(X, requires_grad=True), tensor(X)
    with fw.dual_level():
        dual, plain = fw.make_dual(x, tensor(T)), fw.make_dual(y, tensor(T))
        assert dual.requires_grad and not dual.is_leaf
        assert dual.grad_fn.name() == "ViewBackward0"
        assert dual.grad_fn.next_functions[0][0].variable is x
        assert plain.is_leaf and not plain.requires_grad
        plain.requires_grad_()
        plain.pow(2).sum().backward()
        close(plain.grad, 2 * y)
        assert fw.unpack_dual(plain.grad).tangent is None


def test_arrays_would_lose_the_tangent():
    with fw.dual_level():
        dual = fw.make_dual(tensor(X), tensor(T))
        for read in (lambda t: t.numpy(), np.asarray):
            with pytest.raises(RuntimeError, match=r"has a tangent.*detach"):
                read(dual)
        assert dual.detach().numpy().tolist() == dual.numpy(force=True).tolist() == X
        assert dual.tolist() == X and dual[0].item() == X[0]
        assert (dual > 0).numpy().tolist() == [True, True, False]
    with pytest.raises(RuntimeError, match="has a tangent"):
        jvp(lambda x: torch.from_numpy(x.numpy()), (tensor(X),), (tensor(T),))


def test_copies_without_tangent():
    import copy
    import pickle

    with fw.dual_level():
        dual = fw.make_dual(tensor(X), tensor(T))
        for made in (copy.deepcopy(dual), pickle.loads(pickle.dumps(dual))):
            close(made, tensor(X))
            assert fw.unpack_dual(made).tangent is None
        product = dual * 2
        product.detach_()
        assert fw.unpack_dual(product).tangent is None
        other = dual * 2
        other.data = tensor(T)  # the values only
        close(fw.unpack_dual(other).primal, tensor(T))
        close(fw.unpack_dual(other).tangent, 2 * tensor(T))
        plain = tensor(T)
        plain.data = dual
        assert fw.unpack_dual(plain).tangent is None
    seen = []

    def f(x):
        seen.append(copy.deepcopy(x))
        return (x * seen[0]).sum()

    close(grad(f)(tensor(X)), tensor(X))


def test_tangents_lie_as_their_primals():
    x = tensor(np.ones((2, 3)))
    for t in (tensor(np.arange(6.0).reshape(3, 2)).t(), tensor([[1.0, 2.0, 3.0]]).expand(2, 3)):
        with fw.dual_level():
            found = fw.unpack_dual(fw.make_dual(x, t)).tangent
            assert found.stride() == (3, 1) and found is not t
            close(found, t)
            found = fw.unpack_dual(fw.make_dual(x.t(), t.t())).tangent
            assert found.stride() == (1, 3)
    weights = tensor(np.ones((3, 2)), requires_grad=True)
    with fw.dual_level():
        dual = fw.make_dual(x, weights.t())
        fw.unpack_dual(dual * 3).tangent.sum().backward()
    close(weights.grad, tensor(np.full((3, 2), 3.0)))


def test_tangents_of_tangents():
    with fw.dual_level():
        dual = fw.make_dual(tensor(X), tensor(T))
        with pytest.raises(RuntimeError, match="itself has a forward gradient"):
            fw.make_dual(tensor(X), dual)
        with torch.inference_mode():
            assert fw.unpack_dual(dual).tangent is None
        with fw.set_fwd_grad_enabled(False):
            assert fw.unpack_dual(dual).tangent is None


def test_long_duals_print_on_two_lines():
    with fw.dual_level():
        dual = fw.make_dual(torch.ones(2, requires_grad=True), torch.ones(2))
        assert repr(dual * dual) == (
            "tensor([1., 1.], grad_fn=<MulBackward0>,\n"
            "       tangent=tensor([2., 2.], grad_fn=<AddBackward0>))"
        )
