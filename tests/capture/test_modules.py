"""Every layer class ahead of time: results, gradients, buffers and random numbers are eager's."""

import contextlib
import copy
import itertools
import pickle
import sys
import threading
import warnings

import numpy as np
import pytest

import pullback as pb
from pullback import aot, errors
from pullback.fx.make_fx import make_fx
from pullback.interp import interpreter
from pullback.threads.state import fast, state
from pullback.utils import checkpoint as checkpointing
from pullback.utils.checkpoint import checkpoint
from tests.helpers.layer_programs import CASES, run


def compiled(module):
    return aot.aot_module(module, aot.make_boxed_compiler(aot.nop), aot.nop)


# They look at values: a number of batches, which words are frequent.
LOOKING = ("AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], div_value=2.0)",
           "AdaptiveLogSoftmaxWithLoss(8, 20, (5,), head_bias=True)",
           "BatchNorm1d(3, momentum=None, bias=False)")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.partition(" | ")[0])
def test_as_eager(case):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated arguments, implicit dims
        for train in (True, False):
            if case.startswith(LOOKING) and (train or "Adaptive" in case):
                with pytest.raises(errors.DataDependentError):
                    run(case, pb, train, wrap=compiled)
                continue
            _, _, expected = run(case, pb, train)
            _, _, found = run(case, pb, train, wrap=compiled)
            assert [name for name, _ in found] == [name for name, _ in expected]
            for (name, a), (_, b) in zip(expected, found):
                np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6, err_msg=f"{train} {name}")


WAYS = [lambda m: m, lambda m: pb.compile(m, backend="numpy"),
        lambda m: pb.compile(lambda x: m(x), backend="numpy"),
        lambda m: aot.aot_function(m.forward, aot.nop)]


class Held(pb.nn.Module):
    """A module that keeps a count, the last result, and a factor."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", pb.zeros(2))
        self.weight, self.last, self.scale = pb.nn.Parameter(pb.ones(2)), None, 2.0
        self.inner = pb.nn.Dropout(0.0)

    def forward(self, x):
        self.count = self.count + 1
        self.last = self.inner(x) * self.weight * self.scale
        return self.last + self.count


@pytest.mark.parametrize("wrap", WAYS)
def test_what_a_function_puts_into_a_module(wrap):
    module = Held()
    compiled = wrap(module)
    for step in (1, 2, 3):
        out = compiled(pb.full((2,), float(step)))
        assert module.count.tolist() == [step] * 2 and "count" in dict(module.named_buffers())
        assert module.last.tolist() == [2.0 * step] * 2 and out.tolist() == [3.0 * step] * 2
        out.sum().backward(retain_graph=True)
        module.last.sum().backward()
        assert module.weight.grad.tolist() == [4.0 * step] * 2
        module.zero_grad()


@pytest.mark.parametrize("wrap", WAYS)
def test_what_others_put_into_a_module(wrap):
    module = Held()
    compiled, x = wrap(module), pb.ones(2)
    assert compiled(x).tolist() == [3, 3]
    module.weight = pb.nn.Parameter(pb.full((2,), 5.0))
    assert compiled(x).tolist() == [12, 12]
    compiled(x).sum().backward()
    assert module.weight.grad.tolist() == [2, 2]
    module.scale = 1.0
    module.count = pb.zeros(2, dtype=pb.float64)
    out = compiled(x)
    assert out.tolist() == [6, 6] and out.dtype is module.count.dtype is pb.float64
    module.inner = pb.nn.Dropout(1.0)
    assert compiled(x).tolist() == [2, 2]
    module.inner.eval()
    assert compiled(x).tolist() == [8, 8]


@pytest.mark.parametrize("wrap", WAYS)
def test_tensors_that_a_module_holds_twice(wrap):
    module = pb.nn.Module()
    module.a = module.b = pb.nn.Parameter(pb.ones(2))
    module.forward = lambda x: x * module.a + module.b
    compiled = wrap(module)
    compiled(pb.ones(2)).sum().backward()
    assert module.a.grad.tolist() == [2, 2]
    module.b = pb.nn.Parameter(pb.full((2,), 3.0))
    assert compiled(pb.ones(2)).tolist() == [4, 4]


def test_a_function_that_fails_leaves_modules_as_eager_code_does():
    modules = Held(), Held()

    def refused(x, module):
        module(x)
        raise KeyError("no")

    for module, f in zip(modules, (refused, pb.compile(refused, backend="numpy"))):
        with pytest.raises(KeyError):
            f(pb.ones(2), module)
    assert modules[0].count.tolist() == modules[1].count.tolist()
    assert modules[0].last.tolist() == modules[1].last.tolist()


@pytest.mark.parametrize("number", range(1, 5))  # which step: the capture has so many
@pytest.mark.parametrize("way", ["compile", "make_fx"])
def test_an_interrupt_between_any_two_steps_leaves_nothing_behind(monkeypatch, number, way):
    layer, x = pb.nn.Linear(2, 2), pb.ones(2, 2)

    def f(x):
        with pb.no_grad():
            y = layer(x)
        return checkpoint(pb.sin, layer(x), use_reentrant=False) * y

    facts = dict(vars(state)), state.stack[:], state.record[:]
    for name in ("ACTIVE", "WATCHED"):  # may stay too high where there are threads
        monkeypatch.setitem(fast, name, fast[name])
    calls = itertools.count(1)

    def interrupted(name, step):
        if next(calls) == number:
            raise KeyboardInterrupt
        counted(name, step)

    counted = interpreter.count
    with monkeypatch.context() as patch:
        for place in (interpreter, checkpointing):
            patch.setattr(place, "count", interrupted)
        with contextlib.suppress(KeyboardInterrupt):
            pb.compile(f, backend="numpy")(x) if way == "compile" else make_fx(f)(x)
    assert facts == (dict(vars(state)), state.stack, state.record)
    assert type(layer.weight._payload) is np.ndarray
    assert pb.allclose(pb.compile(f, backend="numpy")(x), f(x))


# copies and pickles of what was compiled


def _doubled(module, args, out):
    return out * 2


@pytest.mark.parametrize("again", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_of_a_compiled_module_are_compiled_modules_of_their_own(again):
    compiled = pb.compile(pb.nn.Sequential(pb.nn.Linear(3, 3), pb.nn.GELU()), backend="numpy")
    compiled.register_forward_hook(_doubled)
    x = pb.ones(2, 3)
    before = compiled.eval()(x)
    copied = again(compiled)
    assert type(copied) is type(compiled) and not copied.training and not copied[0].training
    assert pb.equal(copied(x), before)
    with pb.no_grad():
        copied[0].weight.zero_()
    assert pb.allclose(copied(x), 2 * copied._orig_mod(x)) and pb.equal(compiled(x), before)


def test_compiled_functions_are_copied_as_functions_are():
    f = pb.compile(_doubled_sine, backend="numpy")
    x = pb.ones(3)
    expected = f(x)
    assert copy.copy(f) is f and copy.deepcopy(f) is f
    assert pb.equal(pickle.loads(pickle.dumps(f))(x), expected)
    with pytest.raises(TypeError, match="compilers of its own"):
        pickle.dumps(aot.aot_function(_doubled_sine, aot.nop))


def _doubled_sine(x):
    return x.sin() * 2


@pytest.mark.parametrize("inner", [pb.compile, lambda f: aot.aot_function(f, aot.nop)])
def test_what_was_compiled_can_be_compiled(inner):
    f = pb.compile(inner(_doubled_sine), backend="numpy")
    assert pb.allclose(f(pb.ones(3)), _doubled_sine(pb.ones(3)))


def test_threads_that_capture_one_module_at_once():
    """A capture puts boxes into parameters: other threads wait until these are given back."""
    layer, failed, start = pb.nn.Linear(3, 3), [], threading.Barrier(6)
    compiled = pb.compile(lambda x, n: (layer(x).sin() * n).sum(), backend="numpy")

    def work(number):
        try:
            start.wait()
            for size in (2, 3, 4):
                x = pb.full((size, 3), 0.1 * number, requires_grad=True)
                for n in (1.0, 2.0):
                    mine, eager = compiled(x, n), (layer(x).sin() * n).sum()
                    assert pb.allclose(mine, eager)
                    for a, b in zip(*(pb.autograd.grad(out, x) for out in (mine, eager))):
                        assert pb.allclose(a, b)
        except BaseException as error:
            failed.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not failed
