"""One checker for any operator: every property that the table promises, on every sample.

    from pullback.testing import check
    check(MyOp)                # raises AssertionError with the failing sample and property

Each check is a function (op, case, dtype); `CHECKS` lists them.  The tests of the table are these
checks over all entries.
"""

from __future__ import annotations

import warnings

import numpy as np

from .. import errors, func
from ..array import dtype as dt
from ..array.generator import default_generator
from ..autograd.gradients import grad
from ..core.handle import Tensor, make
from ..core.overload import overload_of
from ..core.stack import bind
from ..core.surface import inplace
from ..eager.plan import make_plan
from ..table.packets import Packet
from . import samples
from .samples import host, place


class CheckFailed(AssertionError):
    """An operator does not do what its table entry promises."""


def _array(t) -> np.ndarray:
    array = host(t)
    return array.astype(np.float64) if array.dtype in (dt.bfloat16.np, dt.float16.np) else array


def _close(actual, expected, what: str, rtol: float = 1e-9, atol: float = 1e-10) -> None:
    if isinstance(expected, Tensor):
        a, b = _array(actual), _array(expected)
        if a.shape != b.shape or a.dtype != b.dtype:
            raise CheckFailed(
                f"{what}: {a.dtype}{list(a.shape)}, expected {b.dtype}{list(b.shape)}"
            )
        if not np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
            worst = np.nanmax(np.abs(a - b)) if a.size else 0
            raise CheckFailed(
                f"{what}: differs by up to {worst:.3g}\n  got {a.reshape(-1)[:8]}\n"
                f"  expected {b.reshape(-1)[:8]}"
            )
    elif isinstance(expected, (list, tuple)):
        if len(actual) != len(expected):
            raise CheckFailed(f"{what}: {len(actual)} results, expected {len(expected)}")
        for i, (a, b) in enumerate(zip(actual, expected)):
            _close(a, b, f"{what}[{i}]", rtol, atol)
    elif actual != expected and not (actual != actual and expected != expected):
        raise CheckFailed(f"{what}: {actual!r}, expected {expected!r}")


class Problem:
    """A sample as a function of its differentiable tensors."""

    def __init__(self, op, case, dtype):
        self.op, self.ov = op, overload_of(op)
        self.flat = samples.flat(op, case)
        rule = None if self.ov.is_composite else self.ov.rule
        chosen = rule.inputs if rule is not None else range(len(self.flat))
        self.slots = []
        if rule is not None or self.ov.is_composite:
            for i in chosen:
                items = self.flat[i] if isinstance(self.flat[i], list) else [self.flat[i]]
                for j, t in enumerate(items):
                    if isinstance(t, Tensor) and t.dtype.category >= 2:
                        self.slots.append((i, j if isinstance(self.flat[i], list) else None))

    @property
    def inputs(self) -> list[Tensor]:
        return [self.flat[i] if j is None else self.flat[i][j] for i, j in self.slots]

    def direction(self, k: int, seed: int) -> Tensor:
        """A random perturbation of input k, of the structure that the entry asks for."""
        t = _random_like(self.inputs[k], seed)
        project = self.op.structure.get(self.ov.schema.names[self.slots[k][0]])
        return t if project is None else place(np.asarray(project(host(t), self.flat)))

    def __call__(self, *tensors):
        """The differentiable outputs."""
        flat = [list(v) if isinstance(v, list) else v for v in self.flat]
        for (i, j), t in zip(self.slots, tensors):
            if self.ov.schema.args[i].is_write:
                t = t.clone()  # a leaf must not be written
            if j is None:
                flat[i] = t
            else:
                flat[i][j] = t
        out = bind(self.ov, tuple(flat))
        outs = samples.leaves(out)
        if self.op.invariant is not None:
            return tuple(self.op.invariant(*outs))
        if not self.ov.is_composite and len(outs) == len(self.ov.rule.diff_outputs):
            outs = [o for o, d in zip(outs, self.ov.rule.diff_outputs) if d]
        return tuple(o for o in outs if isinstance(o, Tensor) and o.dtype.category >= 2)


def _random_like(t: Tensor, seed: int) -> Tensor:
    random = np.random.default_rng(seed)
    values = random.normal(size=tuple(t.shape))
    if t.dtype.is_complex:
        values = values + 1j * random.normal(size=tuple(t.shape))
    return place(np.asarray(values).astype(t._payload.dtype))


def _dot(a: Tensor, b: Tensor) -> float:
    return float(np.sum((np.conj(_array(a)) * _array(b)).real))


def _differentiable(op, case, dtype) -> Problem | None:
    problem = Problem(op, case, dtype)
    if not problem.slots or op.kind == "random":
        return None
    outs = problem(*problem.inputs)
    return problem if outs else None


def check_pullback(op, case, dtype) -> None:
    """<v, J t> by finite differences equals <J^H v, t> by the pullback formulas."""
    problem = _differentiable(op, case, dtype)
    if problem is None:
        return
    leaves = [place(host(t)).requires_grad_() for t in problem.inputs]
    outs = list(problem(*leaves))
    seeds = [_random_like(o, 10 + i) for i, o in enumerate(outs)]
    if problem.ov.is_composite:  # what it detached has no derivative
        seeds = [s if o.requires_grad else s * 0 for o, s in zip(outs, seeds)]
    tracked = [(o, s) for o, s in zip(outs, seeds) if o.requires_grad]
    if not tracked:
        raise CheckFailed("no output requires grad although the inputs do")
    grads = grad([o for o, _ in tracked], leaves, [s for _, s in tracked], allow_unused=True)
    for k, (leaf, g) in enumerate(zip(leaves, grads)):
        if g is not None and (g.dtype is not leaf.dtype or tuple(g.shape) != tuple(leaf.shape)):
            raise CheckFailed(
                f"gradient {k}: {g.dtype}{list(g.shape)}, input: {leaf.dtype}{list(leaf.shape)}"
            )
        direction = problem.direction(k, 20 + k)
        expected = _difference(problem, k, direction, seeds)
        got = 0.0 if g is None else _dot(g, direction)
        _near(got, expected, f"pullback with respect to input {k}")


def _difference(problem, k: int, direction: Tensor, seeds: list) -> float:
    """Directional derivative of the weighted outputs by a fourth-order difference."""
    total = 0.0
    step = 1e-3
    for weight, factor in ((8, 1), (-8, -1), (-1, 2), (1, -2)):
        inputs = list(problem.inputs)
        inputs[k] = place(np.asarray(_array(inputs[k]) + factor * step * _array(direction)))
        outs = problem(*inputs)
        total += weight * sum(_dot(s, o) for s, o in zip(seeds, outs))
    return total / (12 * step)


def _near(got: float, expected: float, what: str, rtol: float = 2e-5, atol: float = 2e-6) -> None:
    if np.isnan(got) and np.isnan(expected):
        return
    if not abs(got - expected) <= atol + rtol * max(abs(got), abs(expected), 1.0):
        raise CheckFailed(f"{what}: got {got:.10g}, expected {expected:.10g}")


def check_pushforward(op, case, dtype) -> None:
    """Forward mode against reverse mode: <v, J t> = <J^H v, t>."""
    problem = _differentiable(op, case, dtype)
    if problem is None:
        return
    primals = tuple(make(t._payload) for t in problem.inputs)
    tangents = tuple(problem.direction(i, 30 + i) for i in range(len(primals)))
    values, pushed = func.jvp(problem, primals, tangents)
    outs, pull = func.vjp(problem, *primals)
    _close(list(values), list(outs), "primal of the pushforward")
    seeds = tuple(_random_like(o, 40 + i) for i, o in enumerate(outs))
    grads = pull(seeds)
    left = sum(_dot(s, t) for s, t in zip(seeds, pushed))
    right = sum(_dot(g, t) for g, t in zip(grads, tangents))
    _near(left, right, "pushforward against pullback", 1e-8, 1e-9)
    for t, o in zip(pushed, outs):
        if t.dtype is not o.dtype or tuple(t.shape) != tuple(o.shape):
            raise CheckFailed(
                f"tangent is {t.dtype}{list(t.shape)}, the output {o.dtype}{list(o.shape)}"
            )


def check_second_order(op, case, dtype) -> None:
    """The derivative of the pullback: forward over reverse equals finite differences."""
    problem = _differentiable(op, case, dtype)
    if problem is None:
        return
    outs = problem(*problem.inputs)
    seeds = [_random_like(o, 50 + i) for i, o in enumerate(outs)]

    def weighted(*inputs):
        leaves = [t if t.requires_grad else t.detach().requires_grad_() for t in inputs]
        results = problem(*leaves)
        tracked = [(o, s) for o, s in zip(results, seeds) if o.requires_grad]
        return leaves, grad(
            [o for o, _ in tracked],
            leaves,
            [s for _, s in tracked],
            create_graph=True,
            allow_unused=True,
        )

    leaves, first = weighted(*[place(host(t)).requires_grad_() for t in problem.inputs])
    directions = [problem.direction(i, 60 + i) for i in range(len(leaves))]
    used = [(g, d) for g, d in zip(first, directions) if g is not None and g.requires_grad]
    second = (
        grad([g for g, _ in used], leaves, [d for _, d in used], allow_unused=True)
        if used
        else ([None] * len(leaves))
    )
    for k, g in enumerate(second):
        direction = problem.direction(k, 70 + k)
        total, step = 0.0, 1e-3
        for weight, factor in ((8, 1), (-8, -1), (-1, 2), (1, -2)):
            moved = [place(host(t)) for t in problem.inputs]
            moved[k] = place(np.asarray(_array(moved[k]) + factor * step * _array(direction)))
            _, grads = weighted(*moved)
            total += weight * sum(_dot(d, h) for d, h in zip(directions, grads) if h is not None)
        expected = total / (12 * step)
        got = 0.0 if g is None else _dot(g, direction)
        _near(got, expected, f"second derivative with respect to input {k}", 2e-4, 2e-5)


def check_vmap(op, case, dtype) -> None:
    """Batched at once equals one by one, for each choice of batched inputs."""
    ov = overload_of(op)
    if op.kind in ("random", "creation"):
        return
    if not any(r.is_tensor for r in ov.schema.returns):
        return  # a Python value: one for all examples, or a refusal
    flat = samples.flat(op, case)
    slots = samples.places(flat)
    if not slots:
        return

    def call(*tensors, chosen):
        out = bind(ov, samples.replaced(flat, chosen, tensors))
        if op.invariant is not None:
            return tuple(op.invariant(*out))
        if isinstance(out, (list, tuple)):
            return tuple(o for o in samples.leaves(out) if isinstance(o, Tensor))
        return out

    subsets = [slots] + ([[s] for s in slots] if len(slots) > 1 else [])
    for chosen in subsets:
        values = [flat[i] if j is None else flat[i][j] for i, j in chosen]
        stacked = [_stack(t) for t in values]
        try:
            single = [call(*[place(host(s)[b]) for s in stacked], chosen=chosen) for b in range(2)]
        except Exception:
            continue
        try:
            with warnings.catch_warnings():  # slow is right, too
                warnings.filterwarnings("ignore", "vmap: operator .* has no batching rule")
                got = func.vmap(lambda *ts, chosen=chosen: call(*ts, chosen=chosen))(*stacked)
        except (errors.DataDependentError, errors.BatchedWriteError):
            continue  # an honest refusal: a size, or a tensor from outside, would vary
        outs = [single[b] if isinstance(single[b], tuple) else (single[b],) for b in range(2)]
        expected = [place(np.stack([_array(a), _array(b)])) for a, b in zip(*outs)]
        got = got if isinstance(got, (tuple, list)) else (got,)
        _close(
            [place(_array(g)) for g in got],
            expected,
            f"vmap over {[ov.schema.names[i] for i, _ in chosen]}",
        )


def _stack(t: Tensor) -> Tensor:
    a = host(t)
    scaled = (0.75 * a).astype(a.dtype) if t.dtype.category >= 2 else a
    return place(np.stack([a, scaled]))


def check_inplace(op, case, dtype) -> None:
    """The in-place variant gives the pure result, in the same memory, with the same gradients."""
    if not op.inplace or op.kind in ("random", "view"):
        return
    ov = overload_of(op)
    flat = samples.flat(op, case)
    if not isinstance(flat[0], Tensor) or op.promote == "real" and flat[0].dtype.is_complex:
        return
    pure = bind(ov, flat)
    if tuple(pure.shape) != tuple(flat[0].shape) or not dt.can_cast(pure.dtype, flat[0].dtype):
        return
    target = place(host(flat[0]))
    memory = target._payload
    result = inplace(ov, (target, *flat[1:]))
    if result is not target or target._payload is not memory or target._version != 1:
        raise CheckFailed("in-place: not the same tensor, memory, or version did not move by one")
    _close(make(target._payload), pure.to(target.dtype), "in-place result")
    if (
        ov.rule is None
        or not pure.dtype.is_inexact
        or flat[0].dtype.category < 2
        or 0 not in ov.rule.inputs
    ):
        return
    leaves = [place(host(flat[0])).requires_grad_() for _ in range(2)]
    one = bind(ov, (leaves[0] * 1, *flat[1:]))
    two = inplace(ov, (leaves[1] * 1, *flat[1:]))
    seed = _random_like(one, 80)
    if one.requires_grad:
        _close(
            grad(two, leaves[1], seed)[0],
            grad(one, leaves[0], seed)[0],
            "gradient of the in-place variant",
        )


def check_fake(op, case, dtype) -> None:
    """Shape rules agree with kernels."""
    ov = overload_of(op)
    if op.kind == "composite" and not _given(op):
        return
    from ..array.fake import fake_like

    flat = samples.flat(op, case)

    def faked(v):
        if isinstance(v, Tensor):
            return make(fake_like(v._payload))
        return [faked(x) for x in v] if isinstance(v, list) else v

    if not any(isinstance(v, (Tensor, list)) for v in flat):
        return
    if op.kind == "pointwise":  # the result's memory has the order of the operands'
        flat = tuple(
            v.mT.contiguous().mT if isinstance(v, Tensor) and v.ndim > 1 else v for v in flat
        )
    real = bind(ov, flat)
    try:
        fake = bind(ov, tuple(faked(v) for v in flat))
    except errors.DataDependentError:
        return  # an honest refusal: the size of the result depends on values
    if op.kind == "pointwise" and real.numel() and _steps(real) != _steps(fake):
        raise CheckFailed(f"strides: {fake.stride()}, those of the kernel: {real.stride()}")
    reals = list(real) if isinstance(real, (tuple, list)) else [real]
    fakes = list(fake) if isinstance(fake, (tuple, list)) else [fake]
    for r, f in zip(reals, fakes, strict=True):
        if isinstance(r, Tensor) and (tuple(r.shape) != tuple(f.shape) or r.dtype is not f.dtype):
            raise CheckFailed(
                f"shape rule: {f.dtype}{list(f.shape)}, kernel: {r.dtype}{list(r.shape)}"
            )


def _given(op) -> bool:
    """Is this an operation that a user gave to `check`, whatever it is made of?"""
    return getattr(op, "given", False)


def check_compile(op, case, dtype) -> None:
    """Compiled equals eager, gradients included."""
    import pullback

    problem = Problem(op, case, dtype)
    places = [
        (i, j)
        for i, v in enumerate(problem.flat)
        for j in (range(len(v)) if isinstance(v, list) else (None,))
        if isinstance(v if j is None else v[j], Tensor)
    ]

    def call(*tensors):
        flat = [list(v) if isinstance(v, list) else v for v in problem.flat]
        for (i, j), t in zip(places, tensors):
            if j is None:
                flat[i] = t
            else:
                flat[i][j] = t
        out = bind(problem.ov, tuple(flat))
        return tuple(o for o in samples.leaves(out) if isinstance(o, Tensor))

    def run(function):
        """Outputs, and gradients of a weighted sum of them."""
        given = [problem.flat[i] if j is None else problem.flat[i][j] for i, j in places]
        leaves = [place(host(t)) for t in given]
        for t in leaves:
            t.requires_grad_(bool(problem.slots) and t.dtype.category >= 2)
        outs = function(*leaves)
        tracked = [o for o in outs if o.requires_grad]
        wanted = [t for t in leaves if t.requires_grad]
        seeds = [_random_like(o, 90 + i) for i, o in enumerate(tracked)]
        grads = grad(tracked, wanted, seeds, allow_unused=True) if tracked else ()
        found = [t.detach() for t in outs]
        return found, [0 if g is None else make(_array(g)) for g in grads]

    _close(run(pullback.compile(call, fullgraph=True)), run(call), "compiled", 1e-6, 1e-8)


def _steps(t: Tensor) -> list[int]:
    """Strides of the dims that have more than one element."""
    return [step for step, size in zip(t.stride(), t.shape) if size > 1]


def check_decomposition(op, case, dtype) -> None:
    """The decomposition gives the kernel's results."""
    ov = overload_of(op)
    if op.kind in ("composite", "random") or ov.decomposition is None:
        return
    flat = samples.flat(op, case)
    parts = ov.decomposition(*flat)
    if parts is not NotImplemented:  # this call stays whole
        _close(parts, bind(ov, flat), "decomposition", 1e-7, 1e-8)


def check_pure(op, case, dtype) -> None:
    """The kernel does not write its inputs, and only views share memory with them."""
    ov = overload_of(op)
    if op.kind == "random" or op.kind == "composite" and not _given(op):
        return
    flat = samples.flat(op, case)
    named = [
        (a.name, t) for a, v in zip(ov.schema.args, flat)
        for t in (v if isinstance(v, list) else [v]) if isinstance(t, Tensor)
    ]
    before = [host(t).copy() for _, t in named]
    out = bind(ov, flat)
    for (name, t), b in zip(named, before):
        if not np.array_equal(host(t), b, equal_nan=t.dtype.category >= 2):
            raise CheckFailed(f"Argument {name} is not defined as mutable but was mutated: the "
                              "kernel changed an input")
    for o in samples.leaves(out):
        if isinstance(o, Tensor) and not ov.is_view:
            for name, t in named:
                if (
                    type(o._payload) is np.ndarray
                    and o._payload.size
                    and np.may_share_memory(o._payload, t._payload)
                ):
                    raise CheckFailed(f"Argument {name} is not defined to alias output but was "
                                      "aliasing: the kernel returned memory of an input")


def check_plan(op, case, dtype) -> None:
    """A call that comes often gives what the first one gave: values, layout, history."""
    if op.kind == "random" or samples.DEVICE != "cpu":
        return
    leaves = []

    def tracked(v):
        if type(v) in (list, tuple):
            return type(v)(tracked(item) for item in v)
        if isinstance(v, Tensor) and v.dtype.category >= 2:
            v = place(host(v)).requires_grad_()
            leaves.append(v)
        return v

    args, kwargs = tracked(case.args), {k: tracked(v) for k, v in case.kwargs.items()}
    packet = Packet(op.base_name, op.base_name, False)
    try:
        plan = make_plan(packet, args, kwargs)
    except (RuntimeError, TypeError):  # no such call
        return
    if plan is not None:
        first, often = (
            _outcome(lambda: call(*args, **kwargs)) for call in (packet._general, plan)
        )
        _same_handles(often, first)
        chosen = [i for i, o in enumerate(first) if isinstance(o, Tensor) and o.requires_grad]
        if chosen:
            seeds = [_random_like(first[i], 90 + i) for i in chosen]
            one, two = (
                _outcome(lambda: grad([out[i] for i in chosen], leaves, seeds, allow_unused=True))
                for out in (first, often)
            )
            _same_handles(two, one)
    if op.inplace and leaves and type(args[0]) is not list:
        _check_plan_inplace(op, case)


def _check_plan_inplace(op, case) -> None:
    packet = Packet(f"{op.base_name}_", op.base_name, True)
    if not isinstance(case.args[0], Tensor):
        return
    targets = [place(host(case.args[0])) for _ in range(3)]
    try:
        packet._general(targets[0], *case.args[1:], **case.kwargs)
    except (RuntimeError, TypeError):  # the result does not fit, or there is no such variant
        return
    plan = make_plan(packet, (targets[1], *case.args[1:]), case.kwargs)
    if plan is None:
        return
    if plan(targets[1], *case.args[1:], **case.kwargs) is not targets[1]:
        raise CheckFailed("in-place by plan: not the same tensor")
    if targets[1]._version != targets[0]._version:
        raise CheckFailed("in-place by plan: the version is another")
    _same_handles([targets[1]], [targets[0]])


def _outcome(call) -> list:
    """What a call returned, or the type of what it raised."""
    default_generator.manual_seed(0)
    try:
        out = call()
    except Exception as error:
        return [type(error)]
    return samples.leaves(out)


def _same_handles(got: list, wanted: list) -> None:
    """Equal in everything that a user can see."""
    if len(got) != len(wanted):
        raise CheckFailed(f"by plan {len(got)} results, not {len(wanted)}")
    for g, w in zip(got, wanted):
        if not isinstance(w, Tensor):
            if g != w:
                raise CheckFailed(f"by plan {g!r}, not {w!r}")
            continue
        for fact in ("dtype", "shape", "requires_grad", "is_leaf"):
            if getattr(g, fact) != getattr(w, fact):
                raise CheckFailed(f"by plan: {fact} {getattr(g, fact)}, not {getattr(w, fact)}")
        if g.stride() != w.stride() or (g._base is None) != (w._base is None):
            raise CheckFailed("by plan: other strides, or a view and no view")
        if type(g.grad_fn).__name__ != type(w.grad_fn).__name__:
            raise CheckFailed(f"by plan: history {g.grad_fn}, not {w.grad_fn}")
        if not np.array_equal(host(g), host(w), equal_nan=g.dtype.category >= 2):
            raise CheckFailed("by plan: other values")


def _where_meant(name: str, check):
    """The check, but for entries that say that it does not apply to them."""

    def run(op, case, dtype) -> None:
        if name not in op.unchecked:
            check(op, case, dtype)

    return run


CHECKS = {
    "pure": _where_meant("pure", check_pure),
    "pullback": _where_meant("pullback", check_pullback),
    "pushforward": _where_meant("pushforward", check_pushforward),
    "second_order": _where_meant("second_order", check_second_order),
    "vmap": _where_meant("vmap", check_vmap),
    "inplace": _where_meant("inplace", check_inplace),
    "fake": _where_meant("fake", check_fake),
    "decomposition": _where_meant("decomposition", check_decomposition),
    "plan": _where_meant("plan", check_plan),
}


def check(op, checks=None, dtypes=None) -> None:
    """Run all checks on all samples of an operator; raises with the first failure."""
    names = list(checks or CHECKS)
    dtypes = dtypes or [dt.float64] + ([dt.complex128] if op.complex else [])
    for dtype in dtypes:
        for number in range(len(samples.cases(op, dtype))):
            for name in names:
                case = samples.cases(op, dtype)[number]
                try:
                    CHECKS[name](op, case, dtype)
                except CheckFailed as failure:
                    raise CheckFailed(f"{case.label} ({dtype.name}), {name}: {failure}") from None
