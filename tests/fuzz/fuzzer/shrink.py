"""Makes a failing program small: as few steps, inputs and odd values as still show the failure."""

from __future__ import annotations

import time
from dataclasses import replace

from .generate import pruned
from .program import FLOATS, Program, renamed


def shrunk(program: Program, fails, seconds: float = 20.0) -> Program:
    """The smallest program found in some time for which `fails(program)` is true."""
    end = time.monotonic() + seconds
    changed = True
    while changed and time.monotonic() < end:
        changed = False
        for candidate in _smaller(program):
            if time.monotonic() > end:
                break
            try:
                failing = fails(candidate)
            except Exception:
                failing = False
            if failing:
                program, changed = candidate, True
                break
    return program


def _smaller(p: Program):
    """Programs with less in them, those with much less first."""
    if len(p.result) > 1:
        for name in p.result:
            yield _needed(replace(p, result=(name,)))
    for size in (4, 2, 1):
        for k in range(len(p.steps) - size, -1, -1):
            yield from _without(p, k, size)
    for k, step in enumerate(p.steps):
        for made in step.makes:
            for other in [*step.needs, *p.inputs]:
                if other != made:
                    yield from _replaced(p, k, made, other)
    if len(p.result) > 1:
        for name in p.result:
            yield _needed(replace(p, result=tuple(n for n in p.result if n != name)))
    for name, spec in p.inputs.items():
        for less in _plainer(spec):
            yield replace(p, inputs={**p.inputs, name: less})


def _without(p: Program, at: int, count: int):
    """Without some steps, if nobody needs what they make."""
    gone = {n for s in p.steps[at:at + count] for n in s.makes}
    rest = p.steps[:at] + p.steps[at + count:]
    result = tuple(n for n in p.result if n not in gone) or tuple(
        [n for s in rest for n in s.makes][-1:])
    if result and not any(n in gone for s in rest for n in s.needs):
        yield pruned(Program(p.inputs, rest, result, p.seed))


def _replaced(p: Program, at: int, made: str, other: str):
    """Without a step: what needs its value gets one of those that it needs."""
    if len(p.steps[at].makes) > 1 or not any(made in s.needs for s in p.steps[at + 1:]):
        return
    rest = [s if made not in s.needs else replace(
        s, text=renamed(s.text, made, other),
        needs=tuple(other if n == made else n for n in s.needs)) for s in p.steps[at + 1:]]
    result = tuple(dict.fromkeys(other if n == made else n for n in p.result))
    yield pruned(Program(p.inputs, p.steps[:at] + rest, result, p.seed))


def _needed(p: Program) -> Program:
    """Without steps whose values do not matter, as far as names tell; writes stay."""
    needed, steps = set(p.result), []
    for step in reversed(p.steps):
        if not step.makes or needed & set(step.makes):
            needed |= set(step.needs)
            steps.append(step)
    return pruned(Program(p.inputs, steps[::-1], p.result, p.seed))


def _plainer(spec):
    if spec.odd:
        yield replace(spec, odd="")
    if spec.layout:
        yield replace(spec, layout="")
    if spec.grad:
        yield replace(spec, grad="")
    if spec.dtype in FLOATS and spec.dtype not in ("float32", "float64"):
        yield replace(spec, dtype="float32")
    if spec.values is None and len(spec.shape) and any(n > 3 for n in spec.shape):
        yield replace(spec, shape=tuple(min(n, 2) for n in spec.shape))
