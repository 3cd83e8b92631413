"""Functions whose Python form the schema language cannot say.

They take variable numbers of tensors, or numbers in place of lists of dims, or have another default
than the operator.  Each one sorts its arguments and calls the operator of the same name; see
`ops/matmul.py` for those.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from .core.handle import Tensor
from .errors import ArgumentError, BadValue, ShapeError
from .table.packets import ops
from .tensor.overridable import asks_in as _asks_in
from .tensor.overridable import overridable as _overridable
from .tensor.overridable import taken_over as _taken_over

_asks = _asks_in(globals())


def einsum(*args) -> Tensor:
    """Sum of products in Einstein's notation.

    Either `einsum(equation, *operands)`, or operands and lists of numbers in turns:
    `einsum(a, [0, 1], b, [1, 2], [0, 2])`.
    """
    if len(args) == 2 and isinstance(args[0], str) and isinstance(args[1], (list, tuple)):
        args = (args[0], *args[1])  # an old way to call it
    if _asks and (taken := _taken_over(einsum, args)):
        return taken[0]
    if len(args) < 2:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or "
                         "at least one operand and its subscripts list")
    if isinstance(args[0], str):
        equation, operands = args[0], args[1:]
    else:
        equation, operands = _from_sublists(args)
    operands = list(operands)
    path = _path(equation, operands) if len(operands) > 2 else None
    return ops.einsum(equation, operands, path=path)


def _path(equation: str, operands: list[Tensor]) -> list[int] | None:
    """The order in which to multiply, cheapest first; None is from left to right.

    `backends.opt_einsum` says whether to look for one, and how.
    """
    machine = sys.modules.get(f"{__package__}.torch.machine")  # not there: nobody has said anything
    enabled, strategy = (True, "auto") if machine is None else (
        machine.backends.opt_einsum.enabled, machine.backends.opt_einsum.strategy)
    if not enabled:
        return None
    if strategy not in ("auto", "greedy", "optimal"):
        raise BadValue(f"backends.opt_einsum.strategy is {strategy!r}; it must be one of 'auto', "
                       "'greedy' and 'optimal'")
    if strategy == "auto":
        strategy = "optimal" if len(operands) < 5 else "greedy"
    shapes = [np.broadcast_to(np.float32(0), tuple(t.shape)) for t in operands]
    try:
        _, *steps = np.einsum_path(equation, *shapes, optimize=strategy)[0]
    except (ValueError, IndexError):  # the operator itself says what is wrong
        return None
    if any(len(step) != 2 for step in steps):
        return None
    return [i for step in steps for i in step]


def _from_sublists(args: tuple) -> tuple[str, list[Tensor]]:
    pairs = len(args) // 2
    operands = [args[2 * i] for i in range(pairs)]
    equation = ",".join(_subscript(args[2 * i + 1]) for i in range(pairs))
    if len(args) % 2:
        equation += "->" + _subscript(args[-1])
    return equation, operands


def _subscript(numbers: Sequence) -> str:
    """Letters for a list of numbers; an Ellipsis is three dots."""
    text = ""
    for number in numbers:
        if number is Ellipsis:
            text += "..."
        elif 0 <= number < 26:
            text += chr(ord("A") + number)
        elif 26 <= number < 52:
            text += chr(ord("a") + number - 26)
        else:
            raise ValueError("einsum(): subscripts in the list format must be Ellipsis or numbers "
                             f"in [0, 52), but got {number}")
    return text


def tensordot(a: Tensor, b: Tensor, dims=2, out: Tensor | None = None) -> Tensor:
    """Products summed over dims: a number counts them, two lists name them."""
    if _asks and (taken := _taken_over(tensordot, locals())):
        return taken[0]
    if isinstance(dims, Tensor):
        dims = dims.tolist() if dims.numel() > 1 else int(dims.item())
    if isinstance(dims, (list, tuple)):
        if len(dims) != 2 and not all(isinstance(d, int) for d in dims):
            raise ArgumentError("tensordot expects dims to be int or two lists of ints, got "
                                f"{dims}")
        first, second = dims
        first = [first] if isinstance(first, int) else list(first)
        second = [second] if isinstance(second, int) else list(second)
    else:
        if dims < 0:
            raise ShapeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.ndim, b.ndim):
            raise ShapeError("tensordot expects dims < ndim_a or ndim_b, but got "
                             f"dims={dims}, shapes {list(a.shape)} and {list(b.shape)}")
        first, second = list(range(-dims, 0)), list(range(dims))
    if out is None:
        return ops.tensordot(a, b, first, second)
    return ops.tensordot(a, b, first, second, out=out)


def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """Product of matrices in the cheapest order."""
    if _asks and (taken := _taken_over(chain_matmul, locals())):
        return taken[0]
    if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)):
        matrices = tuple(matrices[0])
    if out is None:
        return ops.chain_matmul(list(matrices))
    return ops.chain_matmul(list(matrices), out=out)


def _listed(tensors: tuple) -> list[Tensor]:
    """`f(a, b)` and `f([a, b])` are the same."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        return list(tensors[0])
    return list(tensors)


def meshgrid(*tensors: Tensor, indexing: str | None = None):
    """Coordinates of a grid whose axes are the given vectors."""
    if _asks and (taken := _taken_over(meshgrid, locals())):
        return taken[0]
    return ops.meshgrid(_listed(tensors), indexing=indexing or "ij")


def block_diag(*tensors: Tensor) -> Tensor:
    """Matrices along the diagonal of one matrix."""
    if _asks and (taken := _taken_over(block_diag, locals())):
        return taken[0]
    return ops.block_diag(_listed(tensors))


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of the elements of vectors."""
    if _asks and (taken := _taken_over(cartesian_prod, locals())):
        return taken[0]
    return ops.cartesian_prod(_listed(tensors))


_DISTANCE_MODES = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": 1,
    "donot_use_mm_for_euclid_dist": 2,
}


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0,
          compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """p-norm distances of all rows of two (batches of) matrices."""
    if _asks and (taken := _taken_over(cdist, locals())):
        return taken[0]
    if compute_mode not in _DISTANCE_MODES:
        raise BadValue(f"{compute_mode} is not a valid value for compute_mode; these are: "
                       f"{', '.join(_DISTANCE_MODES)}")
    return ops.cdist(x1, x2, p, _DISTANCE_MODES[compute_mode])


def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False,
                       dim: int | None = None):
    """Values without immediate repetitions, and what else was asked for."""
    if _asks and (taken := _taken_over(unique_consecutive, locals())):
        return taken[0]
    return input.unique_consecutive(return_inverse, return_counts, dim)


def _at_least(name: str):
    def function(*tensors: Tensor):
        packet = getattr(ops, name)
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            return packet(tensors[0])
        return tuple(packet(t) for t in _listed(tensors))
    function.__name__ = name
    function.__doc__ = "Tensors with dimensions of size 1 added where they have too few."
    return _overridable(function)


atleast_1d, atleast_2d, atleast_3d = map(_at_least, ("atleast_1d", "atleast_2d", "atleast_3d"))


# Losses: `reduction` is 0 (none) where it is left out, as in PyTorch's functions of these names;
# the operators, as their schemas say, and `nn.functional` take the mean.


@_overridable
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                     pos_weight: Tensor | None = None,
                                     reduction: int = 0) -> Tensor:
    """Cross entropy of probabilities that are given by their logits; not reduced unless asked."""
    return ops.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


@_overridable
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0,
                          reduction: int = 0) -> Tensor:
    """1 - cosine where the target is 1, else its excess over a margin; not reduced unless asked."""
    return ops.cosine_embedding_loss(input1, input2, target, margin, reduction)


@_overridable
def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Sequence[int] | Tensor,
             target_lengths: Sequence[int] | Tensor, blank: int = 0, reduction: int = 0,
             zero_infinity: bool = False) -> Tensor:
    """Negative log likelihood of targets without alignment; not reduced unless asked."""
    return ops.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction,
                        zero_infinity)


@_overridable
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0,
                         reduction: int = 0) -> Tensor:
    """Distances where the target is 1, what they lack of a margin elsewhere; not reduced."""
    return ops.hinge_embedding_loss(input, target, margin, reduction)


@_overridable
def kl_div(input: Tensor, target: Tensor, reduction: int = 0, *,
           log_target: bool = False) -> Tensor:
    """Terms of the divergence of `target` from exp(`input`); not reduced unless asked."""
    return ops.kl_div(input, target, reduction, log_target=log_target)


@_overridable
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0,
                        reduction: int = 0) -> Tensor:
    """What the difference of two scores lacks of a margin; not reduced unless asked."""
    return ops.margin_ranking_loss(input1, input2, target, margin, reduction)


@_overridable
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0,
                        p: float = 2.0, eps: float = 1e-06, swap: bool = False,
                        reduction: int = 0) -> Tensor:
    """How much nearer than a margin the negative is than the positive; not reduced unless asked."""
    return ops.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction)


_LOSSES = (binary_cross_entropy_with_logits, cosine_embedding_loss, ctc_loss, hinge_embedding_loss,
           kl_div, margin_ranking_loss, triplet_margin_loss)

_ELSEWHERE = (
    "align_tensors", "broadcast_shapes", "broadcast_tensors", "istft", "lu", "norm", "pca_lowrank",
    "split", "stft", "svd_lowrank", "unique", "unravel_index",
)  # fmt: skip


def __getattr__(name: str):
    """The other functions that PyTorch keeps in a file of this name."""
    if name in _ELSEWHERE:
        return getattr(sys.modules[__package__], name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


for _loss in _LOSSES:  # PyTorch has them at top level only
    _loss.__module__ = __package__
