"""Which file of the table has which operator: a file loads when one of its names is asked for.

`names.py` lists the names; `tools/gen_names.py` writes it.  Whoever goes through all entries
gets all files loaded first, in the order of `FILES`, so that nobody sees a part of the table.  Nor
do threads: who finds a file half loaded by another one waits for it.  Read next: `core/op.py`.
"""

from __future__ import annotations

import importlib
import sys
import threading
from typing import TYPE_CHECKING

from ..threads.state import renewed
from .names import NAMES

if TYPE_CHECKING:
    from ..core.op import Op

# The files of the table, in the order of their entries.
FILES = (
    "pointwise",
    "nonlinear",
    "rounding",
    "complex_parts",
    "binary",
    "multivariate",
    "compare",
    "bits",
    "reduce",
    "extremes",
    "logical_reductions",
    "shape",
    "slices",
    "splits",
    "view_writes",
    "arrange",
    "joined",
    "triangles",
    "index",
    "gather",
    "masks",
    "lookup",
    "order",
    "create",
    "sequences",
    "random",
    "rejection",
    "dropout",
    "matmul",
    "vectors",
    "contraction",
    "sparse_products",
    "sparse_solve",
    "sparse_parts",
    "sparse_construct",
    "sparse_functions",
    "sparse_kernels",
    "nested_tensors",
    "linalg",
    "factor",
    "solve",
    "least_squares",
    "norm",
    "loss",
    "regression",
    "attention",
    "activation",
    "batchnorm",
    "batchnorm_steps",
    "groupnorm",
    "rnn",
    "rnn_cells",
    "margin_loss",
    "ctc",
    "embedding",
    "pool",
    "unpool",
    "pad",
    "upsample",
    "grid_sample",
    "pixel_shuffle",
    "conv",
    "blocks",
    "special",
    "bessel",
    "orthogonal_polynomials",
    "numbers",
    "scans",
    "fft",
    "stft",
    "statistics",
    "histograms",
    "sampled",
    "distance",
    "quantize",
    "quantized_tensors",
    "integers",
    "products",
    "predicates",
    "legacy",
    "internal",
    "fused_attention",
    "ragged_attention",
    "conv_forms",
    "foreach",
    "aten_only",
    "effects",
    "vendor_conv",
    "vendor_norm",
    "vendor_grid",
    "vendor_ctc",
    "vendor_questions",
    "vendor_layers",
    "vendor_rnn",
)

_PACKAGE = "pullback.ops"


def _parsed() -> list[tuple[str, str, str, str]]:
    """(public name, operator, file, kinds of methods) of everything that `names.py` lists."""
    found = []
    for file, tokens in NAMES.items():
        for token in tokens.split():
            name, _, kinds = token.partition(":")
            name, _, base = name.partition("=")
            found.append((name, base or name, file, kinds))
    return found


PUBLIC = _parsed()
FILE_OF = {base: file for _, base, file, _ in PUBLIC}
_complete = False
_at_it: set[int] = set()  # threads that load everything
_sorting = renewed(threading.RLock())


def load(base: str) -> bool:
    """Import the file that has an operator; False if none has, or if it is there already."""
    file = f"{_PACKAGE}.{FILE_OF.get(base)}"
    there = sys.modules.get(file)
    if base not in FILE_OF or there is not None and not there.__spec__._initializing:
        return False
    importlib.import_module(file)
    return True


def load_all() -> None:
    """Import every file of the table, and put the entries into the order of the files."""
    global _complete
    me = threading.get_ident()
    if _complete or me in _at_it:
        return
    _at_it.add(me)
    try:
        for file in FILES:
            importlib.import_module(f"{_PACKAGE}.{file}")
    finally:
        _at_it.discard(me)
    with _sorting:
        if not _complete:
            rank = {f"{_PACKAGE}.{file}": i for i, file in enumerate(FILES)}
            for catalog in Catalog.all:
                catalog.sort(rank)
            _complete = True


class Catalog(dict):
    """Entries by name, loaded when they are asked for."""

    all: list[Catalog] = []

    def __init__(self, what):
        super().__init__()
        self.what = what  # function from a value to the entry that says where it belongs
        Catalog.all.append(self)

    def sort(self, rank: dict[str, int]) -> None:
        last = len(rank)
        items = sorted(
            dict.items(self), key=lambda pair: rank.get(self.what(pair[1]).__module__, last)
        )
        self.clear()
        self.update(items)

    def __missing__(self, name: str):
        load(name.partition(".")[0])
        with _sorting:
            if dict.__contains__(self, name):
                return dict.__getitem__(self, name)
        raise KeyError(name)

    def __contains__(self, name) -> bool:
        if dict.__contains__(self, name):
            return True
        if isinstance(name, str):
            load(name.partition(".")[0])
        with _sorting:
            return dict.__contains__(self, name)

    def known(self):
        """What has been loaded so far."""
        return dict.keys(self)

    def get(self, name, default=None):
        try:
            return self[name]
        except KeyError:
            return default

    def __iter__(self):
        load_all()
        return dict.__iter__(self)

    def __len__(self) -> int:
        load_all()
        return dict.__len__(self)

    def keys(self):
        load_all()
        return dict.keys(self)

    def values(self):
        load_all()
        return dict.values(self)

    def items(self):
        load_all()
        return dict.items(self)


registry: dict[str, type[Op]] = Catalog(lambda entry: entry)  # "mul.Tensor" -> entry
families: dict[str, list[type[Op]]] = Catalog(lambda entries: entries[0])  # "mul" -> its entries
aliases: dict[str, str] = {  # "multiply" -> "mul"
    name: base for name, base, _, _ in PUBLIC if name != base
}
