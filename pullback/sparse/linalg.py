"""`pullback.sparse.linalg`: solvers by iteration, `cg`, `bicgstab` and `gmres`.

They are called as SciPy's are, with a sparse matrix, a dense one or a function that multiplies by
one, and their derivatives are implicit: the gradient of a solution is the solution of one more
system, with the matrix transposed and conjugated, whatever the iteration did; likewise in forward
mode.  These are calls of the same solver, so all orders follow.  The iterations themselves are a
`while_loop` of ordinary operators (`solvers.py`), which can be captured and mapped.  On memory they
are loops over NumPy's arrays (`array_solvers.py`).  Systems that are solved by factors are in
`solve.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .. import errors
from ..autograd.function import Function
from ..control.subgraph import capture, floats, single, visible, with_those
from ..core.handle import Tensor
from ..func.grad import jvp, vjp
from ..func.vmap import vmap
from ..parts.rules import shown
from ..table.packets import ops
from ..threads.state import fast, recording
from . import array_solvers, solvers
from .tensor import SparseTensor

__all__ = ["bicgstab", "cg", "gmres"]


def cg(A: Any, b: Tensor, x0: Tensor | None = None, *, rtol: float = 1e-5, atol: float = 0.0,
       maxiter: int | None = None, M: Any = None) -> tuple[Tensor, Tensor]:
    """The solution x of A x = b by conjugate gradients, for a Hermitian positive definite A.

    `M` is about the inverse of A, and Hermitian as well.  See `gmres` for what is given and
    returned.
    """
    return _solution("cg", solvers.cg, A, b, x0, M, rtol, atol, maxiter, 0)


def bicgstab(A: Any, b: Tensor, x0: Tensor | None = None, *, rtol: float = 1e-5,
             atol: float = 0.0, maxiter: int | None = None,
             M: Any = None) -> tuple[Tensor, Tensor]:
    """The solution x of A x = b by stabilized biconjugate gradients, for any regular A.

    A negative number beside it says that the iteration broke down.  See `gmres` for what is given
    and returned.
    """
    return _solution("bicgstab", solvers.bicgstab, A, b, x0, M, rtol, atol, maxiter, 0)


def gmres(A: Any, b: Tensor, x0: Tensor | None = None, *, rtol: float = 1e-5, atol: float = 0.0,
          restart: int | None = None, maxiter: int | None = None,
          M: Any = None) -> tuple[Tensor, Tensor]:
    """The solution x of A x = b by generalized minimal residuals, begun anew after `restart` steps.

    `A` is a sparse matrix, a dense one, or a linear function of a vector, of operators alone; what
    that reaches from outside has gradients as well.  `M`, of the same kinds, is about the inverse
    of A; the solution does not depend on it.  `b` is a vector, or has one in each column.  The end
    is where |b - A x| <= max(rtol |b|, atol), or after `maxiter` iterations, here of `restart`
    steps each.  Beside x stands a tensor: 0 if the end was reached, else how many iterations.
    """
    return _solution("gmres", solvers.gmres, A, b, x0, M, rtol, atol, maxiter, restart or 20)


def _solution(name: str, method: Callable, a: Any, b: Tensor, x0: Tensor | None, m: Any,
              rtol: float, atol: float, maxiter: int | None, restart: int) -> tuple:
    _check(name, b, x0)
    n = b.shape[0]
    settings = solvers.Settings(rtol, atol, 10 * n if maxiter is None else maxiter, restart)
    vector = b if b.ndim == 1 else b[:, 0]
    matrix, parts = _linear(name, "A", a, vector)
    inverse, others = (None, ()) if m is None else _linear(name, "M", m, vector)
    plan = _Plan(name, method, matrix, inverse, len(parts), settings)
    start = ops.zeros_like(b) if x0 is None else x0
    if b.ndim == 1:
        return plan.solution(b, start, parts, others)
    if plan.takes_arrays((b, start, *parts, *others)) and b.shape[1]:
        found = [plan.solution(b[:, k], start[:, k], parts, others) for k in range(b.shape[1])]
        return tuple([ops.stack(list(each), -1) for each in zip(*found)])
    return vmap(lambda right, first: plan.solution(right, first, parts, others),
                in_dims=1, out_dims=(1, 0))(b, start)


def _check(name: str, b: Any, x0: Any) -> None:
    if not isinstance(b, Tensor) or isinstance(b, SparseTensor) or b.ndim not in (1, 2):
        raise errors.ShapeError(errors.text(
            f"{name}: the right side is a dense vector, or has one in each column "
            f"({errors.user_line(4)})", shown(b) if isinstance(b, Tensor) else type(b).__name__))
    if not (b.is_floating_point() or b.is_complex()):
        raise errors.DTypeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {b.dtype} "
            f"({errors.user_line(4)})")
    if x0 is not None and (x0.shape != b.shape or x0.dtype is not b.dtype):
        raise errors.ShapeError(
            f"{name}: x0 is {x0.dtype}{list(x0.shape)}, and b is {b.dtype}{list(b.shape)} "
            f"({errors.user_line(4)})")


# what multiplies by a matrix ----------------------------------------------------------------------


class _Linear(NamedTuple):
    """A linear function, and the one of the adjoint matrix: of a vector, then of some tensors."""

    forward: Callable
    adjoint: Callable
    arrays: tuple[Callable, Callable] | None = None  # tensors -> the two on arrays, if they differ

    def turned(self) -> _Linear:
        return _Linear(self.adjoint, self.forward, self.arrays and self.arrays[::-1])

    def product(self, given: tuple) -> Callable:
        """The function of arrays that it is beside some tensors."""
        if self.arrays is not None:
            return self.arrays[0](*given)
        return array_solvers.by_function(lambda v: self.forward(v, *given))


def _linear(name: str, title: str, a: Any, like: Tensor) -> tuple[_Linear, tuple]:
    """(A linear function, the tensors that it takes beside a vector like `like`)."""
    n = like.shape[0]
    if isinstance(a, Tensor):
        if tuple(a.shape) != (n, n) or a.dtype is not like.dtype:
            raise errors.ShapeError(
                f"{name}: {title} is {a.dtype}{list(a.shape)}, and b has {n} rows of {like.dtype} "
                f"({errors.user_line(4)})")
        if not isinstance(a, SparseTensor):
            return _Linear(lambda v, matrix: matrix @ v, lambda v, matrix: matrix.mH @ v,
                           array_solvers.OF_MATRIX), (a,)
        return _Linear(
            lambda v, rows, cols, values: _product(rows, cols, values, v),
            lambda v, rows, cols, values: _product(cols, rows, values.conj(), v),
            array_solvers.OF_ENTRIES), a.entries()
    if not callable(a):
        raise errors.ArgumentError(
            f"{name}: {title} is a matrix or a function, got {type(a).__name__} "
            f"({errors.user_line(4)})")
    if not recording() and not fast["ACTIVE"]:  # nobody asks for a derivative
        return _Linear(a, a), ()
    (body,), reached = capture([a], [[like.detach()]], f"{title} of {name}()", (single,))
    if body.facts != [((n,), like.dtype)]:
        raise errors.ShapeError(
            f"{name}: {title} of a vector like b gives {body.facts}, not another one "
            f"({errors.user_line(4)})")
    graph = body.module

    def adjoint(v: Tensor, *parts: Tensor) -> Tensor:
        _, pull = vjp(lambda u: graph(u, *parts), ops.zeros_like(v))
        return pull(v)[0]

    return _Linear(graph, adjoint), tuple(reached)


def _product(rows: Tensor, cols: Tensor, values: Tensor, v: Tensor) -> Tensor:
    return ops._spmm(rows, cols, values, v.unsqueeze(1), v.shape[0]).squeeze(1)


# derivatives --------------------------------------------------------------------------------------


class _Plan(NamedTuple):
    """A solver and its system but for the tensors."""

    name: str
    method: Callable
    matrix: _Linear
    inverse: _Linear | None
    taken: int  # how many tensors the matrix takes; those that follow are of the inverse
    settings: solvers.Settings

    def solution(self, b: Tensor, x0: Tensor, parts: tuple, others: tuple) -> tuple:
        return _Solution.apply(self, b, x0, *parts, *others)

    def turned(self) -> _Plan:
        """The system with the adjoint matrix."""
        return self._replace(matrix=self.matrix.turned(),
                             inverse=None if self.inverse is None else self.inverse.turned())

    def takes_arrays(self, tensors: tuple) -> bool:
        """Are these tensors of memory, of which nobody wants to see operators?"""
        return array_solvers.takes(tensors)

    def run(self, b: Tensor, x0: Tensor, given: tuple) -> tuple:
        parts, others = given[:self.taken], given[self.taken:]
        if self.takes_arrays((b, x0, *given)):
            return array_solvers.run(
                self.name, self.matrix.product(parts),
                None if self.inverse is None else self.inverse.product(others), b, x0,
                self.settings)

        def multiply(v: Tensor) -> Tensor:
            return self.matrix.forward(v, *parts)

        def improve(v: Tensor) -> Tensor:
            return v if self.inverse is None else self.inverse.forward(v, *others)

        return self.method(multiply, improve, b, x0, self.settings)


class _Solution(Function):
    """The solution of a system, whose derivatives are solutions as well."""

    generate_vmap_rule = True

    @staticmethod
    def forward(plan, b, x0, *given):
        return plan.run(b, x0, given)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.plan, _, _, *given = inputs
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[0], *given)
        ctx.save_for_forward(output[0], *given)

    @staticmethod
    def backward(ctx, grad, _):
        plan, (x, *given) = ctx.plan, ctx.saved_tensors
        found = [None] * len(given)
        if grad is None:
            return None, None, None, *found
        right, info = _Solution.apply(plan.turned(), grad, ops.zeros_like(grad), *given)
        _warn(plan, info)
        moving = [i for i in floats(given[:plan.taken]) if ctx.needs_input_grad[3 + i]]
        if moving:
            _, pull = vjp(_moved(plan, x, given, moving), *[given[i] for i in moving])
            found = with_those(found, moving, pull(-right))
        return None, right, None, *found

    @staticmethod
    def jvp(ctx, _, right, __, *tangents):
        plan, (x, *given) = ctx.plan, ctx.saved_tensors
        moving = [i for i in floats(given[:plan.taken]) if tangents[i] is not None]
        if moving:
            change = jvp(_moved(plan, x, given, moving), tuple([given[i] for i in moving]),
                         tuple([tangents[i] for i in moving]))[1]
            right = -change if right is None else right - change
        right = ops.zeros_like(x) if right is None else right
        return _Solution.apply(plan, right, ops.zeros_like(x), *given)[0], None


def _moved(plan: _Plan, x: Tensor, given: list, moving: list[int]) -> Callable:
    """A x as a function of some of the tensors that A takes."""
    def product(*chosen: Tensor) -> Tensor:
        return plan.matrix.forward(x, *with_those(given, moving, chosen)[:plan.taken])

    return product


def _warn(plan: _Plan, info: Tensor) -> None:
    """Say where a gradient is not what it should be; a capture does not know."""
    if visible(info) == "value" and int(info):
        errors.warn(f"{plan.name}: the system of the gradient was not solved, it ended with "
                    f"{int(info)}; raise maxiter, or give M")
