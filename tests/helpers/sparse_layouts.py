"""More layouts of sparse tensors, and checks of functions that change shapes in all of them.

Read `sparse_cases.py` first.
"""

import pullback as torch
from tests.helpers import sparse_cases as cases

KINDS = ("forward", "backward", "second", "jvp", "vmap_values", "functional", "complex_backward",
         "captured")


def hybrid_csr(values):
    """Rows of vectors."""
    return torch.sparse_csr_tensor(
        torch.tensor([0, 2, 3, 3, 6]), torch.tensor([1, 4, 0, 1, 2, 5]),
        torch.stack([values, values * values], 1), (4, 6, 2))


def batch_bsc(values):
    """Two matrices with blocks of 2 x 3 in other places."""
    blocks = torch.stack([values, values + 1]).reshape(2, 1, 2, 3)
    return torch.sparse_bsc_tensor(torch.tensor([[0, 0, 1], [0, 1, 1]]), torch.tensor([[1], [0]]),
                                   blocks, (2, 4, 6))


LAYOUTS = {**cases.ALL, "hybrid_csr": hybrid_csr, "batch_bsc": batch_bsc}
COMPILED = ("uncoalesced", "csr", "bsr")  # a program takes a while: not all


def checked(functions, name, kind):
    """A check of a function: forward in all layouts, the others in every other one."""
    turn = list(functions).index(name) + KINDS.index(kind)
    for k, make in enumerate(LAYOUTS.values()):
        if kind == "forward" or (k + turn) % 2:
            cases.CHECKS[kind](cases.Row(functions[name], make), cases.values())
