"""What functions of nested tensors are compared with: the same function of each part."""

import pullback as torch
from pullback import func


def listed(out):
    """The results for each part."""
    return list(out.unbind())


def wanted(case, parts, extra):
    return [case.part(p, i, *extra) for i, p in enumerate(parts)]


def loss(results):
    return sum([(r * r.sin().detach()).sum() + r.sum() for r in results])


def check(out, want):
    found = listed(out)
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
    check(case.nested(build(parts), *extra), wanted(case, parts, extra))


def gradients(case, build, function=None):
    parts, extra = case.operands()
    leaves = [t.requires_grad_() for t in (*parts, *extra)]
    out = (function or case.nested)(build(parts), *extra)
    want = wanted(case, parts, extra)
    check(out, want)
    close(torch.autograd.grad(loss(listed(out)), leaves),
          torch.autograd.grad(loss(want), leaves))


def second_derivatives(case, build):
    parts, extra = case.operands()
    leaves = [t.requires_grad_() for t in (*parts, *extra)]

    def second(results):
        first = torch.autograd.grad(loss(results), leaves, create_graph=True, allow_unused=True)
        total = sum([(g * g).sum() for g in first if g is not None])
        if not total.requires_grad:
            return [None] * len(leaves)
        return torch.autograd.grad(total, leaves, allow_unused=True)

    close(second(listed(case.nested(build(parts), *extra))), second(wanted(case, parts, extra)))


def forward_mode(case, build):
    parts, extra = case.operands()
    tangents = [torch.randn_like(t) for t in (*parts, *extra)]
    n = len(parts)
    x, t = build(parts), build(tangents[:n])
    out, ours = func.jvp(case.nested, (x, *extra), (t, *tangents[n:]))
    want, theirs = func.jvp(
        lambda *a: tuple(wanted(case, a[:n], a[n:])), (*parts, *extra), tuple(tangents))
    check(out, want)
    check(ours, theirs)


def func_grad(case, build):
    parts, extra = case.operands()
    ours = func.grad(lambda x: loss(listed(case.nested(x, *extra))))(build(parts))
    theirs = func.grad(lambda parts: loss(wanted(case, parts, extra)))(parts)
    check(ours, theirs)


def mapped(case, build):
    """`vmap` over something that is dense."""
    parts, extra = case.operands()
    factors = torch.tensor([1.0, -0.5], dtype=torch.float64)
    x = build(parts)

    def out(s):
        return torch.cat([r.reshape(-1) for r in listed(case.nested(x * s, *extra))])

    ours = func.vmap(out)(factors)
    for k, s in enumerate(factors):
        assert torch.allclose(ours[k], out(s))


def compiled(case, build):
    gradients(case, build, torch.compile(lambda x, *e: case.nested(x, *e)))


DERIVATIVES = [gradients, second_derivatives, forward_mode, func_grad, mapped, compiled]
