"""Graphs for tests of the compiler alone: functions of tensors traced as `compile` traces them."""

import pullback as pb
from pullback.capture.build import simplify
from pullback.decomp import decomposition_table
from pullback.fx.make_fx import make_fx


def trace(fn, *arrays):
    """The decomposed graph of a function of arrays, without duplicates and dead code."""
    tensors = [pb.from_numpy(a) for a in arrays]
    return simplify(make_fx(fn, decomposition_table.copy(), "fake")(*tensors))


def with_grad(fn, count):
    """Loss and gradients of the first `count` arguments."""

    def both(*args):
        leaves = [a.detach().requires_grad_() for a in args[:count]]
        loss = fn(*leaves, *args[count:])
        grads = pb.autograd.grad(loss, leaves)
        return (loss, *grads)

    return both


def keeping(graphs):
    """A compiler that runs graphs as they are and adds them to a list."""

    def keep(module, inputs):
        graphs.append(module)
        return module

    return keep
