"""einops on this package's tensors: `import pullback.utils.einops` once, then use einops as usual.

einops knows frameworks by name; a subclass of its backend for PyTorch that has another name is all
it needs. `einops.layers.torch` asks for `torch` itself: there `install_as_torch()` is the way, and
this file is not needed.
"""

from __future__ import annotations

from einops._backends import TorchBackend

import pullback


class PullbackBackend(TorchBackend):
    """What einops asks of a framework; the names are PyTorch's."""

    framework_name = "pullback"

    def __init__(self) -> None:
        self.torch = pullback
