"""`Descent`: an optimizer that is given by a formula.

A subclass says what its options are, what state a parameter starts with, and the formula of one
update (`formula.py` has the language).  Everything else follows: steps over many parameters at
once, differentiable steps, steps inside compiled functions, and the function of lists of tensors
that PyTorch has beside each class.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..autograd.grad_mode import _Switch, enable_grad, no_grad
from ..core.handle import Tensor
from ..parts.trees import has_parts
from ..table.packets import ops
from ..threads.blocks import outside
from ..threads.state import fast
from ..threads.state import state as levels
from . import capture, sparse_rows
from .optimizer import Optimizer, _device_dtype_check_for_fused, _get_scalar_dtype
from .update import Row, Rule, apply

SKIPPED = ("params", "param_names", "foreach", "fused", "capturable", "differentiable",
           "has_complex", "has_sparse_grad", "grad_scale", "found_inf", "sparse")


class Descent(Optimizer):
    """Base of the optimizers that update each parameter by a formula."""

    _captured = True
    rule: Rule
    pairs: dict[str, tuple[str, str]] = {}  # option that is a pair -> names of its parts in rules
    constant: tuple[str, ...] = ()  # numbers that compiled steps are built for
    held: tuple[str, ...] = ()  # tensors of a parameter's state, where no option changes them

    @classmethod
    def buffers(cls, group: dict) -> tuple[str, ...]:
        """Names of the tensors of a parameter's state that the formula uses."""
        return cls.held

    def start(self, p: Tensor, group: dict) -> dict:
        """The state before the first step: zeros."""
        return {**{name: counter(0.0, group) for name in self.rule.counters},
                **{name: zeros(p) for name in self.buffers(group)}}

    def rows(self, group: dict) -> list[Row]:
        """What the formula is applied to, for the parameters of a group that have gradients."""
        names, counters = self.buffers(group), self.rule.counters
        out, fused, states = [], group.get("fused"), self.state
        for p, grad in self.with_gradients(group):
            state = states[p]
            if not state:
                if fused:
                    _device_dtype_check_for_fused(p)
                with outside():
                    state.update(self.start(p, group))
            out.append(Row(p, grad, [state[n] for n in names], [state[n] for n in counters]))
        return out

    def with_gradients(self, group: dict) -> list[tuple[Tensor, Tensor]]:
        """The parameters of a group that have a gradient which the formula takes as a whole."""
        return sparse_rows.whole(group) if fast["PARTS"] else with_gradients(group)

    # sparse gradients: see `sparse_rows.py`

    @classmethod
    def sparse_refusal(cls) -> str:
        """What is said of a sparse gradient."""
        return f"{cls.__name__} does not support sparse gradients"

    def check_sparse(self, group: dict) -> None:
        """Refuse sparse gradients, with the options of a group."""
        raise RuntimeError(self.sparse_refusal())

    def sparse_step(self, group: dict, p: Tensor, g: Any) -> None:
        """One step with a sparse gradient that was not refused."""
        sparse_rows.on_rows(self, group, p, g)

    def forgets(self, group: dict) -> dict[str, Any]:
        """The running averages, and by what each shrinks in a step without a gradient."""
        return {}

    def shrinks(self, group: dict) -> bool:
        """Does weight decay shrink a parameter by itself, whatever its gradient is?"""
        return False

    @no_grad()
    def catch_up(self) -> None:
        """Let rows decay for the steps that they have missed, where steps are lazy."""
        sparse_rows.catch_up(self)

    def options(self, group: dict) -> dict:
        """The options that the formula sees."""
        given = {k: group[k] for k in _seen(tuple(self.defaults))}
        for name, parts in self.pairs.items():
            given.update(zip(parts, given.pop(name)))
        return given

    def step(self, closure: Callable | None = None) -> Any:
        """Update all parameters that have a gradient; a closure recomputes the loss first."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        found_inf, scale = (self.__dict__.get(name) for name in ("found_inf", "grad_scale"))
        if found_inf is not None and found_inf.item():
            return loss
        for group in self.param_groups:
            if fast["PARTS"]:
                with _Switch(False):
                    sparse_rows.step(self, group)
            rows = self.rows(group)
            if fast["PARTS"]:
                sparse_rows.on_values(rows)
            if scale is not None:
                with _Switch(group.get("differentiable", False)):
                    for row in rows:
                        row.grad.div_(scale)
            if rows:
                self.update(group, rows)
        return loss

    def update(self, group: dict, rows: list[Row]) -> None:
        """One step of the parameters of a group that have gradients."""
        names, options = self.buffers(group), self.options(group)
        differentiable = group.get("differentiable", False)
        owner = capture.owner()
        if owner is not None:
            options = capture.fed(owner, self, group, options)
            capture.watch(owner, self, group)
        apply(self.rule, names, rows, options, differentiable)

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self.defaults.items():
                group.setdefault(name, value)
            for p in group["params"]:
                values = self.state.get(p) or {}
                for name in self.rule.counters:
                    if name in values and not isinstance(values[name], Tensor):
                        values[name] = counter(float(values[name]), group)


@functools.cache
def _seen(names: tuple[str, ...]) -> list[str]:
    return [name for name in names if name not in SKIPPED]


def with_gradients(group: dict) -> list[tuple[Tensor, Tensor]]:
    """The parameters of a group that have a gradient, with it."""
    if levels.mode:  # a capture wants to know who asks
        return [(p, p.grad) for p in group["params"] if p.grad is not None]
    metas = [(p, p._record) for p in group["params"]]
    return [(p, m.grad) for p, m in metas if m is not None and m.grad is not None]


def functional(cls: type[Descent], lists: dict[str, str], given: dict) -> None:
    """The update of lists of tensors: `given` are the arguments of a function like `adam()`.

    `lists` says which argument holds which part of the state; parameters and gradients come first.
    """
    params, grads = list(given.values())[:2]
    where = {part: given[name] for name, part in lists.items()}
    options = {k: v for k, v in list(given.items())[2:] if k not in lists and k not in SKIPPED}
    names, counters = cls.buffers(options), cls.rule.counters
    for part in counters:
        if not all(isinstance(t, Tensor) for t in where[part]):
            argument = next(k for k, v in lists.items() if v == part)
            raise RuntimeError(f"API has changed, `{argument}` argument must contain a list of "
                               "singleton tensors")
    if fast["PARTS"] and cls.check_sparse is Descent.check_sparse and any(map(has_parts, grads)):
        raise RuntimeError(cls.sparse_refusal())
    rows = [Row(p, g, [where[n][i] for n in names], [where[n][i] for n in counters])
            for i, (p, g) in enumerate(zip(params, grads))]
    if rows:
        with_grad = given.get("differentiable", False)
        apply(cls.rule, names, rows, options, with_grad)


# what constructors share


def check(lr=None, *, name: str = "learning rate", **options) -> None:
    """Refuse a negative learning rate, or other options."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    for label, value in ({} if lr is None else {name: lr}).items() | options.items():
        if not value >= 0.0:
            raise ValueError(f"Invalid {_LABELS.get(label, label)}: {value}")


_LABELS = {
    "eps": "epsilon value", "weight_decay": "weight_decay value", "momentum": "momentum value",
    "alpha": "alpha value", "lr_decay": "lr_decay value", "momentum_decay": "momentum_decay value",
    "initial_accumulator_value": "initial_accumulator_value value",
}


def check_betas(betas: tuple) -> None:
    """Refuse averages that forget nothing or everything."""
    for i, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")


def check_fused(optimizer: Optimizer, fused, foreach, differentiable) -> None:
    """Refuse what cannot go together with `fused`; say that the step scales gradients."""
    if not fused:
        return
    if differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    optimizer._step_supports_amp_scaling = optimizer._need_device_dtype_check_for_fused = True


def counter(value: float, group: dict) -> Tensor:
    """A scalar of a parameter's state."""
    return ops.full([], value, dtype=_get_scalar_dtype(group.get("fused")))


def zeros(p: Tensor) -> Tensor:
    """A tensor of zeros like a parameter."""
    return capture.like(p, 0.0)


def full(p: Tensor, value: float) -> Tensor:
    """A tensor like a parameter; complex ones get the value in both parts."""
    return capture.like(p, complex(value, value) if p.is_complex() else value)
