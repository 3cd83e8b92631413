"""Kinds of entries between those of `core/op.py` and the entries: what many of these share.

`pointwise.py` has those of functions of one number.
"""

from __future__ import annotations

from ..core.op import Composite, Op, View
from ..table.packets import ops
from .batching import of_overload


class Keeping(Op):
    """Its kernel takes arguments of the dtypes that they have; its result has the one it makes."""

    promote = "keep"


class Moving(Keeping):
    """Puts elements into other places, and computes nothing."""

    complex = True
    cost = "cheap"


class PairOfEach(Op):
    """Two numbers of each element, of which the first has a derivative."""

    diff_outputs = (True, False)
    shape = "[self.shape, self.shape]"
    cost = "cheap"


class ComplexView(View):
    """A view of complex numbers, too."""

    complex = True


class MatrixKernel(Keeping):
    """A kernel on stacks of matrices, which is not made up of simpler operators.

    More dims in front make a longer stack.
    """

    intensive = True
    kept = "matrix"
    complex = True

    @of_overload
    def batch(ov, n, batched, *flat):
        out = ov.call(*flat)
        if not isinstance(out, tuple):
            return out
        # outputs that were not asked for are empty, and have no leading dims
        full = [ops.zeros((n, 0), dtype=o.dtype, device=o.device) if tuple(o.shape) == (0,) else o
                for o in out]
        return type(out)(*full)


class InLinalg:
    """Offered in `pullback.linalg` only."""

    method = function = False
    namespace = "linalg"


class InFunctional:
    """Offered in `pullback.nn.functional`, too."""

    namespace = "nn.functional"


class Matrices(InLinalg, MatrixKernel):
    """A kernel on stacks of matrices that is offered there."""


class PreciseMatrices(Matrices):
    """One that is computed in float32 where autocast is on."""

    autocast = "float32"


class Free(Composite):
    """A composite that is offered as a function, and is no method of tensors."""

    method = False


class ComplexComposite(Composite):
    """A composite of complex numbers, too."""

    complex = True


class ComplexFree(Free):
    """A function of complex numbers, too."""

    complex = True


class MatricesComposite(InLinalg, ComplexComposite):
    """A function of other operators on stacks of matrices that is offered there."""


class PreciseMatricesComposite(MatricesComposite):
    """One that is computed in float32 where autocast is on."""

    autocast = "float32"


class FirstResult(Composite):
    """The first result of another operator, the one that `first_of` names."""

    first_of = ""

    @classmethod
    def compose(cls, *args):
        return getattr(ops, cls.first_of)(*args)[0]


class Synonym(Composite):
    """Passes all its arguments on to another operator, the one that `same_as` names."""

    same_as = ""

    @classmethod
    def compose(cls, *args):
        return getattr(ops, cls.same_as)(*args)


class SameTuple(Synonym):
    """A function that gives the results of the other operator as a plain tuple."""

    method = False

    @classmethod
    def compose(cls, *args):
        return tuple(super().compose(*args))
