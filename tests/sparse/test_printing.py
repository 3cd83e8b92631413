"""Sparse tensors print as in PyTorch: `SHOWN` is what PyTorch 2.13 printed."""

import pytest

import pullback as torch
from pullback import func

MATRIX = torch.tensor([[1.0, 0, 2, 0], [0, 0, 3, 4], [0, 0, 0, 0], [5, 0, 0, 6]])
SHOWN = {
    "MATRIX.to_sparse()": """\
tensor(indices=tensor([[0, 0, 1, 1, 3, 3],
                       [0, 2, 2, 3, 0, 3]]),
       values=tensor([1., 2., 3., 4., 5., 6.]),
       size=(4, 4), nnz=6, layout=torch.sparse_coo)""",
    "MATRIX.to_sparse_csr()": """\
tensor(crow_indices=tensor([0, 2, 4, 4, 6]),
       col_indices=tensor([0, 2, 2, 3, 0, 3]),
       values=tensor([1., 2., 3., 4., 5., 6.]), size=(4, 4), nnz=6,
       layout=torch.sparse_csr)""",
    "MATRIX.to_sparse_csc().double()": """\
tensor(ccol_indices=tensor([0, 2, 2, 4, 6]),
       row_indices=tensor([0, 3, 0, 1, 1, 3]),
       values=tensor([1., 5., 2., 3., 4., 6.]), size=(4, 4), nnz=6,
       dtype=torch.float64, layout=torch.sparse_csc)""",
    "MATRIX.to_sparse_bsr((2, 2))": """\
tensor(crow_indices=tensor([0, 2, 4]),
       col_indices=tensor([0, 1, 0, 1]),
       values=tensor([[[1., 0.],
                       [0., 0.]],

                      [[2., 0.],
                       [3., 4.]],

                      [[0., 0.],
                       [5., 0.]],

                      [[0., 0.],
                       [0., 6.]]]), size=(4, 4), nnz=4,
       layout=torch.sparse_bsr)""",
    "MATRIX.to_sparse_bsc((2, 2)).to(torch.int32)": """\
tensor(ccol_indices=tensor([0, 2, 4]),
       row_indices=tensor([0, 1, 0, 1]),
       values=tensor([[[1, 0],
                       [0, 0]],

                      [[0, 0],
                       [5, 0]],

                      [[2, 0],
                       [3, 4]],

                      [[0, 0],
                       [0, 6]]]), size=(4, 4), nnz=4, dtype=torch.int32,
       layout=torch.sparse_bsc)""",
    "torch.stack([MATRIX, MATRIX], -1).to_sparse(2).half()": """\
tensor(indices=tensor([[0, 0, 1, 1, 3, 3],
                       [0, 2, 2, 3, 0, 3]]),
       values=tensor([[1., 1.],
                      [2., 2.],
                      [3., 3.],
                      [4., 4.],
                      [5., 5.],
                      [6., 6.]]),
       size=(4, 4, 2), nnz=6, dtype=torch.float16, layout=torch.sparse_coo)""",
    "torch.stack([MATRIX, MATRIX]).to_sparse_csr()": """\
tensor(crow_indices=tensor([[0, 2, 4, 4, 6],
                            [0, 2, 4, 4, 6]]),
       col_indices=tensor([[0, 2, 2, 3, 0, 3],
                           [0, 2, 2, 3, 0, 3]]),
       values=tensor([[1., 2., 3., 4., 5., 6.],
                      [1., 2., 3., 4., 5., 6.]]), size=(2, 4, 4), nnz=6,
       layout=torch.sparse_csr)""",
    "torch.zeros(2, 3).to_sparse()": """\
tensor(indices=tensor([], size=(2, 0)),
       values=tensor([], size=(0,)),
       size=(2, 3), nnz=0, layout=torch.sparse_coo)""",
    "torch.zeros(2, 3, dtype=torch.float64).to_sparse_csr()": """\
tensor(crow_indices=tensor([0, 0, 0]),
       col_indices=tensor([], size=(0,)),
       values=tensor([], size=(0,)), size=(2, 3), nnz=0, dtype=torch.float64,
       layout=torch.sparse_csr)""",
    "torch.zeros(2, 0).to_sparse_csc()": """\
tensor(ccol_indices=tensor([0]),
       row_indices=tensor([], size=(0,)),
       values=tensor([], size=(0,)), size=(2, 0), nnz=0,
       layout=torch.sparse_csc)""",
    "torch.tensor(3.0).to_sparse()": """\
tensor(indices=tensor([], size=(0, 1)),
       values=tensor([3.]),
       size=(), nnz=1, layout=torch.sparse_coo)""",
    "torch.tensor([1, 0]).to_sparse()": """\
tensor(indices=tensor([[0]]),
       values=tensor([1]),
       size=(2,), nnz=1, layout=torch.sparse_coo)""",
    "torch.tensor([True, False]).to_sparse()": """\
tensor(indices=tensor([[0]]),
       values=tensor([True]),
       size=(2,), nnz=1, layout=torch.sparse_coo)""",
    "(MATRIX * 1j).to_sparse_csr()": """\
tensor(crow_indices=tensor([0, 2, 4, 4, 6]),
       col_indices=tensor([0, 2, 2, 3, 0, 3]),
       values=tensor([0.+1.j, 0.+2.j, 0.+3.j, 0.+4.j, 0.+5.j, 0.+6.j]),
       size=(4, 4), nnz=6, layout=torch.sparse_csr)""",
    "(MATRIX * 1e-5).to_sparse()": """\
tensor(indices=tensor([[0, 0, 1, 1, 3, 3],
                       [0, 2, 2, 3, 0, 3]]),
       values=tensor([1.0000e-05, 2.0000e-05, 3.0000e-05, 4.0000e-05,
                      5.0000e-05, 6.0000e-05]),
       size=(4, 4), nnz=6, layout=torch.sparse_coo)""",
    "MATRIX.to_sparse().requires_grad_()": """\
tensor(indices=tensor([[0, 0, 1, 1, 3, 3],
                       [0, 2, 2, 3, 0, 3]]),
       values=tensor([1., 2., 3., 4., 5., 6.]),
       size=(4, 4), nnz=6, layout=torch.sparse_coo, requires_grad=True)""",
    "MATRIX.to_sparse_csr().requires_grad_()": """\
tensor(crow_indices=tensor([0, 2, 4, 4, 6]),
       col_indices=tensor([0, 2, 2, 3, 0, 3]),
       values=tensor([1., 2., 3., 4., 5., 6.]), size=(4, 4), nnz=6,
       layout=torch.sparse_csr, requires_grad=True)""",
    "MATRIX.double().to_sparse().requires_grad_().sin()": """\
tensor(indices=tensor([[0, 0, 1, 1, 3, 3],
                       [0, 2, 2, 3, 0, 3]]),
       values=tensor([ 0.8415,  0.9093,  0.1411, -0.7568, -0.9589, -0.2794]),
       size=(4, 4), nnz=6, dtype=torch.float64, layout=torch.sparse_coo,
       grad_fn=<SinBackward0>)""",
    "MATRIX.to_sparse_csr().requires_grad_() * 2": """\
tensor(crow_indices=tensor([0, 2, 4, 4, 6]),
       col_indices=tensor([0, 2, 2, 3, 0, 3]),
       values=tensor([ 2.,  4.,  6.,  8., 10., 12.]), size=(4, 4), nnz=6,
       layout=torch.sparse_csr, grad_fn=<MulBackward0>)""",
    "torch.arange(2000.0).to_sparse()": """\
tensor(indices=tensor([[   1,    2,    3,  ..., 1997, 1998, 1999]]),
       values=tensor([1.0000e+00, 2.0000e+00, 3.0000e+00,  ...,
                      1.9970e+03, 1.9980e+03, 1.9990e+03]),
       size=(2000,), nnz=1999, layout=torch.sparse_coo)""",
    "MATRIX.to_sparse().to('meta')": """\
tensor(indices=tensor(..., size=(2, 0)),
       values=tensor(..., size=(0,)),
       device='meta', size=(4, 4), layout=torch.sparse_coo)""",
    "torch.sparse_coo_tensor([[0, 0]], [[1.5, 2.0], [3.0, 4.0]], (2, 2))": """\
tensor(indices=tensor([[0, 0]]),
       values=tensor([[1.5000, 2.0000],
                      [3.0000, 4.0000]]),
       size=(2, 2), nnz=2, layout=torch.sparse_coo)""",
    "torch.nn.Parameter(MATRIX.to_sparse())": """\
Parameter containing:
tensor(indices=tensor([[0, 0, 1, 1, 3, 3],
                       [0, 2, 2, 3, 0, 3]]),
       values=tensor([1., 2., 3., 4., 5., 6.]),
       size=(4, 4), nnz=6, layout=torch.sparse_coo, requires_grad=True)""",
}


@pytest.mark.parametrize("call", SHOWN)
def test_printed(call):
    x = eval(call)
    assert repr(x) == str(x) == f"{x}" == SHOWN[call]


def test_options_count():
    with torch.printing.printoptions(precision=2, linewidth=40):
        shown = repr((MATRIX / 3).to_sparse_csr())
    assert "0.33" in shown and "0.333" not in shown and max(map(len, shown.splitlines())) <= 44
    torch.set_default_dtype(torch.float64)
    try:
        assert "dtype" not in repr(MATRIX.double().to_sparse())
        assert "dtype=torch.float32" in repr(MATRIX.to_sparse())
    finally:
        torch.set_default_dtype(torch.float32)


def test_tensors_inside_of_transforms_print_their_sizes():
    seen = []

    def f(values):
        seen.append(repr(torch.sparse_coo_tensor([[0, 1]], values, (2,))))
        return values

    func.vmap(f)(torch.ones(3, 2))
    func.grad(lambda v: f(v).sum())(torch.ones(2))
    for shown in seen:
        assert shown.startswith("tensor(indices=") and "layout=torch.sparse_coo" in shown
