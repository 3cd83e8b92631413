"""Switches for how `Module.to` and its like change parameters: see `nn/module.py`."""

_overwrite_module_params_on_conversion = False
_swap_module_params_on_conversion = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Put new parameters in the place of the old ones, instead of changing their data."""
    global _overwrite_module_params_on_conversion
    _overwrite_module_params_on_conversion = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Do conversions make new parameters?"""
    return _overwrite_module_params_on_conversion


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Exchange the contents of old and new parameters (`utils.swap_tensors`) in conversions."""
    global _swap_module_params_on_conversion
    _swap_module_params_on_conversion = value


def get_swap_module_params_on_conversion() -> bool:
    """Do conversions exchange old and new parameters?"""
    return _swap_module_params_on_conversion
