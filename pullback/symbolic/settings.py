"""`torch.fx.experimental._config`: settings of symbolic sizes.

`use_duck_shape` acts: are equal sizes of inputs one symbol?  So does
`meta_nonzero_assume_all_nonzero`, for tensors of the device "meta".  PyTorch's others are about
machinery that is not here (a solver that checks guards, recorded events): kept as they are set.
"""

from __future__ import annotations

from ..settings import Settings

_SWITCH = (True, False)
config = Settings(
    "torch.fx.experimental._config", "Settings of symbolic sizes.",
    {"use_duck_shape": _SWITCH, "meta_nonzero_assume_all_nonzero": _SWITCH},
    use_duck_shape=True, meta_nonzero_assume_all_nonzero=False,
    aggressive_guard_free_semantics=0, backed_size_oblivious=False,
    check_shape_env_recorded_events=False, extended_debug_cpp=False,
    extended_debug_create_symbol=None, extended_debug_current_loc=True,
    extended_debug_guard_added=None, inject_EVALUATE_EXPR_flip_equality_TESTING_ONLY=False,
    no_data_dependent_graph_break=False, print_data_dependent_failures=False,
    should_record_events=False, skip_dtype_check_in_meta_registrations=False,
    symbol_guard_limit_before_specialize=None, translation_validation=False,
    translation_validation_no_bisect=False, translation_validation_timeout=600000,
    validate_shape_env_version_key=False)
