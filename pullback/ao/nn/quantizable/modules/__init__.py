"""Recurrent layers and attention, written out in parts."""

from .activation import MultiheadAttention
from .rnn import LSTM, LSTMCell

__all__ = ["LSTM", "LSTMCell", "MultiheadAttention"]


def __getattr__(name: str):
    from .....facade import elsewhere

    return elsewhere(__name__, name)
