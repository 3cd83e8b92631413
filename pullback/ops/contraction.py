"""How `einsum` is computed: read the equation, then contract pair by pair with matrix products.

Not a file of the table; the entry is in `ops/matmul.py`.  Dims are named by labels: a letter, or a
number for a dim that an ellipsis covers.  Everything works on Tensor handles with public operators,
so derivatives and batching follow.
"""

from __future__ import annotations

from ..array.dims import numel
from ..errors import ShapeError
from ..table.packets import ops

Label = str | int


def read_equation(equation: str, ranks: list[int]) -> tuple[list[list[Label]], list[Label]]:
    """Labels of every operand and of the output."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ShapeError(f"einsum(): the equation '{equation}' has {len(terms)} operands, but "
                         f"{len(ranks)} were given")
    covered = [rank - len(term.replace("...", ""))
               for term, rank in zip(terms, ranks, strict=True) if "..." in term]
    most = max(covered, default=0)
    inputs = [_labels(equation, term, i, rank, most)
              for i, (term, rank) in enumerate(zip(terms, ranks, strict=True))]
    if arrow:
        output = _output_labels(equation, right, most)
    else:
        every = [label for labels in inputs for label in labels]
        once = sorted({x for x in every if isinstance(x, str) and every.count(x) == 1})
        output = [*range(most), *once]
    known = {label for labels in inputs for label in labels}
    for label in output:
        if output.count(label) > 1:
            raise ShapeError(f"einsum(): output subscript '{label}' appears more than once in "
                             f"'{equation}'")
        if label not in known:
            raise ShapeError(f"einsum(): output subscript '{label}' does not appear in the inputs "
                             f"of '{equation}'")
    return inputs, output


def _labels(equation: str, term: str, number: int, rank: int, most: int) -> list[Label]:
    """Labels of one operand; the dims of an ellipsis are numbered so that they align at the end."""
    before, dots, after = term.partition("...")
    letters = before + after
    _letters_only(equation, letters)
    rest = rank - len(letters)
    if rest < 0 or (rest and not dots):
        raise ShapeError(f"einsum(): operand {number} has {rank} dims, but its subscript '{term}' "
                         f"in '{equation}' names {len(letters)}")
    return [*before, *range(most - rest, most), *after]


def _output_labels(equation: str, term: str, most: int) -> list[Label]:
    before, dots, after = term.partition("...")
    _letters_only(equation, before + after)
    return [*before, *(range(most) if dots else ()), *after]


def _letters_only(equation: str, letters: str) -> None:
    for letter in letters:
        if not (letter.isascii() and letter.isalpha()):
            raise ShapeError(f"einsum(): invalid subscript '{letter}' in '{equation}', subscripts "
                             "must be in [a-zA-Z]")


class _Factor:
    """An operand with a label for each of its dims."""

    __slots__ = ("labels", "tensor")

    def __init__(self, tensor, labels: list[Label]):
        self.tensor, self.labels = tensor, labels

    def sizes(self) -> dict[Label, int]:
        return dict(zip(self.labels, self.tensor.shape, strict=True))

    def ordered(self, labels: list[Label]):
        """The tensor with its dims in the order of `labels`."""
        if labels == self.labels:
            return self.tensor
        return self.tensor.permute([self.labels.index(label) for label in labels])


def _shaped(tensor, shape):
    return tensor if tuple(tensor.shape) == tuple(shape) else tensor.reshape(shape)


def _prepare(tensor, labels: list[Label], sizes: dict[Label, int]) -> _Factor:
    """Diagonals of repeated labels; dims of size 1 that are broadcast are dropped."""
    labels = list(labels)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            i = labels.index(label)
            j = labels.index(label, i + 1)
            tensor = tensor.diagonal(0, i, j)
            labels = [x for k, x in enumerate(labels) if k not in (i, j)] + [label]
    thin = [i for i, label in enumerate(labels) if tensor.shape[i] == 1 and sizes[label] != 1]
    for i in reversed(thin):
        tensor = tensor.squeeze(i)
        del labels[i]
    return _Factor(tensor, labels)


def _common_sizes(tensors, inputs: list[list[Label]]) -> dict[Label, int]:
    sizes: dict[Label, int] = {}
    for number, (tensor, labels) in enumerate(zip(tensors, inputs, strict=True)):
        own: dict[Label, int] = {}
        for dim, label in enumerate(labels):
            size = tensor.shape[dim]
            if own.setdefault(label, size) != size:
                raise ShapeError(f"einsum(): subscript {label} is repeated for operand {number} "
                                 f"but the sizes don't match, {size} != {own[label]}")
            have = sizes.get(label, 1)
            if have != size and size != 1 and have != 1:
                raise ShapeError(f"einsum(): operands do not broadcast: subscript {label} has size "
                                 f"{size} for operand {number} but {have} before")
            sizes[label] = size if have == 1 else have
    return sizes


def _summed(factor: _Factor, needed: set[Label]) -> _Factor:
    """Sum over the labels that nobody else needs."""
    spare = [i for i, label in enumerate(factor.labels) if label not in needed]
    if not spare:
        return factor
    return _Factor(factor.tensor.sum(spare), [x for x in factor.labels if x in needed])


def multiply(a: _Factor, b: _Factor, needed: set[Label]) -> _Factor:
    """Product of two factors, summed over the shared labels that are not needed any more."""
    shared = [x for x in a.labels if x in b.labels]
    batch = [x for x in shared if x in needed]
    inner = [x for x in shared if x not in needed]
    left = [x for x in a.labels if x not in shared]
    right = [x for x in b.labels if x not in shared]
    sizes = {**a.sizes(), **b.sizes()}

    def shape(labels):
        return [sizes[x] for x in labels]

    if not inner:
        first = _shaped(a.ordered(batch + left), shape(batch + left) + [1] * len(right))
        second = _shaped(b.ordered(batch + right),
                         shape(batch) + [1] * len(left) + shape(right))
        return _Factor(first * second, batch + left + right)
    lead = [numel(shape(batch))] if batch else []
    count = numel(shape(inner))
    first = _shaped(a.ordered(batch + left + inner), [*lead, numel(shape(left)), count])
    second = _shaped(b.ordered(batch + inner + right), [*lead, count, numel(shape(right))])
    out = ops.bmm(first, second) if batch else ops.mm(first, second)
    return _Factor(_shaped(out, shape(batch + left + right)), batch + left + right)


def _cheapest(factors: list[_Factor], output: list[Label]) -> tuple[int, int]:
    """The pair whose product is smallest compared with its factors."""
    best, choice = None, (0, 1)
    for i in range(len(factors)):
        for j in range(i + 1, len(factors)):
            a, b = factors[i], factors[j]
            needed = _needed([f for k, f in enumerate(factors) if k not in (i, j)], output)
            sizes = {**a.sizes(), **b.sizes()}
            kept = numel(n for x, n in sizes.items() if x in needed)
            cost = kept - numel(a.tensor.shape) - numel(b.tensor.shape)
            if best is None or cost < best:
                best, choice = cost, (i, j)
    return choice


def _needed(factors: list[_Factor], output: list[Label]) -> set[Label]:
    return set(output).union(*(f.labels for f in factors))


def contract(equation: str, tensors: list, path: list[int] | None):
    """The value of an einsum equation."""
    if not tensors:
        raise ShapeError("einsum(): must provide at least one operand")
    inputs, output = read_equation(equation, [t.ndim for t in tensors])
    sizes = _common_sizes(tensors, inputs)
    factors = [_prepare(t, labels, sizes) for t, labels in zip(tensors, inputs, strict=True)]
    factors = [_summed(f, _needed(factors[:i] + factors[i + 1:], output))
               for i, f in enumerate(factors)]
    steps = iter(path or ())
    while len(factors) > 1:
        if path:
            i, j = sorted((next(steps), next(steps)))
        elif len(factors) == 2:
            i, j = 0, 1
        else:
            i, j = _cheapest(factors, output)
        a, b = factors[i], factors[j]
        factors = [f for k, f in enumerate(factors) if k not in (i, j)]
        factors.append(multiply(a, b, _needed(factors, output)))
    last = _summed(factors[0], set(output))
    # a label of size 1 may have been broadcast away in all but one operand, never in all
    return last.ordered(output)
