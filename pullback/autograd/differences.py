"""`gradcheck` and `gradgradcheck`: derivatives against finite differences.

Complex tensors are treated as pairs of reals, so one real Jacobian covers all cases.  The fast
mode compares one random projection u^T J v instead of the whole Jacobian.
"""

from __future__ import annotations

import functools
import warnings

import numpy as np

from .. import errors
from ..core.handle import Tensor, make
from ..interp.operator_dispatch import Outer
from ..interp.vmap import Vmap
from ..memory.views import current
from ..pytree import tree_flatten, tree_unflatten
from ..table.packets import ops
from ..threads.state import fast
from .forward_ad import DualLevel
from .grad_mode import enable_grad, no_grad
from .gradients import grad


class GradcheckError(RuntimeError):
    """A derivative disagrees with finite differences (or another check of `gradcheck` failed)."""


def _tensors(values) -> list[Tensor]:
    values = (values,) if isinstance(values, Tensor) else values
    return [v for v in values if isinstance(v, Tensor)]


def _outputs(result) -> list[Tensor]:
    if fast["PARTS"]:
        from ..parts.carriers import shown_elements

        result = shown_elements(result)
    return [o for o in _tensors(result) if o.dtype.category >= 2]


def _on_carriers(func, inputs, seeds=None) -> tuple:
    """The same of tensors that are made of others: their elements are those of a part."""
    if not fast["PARTS"]:
        return func, inputs, seeds
    from ..parts.carriers import on_carriers, shown_elements

    return *on_carriers(func, inputs), shown_elements(seeds)


def _as_real(array: np.ndarray) -> np.ndarray:
    """All components of an array as one real vector."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(flat.real.dtype) if np.iscomplexobj(flat) else flat


def _from_real(vector: np.ndarray, like: np.ndarray) -> np.ndarray:
    flat = np.ascontiguousarray(vector, dtype=like.real.dtype)
    return (flat.view(like.dtype) if np.iscomplexobj(like) else flat).reshape(like.shape)


def _value(t: Tensor) -> np.ndarray:
    t = t.detach()
    if not isinstance(t._payload, Outer):
        return t.numpy(force=True)
    numbers = [one.item() for one in t.reshape(-1).unbind()]  # a wrapper has no memory to show
    return np.array(numbers, t._payload.dtype).reshape(tuple(t.shape))


class _Problem:
    """A function, its inputs, and the inputs that are differentiated."""

    def __init__(self, func, inputs):
        given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
        flat, structure = tree_flatten(given)  # tensors may be in lists, too
        self.func = lambda *flat: func(*tree_unflatten(list(flat), structure))
        self.inputs = tuple(flat)
        self.leaves = [t for t in self.inputs if isinstance(t, Tensor) and t.requires_grad]

    def check_inputs(self) -> None:
        if not self.leaves:
            raise ValueError(
                "gradcheck expects at least one input tensor to require gradient, "
                "but none of them have requires_grad=True."
            )
        for i, t in enumerate(self.leaves):
            if any(s == 0 and n > 1 for s, n in zip(t.stride(), t.shape)):
                raise errors.ViewWriteError(
                    errors.text(
                        f"The {i}th input has a dimension with stride 0, so that gradcheck cannot "
                        f"move its elements one by one ({errors.user_line(2)})",
                        f"shape {list(t.shape)}, strides {list(t.stride())}",
                        "pass input.contiguous()",
                    )
                )
            if t.dtype.name not in ("float64", "complex128"):
                warnings.warn(
                    f"Input #{i} requires gradient and is not a double precision floating point or "
                    "complex. This check will likely fail if all the inputs are not of double "
                    "precision floating point or complex.",
                    stacklevel=3,
                )

    def at(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """Output values with other values in the leaves, which have their own again afterwards.

        They are written into memory, as PyTorch does: the function may reach its inputs otherwise,
        and may ask whether they require grad.
        """
        if not all(type(t._payload) is np.ndarray for t in self.leaves):
            return self._at_copies(arrays)
        memory = [_value(t) for t in self.leaves]
        before = [m.copy() for m in memory]
        try:
            for m, array in zip(memory, arrays):
                if not np.may_share_memory(m, array):
                    m[...] = array
            return [_value(o).copy() for o in self.run()]
        finally:
            for m, array in zip(memory, before):
                m[...] = array

    def _at_copies(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """The same where leaves have no memory to write: on a device, in a transform."""
        swapped = iter(arrays)
        args = [
            make(next(swapped)) if isinstance(t, Tensor) and t.requires_grad else t
            for t in self.inputs
        ]
        with no_grad():
            return [_value(o) for o in _outputs(self.func(*args))]

    def run(self) -> list[Tensor]:
        with enable_grad():
            return _outputs(self.func(*self.inputs))


def _numeric(problem: _Problem, k: int, eps: float) -> list[np.ndarray]:
    """Columns of the Jacobian in leaf k by central differences: one matrix per output."""
    values = [_value(t) for t in problem.leaves]
    base = _as_real(values[k]).copy()
    columns: list[list] = []
    for j in range(base.size):
        sides = []
        for step in (eps, -eps):
            moved = base.copy()
            moved[j] += step
            arrays = list(values)
            arrays[k] = _from_real(moved, values[k])
            sides.append([o.copy() for o in problem.at(arrays)])
        _same_kind(*sides, eps)
        sides = [[_as_real(o) for o in side] for side in sides]
        columns.append([(a - b) / (2 * eps) for a, b in zip(*sides)])
    if not columns:
        return [np.zeros((_as_real(o).size, 0)) for o in problem.at(values)]
    return [np.stack(c, 1) if len(c) else np.zeros((0, base.size)) for c in zip(*columns)]


def _same_kind(left: list, right: list, eps: float) -> None:
    """Both sides of a difference must be of one shape and dtype."""
    for i, (a, b) in enumerate(zip(left, right)):
        for what in ("shape", "dtype"):
            if getattr(a, what) != getattr(b, what):
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are "
                    f"perturbed by {eps}, but output {i} has {what}s {getattr(a, what)} and "
                    f"{getattr(b, what)}."
                )


def _pull(problem: _Problem, out: Tensor, seed: np.ndarray, leaves=None) -> list:
    return list(
        grad([out], leaves or problem.leaves, [make(seed)], retain_graph=True, allow_unused=True)
    )


def _analytic(problem: _Problem, out: Tensor) -> list[np.ndarray]:
    """The Jacobian of one output in every leaf by reverse mode, row by row."""
    value = _value(out)
    size = _as_real(value).size
    rows = [np.zeros((size, _as_real(_value(t)).size)) for t in problem.leaves]
    if not out.requires_grad:
        return rows
    for i in range(size):
        unit = np.zeros(size, value.real.dtype)
        unit[i] = 1
        for j, g in enumerate(_pull(problem, out, _from_real(unit, value))):
            if g is not None:
                rows[j][i] = _as_real(_value(g))
    return rows


def _tangents(problem: _Problem, k: int, tangent: Tensor) -> list[Tensor]:
    """Tangents of the outputs, given one of leaf k."""
    tracked = [i for i, t in enumerate(problem.inputs) if isinstance(t, Tensor) and t.requires_grad]
    args = [t.detach() if isinstance(t, Tensor) else t for t in problem.inputs]
    with DualLevel() as level:  # backward may run through duals: forward over reverse
        for j, i in enumerate(tracked):  # functions that ask find tangents of all
            args[i] = level.wrap(args[i], tangent if j == k else ops.zeros_like(args[i]))
        outs = [current(o) for o in _outputs(problem.func(*args))]
        pushed = [(level.primal(o), level.tangent(o)) for o in outs]
    return [ops.zeros_like(o) if t is None else t for o, t in pushed]


def _push(problem: _Problem, k: int, direction: np.ndarray) -> list[np.ndarray]:
    """Derivatives of the outputs along a direction of leaf k, by forward mode."""
    tangent = make(_from_real(direction, _value(problem.leaves[k])))
    return [_as_real(_value(t)) for t in _tangents(problem, k, tangent)]


def _forward(problem: _Problem, k: int) -> list[np.ndarray]:
    """The Jacobian in leaf k by forward mode, column by column."""
    value = _value(problem.leaves[k])
    units = np.eye(_as_real(value).size, dtype=value.real.dtype)
    columns = [_push(problem, k, unit) for unit in units]
    if not columns:
        return [np.zeros((_as_real(_value(o)).size, 0)) for o in problem.run()]
    return [np.stack(c, 1) for c in zip(*columns)]


def _compare(numeric, analytic, atol, rtol, what: str, pair: tuple = (), forward=False) -> None:
    difference = np.abs(numeric - analytic)
    allowed = atol + rtol * np.abs(numeric)
    bad = ~(difference <= allowed) & ~(
        (numeric == analytic) | (np.isnan(numeric) & np.isnan(analytic))
    )
    if bad.any():
        worst = np.unravel_index(
            np.argmax(np.where(bad, difference - allowed, -np.inf)), difference.shape
        )
        raise GradcheckError(
            f"Jacobian {'computed with forward mode ' if forward else ''}mismatch for {what}\n"
            f"  worst entry {_entry(worst, pair)}: numerical {numeric[worst]:.8g}, "
            "analytical "
            f"{analytic[worst]:.8g}; {int(bad.sum())} of {bad.size} entries differ (atol={atol}, "
            f"rtol={rtol})\n"
            f"  numerical:\n{_show(numeric)}\n  analytical:\n{_show(analytic)}"
        )


def _entry(place: tuple, pair: tuple) -> str:
    """An entry of a Jacobian: which element of the output by which of the input."""
    text = str(tuple(int(i) for i in place))
    if not pair:
        return text
    named = [_element(int(i), t, name) for i, t, name in zip(place, pair, ("output", "input"))]
    return f"{text}, d {named[0]} / d {named[1]}"


def _element(number: int, t: Tensor, name: str) -> str:
    """`output[1, 2].imag` for a place in the real vector of a tensor."""
    part = ""
    if t.dtype.is_complex:
        number, second = divmod(number, 2)
        part = ".imag" if second else ".real"
    index = np.unravel_index(number, t.shape) if t.ndim else ()
    return f"{name}[{', '.join(str(int(i)) for i in index)}]{part}" if t.ndim else name + part


def _show(matrix: np.ndarray) -> str:
    return "    " + np.array2string(matrix, precision=5, threshold=40, prefix="    ")


def _check_slow(problem, outs, eps, atol, rtol, backward_ad, forward_ad) -> None:
    numeric = [_numeric(problem, k, eps) for k in range(len(problem.leaves))]
    if backward_ad:
        for i, out in enumerate(outs):
            for k, rows in enumerate(_analytic(problem, out)):
                what = f"output {i} with respect to input {k} (backward)"
                _compare(numeric[k][i], rows, atol, rtol, what, (out, problem.leaves[k]))
    if forward_ad:
        for k in range(len(problem.leaves)):
            for i, matrix in enumerate(_forward(problem, k)):
                what = f"output {i} with respect to input {k}"
                _compare(numeric[k][i], matrix, atol, rtol, what, (outs[i], problem.leaves[k]),
                         forward=True)


def _check_fast(problem, outs, eps, atol, rtol, backward_ad, forward_ad) -> None:
    """u^T J v for random unit vectors; where that fails the whole Jacobian says which entry."""
    try:
        _check_projections(problem, outs, eps, atol, rtol, backward_ad, forward_ad)
    except GradcheckError as error:
        try:
            _check_slow(problem, outs, eps, atol, rtol, backward_ad, forward_ad)
        except GradcheckError as found:
            raise GradcheckError(f"{found}\n  (found in fast mode)") from None
        raise GradcheckError(
            f"{error}\n  Fast gradcheck failed but element-wise differences are small: slow mode "
            "(fast_mode=False) passes"
        ) from None


def _check_projections(problem, outs, eps, atol, rtol, backward_ad, forward_ad) -> None:
    random = np.random.default_rng(0)
    values = [_value(t) for t in problem.leaves]
    directions = []
    for v in values:
        d = random.normal(size=_as_real(v).size)
        directions.append(d / max(np.linalg.norm(d), 1e-30))
    weights = []
    for o in outs:
        w = random.normal(size=_as_real(_value(o)).size)
        weights.append(w / max(np.linalg.norm(w), 1e-30))
    for k in range(len(values)):
        sides = []
        for step in (eps, -eps):
            arrays = list(values)
            arrays[k] = _from_real(_as_real(values[k]) + step * directions[k], values[k])
            sides.append(problem.at(arrays))
        _same_kind(*sides, eps)
        pushed = _push(problem, k, directions[k]) if forward_ad else ()
        for i, (a, b) in enumerate(zip(*sides)):
            expected = np.atleast_1d(weights[i] @ ((_as_real(a) - _as_real(b)) / (2 * eps)))
            if backward_ad and outs[i].requires_grad:
                seed = _from_real(weights[i], _value(outs[i]))
                g = _pull(problem, outs[i], seed)[k]
                got = 0.0 if g is None else _as_real(_value(g)) @ directions[k]
                _compare(
                    expected,
                    np.atleast_1d(got),
                    atol,
                    rtol,
                    f"output {i} with respect to input {k} (backward, fast mode)",
                )
            if forward_ad:
                got = weights[i] @ pushed[i]
                _compare(
                    expected,
                    np.atleast_1d(got),
                    atol,
                    rtol,
                    f"output {i} with respect to input {k} (fast mode)",
                    forward=True,
                )


def _check_repeat(problem, outs, tolerance: float) -> None:
    """Backward twice must give the same gradients."""
    for i, out in enumerate(outs):
        if not out.requires_grad:
            continue
        seed = np.random.default_rng(1).normal(size=out.shape).astype(_value(out).dtype)
        first, second = _pull(problem, out, seed), _pull(problem, out, seed)
        for k, (a, b) in enumerate(zip(first, second)):
            if a is not None and np.abs(_value(a) - _value(b)).max(initial=0) > tolerance:
                raise GradcheckError(
                    f"Backward is not reentrant, i.e., running backward with same input and "
                    f"grad_output multiple times gives different values: output {i}, input {k}"
                )


def _check_dtypes(problem, outs) -> None:
    for out in outs:
        if out.requires_grad:
            for k, g in enumerate(_pull(problem, out, np.ones(out.shape, _value(out).dtype))):
                leaf = problem.leaves[k]
                if g is not None and (
                    g.dtype is not leaf.dtype or tuple(g.shape) != tuple(leaf.shape)
                ):
                    raise GradcheckError(
                        f"gradient of input {k} is {g.dtype}{list(g.shape)}, the input is "
                        f"{leaf.dtype}{list(leaf.shape)}"
                    )


def _check_batched(problem, outs) -> None:
    """A batch of cotangents at once equals one by one."""
    for i, out in enumerate(outs):
        if not out.requires_grad:
            continue
        random = np.random.default_rng(2)
        seeds = random.normal(size=(2, *out.shape)).astype(_value(out).dtype)
        together = grad(
            [out],
            problem.leaves,
            [make(seeds)],
            retain_graph=True,
            allow_unused=True,
            is_grads_batched=True,
        )
        for k, t in enumerate(together):
            for b in range(2):
                single = _pull(problem, out, seeds[b])[k]
                if (
                    (t is None) != (single is None)
                    or t is not None
                    and not np.allclose(_value(t)[b], _value(single), equal_nan=True)
                ):
                    raise GradcheckError(
                        f"batched gradients disagree: output {i}, input {k}, entry {b}\n"
                        f"  got:\n{None if t is None else _show(_value(t)[b])}\n"
                        f"  expected:\n{None if single is None else _show(_value(single))}"
                    )


def _check_batched_forward(problem) -> None:
    """A batch of tangents at once equals one by one."""
    random = np.random.default_rng(4)
    for k, leaf in enumerate(problem.leaves):
        value = _value(leaf)
        seeds = random.normal(size=(2, *_as_real(value).shape))
        batch = np.stack([_from_real(s, value) for s in seeds])
        with Vmap(2) as level:
            moved = _tangents(problem, k, level.wrap(make(batch)))
            together = [_value(level.stacked(t)) for t in moved]
        for b, seed in enumerate(seeds):
            for i, single in enumerate(_push(problem, k, seed)):
                if not np.allclose(_as_real(together[i][b]), single, equal_nan=True):
                    raise GradcheckError(
                        f"batched forward-mode derivatives disagree: output {i}, input {k}, "
                        f"entry {b}"
                    )


def _check_undefined(problem, outs) -> str:
    """Gradients that are zero or missing give gradients that are zero or missing.

    Raises where backward cannot do without one; returns what is wrong with the results.
    """
    tracked = [o for o in outs if o.requires_grad]
    choices = [tracked]
    if len(tracked) > 1:
        choices += [[o for o in tracked if o is not missing] for missing in tracked]
    for chosen in choices:
        zeros = [ops.zeros_like(o.detach()) for o in chosen]
        try:
            found = grad(chosen, problem.leaves, zeros, retain_graph=True, allow_unused=True)
        except (RuntimeError, TypeError, AttributeError) as error:
            raise GradcheckError(
                "Expected backward function to handle undefined output grads: it failed with "
                f"{len(chosen)} of {len(tracked)} output gradients defined: {error}"
            ) from error
        for k, g in enumerate(found):
            if g is not None and not (_value(g) == 0).all():
                return ("Expected all input grads to be undefined or zero when all output grads "
                        f"are undefined or zero: input {k} with {len(chosen)} of {len(tracked)} "
                        "output gradients defined")
    return ""


def _check_undefined_forward(problem) -> None:
    """Tangents that are zero give tangents that are zero or missing."""
    for k, leaf in enumerate(problem.leaves):
        for i, moved in enumerate(_push(problem, k, np.zeros_like(_as_real(_value(leaf))))):
            if not (moved == 0).all():
                raise GradcheckError(
                    "Expected all output tangents to be undefined or zero when all input tangents "
                    f"are zero: output {i}, input {k}"
                )


def gradcheck(func, inputs, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
              raise_exception: bool = True, nondet_tol: float = 0.0,
              check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
              check_batched_grad: bool = False, check_batched_forward_grad: bool = False,
              check_forward_ad: bool = False, check_backward_ad: bool = True,
              fast_mode: bool = False, masked=None) -> bool:
    """Compare derivatives of `func` at `inputs` with finite differences."""
    assert check_forward_ad or check_backward_ad, (
        "Expected at least one of check_forward_ad or check_backward_ad to be True"
    )
    assert check_backward_ad or not check_batched_grad, (
        "Setting check_batched_grad=True requires check_backward_ad to be True"
    )
    assert check_forward_ad or not check_batched_forward_grad, (
        "Setting check_batched_forward_grad=True requires check_forward_ad to be True"
    )
    func, inputs, _ = _on_carriers(func, inputs)
    try:
        problem = _Problem(func, inputs)
        problem.check_inputs()
        outs = problem.run()
        if check_backward_ad and not any(o.requires_grad for o in outs):
            numeric = [_numeric(problem, k, eps) for k in range(len(problem.leaves))]
            if any(np.abs(m).max(initial=0) > atol for ms in numeric for m in ms):
                raise GradcheckError("Numerical gradient for function expected to be zero")
            return True
        wrong = ""
        if check_backward_ad and check_undefined_grad:
            wrong = _check_undefined(problem, outs)
        check = _check_fast if fast_mode else _check_slow
        check(problem, outs, eps, atol, rtol, check_backward_ad, check_forward_ad)
        if check_forward_ad:
            if check_undefined_grad:
                _check_undefined_forward(problem)
            if check_batched_forward_grad:
                _check_batched_forward(problem)
        if check_backward_ad:
            _check_repeat(problem, outs, nondet_tol)
            if check_grad_dtypes:
                _check_dtypes(problem, outs)
            if check_batched_grad:
                _check_batched(problem, outs)
            if wrong:
                raise GradcheckError(wrong)
        return True
    except GradcheckError:
        if raise_exception:
            raise
        return False


def gradgradcheck(func, inputs, grad_outputs=None, *, eps: float = 1e-6, atol: float = 1e-5,
                  rtol: float = 1e-3, gen_non_contig_grad_outputs: bool = False,
                  raise_exception: bool = True, nondet_tol: float = 0.0,
                  check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
                  check_batched_grad: bool = False, check_fwd_over_rev: bool = False,
                  check_rev_over_rev: bool = True, fast_mode: bool = False,
                  masked: bool = False) -> bool:
    """Compare second derivatives of `func` at `inputs` with finite differences of the first."""
    assert check_fwd_over_rev or check_rev_over_rev, (
        "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True"
    )
    for name, asked in (
        ("check_undefined_grad", check_undefined_grad),
        ("check_batched_grad", check_batched_grad),
    ):
        assert check_rev_over_rev or not asked, (
            f"Setting {name}=True requires check_rev_over_rev to be True"
        )
    func, inputs, grad_outputs = _on_carriers(func, inputs, grad_outputs)
    problem = _Problem(func, inputs)
    outs = problem.run()
    if grad_outputs is None:
        grad_outputs = _random_seeds(outs, gen_non_contig_grad_outputs)
    return gradcheck(
        functools.partial(_first_derivatives, problem),
        (*problem.inputs, *_tensors(grad_outputs)), eps=eps, atol=atol, rtol=rtol,
        raise_exception=raise_exception, nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad, check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev, fast_mode=fast_mode, masked=masked)


def _random_seeds(outs, apart: bool) -> list:
    """A random gradient for each output; `apart`: with gaps in memory."""
    random, found = np.random.default_rng(3), []
    for o in outs:
        shape, dtype = _value(o).shape, _value(o).dtype
        seed = random.normal(size=shape)
        if np.iscomplexobj(_value(o)):
            seed = seed + 1j * random.normal(size=shape)
        array = np.asarray(seed, dtype=dtype)
        if apart and array.ndim:
            array = np.repeat(array, 2, -1)[..., ::2]
        found.append(make(array).requires_grad_())
    return found


def _first_derivatives(problem: _Problem, *args) -> tuple:
    """Gradients of the inputs, as a function of the inputs and of the outputs' gradients."""
    count = len(problem.inputs)
    varied = [isinstance(p, Tensor) and p.requires_grad for p in problem.inputs]
    given = [_attached(t) if v else t for t, v in zip(args[:count], varied)]
    leaves = [t for t, v in zip(given, varied) if v]
    with enable_grad():
        results = _outputs(problem.func(*given))
        pairs = [(o, s) for o, s in zip(results, args[count:]) if o.requires_grad]
        found = grad([o for o, _ in pairs], leaves, [s for _, s in pairs], create_graph=True,
                     allow_unused=True)
    return tuple(ops.zeros_like(t) if g is None else g for g, t in zip(found, leaves))


def _attached(t: Tensor) -> Tensor:
    """A tensor that takes part in autograd: itself, or a new leaf where it does not."""
    return t if t.requires_grad else make(t._payload).requires_grad_()  # its tangent stays
