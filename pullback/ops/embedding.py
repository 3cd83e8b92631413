"""Bags of table rows: sums, means and maxima of embeddings, and limits on their norms.

Single rows are `embedding` in `ops/lookup.py`.  Modes are 0 (sum), 1 (mean) and 2 (max).  Formulas
are in `formulas/embedding.py`; gradients with an entry for each row that was read in
`formulas/sparse_gradients.py`.
"""

from __future__ import annotations

from ..array import dtype as dt
from ..core.op import Composite
from ..errors import DTypeError, ShapeError
from ..formulas.embedding import MAX, MEAN, SUM, bag_entry_grad, bag_table_grad
from ..formulas.sparse_gradients import bags_grad, rows_grad
from ..table.packets import ops
from .index import add_rows, in_range
from .kinds import Free, Keeping
from .layout import in_front
from .norm import narrowed, widened
from .pointwise import title


def _check_bags(weight, indices, offsets, mode, per_sample_weights):
    for name, value in (("indices", indices), ("offsets", offsets)):
        if dt.name_of(value.dtype) not in ("int32", "int64"):
            raise DTypeError(f"Expected tensor for argument #1 '{name}' to have one of the "
                             f"following scalar types: Long, Int; but got {value.dtype} instead "
                             "(while checking arguments for embedding_bag)")
    if indices.ndim != 1 or offsets.ndim != 1 or weight.ndim != 2:
        raise ShapeError("embedding_bag wants indices and offsets with 1 dim and a weight with 2, "
                         f"got shapes {list(indices.shape)}, {list(offsets.shape)} and "
                         f"{list(weight.shape)}")
    if mode not in (SUM, MEAN, MAX):
        raise ShapeError(f"mode has to be 0 (sum), 1 (mean) or 2 (max), got {mode}")
    if per_sample_weights is None:
        return
    if mode != SUM:
        raise ShapeError("embedding_bag: per_sample_weights only supported with mode='sum'")
    if per_sample_weights.dtype != weight.dtype:
        raise DTypeError("Expected tensor for argument #1 'weight' to have the same type as tensor "
                         "for argument #1 'per_sample_weights'; but type "
                         f"{title(weight.dtype)} does not equal {title(per_sample_weights.dtype)} "
                         "(while checking arguments for embedding_bag)")
    if tuple(per_sample_weights.shape) != tuple(indices.shape):
        raise ShapeError("embedding_bag: per_sample_weights must have the shape of the indices, "
                         f"{list(indices.shape)}, got {list(per_sample_weights.shape)}")


def _bag_starts(xp, weight, indices, offsets, include_last_offset):
    """Where each bag starts, and the bag of each index; refuses what is out of range."""
    count = indices.shape[0]
    if offsets.size:
        first, last = int(offsets[0]), int(offsets.max())
        if first != 0:
            raise ShapeError("offsets[0] has to be 0, i.e., the first sequence in the mini-batch "
                             f"has to start from position 0. However, got {first}")
        if last > count:
            raise ShapeError(f"offsets[-1] can not be greater than input's length {count} but got "
                             f"offsets[-1] of {last}")
    if count and (indices.min() < 0 or indices.max() >= weight.shape[0]):
        wrong = int(indices.min() if indices.min() < 0 else indices.max())
        raise ShapeError(f"an index of the input takes value {wrong} which is not in the valid "
                         f"range [0, {weight.shape[0]})")
    starts = (offsets[:-1] if include_last_offset else offsets).astype(xp.int64)
    steps = xp.zeros(count + 1, dtype=xp.int64)
    xp.add.at(steps, starts, 1)
    return starts, xp.cumsum(steps)[:count] - 1


def _maxima(xp, weight, indices, starts, count, padding_idx):
    """Largest elements of each bag, and the rows that they came from (the first of equals)."""
    bags, width = starts.shape[0], weight.shape[1]
    best = xp.zeros((bags, width), dtype=weight.dtype)
    source = xp.zeros((bags, width), dtype=xp.int64)
    found = xp.zeros(bags, dtype=bool)
    sizes = xp.append(starts[1:], xp.asarray([count])) - starts
    for k in range(int(sizes.max()) if sizes.size else 0):
        rows = xp.nonzero(sizes > k)[0]
        chosen = indices[starts[rows] + k]
        if padding_idx >= 0:
            kept = chosen != padding_idx
            rows, chosen = rows[kept], chosen[kept]
        new = weight[chosen]
        better = (new > best[rows]) | ~found[rows][:, None]
        best[rows] = xp.where(better, new, best[rows])
        source[rows] = xp.where(better, chosen[:, None], source[rows])
        found[rows] = True
    return best, source


def _bag_kernel(xp, weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
                include_last_offset, padding_idx):
    _check_bags(weight, indices, offsets, mode, per_sample_weights)
    starts, offset2bag = _bag_starts(xp, weight, indices, offsets, include_last_offset)
    bags, table = starts.shape[0], widened(xp, weight)
    counted = xp.ones(indices.shape, bool) if padding_idx < 0 else indices != padding_idx
    size = xp.zeros(bags, dtype=xp.int64)
    xp.add.at(size, offset2bag[counted], 1)
    if mode == MAX:
        out, source = _maxima(xp, table, indices, starts, indices.shape[0], padding_idx)
        return narrowed(out, weight.dtype), offset2bag, size, source
    rows = table[indices[counted]]
    if per_sample_weights is not None:
        rows = rows * widened(xp, per_sample_weights)[counted][:, None]
    out = add_rows(xp, xp.zeros((bags, weight.shape[1]), dtype=table.dtype), offset2bag[counted],
                   rows)
    if mode == MEAN:
        out = out / xp.maximum(size, 1)[:, None].astype(table.dtype)
    return narrowed(out, weight.dtype), offset2bag, size, size.copy()


def _bag_shape(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
               include_last_offset, padding_idx):
    bags, width = offsets.shape[0] - bool(include_last_offset), weight.shape[1]
    return [(bags, width), tuple(indices.shape), (bags,), (bags, width) if mode == MAX else (bags,)]


def _bag_dtype(weight, *rest):
    return [weight.dtype, dt.int64, dt.int64, dt.int64]


def _batched_bags(n, batched, weight, indices, offsets, scale_grad_by_freq, mode, sparse,
                  per_sample_weights, include_last_offset, padding_idx):
    """Bags of all examples in one call; tables of their own become parts of one long table."""
    if not any(batched[i] for i in (1, 2, 6)):
        return _wide_bags(n, weight, indices, offsets, scale_grad_by_freq, mode, sparse,
                          per_sample_weights, include_last_offset, padding_idx)
    indices, offsets = in_front(indices, batched[1], n), in_front(offsets, batched[2], n)
    if include_last_offset:
        offsets = offsets[:, :-1]
    count, bags, rows = indices.shape[1], offsets.shape[1], weight.shape[-2]
    example = ops.arange(n, device=indices.device).unsqueeze(1)
    if batched[0]:
        if padding_idx >= 0:  # each table has a padding row: move it behind all of them
            weight = ops.cat([weight.reshape([n * rows, -1]), ops.new_zeros(
                weight, [1, weight.shape[-1]])], 0)
            indices = ops.where(indices == padding_idx, n * rows, indices + example * rows)
            padding_idx = n * rows
        else:
            weight, indices = weight.reshape([n * rows, -1]), indices + example * rows
    if per_sample_weights is not None:
        per_sample_weights = in_front(per_sample_weights, batched[6], n).reshape([-1])
    out, of_bag, size, source = ops._embedding_bag(
        weight, indices.reshape([-1]), (offsets + example * count).reshape([-1]),
        scale_grad_by_freq, mode, sparse, per_sample_weights, False, padding_idx)
    source = source.reshape([n, bags, *source.shape[1:]])
    if mode == MAX and batched[0]:
        filled = size.reshape([n, bags, 1]) > 0
        source = ops.where(filled, source - example.unsqueeze(2) * rows, source)
    return (out.reshape([n, bags, -1]), of_bag.reshape([n, count]) - example * bags,
            size.reshape([n, bags]), source)


def _wide_bags(n, weight, indices, *rest):
    """Only the tables differ: put them side by side."""
    wide = weight.movedim(0, 1)
    out, *facts = ops._embedding_bag(wide.reshape([wide.shape[0], -1]), indices, *rest)
    *facts, source = (f.expand([n, *f.shape]) for f in facts)
    bags, width = out.shape[0], weight.shape[2]
    if source.ndim == 3:
        source = source[0].reshape([bags, n, width]).movedim(1, 0)
    return (out.reshape([bags, n, width]).movedim(1, 0), *facts, source)


def _bag_samples(s):
    indices = s.tensor([0, 2, 1, 4, 4, 2], dt.int64)
    offsets = s.tensor([0, 2, 2], dt.int64)
    for mode in (SUM, MEAN, MAX):
        yield s(s.real(5, 3), indices, offsets, False, mode)
        yield s(s.real(5, 3), indices, offsets, False, mode, False, None, False, 2)
    yield s(s.real(5, 3), indices, s.tensor([0, 2, 2, 6], dt.int64), False, 1, False, None, True)
    yield s(s.real(5, 3), indices, offsets, False, SUM, False, s.real(6))
    yield s(s.real(5, 3), indices, offsets, False, SUM, False, s.real(6), False, 4)
    yield s(s.real(5, 3), s.int(0), s.tensor([0, 0], dt.int64))


class _embedding_bag(Keeping):
    """Rows of a table combined in bags; also the bag of each index, bag sizes, rows of maxima."""

    schema = ("_embedding_bag(Tensor weight, Tensor indices, Tensor offsets,"
              " bool scale_grad_by_freq=False, int mode=0, bool sparse=False,"
              " Tensor? per_sample_weights=None, bool include_last_offset=False,"
              " int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)")
    core = True
    grad = {
        "weight": ("_embedding_bag_backward(grad, indices, offsets, result1, result2, result3,"
                   " weight.shape[0], scale_grad_by_freq, mode, sparse, per_sample_weights,"
                   " padding_idx)"),
        "per_sample_weights": ("_embedding_bag_per_sample_weights_backward(grad, weight, indices,"
                               " offsets, result1, mode, padding_idx)"),
    }
    push = {"result0": ("bag_push(weight_p, weight_t, indices, result1, result2, result3, mode,"
                        " per_sample_weights_p, per_sample_weights_t, padding_idx)")}
    nondiff = ("indices", "offsets")
    diff_outputs = (True, False, False, False)
    cost = "reduce"
    method = False
    run = _bag_kernel
    shape = _bag_shape
    dtype = _bag_dtype
    batch = _batched_bags
    samples = _bag_samples


class _embedding_bag_forward_only(Free):
    """_embedding_bag, where no gradient is wanted."""

    schema = ("_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets,"
              " bool scale_grad_by_freq=False, int mode=0, bool sparse=False,"
              " Tensor? per_sample_weights=None, bool include_last_offset=False,"
              " int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)")
    samples = _bag_samples

    def compose(*args):
        return ops._embedding_bag(*args)


class embedding_bag(Free):
    """Rows of a table combined in bags, without materialising the rows."""

    schema = ("embedding_bag(Tensor weight, Tensor indices, Tensor offsets,"
              " bool scale_grad_by_freq=False, int mode=0, bool sparse=False,"
              " Tensor? per_sample_weights=None, bool include_last_offset=False)"
              " -> (Tensor, Tensor, Tensor, Tensor)")

    def compose(*args):
        return ops._embedding_bag(*args)

    samples = lambda s: [s(s.real(5, 3), s.int(4, high=5), s.tensor([0, 2], dt.int64))]


class embedding_bag_padding_idx(Free):
    """embedding_bag that skips the entries of one row."""

    schema = ("embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets,"
              " bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights,"
              " bool include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)")

    def compose(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
                include_last_offset, padding_idx):
        rows = weight.shape[0]
        if padding_idx is None:
            padding_idx = -1
        elif not -rows <= padding_idx < rows:
            raise ShapeError("padding_idx must be within the number of embeddings, "
                             f"{-rows} through {rows - 1}, but got {padding_idx}")
        else:
            padding_idx %= rows
        return ops._embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse,
                                  per_sample_weights, include_last_offset, padding_idx)

    def samples(s):
        yield s(s.real(5, 3), s.int(4, high=5), s.tensor([0, 2], dt.int64), False, 1, False, None,
                False, -2)


class _embedding_bag_backward(Composite):
    """Gradient of the table of an embedding bag."""

    schema = ("_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets,"
              " Tensor offset2bag, Tensor bag_size, Tensor maximum_indices, SymInt num_weights,"
              " bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights,"
              " int padding_idx=-1) -> Tensor")
    method = function = False

    def compose(grad, indices, offsets, offset2bag, bag_size, maximum_indices, num_weights,
                scale_grad_by_freq, mode, sparse, per_sample_weights, padding_idx):
        function = bags_grad if sparse and mode != MAX else ops._embedding_bag_dense_backward
        return function(grad, indices, offset2bag, bag_size, maximum_indices, num_weights,
                        scale_grad_by_freq, mode, per_sample_weights, padding_idx)

    def samples(s):
        yield s(s.real(2, 3), s.tensor([0, 2, 1], dt.int64), s.tensor([0, 1], dt.int64),
                s.tensor([0, 1, 1], dt.int64), s.tensor([1, 2], dt.int64),
                s.tensor([1, 2], dt.int64), 4, False, 1, False, None)


def _check_bag_gradient(grad, indices, offset2bag) -> None:
    """A row of the gradient per bag, and a bag for each index."""
    for name, places in (("indices", indices), ("offset2bag", offset2bag)):
        if places.dtype.kind != "i":
            raise DTypeError(f"embedding_bag: expected integers as {name}, got {places.dtype}")
    if grad.ndim != 2 or indices.ndim != 1 or tuple(offset2bag.shape) != tuple(indices.shape):
        raise ShapeError(
            "embedding_bag: expected a matrix as gradient and a bag for each index, got gradient "
            f"{list(grad.shape)}, indices {list(indices.shape)}, bags {list(offset2bag.shape)}")


class _embedding_bag_dense_backward(Keeping):
    """Gradient of the table of an embedding bag."""

    schema = ("_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag,"
              " Tensor bag_size, Tensor maximum_indices, SymInt num_weights,"
              " bool scale_grad_by_freq, int mode, Tensor? per_sample_weights,"
              " int padding_idx=-1) -> Tensor")
    trusts = "indices"
    grad = {
        "grad": ("bag_table_grad_transposed(grads[-1], indices, offset2bag, bag_size,"
                 " maximum_indices, scale_grad_by_freq, mode, per_sample_weights, padding_idx)"),
        "per_sample_weights": ("bag_entry_grad(grad, grads[-1], indices, offset2bag, padding_idx,"
                               " scale_grad_by_freq)"),
    }
    multilinear = ("grad", "per_sample_weights")
    nondiff = ("indices", "offset2bag", "bag_size", "maximum_indices")
    shape = "(num_weights, grad.shape[1])"
    dtype = "grad.dtype"
    cost = "reduce"
    method = function = False

    def run(xp, grad, indices, offset2bag, bag_size, maximum_indices, num_weights,
            scale_grad_by_freq, mode, per_sample_weights, padding_idx):
        _check_bag_gradient(grad, indices, offset2bag)
        if mode != SUM and tuple(bag_size.shape) != (grad.shape[0],):
            raise ShapeError(f"embedding_bag: expected the sizes of {grad.shape[0]} bags, got "
                             f"{list(bag_size.shape)}")
        g, width = widened(xp, grad), grad.shape[1]
        table = xp.zeros((num_weights, width), dtype=g.dtype)
        if mode == MAX:
            if tuple(maximum_indices.shape) != tuple(grad.shape):
                raise ShapeError(f"embedding_bag: expected places of maxima of shape "
                                 f"{list(grad.shape)}, got {list(maximum_indices.shape)}")
            filled = bag_size > 0
            columns = xp.broadcast_to(xp.arange(width), (int(filled.sum()), width))
            xp.add.at(table, (maximum_indices[filled], columns), g[filled])
            return narrowed(table, grad.dtype)
        counted = xp.ones(indices.shape, bool) if padding_idx < 0 else indices != padding_idx
        index = in_range(xp, indices[counted], num_weights, 0, negative=False)
        bag = offset2bag[counted]
        rows = g[bag]
        if mode == MEAN:
            rows = rows / bag_size[bag][:, None].astype(g.dtype)
        if per_sample_weights is not None:
            rows = rows * widened(xp, per_sample_weights)[counted][:, None]
        if scale_grad_by_freq and index.size:
            rows = rows / xp.bincount(indices, minlength=num_weights)[index][:, None]
        return narrowed(add_rows(xp, table, index, rows.astype(g.dtype)), grad.dtype)

    def decomp(grad, indices, offset2bag, bag_size, maximum_indices, num_weights,
               scale_grad_by_freq, mode, per_sample_weights, padding_idx):
        return bag_table_grad(grad, indices, offset2bag, bag_size, maximum_indices, num_weights,
                              scale_grad_by_freq, mode, per_sample_weights, padding_idx)

    def samples(s):
        indices, of_bag = (s.tensor(v, dt.int64) for v in ([0, 2, 1, 2], [0, 0, 2, 2]))
        size = s.tensor([2, 0, 2], dt.int64)
        yield s(s.real(3, 2), indices, of_bag, size, size, 4, False, SUM, None)
        yield s(s.real(3, 2), indices, of_bag, size, size, 4, True, SUM, s.real(4), 1)
        yield s(s.real(3, 2), indices, of_bag, size, size, 4, True, MEAN, None)
        yield s(s.real(3, 2), indices, of_bag, size,
                s.tensor([[0, 2], [0, 0], [1, 2]], dt.int64), 4, False, MAX, None)


class _embedding_bag_per_sample_weights_backward(Keeping):
    """Gradient of the weights of the entries: row times gradient of the bag, summed."""

    schema = ("_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight,"
              " Tensor indices, Tensor offsets, Tensor offset2bag, int mode, int padding_idx=-1)"
              " -> Tensor")
    same_dtype = ("grad", "weight")
    grad = {
        "grad": ("bag_table_grad_transposed(weight, indices, offset2bag,"
                 " new_zeros(indices, [grad.shape[0]]), None, False, 0, grads[-1], padding_idx)"),
        "weight": ("_embedding_bag_dense_backward(grad, indices, offset2bag,"
                   " new_zeros(indices, [grad.shape[0]]), offset2bag, weight.shape[0], False, 0,"
                   " grads[-1], padding_idx)"),
    }
    multilinear = ("grad", "weight")
    nondiff = ("indices", "offsets", "offset2bag")
    shape = "indices.shape"
    dtype = "grad.dtype"
    cost = "reduce"
    method = function = False

    def run(xp, grad, weight, indices, offsets, offset2bag, mode, padding_idx):
        _check_bag_gradient(grad, indices, offset2bag)
        if weight.ndim != 2 or weight.shape[1] != grad.shape[1]:
            raise ShapeError(f"embedding_bag: expected a table of width {grad.shape[1]}, got "
                             f"{list(weight.shape)}")
        out = xp.einsum("ij,ij->i", widened(xp, grad)[offset2bag], widened(xp, weight)[indices])
        if padding_idx >= 0:
            out[indices == padding_idx] = 0
        return narrowed(out, grad.dtype)

    def decomp(grad, weight, indices, offsets, offset2bag, mode, padding_idx):
        return bag_entry_grad(grad, weight, indices, offset2bag, padding_idx)

    def samples(s):
        indices, of_bag = (s.tensor(v, dt.int64) for v in ([0, 2, 1, 2], [0, 0, 2, 2]))
        offsets = s.tensor([0, 2, 2], dt.int64)
        yield s(s.real(3, 2), s.real(4, 2), indices, offsets, of_bag, 0)
        yield s(s.real(3, 2), s.real(4, 2), indices, offsets, of_bag, 0, 2)


class embedding_backward(Composite):
    """Gradient of the table of `embedding`."""

    schema = ("embedding_backward(Tensor grad, Tensor indices, SymInt num_weights,"
              " SymInt padding_idx, bool scale_grad_by_freq, bool sparse) -> Tensor")
    method = function = False

    def compose(grad, indices, num_weights, padding_idx, scale_grad_by_freq, sparse):
        function = rows_grad if sparse else ops.embedding_dense_backward
        return function(grad, indices, num_weights, padding_idx, scale_grad_by_freq)

    samples = lambda s: [s(s.real(4, 3), s.int(4, high=5), 5, -1, False, False)]


class embedding_renorm(Composite):
    """The table with the rows at `indices` shrunk to a norm of at most `max_norm`."""

    schema = ("embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type)"
              " -> Tensor")
    method = function = False
    inplace = True

    def compose(self, indices, max_norm, norm_type):
        if self.ndim != 2:
            raise ShapeError(f"Expected 2-dimensional tensor, but got {self.ndim}-dimensional "
                             "tensor for argument #1 'self' (while checking arguments for "
                             "embedding_renorm_)")
        if indices.dtype not in (dt.int32, dt.int64):
            raise DTypeError("Expected tensor for argument #2 'indices' to have one of the "
                             f"following scalar types: Long, Int; but got {title(indices.dtype)} "
                             "instead (while checking arguments for embedding_renorm_)")
        used = ops.new_zeros(self, [self.shape[0]], dtype=dt.bool_)
        used = ops.index_fill(used, 0, indices.reshape([-1]).to(dt.int64), 1)
        norms = ops.linalg_vector_norm(self, norm_type, [1], True)
        long = (norms > max_norm) & used.unsqueeze(1)
        return self * ops.where(long, max_norm / (norms + 1e-7), 1.0).to(self.dtype)

    def samples(s):
        yield s(s.real(5, 3), s.tensor([0, 2, 2], dt.int64), 1.0, 2.0)
        yield s(s.real(5, 3), s.tensor([[0], [4]], dt.int64), 1.5, 3.0)
