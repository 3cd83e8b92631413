"""`Distribution`, the base of all, and `ExponentialFamily`.

A distribution says which parameters it has (`arg_constraints`: names and the regions where they
lie), how to draw, its density and its moments.  The rest follows and is here: keeping parameters
broadcast against one another, `expand`, `repr`, checks of parameters and samples.  Read next:
`location.py`, `positive.py`, `unit.py`, `discrete.py`, `multivariate.py`, `wrappers.py`.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence

from .. import errors
from ..array.size import Size
from ..autograd.grad_mode import no_grad
from ..core.handle import Tensor
from ..func import jvp
from . import constraints
from .constraints import Constraint, is_dependent
from .utils import broadcast_all, everywhere, lazy_property, logits_to_probs, probs_to_logits

Value = Tensor | float


def checked(method: Callable) -> Callable:
    """A method of a value that must lie in the support, if arguments are validated."""

    @functools.wraps(method)
    def call(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return method(self, value)

    return call


class _Undefined(property):
    """A property that a distribution need not have."""


def _missing(name: str):
    """A method, or the function of a property, that a distribution need not have."""

    def refuse(self, *args, **kwargs):
        raise errors.named(errors.NoFormula, type(self).__name__,
                           f"{name} is not defined for this distribution")

    refuse.__name__ = name
    return refuse


class Distribution:
    """A probability distribution over events of shape `event_shape`, one for each batch element.

    Parameters and samples are checked if `validate_args` is True; None means the default, which
    `set_default_validate_args` changes.  Under `vmap` all examples are checked; while a function is
    being captured there are no values, and nothing is.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    def __init__(self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (),
                 validate_args: bool | None = None) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()
        super().__init__()

    def _begin(self, validate_args: bool | None, **parameters: Value) -> None:
        """Keep parameters, broadcast against one another, whose common shape is the batch shape."""
        values = broadcast_all(*parameters.values())
        self.__dict__.update(zip(parameters, values))
        Distribution.__init__(self, values[0].shape, validate_args=validate_args)

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check their arguments if they are not told."""
        if value not in (True, False):
            raise errors.named(errors.BadValue, "set_default_validate_args",
                               f"expected True or False, got {value!r}")
        Distribution._validate_args = value

    # --- what a distribution has ------------------------------------------------------------------

    batch_shape = property(lambda self: self._batch_shape, doc="Shape of the batch.")
    event_shape = property(lambda self: self._event_shape, doc="Shape of one event.")
    arg_constraints: dict[str, Constraint] = _Undefined(_missing("arg_constraints"))
    support: Constraint = _Undefined(_missing("support"))
    mean: Tensor = _Undefined(_missing("mean"))
    mode: Tensor = _Undefined(_missing("mode"))
    variance: Tensor = _Undefined(_missing("variance"))
    log_prob = _missing("log_prob")
    cdf = _missing("cdf")
    icdf = _missing("icdf")
    rsample = _missing("rsample")
    entropy = _missing("entropy")
    enumerate_support = _missing("enumerate_support")

    @property
    def stddev(self) -> Tensor:
        """The root of the variance."""
        return self.variance.sqrt()

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return self.entropy().exp()

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Numbers drawn without history, of shape sample_shape + batch_shape + event_shape."""
        with no_grad():
            return self.rsample(sample_shape)

    def sample_n(self, n: int) -> Tensor:
        """`sample((n,))`, the older spelling."""
        warnings.warn("sample_n(n) is the older spelling of sample((n,))", UserWarning,
                      stacklevel=2)
        return self.sample(Size((n,)))

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None):
        """The same distribution with a larger batch; parameters are expanded, not copied."""
        ours = next(c for c in type(self).__mro__ if c.__module__.startswith(__package__ + "."))
        new = self._get_checked_instance(ours, _instance)
        batch_shape = Size(batch_shape)
        known = {}  # the parameters of base classes too: a Chi2 keeps those of a Gamma
        for owner in reversed(type(self).__mro__):
            found = owner.__dict__.get("arg_constraints")
            known |= found if isinstance(found, dict) else {}
        known |= _constraints_of(self)
        for name, value in self.__dict__.items():
            if name in known and isinstance(value, Tensor):
                events = known[name].event_dim
                new.__dict__[name] = value.expand(batch_shape + value.shape[value.ndim - events:])
            elif not isinstance(getattr(type(self), name, None), lazy_property):
                new.__dict__.setdefault(name, value)
        new._batch_shape, new._event_shape = batch_shape, self._event_shape
        new._expanded(batch_shape)
        new._validate_args = self._validate_args
        return new

    def _expanded(self, batch_shape: Size) -> None:
        """For subclasses: expand also what is no parameter."""

    # --- checks -----------------------------------------------------------------------------------

    def _validate_parameters(self) -> None:
        if isinstance(getattr(type(self), "arg_constraints", None), _Undefined):
            warnings.warn(f"{type(self).__name__} has no arg_constraints; define them (as {{}} if "
                          "there are none), or switch the check of parameters off with "
                          "validate_args=False", stacklevel=4)
        for name, constraint in _constraints_of(self).items():
            lazy = name not in self.__dict__ and isinstance(
                getattr(type(self), name, None), lazy_property)
            if is_dependent(constraint) or lazy:
                continue
            value = getattr(self, name)
            if not everywhere(constraint.check(value)):
                raise errors.named(
                    errors.BadValue, type(self).__name__,
                    f"parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) has "
                    f"values outside of {constraint!r}", [f"{self!r}", f"{name}: {value}"],
                    "constrain the parameter, for instance with softplus, or pass "
                    "validate_args=False")

    def _validate_sample(self, value: Tensor) -> None:
        """Refuse a value whose shape does not fit, or that lies outside of the support."""
        def refuse(what, *state):
            cure = "pass validate_args=False to compute anyway" if state else ""
            raise errors.named(errors.BadValue, type(self).__name__, what, state, cure)

        if not isinstance(value, Tensor):
            refuse(f"the value of log_prob and the like must be a tensor, got "
                   f"{type(value).__name__}")
        start, event = value.ndim - len(self._event_shape), self._event_shape
        if value.shape[max(start, 0):] != event:
            refuse(f"the last dims of a value of shape {tuple(value.shape)} are not the event "
                   f"shape {tuple(event)}")
        expected = self._batch_shape + event
        for i, j in zip(reversed(value.shape), reversed(expected)):
            if i != 1 and j != 1 and i != j:
                refuse(f"a value of shape {tuple(value.shape)} cannot be broadcast with batch "
                       f"shape + event shape {tuple(expected)}")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(f"{type(self).__name__} has no support; define it, or switch the check "
                          "of samples off with validate_args=False", stacklevel=4)
            return
        if not everywhere(support.check(value)):
            refuse(f"the value ({type(value).__name__} of shape {tuple(value.shape)}) is not in "
                   f"the support {support!r}", f"{self!r}", f"value: {value}")

    def _extended_shape(self, sample_shape: Sequence[int] = Size()) -> Size:
        """The shape of samples."""
        return Size(sample_shape) + self._batch_shape + self._event_shape

    def _get_checked_instance(self, cls: type, _instance: Distribution | None = None):
        """A blank instance for `expand`; refused if a subclass has an `__init__` of its own."""
        if _instance is None and type(self).__init__ is not cls.__init__:
            raise errors.named(
                errors.NoFormula, type(self).__name__,
                f"a subclass of {cls.__name__} with an __init__ of its own needs its own expand",
                cure="define expand(batch_shape, _instance=None) in the subclass")
        return type(self).__new__(type(self)) if _instance is None else _instance

    def __repr__(self) -> str:
        shown = {n: self.__dict__[n] for n in _constraints_of(self) if n in self.__dict__}
        parts = [f"{n}: {v if v.numel() == 1 else v.size()}" for n, v in shown.items()]
        return f"{type(self).__name__}({', '.join(parts)})"


def _constraints_of(distribution: Distribution) -> dict[str, Constraint]:
    try:
        return distribution.arg_constraints
    except NotImplementedError:
        return {}


class ExponentialFamily(Distribution):
    """A density h(x) exp(<t(x), eta> - A(eta)) with natural parameters eta.

    A subclass gives `_natural_params`, A as `_log_normalizer(*eta)`, and the mean of log h as
    `_mean_carrier_measure`; entropy (and divergence, in `kl.py`) follow.
    """

    _natural_params: tuple[Tensor, ...] = _Undefined(_missing("_natural_params"))
    _mean_carrier_measure: float = _Undefined(_missing("_mean_carrier_measure"))
    _log_normalizer = _missing("_log_normalizer")

    def entropy(self) -> Tensor:
        """A(eta) - <eta, grad A(eta)> - E log h: a derivative of A in the direction eta."""
        eta = tuple(self._natural_params)
        value, slope = jvp(self._log_normalizer, eta, eta)
        return value - slope - self._mean_carrier_measure


class Weighted(Distribution):
    """Probabilities or logits: one is given, the other is computed when it is asked for.

    `is_binary` logits are log odds; others are log weights of the categories in the last dim.
    """

    is_binary = True

    def _given(self, probs, logits) -> str:
        """The name of the one that was given."""
        if (probs is None) == (logits is None):
            raise errors.named(errors.BadValue, type(self).__name__,
                               "exactly one of probs and logits must be given")
        return "logits" if probs is None else "probs"

    @lazy_property
    def logits(self) -> Tensor:
        """Log odds, or log probabilities of the categories."""
        return probs_to_logits(self.probs, self.is_binary)

    @lazy_property
    def probs(self) -> Tensor:
        """Probabilities."""
        return logits_to_probs(self.logits, self.is_binary)

    @property
    def _param(self) -> Tensor:
        """Whichever is there."""
        return self.__dict__.get("probs", self.__dict__.get("logits"))

    @property
    def param_shape(self) -> Size:
        """The shape of probs and logits."""
        return self._param.shape

    def _new(self, *args, **kwargs) -> Tensor:
        return self._param.new(*args, **kwargs)


BINARY = {"probs": constraints.unit_interval, "logits": constraints.real}
CATEGORIES = {"probs": constraints.simplex, "logits": constraints.real_vector}
