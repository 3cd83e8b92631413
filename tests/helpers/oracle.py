"""The yardstick of compiled functions: everything that a user can see must be as in eager.

`check(f, start)` runs `f` as it is and compiled, each on tensors that `start()` makes with the same
aliasing, and compares what is left behind: outputs, inputs, histories, versions, aliases,
random numbers; then the same after writes into every output; then gradients, and their gradients.
"""

import itertools

import numpy as np

import pullback as pb
from pullback import errors
from pullback.cut.partition import min_cut_rematerialization_partition
from pullback.pytree import tree_flatten

WAYS = {
    "nop": lambda f: pb.aot.aot_function(f, pb.aot.nop),
    "mincut": lambda f: pb.aot.aot_function(
        f, pb.aot.nop, partition_fn=min_cut_rematerialization_partition),
    "boxed": lambda f: pb.aot.aot_function(
        f, pb.aot.make_boxed_compiler(pb.aot.nop), keep_inference_input_mutations=True),
    "writing": lambda f: pb.aot.aot_function(f, pb.aot.nop, disable_functionalization=True),
    "numpy": lambda f: pb.compile(f, backend="numpy"),
    "native": pb.compile,
}


# what second derivatives may refuse: they run the forward once more, on what is there then
AGAIN = errors.NotDifferentiable, errors.SavedValueModified


def facts(t, units: bool = True) -> dict:
    """What can be seen of one tensor; strides that reach nothing count only with `units`."""
    history = outcome(lambda: (t.requires_grad, t.is_leaf, t.grad_fn is not None))
    return {
        "shape": tuple(t.shape), "dtype": t.dtype,
        "stride": tuple(s for s, n in zip(t.stride(), t.shape) if units or n != 1 and t.numel()),
        "requires_grad, is_leaf, has grad_fn": history,
        "value": t.detach().numpy(force=True).copy(),
    }


def memory(t):
    t = t.detach()
    t = t.conj() if t.is_conj() else t
    return (pb._neg_view(t) if t.is_neg() else t).numpy()


def relations(tensors: list, inputs: int, bases: bool) -> dict:
    """Which tensors are the same object, share memory, or are the base of another.

    The base of an output counts where a user can compare it with something: an input, the base of
    an input, another output unless `bases` is False (graphs without gradients may return several
    views as they are, as PyTorch's do). A base that nobody else has is not told from no base.
    """
    found = {}

    def counts(i, j):
        return bases or i < inputs or j < inputs

    for (i, a), (j, b) in itertools.combinations(enumerate(tensors), 2):
        found["same", i, j] = a is b
        found["shares", i, j] = bool(np.shares_memory(memory(a), memory(b)))
        found["siblings", i, j] = counts(i, j) and a is not b and a._base is not None and (
            a._base is b._base)
    for (i, a), (j, b) in itertools.permutations(enumerate(tensors), 2):
        found["base", i, j] = counts(i, j) and a._base is b
    return found


def compare(expected, found, where: str, single: float = 1e-9, double: float = 1e-9) -> None:
    """Assert that both are alike; `single` and `double` are the room for numbers of that
    precision."""
    if isinstance(expected, dict):
        assert expected.keys() == found.keys(), (where, expected.keys(), found.keys())
        for key in expected:
            compare(expected[key], found[key], f"{where}.{key}", single, double)
    elif isinstance(expected, (list, tuple)):
        assert type(expected) is type(found) and len(expected) == len(found), (
            where, expected, found)
        for i, (a, b) in enumerate(zip(expected, found)):
            compare(a, b, f"{where}[{i}]", single, double)
    elif isinstance(expected, pb.Tensor):
        compare(facts(expected), facts(found), where, single, double)
    elif isinstance(expected, np.ndarray):
        close = single if expected.dtype in (np.float32, np.complex64) else double
        np.testing.assert_allclose(found, expected, rtol=close, atol=close, err_msg=where)
    else:
        same = type(expected) is type(found) and expected == found
        assert same, f"{where}: eager has {expected}, compiled {found}"


def outcome(run):
    """The result of a call, or the type of its error."""
    try:
        return run(), None
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        return None, type(error)


def observe(f, start, writes: bool, create_graph: bool, bases: bool = True,
            units: bool = True) -> list:
    """Everything that can be seen of a call, in steps: (name, value)."""
    pb.manual_seed(7)
    leaves, args = start()
    tensors = [t for t in tree_flatten(args)[0] if isinstance(t, pb.Tensor)]
    held = getattr(start, "held", None)
    tensors += [] if held is None else held.buffers()
    versions = [t._version for t in tensors]
    steps = []
    out, error = outcome(lambda: f(*args))
    steps.append(("error", error))
    flat = tree_flatten(out)[0]
    steps.append(("structure", str(tree_flatten(out)[1])))
    outputs = [t for t in flat if isinstance(t, pb.Tensor)]
    steps.append(("plain outputs", [o for o in flat if not isinstance(o, pb.Tensor)]))

    def look(name):
        steps.append((f"outputs {name}", [facts(t, units) for t in outputs]))
        steps.append((f"inputs {name}", [facts(t, units) for t in tensors]))
        steps.append((f"relations {name}", relations(tensors + outputs, len(tensors), bases)))
        steps.append((f"versions {name}", [
            t._version - v for t, v in zip(tensors, versions)]))

    look("after the call")
    steps.append(("random numbers", pb.get_rng_state().numpy().copy()))
    if writes:
        for i, t in enumerate(outputs):
            if t.dtype.is_floating_point:
                _, error = outcome(lambda t=t: t.mul_(1.5))
                steps.append((f"write to output {i}", error))
        look("after writes")
    ends = [t for t in outputs + tensors if outcome(lambda t=t: t.requires_grad)[0]]
    if ends and leaves:
        found, error = outcome(lambda: pb.autograd.grad(
            sum((t * t).sum() * (i + 1) for i, t in enumerate(ends)),
            leaves, create_graph=create_graph, allow_unused=True))
        steps.append(("backward", error))
        if error is None:
            steps.append(("gradients", [
                facts(g)["value"] if g is not None else None if units else np.zeros(t.shape)
                for t, g in zip(leaves, found)]))
            tracked = [g for g in found if g is not None and g.requires_grad]
            if create_graph:
                total = sum((g * g).sum() for g in tracked)
                found, error = ([None] * len(leaves), None) if not tracked else outcome(
                    lambda: pb.autograd.grad(total, leaves, allow_unused=True))
                steps.append(("second backward", error))
                if error is None:
                    steps.append(("second gradients", [
                        np.zeros(t.shape) if g is None else facts(g)["value"]
                        for t, g in zip(leaves, found)]))
    steps.append(("inputs at the end", [facts(t, units) for t in tensors]))
    return steps


class Sized:
    """A start for one size."""

    def __init__(self, start, size):
        self.start, self.size, self.held = start, size, start.held

    def __call__(self):
        return self.start(self.size)


def check(
    f, start, ways=("nop", "native"), writes=(False, True), orders=(1, 2), sizes=(None,),
    bases: bool = True, single: float = 1e-9, double: float = 1e-9, units: bool = True,
) -> None:
    """Compare eager with compiled calls, the first and a later one; `sizes` are for `start`."""
    for way in ways:
        compiled = WAYS[way](f)
        for size, w, order in itertools.product(sizes, writes, orders):
            begin = start if size is None else Sized(start, size)
            expected = observe(f, begin, w, order == 2, bases, units)
            for number in range(2):
                found = observe(compiled, begin, w, order == 2, bases, units)
                for (name, a), (other, b) in itertools.zip_longest(
                        expected, found, fillvalue=("nothing", None)):
                    if a is errors.SavedValueModified:
                        break  # a graph keeps values, not memory: it may well know what is needed
                    if w and b is errors.SavedValueModified:
                        break  # a cut may save what eager does not, and somebody has written it
                    if order == 2 and any(b is e for e in AGAIN):
                        break  # behind the tape's back; or an input, which is read once more
                    assert name == other, (way, name, other)
                    compare(a, b, f"{way}, call {number}, writes {w}, order {order}: {name}",
                            single, double)
