"""Mixed precision: `autocast` chooses the dtype per operator, `GradScaler` keeps small gradients.

`autocast_mode.py` has the lists of operators and the context, `grad_scaler.py` the scaler.
"""

from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
