"""How the package was made, as text: PyTorch calls it `__config__`."""

from __future__ import annotations

import platform

import numpy as np


def show() -> str:
    """Versions and what matrices are multiplied with."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]
    return f"Pullback built with:\n  - NumPy {np.__version__}\n  - BLAS {blas}\n  - USE_MKL=OFF\n"


def parallel_info() -> str:
    """How many threads work."""
    from .. import get_num_threads

    return f"threads: {get_num_threads()} of {platform.machine()}\n"
