"""`aot_function`: a function whose graphs go to the user's compilers, under PyTorch's convention.

Where PyTorch compiles once and runs the graph on whatever comes, this captures again: for other
shapes, dtypes and Python values.  What PyTorch asserts, this asserts: arguments that were one
tensor and written, and with `config.debug_assert` those that require grad.
Read next: `torch/dialect/convention.py`, which has that convention.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..array.fake import Fake
from ..array.size import Symbolic
from ..core.handle import Tensor
from ..cut import refusals
from ..cut.prepare import spell_draws
from ..cut.settings import compiling, config, next_program
from ..cut.split import donated_places
from ..graph import traceback
from ..graph.dialect import standard
from ..graph.graph_module import GraphModule
from ..graph.passes import eliminate_dead_code
from ..graph.tables import normalized
from ..pytree import tree_flatten
from ..threads.state import state
from .build import Backend, Request, program_of
from .capture import capture
from .compiled import FACTS, Compiled
from .effects.metadata import ChangeMetadata
from .joint import Joint, Sizes
from .run import Program
from .subclasses import Inside, is_wrapper


class AotFunction(Compiled):
    """A function compiled by the user's compilers."""

    strided = True
    kinds = (int,)

    def __init__(self, function: Callable, backend: Backend, keep: bool, inference: Callable,
                 dynamic: bool = False, writes: bool = False):
        super().__init__(function, backend, dynamic)
        self.keep, self.inference, self.writes = keep, inference, writes
        self.number = functools.cache(next_program)  # counted when it is first compiled
        self.duplicates: dict[tuple, tuple[int, tuple]] = {}  # programs whose inputs were merged

    def build(self, *given: Any, **options: Any) -> Program:
        """Capture and compile for one signature."""
        request = self.request(*given, **options)
        tensors = request.tensors
        joint, convention = self._captured(request, tensors)
        wrappers = self.function if isinstance(self.function, Inside) else None
        layout = convention.layout(joint, request, self.keep, wrappers, self.writes)
        eliminate_dead_code(joint.module.graph)
        joint.module.recompile()
        parts = self._parts(layout, self.number)
        program = program_of(joint, request, parts, self._recalled(joint, request, parts))
        if config.force_non_lazy_backward_lowering and joint.differentiable:
            program.part("forward")
            program.part("backward")
        return program

    def sizes(self, flat: list, names: list[str], dynamic_dims: Any) -> Sizes:
        """What is to be symbolic, named as PyTorch's `aot_function` does."""
        tensors, numbers = self._named(flat)
        return self._of_wrappers(Sizes(
            dynamic_dims.dims, [names[k] for k in (*tensors, *numbers)],
            sources=[f"__meta_utils_unknown_tensor{i}" for i in range(len(tensors))],
            numbers={k: (f"sym_{k}", w) for k, w in zip(numbers, dynamic_dims.numbers)},
            special=True), tensors)

    def reads(self) -> bool:
        return bool(self.dynamic) or super().reads()

    def prepare(self, args: tuple, kwargs: dict) -> None:
        """Compile for arguments like these, which may be without data; nothing runs."""
        flat, spec = tree_flatten((args, kwargs))
        if any(map(is_wrapper, flat)):
            return  # when it is first called
        tensors = [v for v in flat if isinstance(v, Tensor)]
        key = self.key(flat, spec, tensors)
        sized = [n for t in tensors if isinstance(t._payload, Fake) for n in t._payload.shape]
        sized = [n for n in (*sized, *flat) if isinstance(n, Symbolic)]
        if sized:
            self._prepare_sizes(key, flat, spec, tensors, sized)
        elif self._known(key, tensors) is None:
            program = self.build(flat, spec)
            self._keep(key, program)
            if program.written and not any(isinstance(t._payload, Fake) for t in tensors):
                program = self._apart(program, flat, spec, tensors)
            program.part("forward")

    def _prepare_sizes(self, key, flat: list, spec, tensors: list, sized: list) -> None:
        """The same for arguments with symbolic sizes: guards go to the environment of these."""
        numbers = dict.fromkeys(self.numbers(flat), ("", False))
        names = [f"input{i}" for i in range(len(tensors) + len(numbers))]
        sizes = Sizes([[False] * t.ndim for t in tensors], names, sized[0].node.shape_env,
                      numbers=numbers)
        sizes.data = True
        program = self.build(flat, spec, sizes=sizes)
        self._family(key, flat).programs.append(program.symbolic)
        program.part("forward")

    def _captured(self, request: Request, tensors: list) -> tuple[Joint, Any]:
        """The joint graph, and the calling convention that it was captured for."""
        table = self.backend.decompositions
        if config.selective_decompose:
            table = Selected(table)

        def captured(distinct: bool = False) -> tuple[Joint, Any]:
            dialect = standard("aot")
            return capture(
                self.function, request.flat, request.spec, table, False, request.roots,
                request.shared, dialect=dialect, distinct=distinct, sizes=request.sizes,
                hooks=self.input_hooks), dialect.convention

        joint, convention = captured()
        if joint.inputs.unique is None or request.sizes is not None:
            return joint, convention
        # tensors that were given twice are one input if they are written, two otherwise
        unique = joint.inputs.unique
        owner = [next(n for n, i in enumerate(unique) if tensors[i] is t) for t in tensors]
        twice = {n for n in owner if owner.count(n) > 1}
        if twice.isdisjoint([*[w.input for w in joint.mutated],
                             *[e.input for e in joint.of(ChangeMetadata)]]):
            return captured(distinct=True)
        return joint, convention

    def _parts(self, layout: Any, number: Callable[[], int]) -> Backend:
        """The user's compilers as the run time's backend."""
        backend = self.backend
        results: dict[str, Any] = {}  # what the compilers gave

        def compiled(compiler: Callable, part: str, adapt: Callable) -> Callable:
            def run(module: GraphModule, name: str) -> Callable:
                donated = donated_places(module) if part == "backward" else None
                with compiling(number(), part, donated):
                    made = refusals.compiled(compiler(module, examples(module)), compiler, part)
                    results[part] = made
                    return adapt(made)

            return run

        @functools.cache
        def halves() -> tuple:
            with compiling(number(), "joint"):
                module, inputs = layout.module, examples(layout.module)
                count = len(layout.slots) + layout.tokens + layout.states
                inputs = [inputs[:count], inputs[count:]]
                if config.joint_custom_pass is not None:
                    module = config.joint_custom_pass(module, inputs)
                found = backend.partition(module, inputs, num_fwd_outputs=layout.count)
                refusals.halves(found, backend.partition)
                spell_draws(*tuple(found)[:2], layout.count)
                return found

        forward = compiled(backend.forward, "forward", layout.forward)
        inference = compiled(self.inference, "inference", layout.forward)
        parts = Backend(
            forward if layout.joint.differentiable else inference,
            compiled(backend.backward, "backward", layout.backward),
            lambda module, count: halves(), backend.decompositions)
        parts.layout, parts.results = layout, results
        return parts

    def _recalled(self, joint: Joint, request: Request, parts: Backend) -> Any:
        """What the disk knows of a joint graph; None if compilers do not give bytes."""
        forward = self.backend.forward if joint.differentiable else self.inference
        if getattr(forward, "output_code_ty", None) is None:
            return None
        from ..compile.warm import recall_ahead

        kinds = {"forward": forward}
        if joint.differentiable:
            kinds["backward"] = self.backend.backward
        return recall_ahead(joint, parts, kinds, self.backend.partition, request.sizes is not None)

    def _accepted(self, key: tuple, tensors: list) -> Program | None:
        """A program for inputs of which more require grad, or more are one tensor."""
        reduced = _reduced(key)
        tracked = [t._edge is not None for t in tensors]
        for (other, _), program in self.programs.items():
            if _reduced(other) != reduced:
                continue
            merged = other[-1]
            if program.joint.inputs.unique is not None and merged != key[-1]:
                _check_duplicates(self.number(), merged, key[-1] or range(len(tensors)))
            before = _tracked(other)
            if config.debug_assert:
                _check_tracked(self.number(), before, tracked)
            if (merged != key[-1] and (program.written or program.joint.inputs.unique is not None)
                    or any(now and not then for now, then in zip(tracked, before))
                    or program.joint.differentiable and not any(tracked)):
                continue
            if program.fits(tensors):
                return program
        return None


class Selected(dict):
    """Decompositions for the parts of a program that are noted as `compile_with_inductor`."""

    def get(self, key: Any, default: Any = None) -> Any:
        recorder = getattr(state.stack[state.mode], "recorder", None)
        noted = traceback.current_meta.get("custom", {})
        if recorder is not None and recorder.pulled is not None:  # notes of what is differentiated
            noted = recorder.annotations.get(recorder.pulled.seq, noted)
        return super().get(key, default) if "compile_with_inductor" in noted else default


def examples(module: GraphModule) -> list:
    """What compilers get as inputs: tensors without data, and values."""
    return [n.meta["val"] for n in module.graph.nodes if n.op == "placeholder"]


def _reduced(key: tuple) -> tuple:
    """A signature without which tensors are the same and which require grad."""
    return tuple([(k[0], k[1], k[3]) if type(k) is tuple and len(k) == 4 else k
                  for k in key[:-1]])


def _tracked(key: tuple) -> list[bool]:
    """Which tensors of a signature require grad."""
    return [k[2] for k in key[FACTS:-1] if len(k) == 4]


_BUG = "This indicates a guard bug in AOTAutograd or Dynamo, please file a bug to PyTorch."


def _check_duplicates(number: int, merged: tuple, now: Any) -> None:
    for i, first in enumerate(merged):
        if now[i] != now[first]:
            raise AssertionError(
                f"At compilation time, graph {number} was compiled under the assumption "
                f"that input {i} would be a duplicate of input {first}, but at runtime this was "
                f"not the case.  {_BUG}")


def _check_tracked(number: int, before: list[bool], tracked: list[bool]) -> None:
    for i, (now, then) in enumerate(zip(tracked, before)):
        if now and not then:
            raise AssertionError(
                f"At compilation time, graph {number} was compiled under the assumption "
                f"that input {i} would not require grad, but at runtime this was not the case.  "
                f"{_BUG}")


def aot_function(
    fn: Callable,
    fw_compiler: Callable,
    bw_compiler: Callable | None = None,
    partition_fn: Callable | None = None,
    decompositions: dict | None = None,
    num_params_buffers: int = 0,
    keep_inference_input_mutations: bool = False,
    inference_compiler: Callable | None = None,
    *,
    dynamic: bool = False,
    enable_log: bool = True,
    disable_functionalization: bool = False,
) -> AotFunction:
    """Capture `fn` into forward and backward graphs and hand them to the user's compilers.

    A compiler takes a graph module and example inputs without data, and returns a function of the
    same inputs, or of one list of them (`make_boxed_func`).  `bw_compiler` gets the backward graph
    when a backward first runs; `inference_compiler` the graph of calls that nobody differentiates.
    `partition_fn` cuts the joint graph.  With `keep_inference_input_mutations` writes into inputs
    that autograd does not see are part of the graph, as `copy_` at its end; otherwise new values
    are graph outputs.  With `dynamic` sizes of tensors are symbols, and a graph serves all of them
    that its guards allow.  With `disable_functionalization` in-place operators of the function stay
    in the graphs, in their order, wherever nobody wants the value that they overwrite.
    """
    refusals.functions(
        "aot_function", {"bw_compiler": bw_compiler, "partition_fn": partition_fn,
                         "inference_compiler": inference_compiler}, fn=fn, fw_compiler=fw_compiler)
    refusals.table("aot_function", decompositions)
    refusals.switch(
        "aot_function", dynamic=dynamic, disable_functionalization=disable_functionalization,
        keep_inference_input_mutations=keep_inference_input_mutations)
    if partition_fn is None:
        from ..cut.partition import default_partition as partition_fn  # type: ignore[no-redef]
    backend = Backend(fw_compiler, bw_compiler or fw_compiler, partition_fn,
                      normalized(decompositions))
    return AotFunction(fn, backend, keep_inference_input_mutations,
                       inference_compiler or fw_compiler, dynamic, disable_functionalization)


compiled_function = aot_function
