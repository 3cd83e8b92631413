"""What is seen of a call, and whether two such sights are the same.

`observe` runs a function on new arguments and notes results, what the arguments hold afterwards and
gradients. `difference` compares two of them by dtype and size; `Conditioning` says how far results
move when every value of the program is moved by rounding, so that what is unstable is not reported.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .program import arguments

# relative rounding of one operation, and how many of them may add up before a look is taken
ROUNDING = {"float64": 2.0**-52, "complex128": 2.0**-52, "float32": 2.0**-23,
            "complex64": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
MANY = 32


@dataclass
class Seen:
    """One value: where it was seen, its dtype, its numbers (or a text in place of them)."""

    place: str
    dtype: str
    value: object
    cut: bool = False  # a gradient of zeros, since no result had a history

    @property
    def is_text(self) -> bool:
        return isinstance(self.value, str)


def numbers(torch, t) -> Seen:
    """A tensor's values as NumPy has them, whatever the dtype."""
    dtype = str(t.dtype).removeprefix("torch.")
    t = t.detach()
    if getattr(t, "is_conj", bool)():
        t = t.resolve_conj()
    if getattr(t, "is_neg", bool)():
        t = t.resolve_neg()
    if dtype in ("bfloat16", "float16"):
        t = t.float()
    elif dtype not in ROUNDING and dtype not in ("bool", "int64", "int32", "int16", "int8",
                                                 "uint8"):
        t = t.to(torch.complex64 if "complex" in dtype else torch.int64)
    return Seen("", dtype, np.array(t.numpy()))


def flat(value) -> list:
    """The parts of nested tuples, lists and dicts."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in flat(part)]
    return [value]


def cotangent(torch, t, number: int = 0):
    """A fixed direction of a result's shape."""
    values = np.cos(np.arange(t.numel()) * 0.7 + number + 0.3).reshape(tuple(t.shape)) + 0.2
    return torch.tensor(values).to(t.dtype)


class Refused(Exception):
    """A backward that did not work; the error is the cause."""


def observe(torch, function, inputs: dict, gradients: bool = True) -> list[Seen]:
    """Results of a call on new arguments, the arguments afterwards, gradients."""
    torch.manual_seed(11)
    leaves, given = arguments(torch, inputs)
    versions = [t._version for t in given]
    with np.errstate(all="ignore"):
        outs = flat(function(*given))
        seen = [shown(torch, o, f"result {i}") for i, o in enumerate(outs)]
        seen += [shown(torch, o, f"input {n} afterwards") for n, o in zip(inputs, given)]
        if gradients and leaves:
            seen += _gradients(torch, outs + written(given, versions), leaves, inputs)
    return seen


def written(given: list, versions: list) -> list:
    """Arguments that were written, None in place of others: they are results, too."""
    return [t if t._version != v else None for t, v in zip(given, versions)]


def shown(torch, value, place: str) -> Seen:
    if isinstance(value, torch.Tensor):
        made = numbers(torch, value)
        made.place = place
        return made
    if isinstance(value, (bool, int, float, complex)):
        return Seen(place, type(value).__name__, np.asarray(value))
    return Seen(place, type(value).__name__, str(value))


def roots_of(torch, outs: list, direction=cotangent) -> tuple[list, list]:
    """Results that can be differentiated, and a direction for each."""
    found, along = [], []
    for k, o in enumerate(outs):
        if isinstance(o, torch.Tensor) and o.requires_grad:
            found.append(o)
            along.append(direction(torch, o, k))
    return found, along


def _gradients(torch, outs: list, leaves: list, inputs: dict) -> list[Seen]:
    try:
        roots, along = roots_of(torch, outs)
    except Exception as error:  # a view whose history cannot be told any more
        raise Refused(type(error).__name__) from error
    names = [n for n, i in inputs.items() if i.grad]
    if not roots:
        none = [shown(torch, torch.zeros_like(t), f"gradient of {n}")
                for t, n in zip(leaves, names)]
        for seen in none:
            seen.cut = True
        return none
    try:
        grads = torch.autograd.grad(roots, leaves, along, allow_unused=True)
    except Exception as error:
        raise Refused(type(error).__name__) from error
    # no gradient is one of zeros: who is told which is a matter of what the graph knows
    return [shown(torch, torch.zeros_like(leaf) if g is None else g, f"gradient of {n}")
            for g, leaf, n in zip(grads, leaves, names)]


def rounding(*dtypes: str) -> float:
    return max([ROUNDING[d] for d in dtypes if d in ROUNDING], default=2.0**-52)


def difference(got: list[Seen], wanted: list[Seen], eps: float, slack: list | None = None):
    """What is not the same, in words; None if all is. `slack` adds to the tolerance of each."""
    if len(got) != len(wanted):
        return f"{len(got)} values seen, not {len(wanted)}"
    floor = eps * usual_size(wanted)  # what cancels need not cancel to the last bit
    for i, (a, b) in enumerate(zip(got, wanted)):
        if a.is_text or b.is_text:
            if a.is_text and b.is_text and a.value != b.value or a.is_text != b.is_text:
                return f"{b.place}: {_short(a.value)}, not {_short(b.value)}"
            continue
        x, y = a.value, b.value
        if a.dtype != b.dtype or x.shape != y.shape:
            return f"{b.place}: {a.dtype}{list(x.shape)}, not {b.dtype}{list(y.shape)}"
        same = alike(x, y, b.dtype, eps, None if slack is None else slack[i], floor)
        if not np.all(same):
            at = tuple(int(k) for k in np.argwhere(~same)[0])
            return (f"{b.place} at {at}: {x[at]}, not {y[at]} ({(~same).sum()} of {same.size} "
                    f"differ; {b.dtype})")
    return None


def usual_size(seen: list[Seen]) -> float:
    """The largest value among all that were seen, a hundred at most."""
    tops = [np.abs(s.value[np.isfinite(s.value)]).max(initial=0.0) for s in seen
            if not s.is_text and s.value.dtype.kind in "fc"]
    return float(min(max(tops, default=0.0), 100.0))


def alike(x, y, dtype: str, eps: float, slack=None, floor: float = 0.0) -> np.ndarray:
    """Which values are the same, to rounding."""
    if x.dtype.kind not in "fc":
        same = x == y
        return same if slack is None else same | (slack > 0)
    with np.errstate(all="ignore"):
        eps = max(eps, ROUNDING.get(dtype, 0.0))
        fine = np.isfinite(y)
        scale = np.abs(y[fine]).astype(np.float64).max(initial=0.0)
        room = MANY * eps * np.maximum(np.abs(np.where(fine, y, 0)), 0.05 * scale)
        room = room + floor + 1e-30
        if slack is not None:
            room = room + slack
        x64, y64 = x.astype(np.complex128), y.astype(np.complex128)
        near = np.abs(x64 - y64) <= room
        same = near | (x == y)
        if slack is not None:  # whether it is a number at all is a matter of rounding
            same = same | np.isinf(slack)
            # sums of infinite terms: infinite in one order, NaN in another
            same = same | (np.isnan(x) & np.isinf(y)) | (np.isinf(x) & np.isnan(y))
        if x.dtype.kind == "c":  # which part is NaN is nobody's promise
            return same | (~np.isfinite(x) & ~np.isfinite(y))
        return same | (np.isnan(x) & np.isnan(y)) | np.isnan(room)


def _short(value) -> str:
    return value[:80] if isinstance(value, str) else f"values {value.shape}"


def spread(runs: list, wanted: list[Seen], factor: float) -> list | None:
    """How far each value moves in other runs, times a factor; None if they cannot be compared."""
    room = [0.0] * len(wanted)
    for run in runs:
        if len(run) != len(wanted):
            return None
        for i, (a, b) in enumerate(zip(run, wanted)):
            if a.is_text or b.is_text:
                continue
            if a.value.shape != b.value.shape:
                return None
            if a.value.dtype.kind not in "fc":
                room[i] = np.maximum(room[i], np.where(a.value != b.value, np.inf, 0.0).max(
                    initial=0.0))
                continue
            with np.errstate(all="ignore"):
                moved = np.abs(a.value.astype(np.complex128) - b.value.astype(np.complex128))
            odd = (np.isfinite(a.value) != np.isfinite(b.value)) | (
                np.isnan(a.value) != np.isnan(b.value))
            moved = np.where(odd, np.inf, np.where(np.isnan(moved), 0.0, moved))
            top = moved[np.isfinite(moved)].max(initial=0.0)
            room[i] = np.maximum(room[i], factor * np.maximum(moved, 0.3 * top))
    return room
