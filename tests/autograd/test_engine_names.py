"""What programs ask of the engine by PyTorch's names, and tensors of inference mode."""

import warnings

import pytest

import pullback as torch


def leaf(n=2, **options):
    return torch.ones(n, requires_grad=True, **options)


def test_nodes_are_known_by_the_names_of_their_classes():
    x = leaf(4)
    y = x * 2 + x
    assert type(y.grad_fn).__name__ == "AddBackward0"
    names = [type(f).__name__ for f, _ in y.grad_fn.next_functions]
    assert names == ["MulBackward0", "AccumulateGrad"]
    assert type(x.split(2)[1].grad_fn).__name__ == "SplitBackward0"
    assert type(x.sum().grad_fn) is type((2 * x).sum().grad_fn)
    assert isinstance(y.grad_fn, torch.autograd.graph.Node)


def test_a_node_can_be_called():
    x = leaf()
    assert (x * 3).grad_fn(torch.ones(2))[0].tolist() == [3, 3]
    assert x.exp().sum().grad_fn(torch.tensor(1.0)).tolist() == [1, 1]


def test_grad_wants_inputs():
    with pytest.raises(RuntimeError, match="cannot be empty"):
        torch.autograd.grad(leaf().sum(), [])
    x = leaf()
    assert torch.autograd.grad(x.sum(), x, only_inputs=True)[0].tolist() == [1, 1]


def test_callbacks_run_at_the_end_of_the_sweep():
    log = []
    engine = torch.autograd.Variable._execution_engine
    x = leaf()
    y = x * 2
    y.register_hook(lambda g: engine.queue_callback(lambda: log.append(x.grad.tolist())))
    y.sum().backward()
    assert log == [[2, 2]]
    with pytest.raises(RuntimeError, match="only while a backward runs"):
        engine.queue_callback(print)


def test_variable_is_a_tensor():
    v = torch.autograd.Variable(torch.ones(2), requires_grad=True)
    assert v.requires_grad and v.is_leaf and isinstance(v, torch.autograd.Variable)
    with torch.autograd.set_multithreading_enabled(False):
        v.sum().backward()
    assert v.grad.tolist() == [1, 1]


def test_post_accumulate_hooks_return_nothing():
    x = leaf()
    x.register_post_accumulate_grad_hook(lambda p: 5)
    with pytest.raises(RuntimeError, match="should return None"):
        x.sum().backward()


def test_grad_of_a_non_leaf_warns():
    x = leaf()
    y = x * 2
    with pytest.warns(UserWarning, match="not a leaf"):
        assert y.grad is None
    y.retain_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert y.grad is None and x.grad is None


def test_grad_dtype():
    x = leaf()
    assert x.grad_dtype is torch.float32
    x.grad_dtype = torch.float64
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert x.grad.dtype is torch.float64 and x.grad.tolist() == [4, 4]
    with pytest.raises(RuntimeError, match="already"):
        x.grad_dtype = torch.float32
    with pytest.raises(RuntimeError, match="leaf"):
        (x * 2).grad_dtype = torch.float64


@pytest.mark.parametrize("name", ["data", "requires_grad"])
def test_what_cannot_be_deleted(name):
    with pytest.raises(RuntimeError):
        delattr(leaf(), name)


def test_hooks_of_a_tensor():
    x = leaf()
    assert x._backward_hooks is None
    handle = x.register_hook(lambda g: g)
    assert list(x._backward_hooks) == [handle.id]


def test_mutation_of_saved_tensors_is_allowed_inside_only():
    x = leaf()
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        y = x * 1
        z = y.sin()
        y.zero_()
    with pytest.raises(AssertionError, match="outside"):
        z.sum().backward()


class TestInferenceMode:
    def made(self):
        with torch.inference_mode():
            return torch.ones(2) * 2

    def test_results_are_marked(self):
        x = torch.ones(2)
        with torch.inference_mode():
            made = [torch.ones(2), x * 2, x.sum(), torch.tensor([1.0]), torch.cat([x, x])]
            assert all(t.is_inference() for t in made)
            assert made[0][0].is_inference()
            assert not x.is_inference() and not x[0].is_inference()
        assert not made[0].clone().is_inference()

    def test_no_version(self):
        with pytest.raises(RuntimeError, match="version"):
            self.made()._version

    def test_writes(self):
        y = self.made()
        with pytest.raises(RuntimeError, match="inference tensor"):
            y.add_(1)
        assert y.tolist() == [2, 2]
        with torch.inference_mode():
            assert y.add_(1).tolist() == [3, 3]
        x = torch.ones(2)
        with torch.inference_mode():
            x.add_(1)
        assert x._version == 1

    def test_gradients(self):
        y, x = self.made(), leaf()
        with pytest.raises(RuntimeError, match="inference"):
            y.requires_grad_()
        with pytest.raises(RuntimeError, match="saved for backward"):
            (x * y).sum().backward()
        (x + y).sum().backward()
        assert x.grad.tolist() == [1, 1]
        assert (x * y.clone()).sum().requires_grad

    def test_as_decorator(self):
        @torch.inference_mode
        def f(x):
            return (x * 2).requires_grad, torch.is_inference_mode_enabled()

        @torch.inference_mode(False)
        def g(x):
            return (x * 2).requires_grad

        assert f(leaf()) == (False, True)
        assert g(leaf())
