"""Ready-made parametrizations: orthogonal matrices, weight norm, spectral norm."""

from __future__ import annotations

from enum import Enum, auto

from ...array.dtype import finfo
from ...autograd.grad_mode import no_grad
from ...core.handle import Tensor
from ...table.packets import ops
from .. import functional as F
from ..module import Module
from .parametrize import register_parametrization
from .spectral_norm import output_dim

# ---------------------------------------------------------------------------------------------
# Orthogonal matrices


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


def _eye(size: int, like: Tensor) -> Tensor:
    return ops.eye(size, dtype=like.dtype, device=like.device)


def _is_orthogonal(q: Tensor) -> bool:
    tolerance = 10.0 * q.shape[-2] * finfo(q.dtype).eps
    return ops.allclose(q.mH @ q, _eye(q.shape[-1], q), atol=tolerance)


def _make_orthogonal(tall: Tensor) -> Tensor:
    """The first factor of the decomposition whose second one has a positive diagonal."""
    packed, tau = ops.geqrf(tall)
    q = ops.linalg_householder_product(packed, tau)
    return q * packed.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """An orthogonal matrix from any; with a base, from how it differs from the base."""

    base: Tensor

    def __init__(self, weight: Tensor, orthogonal_map: _OrthMaps, *,
                 use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map is _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        wide = X.shape[-2] < X.shape[-1]
        x = X.mT if wide else X
        q = self._reflected(x) if self.orthogonal_map is _OrthMaps.householder else self._moved(x)
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if wide else q

    def _moved(self, x: Tensor) -> Tensor:
        """Of the skew matrix that the lower triangle makes: its exponential or Cayley's map."""
        n, k = x.shape[-2:]
        x = x.tril()
        if n != k:
            x = ops.cat([x, x.new_zeros([n, n - k]).expand([*x.shape[:-2], -1, -1])], -1)
        skew = x - x.mH
        if self.orthogonal_map is _OrthMaps.matrix_exp:
            q = ops.matrix_exp(skew)
        else:
            one = _eye(n, skew)
            q = ops.linalg_solve(one - 0.5 * skew, one + 0.5 * skew)
        return q[..., :k] if n != k else q

    def _reflected(self, x: Tensor) -> Tensor:
        """Product of the reflections below the diagonal; the diagonal holds signs."""
        below = x.tril(-1)
        tau = 2.0 / (1.0 + (below * below).sum(-2))
        q = ops.linalg_householder_product(below, tau)
        return q * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)

    @no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:
        """What gives a matrix; with a base, the base becomes that matrix."""
        if Q.shape != self.shape:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. Got a "
                             f"tensor of shape {Q.shape}.")
        wide = Q.shape[-2] < Q.shape[-1]
        q = Q.mT if wide else Q
        n, k = q.shape[-2:]
        if not hasattr(self, "base"):
            if self.orthogonal_map is not _OrthMaps.householder:
                raise NotImplementedError("It is not possible to assign to the matrix exponential "
                                          "or the Cayley parametrizations when "
                                          "use_trivialization=False.")
            packed, tau = ops.geqrf(q)
            signs = packed.diagonal(dim1=-2, dim2=-1).sign()
            signs = ops.where(tau == 0.0, -signs, signs)
            packed.diagonal(dim1=-2, dim2=-1).copy_(signs)
            return packed.mT if wide else packed
        if n != k:  # completed by random columns
            extra = ops.randn([*q.shape[:-2], n, n - k], dtype=q.dtype, device=q.device)
            q = _make_orthogonal(ops.cat([q, extra], -1))
        else:
            q = q.clone() if _is_orthogonal(q) else _make_orthogonal(q)
        self.base = q
        start = ops.zeros_like(Q)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)  # each map takes this to the identity
        return start


def orthogonal(module: Module, name: str = "weight", orthogonal_map: str | None = None, *,
               use_trivialization: bool = True) -> Module:
    """Keep a matrix, or each of a batch, orthogonal: orthonormal columns, or rows if it is wide.

    `orthogonal_map` is "matrix_exp", "cayley" or "householder".
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError("Expected a matrix or batch of matrices. Got a tensor of "
                         f"{weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in _OrthMaps.__members__:
        raise ValueError('orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
                         f"Got: {orthogonal_map}")
    made = _Orthogonal(weight, _OrthMaps[orthogonal_map], use_trivialization=use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)


# ---------------------------------------------------------------------------------------------
# Norms


class _WeightNorm(Module):
    """A weight from its length and its direction."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return ops._weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Length and direction."""
        return ops.norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int = 0) -> Module:
    """Train length and direction of a weight; `dim=None`: one length for all."""
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict, prefix, *rest) -> None:
        """Checkpoints of `nn.utils.weight_norm`."""
        old = [f"{prefix}{name}_{part}" for part in "gv"]
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                new = f"{prefix}parametrizations.{name}.original{i}"
                state_dict[new] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename)
    return module


class _SpectralNorm(Module):
    """A weight divided by its largest singular value, followed by power iteration."""

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0,
                 eps: float = 1e-12) -> None:
        super().__init__()
        rank = weight.ndim
        if not -rank <= dim < rank:
            raise IndexError("Dimension out of range (expected to be in range of "
                             f"[-{rank}, {rank - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError("Expected n_power_iterations to be positive, but got "
                             f"n_power_iterations={n_power_iterations}")
        self.dim, self.eps = dim % rank, eps
        if rank > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._reshape_weight_to_matrix(weight)
            drawn = [matrix.new_empty([n]).normal_(0, 1) for n in matrix.shape]
            for name, vector in zip(("_u", "_v"), drawn, strict=True):
                self.register_buffer(name, F.normalize(vector, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        return (weight if self.dim == 0 else weight.movedim(self.dim, 0)).flatten(1)

    @no_grad()
    def _power_method(self, matrix: Tensor, n_power_iterations: int) -> None:
        """Improve both singular vectors, in place."""
        for _ in range(n_power_iterations):
            self._u = F.normalize(ops.mv(matrix, self._v), dim=0, eps=self.eps, out=self._u)
            self._v = F.normalize(ops.mv(matrix.mH, self._u), dim=0, eps=self.eps, out=self._v)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()  # the next call writes them
        return weight / ops.vdot(u, ops.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        """The value itself, which need not be normalised."""
        return value


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1,
                  eps: float = 1e-12, dim: int | None = None) -> Module:
    """Divide a weight by an estimate of its largest singular value."""
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    made = _SpectralNorm(weight, n_power_iterations,
                         output_dim(module) if dim is None else dim, eps)
    return register_parametrization(module, name, made)
