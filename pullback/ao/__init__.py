"""`torch.ao`: quantisation of models, for those who run them.

`quantization` replaces layers by those of `nn.quantized`, which hold integers (`quantized/`).
"""

from ..facade import elsewhere as _elsewhere


def __getattr__(name: str):
    import importlib

    if name in ("nn", "quantization"):
        return importlib.import_module(f".{name}", __name__)
    return _elsewhere(__name__, name)
