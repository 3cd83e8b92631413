"""PyTorch's names for what the disk keeps of compiled programs; `compiler.cache_info` says it all.

Programs and native code lie in one folder, so `AOTAutogradCache.clear` takes what was captured and
cut, `FxGraphCache.clear` everything.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator

from ..compile import cache
from ..compile.errors import CacheBypassed as BypassAOTAutogradCache
from ..cut.settings import config
from ..graph.counters import counters

__all__ = [
    "AOTAutogradCache", "BypassAOTAutogradCache", "FxGraphCache", "clear_caches", "counters",
    "fresh_cache", "fresh_inductor_cache", "should_use_local_autograd_cache",
    "should_use_remote_autograd_cache",
]  # fmt: skip


class AOTAutogradCache:
    """What joint graphs have led to."""

    @staticmethod
    def clear() -> None:
        """Forget all programs; native code stays, and is found by the next process that cuts."""
        cache.clear(programs=True)


class FxGraphCache:
    """Native code, by graph."""

    @staticmethod
    def clear() -> None:
        """Delete everything that the disk keeps."""
        cache.clear()


def clear_caches() -> None:
    """Delete everything that the disk keeps."""
    cache.clear()


@contextlib.contextmanager
def fresh_cache(
    cache_entries: dict | None = None, dir: str | None = None, delete: bool = True
) -> Iterator[None]:
    """A block with a cache folder of its own; `cache_entries` gets name -> bytes of what it has in
    the end."""
    folder = tempfile.mkdtemp(prefix="pullback-", dir=dir)
    before = os.environ.get("PULLBACK_CACHE_DIR")
    os.environ["PULLBACK_CACHE_DIR"] = folder
    try:
        yield
        if cache_entries is not None:
            for place, _, names in os.walk(folder):
                for name in names:
                    path = os.path.join(place, name)
                    cache_entries[os.path.relpath(path, folder)] = os.path.getsize(path)
    finally:
        if before is None:
            os.environ.pop("PULLBACK_CACHE_DIR", None)
        else:
            os.environ["PULLBACK_CACHE_DIR"] = before
        if delete:
            shutil.rmtree(folder, ignore_errors=True)


fresh_inductor_cache = fresh_cache


def should_use_local_autograd_cache() -> bool:
    """Are programs looked for on this machine's disk?"""
    return config.enable_autograd_cache


def should_use_remote_autograd_cache() -> bool:
    """There is no other machine to ask."""
    return False
