"""L-BFGS: directions from the last changes of the gradient, with a line search if wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd.grad_mode import enable_grad, no_grad
from ..core.handle import Tensor
from ..parts.trees import has_parts
from ..table.packets import ops
from .descent import check
from .optimizer import Optimizer, ParamsT, _to_scalar

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """Quasi-Newton steps with a limited memory; `step` wants a closure that recomputes the loss."""

    def __init__(self, params: ParamsT, lr: float | Tensor = 1, max_iter: int = 20,
                 max_eval: int | None = None, tolerance_grad: float = 1e-7,
                 tolerance_change: float = 1e-9, history_size: int = 100,
                 line_search_fn: str | None = None) -> None:
        check(lr)
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        super().__init__(params, dict(
            lr=lr, max_iter=max_iter, max_eval=max_eval, tolerance_grad=tolerance_grad,
            tolerance_change=tolerance_change, history_size=history_size,
            line_search_fn=line_search_fn))
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self) -> list[Tensor]:
        return self.param_groups[0]["params"]

    def _numel(self) -> int:
        return sum(p.numel() * (2 if p.is_complex() else 1) for p in self._params)

    def _gather_flat_grad(self) -> Tensor:
        """All gradients as one vector; a missing one is zero."""
        parts = []
        for p in self._params:
            g = ops.zeros_like(p) if p.grad is None else p.grad
            g = g.to_dense() if has_parts(g) else g
            g = g.reshape(-1)
            parts.append(ops.view_as_real(g).reshape(-1) if g.is_complex() else g)
        return ops.cat(parts, 0)

    def _add_grad(self, step_size, update: Tensor) -> None:
        """Move all parameters along a direction."""
        start = 0
        for p in self._params:
            real = ops.view_as_real(p) if p.is_complex() else p
            count = real.numel()
            real.add_(update[start:start + count].view_as(real) * step_size)
            start += count

    def _clone_param(self) -> list[Tensor]:
        return [p.clone() for p in self._params]

    def _set_param(self, values: list[Tensor]) -> None:
        for p, value in zip(self._params, values):
            p.copy_(value)

    def _directional_evaluate(self, closure: Callable, x: list[Tensor], t, d: Tensor) -> tuple:
        """Loss and gradient at `x + t d`; the parameters are `x` again afterwards."""
        self._add_grad(t, d)
        loss = float(closure())
        flat_grad = self._gather_flat_grad()
        self._set_param(x)
        return loss, flat_grad

    @no_grad()
    def step(self, closure: Callable) -> Any:
        """Up to `max_iter` quasi-Newton steps; returns the loss at the beginning."""
        closure = enable_grad()(closure)
        group = self.param_groups[0]
        lr, search = _to_scalar(group["lr"]), group["line_search_fn"]
        if search not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        original = closure()
        loss, evals = float(original), 1
        state["func_evals"] += 1
        grad = self._gather_flat_grad()
        small = grad.abs().max() <= group["tolerance_grad"]
        if small:
            return original
        memory = _Memory(state, group["history_size"])
        for n in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            first = state["n_iter"] == 1
            memory.direction(grad, first)
            previous_loss = memory.prev_loss = loss
            d = memory.d
            slope = grad.dot(d)
            memory.t = min(1.0, 1.0 / grad.abs().sum()) * lr if first else lr
            if slope > -group["tolerance_change"]:
                break
            used = 0
            if search is not None:
                start = self._clone_param()
                loss, grad, memory.t, used = _strong_wolfe(
                    lambda x, t, d: self._directional_evaluate(closure, x, t, d), start, memory.t,
                    d, loss, grad, slope, max_ls=group["max_eval"] - evals)
                self._add_grad(memory.t, d)
                small = grad.abs().max() <= group["tolerance_grad"]
            else:
                self._add_grad(memory.t, d)
                if n != group["max_iter"]:  # nobody asks for the loss after the last one
                    loss, used = float(closure()), 1
                    grad = self._gather_flat_grad()
                    small = grad.abs().max() <= group["tolerance_grad"]
            evals += used
            state["func_evals"] += used
            if (n == group["max_iter"] or evals >= group["max_eval"] or small
                    or (d * memory.t).abs().max() <= group["tolerance_change"]
                    or abs(loss - previous_loss) < group["tolerance_change"]):
                break
        memory.keep(state)
        return original


class _Memory:
    """The last changes of parameters and gradients, and the direction that follows from them."""

    NAMES = ("d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss")

    def __init__(self, state: dict, size: int) -> None:
        for name in self.NAMES:
            setattr(self, name, state.get(name))
        self.state, self.size = state, size

    def keep(self, state: dict) -> None:
        """Put everything back into the optimizer's state."""
        state.update({name: getattr(self, name) for name in self.NAMES})

    def direction(self, grad: Tensor, first: bool) -> None:
        """The next direction (`d`) from a new gradient."""
        if first:
            self.d, self.H_diag = -grad, 1
            self.old_dirs, self.old_stps, self.ro = [], [], []
        else:
            self._remember(grad - self.prev_flat_grad, self.d * self.t)
            alphas = self.state.setdefault("al", [None] * self.size)
            q = -grad
            for i in reversed(range(len(self.ro))):
                alphas[i] = self.old_stps[i].dot(q) * self.ro[i]
                q = q - self.old_dirs[i] * alphas[i]
            q = q * self.H_diag
            for i in range(len(self.ro)):
                beta = self.old_dirs[i].dot(q) * self.ro[i]
                q = q + self.old_stps[i] * (alphas[i] - beta)
            self.d = q
        self.prev_flat_grad = grad.clone()

    def _remember(self, y: Tensor, s: Tensor) -> None:
        curvature = y.dot(s)
        if not curvature > 1e-10:
            return
        for values, new in ((self.old_dirs, y), (self.old_stps, s), (self.ro, 1.0 / curvature)):
            if len(values) == self.size:
                values.pop(0)
            values.append(new)
        self.H_diag = curvature / y.dot(y)


def _cubic_interpolate(x1, f1, g1, x2, f2, g2, bounds=None):
    """The minimum of the cubic through two points with given slopes, kept within bounds."""
    low, high = bounds if bounds is not None else (x1, x2) if x1 <= x2 else (x2, x1)
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if not square >= 0:
        return (low + high) / 2.0
    d2 = square.sqrt()
    if x1 > x2:
        x1, g1, x2, g2 = x2, g2, x1, g1
    least = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    return min(max(least, low), high)


def _moved_in(t, t1, t2, stuck: bool) -> tuple:
    """A step length between two others, and whether it is too close to one of them.

    Once is fine; the second time, and outside of the interval, it is moved in.
    """
    left, right = min(t1, t2), max(t1, t2)
    margin = 0.1 * (right - left)
    if not min(right - t, t - left) < margin:
        return t, False
    if not (stuck or t >= right or t <= left):
        return t, True
    return right - margin if abs(t - right) < abs(t - left) else left + margin, False


def _strong_wolfe(obj_func, x, t, d, f, g, gtd, c1=1e-4, c2=0.9, tolerance_change=1e-9, max_ls=25):
    """A step length that satisfies the strong Wolfe conditions: (loss, gradient, length, calls).

    First an interval that contains one is found, then it is narrowed.
    """
    longest = d.abs().max()
    start = (0, f, g.clone(), gtd)  # (length, loss, gradient, slope)

    def evaluate(t):
        loss, grad = obj_func(x, t, d)
        return t, loss, grad, grad.dot(d)

    previous, here = start, evaluate(t)
    calls, rounds, done = 1, 0, False
    while rounds < max_ls:
        t, loss, _, slope = here
        if loss > f + c1 * t * gtd or rounds > 1 and loss >= previous[1]:
            bracket = [previous, here]
            break
        if abs(slope) <= -c2 * gtd:
            bracket, done = [here], True
            break
        if slope >= 0:
            bracket = [previous, here]
            break
        bounds = (t + 0.01 * (t - previous[0]), t * 10)
        longer = _cubic_interpolate(previous[0], previous[1], previous[3], t, loss, slope, bounds)
        previous, here = here, evaluate(longer)
        calls, rounds = calls + 1, rounds + 1
    else:
        bracket = [start, here]

    stuck = False
    low, high = (0, 1) if bracket[0][1] <= bracket[-1][1] else (1, 0)
    while not done and rounds < max_ls:
        (t1, f1, _, s1), (t2, f2, _, s2) = bracket
        if abs(t2 - t1) * longest < tolerance_change:
            break
        t, stuck = _moved_in(_cubic_interpolate(t1, f1, s1, t2, f2, s2), t1, t2, stuck)
        here = evaluate(t)
        calls, rounds = calls + 1, rounds + 1
        if here[1] > f + c1 * t * gtd or here[1] >= bracket[low][1]:
            bracket[high] = here
            low, high = (0, 1) if bracket[0][1] <= bracket[1][1] else (1, 0)
            continue
        if abs(here[3]) <= -c2 * gtd:
            done = True
        elif here[3] * (bracket[high][0] - bracket[low][0]) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = here
    t, loss, grad, _ = bracket[low]
    return loss, grad, t, calls
