"""What entry points refuse: the first line says what was given and where, the last one the cure."""

import pathlib

import pytest

import pullback as pb
from pullback import aot
from pullback.capture.export import aot_export_joint_simple, aot_export_module
from pullback.cut.partition import default_partition, min_cut_rematerialization_partition

HERE = pathlib.Path(__file__).name


def double(x):
    return x * 2


def x():
    return pb.ones(3, requires_grad=True)


class Layer(pb.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = pb.nn.Linear(3, 3)

    def forward(self, x):
        return (self.inner(x),)


def later():
    return lambda module, _: None


CALLS = {
    "no function": lambda: aot.aot_function(3, aot.nop),
    "compiler by name": lambda: aot.aot_function(double, "nop"),
    "backward compiler": lambda: aot.aot_function(double, aot.nop, 3),
    "partitioner": lambda: aot.aot_function(double, aot.nop, partition_fn="min_cut"),
    "decompositions": lambda: aot.aot_function(double, aot.nop, decompositions=[1]),
    "decomposition of a name": lambda: aot.aot_function(
        double, aot.nop, decompositions={"sin": double}),
    "dynamic": lambda: aot.aot_function(double, aot.nop, dynamic="yes"),
    "compiler without result": lambda: aot.aot_function(double, later())(x()),
    "too few results": lambda: aot.aot_function(double, lambda m, _: lambda *a: ())(x()),
    "no results": lambda: aot.aot_function(double, lambda m, _: lambda *a: 3)(x()),
    "backward without results": lambda: aot.aot_function(
        double, aot.nop, lambda m, _: lambda *a: ())(x()).sum().backward(),
    "one half": lambda: aot.aot_function(double, aot.nop, partition_fn=lambda *a, **k: 3)(x()),
    "generator": lambda: aot.aot_function(lambda x: (x * i for i in range(3)), aot.nop)(x()),
    "module": lambda: aot.aot_module(double, aot.nop),
    "simplified module": lambda: aot.aot_module_simplified(double, [x()], aot.nop),
    "arguments": lambda: aot.aot_module_simplified(Layer(), x(), aot.nop),
    "exported function": lambda: aot_export_module(double, (x(),), trace_joint=False),
    "exported arguments": lambda: aot_export_module(Layer(), x(), trace_joint=False),
    "simple export": lambda: aot_export_joint_simple(3, (x(),), trace_joint=True),
    "simple arguments": lambda: aot_export_joint_simple(double, x(), trace_joint=True),
    "default partition": lambda: default_partition(double, num_fwd_outputs=1),
    "min cut": lambda: min_cut_rematerialization_partition(3, num_fwd_outputs=1),
    "boxed": lambda: aot.make_boxed_func(3),
    "boxed compiler": lambda: aot.make_boxed_compiler(None),
    "mode": lambda: pb.compile(double, mode="fast"),
    "mode and options": lambda: pb.compile(double, mode="default", options={"max_autotune": True}),
    "options": lambda: pb.compile(double, options={"turbo": True}),
    "options as a list": lambda: pb.compile(double, options=["max_autotune"]),
    "backend": lambda: pb.compile(double, backend="fastest"),
    "backend number": lambda: pb.compile(double, backend=3),
    "compile a number": lambda: pb.compile(3),
    "dynamic compile": lambda: pb.compile(double, dynamic="yes"),
    "fullgraph": lambda: pb.compile(double, fullgraph=3),
    "backend without result": lambda: pb.compile(double, backend=later())(x()),
}


@pytest.mark.parametrize("name", CALLS)
def test_refused(name):
    with pytest.raises(pb.errors.PullbackError) as caught:
        CALLS[name]()
    first, *rest = str(caught.value).splitlines()
    assert f"({HERE}:" in first
    assert any(line.strip().startswith("Fix:") for line in rest)


def test_types():
    """TypeError for what is of the wrong kind, RuntimeError for what a compiler did."""
    for name in ("no function", "compiler by name", "decompositions", "arguments", "options"):
        with pytest.raises(TypeError):
            CALLS[name]()
    for name in ("mode", "backend", "too few results", "one half"):
        with pytest.raises(RuntimeError):
            CALLS[name]()


def test_nothing_is_half_applied():
    """A compiler that fails leaves the arguments and the function as they were."""
    def f(a):
        a.add_(1)
        return a * 2

    a, broken = pb.zeros(3), [True]

    def compiler(module, _):
        return None if broken[0] else module

    compiled = aot.aot_function(f, compiler)
    with pytest.raises(RuntimeError, match="returned NoneType"):
        compiled(a)
    assert a.tolist() == [0, 0, 0] and a._version == 0
    broken[0] = False
    assert compiled(a).tolist() == [2, 2, 2] and a._version == 1
