"""What functions of nested tensors are compared with: the same function of each part."""

import contextlib

import pullback as torch
from pullback import func

from .cases import flat


def listed(out):
    """The results for each part."""
    return list(out.unbind())


def loss(results):
    results = [torch.view_as_real(r) if r.is_complex() else r for r in results]
    return sum([(r * r.sin().detach()).sum() + r.sum() for r in results])


def check(out, want):
    same(listed(out), want)


def same(found, want):
    assert len(found) == len(want)
    for a, b in zip(found, want):
        assert a.shape == b.shape and a.dtype == b.dtype
        wide = torch.complex128 if a.dtype.is_complex else torch.float64
        assert torch.allclose(a.to(wide), b.to(wide), equal_nan=True)


def close(ours, theirs):
    for a, b in zip(ours, theirs):
        if a is None or b is None:
            assert all(x is None or not x.any() for x in (a, b))
        else:
            assert torch.allclose(a, b)


def values(case, build):
    parts, extra = case.operands()
    same(case.listed(case.nested(build(parts), *extra)), case.wanted(parts, extra))


def gradients(case, build, function=None):
    parts, extra = case.operands()
    leaves = [t.requires_grad_() for t in (*parts, *extra)]
    out = (function or case.nested)(build(parts), *extra)
    want = case.wanted(parts, extra)
    same(case.listed(out), want)
    close(torch.autograd.grad(loss(case.listed(out)), leaves, allow_unused=True),
          torch.autograd.grad(loss(want), leaves, allow_unused=True))


def second_derivatives(case, build):
    parts, extra = case.operands()
    leaves = [t.requires_grad_() for t in (*parts, *extra)]

    def second(results):
        first = torch.autograd.grad(loss(results), leaves, create_graph=True, allow_unused=True)
        total = sum([(g * g).sum() for g in first if g is not None])
        if not total.requires_grad:
            return [None] * len(leaves)
        return torch.autograd.grad(total, leaves, allow_unused=True)

    found = case.listed(case.nested(build(parts), *extra))
    close(second(found), second(case.wanted(parts, extra)))


def forward_mode(case, build):
    parts, extra = case.operands()
    tangents = [torch.randn_like(t) for t in (*parts, *extra)]
    n = len(parts)
    x, t = build(parts), build(tangents[:n])
    out, ours = func.jvp(case.nested, (x, *extra), (t, *tangents[n:]))
    want, theirs = func.jvp(
        lambda *a: tuple(case.wanted(a[:n], a[n:])), (*parts, *extra), tuple(tangents))
    same(case.listed(out), want)
    same(case.listed(ours), theirs)


def func_grad(case, build):
    parts, extra = case.operands()
    ours = func.grad(lambda x: loss(case.listed(case.nested(x, *extra))))(build(parts))
    theirs = func.grad(lambda parts: loss(case.wanted(parts, extra)))(parts)
    check(ours, theirs)


def mapped(case, build):
    """`vmap` over something that is dense."""
    parts, extra = case.operands()
    factors = torch.tensor([1.0, -0.5], dtype=torch.float64)
    x = build(parts)

    def out(s):
        return torch.cat([r.reshape(-1) for r in case.listed(case.nested(x * s, *extra))])

    ours = func.vmap(out, randomness="same")(factors)
    for k, s in enumerate(factors):
        assert torch.allclose(ours[k], out(s))


def mapped_parts(case, build):
    """`vmap` over the batch, and gradients inside of it."""
    if case.extra or case.whole is not None:
        return
    parts, _ = case.operands()
    x = build(parts)
    function = lambda p: case.part(p, None)
    same(case.listed(func.vmap(function, randomness="same")(x)), case.wanted(parts, ()))
    total = lambda p: loss(flat(function(p)))
    check(func.vmap(func.grad(total))(x), [func.grad(total)(p) for p in parts])


def in_one_graph(case):
    """The function of a case, compiled as a whole."""
    return torch.compile(lambda x, *e: case.nested(x, *e), fullgraph=not case.breaks)


def compiled(case, build):
    with torch._dynamo.config.patch(capture_scalar_outputs=case.counts,
                                    capture_dynamic_output_shape_ops=case.counts):
        gradients(case, build, in_one_graph(case))


@contextlib.contextmanager
def named(name):
    """What fails says of which case it is."""
    try:
        yield
    except Exception as error:
        error.add_note(f"case: {name}")
        raise


def compiled_together(cases, builds):
    """`compiled` of several cases as one function."""
    made = [case.operands() for case in cases]
    leaves = [[t.requires_grad_() for t in (*parts, *extra)] for parts, extra in made]
    function = torch.compile(
        lambda *given: [c.nested(x, *e) for c, (x, *e) in zip(cases, given)], fullgraph=True)
    found = function(*[(build(p), *extra) for build, (p, extra) in zip(builds, made)])
    ours = [case.listed(out) for case, out in zip(cases, found, strict=True)]
    wanted = [case.wanted(*operands) for case, operands in zip(cases, made)]
    flat = [t for several in leaves for t in several]
    grads = [iter(torch.autograd.grad(sum(map(loss, outs)), flat, allow_unused=True))
             for outs in (ours, wanted)]
    for case, out, want, several in zip(cases, ours, wanted, leaves):
        with named(case.name):
            same(out, want)
            close(*[[next(g) for _ in several] for g in grads])


DERIVATIVES = [gradients, second_derivatives, forward_mode, func_grad, mapped, compiled]



# results without derivatives -----------------------------------------------------------------


def no_history(case, build):
    parts, extra = case.operands()
    for t in (*parts, *extra):
        t.requires_grad_()
    for r in case.listed(case.nested(build(parts), *extra)):
        assert not r.requires_grad
    _, tangents = func.jvp(case.nested, (build(parts).detach(), *extra), (build(parts), *extra))
    assert not any(t.any() for t in case.listed(tangents))


def mapped_flags(case, build):
    parts, extra = case.operands()
    factors = torch.tensor([1.0, -0.5], dtype=torch.float64)
    x = build(parts)

    def out(s):
        return torch.cat([r.reshape(-1) for r in case.listed(case.nested(x * s, *extra))])

    ours = func.vmap(out)(factors)
    for k, s in enumerate(factors):
        assert torch.equal(ours[k], out(s))


def compiled_flags(case, build):
    parts, extra = case.operands()
    same(case.listed(in_one_graph(case)(build(parts), *extra)), case.wanted(parts, extra))


FLAGS = [no_history, mapped_flags, compiled_flags]
