"""`Settings`: names with values that programs set, for a while or for good.

PyTorch's `config` modules are such: attributes are read and assigned, `patch` changes some for a
`with` block or a decorated function.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any


class Settings(types.ModuleType):
    """A module of settings; programs may import it as one."""

    def __init__(self, name: str, doc: str, **values: Any):
        super().__init__(name, doc)
        self.__dict__.update(values)

    def patch(self, *args: Any, **changes: Any) -> Patch:
        """Other settings for a `with` block or a decorated function: `patch("name", value)`,
        `patch({"name": value})` or `patch(name=value)`.
        """
        if args:
            changes = {**args[0], **changes} if isinstance(args[0], dict) else {args[0]: args[1]}
        return Patch(self, changes)

    def shallow_copy_dict(self) -> dict[str, Any]:
        """All settings."""
        return {n: v for n, v in self.__dict__.items() if not n.startswith("__")}

    get_config_copy = to_dict = shallow_copy_dict


class Patch:
    """Settings that are other ones for a while."""

    def __init__(self, settings: Settings, changes: dict[str, Any]):
        self.settings, self.changes = settings, changes
        self.before: list[dict] = []

    def __enter__(self) -> None:
        held = self.settings.__dict__
        self.before.append({n: held[n] for n in self.changes if n in held})
        held.update(self.changes)

    def __exit__(self, *exc: object) -> None:
        held = self.settings.__dict__
        for name in self.changes:
            held.pop(name, None)
        held.update(self.before.pop())

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return run
