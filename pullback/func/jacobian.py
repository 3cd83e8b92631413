"""Jacobians and Hessians, by mapping pullbacks or pushforwards over a basis."""

from __future__ import annotations

import functools
import math
from typing import Any

from .. import errors
from ..core.handle import Tensor
from ..pytree import tree_flatten, tree_unflatten
from ..table.packets import ops
from .grad import _positions, jvp, vjp
from .vmap import check_chunk_size, vmap


def _basis(values: list[Tensor]) -> list[Tensor]:
    """Unit vectors of the concatenated values: one tensor per value, the unit's number in front."""
    sizes = [math.prod(v.shape) for v in values]
    total, start, basis = sum(sizes), 0, []
    for v, n in zip(values, sizes):
        block = ops.zeros((total, n), dtype=v.dtype, device=v.device)
        eye = ops.eye(n, dtype=v.dtype, device=v.device)
        before = ops.zeros((start, n), dtype=v.dtype, device=v.device)
        after = ops.zeros((total - start - n, n), dtype=v.dtype, device=v.device)
        block = ops.cat([before, eye, after], 0)
        basis.append(ops.reshape(block, (total, *v.shape)))
        start += n
    return basis


def _split(stacked: Tensor, values: list[Tensor]) -> list[Tensor]:
    """Undo the concatenation of units: the first dim becomes each value's dims."""
    pieces, start = [], 0
    for v in values:
        n = math.prod(v.shape)
        pieces.append(ops.reshape(ops.narrow(stacked, 0, start, n), (*v.shape, *stacked.shape[1:])))
        start += n
    return pieces


def _real(name: str, what: str, tensors: list) -> None:
    """Refuse complex numbers: a Jacobian would be right for holomorphic functions alone."""
    for i, t in enumerate(tensors):
        if isinstance(t, Tensor) and t.dtype.is_complex:
            raise errors.TransformError(errors.text(
                f"{name}: Expected all {what} to be real but received complex tensor at flattened "
                f"{what[:-1]} idx: {i} ({errors.user_line(3)})",
                cure="differentiate with respect to view_as_real(x)"))


def _closed(func, args, chosen, kwargs):
    def partial(*picked):
        full = list(args)
        for n, value in zip(chosen, picked):
            full[n] = value
        return func(*full, **kwargs)

    return partial


def jacrev(func, argnums: Any = 0, *, has_aux: bool = False, chunk_size: int | None = None,
           _preallocate_and_copy: bool = False) -> Any:
    """The Jacobian of `func` by reverse mode, `chunk_size` rows at a time.

    `_preallocate_and_copy` is PyTorch's hint about memory: chunks are joined once here either way.
    """
    check_chunk_size(chunk_size, "jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        chosen = _positions(argnums, len(args))
        picked = [args[n] for n in chosen]
        result = vjp(_closed(func, args, chosen, kwargs), *picked, has_aux=has_aux)
        out, pull = result[0], result[1]
        outputs, out_spec = tree_flatten(out)
        _real("jacrev", "inputs", tree_flatten(picked)[0])
        _real("jacrev", "outputs", outputs)
        basis = _basis(outputs)

        def rows(units):
            return pull(tree_unflatten(list(units), out_spec))

        grads = vmap(rows, chunk_size=chunk_size)(tuple(basis))
        per_arg = []
        for g in grads:
            leaves, spec = tree_flatten(g)
            split = [_split(leaf, outputs) for leaf in leaves]
            per_arg.append(
                [tree_unflatten([s[k] for s in split], spec) for k in range(len(outputs))]
            )
        jacobian = [
            args_k[0] if isinstance(argnums, int) else tuple(args_k)
            for args_k in ([p[k] for p in per_arg] for k in range(len(outputs)))
        ]
        jacobian = tree_unflatten(jacobian, out_spec)
        return (jacobian, result[2]) if has_aux else jacobian

    return wrapped


def jacfwd(func, argnums: Any = 0, has_aux: bool = False, *, randomness: str = "error") -> Any:
    """The Jacobian of `func` by forward mode."""

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        chosen = _positions(argnums, len(args))
        picked = tuple(args[n] for n in chosen)
        inputs, in_spec = tree_flatten(picked)
        _real("jacfwd", "inputs", inputs)
        basis = _basis(inputs)
        call = _closed(func, args, chosen, kwargs)
        extra: list = []

        def columns(units):
            result = jvp(call, picked, tree_unflatten(list(units), in_spec), has_aux=has_aux)
            if has_aux:
                extra[:] = [result[2]]
            return result[1]

        tangents = vmap(columns, randomness=randomness)(tuple(basis))
        leaves, out_spec = tree_flatten(tangents)
        _real("jacfwd", "outputs", leaves)
        jacobian = []
        for leaf in leaves:
            pieces = []
            for piece, v in zip(_split(leaf, inputs), inputs):
                order = [*range(v.ndim, piece.ndim), *range(v.ndim)]
                pieces.append(ops.permute(piece, order))
            tree = tree_unflatten(pieces, in_spec)
            jacobian.append(tree[0] if isinstance(argnums, int) else tree)
        jacobian = tree_unflatten(jacobian, out_spec)
        return (jacobian, extra[0]) if has_aux else jacobian

    return wrapped


def hessian(func, argnums: Any = 0) -> Any:
    """The second derivatives of a scalar function: forward over reverse."""
    return jacfwd(jacrev(func, argnums), argnums)
