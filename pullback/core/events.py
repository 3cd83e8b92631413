"""Events: what a level of the stack is told of things that happen beside operators.

`Interpreter.event(kind, *facts)` gets one of these kinds.  A level lists those that it listens to,
with their methods, in its table `on`.  Where an event has an answer it is said here; None is none.
"""

from __future__ import annotations

# memory
RESHAPES = "reshapes"  # (tensor) is about to get another shape in place
RESHAPED = "reshaped"  # (tensor, step, new data, base): `t_()` and the like, of an adopting level
TOOK_MEMORY = "took memory"  # (tensor, source): `tensor.set_(source)`
TOOK_DATA = "took data"  # (tensor, source): `tensor.data = source`
OVERWRITES = "overwrites"  # (overload, flat arguments, tensor): its old value is still there
SCATTERS = "scatters"  # (base, view steps, new value, overload) -> the base after the write
VIEWED = "viewed"  # (cell) memory of a new view -> is the view taken again when it is used first?
FOLLOWS = "follows"  # (value) of its source that a detached alias takes -> what it gets
RELAYS = "relays"  # (old data, new value) that lies otherwise -> the value as it lies on this level
WROTE_VIEW = "wrote view"  # (view) through which a base was written that SCATTERS answered
WROTE_UNRECORDED = "wrote unrecorded"  # (tensor) has other values now, and the history that it had
WROTE_UNCOUNTED = "wrote uncounted"  # (tensor) was written through `.data`: its version stays
REFRESHES = "refreshes"  # () a view that was not written itself is brought up to date

# values
READ = "read"  # (tensor) from outside, whose values became Python values
MADE = "made"  # (tensor) from Python values -> what stands for it on this level
UNPACKED = "unpacked"  # (saved tensor) for a backward, which may write there -> what it gets
SEEDS = "seeds"  # (generator) is about to be made or seeded
RESTORES = "restores"  # (generator, saved state) is about to be set to that

# histories
ASKS_LEAF = "asks leaf"  # (tensor) is it a leaf, or what is its history?
BEGINS_LEAF = "begins leaf"  # (tensor) of a lower level, which operators meet on the tape of this
HOOKED = "hooked"  # (tensor or node, kind, hook) -> a table to keep it in, or the hook to register
HOOK_HANDLE = "hook handle"  # (handle) of a hook, which the function may keep
CALLS_FUNCTION = "calls function"  # (class, arguments, call) of a custom function -> its results
CALLED_FUNCTION = "called function"  # (class, tensors, results, node of the graph before)
MET_WRAPPER = "met wrapper"  # (tensor) of a subclass from outside, with a history
