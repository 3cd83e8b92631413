"""linalg, fft, special functions, einsum, sorting."""

import pullback as torch

a = torch.randn(4, 4, dtype=torch.float64)
spd = a @ a.mT + 4 * torch.eye(4, dtype=torch.float64)
chol = torch.linalg.cholesky(spd)
u, s, vh = torch.linalg.svd(a, full_matrices=False)
values, vectors = torch.linalg.eigh(spd)
solution = torch.linalg.solve(spd, a[:, 0])
q, r = torch.linalg.qr(a)
print(torch.linalg.norm(a).item(), torch.linalg.det(a), torch.linalg.inv(spd), chol.diagonal())
print(torch.einsum("ij,jk->ik", a, a), torch.tensordot(a, a, dims=2), u @ torch.diag(s) @ vh)
print(torch.fft.fft(a[0]).abs(), torch.fft.irfft(torch.fft.rfft(a[0])), q @ r, values, vectors)
print(torch.special.expit(a), torch.erf(a), torch.lgamma(a.abs()), torch.logsumexp(a, dim=0))
ordered, where = torch.sort(a, dim=1, descending=True)
print(ordered, where, torch.argsort(a), a.cumsum(0), a.std(), a.var(dim=0), a.median(), solution)
print(torch.unique(torch.tensor([1, 1, 2])), torch.bincount(torch.tensor([0, 1, 1])), a.norm(p=2))
print(torch.allclose(a, a), torch.equal(a, a), torch.any(a > 0), (a > 0).all(), a.isnan().any())
print(torch.stack([a, a]).shape, torch.cat([a, a], dim=-1).shape, a.T.shape, torch.outer(s, s))
grid_x, grid_y = torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")
print(grid_x + grid_y, torch.clamp(a, min=0), a.clamp(0.0, 1.0), torch.maximum(a, -a), a.sum((0,
      1)))
