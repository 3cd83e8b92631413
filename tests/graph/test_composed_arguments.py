"""Graphs of functions whose arguments or results are sparse, nested or quantised tensors."""

import pickle

import pytest

import pullback as torch
from pullback import fx
from pullback.func import grad
from pullback.fx.experimental.proxy_tensor import make_fx

FULL = torch.tensor([[0.0, 2.0, 0.0], [3.0, 0.0, 1.0]], dtype=torch.float64)


def ragged(*lengths):
    parts = [torch.arange(3.0 * n).reshape(n, 3) for n in lengths]
    return torch.nested.nested_tensor(parts, layout=torch.jagged)


def quantised(scale=0.5):
    return torch.quantize_per_tensor(torch.tensor([1.0, -2.0, 0.3]), scale, 0, torch.qint8)


MADE = {
    "coo": FULL.to_sparse, "csr": FULL.to_sparse_csr, "csc": FULL.to_sparse_csc,
    "bsr": lambda: FULL.to_sparse_bsr((1, 3)), "nested": lambda: ragged(2, 0, 1),
    "quantised": quantised,
}


def elements(t):
    return [p.tolist() for p in t.unbind()] if t.is_nested else (
        t.dequantize() if t.is_quantized else t.to_dense()).tolist()


@pytest.mark.parametrize("mode", ("real", "fake", "symbolic"))
@pytest.mark.parametrize("kind", MADE)
def test_arguments_and_results(kind, mode):
    t = MADE[kind]()
    graph = make_fx(lambda x, y: {"out": x * 2, "y": y + 1}, tracing_mode=mode)(t, torch.ones(2))
    again = [] if mode == "symbolic" else [pickle.loads(pickle.dumps(graph))]
    for run in (graph, fx.Interpreter(graph).run, *again):
        found = run(t, torch.zeros(2))
        assert type(found["out"]) is type(t) and found["out"].shape == t.shape
        assert elements(found["out"]) == elements(t * 2)
        assert found["y"].tolist() == [1, 1]


def test_another_pattern_of_as_many_entries():
    graph = make_fx(lambda x: (x * 2) @ torch.ones(3, 1, dtype=torch.float64))(FULL.to_sparse())
    other = torch.sparse_coo_tensor([[0, 0, 1], [0, 1, 1]], [1.0, 2.0, 4.0], (2, 3),
                                    dtype=torch.float64, is_coalesced=True)
    assert graph(other).tolist() == [[6], [8]]


def test_other_lengths():
    graph = make_fx(lambda x: x.sin() + x, tracing_mode="symbolic")(ragged(2, 1))
    x = ragged(3, 2)
    assert elements(graph(x)) == elements(x.sin() + x)


def test_another_kind_of_argument_is_refused():
    graph = make_fx(lambda x: x * 2)(FULL.to_sparse())
    for other in (FULL.to_sparse_csr(), FULL, 3):
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            graph(other)


def test_tensors_that_the_function_makes():
    at = torch.tensor([[0, 1], [1, 0]])
    graph = make_fx(lambda v: torch.sparse_coo_tensor(at, v * 3, (2, 2)))(torch.ones(2))
    out = graph(torch.tensor([1.0, 2.0]))
    assert out.layout is torch.sparse_coo and out.to_dense().tolist() == [[0, 3], [6, 0]]


def test_gradients_of_sparse_arguments():
    graph = make_fx(grad(lambda x: (x * x).sum()))(FULL.to_sparse_csr())
    out = graph(FULL.to_sparse_csr())
    assert out.layout is torch.sparse_csr and out.to_dense().tolist() == (2 * FULL).tolist()
