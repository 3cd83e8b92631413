"""Distributions over vectors and matrices."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

from .. import errors
from ..array import dtype as dt
from ..array.dims import broadcast_shapes
from ..array.size import Size
from ..autograd.grad_mode import no_grad
from ..core.handle import Tensor
from ..table.packets import ops
from . import constraints
from .base import Distribution, ExponentialFamily, Value, checked
from .constraints import Constraint
from .positive import Chi2
from .unit import Beta
from .utils import _standard_normal, broadcast_all, everywhere, lazy_property

__all__ = ["LKJCholesky", "LowRankMultivariateNormal", "MultivariateNormal", "Wishart"]


def _batch_mv(bmat: Tensor, bvec: Tensor) -> Tensor:
    """Matrices times vectors."""
    return ops.matmul(bmat, bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL: Tensor, bx: Tensor) -> Tensor:
    """x^T (L L^T)^-1 x for vectors x, whose batch may have more dims in front than that of L.

    Those become columns of one system for each factor, so that no factor is copied.
    """
    more = bx.ndim - 1 - (bL.ndim - 2)
    if more <= 0:
        return ops.linalg_solve_triangular(bL, bx.unsqueeze(-1), upper=False).pow(2).sum((-2, -1))
    front = bx.shape[:more]
    columns = bx.flatten(0, more - 1).movedim(0, -1)
    squares = ops.linalg_solve_triangular(bL, columns, upper=False).pow(2).sum(-2).movedim(-1, 0)
    return squares.reshape((*front, *squares.shape[1:]))


def _log_diagonal(factor: Tensor) -> Tensor:
    """Half of the log determinant of L L^T."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _precision_to_scale_tril(P: Tensor) -> Tensor:
    """The Cholesky factor of P^-1, by that of P with rows and columns in reverse order."""
    flipped = ops.linalg_cholesky(P.flip((-2, -1)))
    inverse = flipped.flip((-2, -1)).mT
    eye = ops.eye(P.shape[-1], dtype=P.dtype, device=P.device)
    return ops.linalg_solve_triangular(inverse, eye, upper=False)


class _Covariance(Distribution):
    """A covariance matrix in one of three forms; the others are computed when asked for.

    Computations use `_unbroadcasted_scale_tril`, the factor without the expansion to the batch.
    """

    _FORMS = {"covariance_matrix": constraints.positive_definite,
              "precision_matrix": constraints.positive_definite,
              "scale_tril": constraints.lower_cholesky}

    def _one_form(self, **forms: Tensor | None) -> tuple[str, Tensor]:
        """Name and value of the matrix that was given."""
        given = [(n, m) for n, m in forms.items() if m is not None]
        if len(given) != 1:
            raise errors.named(errors.BadValue, type(self).__name__,
                               "exactly one of covariance_matrix, precision_matrix and scale_tril "
                               "must be given")
        name, matrix = given[0]
        if matrix.ndim < 2:
            raise errors.named(errors.BadValue, type(self).__name__,
                               f"{name} needs two dims at least, has {matrix.ndim}")
        return name, matrix

    def _factorise(self, name: str, matrix: Tensor) -> None:
        self._unbroadcasted_scale_tril = {
            "scale_tril": lambda m: m, "covariance_matrix": ops.linalg_cholesky,
            "precision_matrix": _precision_to_scale_tril}[name](matrix)

    def _expand_matrix(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + matrix.shape[-2:])

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return self._expand_matrix(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """L L^T."""
        factor = self._unbroadcasted_scale_tril
        return self._expand_matrix(factor @ factor.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return self._expand_matrix(ops.cholesky_inverse(self._unbroadcasted_scale_tril))


class MultivariateNormal(_Covariance):
    """Normal vectors with a covariance matrix."""

    arg_constraints = {"loc": constraints.real_vector, **_Covariance._FORMS}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, covariance_matrix: Tensor | None = None,
                 precision_matrix: Tensor | None = None, scale_tril: Tensor | None = None,
                 validate_args: bool | None = None) -> None:
        if loc.ndim < 1:
            raise errors.named(errors.BadValue, "MultivariateNormal", "loc needs one dim at least")
        name, matrix = self._one_form(covariance_matrix=covariance_matrix, scale_tril=scale_tril,
                                      precision_matrix=precision_matrix)
        batch = Size(broadcast_shapes(matrix.shape[:-2], loc.shape[:-1]))
        self.loc = loc.expand(batch + loc.shape[-1:])
        setattr(self, name, matrix.expand(batch + matrix.shape[-2:]))
        super().__init__(batch, loc.shape[-1:], validate_args=validate_args)
        self._factorise(name, matrix)

    mean = mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(
            self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        eps = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, eps)

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        factor = self._unbroadcasted_scale_tril
        distance = _batch_mahalanobis(factor, value - self.loc)
        n = self._event_shape[0]
        return -0.5 * (n * math.log(2 * math.pi) + distance) - _log_diagonal(factor)

    def entropy(self) -> Tensor:
        n = self._event_shape[0]
        value = 0.5 * n * (1.0 + math.log(2 * math.pi)) + _log_diagonal(
            self._unbroadcasted_scale_tril)
        return value.expand(self._batch_shape)


def _capacitance_tril(W: Tensor, D: Tensor) -> Tensor:
    """The Cholesky factor of I + W^T D^-1 W."""
    inner = ops.matmul(W.mT / D.unsqueeze(-2), W)
    return ops.linalg_cholesky(inner + ops.eye(W.shape[-1], dtype=W.dtype, device=W.device))


def _lowrank_logdet(W: Tensor, D: Tensor, capacitance: Tensor) -> Tensor:
    """log det(W W^T + D), by the determinant lemma."""
    return 2 * _log_diagonal(capacitance) + D.log().sum(-1)


def _lowrank_mahalanobis(W: Tensor, D: Tensor, x: Tensor, capacitance: Tensor) -> Tensor:
    """x^T (W W^T + D)^-1 x, by Woodbury's identity."""
    projected = _batch_mv(W.mT / D.unsqueeze(-2), x)
    return (x.pow(2) / D).sum(-1) - _batch_mahalanobis(capacitance, projected)


class LowRankMultivariateNormal(Distribution):
    """Normal vectors with covariance W W^T + diag(D), of which only W and D are kept."""

    arg_constraints = {"loc": constraints.real_vector,
                       "cov_factor": constraints.independent(constraints.real, 2),
                       "cov_diag": constraints.independent(constraints.positive, 1)}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor,
                 validate_args: bool | None = None) -> None:
        def refuse(what):
            raise errors.named(errors.BadValue, "LowRankMultivariateNormal", what)

        if loc.ndim < 1:
            refuse("loc needs one dim at least")
        event = loc.shape[-1:]
        if cov_factor.ndim < 2:
            refuse("cov_factor needs two dims at least")
        if cov_factor.shape[-2:-1] != event:
            refuse(f"cov_factor must be a batch of matrices {event[0]} x m, has shape "
                   f"{tuple(cov_factor.shape)}")
        if cov_diag.shape[-1:] != event:
            refuse(f"cov_diag must be a batch of vectors of size {event[0]}, has shape "
                   f"{tuple(cov_diag.shape)}")
        try:
            batch = Size(broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2],
                                          cov_diag.shape[:-1]))
        except RuntimeError:
            refuse("the batch shapes of loc, cov_factor and cov_diag do not fit: "
                   f"{tuple(loc.shape)}, {tuple(cov_factor.shape)}, {tuple(cov_diag.shape)}")
        self.loc = loc.expand(batch + event)
        self.cov_factor = cov_factor.expand(batch + cov_factor.shape[-2:])
        self.cov_diag = cov_diag.expand(batch + event)
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        super().__init__(batch, event, validate_args=validate_args)
        self._capacitance_tril = _capacitance_tril(cov_factor, cov_diag)

    _parts = property(lambda self: (
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, self._capacitance_tril))
    mean = mode = property(lambda self: self.loc)

    def _expand_matrix(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + matrix.shape[-2:])

    @lazy_property
    def variance(self) -> Tensor:
        W, D, _ = self._parts
        return (W.pow(2).sum(-1) + D).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance, without small differences of large numbers."""
        W, D, _ = self._parts
        root = D.sqrt().unsqueeze(-1)
        scaled = W / root
        eye = ops.eye(W.shape[-2], dtype=W.dtype, device=W.device)
        return self._expand_matrix(root * ops.linalg_cholesky(scaled @ scaled.mT + eye))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """W W^T + diag(D)."""
        W, D, _ = self._parts
        return self._expand_matrix(W @ W.mT + D.diag_embed())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance, by Woodbury's identity."""
        W, D, capacitance = self._parts
        half = ops.linalg_solve_triangular(capacitance, W.mT / D.unsqueeze(-2), upper=False)
        return self._expand_matrix(D.reciprocal().diag_embed() - half.mT @ half)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape, (W, D, _) = self._extended_shape(sample_shape), self._parts
        first = _standard_normal(shape[:-1] + W.shape[-1:], self.loc.dtype, self.loc.device)
        second = _standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(W, first) + D.sqrt() * second

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        W, D, capacitance = self._parts
        distance = _lowrank_mahalanobis(W, D, value - self.loc, capacitance)
        norm = self._event_shape[0] * math.log(2 * math.pi) + _lowrank_logdet(W, D, capacitance)
        return -0.5 * (norm + distance)

    def entropy(self) -> Tensor:
        n = self._event_shape[0]
        value = 0.5 * (n * (1.0 + math.log(2 * math.pi)) + _lowrank_logdet(*self._parts))
        return value.expand(self._batch_shape)


class Wishart(_Covariance, ExponentialFamily):
    """Sums of outer products of `df` normal vectors: random covariance matrices."""

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, df: Value, covariance_matrix: Tensor | None = None,
                 precision_matrix: Tensor | None = None, scale_tril: Tensor | None = None,
                 validate_args: bool | None = None) -> None:
        name, matrix = self._one_form(covariance_matrix=covariance_matrix, scale_tril=scale_tril,
                                      precision_matrix=precision_matrix)
        (df,) = broadcast_all(df) if isinstance(df, Tensor) else (
            matrix.new_full((), float(df)),)
        batch, event = Size(broadcast_shapes(matrix.shape[:-2], df.shape)), matrix.shape[-2:]
        self.df = df.expand(batch)
        setattr(self, name, matrix.expand(batch + event))
        self._event_shape = event  # the constraint of df asks for it
        if not everywhere(self.df > event[-1] - 1):
            raise errors.named(errors.BadValue, "Wishart",
                               f"df must be greater than ndim - 1 = {event[-1] - 1}, got {df}")
        super().__init__(batch, event, validate_args=validate_args)
        if not everywhere(self.df >= event[-1]):
            warnings.warn("df < ndim: samples are likely to be singular", stacklevel=2)
        self._factorise(name, matrix)
        self._dist_chi2 = Chi2(self.df.unsqueeze(-1) - ops.arange(
            event[-1], dtype=self.df.dtype, device=self.df.device))

    def _expanded(self, batch_shape: Size) -> None:
        self._dist_chi2 = self._dist_chi2.expand(batch_shape + self._event_shape[-1:])

    @property
    def arg_constraints(self) -> dict[str, Constraint]:
        return {**self._FORMS, "df": constraints.greater_than(self._event_shape[-1] - 1)}

    mean = property(lambda self: self.df[..., None, None] * self.covariance_matrix)

    @property
    def mode(self) -> Tensor:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        return ops.where(factor > 0, factor, math.nan)[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        V = self.covariance_matrix
        d = V.diagonal(dim1=-2, dim2=-1)
        return self.df[..., None, None] * (V.pow(2) + d.unsqueeze(-1) * d.unsqueeze(-2))

    def _bartlett_sampling(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """L A (L A)^T with chi numbers on the diagonal of A and normal ones below it."""
        n = self._event_shape[-1]
        noise = self._dist_chi2.rsample(sample_shape).sqrt().diag_embed()
        below = ops.randn((*sample_shape, *self._batch_shape, n * (n - 1) // 2),
                          dtype=noise.dtype, device=noise.device)
        rows, columns = ops.tril_indices(n, n, offset=-1, device=noise.device).unbind()
        noise = noise.flatten(-2).scatter(-1, (rows * n + columns).expand(below.shape), below)
        half = self._unbroadcasted_scale_tril @ noise.reshape((*noise.shape[:-1], n, n))
        return half @ half.mT

    def rsample(self, sample_shape: Sequence[int] = Size(),
                max_try_correction: int | None = None) -> Tensor:
        """Draws that are singular in their precision are drawn again, a few times.

        PyTorch throws its first draw away, so that is done here too: the same seed then gives the
        same matrices.
        """
        tries = 10 if max_try_correction is None else max_try_correction
        sample_shape = Size(sample_shape)
        sample = self._bartlett_sampling(sample_shape)
        regular = ops.zeros(sample.shape[:-2], dtype=dt.bool_, device=sample.device)
        for _ in range(tries):
            new = self._bartlett_sampling((sample_shape.numel(),))
            new = new.reshape(self._extended_shape(sample_shape))
            sample = ops.where(regular[..., None, None], sample, new)
            regular = self.support.check(sample.detach())
            if everywhere(regular):
                return sample
        if tries:
            warnings.warn("a sample is singular in its precision", stacklevel=2)
        return sample

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        nu, p, factor = self.df, self._event_shape[-1], self._unbroadcasted_scale_tril
        inner = ops.cholesky_solve(value, factor).diagonal(dim1=-2, dim2=-1).sum(-1)
        return (-nu * (p * math.log(2) / 2 + _log_diagonal(factor)) - ops.mvlgamma(nu / 2, p)
                + (nu - p - 1) / 2 * ops.linalg_slogdet(value).logabsdet - inner / 2)

    def entropy(self) -> Tensor:
        nu, p, factor = self.df, self._event_shape[-1], self._unbroadcasted_scale_tril
        steps = ops.arange(p, dtype=nu.dtype, device=nu.device)
        psi = ((nu.unsqueeze(-1) - steps) / 2).digamma().sum(-1)
        return ((p + 1) * (p * math.log(2) / 2 + _log_diagonal(factor)) + ops.mvlgamma(nu / 2, p)
                - (nu - p - 1) / 2 * psi + nu * p / 2)

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        p = self._event_shape[-1]
        half = y + (p + 1) / 2
        return (half * (-ops.linalg_slogdet(-2 * x).logabsdet + math.log(2) * p)
                + ops.mvlgamma(half, p))


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices, density proportional to det(C)^(concentration - 1).

    Drawn by the onion method (D. Lewandowski, D. Kurowicka, H. Joe, 2009), row by row.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Value = 1.0,
                 validate_args: bool | None = None) -> None:
        if dim < 2:
            raise errors.named(errors.BadValue, "LKJCholesky",
                               f"dim must be a whole number from 2 on, got {dim}")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        step = ops.arange(dim - 1, dtype=self.concentration.dtype,
                          device=self.concentration.device)
        offset = ops.cat([step.new_zeros((1,)), step])
        above = self.concentration.unsqueeze(-1) + 0.5 * (dim - 2)
        self._beta = Beta(offset + 0.5, above - 0.5 * offset)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def _expanded(self, batch_shape: Size) -> None:
        self._beta = self._beta.expand(batch_shape + (self.dim,))

    @no_grad()
    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        y = self._beta.sample(sample_shape).unsqueeze(-1)
        direction = ops.randn(shape, dtype=y.dtype, device=y.device).tril(-1)
        direction = direction / ops.linalg_vector_norm(direction, dim=-1, keepdim=True)
        first = ops.zeros(shape[:-2] + (1, self.dim), dtype=y.dtype, device=y.device)
        w = y.sqrt() * ops.cat([first, direction[..., 1:, :]], -2)
        diagonal = (1 - (w * w).sum(-1)).clamp(min=dt.finfo(w.dtype).tiny).sqrt()
        return w + diagonal.diag_embed()

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        # the Jacobian of C = L L^T gives the powers of the diagonal
        n, a = self.dim, self.concentration
        order = ops.arange(2, n + 1, device=a.device)
        order = 2 * (a - 1).unsqueeze(-1) + n - order
        weight = (order * value.diagonal(dim1=-2, dim2=-1)[..., 1:].log()).sum(-1)
        top = a + 0.5 * (n - 1)
        norm = (0.5 * (n - 1) * math.log(math.pi) + ops.mvlgamma(top - 0.5, n - 1)
                - top.lgamma() * (n - 1))
        return weight - norm
