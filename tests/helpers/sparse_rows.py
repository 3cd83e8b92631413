"""Kinds of checks of sparse operators, and operands that many tests use.

Read `sparse_cases.py` first.
"""

import math

import pullback as torch
from tests.helpers import sparse_cases as cases

REAL = ("forward", "backward", "second", "jvp", "vmap_values", "functional", "compiled")
NUMBERS = (*REAL, "complex_backward")


def d(*shape):
    """A dense operand, between 0.5 and 1.5; no random numbers, for vmap's sake."""
    count = math.prod(shape)
    return (torch.arange(count, dtype=torch.float64) * 0.7).sin().abs().reshape(shape) + 0.5


COMPILED = (cases.uncoalesced, cases.csr, cases.batch_coo)  # a program takes a while: not all
ONCE = {"sin", "relu", "gelu", "clamp", "scaled", "added", "product", "maximum", "sum", "mm",
        "mv", "batch at", "linear", "addmm", "bmm", "matmul", "amax", "var", "norm"}


def rows(names, kinds):
    """Names beside kinds of checks; of compiled programs some."""
    return [(n, k) for n in names for k in kinds if k != "compiled" or n in ONCE]


def check(name, row):
    if name != "compiled" or row.make in COMPILED:
        cases.CHECKS[name](row, cases.values())


def other(layout):
    """Another pattern in the layout, of fixed values."""
    v = cases.values(seed=1) * 2
    if layout in cases.BATCHES:
        return cases.BATCHES[layout](v)
    full = torch.zeros(4, 6, dtype=torch.float64).index_put(
        (torch.tensor([0, 1, 2, 3, 3, 1]), torch.tensor([1, 0, 3, 2, 4, 5])), v)
    if layout == "hybrid":
        return torch.stack([full, full * 2, -full], -1).to_sparse(2)
    if layout in ("bsr", "bsc"):
        return getattr(full, f"to_sparse_{layout}")((2, 3))
    return getattr(full, f"to_sparse_{layout}")() if layout in ("csr", "csc") else full.to_sparse()
