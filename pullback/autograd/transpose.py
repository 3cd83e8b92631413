"""Forward mode by transposing the pullback: the last step of the ladder.

The pullback g = J^T v is linear in v, so its own pullback with respect to v, applied to the
tangents, is J t.
"""

from __future__ import annotations

from ..core.handle import Tensor
from ..core.tape import Accumulate
from ..interp import jvp as forward
from ..interp.lift import Lift
from ..table.packets import ops
from .gradients import grad


def transpose_pullback(ov, args, tangents, outs) -> list:
    """Tangents of the outputs from the pullback formulas."""
    rule = ov.rule
    flags = [forward.has_tangent(tangents[i]) for i in rule.inputs]
    saved = rule.save(flags, args, outs)
    varying = [o for o, d in zip(outs, rule.diff_outputs) if d]
    complex_ = any(isinstance(t, Tensor) and t.dtype.is_complex for t in (*varying, *args))
    backward = rule.backward_complex if complex_ else rule.backward_real
    with Lift("the transposed pullback") as level:
        gradients = [None if o is None else level.wrap(ops.zeros_like(o)) for o in varying]
        seeds = [s for s in gradients if s is not None]
        for s in seeds:
            s._edge = Accumulate(s)
        results = backward(saved, tuple(gradients), flags)
        pulled, cotangents = [], []
        for i, g in zip(rule.inputs, results):
            items = (
                zip(g, tangents[i], args[i])
                if isinstance(g, (list, tuple))
                else [(g, tangents[i], args[i])]
            )
            for gi, t, a in items:
                if gi is not None and t is not None and gi._edge is not None:
                    from ..core.project import project

                    pulled.append(project(gi, a._payload.shape, a._payload.dtype))
                    cotangents.append(level.wrap(t))
        if not pulled:
            found = [None] * len(seeds)
        else:
            found = grad(pulled, seeds, cotangents, allow_unused=True)
        present = [o for o in varying if o is not None]
        made = iter(
            [
                level.unwrap(f) if f is not None else ops.zeros_like(o)
                for f, o in zip(found, present)
            ]
        )
    return [next(made) if d and o is not None else None for o, d in zip(outs, rule.diff_outputs)]


forward.transposer = transpose_pullback
