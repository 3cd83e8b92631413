"""How a row of the inventory is run: programs, each with a check for every kind that it asks for.

A kind is a column of the inventory: forward, backward, second, jvp, vmap, compile.  `inventory.py`
has a program for each row.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pullback as torch
from pullback.core.op import registry
from pullback.core.overload import overload_of
from pullback.core.stack import bind
from pullback.testing import kit, samples
from tests.helpers.quantized.models import draw

KINDS = ("forward", "backward", "second", "jvp", "vmap", "compile")
D = torch.float64
SCALE, ZERO = 0.05, {"quint8": 60, "qint8": -5, "qint32": 1000}
BOUNDS = {"quint8": (0, 255), "qint8": (-128, 127), "qint32": (-(2**31), 2**31 - 1)}


def leaves(tree: Any) -> list:
    return [t for one in tree for t in leaves(one)] if isinstance(tree, (list, tuple)) else [tree]


# ---------------------------------------------------------------------------------------------
# Quantised tensors


def made(seed: int, shape: tuple, dtype: str, axis: int | None = None,
         through: bool = False) -> Any:
    """Drawn numbers as a quantised tensor, and these numbers."""
    numbers = draw(torch, seed, *shape)
    kind = getattr(torch, dtype)
    if axis is None:
        x = numbers.requires_grad_(through)
        return torch.quantize_per_tensor(x, SCALE, ZERO[dtype], kind, straight_through=through), x
    scales = torch.arange(1, shape[axis] + 1) * 0.03
    zeros = torch.arange(shape[axis]) + ZERO[dtype]
    return torch.quantize_per_channel(numbers, scales, zeros, axis, kind), numbers


def same_numbers(out: Any, number: Any, params: Any, exact: bool) -> None:
    """Is a result what its definition says?  Its integers are the nearest to the numbers."""
    if isinstance(number, (list, tuple)):
        assert len(out) == len(number)
        for o, n in zip(out, number):
            same_numbers(o, n, params, exact)
    elif not isinstance(number, torch.Tensor):
        assert out == number
    elif not out.is_quantized:
        assert out.shape == number.shape and torch.allclose(
            out.double(), number.double(), rtol=1e-6, atol=1e-7)
    elif "channel" in str(out.qscheme()) or exact:
        assert torch.allclose(out.dequantize(), number, rtol=1e-6, atol=1e-7)
    else:
        scale, zero = out.q_scale(), out.q_zero_point()
        assert (scale, zero) == params
        low, high = BOUNDS[out.dtype.name]
        level = (number.double() / scale + zero).clamp(low, high)
        assert out.shape == number.shape
        # a half is one way or the other: numbers are in single precision
        assert (out.int_repr() - level).abs().max() <= 0.5 + 2e-6 * level.abs().max() + 1e-4


@dataclass(frozen=True)
class Quantised:
    """An operator on quantised tensors, and the same on the numbers that they stand for.

    Its definition: take the numbers, compute in single precision, round with the parameters of the
    result, which are those of the first argument unless `params` says others.  `exact`: nothing is
    rounded.  Where somebody follows the numbers, gradients are those of the definition.
    """

    call: Callable
    numbers: Callable | None = None  # if not `call`
    shapes: tuple = ((3, 4),)
    dtypes: tuple = ("quint8", "qint8")
    params: Any = None
    exact: bool = False
    channels: int | None = None  # the axis, if tensors with channels are taken as well
    followed: bool = True

    @property
    def kinds(self) -> tuple:
        return ("forward", "backward") if self.followed else ("forward",)

    def run(self, kind: str) -> None:
        for dtype in self.dtypes:
            (self.forward if kind == "forward" else self.backward)(dtype)

    def definition(self, *numbers: Any) -> Any:
        return (self.numbers or self.call)(*numbers)

    def wanted_params(self, dtype: str) -> tuple:
        found = (SCALE, ZERO[dtype]) if self.params is None else self.params
        return found[dtype] if isinstance(found, dict) else found

    def forward(self, dtype: str) -> None:
        for axis in {None, self.channels}:
            given = [made(k, s, dtype, axis)[0] for k, s in enumerate(self.shapes)]
            numbers = [q.dequantize() for q in given]
            out = self.call(*given)
            if axis is not None:
                for o in leaves(out):
                    assert not isinstance(o, torch.Tensor) or not o.is_quantized or (
                        o.qscheme() is torch.per_channel_affine)
            same_numbers(out, self.definition(*numbers), self.wanted_params(dtype),
                         self.exact or axis is not None)

    def backward(self, dtype: str) -> None:
        """Gradients pass the rounding where nothing is cut off."""
        pairs = [made(k, s, dtype, through=True) for k, s in enumerate(self.shapes)]
        out = leaves(self.call(*[q for q, _ in pairs]))[0]
        scale, zero = out.q_scale(), out.q_zero_point()
        numbers = [q.dequantize().detach().requires_grad_() for q, _ in pairs]
        wanted = leaves(self.definition(*numbers))[0]
        weight = torch.linspace(0.5, 1.5, wanted.numel()).reshape(wanted.shape)
        low, high = BOUNDS[dtype]
        level = wanted.detach() / scale + zero
        inside = (level >= low - 0.5) & (level <= high + 0.5)
        given = [x for _, x in pairs]
        assert out.dequantize().requires_grad
        ours = torch.autograd.grad((out.dequantize() * weight).sum(), given, allow_unused=True)
        theirs = torch.autograd.grad((wanted * weight * inside).sum(), numbers, allow_unused=True)
        for (q, x), a, b in zip(pairs, ours, theirs):
            level = x.detach() / q.q_scale() + q.q_zero_point()
            there = (level >= low - 0.5) & (level <= high + 0.5)
            b = torch.zeros_like(x) if b is None else b * there
            assert torch.allclose(torch.zeros_like(x) if a is None else a, b, atol=1e-5)


def moved(call: Callable, **more: Any) -> Quantised:
    """An operator that puts integers into other places: nothing is rounded."""
    return Quantised(call, exact=True, **more)


def fact(call: Callable, numbers: Callable | None = None, **more: Any) -> Quantised:
    """What is no quantised tensor: there is nothing to differentiate."""
    return Quantised(call, numbers, followed=False, **more)


def into(call: Callable, numbers: Callable, params: tuple, **more: Any) -> Quantised:
    """An operator whose results have a scale and a zero point of their own."""
    return Quantised(call, numbers, params=params, **more)


# ---------------------------------------------------------------------------------------------
# Functions of dense tensors


@dataclass(frozen=True)
class Dense:
    """A function of dense tensors and another that gives the same, in all kinds."""

    call: Callable
    wanted: Callable
    inputs: Callable  # () -> tensors
    kinds: tuple = KINDS
    mapped: int = 0  # the argument that `vmap` runs over

    def run(self, kind: str) -> None:
        getattr(self, kind)()

    def forward(self) -> None:
        given = self.inputs()
        _same(self.call(*given), self.wanted(*given))

    def _gradients(self, function: Callable, given: list, twice: bool) -> list:
        out = [o for o in leaves(function(*given)) if o is not None and o.requires_grad]
        total = sum((o * torch.linspace(0.5, 1.5, o.numel(), dtype=o.dtype).reshape(o.shape)).sum()
                    for o in out)
        found = torch.autograd.grad(total, given, create_graph=twice, allow_unused=True)
        if not twice:
            return [_zero(g, x) for g, x in zip(found, given)]
        total = sum((g * g.detach().cos()).sum() for g in found if g is not None)
        if not total.requires_grad:  # the derivative is constant
            return [torch.zeros_like(x) for x in given]
        found = torch.autograd.grad(total, given, allow_unused=True)
        return [_zero(g, x) for g, x in zip(found, given)]

    def _compared(self, twice: bool) -> None:
        given = [x.detach().requires_grad_() for x in self.inputs()]
        _same(self._gradients(self.call, given, twice), self._gradients(self.wanted, given, twice))

    def backward(self) -> None:
        self._compared(False)

    def second(self) -> None:
        self._compared(True)

    def jvp(self) -> None:
        given = tuple(self.inputs())
        tangents = tuple([x.cos() for x in given])
        for k in (0, 1):
            _same(*[torch.func.jvp(lambda *a: _tensors(f(*a)), given, tangents)[k]
                    for f in (self.call, self.wanted)])

    def vmap(self) -> None:
        given = self.inputs()
        at = self.mapped
        many = [torch.stack([x, x * 0.5]) if k == at else x for k, x in enumerate(given)]
        dims = tuple([0 if k == at else None for k in range(len(given))])
        out = torch.func.vmap(lambda *a: _tensors(self.call(*a)), in_dims=dims)(*many)
        each = [_tensors(self.wanted(*[x[n] if k == at else x for k, x in enumerate(many)]))
                for n in (0, 1)]
        _same(out, [torch.stack(pair) for pair in zip(*each)])

    def compile(self) -> None:
        compiled = torch.compile(lambda *a: _tensors(self.call(*a)), backend="aot_eager",
                                 fullgraph=True)
        given = [x.detach().requires_grad_() for x in self.inputs()]
        _same(compiled(*given), _tensors(self.wanted(*given)))
        _same(self._gradients(compiled, given, False), self._gradients(self.wanted, given, False))


def _zero(g: Any, x: Any) -> Any:
    return torch.zeros_like(x) if g is None else g


def _tensors(out: Any) -> tuple:
    return tuple([o for o in leaves(out) if isinstance(o, torch.Tensor)])


def _same(ours: Any, wanted: Any) -> None:
    ours, wanted = _tensors(ours), _tensors(wanted)
    assert len(ours) == len(wanted)
    for a, b in zip(ours, wanted):
        assert a.shape == b.shape and a.dtype is b.dtype
        near = (1e-5, 1e-6) if a.dtype is torch.float32 else (1e-8, 1e-9)
        assert torch.allclose(a, b, *near, equal_nan=True)


# ---------------------------------------------------------------------------------------------
# What is run elsewhere, and what is no operator

OF_THE_KIT = {"forward": "pure", "backward": "pullback", "second": "second_order",
              "jvp": "pushforward", "vmap": "vmap"}


@dataclass(frozen=True)
class Entry:
    """An entry of the table: `tests/ops/test_table.py` runs its samples in all kinds.

    That they are run, and that they have a derivative, is looked at here; compiled programs are
    compared here, by operators: `tests/compile/test_table.py` writes C for those of its parts.
    """

    name: str
    kinds: tuple = KINDS

    def run(self, kind: str) -> None:
        op = registry[self.name]
        assert op.samples is not None and samples.cases(op)
        if kind == "compile":
            self.compiled()
            return
        assert OF_THE_KIT[kind] not in op.unchecked
        if kind in ("backward", "second", "jvp"):
            assert any(kit._differentiable(op, case, D) for case in samples.cases(op))

    def compiled(self) -> None:
        op = registry[self.name]
        case = samples.cases(op)[0]
        flat = samples.flat(op, case)
        at = next(k for k, v in enumerate(flat)
                  if isinstance(v, torch.Tensor) and v.dtype is D)

        def program(x: Any) -> tuple:
            return _tensors(bind(overload_of(op), (*flat[:at], x, *flat[at + 1:])))

        out = torch.compile(program, backend="aot_eager", fullgraph=True)(flat[at].clone())
        _same(out, program(flat[at].clone()))


@functools.cache
def functions_of(path: str) -> set:
    """Names of the functions of a file of tests."""
    tree = ast.parse((Path(__file__).parents[2] / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@dataclass(frozen=True)
class Tests:
    """Tests that run a row, by file and name: `test_layers.py::test_weights_are_bytes`."""

    __test__ = False
    names: dict  # kind -> names

    @property
    def kinds(self) -> tuple:
        return tuple(self.names)

    def run(self, kind: str) -> None:
        given = self.names[kind]
        for name in [given] if isinstance(given, str) else given:
            path, _, function = name.partition("::")
            assert function in functions_of(path)


@dataclass(frozen=True)
class Checks:
    """A check for every kind."""

    checks: dict = field(default_factory=dict)  # kind -> function without arguments

    @property
    def kinds(self) -> tuple:
        return tuple(self.checks)

    def run(self, kind: str) -> None:
        self.checks[kind]()


def check(**checks: Callable) -> Checks:
    """A check for each kind, by name."""
    return Checks(checks)
