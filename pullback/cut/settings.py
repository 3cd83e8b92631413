"""Which graph is being compiled: names for compilers that log or store what they get."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator

from ..settings import Settings

_SWITCH = (True, False)


def _fraction(value: object) -> bool:
    """a number from 0 to 1, or None: 1"""
    return value is None or isinstance(value, (int, float)) and 0 <= value <= 1


def _function(value: object) -> bool:
    """None or a function of the joint graph and its inputs"""
    return value is None or callable(value)


def _number(value: object) -> bool:
    """a number of nodes"""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _folder(value: object) -> bool:
    """None or the path of a folder"""
    return value is None or isinstance(value, (str, os.PathLike))


def _solver(value: object) -> bool:
    """"dp", "greedy", "ilp", "dp_knapsack_sliding_hirschberg", "dynamic_memory_budget_dp", or a
    function of the sizes, the graph, the room, the joint graph and the nodes"""
    from .knapsack import SOLVERS

    return callable(value) or value in SOLVERS


def _estimator(value: object) -> bool:
    """"flops", "profile", "testing", or a function of a node"""
    return value in ("flops", "profile", "testing") or callable(value)


def _casts(value: object) -> bool:
    """"same_as_forward", "off" or a list of dicts, the arguments of autocast"""
    return value in ("same_as_forward", "off") or (
        isinstance(value, (list, tuple)) and all(isinstance(v, dict) for v in value))


# PyTorch's `_dynamo.config`; what has an effect is said in `_dynamo.py`
dynamo = Settings(
    "_dynamo.config", "Settings of PyTorch's capture.",
    suppress_errors=False, verbose=False, cache_size_limit=8, recompile_limit=8,
    accumulated_cache_size_limit=256, dynamic_shapes=True, assume_static_by_default=True,
    automatic_dynamic_shapes=True, capture_scalar_outputs=False, optimize_ddp=True,
    capture_dynamic_output_shape_ops=False, guard_nn_modules=True, specialize_int=False)


# What has an effect here: name -> (default, values that it takes).
_ACTING = {
    "backward_pass_autocast": ("same_as_forward", _casts),  # of backward graphs
    "debug_assert": (False, _SWITCH),  # check at every call what a program was compiled for
    "debug_partitioner": (False, _SWITCH),  # print what is saved and what is computed again
    "enable_autograd_cache": (True, _SWITCH),  # may the disk remember what joint graphs led to?
    "force_non_lazy_backward_lowering": (False, _SWITCH),  # compile both passes at once
    "functionalize_rng_ops": (False, _SWITCH),  # are draws functions of a seed and an offset?
    "guess_tangent_strides_as_outputs": (True, _SWITCH),  # else row-major or channels last
    "joint_custom_pass": (None, _function),  # changes joint graphs before they are cut
    "saved_tensors_hooks_filtering_mode": (  # for hooks that are graphs: see packing.py
        "donated", ("donated", "no_static", "all")),
    # may a FakeTensorMode have tensors of the device "meta"?  is their address 0, or an error?
    "fake_tensor_allow_meta": (True, _SWITCH),
    "fake_tensor_allow_unsafe_data_ptr_access": (True, _SWITCH),
    # are inputs refused that share memory and have no base in common, as by PyTorch?
    "strict_input_aliases": (False, _SWITCH),
    "strict_autograd_cache": (False, _SWITCH),  # is a program that it cannot keep an error?
    "selective_decompose": (False, _SWITCH),  # take apart only what graph.traceback.annotate names
    "unlift_effect_tokens": (False, _SWITCH),  # do graphs make the tokens of effects themselves?
    # of min cuts: the share of activations that is saved, how values are chosen for it (shares.py),
    "activation_memory_budget": (1.0, _fraction),
    "activation_memory_budget_solver": ("dp", _solver),
    "activation_memory_budget_runtime_estimator": ("flops", _estimator),
    "visualize_memory_budget_pareto": (False, _SWITCH),  # and a drawing of what less would cost
    "memory_budget_pareto_dir": (None, _folder),
    # what they may compute again (rules.py)
    "aggressive_recomputation": (False, _SWITCH),
    "ban_recompute_long_fusible_chains": (True, _SWITCH),
    "ban_recompute_materialized_backward": (True, _SWITCH),
    "ban_recompute_not_in_allowlist": (True, _SWITCH),
    "ban_recompute_reductions": (True, _SWITCH),
    "ban_recompute_used_far_apart": (True, _SWITCH),
    "is_non_builtin_to_include": (False, _SWITCH),
    "max_dist_from_bw": (1000, _number),
    "recompute_views": (False, _SWITCH),
    # do captures compute with data beside, for what only that decides?
    "fake_tensor_propagate_real_tensors": (False, _SWITCH),
    "treat_parameters_as_free_to_save": (True, _SWITCH),
    "cse": (True, _SWITCH),  # is what they find twice computed once?
    # do values that meta["should_offload"] marks wait for the backward in host memory (offload.py)?
    # Transfers happen where they are written: there is no second stream, and nothing to prefetch.
    "enable_activation_offloading": (False, _SWITCH),
    "activation_offload_separate_stream": (False, (False,)),
    "activation_offload_sink_wait": (False, (False,)),
    "activation_reload_prefetch": (False, (False,)),
    "donated_buffer": (True, _SWITCH),  # may a backward overwrite what was saved for it alone?
}
# PyTorch's settings of machinery that is not here, or that has nothing to choose: kept as they are
# set.
_KEPT = {
    "activation_offload_cpu_gpu_bw": 50.0,
    "autograd_cache_allow_custom_autograd_functions": False,
    "autograd_cache_normalize_inputs": True, "bundled_autograd_cache": False,
    "bypass_autograd_cache_key": False, "check_custom_op_aliasing": True,
    "custom_op_default_layout_constraint": "needs_exact_strides",
    "decompose_custom_triton_ops": True,
    "disable_guess_zero_tangent_for_mutated_input_subclass": False,
    "enable_complex_wrapper": False, "enable_remote_autograd_cache": None,
    "error_on_custom_op_aliasing": False, "fake_tensor_crossref": False,
    "fake_tensor_prefer_device_type": None,
    "force_autograd_cache": False, "generate_fake_kernels_from_real_mismatches": False,
    "graphsafe_rng_functionalization": True, "remat_using_tags_for_fwd_loss_bwd_graph": True,
    "static_weight_shapes": True,
    "torch_compile_graph_format": "svg", "unsafe_allow_optimization_of_collectives": False,
    "unsafe_treat_script_objects_as_zero_size": False, "view_replay_for_aliased_outputs": True,
}
config = Settings(
    "aot.config", "Settings of ahead-of-time compilation; PyTorch's others are kept and unused.",
    {name: values for name, (_, values) in _ACTING.items()},
    **{name: default for name, (default, _) in _ACTING.items()}, **_KEPT)

_names: list[str] = []
_donated: list[int] | None = None
_model = "model"
_count = 0  # graphs compiled so far
AOT_COUNTER = itertools.count()  # numbers of functions, in the order in which they are compiled


def next_program() -> int:
    """The number of a function that is about to be compiled."""
    return next(AOT_COUNTER)


@contextlib.contextmanager
def compiling(program: int, part: str, donated: list[int] | None = None) -> Iterator[None]:
    """A graph of a program is being compiled; a backward may overwrite some of its inputs."""
    global _names, _count, _donated
    before, _names, _donated = (_names, _donated), [f"{program}_{part}"], donated
    try:
        yield
    finally:
        _names, _donated = before
        _count += 1


def donated_inputs() -> list[int] | None:
    """Which of its saved inputs the backward that is being compiled may overwrite; None: no
    backward is."""
    return _donated


def set_model_name(name: str) -> None:
    """The name that graphs begin with."""
    global _model
    _model = name


def get_aot_compilation_context() -> tuple[list[str], str, int]:
    """The graph being compiled (`["0_forward"]`), the model's name, graphs compiled before."""
    return list(_names), _model, _count


def get_aot_graph_name() -> str:
    """All of that as one name, for a file for instance."""
    return f"{_model}__{'_'.join(_names)}_{_count}"


get_graph_being_compiled = get_aot_graph_name

# settings of PyTorch's code generator, kept: two of them act
code_generator = Settings(
    "_inductor.config", "Settings of PyTorch's code generator, kept.",
    max_autotune=False, max_autotune_gemm=False, coordinate_descent_tuning=False,
    epilogue_fusion=True, fx_graph_cache=True, force_disable_caches=False, freezing=False,
    post_grad_fusion_options={},  # one of them acts: capture/offload.py
    custom_partitioner_fn=None,  # acts: what cuts the joint graphs of `compile`
    cpp_wrapper=False, debug=False, shape_padding=True, fallback_random=False,
    triton=Settings("_inductor.config.triton", "Kept.", cudagraphs=False, unique_kernel_names=True),
    cpp=Settings("_inductor.config.cpp", "Kept.", threads=-1, simdlen=None),
    trace=Settings("_inductor.config.trace", "Kept.", enabled=False))
