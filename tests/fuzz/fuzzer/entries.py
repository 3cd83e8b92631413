"""Steps from the table: any operator, spelled as people spell it, with arguments of its samples."""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import numpy as np

import pullback as pb
from pullback.core.op import registry
from pullback.core.overload import overload_of
from pullback.testing import samples

from .program import FLOATS, Input

# nobody's promise: memory that is not filled; results that need a process or an object; pieces that
# count as fresh memory, which graphs believe and eager mode does not
LEFT_OUT = ("empty", "new_empty", "resize", "set_", "_print", "_assert", "item", "_local_scalar",
            "is_", "_is_", "_pin", "pin_memory", "record_stream", "_has", "_use", "retains_grad",
            "_version", "data", "output_nr", "_backward", "requires_grad", "retain_grad",
            "_foreach", "_fused", "_cudnn", "_nnpack", "sym_", "_nested", "_dim", "size", "stride",
            "numel", "storage_offset", "_thnn", "_unsafe_set", "_propagate", "_make_dep",
            "as_strided", "_reshape_alias", "unsafe_", "_unsafe_view", "seed",
            "_softmax_backward_data", "_log_softmax_backward_data")
# bases of spaces and the like: another library, or another batch, may choose another one
AMBIGUOUS = ("svd", "eig", "qr", "lstsq", "geqrf", "ormqr", "orgqr", "linalg_eig", "linalg_svd",
             "linalg_qr", "_linalg_svd", "_linalg_eig", "linalg_ldl", "lu", "linalg_lu",
             "householder", "linalg_householder", "pca", "svd_lowrank", "pca_lowrank", "sort",
             "argsort", "topk", "linalg_lstsq", "triangular_solve", "mode", "_unique", "unique",
             "kthvalue", "median", "nanmedian", "msort", "histogram")


@functools.cache
def table() -> list:
    """(name, overload, flat arguments of samples by dtype) of all entries that can be called."""
    found = []
    for name in sorted(registry):
        op = registry[name]
        if not op.__module__.startswith("pullback.ops.") or name.startswith(LEFT_OUT):
            continue
        ov = overload_of(op)
        if not ov.schema.returns or not any(r.is_tensor for r in ov.schema.returns):
            continue
        flats = [samples.flat(op, case) for case in samples.cases(op)]
        if flats:
            found.append((name, op, ov, flats))
    return found


def spelling(b, name: str, ov) -> tuple[str, bool]:
    """(text before the parenthesis, whether the first argument comes before the dot)."""
    base = name.partition(".")[0]
    ways = []
    if hasattr(pb, base) and not base.startswith("_"):
        ways.append(f"torch.{base}")
    for start, module in (("linalg_", "linalg"), ("fft_", "fft"), ("special_", "special")):
        short = base.removeprefix(start)
        if base.startswith(start) and hasattr(getattr(pb, module), short):
            ways.append(f"torch.{module}.{short}")
    args = ov.schema.args
    if args and args[0].name == "self" and args[0].is_tensor and not args[0].is_list:
        if hasattr(pb.Tensor, base) and not base.startswith("_"):
            ways.append("")
    if not ways or b.chance(0.1):
        namespace = f"torch.ops.aten.{base}.{name.partition('.')[2] or 'default'}"
        return namespace, False
    way = b.choose(ways)
    return (base, True) if not way else (way, False)


def literal(value) -> str:
    """A Python value as text."""
    if isinstance(value, pb.dtype):
        return f"torch.{str(value).removeprefix('torch.')}"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (bool, int, float, complex, str, type(None))):
        return repr(value)
    if isinstance(value, np.generic):
        return literal(value.item())
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, slice):
        return f"slice({value.start}, {value.stop}, {value.step})"
    if type(value).__name__ == "Device" or type(value).__name__ == "device":
        return repr(str(value))
    raise TypeError(type(value))


class Call:
    """The arguments of one sample as text, with values of the program among them."""

    def __init__(self, b, op, ov):
        self.b, self.op, self.ov = b, op, ov
        self.needs: list[str] = []
        self.chain = 0  # how many values of the program are among them

    def tensor(self, value, arg) -> str:
        """A value of the program in place of a sample's tensor, or that tensor as an input."""
        b = self.b
        dtype = str(value.dtype).removeprefix("torch.")
        real = dtype in FLOATS
        loose = self.op.kind in ("pointwise", "reduction", "view")
        name = None
        if real and (not self.chain or b.chance(0.4)) or not real and loose and b.chance(0.3):
            name = self.earlier(value, loose)
        if name is None:
            name = self.given(value, dtype, real)
        else:
            self.chain += 1
        self.needs.append(name)
        return name

    def earlier(self, value, loose: bool) -> str | None:
        b = self.b
        category = value.dtype.is_floating_point or value.dtype.is_complex
        shape = tuple(value.shape)

        def fits(v):
            if v.dtype.is_complex and not self.op.complex:
                return False
            if (v.dtype.is_floating_point or v.dtype.is_complex) != category and b.chance(0.9):
                return False
            return loose or tuple(v.shape) == shape

        if any(fits(v) for v in b.values.values()):
            return b.pick(fits)
        large = [n for n, v in b.values.items()
                 if v.dtype.is_floating_point and v.numel() >= math.prod(shape) > 0]
        if category and large and b.chance(0.7):
            name, count = b.choose(large), math.prod(shape)
            b.step(f"{name}.reshape(-1)[:{count}].reshape({literal(list(shape))[1:-1]})"
                   if shape else f"{name}.reshape(-1)[0]", [name], "reshape")
            return b.steps[-1].makes[0]
        return None

    def given(self, value, dtype: str, real: bool) -> str:
        b = self.b
        array = np.asarray(value.detach().resolve_conj().numpy())
        if real:
            dtype = b.main if b.main in FLOATS and b.main not in ("complex64", "complex128") else (
                "float32")
            if value.dtype.is_complex:
                dtype = "complex128" if b.chance(0.5) else "complex64"
            grad = "leaf" if b.chance(0.5) else ""
            plain = array.size and array.real.min() >= -2 and array.real.max() <= 2
            if plain and (self.op.kind == "pointwise" or array.size > 40):
                low, high = float(array.real.min()), float(array.real.max())
                return b.input(Input(dtype, tuple(array.shape), b.below(10**6),
                                     low=round(low, 3), high=round(high, 3), grad=grad))
            if array.size > 100:
                raise ValueError("too long a text")
            array = np.round(array, 4)
            return b.input(Input(dtype, tuple(array.shape), values=array.tolist(), grad=grad))
        if array.size > 100:
            raise ValueError("too long a text")
        return b.input(Input(dtype, tuple(array.shape), values=array.tolist()))

    def value(self, value, arg) -> str:
        if isinstance(value, pb.Tensor):
            return self.tensor(value, arg)
        if isinstance(value, (list, tuple)) and any(isinstance(v, pb.Tensor) for v in value):
            return f"[{', '.join(self.value(v, arg) for v in value)}]"
        return literal(value)

    def text(self, name: str, flat: tuple) -> str:
        args = list(zip(self.ov.schema.args, flat))
        before, method = spelling(self.b, name, self.ov)
        shown, gap, first = [], False, None
        for k, (arg, value) in enumerate(args):
            if arg.base == "Generator" and value is not None:
                raise TypeError("a generator has no text")
            if arg.has_default and not isinstance(value, (pb.Tensor, list, tuple)) and (
                    value is arg.default or type(value) is type(arg.default)
                    and value == arg.default):
                gap = True
                continue
            shown_value = self.value(value, arg)
            if k == 0 and method:
                first = shown_value
                continue
            shown.append(f"{arg.name}={shown_value}" if arg.kwarg_only or gap else shown_value)
        if method:
            before = f"{first}.{before}"
        return f"{before}({', '.join(shown)})"


LONGEST = 1000  # degrees of polynomials
# values below them do not count in results, but do in derivatives: PyTorch's formulas have it so
TOLERANCES = ("rcond", "rtol", "atol", "tol")


def _cut(ov) -> list:
    """Which floating results have no derivative, although they have values that vary?"""
    rule = None if ov.is_composite else ov.rule
    if rule is None or len(ov.schema.returns) == 1:
        return []
    return [not d for d in rule.diff_outputs]


def step(b) -> bool:
    """A step of any entry of the table."""
    entries = table()
    name, op, ov, flats = entries[b.below(len(entries))]
    call = Call(b, op, ov)
    text = call.text(name, b.choose(flats))
    if "polynomial" in name and any(b.values[n].abs().gt(LONGEST).any() for n in call.needs):
        raise ValueError("degrees are climbed one by one")
    traits = set()
    if op.kind == "random":
        traits.add("random")
    if name.startswith(AMBIGUOUS) or op.invariant is not None:
        traits.add("ambiguous")
    if op.structure or any(_cut(ov)):
        traits.add("cut")
    if any(a.name in TOLERANCES for a in ov.schema.args):
        traits.add("tolerance")
    if any(a.is_write for a in ov.schema.args):
        traits.add("write")
    elif op.kind == "pointwise" and b.chance(0.1) and hasattr(
            pb.Tensor, f"{name.partition('.')[0]}_"):
        target = call.needs[0] if call.needs else None
        base = name.partition(".")[0]
        if target and text.startswith((f"torch.{base}({target}", f"{target}.{base}(")):
            rest = text.partition(target)[2].removeprefix(f".{base}(").removeprefix(", ")
            return b.step(f"{target}.{base}_({rest}", call.needs, f"{base}_", 0, {"write"})
    returns = ov.schema.returns
    if len(returns) == 1 and not returns[0].is_list:
        return b.step(text, call.needs, name, 1, traits)
    if all(r.is_tensor and not r.is_list for r in returns):
        done = b.step(text, call.needs, name, len(returns), traits)
    else:
        done = b.step(f"{text}[{b.below(2)}]", call.needs, name, 1, traits)
    last = b.steps[-1]
    if any(b.values[n].requires_grad for n in last.needs) and any(
            b.values[n].dtype.is_floating_point and not b.values[n].requires_grad
            for n in last.makes):  # a composite's: sums beside the attention
        b.steps[-1] = replace(last, traits=last.traits | {"cut"})
    return done
