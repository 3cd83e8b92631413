"""Every operator of the table with symbolic sizes: captured at one size, run at two others.

Values and gradients are those of the operator itself.  What an operator must fix (a size that its
other arguments repeat, a count of outputs) is a guard, and then the other sizes do not fit.
"""

import warnings
import zlib

import pytest

import pullback as torch
from pullback import errors
from pullback.array import dtype as dt
from pullback.autograd.gradients import grad
from pullback.core.handle import Tensor, make
from pullback.core.op import registry
from pullback.core.overload import overload_of
from pullback.core.stack import bind
from pullback.pytree import tree_flatten
from pullback.table.catalog import load_all
from pullback.testing import samples
from pullback.testing.kit import _close

CHUNKS = 8


class Grown(samples.Maker):
    """Samples with every size that is not 0 or 1 made larger."""

    more = 0

    def _grown(self, shape):
        return [n + self.more if n > 1 else n for n in shape]

    def real(self, *shape, **kwargs):
        return super().real(*self._grown(shape), **kwargs)

    def int(self, *shape, **kwargs):
        return super().int(*self._grown(shape), **kwargs)

    def bool(self, *shape):
        return super().bool(*self._grown(shape))


def flat_samples(op, more):
    maker = Grown(zlib.crc32(op.full_name.encode()), dt.float64)
    maker.more = more
    for case in op.samples(maker):
        case.label = op.full_name
        yield samples.flat(op, case)


def tensors_of(flat):
    return [t for v in flat for t in (v if isinstance(v, list) else [v]) if isinstance(t, Tensor)]


def function_of(ov, flat):
    def call(*tensors):
        rest = iter(tensors)

        def filled(v):
            return next(rest) if isinstance(v, Tensor) else v

        args = [[filled(t) for t in v] if isinstance(v, list) else filled(v) for v in flat]
        out = bind(ov, tuple(args))
        return [o for o in tree_flatten(out)[0] if isinstance(o, Tensor)]

    return call


def run(function, tensors):
    """Results, and the gradients of their sum."""
    leaves = [make(t._payload.copy()) for t in tensors]
    wanted = [t.requires_grad_() for t in leaves if t.dtype.category >= 2]
    out = function(*leaves)
    outs = [o for o in out if o.requires_grad]
    seeds = [torch.ones_like(o) for o in outs]
    grads = grad(outs, wanted, seeds, allow_unused=True) if outs else []
    return [*out, *[g for g in grads if g is not None]]


def works(function, tensors):
    try:
        return run(function, tensors)
    except Exception:
        return None


def check(op) -> int:
    """At how many other sizes the capture served; -1 where there is nothing to compare."""
    ov = overload_of(op)
    writes = any(a.is_write for a in ov.schema.args)
    if op.samples is None or op.kind == "random" or op.invariant is not None or writes:
        return -1
    number, flat = next(((k, f) for k, f in enumerate(flat_samples(op, 0))
                         if any(n > 1 for t in tensors_of(f) for n in t.shape)), (0, None))
    if flat is None:
        return -1
    call, tensors = function_of(ov, flat), tensors_of(flat)
    wanted = works(call, tensors)
    if wanted is None:
        return -1
    compiled = torch.compile(call, dynamic=True, backend="numpy", fullgraph=True)
    try:
        _close(run(compiled, tensors), wanted, op.full_name, rtol=1e-7)
    except errors.DataDependentError:
        return -1  # its sizes are decided by values
    (family,) = compiled.families.values()
    served = 0
    for more in (1, 2, 3, 4):
        if served == 2:
            break
        try:
            other = [f for _, f in zip(range(number + 1), flat_samples(op, more))][-1]
        except (IndexError, RuntimeError, TypeError, ValueError):
            continue  # its samples cannot be other sizes
        literals = [repr(v) for v in other if not isinstance(v, (Tensor, list))]
        if literals != [repr(v) for v in flat if not isinstance(v, (Tensor, list))]:
            continue
        tensors = tensors_of(other)
        wanted = works(call, tensors)
        fits = family.programs[0].check.bind([t._payload.shape for t in tensors])
        if wanted is None or isinstance(fits, str):
            continue
        _close(run(compiled, tensors), wanted, f"{op.full_name} at another size", rtol=1e-7)
        assert len(family.programs) == 1
        served += 1
    return served


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_operators(chunk):
    load_all()
    counts = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in sorted(registry.known()):
            if zlib.crc32(name.encode()) % CHUNKS == chunk:
                try:
                    counts.append(check(registry[name]))
                except Exception as error:
                    raise AssertionError(f"{name}: {error}") from error
    compared = [n for n in counts if n >= 0]
    assert sum(n > 0 for n in compared) > 0.7 * len(compared)  # the others fix their sizes
