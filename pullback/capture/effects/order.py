"""The order in which effects are prepared and replayed."""

from __future__ import annotations

from collections.abc import Iterable

from .attributes import SetAttributes
from .effect import Effect
from .generators import SetGenerator
from .gradients import LeaveGradient
from .histories import Record, TakeHistory, UseUpHistory
from .hooks import RegisterHook
from .leaves import BeginLeaf, EndHistory, RetainGradient
from .memory import TakeMemory
from .metadata import ChangeMetadata
from .numbers import ReadNumber
from .storages import GrowStorage, MoveToMoreMemory, ShrinkStorage
from .views import EarlyDetachedView, EarlyView, SettleView
from .writes import CountWrites, RefuseWrites, WriteInputs

ORDER = {kind: number for number, kind in enumerate((
    RefuseWrites,  # nothing has been changed yet
    MoveToMoreMemory,
    GrowStorage,
    ReadNumber,
    SetGenerator,
    BeginLeaf,  # these three say where gradients arrive
    RegisterHook,
    Record,
    EarlyView,
    ShrinkStorage,
    EndHistory,
    EarlyDetachedView,
    ChangeMetadata,  # new values are written into the new shape
    WriteInputs,
    TakeMemory,
    LeaveGradient,
    UseUpHistory,
    CountWrites,
    TakeHistory,
    RetainGradient,
    SettleView,
    SetAttributes,  # when all results are there
))}


def in_order(effects: Iterable[Effect]) -> list[Effect]:
    """Effects in the order in which they are replayed."""
    return sorted(effects, key=lambda effect: ORDER[type(effect)])
