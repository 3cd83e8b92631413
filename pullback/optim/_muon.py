"""Muon: momentum whose singular values are all brought near one."""

from __future__ import annotations

import math

from ..core.handle import Tensor
from ..table.packets import ops
from .descent import Descent, zeros
from .optimizer import ParamsT
from .update import Row, Rule, apply

__all__ = ["Muon", "muon"]


def _zeropower_via_newtonschulz(grad: Tensor, ns_coefficients: tuple[float, float, float],
                                ns_steps: int, eps: float) -> Tensor:
    """A matrix with the singular vectors of another and singular values near one.

    Each round applies an odd polynomial of degree five to the singular values, in bfloat16.
    """
    if ns_steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if grad.ndim != 2:
        raise ValueError("Input tensor gradient must be a 2D matrix")
    if len(ns_coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = ns_coefficients
    tall = grad.shape[0] > grad.shape[1]
    x = grad.bfloat16()
    x = x.T if tall else x
    x = x / ops.clamp_min(x.norm(), eps)
    for _ in range(ns_steps):
        gram = x @ x.T
        x = ops.addmm(x, ops.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


def _adjust_lr(lr, adjust_lr_fn: str | None, param_shape):
    """The learning rate for a matrix of a shape."""
    rows, columns = param_shape[:2]
    if adjust_lr_fn is None or adjust_lr_fn == "original":
        return lr * math.sqrt(max(1, rows / columns))
    return lr * (0.2 * math.sqrt(max(rows, columns)))


def _formula(p, g, s, o):
    s.momentum_buffer = ops.lerp(s.momentum_buffer, g, 1 - o.momentum)
    change = ops.lerp(g, s.momentum_buffer, o.momentum) if o.nesterov else s.momentum_buffer
    change = _zeropower_via_newtonschulz(change, o.ns_coefficients, o.ns_steps, o.eps)
    return (p * (1 - o.lr * o.weight_decay)
            - change.to(p.dtype) * _adjust_lr(o.lr, o.adjust_lr_fn, p.shape))


class Muon(Descent):
    """Momentum for the matrices of hidden layers, made orthogonal before it is applied."""

    rule = Rule(_formula, counters=(), elementwise=False)
    held = ("momentum_buffer",)
    constant = ("momentum", "eps")

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3, weight_decay: float = 0.1,
                 momentum: float = 0.95, nesterov: bool = True,
                 ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
                 eps: float = 1e-7, ns_steps: int = 5, adjust_lr_fn: str | None = None) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for label, value in {"Learning rate": lr, "momentum": momentum,
                             "weight decay": weight_decay}.items():
            if not value >= 0.0:
                raise ValueError(f"{label} should be >= 0 but is: {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(params, dict(
            lr=lr, weight_decay=weight_decay, momentum=momentum, nesterov=nesterov,
            ns_coefficients=ns_coefficients, eps=eps, ns_steps=ns_steps,
            adjust_lr_fn=adjust_lr_fn))
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError("Muon only supports 2D parameters whereas we found a "
                                     f"parameter with size: {p.size()}")

    def start(self, p: Tensor, group: dict) -> dict:
        if p.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        return {"momentum_buffer": zeros(p)}


def muon(params: list[Tensor], grads: list[Tensor], muon_momentum_bufs: list[Tensor], *,
         foreach: bool | None = None, lr: float, weight_decay: float, momentum: float,
         nesterov: bool, ns_coefficients: tuple[float, float, float], ns_steps: int, eps: float,
         adjust_lr_fn: str | None, has_complex: bool) -> None:
    """One step of Muon on lists of tensors."""
    if foreach:
        raise RuntimeError("Foreach is not supported for Muon yet")
    if has_complex:
        raise ValueError("Complex parameters are not supported")
    options = dict(lr=lr, weight_decay=weight_decay, momentum=momentum, nesterov=nesterov,
                   ns_coefficients=ns_coefficients, ns_steps=ns_steps, eps=eps,
                   adjust_lr_fn=adjust_lr_fn)
    rows = [Row(p, g, [b]) for p, g, b in zip(params, grads, muon_momentum_bufs)]
    apply(Muon.rule, ("momentum_buffer",), rows, options)
