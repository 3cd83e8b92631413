"""LSTMs whose parts are quantised layers; `convert` makes them of those that were observed."""

from __future__ import annotations

from typing import Any, ClassVar

from ...quantizable.modules import rnn
from ...quantizable.modules.observing import converted, not_calibrated


class LSTM(rnn.LSTM):
    """An LSTM from integers to integers."""

    _FLOAT_MODULE: ClassVar[Any] = rnn.LSTM

    def _get_name(self) -> str:
        return "QuantizedLSTM"

    from_float = classmethod(not_calibrated)

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """The layer that stands for one that was observed."""
        return converted(cls, other, cls._FLOAT_MODULE, cls)
