"""Ways to make the inputs of a case for `oracle.py`: results that require grad, leaves, neither,
views of one tensor.
"""

import math

import pullback as pb


def values(*shape):
    return (pb.arange(float(math.prod(shape))).double() / 7 + 0.3).reshape(*shape).clone()


def leaf(*shapes):
    def start():
        made = [values(*s).requires_grad_() for s in shapes]
        return made, made

    return start


def inner(*shapes):
    def start():
        leaves = leaf(*shapes)()[0]
        return leaves, [t * 1 for t in leaves]

    return start


def plain(*shapes):
    return lambda: ([], [values(*s) for s in shapes])


def related(*views, shape=(4, 3), tracked=True):
    """Inputs that are views of one tensor."""

    def start():
        source = values(*shape)
        if not tracked:
            return [], [v(source) for v in views]
        source.requires_grad_()
        base = source * 1
        return [source], [v(base) for v in views]

    return start
