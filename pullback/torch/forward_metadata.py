"""What a function does to its inputs and how its outputs came about, before anything is captured.

`run_functionalized_fw_and_collect_metadata(f, keep_input_mutations=...)(*args)` runs a function on
tensors without data and says, in PyTorch's words: which inputs are written, which outputs are
inputs, views of inputs or of intermediates, and for each result of the graph to be whether it is
a plain tensor or a wrapper, with the number of its first tensor.  Compiled functions do not need
it: a capture finds all of this by itself (`capture.py`, `results.py`).
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..array.fake import fake_like
from ..capture.results import root_of
from ..capture.subclasses import Plan, is_wrapper, parts_of, plan_of
from ..core.handle import Tensor, cell_of, make
from ..memory.views import refresh
from ..pytree import tree_leaves
from ..threads.state import state

OutputType = enum.Enum("OutputType", (
    "non_alias alias_of_input is_input alias_of_intermediate_save_as_output alias_of_intermediate "
    "alias_of_intermediate_base_is_user_output unsafe_view_alias custom_function_view"),
    module=__name__)
MutationType = enum.Enum("MutationType", "NOT_MUTATED MUTATED_IN_GRAPH MUTATED_OUT_GRAPH",
                         module=__name__)


@dataclass(frozen=True)
class InputAliasInfo:
    """What happened to an input."""

    is_leaf: bool
    mutates_data: bool
    mutates_metadata: bool
    requires_grad: bool
    mutations_hidden_from_autograd: bool
    keep_input_mutations: bool

    @property
    def mutation_type(self) -> MutationType:
        """Where the new value is written: nowhere, in the graph or behind it."""
        if not (self.mutates_data or self.mutates_metadata):
            return MutationType.NOT_MUTATED
        inside = self.keep_input_mutations and not self.mutates_metadata and (
            not self.requires_grad or self.mutations_hidden_from_autograd)
        return MutationType.MUTATED_IN_GRAPH if inside else MutationType.MUTATED_OUT_GRAPH


@dataclass(frozen=True)
class OutputAliasInfo:
    """How an output came about; `base_idx` is an input, an intermediate or another output."""

    output_type: OutputType
    raw_type: type
    base_idx: int | None
    requires_grad: bool


@dataclass(frozen=True)
class PlainTensorMeta:
    """A plain tensor among the inputs or outputs of a graph."""

    unwrapped_idx: int


@dataclass(frozen=True)
class SubclassCreationMeta:
    """A wrapper among them, made of `arg_count` tensors from `flat_tensor_start_idx` on."""

    flat_tensor_start_idx: int
    arg_count: int
    attrs: dict
    outer_size: tuple
    outer_stride: tuple
    meta: Any
    original_subclass_type: type


@dataclass
class ViewAndMutationMeta:
    """All of it."""

    input_info: list[InputAliasInfo]
    output_info: list[OutputAliasInfo]
    num_intermediate_bases: int
    keep_input_mutations: bool
    subclass_inp_meta: list
    subclass_fw_graph_out_meta: list
    static_input_indices: list[int] = field(default_factory=list)

    @property
    def mutated_inp_runtime_indices(self) -> list[int]:
        """Inputs whose new values are results of the graph."""
        return [i for i, info in enumerate(self.input_info)
                if info.mutation_type is MutationType.MUTATED_OUT_GRAPH]


def run_functionalized_fw_and_collect_metadata(
    f: Callable, *, flat_args_descs: list | None = None, keep_input_mutations: bool,
    static_input_indices: list[int] | None = None, pre_dispatch: bool = False,
) -> Callable[..., ViewAndMutationMeta]:
    """A function that says what `f` does with its arguments."""

    def inner(*args: Any) -> ViewAndMutationMeta:
        before, state.fakes.creates = state.fakes.creates, True
        try:
            inputs = [_stand_in(v) if isinstance(v, Tensor) else v for v in args]
            first = [(v._edge, tuple(v.shape), tuple(v.stride())) if isinstance(v, Tensor) else None
                     for v in inputs]
            found = tree_leaves(f(*inputs))
        finally:
            state.fakes.creates = before
        outputs = [o for o in found if isinstance(o, Tensor)]
        tensors = [(v, was, given) for v, was, given in zip(inputs, first, args)
                   if isinstance(v, Tensor)]
        for t in (*[v for v, _, _ in tensors], *outputs):
            if t._link is not None:
                refresh(t)
        told = [_told(v, was, given, keep_input_mutations) for v, was, given in tensors]
        info, bases = _outputs([v for v, _, _ in tensors], outputs)
        written = [v for (v, _, _), i in zip(tensors, told)
                   if i.mutation_type is MutationType.MUTATED_OUT_GRAPH]
        return ViewAndMutationMeta(
            told, info, len(bases), keep_input_mutations,
            _numbered([v for v, _, _ in tensors]), _numbered([*written, *outputs, *bases]),
            list(static_input_indices or ()))

    return inner


def _stand_in(t: Tensor) -> Tensor:
    """A tensor without data in the place of an argument, a leaf if that is one."""
    new = (plan_of(t).build(iter([make(fake_like(p._payload)) for p in parts_of(t)]))
           if is_wrapper(t) else make(fake_like(t.detach()._payload)))
    if not t.requires_grad:
        return new
    new.requires_grad_()
    return new if t.is_leaf else new.clone()


def _told(t: Tensor, was: tuple, given: Tensor, keep: bool) -> InputAliasInfo:
    edge, shape, stride = was
    turned = (tuple(t.shape), tuple(t.stride())) != (shape, stride)
    return InputAliasInfo(
        is_leaf=given.is_leaf,
        mutates_data=len(cell_of(t).stamps) > turned,  # `t_()` counts as a write, too
        mutates_metadata=turned,
        requires_grad=given.requires_grad, mutations_hidden_from_autograd=t._edge is edge,
        keep_input_mutations=keep)


def _outputs(inputs: list[Tensor], outputs: list[Tensor]) -> tuple[list, list[Tensor]]:
    """How each output came about, and the intermediates that are results of the graph, too."""
    own = {id(t): i for i, t in enumerate(inputs)}
    numbered = list(enumerate(inputs))[::-1]
    memory = {id(root_of(t)): i for i, t in numbered}
    memory |= {id(cell_of(t)): i for i, t in numbered}  # what `detach()` gives has the same
    places = {id(o): i for i, o in enumerate(outputs)}
    roots = [root_of(o) for o in outputs]
    bases: list[Tensor] = []
    info = []
    for o, root in zip(outputs, roots):
        kind, base = OutputType.non_alias, None
        if id(o) in own:
            kind, base = OutputType.is_input, own[id(o)]
        elif id(root) in memory or id(cell_of(root)) in memory:
            kind = OutputType.alias_of_input
            base = memory.get(id(root), memory.get(id(cell_of(root))))
        elif root is not o and o.requires_grad and root.requires_grad:
            if id(root) in places:
                kind = OutputType.alias_of_intermediate_base_is_user_output
                base = places[id(root)]
            elif sum(r is root for r in roots) == 1:
                kind = OutputType.unsafe_view_alias
            elif any(b is root for b in bases):
                kind = OutputType.alias_of_intermediate
                base = next(i for i, b in enumerate(bases) if b is root)
            else:
                kind, base = OutputType.alias_of_intermediate_save_as_output, len(bases)
                bases.append(root)
        info.append(OutputAliasInfo(kind, type(o), base, o.requires_grad))
    return info, bases


def _numbered(tensors: list[Tensor]) -> list:
    """Plain tensors and wrappers with the number of their first tensor."""
    found: list = []
    at = 0
    for t in tensors:
        plan = plan_of(t) if is_wrapper(t) else None
        found.append(_meta(plan, at))
        at += 1 if plan is None else plan.count
    return found


def _meta(plan: Plan | None, at: int) -> PlainTensorMeta | SubclassCreationMeta:
    if plan is None:
        return PlainTensorMeta(at)
    attrs, start = {}, at
    for name, inner in zip(plan.names, plan.inner):
        attrs[name] = _meta(inner, at)
        at += 1 if inner is None else inner.count
    return SubclassCreationMeta(start, plan.count, attrs, plan.size, plan.stride, plan.meta,
                                plan.cls)
