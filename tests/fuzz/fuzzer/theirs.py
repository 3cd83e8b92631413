"""PyTorch as the yardstick: the text of a program runs in a process that has it.

`TORCHPY` names an interpreter with PyTorch; without it, this one is asked. The other process gets
texts, one pickle per program, and answers with what it saw.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import struct
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np

from .compare import Refused, difference, observe

# what PyTorch may do otherwise, as docs/differences.md says, or what only it can refuse
NOT_THERE = ("AttributeError", "NotImplementedError", "ImportError")
_server: subprocess.Popen | None = None


def interpreter() -> str | None:
    """A Python with PyTorch, if there is one."""
    given = os.environ.get("TORCHPY")
    if given:
        return given if Path(given).exists() else None
    return sys.executable if importlib.util.find_spec("torch") else None


def ask(source: str, inputs: dict, gradients: bool):
    """What PyTorch makes of a text: values seen, or (name, words) of an error."""
    global _server
    if _server is None or _server.poll() is not None:
        env = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        _server = subprocess.Popen(
            [interpreter(), str(Path(__file__).parents[1]), "--serve-torch"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
    data = pickle.dumps((source, inputs, gradients))
    _server.stdin.write(struct.pack("<q", len(data)) + data)
    _server.stdin.flush()
    head = _server.stdout.read(8)
    if len(head) < 8:
        _server = None
        return "died", "PyTorch's process ended"
    return pickle.loads(_server.stdout.read(struct.unpack("<q", head)[0]))


def serve() -> None:
    """The other process: answers until nobody asks any more."""
    import torch

    from .program import function_of

    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    torch.set_num_threads(1)
    while True:
        head = sys.stdin.buffer.read(8)
        if len(head) < 8:
            return
        source, inputs, gradients = pickle.loads(
            sys.stdin.buffer.read(struct.unpack("<q", head)[0]))
        try:
            answer = observe(torch, function_of(source, torch), inputs, gradients)
        except Refused as error:
            answer = type(error.__cause__).__name__, str(error.__cause__)[:300]
        except Exception as error:
            answer = type(error).__name__, str(error)[:300]
        data = pickle.dumps(answer)
        answers.write(struct.pack("<q", len(data)) + data)
        answers.flush()


def check(case) -> str | None:
    """What Pullback's eager mode does otherwise than PyTorch."""
    from .modes import room_of  # not in PyTorch's process

    if {"ambiguous", "theirs"} & case.traits:
        return None
    answer = ask(case.program.source(), case.inputs, case.gradients)
    if isinstance(answer, tuple):
        return None  # it refuses what we take: not a wrong number
    chosen = [k for k, s in enumerate(answer) if not s.cut]  # where it has no derivative, we may
    ours, answer = [case.wanted[k] for k in chosen], [answer[k] for k in chosen]
    for mine, other in zip(ours, answer):  # a NaN of theirs that is a number here
        if mine.place.startswith("gradient") and mine.value.shape == other.value.shape:
            other.value = np.where(np.isnan(other.value), mine.value, other.value)
    eps = max(case.eps * 2, 1e-10)  # some of its special functions are good for ten digits
    found = difference(ours, answer, eps)
    if found:
        room = room_of(case.program, case.wanted, case.eps, case.gradients)
        found = difference(ours, answer, eps, [room[k] for k in chosen])
    return found
