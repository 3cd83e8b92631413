"""Python around a compiled function: what it reads and what it changes is as without `compile`.

Every program here runs twice, once as it is and once compiled, and tells what it saw.
"""

import collections
import contextlib
import copy
import dataclasses
import functools
import io
import itertools
import logging
import os
import random
import sys
import time
import types
import warnings

import numpy as np
import pytest

import pullback as torch
from pullback import nn
from pullback.capture import compiled as api
from pullback.compile.errors import CompileWarning
from pullback.python_state.module_tensors import roots_of

X = torch.tensor([1.0, 2.0])
settings = types.ModuleType("settings")
sys.modules["settings"] = settings
number, made, out = 0, None, io.StringIO()
PROGRAMS = []


class Config:
    scale = 2.0

    def __init__(self, **given):
        vars(self).update(given)

    @property
    def twice(self):
        return 2 * self.scale

    @classmethod
    def of_class(cls):
        return cls.scale

    def __call__(self, x):
        return x * self.scale

    def __len__(self):
        return int(self.scale)


class Slots:
    __slots__ = ("scale",)


@dataclasses.dataclass
class Record:
    value: object = 1.0


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls, self.items, self.config = 0, [1.0], Config()

    def forward(self, x):
        self.calls += 1
        return x * self.items[0] * self.config.scale


def program(function):
    PROGRAMS.append(function)
    return function


def changing(name, make):
    """A program that calls a function before and after each change of something outside."""
    def run(compiled):
        function, *changes = make()
        f, rows = compiled(function), []
        for change in (lambda: None, *changes):
            change()
            rows += [f(X).tolist(), f(X).tolist()]
        return rows
    run.__name__ = name
    PROGRAMS.append(run)


def of_object(read):
    def make():
        o = Config(scale=3.0, inner=Config())
        return lambda x: x * read(o), lambda: vars(o).update(scale=4.0), (
            lambda: vars(o.inner).update(scale=5.0)), lambda: vars(o).pop("scale")
    return make


for name, read in {
    "attribute": lambda o: o.scale, "nested": lambda o: o.inner.scale,
    "property": lambda o: o.twice,
    "call": lambda o: o(1.0), "length": len, "getattr": lambda o: getattr(o, "scale", 1.0),
    "hasattr": lambda o: hasattr(o, "scale") + ("scale" in vars(o)),
    "class": lambda o: o.of_class() * o.scale,
}.items():
    changing(name, of_object(read))


def of_table(table, read, *changes):
    def make():
        own = table if table is os.environ else copy.deepcopy(table)
        return lambda x: x * read(own), *[functools.partial(c, own) for c in changes]
    return make


changing("get", of_table({}, lambda t: t.get("a", 2.0), lambda t: t.update(a=3.0)))
changing("long", of_table([1.0] * 100, lambda t: t[70] + len(t),
                          lambda t: t.__setitem__(70, 2.0), lambda t: t.append(1.0)))
changing("set", of_table({1}, len, lambda t: t.add(2)))
changing("deque", of_table(collections.deque([1.0]), lambda t: t[0], lambda t: t.append(2.0),
                           lambda t: t.popleft()))
changing("defaultdict", of_table(collections.defaultdict(float, a=1.0), lambda t: t["a"],
                                 lambda t: t.update(a=2.0)))
changing("deep", of_table([[[1.0]]], lambda t: t[0][0][0], lambda t: t[0][0].__setitem__(0, 2.0)))
changing("array", of_table(np.ones(2, np.float32), lambda a: torch.tensor(a) + float(a[0]),
                           lambda a: a.fill(3)))
changing("memory", of_table(np.ones(2, np.float32), torch.from_numpy, lambda a: a.fill(3)))
changing("tensors", of_table([torch.ones(2) for _ in range(100)], lambda t: t[80],
                             lambda t: t.__setitem__(80, torch.zeros(2))))
changing("namespace", of_table(types.SimpleNamespace(a=1.0), lambda n: n.a,
                               lambda n: setattr(n, "a", 2.0)))
changing("environment", of_table(os.environ, lambda e: float(e.get("PULLBACK_TEST", "1")),
                                 lambda e: e.update(PULLBACK_TEST="2"),
                                 lambda e: e.pop("PULLBACK_TEST")))


@program
def files_and_classes(compiled):
    settings.scale, Config.scale = 2.0, 2.0

    def function(x):
        import settings as inner
        return x * settings.scale * Config.scale + inner.scale
    f = compiled(function)
    rows = [f(X).tolist()]
    settings.scale = 3.0
    rows.append(f(X).tolist())
    try:
        Config.scale = 4.0
        return [*rows, f(X).tolist()]
    finally:
        Config.scale = 2.0


@program
def names_that_come_later(compiled):
    def function(x):
        try:
            return x * nowhere
        except NameError:
            return x + globals()["number"]
    f = compiled(function)
    rows = [f(X).tolist()]
    globals()["nowhere"] = 3.0
    rows.append(f(X).tolist())
    del globals()["nowhere"]
    return [*rows, f(X).tolist()]


@program
def methods_that_are_replaced(compiled):
    class Layer(nn.Module):
        def forward(self, x):
            return x * 2
    module = nn.Sequential(Layer())
    f = compiled(module)
    rows = [f(X).tolist()]
    Layer.forward = lambda self, x: x * 3
    rows.append(f(X).tolist())
    module[0].forward = lambda x: x * 4
    return [*rows, f(X).tolist()]


@program
def slots(compiled):
    o = Slots()
    o.scale = 2.0
    f = compiled(lambda x: x * o.scale)
    rows = [f(X).tolist()]
    o.scale = 3.0
    return [*rows, f(X).tolist()]


@program
def objects_among_the_arguments(compiled):
    o, f = Config(scale=2.0, t=X), compiled(lambda x, o: x * o.scale + o.t)
    rows = [f(X, o).tolist()]
    o.scale, o.t = 3.0, X * 5
    rows.append(f(X, o).tolist())
    g = compiled(lambda x, r, zero: (x * r[0].value) / zero)
    return rows, [g(X, [Record(float(k))], z).tolist() for k in (1, 2, 3) for z in (0.0, -0.0)]


@program
def modules_among_the_arguments(compiled):
    f, m = compiled(lambda x, m: m(x) if m.training else -m(x)), nn.Linear(2, 1, bias=False)
    rows = []
    for value in (1.0, 2.0):
        m.weight = nn.Parameter(torch.full((1, 2), value))
        for _ in range(2):
            m.train(not m.training)
            rows.append(f(X, m).tolist())
    return rows


@program
def hooks_of_modules(compiled):
    m = nn.Sequential(nn.Linear(2, 1, bias=False))
    with torch.no_grad():
        m[0].weight.fill_(1.0)
    f = compiled(lambda x: m(x) + hasattr(m, "extra"))
    rows = [f(X).tolist()]
    for handle in (m[0].register_forward_hook(lambda m, i, o: o * 2),
                   m.register_forward_pre_hook(lambda m, i: (i[0] * 3,)),
                   nn.modules.module.register_module_forward_hook(lambda m, i, o: o + 1)):
        rows.append(f(X).tolist())
        handle.remove()
    m.extra = 1
    return [*rows, f(X).tolist()]


@program
def counters(compiled):
    def function(x):
        global number
        nonlocal inner
        number += 1
        inner += 1
        config.calls += 2
        return x * number
    global number
    number, inner, config = 0, 0, types.SimpleNamespace(calls=0)
    f, m = compiled(function), Counting()
    g = compiled(m)
    rows = [(f(X).tolist(), g(X).tolist()) for _ in range(4)]
    m.items[0], m.config.scale = 3.0, 5.0
    return rows, number, inner, config.calls, m.calls, g(X).tolist()


@program
def assignments(compiled):
    def function(x):
        global made
        made = x + 1
        config.y, config.pair, table["y"] = x * 2, (x * 3, 5), x
        config.flag = not config.flag
        settings.seen = x * 7
        return x * config.flag
    config, table = Config(flag=False), {}
    f, rows = compiled(function), []
    for k in range(4):
        x = X * k
        rows += [f(x).tolist(), made.tolist(), config.y.tolist(), config.pair[0].tolist(),
                 config.pair[1], table["y"] is x, config.flag, settings.seen.tolist()]
    return rows


@program
def lists_that_grow(compiled):
    def function(x, more=[]):  # noqa: B006
        kept.append(x + 1)
        more.append(len(kept))
        return x * len(kept) + more[-1]
    kept = []
    f = compiled(function)
    return [f(X).tolist() for _ in range(5)], [t.tolist() for t in kept]


@program
def changed_arguments(compiled):
    def function(items, table, o, s):
        items.append(items[0] + 1)
        table["y"] = o.y = items[-1] * 2
        s.add(len(s))
        return table
    f, rows = compiled(function), []
    for _ in range(4):
        items, table, o, s = [X], {}, Config(), set()
        out = f(items, table, o, s)
        rows += [len(items), items[-1].tolist(), out is table, o.y.tolist(), s]
    return rows


@program
def what_is_made_once(compiled):
    @functools.lru_cache
    def cached(n):
        return torch.ones(n)

    def function(x):
        if "a" not in table:
            table["a"] = torch.ones(2) * 3
        return x * table["a"] * cached(2)
    table = {}
    f = compiled(function)
    rows = [f(X).tolist() for _ in range(3)]
    cached(2).fill_(7.0)
    table["a"] = torch.zeros(2) + 1
    return [*rows, f(X).tolist()]


@program
def failures(compiled):
    def function(x, k):
        seen.append(k)
        if k == 1:
            raise KeyError("no")
        return x
    seen, f, caught = [], compiled(function), 0
    for k in (0, 1, 0, 1):
        try:
            f(X, k)
        except KeyError:
            caught += 1
    return seen, caught


@program
def streams(compiled):
    rng, numbers, rows = np.random.default_rng(0), itertools.count(), iter([1.0, 2.0, 3.0, 4.0])
    random.seed(0)
    np.random.seed(0)
    draw = compiled(lambda x: x * random.random() + float(np.random.rand()))
    more = compiled(lambda x, it: x * rng.random() + next(numbers) + next(it))
    seen = [(draw(X).tolist(), more(X, rows).tolist()) for _ in range(3)]
    return seen, random.random(), np.random.rand(), rng.random(), next(numbers), next(rows)


@program
def texts(compiled):
    out, logger = io.StringIO(), logging.getLogger("pullback.test")
    logger.handlers, logger.propagate = [logging.StreamHandler(out)], False
    verbose = True

    def function(x):
        if verbose:
            print("printed")
            sys.stdout.write("written")
        out.write("kept")
        logger.warning("logged")
        return x + 1
    f = compiled(function)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        for _ in range(3):
            f(X)
    return printed.getvalue(), out.getvalue()


@program
def warnings_and_clocks(compiled):
    def function(x):
        warnings.warn("of the function", stacklevel=1)
        return x, time.perf_counter()
    f = compiled(function)
    with warnings.catch_warnings(record=True) as met:
        warnings.simplefilter("always")
        clocks = {f(X)[1] for _ in range(3)}
    return len(clocks), sum("of the" in str(w.message) for w in met)


@program
def modes(compiled):
    f = compiled(lambda x: (torch.is_grad_enabled(), torch.is_inference_mode_enabled(),
                            torch.ones(1).dtype, torch.ones(2).device.type))
    g = compiled(lambda x: x + 1)
    rows = [f(X), g(X).is_inference()]
    with torch.no_grad():
        rows += [f(X), g(X).is_inference(), g(X).is_inference()]
    with torch.inference_mode():
        rows += [f(X), g(X).is_inference()]
    torch.set_default_device("meta")
    rows.append(f(X))
    torch.set_default_device(None)
    return [*rows, f(X)]


@program
def modes_that_stay(compiled):
    def function(x):
        torch.set_grad_enabled(False)
        torch.set_default_dtype(torch.float64)
        torch.use_deterministic_algorithms(True)
        return x + 1
    f, rows = compiled(function), []
    for _ in range(4):
        f(X)
        rows.append((torch.is_grad_enabled(), torch.get_default_dtype(),
                     torch.are_deterministic_algorithms_enabled()))
        torch.use_deterministic_algorithms(False)
        torch.set_grad_enabled(True)
        torch.set_default_dtype(torch.float32)
    return rows


@program
def results(compiled):
    def function(x):
        y = x * 2
        return Record(y), [Record([y, Config(v=y)])], [1, 2], {"a": [3]}
    f = compiled(function)
    first = f(X)
    first[2].append(5)
    first[3]["a"].clear()
    second = f(X * 3)
    closure = compiled(lambda x: (lambda z: z + x, {1}))
    return (first[0].value.tolist(), second[0].value.tolist(), second[1][0].value[1].v.tolist(),
            type(second[1][0].value[1]).__name__, second[2:], closure(X)[0](X).tolist(),
            closure(X * 2)[0](X).tolist(), first[0] is second[0])


@program
def modules_that_are_replaced(compiled):
    m = nn.Dropout(0.5)
    f = compiled(lambda x: m(x).tolist() == x.tolist())
    rows = [f(torch.ones(64))]
    m = nn.Dropout(0.25)
    rows.append(f(torch.ones(64)))
    m.eval()
    return [*rows, f(torch.ones(64))]


@program
def hooks_of_backwards(compiled):
    m, seen = nn.Linear(2, 1), {}
    m.register_full_backward_hook(lambda m, gi, go: seen.update(n=seen.get("n", 0) + 1))
    f = compiled(lambda x: m(x).sum())
    for _ in range(4):
        f(X).backward()
    return seen


@program
def lazy_modules(compiled):
    f = compiled(nn.Sequential(nn.LazyLinear(1, bias=False)))
    rows = [f(X).shape for _ in range(3)]
    return rows, f[0].in_features, type(f[0]).__name__


@program
def arrays_among_the_arguments(compiled):
    f, a = compiled(lambda x, a: x * float(a[0]) + torch.from_numpy(a)), np.ones(2, np.float32)
    rows = [f(X, a).tolist()]
    a[0] = 5
    return [*rows, f(X, a).tolist(), f(X, np.full(2, 3, np.float32)).tolist()]


@program
def attributes_of_tensors(compiled):
    def function(x):
        x.seen = getattr(x, "flag", 0)
        return x * 2 if x.seen else x
    f, rows = compiled(function), []
    for flag in (1, 0, 1, 1):
        x = torch.ones(2)
        x.flag = flag
        rows += [f(x).tolist(), x.seen]
    return rows


@program
def tensors_as_keys(compiled):
    f = compiled(lambda x, table: table[x] + 1)
    return [f(X, {X: X * k}).tolist() for k in range(4)]


@program
def handles_that_are_returned(compiled):
    def function(x):
        handle = x.register_hook(lambda g: g * 2)
        return x * 3, handle, handle
    f, x = compiled(function), X.clone().requires_grad_()
    (y, first, second), (_, other, _) = f(x), f(x)
    other.remove()
    y.sum().backward()
    return first is second, first is other, x.grad.tolist()


@program
def slices(compiled):
    f = compiled(lambda x, s: x[s])
    return [f(X, slice(k)).tolist() for k in (1, 2, 0)]


@program
def gradients_that_are_there(compiled):
    f, x = compiled(lambda x: x.grad is None), X.clone().requires_grad_()
    rows = [f(x), f(x)]
    x.sum().backward()
    return [*rows, f(x)]


@pytest.mark.filterwarnings("ignore:Full backward hook is firing when gradients are computed")
@pytest.mark.parametrize("run", PROGRAMS, ids=lambda run: run.__name__)
def test_as_without_compile(run):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CompileWarning)
        expected = run(lambda f: f)
        assert repr(run(lambda f: torch.compile(f, backend="numpy"))) == repr(expected)


def test_what_stays_compiled():
    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls, self.last = 0, None

        def forward(self, x):
            self.calls += 1
            self.last = x * 2
            return x + 1

    module = Holder()
    f = torch.compile(module, backend="numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(12):
            f(X)
    assert len(f._compiled.programs) == 2 and module.calls == 12  # `last` was None at first


def test_new_objects_in_every_call():
    f = torch.compile(lambda x, o: x * o.value, backend="numpy")
    with pytest.warns(CompileWarning, match="a Record among its arguments is another each time"):
        for k in range(20):
            assert f(X, Record(float(k))).tolist() == [k, 2 * k]
    assert len(f.programs) <= 8


@pytest.mark.parametrize(("function", "why"), [
    (lambda x: print(end="") or x, "it calls print"),
    (lambda x: out.write("") or x, r"it calls (StringIO\.)?write"),
    (lambda x: PROGRAMS.append(x) or x, "it changes a list outside of it"),
    (lambda x: {id(x)} and (x, {1}), "it returns a set that it made"),
])
def test_reasons(function, why, monkeypatch):
    monkeypatch.setitem(globals(), "PROGRAMS", [])
    monkeypatch.setitem(globals(), "out", io.StringIO())
    f = torch.compile(function, backend="numpy")
    with pytest.warns(CompileWarning, match=why):
        for _ in range(4):
            f(X)
    assert not f.programs


def test_imports_inside_are_no_effects():
    def function(x):
        import colorsys  # noqa: F401

        clock = time  # named, not asked
        return x * 2 if clock else x

    run = torch.compile(function, backend="numpy")
    for _ in range(5):
        assert run(X).tolist() == (X * 2).tolist()
    assert len(run.programs) == 1


def test_tables_that_have_no_length():
    class Parts(tuple):
        def __len__(self):
            raise NotImplementedError

    parts = Parts((2.0, 3.0))
    run = torch.compile(lambda x: x * tuple.__getitem__(parts, 0), backend="numpy")
    assert run(X).tolist() == (X * 2).tolist()
    parts = Parts((5.0, 3.0))
    assert run(X).tolist() == (X * 5).tolist()


def test_modules_among_arguments_are_looked_at_once(monkeypatch):
    looks = []
    monkeypatch.setattr(api, "roots_of", lambda *given: looks.append(1) or roots_of(*given))
    run = torch.compile(lambda net, x: net(x), backend="numpy")
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5))
    for training in (False, False, True, False):
        net.train(training)
        run(net, torch.ones(1, 2))
    assert len(looks) == 1
