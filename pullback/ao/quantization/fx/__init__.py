"""Quantisation of traced graphs: what `quantize_fx.py` is made of.

`tracing.py` makes the graph, `fuse.py` takes layers together, `prepare.py` puts observers in,
`convert.py` makes calls that round of them, and `lowering.py` computes with integers what can be.
`targets.py` says what becomes of a call.
"""

__all__: list[str] = []


def __getattr__(name: str):
    import importlib

    from ....facade import elsewhere

    if name in ("convert", "custom_config", "fuse", "prepare"):
        return importlib.import_module(f".{name}", __name__)
    return elsewhere(__name__, name)
