"""What an entry says about derivatives, sorted: gradients, pushforward, zeros, ignored inputs.

Entries say it in attributes (`grad`, `push`, `constant`, `nondiff`); the classic layout, and
`dispatch`, in one mapping whose keys are input or output names.  Both become `Derivative`.
Read next: `expression.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .. import errors

DEFAULT = "Default"  # stands for every backend that is not listed
DEVICES = {"cpu": "AutogradCPU", "cuda": "AutogradCUDA", "meta": "AutogradMeta"}
DISPATCH_KEYS = (DEFAULT, *DEVICES.values(), "AutogradNestedTensor", "AutogradHIP", "AutogradHPU",
                 "AutogradIPU", "AutogradLazy", "AutogradMAIA", "AutogradMPS", "AutogradMTIA",
                 "AutogradPrivateUse1", "AutogradPrivateUse2", "AutogradPrivateUse3", "AutogradVE",
                 "AutogradXLA", "AutogradXPU")
NON_DIFFERENTIABLE = "non_differentiable"
ZERO = "zeros_like({})"  # the classic form of a constant
AUTOMATIC = ("auto_linear", "auto_element_wise")


@dataclass(slots=True)
class Derivative:
    """The derivative of an operator, for one dispatch key."""

    grad: dict[str, str] = field(default_factory=dict)  # input name(s) -> formula
    push: dict[str, str] = field(default_factory=dict)  # output name(s) -> formula
    constant: tuple[str, ...] = ()  # inputs whose derivative is zero
    nondiff: tuple[str, ...] = ()  # inputs that are ignored

    def names(self) -> set[str]:
        """The inputs that have a derivative."""
        return {n for key in self.grad for n in split(key)} | set(self.constant)


def split(key: str) -> tuple[str, ...]:
    """`"self, other"` -> `("self", "other")`."""
    return tuple(name.strip() for name in key.split(","))


def derivatives_of(overload, others: dict[str, str] | None = None) -> dict[str, Derivative]:
    """Dispatch key -> what the entry says for it; `others` go before its own formulas."""
    op = overload.op
    push = {} if op.push is None else op.push
    if not isinstance(push, dict):
        push = {overload.output_names[0]: push}
    own = Derivative(dict(op.grad), push, tuple(op.constant), tuple(op.nondiff))
    if others:
        given = {n for key in others for n in split(key)}
        own.grad = {k: v for k, v in own.grad.items() if not given & {*split(k)}} | others
        own.constant = tuple(n for n in own.constant if n not in given)
    found = {DEFAULT: own} if own != Derivative() or not op.dispatch else {}
    for key, mapping in op.dispatch.items():
        if key not in DISPATCH_KEYS:
            near = errors.close_matches(key, DISPATCH_KEYS, 3, 0.5)
            raise errors.FormulaError(errors.text(
                f"unknown dispatch key '{key}'", f"entry: {overload.schema}",
                f"use one of {', '.join(near or DISPATCH_KEYS)}"))
        found[key] = sort(overload, mapping)
    return found


def sort(overload, mapping: dict[str, str]) -> Derivative:
    """The derivative that a mapping of the classic layout says: keys name inputs or outputs."""
    parts = Derivative()
    arguments, outputs = overload.schema.names, overload.output_names
    for key, text in mapping.items():
        names = split(key)
        strange = [n for n in names if n not in arguments and n not in outputs]
        if strange:
            near = errors.close_matches(strange[0], [*arguments, *outputs], 1)
            raise errors.FormulaError(errors.text(
                f"'{strange[0]}' is neither an input nor an output of the operator",
                [f"entry: {overload.schema}", f"formula: {key}: {text}"],
                f"did you mean '{near[0]}'?" if near
                else f"the names are {', '.join([*arguments, *outputs])}"))
        if names[0] not in arguments:
            parts.push[key] = text
        elif text.strip() == NON_DIFFERENTIABLE:
            parts.nondiff += names
        elif len(names) == 1 and _is_zero(names[0], text):
            parts.constant += names
        else:
            parts.grad[key] = text
    return parts


def _is_zero(name: str, text: str) -> bool:
    text = text.replace(" ", "")
    return text in {form for x in (name, "grad") for form in (ZERO.format(x), f"{x}.zeros_like()")}


def mapping_of(parts: Derivative, order: list[str]) -> dict[str, str]:
    """The classic mapping of parts: gradients in the order of the arguments, then outputs."""
    inputs = dict(parts.grad)
    inputs |= {name: ZERO.format(name) for name in parts.constant}
    inputs |= dict.fromkeys(parts.nondiff, NON_DIFFERENTIABLE)
    keys = sorted(inputs, key=lambda key: order.index(split(key)[0]))
    return {**{key: inputs[key] for key in keys}, **parts.push}
