"""File descriptors for other processes, which fetch them by a ticket.

A ticket goes with a message; whoever reads that asks the process that wrote it.  A thread answers
as long as tickets are out.  In a process that ends while some are, it stays until they have been
used: the thread is one that Python waits for.  (`multiprocessing.resource_sharer` does the same,
but closes its door at the beginning of the end, before queues are flushed.)  Both sides prove that
they know the key of these processes.
"""

from __future__ import annotations

import os
import secrets
import select
import signal
import socket
import sys
import tempfile
import threading
import time
from multiprocessing import AuthenticationError, connection, process, util
from typing import Any

from .shared import pass_on, taken

PATIENCE = 10.0  # seconds that a process which ends waits for those who have not fetched yet


class Ticket:
    """What a message carries in place of a descriptor."""

    def __init__(self, address: str, number: int):
        self.address, self.number = address, number

    def detach(self) -> int:
        """The descriptor, which belongs to this process then; OSError if the sender has ended."""
        key = process.current_process().authkey
        with connection.Client(self.address, "AF_UNIX", authkey=key) as c:
            c.send_bytes(b"%d" % self.number)
            return taken(c)


class _Office:
    """The tickets of one process, and the thread that takes them."""

    def __init__(self):
        self.process, self.lock = os.getpid(), threading.Lock()
        self.out: dict[int, int] = {}  # number of a ticket -> descriptor
        self.made = 0
        self.thread: threading.Thread | None = None
        self.door, self.folder = socket.socket(socket.AF_UNIX), None
        if sys.platform == "linux":  # a name that is gone with the process
            self.address = f"\0pullback-{os.getpid()}-{secrets.token_hex(16)}"
        else:
            self.folder = tempfile.mkdtemp(prefix="pullback-")
            self.address = os.path.join(self.folder, "door")
        self.door.bind(self.address)
        self.door.listen(128)
        self.end = util.Finalize(None, self.close, exitpriority=-200)  # after children were joined

    def offer(self, file: int) -> Ticket | None:
        """A ticket; none if the office has closed."""
        with self.lock:
            if self.door.fileno() < 0:
                return None
            self.made += 1
            self.out[self.made] = os.dup(file)
            if self.thread is None:
                child = process.parent_process() is not None
                self.thread = threading.Thread(target=self.serve, daemon=not child)
                self.thread.start()
            return Ticket(self.address, self.made)

    def serve(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        end = None
        while True:
            try:
                ready = select.select([self.door], [], [], 0.05 if self._may_end() else None)[0]
            except (OSError, ValueError):
                return  # the process ends, and its main thread closed the door
            if ready:
                self._answer()
            elif end is None and not threading.main_thread().is_alive():
                end = time.monotonic() + PATIENCE
            with self.lock:
                if not self.out or end is not None and self._gives_up(end):
                    self.close()
                    return

    def _may_end(self) -> bool:
        return not threading.current_thread().daemon

    def _gives_up(self, end: float) -> bool:
        return time.monotonic() > end or not process.parent_process().is_alive()

    def _answer(self) -> None:
        try:
            with connection.Connection(self.door.accept()[0].detach()) as c:
                key = process.current_process().authkey
                connection.deliver_challenge(c, key)
                connection.answer_challenge(c, key)
                number = int(c.recv_bytes())
                with self.lock:
                    file = self.out.pop(number)
                try:
                    pass_on(c, file)
                finally:
                    os.close(file)
        except (OSError, EOFError, KeyError, ValueError, AuthenticationError):
            pass  # whoever asked has gone, or had no right to: the others are served all the same

    def close(self) -> None:
        """Nobody asks any more, or this process was forked and they ask its parent."""
        self.door.close()
        while self.out:
            os.close(self.out.popitem()[1])
        if self.folder is not None and self.process == os.getpid() and os.path.exists(self.folder):
            os.unlink(self.address)
            os.rmdir(self.folder)
        self.end.cancel()


_here: list[Any] = []  # the office of this process


def ending() -> bool:
    """Is this process about to end, so that nobody will wait for tickets made now?"""
    return util.is_exiting() or not threading.main_thread().is_alive()


def offer(file: int) -> Ticket:
    """A ticket by which another process can have a copy of this descriptor, once."""
    if _here and _here[0].process != os.getpid():
        _here.pop().close()
    ticket = _here[0].offer(file) if _here else None
    if ticket is None:
        _here[:] = [_Office()]
        ticket = _here[0].offer(file)
    return ticket
