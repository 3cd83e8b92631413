"""Square sparse matrices that are far from singular, as functions of six values."""

import pullback as torch

AT = [(0, 0), (0, 2), (1, 1), (1, 3), (2, 0), (2, 2), (3, 1), (3, 2), (3, 3)]


def entries(v):
    """The entries of a matrix that is far from singular: polynomials of six values."""
    w = v * v
    return torch.stack([w[0] + 3, v[1], w[2] + 4, v[3], v[4] * 0.5, w[5] + 3, v[0], v[1] - 1,
                        w[2] - 5])


def coo(v):
    return torch.sparse_coo_tensor(torch.tensor(AT).t(), entries(v), (4, 4), is_coalesced=True)


def uncoalesced(v):
    places = torch.tensor([*AT[::-1], (0, 2), (3, 3)]).t()
    return torch.sparse_coo_tensor(places, torch.cat([entries(v).flip(0), v[:2]]), (4, 4))


def csr(v):
    return torch.sparse_csr_tensor(
        torch.tensor([0, 2, 4, 6, 9]), torch.tensor([c for _, c in AT]), entries(v), (4, 4))


SQUARE = {
    "coo": coo, "uncoalesced": uncoalesced, "csr": csr, "csc": lambda v: csr(v).to_sparse_csc(),
    "bsr": lambda v: csr(v).to_sparse_bsr((2, 2)), "bsc": lambda v: csr(v).to_sparse_bsc((2, 2)),
}
