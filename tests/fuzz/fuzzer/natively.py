"""Native code for many programs at once: one compiled function, so that the C compiler runs once.

Programs that were captured whole are joined into a function of all their inputs. Where results are
not those of eager mode, the programs are compiled one by one, and what only happens together is
reported as a program of those that it takes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import pullback as pb

from .compare import Seen, difference, flat, observe, roots_of, shown, written
from .program import Program, Step, arguments, function_of, renamed


def joined(programs: list) -> Program:
    """One program that does what all of them do."""
    inputs, steps, result, count = {}, [], [], 0
    for k, p in enumerate(programs):
        names = {}
        for name in p.inputs:
            names[name] = f"i{count}"
            count += 1
        for name in [n for s in p.steps for n in s.makes]:
            names[name] = f"{name}_{k}"

        def told(text, names=names):
            for old in sorted(names, key=len, reverse=True):
                text = renamed(text, old, names[old])
            return text

        for name, spec in p.inputs.items():
            inputs[names[name]] = replace(spec, of=told(spec.of)) if spec.of else spec
        steps += [Step(told(s.text), tuple(names[n] for n in s.makes),
                       tuple(names[n] for n in s.needs), s.what, s.traits) for s in p.steps]
        result += [names[n] for n in p.result]
    return Program(inputs, steps, tuple(result), programs[0].seed)


def source(cases: list) -> str:
    """Text of a function `together` of all inputs."""
    parts, calls, count = [], [], 0
    for k, case in enumerate(cases):
        parts.append(case.program.source(f"program_{k}"))
        n = len(case.inputs)
        calls.append(f"program_{k}({', '.join(f'given[{i}]' for i in range(count, count + n))})")
        count += n
    body = ",\n            ".join(calls)
    return "\n".join(parts) + f"\ndef together(*given):\n    return [{body}]\n"


def losses(cases: list):
    """Those that give a finite number with gradients, and the function of their sum."""
    from .modes import loss_of

    chosen = []
    for case in cases:
        floats = [s.value for s in case.wanted if not s.is_text and s.value.dtype.kind in "fc"]
        if (case.gradients and any(i.grad for i in case.inputs.values()) and floats
                and not {"write", "random"} & case.traits
                and all(np.isfinite(v).all() and np.abs(v).max(initial=0) < 1e6 for v in floats)):
            chosen.append(case)
    counts = [len(c.inputs) for c in chosen]
    parts = [loss_of(c.function) for c in chosen]

    def total(*given):
        value, at = 0.0, 0
        for part, n in zip(parts, counts):
            value = value + part(*given[at:at + n])
            at += n
        return value

    return chosen, total


def batch_of_losses(cases: list) -> list:
    """The same as `batch` for one number: its gradients come with it, from one graph."""
    chosen, total = losses(cases)
    if not chosen:
        return []
    one = {f"i{j}_{k}": replace(spec, of="") for j, c in enumerate(chosen)
           for k, spec in enumerate(c.inputs.values()) if not any(
               i.of for i in c.inputs.values())}
    if len(one) != sum(len(c.inputs) for c in chosen):
        chosen = [c for c in chosen if not any(i.of for i in c.inputs.values())]
        return batch_of_losses(chosen)
    wanted, compiled = observe(pb, total, one), pb.compile(total)
    found = []
    for _ in range(2):
        seen = observe(pb, compiled, one)
        for got, want in list(zip(seen, wanted))[1:]:
            number = int(want.place.split("i", 2)[-1].split("_")[0]) if (
                want.place.startswith("gradient")) else None
            if number is not None and difference([got], [want], chosen[number].eps) and not any(
                    c is chosen[number] for c, _ in found):
                found.append((chosen[number], f"{want.place} of a loss"))
        eps = max(c.eps for c in chosen)
        if not found and difference(seen[:1], wanted[:1], eps * len(chosen)):
            found += [(c, "the loss") for c in chosen]
    return found


def observe_all(function, cases: list) -> list[list[Seen]]:
    """What `observe` sees, for every one of several programs."""
    pb.manual_seed(11)
    built = [arguments(pb, case.inputs) for case in cases]
    given = [t for _, args in built for t in args]
    versions = [[t._version for t in args] for _, args in built]
    with np.errstate(all="ignore"):
        results = [flat(o) for o in function(*given)]
        seen, roots, leaves = [], [], []
        for case, outs, (own, args), old in zip(cases, results, built, versions):
            seen.append([shown(pb, o, f"result {i}") for i, o in enumerate(outs)])
            seen[-1] += [shown(pb, o, f"input {n} afterwards")
                         for n, o in zip(case.inputs, args)]
            if case.gradients and own:
                roots += zip(*roots_of(pb, outs + written(args, old)))
                leaves += [(len(seen) - 1, leaf, name) for leaf, name in
                           zip(own, [n for n, i in case.inputs.items() if i.grad])]
        if leaves:
            grads = pb.autograd.grad(
                [r for r, _ in roots], [leaf for _, leaf, _ in leaves], [c for _, c in roots],
                allow_unused=True) if roots else [None] * len(leaves)
            for g, (k, leaf, name) in zip(grads, leaves):
                g = pb.zeros_like(leaf) if g is None else g
                seen[k].append(shown(pb, g, f"gradient of {name}"))
    return seen


def batch(cases: list, **options) -> list:
    """(case, words) for every program whose native results are not those of eager mode."""
    function = function_of(source(cases), pb, "together")
    wanted = observe_all(function, cases)
    compiled = pb.compile(function, **options)
    found = []
    for _ in range(2):
        for case, got, want in zip(cases, observe_all(compiled, cases), wanted):
            words = difference(got, want, case.eps)
            if words:
                words = difference(got, want, case.eps, case.room)
            if words and not any(c is case for c, _ in found):
                found.append((case, words))
    return found
