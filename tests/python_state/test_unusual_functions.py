"""Functions that are odd to compile: coroutines, caches, strange classes; what they print."""

import functools
import gc
import subprocess
import sys
import warnings

import numpy as np
import pytest

import pullback as pb

# ---------------------------------------------------------------------------------------------
# what runs later


async def awaits(x):
    return x * 2


def yields(x):
    yield x * 2


async def both(x):
    yield x * 2


class Awaited:
    async def __call__(self, x):
        return x * 2


@pytest.mark.parametrize("function, kind", [
    (awaits, "a coroutine function"), (yields, "a generator"), (both, "an asynchronous generator"),
    (functools.partial(awaits), "a coroutine function"), (Awaited(), "a coroutine function")])
def test_functions_whose_code_runs_later(function, kind):
    with pytest.raises(TypeError, match=kind) as refused:
        pb.compile(function)
    assert "test_unusual_functions.py" in str(refused.value)
    assert "compile the function that computes" in str(refused.value)


# ---------------------------------------------------------------------------------------------
# caches


def test_caches_are_filled_before_the_first_capture():
    @functools.lru_cache
    def mask(n, scale=1.0):
        return {"mask": pb.arange(n) * scale}

    @functools.cache
    def shifted(n, *, by):
        return mask(n)["mask"] + by

    def f(x):
        return x * mask(x.shape[0], scale=2.0)["mask"] + shifted(x.shape[0], by=1)

    run = pb.compile(f, backend="numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n, count in (4, 1), (4, 1), (3, 2), (4, 2), (3, 2):
            assert run(pb.ones(n)).tolist() == [3 * i + 1 for i in range(n)]
            assert len(run.programs) == count
    kept = mask(3, scale=2.0)["mask"]
    assert type(kept.numpy()) is np.ndarray  # no stand-in
    kept.fill_(0.0)  # as any tensor that the function reaches
    assert run(pb.ones(3)).tolist() == [1.0, 2.0, 3.0]
    assert len(run.programs) == 2


def test_caches_of_plain_values_keep_what_they_hold():
    @functools.lru_cache
    def recipe(pattern, sizes):
        return [pattern.split(), {"sizes": sizes}, lambda k: k + len(sizes)]

    before = recipe("a b", (1, 2))

    def f(x):
        parts, _, count = recipe("a b c", (4, 5))
        return x * count(len(parts)) + len(recipe("a b", (1, 2))[0])

    run = pb.compile(f, backend="numpy", fullgraph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(pb.ones(2)).tolist() == [7.0, 7.0]
    assert len(run.programs) == 1 and recipe.cache_info().misses == 2
    assert recipe("a b", (1, 2)) is before


def of_a_type():
    @functools.lru_cache(typed=True)  # the key does not tell arguments from types
    def mask(n):
        return pb.arange(n) * 1.0

    return mask


def that_draws():
    @functools.lru_cache
    def mask(n):
        return pb.arange(n) + pb.rand(()) * 0.0

    return mask


def that_asks_for_the_mode():
    @functools.lru_cache
    def mask(n):
        return pb.arange(n) * pb.ones((), requires_grad=True)

    return mask


@pytest.mark.parametrize("cached", [of_a_type, that_draws, that_asks_for_the_mode])
def test_it_is_said_that_a_cache_is_filled(cached):
    mask = cached()

    def f(x):
        with pb.no_grad():
            return x * mask(x.shape[0]) + pb.rand(()) * 0.0

    def drawn(f, x):
        pb.manual_seed(3)
        return f(x).tolist(), pb.rand(()).item()

    run = pb.compile(f, backend="numpy")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in (3, 3, 4, 4, 5, 5):  # once as written, then compiled
            found = drawn(run, pb.ones(n))
            assert found[0] == list(range(n))
            assert found == drawn(run, pb.ones(n)) or cached is that_draws
    assert len(run.programs) == 3
    (said,) = [str(w.message) for w in caught]
    assert "it fills a cache of functools (mask); it is compiled when that is done" in said


def test_caches_of_the_library_are_its_own_affair():
    @functools.cache
    def known(name):
        return object()

    known.__module__ = "pullback.core.op"  # as `overload_of`, whose objects are compared by `is`
    before = known("mul")

    def f(x):
        known("add")
        return x * 2

    run = pb.compile(f, backend="numpy", fullgraph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(pb.ones(2)).tolist() == [2.0, 2.0]
    assert len(run.programs) == 1
    assert known("mul") is before


# ---------------------------------------------------------------------------------------------
# what is printed


def doubled(x):
    return x * 2


def test_nothing_prints_an_address():
    run = pb.compile(doubled, backend="numpy")
    line = doubled.__code__.co_firstlineno
    assert repr(run) == f"<compiled doubled (test_unusual_functions.py:{line}), 0 programs>"
    run(pb.ones(2, requires_grad=True)).sum().backward()
    assert repr(run) == f"<compiled doubled (test_unusual_functions.py:{line}), 1 program>"
    (program,) = run.programs.values()
    assert repr(program) == "<program of 1 input and 1 result, compiled: forward, backward>"
    assert " at 0x" not in repr(program.part("backward")) + repr(pb.jit.script(doubled))
    assert repr(pb.compile(pb.nn.Linear(1, 2))).startswith("OptimizedModule(")


# ---------------------------------------------------------------------------------------------
# classes whose `__module__` is no text


class _Descriptor:
    def __get__(self, instance, owner=None):
        return self if instance is None else "somewhere"


class Communicator:
    """As types of libraries in C: the class has a descriptor where others have a text."""

    size = 3

    def scale(self):
        return 2.0


Communicator.__module__ = _Descriptor()


class Failure(ValueError):
    pass


Failure.__module__ = _Descriptor()


def test_a_descriptor_as_module():
    world = Communicator()
    run = pb.compile(lambda x: x * world.size * world.scale(), backend="numpy", fullgraph=True)
    assert run(pb.ones(2)).tolist() == [6.0, 6.0]
    world.size = 4
    assert run(pb.ones(2)).tolist() == [8.0, 8.0]
    run = pb.compile(lambda x, c: (x * c.size, Communicator), backend="numpy")
    out, kind = run(pb.ones(2), world)
    assert out.tolist() == [4.0, 4.0] and kind is Communicator

    def fails(x):
        raise Failure("no")

    with pytest.raises(Failure):
        pb.compile(fails, backend="numpy")(pb.ones(2))


# ---------------------------------------------------------------------------------------------
# captures that fail


def _raises(x):
    raise ValueError(f"no {x.shape}")


@pytest.mark.parametrize("options", [{}, {"fullgraph": True}, {"dynamic": True}])
@pytest.mark.parametrize("function, error", [
    (_raises, ValueError), (lambda x: pb.linalg.inv(x), RuntimeError)])
def test_a_capture_that_fails_leaves_nothing(function, error, options):
    run = pb.compile(function, backend="numpy", **options)

    def count(times):
        for _ in range(times):
            with pytest.raises(error):
                run(pb.ones(3))
        gc.collect()
        return len(gc.get_objects())

    count(8)
    before = count(1)
    assert count(20) - before < 10  # half an object per call would be a leak


# ---------------------------------------------------------------------------------------------
# derivatives and lines


def _second(f, a):
    g, = pb.autograd.grad(f(a), a, create_graph=True)
    return pb.autograd.grad(g.square().sum(), a)[0]


@pytest.mark.parametrize("f", [
    pb.linalg.cond, lambda x: pb.linalg.cond(x, "nuc"),
    lambda x: pb.linalg.svdvals(x).sin().sum(),
    lambda x: pb.linalg.eigvalsh(x + x.mT).sin().sum()])
def test_second_derivatives_of_values_alone(f):
    a = pb.tensor([[2.0, 1.0], [0.5, 3.0]], dtype=pb.float64, requires_grad=True)
    found = _second(pb.compile(f, backend="numpy"), a)
    assert pb.allclose(found, _second(f, a))


def test_forward_derivatives_of_values_alone():
    a = pb.tensor([[2.0, 1.0], [0.5, 3.0]], dtype=pb.float64)
    a, t = a + a.mT, pb.ones(2, 2, dtype=pb.float64)
    for values, alone in (
            (pb.linalg.svdvals, lambda x: pb.ops.aten._linalg_svd(x, False, False)[1]),
            (pb.linalg.eigvalsh, lambda x: pb.ops.aten._linalg_eigh(x, "L", False)[0])):
        expected, found = (pb.func.jvp(f, (a,), (t,))[1] for f in (values, alone))
        assert pb.allclose(found, expected)


def test_the_first_use_of_an_operator_has_the_users_line(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import pullback as torch\n"
        "x = torch.ones(2, requires_grad=True)\n"
        "ways = [lambda: x * x, lambda: x / x, lambda: x.sin(), lambda: x.exp()]\n"
        "for f in ways:\n"
        "    y = f()\n"
        "    y.sum().backward()\n"
        "    try:\n"
        "        y.sum().backward()\n"
        "    except RuntimeError as error:\n"
        "        print('program.py:3' in str(error))\n")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"] * 4, done.stdout
