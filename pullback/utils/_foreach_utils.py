"""What optimizers ask before they work on lists of tensors."""

from __future__ import annotations

from ..core.handle import Tensor


def _get_foreach_kernels_supported_devices() -> list[str]:
    return ["cuda"]


def _get_fused_kernels_supported_devices() -> list[str]:
    return ["cuda", "cpu"]


def _has_foreach_support(tensors: list, device) -> bool:
    return _device_has_foreach_support(device) and all(
        t is None or isinstance(t, Tensor) for t in tensors)


def _device_has_foreach_support(device) -> bool:
    return device.type in (*_get_foreach_kernels_supported_devices(), "cpu")


def _group_tensors_by_device_and_dtype(
    tensorlistlist: list[list], with_indices: bool = False
) -> dict:
    """(device, dtype) -> the lists with only such tensors, and their places in the first list."""
    found: dict = {}
    for place, row in enumerate(zip(*tensorlistlist, strict=True)):
        key = (row[0].device, row[0].dtype)
        lists, places = found.setdefault(key, ([[] for _ in row], []))
        for column, value in zip(lists, row):
            column.append(value)
        if with_indices:
            places.append(place)
    return found
