"""Helpers around modules: `rnn` packs sequences of different lengths."""

from . import rnn as rnn
