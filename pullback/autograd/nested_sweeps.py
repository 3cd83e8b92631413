"""A sweep inside of many others gets a thread with a fresh stack.

A hook or a custom backward may call `backward` itself, and so on.  Python limits the depth of
calls per thread, so the engine hands every so-manieth level over to here.
"""

from __future__ import annotations

import threading

from ..threads.state import state


def in_new_thread(task, sweep, args: tuple) -> dict:
    """Run a sweep in a new thread with this thread's state, and wait for it."""
    here, found = state.__dict__, {}

    def work() -> None:
        state.__dict__.update(here)
        try:
            with task:
                found["value"] = sweep(*args)
                for callback in task.callbacks or ():
                    callback()
        except BaseException as error:
            found["error"] = error

    thread = threading.Thread(target=work, name="pullback-nested-sweep")
    thread.start()
    thread.join()
    if "error" in found:
        raise found["error"]
    return found["value"]
