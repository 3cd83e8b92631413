"""Layers for quantised models: `quantized`, `quantized.dynamic`, `qat`, `quantizable`,
`intrinsic`."""

from ...facade import elsewhere as _elsewhere

_PACKAGES = ("intrinsic", "qat", "quantizable", "quantized")


def __getattr__(name: str):
    import importlib

    if name in _PACKAGES:
        return importlib.import_module(f".{name}", __name__)
    return _elsewhere(__name__, name)
