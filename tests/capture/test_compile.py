"""Compiled functions behave as eager ones: values, gradients of any order, history, mutation,
aliases, signatures.
"""

import warnings

import numpy as np
import pytest

import pullback as pb
import pullback.nn.functional as F
from pullback import errors, func

BACKENDS = ["numpy", "native"]


def leaves(*shapes, dtype=pb.float64, seed=0):
    random = np.random.default_rng(seed)
    return [pb.from_numpy(random.normal(size=s)).to(dtype).requires_grad_() for s in shapes]


def close(a, b, tol=1e-10):
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=tol, atol=tol)


def gelu_chain(x, w, b):
    return (F.gelu(x * w + b, approximate="tanh") * pb.tanh(x)).sum()


def two_outputs(x, w, b):
    h = pb.sin(x @ w)
    return h + b, (h * h).mean(0)


def mlp_loss(x, w, b):
    return F.cross_entropy(pb.relu(x @ w) + b, pb.tensor([0, 2, 1]))


CASES = {
    "gelu_chain": (gelu_chain, [(3, 4), (3, 4), (4,)]),
    "two_outputs": (two_outputs, [(3, 4), (4, 5), (5,)]),
    "mlp_loss": (mlp_loss, [(3, 4), (4, 5), (5,)]),
    "softmax": (lambda x, w, b: F.softmax(x @ w, -1) * b, [(3, 4), (4, 5), (5,)]),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (4,), w, b), [(3, 4), (4,), (4,)]),
}


def run(function, inputs, create_graph=False):
    out = function(*inputs)
    outs = out if isinstance(out, tuple) else (out,)
    seeds = [pb.ones_like(o) * 0.7 for o in outs]
    return outs, pb.autograd.grad(outs, inputs, seeds, create_graph=create_graph)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", list(CASES))
def test_values_and_gradients(name, backend):
    function, shapes = CASES[name]
    inputs = leaves(*shapes)
    compiled = pb.compile(function, backend=backend)
    for _ in range(3):
        for got, expected in zip(run(compiled, inputs), run(function, inputs)):
            for a, b in zip(got, expected, strict=True):
                close(a, b)


@pytest.mark.parametrize("name", list(CASES))
def test_double_backward(name):
    function, shapes = CASES[name]
    inputs = leaves(*shapes)
    second = []
    for f in (pb.compile(function), function):
        _, grads = run(f, inputs, create_graph=True)
        total = sum((g * g).sum() for g in grads)
        second.append(pb.autograd.grad(total, inputs, allow_unused=True))
    for a, b in zip(*second, strict=True):
        if a is None or b is None:
            assert a is None and b is None
        else:
            close(a, b, 1e-8)


@pytest.mark.parametrize("fuse", [True, False])
def test_loss_scaled_and_retained(fuse):
    inputs = leaves((3, 4), (3, 4), (4,))
    compiled = pb.compile(gelu_chain, options={"fuse_backward": fuse})
    loss = compiled(*inputs) * 3
    first = pb.autograd.grad(loss, inputs, retain_graph=True)
    second = pb.autograd.grad(loss, inputs)
    expected = pb.autograd.grad(gelu_chain(*inputs) * 3, inputs)
    for a, b, c in zip(first, second, expected):
        close(a, c)
        close(b, c)
    with pytest.raises(errors.GraphFreed):
        pb.autograd.grad(loss, inputs)


def test_fused_program_splits_when_backward_never_comes():
    inputs = leaves((3, 4), (3, 4), (4,))
    compiled = pb.compile(gelu_chain)
    for _ in range(6):
        compiled(*inputs)
    assert {name for _, name in compiled.parts()} == {"fused", "forward"}
    close(
        pb.autograd.grad(compiled(*inputs), inputs)[0],
        pb.autograd.grad(gelu_chain(*inputs), inputs)[0],
    )
    assert "backward" in {name for _, name in compiled.parts()}


def test_backward_is_compiled_on_first_use():
    inputs = leaves((3, 4), (4, 5), (5,))
    compiled = pb.compile(two_outputs)
    a, b = compiled(*inputs)
    assert {name for _, name in compiled.parts()} == {"forward"}
    (a.sum() + b.sum()).backward()
    assert {name for _, name in compiled.parts()} == {"forward", "backward"}


def test_accumulates_into_leaves_without_sharing_memory():
    x, y = leaves((3,), (3,))
    compiled = pb.compile(lambda a, b: (a + b).sum())
    compiled(x, y).backward()
    compiled(x, y).backward()
    assert x.grad.tolist() == y.grad.tolist() == [2, 2, 2]
    x.grad.zero_()
    assert y.grad.tolist() == [2, 2, 2]


def test_transforms_inside_and_outside():
    x = leaves((5,))[0].detach()
    f = lambda v: (pb.sin(v) * v).sum()
    close(pb.compile(func.grad(f))(x), func.grad(f)(x))
    close(func.grad(pb.compile(f))(x), func.grad(f)(x))
    close(pb.compile(func.hessian(f))(x), func.hessian(f)(x), 1e-9)
    rows = pb.stack([x, x * 2])
    close(func.vmap(pb.compile(f))(rows), func.vmap(f)(rows))
    close(pb.compile(func.vmap(func.grad(f)))(rows), func.vmap(func.grad(f))(rows))


def test_closure_tensors_become_inputs():
    w = leaves((4,))[0]
    compiled = pb.compile(lambda x: (x * w).sum())
    x = pb.ones(4, dtype=pb.float64)
    compiled(x).backward()
    close(w.grad, x)
    with pb.no_grad():
        w.add_(1)
    close(compiled(x), (x * w).sum())


def test_mutated_inputs_and_closures():
    buffer = pb.zeros(3)

    def f(x):
        x.mul_(2)
        buffer.add_(x)
        return x + 1

    for g in (f, pb.compile(f)):
        buffer.zero_()
        x = pb.ones(3)
        version = x._version
        out = g(x)
        assert (
            x.tolist() == [2, 2, 2] and buffer.tolist() == [2, 2, 2] and out.tolist() == [3, 3, 3]
        )
        assert x._version == version + 1


def test_outputs_that_are_inputs_or_views_of_them():
    def f(x):
        return x, x.t(), x * 1

    x = pb.ones(2, 3)
    same, view, fresh = pb.compile(f)(x)
    assert same is x and view._base is x and fresh._base is None
    x[0, 0] = 5
    assert view[0, 0].item() == 5 and fresh[0, 0].item() == 1


def test_signatures():
    def f(x, flag, options):
        return x * options["scale"] if flag else x

    compiled = pb.compile(f)
    x = pb.ones(3)
    for _ in range(2):
        assert compiled(x, True, {"scale": 2}).tolist() == [2, 2, 2]
    assert compiled(x, True, {"scale": 3}).tolist() == [3, 3, 3]
    assert compiled(x, False, {"scale": 3}).tolist() == [1, 1, 1]
    assert compiled(pb.ones(2), True, {"scale": 2}).tolist() == [2, 2]
    assert compiled(x.double(), True, {"scale": 2}).dtype is pb.float64
    assert len(compiled.programs) == 5


def test_requires_grad_is_part_of_the_signature():
    compiled = pb.compile(lambda x: x * 2)
    x = pb.ones(3)
    assert not compiled(x).requires_grad
    assert compiled(x.clone().requires_grad_()).requires_grad
    with pb.no_grad():
        assert not compiled(x.clone().requires_grad_()).requires_grad


def test_non_contiguous_and_empty_inputs():
    compiled = pb.compile(lambda x, y: (x * y).sum(0))
    x = pb.arange(12.0).reshape(3, 4).t()
    y = pb.arange(12.0).reshape(4, 3)
    close(compiled(x, y), (x * y).sum(0))
    empty = pb.zeros(0, 3)
    assert compiled(empty, empty).tolist() == [0, 0, 0]


def test_data_dependent_condition_is_refused_on_demand():
    def f(x):
        return x if x.sum() > 0 else -x

    x = pb.ones(3)
    with pytest.raises(errors.DataDependentError, match=r"test_compile\.py:"):
        pb.compile(f, fullgraph=True)(x)
    assert x.tolist() == [1, 1, 1]
    assert (x * 2).tolist() == [2, 2, 2]  # the process is as it was


def test_seeded_randomness_is_that_of_eager():
    def f(x):
        return F.dropout(x, 0.5) + pb.rand(4)

    x = pb.ones(4)
    pb.manual_seed(3)
    expected = [f(x), f(x)]
    pb.manual_seed(3)
    compiled = pb.compile(f)
    for e in expected:
        close(compiled(x), e, 1e-6)


def test_bitwise_equal_from_run_to_run():
    inputs = [t.detach() for t in leaves((64, 129), (64, 129), (129,), dtype=pb.float32)]
    compiled = pb.compile(func.grad_and_value(gelu_chain, argnums=(0, 1, 2)))
    (g1, v1), (g2, v2) = compiled(*inputs), compiled(*inputs)
    assert v1.item() == v2.item()
    for a, b in zip(g1, g2):
        assert np.array_equal(a.numpy(), b.numpy())


def test_without_a_compiler(monkeypatch):
    from pullback.compile import backend, toolchain
    from pullback.compile.errors import CompilerNotFound

    def missing():
        raise CompilerNotFound([("cc", "not found")])

    monkeypatch.setattr(toolchain, "find", missing)
    monkeypatch.setattr(backend, "_warned", False)
    inputs = leaves((3, 4), (3, 4), (4,))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiled = pb.compile(gelu_chain)
        close(compiled(*inputs), gelu_chain(*inputs))
        pb.compile(two_outputs)(*leaves((3, 4), (4, 5), (5,)))
    assert sum("compiler" in str(w.message) for w in caught) == 1


def test_aot_function_hands_graphs_to_the_compilers():
    seen = {}

    def keep(name):
        def compiler(module, example_inputs):
            seen[name] = module.code
            assert all(t.shape is not None for t in example_inputs)
            return module

        return compiler

    inputs = leaves((3,), (3,))
    f = pb.aot.aot_function(lambda a, b: (a * b).sin(), keep("forward"), keep("backward"))
    out = f(*inputs)
    assert "backward" not in seen
    out.sum().backward()
    assert "torch.ops.aten.mul.Tensor(primals_1, primals_2)" in seen["forward"]
    assert "tangents_1" in seen["backward"] and "def forward(self" in seen["backward"]
    a, b = inputs
    close(a.grad, (a * b).cos() * b)


READERS = {
    "item": lambda x, s: x * s.item(),
    "condition": lambda x, s: x * 2 if s else x * 5,
    "tolist": lambda x, s: x * s.tolist(),
    "numpy": lambda x, s: x * float(s.numpy()),
    "index": lambda x, s: x[int(s)],
}


@pytest.mark.parametrize("name", READERS)
def test_values_read_outside_of_the_function_are_not_kept_when_they_change(name):
    s, x = pb.tensor(1.0), pb.arange(5.0)
    compiled = pb.compile(lambda x: READERS[name](x, s), backend="numpy")
    for value in (1.0, 3.0, 3.0, 0.0, 1.0, float("nan") if name == "item" else 4.0):
        s.fill_(value)
        for _ in range(2):  # the second call takes the shortest way
            assert pb.equal(
                compiled(x).nan_to_num(), READERS[name](x, s).nan_to_num()
            ), (name, value)


def test_a_value_that_stays_is_captured_once():
    s = pb.tensor(float("nan"))

    def f(x):
        return x + 1 if s.item() != 0 else x

    compiled = pb.compile(f, backend="numpy")
    for _ in range(4):
        compiled(pb.ones(2))
    assert len(compiled.programs) == 1


def test_memory_shared_with_numpy_is_watched_too():
    memory = np.array([2.0])
    s = pb.from_numpy(memory)
    compiled = pb.compile(lambda x: x * s.item(), backend="numpy")
    assert compiled(pb.ones(1)).tolist() == [2]
    memory[0] = 7  # moves no version
    assert compiled(pb.ones(1)).tolist() == [7]


def test_gradient_of_a_number_is_an_array():
    """A scaled gradient without dims is memory like others, not a NumPy number."""
    x = pb.tensor(0.3, dtype=pb.float64, requires_grad=True)
    y = pb.compile(pb.sinc)(x)
    (g,) = pb.autograd.grad(y, x, pb.tensor(2.0, dtype=pb.float64))
    assert g.numpy().shape == () and g.untyped_storage().nbytes() == 8
