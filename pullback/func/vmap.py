"""`vmap`: run a function of one example on a whole batch."""

from __future__ import annotations

import functools
from typing import Any

from .. import errors
from ..array.generator import default_generator
from ..core.handle import Tensor, make
from ..interp.vmap import Batched, Vmap
from ..memory.assign import hand_back
from ..memory.reading import up_to_date
from ..memory.views import current, replay
from ..parts.trees import has_parts, maps_parts
from ..pytree import tree_flatten, tree_unflatten
from ..table.packets import ops


def _under(dims, spec) -> list | None:
    """The entries of `dims`, once per leaf of the structure, None if it has another structure."""
    if dims is None or isinstance(dims, int):
        return [dims] * spec.num_leaves
    if spec.is_leaf():
        return None if isinstance(dims, (tuple, list, dict)) else [dims]
    entries, own = tree_flatten(dims, is_leaf=lambda x: x is not dims)
    if own.type is not spec.type or own.context != spec.context or len(entries) != len(
            spec.children()):
        return None
    parts = [_under(entry, child) for entry, child in zip(entries, spec.children())]
    return None if None in parts else [d for part in parts for d in part]


def _spread(dims, tree, what: str) -> list:
    """One dimension per leaf of `tree` from a prefix of its structure."""
    _, spec = tree_flatten(tree)
    found = _under(dims, spec)
    if found is None:
        of = "inputs" if what == "in_dims" else "outputs"
        raise errors.MappingError(errors.text(
            f"vmap: {what} is not compatible with the structure of `{of}` "
            f"({errors.user_line(3)})",
            f"{what}: {dims}, `{of}`: {spec}",
            f"{what} must be an int, None, or a structure like the values'"))
    for d in found:
        if d is not None and not isinstance(d, int):
            raise errors.MappingError(
                f"vmap: {what} must be an int, None or a python collection of ints like the "
                f"values, got {dims!r} ({errors.user_line(3)})")
    return found


def check_chunk_size(chunk_size: int | None, said: str) -> None:
    """Refuse chunks of nothing."""
    if chunk_size is not None and chunk_size < 1:
        raise errors.BadValue(f"{said} (got {chunk_size}) ({errors.user_line(2)})")


def vmap(func, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *,
         chunk_size: int | None = None) -> Any:
    """Map `func` over a dimension of its inputs.

    `in_dims` says which dimension of each input is mapped (None: not mapped), `out_dims` where
    the mapped dimension of each output goes.
    """
    if randomness not in ("error", "same", "different"):
        raise errors.TransformError(
            f"vmap: randomness must be 'error', 'same' or 'different', got {randomness!r} "
            f"({errors.user_line()})"
        )

    check_chunk_size(chunk_size, "vmap: chunk_size should be None or greater than 0.")

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        if not args:
            raise errors.MappingError(errors.text(
                f"vmap({_title(func)})(<inputs>): got no inputs ({errors.user_line(2)})",
                cure="give the function at least one argument to map over"))
        if not isinstance(in_dims, (int, tuple)):
            raise errors.MappingError(
                "vmap: expected `in_dims` to be int or a (potentially nested) tuple like the "
                f"inputs, got {in_dims!r} ({errors.user_line(2)})")
        flat, spec = tree_flatten(args)
        dims = _spread(in_dims, args, "in_dims")
        dims = [_checked(d, v) for d, v in zip(dims, flat)]
        sizes = [v.shape[d] for v, d in zip(flat, dims) if d is not None]
        if not sizes:
            raise errors.MappingError(
                f"vmap: in_dims={in_dims} maps nothing: at least one Tensor among the inputs must "
                f"be mapped ({errors.user_line(2)})"
            )
        size = sizes[0]
        if any(n != size for n in sizes):
            raise errors.MappingError(
                errors.text(
                    "vmap: Expected all tensors to have the same size in the mapped dimension, "
                    "got sizes "
                    f"{sorted(set(sizes))} ({errors.user_line(2)})"
                )
            )
        by_parts = maps_parts(flat, dims)
        if by_parts is not None:
            return by_parts(func, flat, dims, spec, kwargs, lambda o: _places(out_dims, o))
        if chunk_size is not None and chunk_size < size:
            return _chunked(func, flat, dims, spec, kwargs, size, chunk_size, out_dims, randomness)
        return _run(func, flat, dims, spec, kwargs, size, out_dims, randomness)

    return wrapped


def chunk_vmap(func, in_dims=0, out_dims=0, randomness: str = "error", chunks: int = 2):
    """`vmap` of `func` in a number of pieces, one after the other, to need less memory."""
    if not isinstance(chunks, int) or chunks < 1:
        raise errors.BadValue(
            f"chunk_vmap: chunks should be a positive number, got {chunks!r} "
            f"({errors.user_line()})")

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        pairs = zip(tree_flatten(args)[0], _spread(in_dims, args, "in_dims"))
        sizes = [v.shape[d] for v, d in pairs if isinstance(v, Tensor) and isinstance(d, int)]
        size = -(-sizes[0] // chunks) if sizes and chunks > 1 else None
        return vmap(func, in_dims, out_dims, randomness, chunk_size=size)(*args, **kwargs)

    return wrapped


def restore_vmap(func, in_dims, batch_size: int, randomness: str):
    """`func` on a level of `vmap`, without moving dimensions: returns outputs and their dims.

    For rules of custom functions: `in_dims` has a dim or None for each input, in its structure.
    """

    def inner(*args, **kwargs):
        flat, spec = tree_flatten(args)
        dims = [_checked(d, v) for d, v in zip(_spread(in_dims, args, "in_dims"), flat)]
        with Vmap(batch_size, randomness) as level:
            boxes = [make(Batched(level, v, d)) if d is not None else v
                     for v, d in zip(flat, dims)]
            out, out_spec = tree_flatten(func(*tree_unflatten(boxes, spec), **kwargs))
            pairs = []
            for o in out:
                o = current(o) if isinstance(o, Tensor) else o
                mine = isinstance(o, Tensor) and level.mine(o)
                pairs.append((o._payload.inner, o._payload.dim) if mine else (o, None))
        return tuple(tree_unflatten(list(part), out_spec) for part in zip(*pairs)) if pairs else (
            tree_unflatten([], out_spec), tree_unflatten([], out_spec))

    return inner


def _title(func) -> str:
    return getattr(func, "__name__", type(func).__name__)


def _checked(dim, value):
    if dim is None:
        return None
    if not isinstance(value, Tensor):
        raise errors.MappingError(
            f"vmap: Got in_dim={dim} for an input but the input is of type {type(value)}; use "
            f"None for it ({errors.user_line(3)})"
        )
    if value.ndim == 0 or not -value.ndim <= dim < value.ndim:
        raise errors.MappingError(
            errors.text(
                f"vmap: Got in_dim={dim} for some input, but that input is a Tensor of "
                f"dimensionality {value.ndim}, out of range ({errors.user_line(3)})"
            )
        )
    return dim % value.ndim


def _run(func, flat, dims, spec, kwargs, size, out_dims, randomness):
    with Vmap(size, randomness) as level:
        boxes = [_boxed(level, v, d) if d is not None else v for v, d in zip(flat, dims)]
        before = [b._payload if d is not None else None for b, d in zip(boxes, dims)]
        out = func(*tree_unflatten(boxes, spec), **kwargs)
        outputs, out_spec = tree_flatten(out)
        places = _places(out_dims, out)
        for o, place in zip(outputs, places):
            if not isinstance(o, Tensor) and place is not None:
                raise errors.MappingError(
                    errors.text(
                        f"vmap({_title(func)}, ...): the function must only return tensors, got "
                        f"type {type(o)} ({errors.user_line(3)})",
                        cure="give it None in out_dims, or leave it out",
                    )
                )
        results = [_unwrap(level, up_to_date(o), place, size) if isinstance(o, Tensor) else o
                   for o, place in zip(outputs, places)]
    for v, d, b, box in zip(flat, dims, boxes, before):
        if d is not None and b._payload is not box and not has_parts(v):
            hand_back(v, _unwrap(level, b, d, size))
            for i, (o, place) in enumerate(zip(outputs, places)):
                chain = _seen_through(level, o, b)
                if chain is not None:  # the input itself, as it is now, or a view of it
                    results[i] = _run(lambda t, chain=chain: replay(t, chain), [v], [d],
                                      tree_flatten((v,))[1], {}, size, place, randomness)
    return tree_unflatten(results, out_spec)


def _boxed(level: Vmap, t: Tensor, dim: int) -> Tensor:
    """One of many examples, of which each part is one if the tensor is made of others."""
    if has_parts(t):
        return t.of_each(dim, lambda part, d: make(Batched(level, part, d)))
    return make(Batched(level, t, dim))


def _seen_through(level: Vmap, o, b: Tensor) -> tuple | None:
    """The views that lead from `b` to `o`, if they share memory."""
    if o is b:
        return ()
    link = o._link if isinstance(o, Tensor) else None
    if link is None or link.base is not b or link.apart:
        return None
    # a view whose place differs per example (`narrow` from a tensor) is none of the whole batch
    each = any(isinstance(a, Tensor) and level.mine(a) for _, rest, _ in link.chain for a in rest)
    return None if each else link.chain


def _places(out_dims, out) -> list:
    """Where the mapped dimension of each output goes; a single output may have a tuple of one."""
    if isinstance(out, Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1:
        out_dims = out_dims[0]
    return _spread(out_dims, out, "out_dims")


def _unwrap(level: Vmap, t: Tensor, place, size: int) -> Tensor:
    if has_parts(t) and place is not None:
        return t.of_each(place, lambda part, d: _unwrap(level, part, d, size))
    if place is None:
        if level.mine(t):
            raise errors.MappingError(
                "vmap: can not return a BatchedTensor when out_dim is None: the output differs per "
                f"example ({errors.user_line()})"
            )
        return t
    if not level.mine(t):
        inner, dim = ops.expand(ops.unsqueeze(t, 0), (size, *t.shape)), 0
    else:
        inner, dim = t._payload.inner, t._payload.dim
    if not -inner.ndim <= place < inner.ndim:
        raise errors.DimError(
            f"vmap: Dimension out of range: out_dims {place} for an output of {inner.ndim} dims "
            f"({errors.user_line()})"
        )
    place %= inner.ndim
    return inner if dim == place else ops.movedim(inner, dim, place)


def _chunked(func, flat, dims, spec, kwargs, size, chunk, out_dims, randomness):
    parts, before = [], default_generator.get_state()
    for start in range(0, size, chunk):
        length = min(chunk, size - start)
        if randomness == "same":
            default_generator.set_state(before)
        piece = [v if d is None else ops.narrow(v, d, start, length) for v, d in zip(flat, dims)]
        parts.append(_run(func, piece, dims, spec, kwargs, length, out_dims, randomness))
    leaves = [tree_flatten(p)[0] for p in parts]
    out_spec = tree_flatten(parts[0])[1]
    places = _places(out_dims, parts[0])
    return tree_unflatten(
        [group[0] if d is None else ops.cat(list(group), d)
         for group, d in zip(zip(*leaves), places)], out_spec
    )
