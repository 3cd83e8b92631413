"""Selective checkpoints: results of operators that are kept, by a policy, and given back when the
function runs again.

In a capture the policy's answers are wishes on nodes for the partitioner.  The same way of seeing
operators lists them for `debug=True`.  Read next: `checkpoint.py`.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable

import numpy as np

from .. import errors
from ..core.handle import Tensor, cell_of, make
from ..core.op import families
from ..core.overload import OpOverload, overload_of
from ..core.stack import interpret
from ..errors import CheckpointError
from ..pytree import tree_map
from ..threads.blocks import tied
from ..threads.state import count, state


def facts_of(tensors: list[Tensor]) -> list[tuple]:
    """What two runs must agree on."""
    return [
        (t._payload.shape, t._payload.dtype,
         "cpu" if type(t._payload) is np.ndarray else str(t.device))
        for t in tensors
    ]


def shown(fact: tuple) -> str:
    return f"shape {list(fact[0])}, dtype {fact[1]}, device {fact[2]}"


class CheckpointPolicy(enum.Enum):
    """What happens to the result of an operator inside of a selective checkpoint."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_SAVED = (
    CheckpointPolicy.MUST_SAVE,
    CheckpointPolicy.PREFER_SAVE,
    CheckpointPolicy.MUST_CPU_OFFLOAD,
    CheckpointPolicy.PREFER_CPU_OFFLOAD,
)
SAC_IGNORED_OPS = {overload_of(families["detach"][0])}


class SelectiveCheckpointContext:
    """First argument of a policy: is this the second run, and what did the operator give?"""

    def __init__(self, *, is_recompute: bool, op_output=None):
        self.is_recompute, self.op_output = is_recompute, op_output


class Hook:
    """Sees every operator of one level while it is entered."""

    call: Callable  # (overload, flat arguments, level, its number among calls of it) -> results

    def __enter__(self):
        self.level = 0 if state.observers.checkpoint is None else state.observers.checkpoint.level
        self.before, state.observers.cache = state.observers.cache, self
        self.counts: dict = defaultdict(int)
        count("ACTIVE", 1)
        return self

    @tied
    def __exit__(self, *exc):
        state.observers.cache = self.before
        count("ACTIVE", -1)

    def run(self, ov, flat: tuple, level: int):
        if level != self.level or ov in SAC_IGNORED_OPS:
            return self.outer(ov, flat, level)
        number = self.counts[ov]
        self.counts[ov] += 1
        return self.call(ov, flat, level, number)

    def outer(self, ov, flat: tuple, level: int):
        return (
            interpret(ov, flat, level) if self.before is None else self.before.run(ov, flat, level)
        )


def _stored(out):
    return tree_map(lambda v: _Value(v) if isinstance(v, Tensor) else v, out)


class _Keeping(Hook):
    """First run: keeps what the policy says."""

    def __init__(self, policy, storage: dict):
        self.policy, self.storage = policy, storage

    def call(self, ov, flat, level, number):
        out = self.outer(ov, flat, level)
        context = SelectiveCheckpointContext(is_recompute=False, op_output=out)
        answer = self.policy(context, ov, *flat)
        if answer is True or answer in _SAVED:
            self.storage[ov, number] = _stored(out)
        else:
            self.storage[ov, number] = None
        return out


class _Kept(Hook):
    """Second run: gives back what was kept."""

    def __init__(self, storage: dict, mutable: bool):
        self.storage, self.mutable = storage, mutable

    def call(self, ov, flat, level, number):
        try:
            found = self.storage[ov, number]
        except KeyError:
            raise CheckpointError(
                errors.text(
                    f"{ov} was called {number + 1} times when recomputing, but not in the forward "
                    f"pass ({errors.user_line(2)})",
                    cure="the function must compute the same when called again",
                )
            ) from None
        if found is None:
            return self.outer(ov, flat, level)
        return tree_map(lambda v: v.get(self.mutable) if isinstance(v, _Value) else v, found)


class _Value:
    """A kept result; written to since?"""

    __slots__ = ("tensor", "version")

    def __init__(self, t: Tensor):
        self.tensor = make(t._payload)
        self.tensor._cell = cell_of(t)
        self.version = t._cell.version

    def get(self, mutable: bool) -> Tensor:
        if not mutable and self.tensor._cell.version != self.version:
            raise CheckpointError(
                errors.text(
                    "Tensor cached during selective activation checkpoint has been mutated "
                    f"({errors.user_line(2)})",
                    f"tensor: {self.tensor.dtype.name}{list(self.tensor.shape)}",
                    "clone() before writing, or pass allow_cache_entry_mutation=True",
                )
            )
        again = make(self.tensor._payload)
        again._cell = self.tensor._cell
        return again


def create_selective_checkpoint_contexts(
    policy_fn_or_list, allow_cache_entry_mutation: bool = False
) -> tuple:
    """Contexts for `checkpoint(context_fn=...)` that keep the results of some operators."""
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, OpOverload):
                raise errors.BadValue(
                    errors.text(
                        "Expected op in `op_list` to be an OpOverload but got: "
                        f"{op} of type {type(op).__name__} ({errors.user_line()})",
                        cure="name the overload: ops.aten.mm.default instead of ops.aten.mm",
                    )
                )
        chosen = list(policy_fn_or_list)

        def policy(context, op, *args, **kwargs):
            keep = any(op is c for c in chosen)
            return CheckpointPolicy.MUST_SAVE if keep else CheckpointPolicy.PREFER_RECOMPUTE

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: dict = {}
    return _Keeping(policy, storage), _Kept(storage, allow_cache_entry_mutation)


def keep_random(context, op, *args, **kwargs) -> bool:
    """In a capture random numbers are drawn when the graph runs: once."""
    return op.is_random


class Tagging(Hook):
    """In a capture: writes the policy's answers down for the partitioner, which decides."""

    def __init__(self, capture, policy):
        self.capture, self.policy = capture, policy

    def __enter__(self):
        super().__enter__()
        self.level = self.capture.level
        self.region = self.capture.region(CheckpointPolicy.PREFER_RECOMPUTE)
        self.fresh = self.region.__enter__()
        return self

    @tied
    def __exit__(self, *exc):
        self.region.__exit__(None, None, None)
        super().__exit__(*exc)

    def call(self, ov, flat, level, number):
        begin = len(self.fresh)
        state.observers.cache = self.before  # what it is made of is not asked for
        try:
            out = self.outer(ov, flat, level)
        finally:
            state.observers.cache = self
        if self.policy is not None:
            context = SelectiveCheckpointContext(is_recompute=False, op_output=out)
            wish = self.policy(context, ov, *flat)
            if isinstance(wish, bool):
                wish = _WISHES[wish]
            for node in self.fresh[begin:]:
                node.meta["recompute"] = wish
        return out


_WISHES = CheckpointPolicy.PREFER_RECOMPUTE, CheckpointPolicy.MUST_SAVE


class _Listing(Hook):
    """Writes down the operators of a run."""

    def __init__(self):
        self.calls: list = []

    def __enter__(self):
        self.calls.clear()
        return super().__enter__()

    def call(self, ov, flat, level, number):
        out = self.outer(ov, flat, level)
        facts = facts_of([out]) if isinstance(out, Tensor) else ()
        self.calls.append((str(ov), errors.place(), facts))
        return out


class Traces:
    """The operators of both runs, for `debug=True`."""

    def __init__(self):
        self.runs = _Listing(), _Listing()

    def lines(self) -> list[str]:
        text = []
        for title, run in zip(("forward", "recomputation"), self.runs):
            text.append(f"Operations executed during {title}:")
            for name, where, facts in run.calls:
                shape = f" -> {shown(facts[0])}" if facts else ""
                text.append(f"  {name}{shape} ({errors.describe_place(where)})")
        return text
