"""Modules ahead of time: parameters and buffers are inputs of the graphs, before the user's.

`aot_module` gives a module, `aot_module_simplified` a function that is compiled at once for given
inputs.  Buffers may be written; gradients arrive in the parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..array.fake import Fake
from ..core.handle import Tensor
from ..cut import refusals
from ..func import functional_call
from ..graph.graph_module import GraphModule, for_users
from .entry import AotFunction, aot_function


class _Lifted:
    """A module as a function of its parameters, its buffers and the user's arguments."""

    def __init__(self, module: Any, tuples: bool):
        self.module, self.tuples = module, tuples
        self.modules = module.modules  # which parts are in training is part of a signature
        self.__name__ = type(module).__name__
        self.refresh()

    def refresh(self) -> list[Tensor]:
        """The tensors that the module has now."""
        found = dict(self.module.named_parameters())
        found.update(self.module.named_buffers())
        self.names = list(found)
        return list(found.values())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        count = len(self.names)
        state = dict(zip(self.names, args[:count]))
        out = functional_call(self.module, state, args[count:], kwargs)
        if self.tuples and not isinstance(out, (tuple, list)):
            raise RuntimeError(
                "Graph output must be a tuple. This is so that we can avoid pytree processing of "
                "the outputs. Please change the module to have tuple outputs or use aot_module "
                "instead.")
        return out


def aot_module(mod: Any, *args: Any, **kwargs: Any) -> Any:
    """A module that runs another one compiled; further arguments are those of `aot_function`."""
    from ..nn.compiled import AOTModule

    refusals.module("aot_module", mod)
    lifted = _Lifted(mod, False)
    kwargs.setdefault("num_params_buffers", len(lifted.names))
    return AOTModule(mod, lifted.refresh, aot_function(lifted, *args, **kwargs))


compiled_module = aot_module


def aot_module_simplified(
    mod: Any,
    args: Sequence[Any],
    fw_compiler: Callable,
    bw_compiler: Callable | None = None,
    partition_fn: Callable | None = None,
    decompositions: dict | None = None,
    keep_inference_input_mutations: bool = False,
    inference_compiler: Callable | None = None,
    compiler_config_extra: Any = None,
    ignore_shape_env: bool = False,
    disable_functionalization: bool = False,
    pre_grad_passes: Callable | None = None,
    compile_region_name: str | None = None,
) -> Callable:
    """A function of a module's inputs, compiled at once for inputs like `args`.

    The module returns a tuple.  `args` may have no data.  `pre_grad_passes` gets a graph module and
    its inputs before anything else happens and returns the one to compile.
    """
    if isinstance(mod, GraphModule) and not hasattr(mod, "named_parameters"):
        mod = for_users(mod)  # what `compile` gives to a backend
    refusals.module("aot_module_simplified", mod)
    refusals.arguments("aot_module_simplified", args)
    if pre_grad_passes is not None:
        mod = pre_grad_passes(mod, args)
    _refuse_fakes(mod)
    lifted = _Lifted(mod, True)
    state = lifted.refresh()
    compiled: AotFunction = aot_function(
        lifted, fw_compiler, bw_compiler, partition_fn, decompositions, len(state),
        keep_inference_input_mutations, inference_compiler,
        disable_functionalization=disable_functionalization)
    compiled.prepare((*state, *args), {})

    def forward(*runtime_args: Any) -> Any:
        return compiled(*state, *runtime_args)

    forward.zero_grad = mod.zero_grad  # type: ignore[attr-defined]
    forward.named_parameters = mod.named_parameters  # type: ignore[attr-defined]
    forward.named_buffers = mod.named_buffers  # type: ignore[attr-defined]
    return forward


def _refuse_fakes(mod: Any) -> None:
    """Constants without data: they would have to be computed with."""
    for path, part in mod.named_modules():
        for name, value in vars(part).items():
            if isinstance(value, Tensor) and isinstance(value._payload, Fake):
                where = f"{path}.{name}" if path else name
                raise AssertionError(
                    f"Unexpected fake tensor among the constants of the module: {where}, "
                    f"{value.dtype}{list(value.shape)}")
