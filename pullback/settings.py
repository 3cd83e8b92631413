"""`Settings`: names with values that programs set, for a while or for good.

PyTorch's `config` modules are such: attributes are read and assigned, `patch` changes some for a
`with` block, a decorated function or the tests of a class.  Settings with `checks` know all their
names: another name is refused, and so is a value that its check does not take.
"""

from __future__ import annotations

import functools
import types
from typing import Any

from . import errors
from .threads.blocks import tied


class Settings(types.ModuleType):
    """A module of settings; programs may import it as one."""

    def __init__(self, name: str, doc: str, checks: dict[str, Any] | None = None, **values: Any):
        super().__init__(name, doc)
        self.__dict__.update(values, __checks__=checks)

    def __setattr__(self, name: str, value: Any) -> None:
        self._check({name: value})
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if self.__dict__["__checks__"] is None or name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        raise self._unknown(name)

    def _unknown(self, name: str) -> errors.UnknownSetting:
        near = errors.close_matches(name, self.shallow_copy_dict(), 3)
        return errors.UnknownSetting(errors.text(
            f"{self.__name__}.{name} does not exist ({errors.user_line(2)})",
            cure=f"did you mean {' or '.join(near)}?" if near else
            f"list({self.__name__}.to_dict()) shows all settings"))

    def _check(self, changes: dict[str, Any]) -> None:
        """Refuse names that do not exist and values that are not among those of a setting."""
        checks = self.__dict__["__checks__"]
        if checks is None:
            return
        for name, value in changes.items():
            if name.startswith("__"):
                continue
            if name not in self.__dict__:
                raise self._unknown(name)
            wanted = checks.get(name)
            if wanted is None or (wanted(value) if callable(wanted) else value in wanted):
                continue
            shown = (wanted.__doc__ or "").strip() if callable(wanted) else (
                f"one of {', '.join(map(repr, wanted))}")
            raise errors.BadValue(errors.text(
                f"{self.__name__}.{name} cannot be {value!r} ({errors.user_line(2)})",
                f"it is {self.__dict__[name]!r}", f"set it to {shown}"))

    def patch(self, *args: Any, **changes: Any) -> Patch:
        """Other settings for a `with` block or a decorated function: `patch("name", value)`,
        `patch({"name": value})` or `patch(name=value)`.
        """
        if args:
            changes = {**args[0], **changes} if isinstance(args[0], dict) else {args[0]: args[1]}
        self._check(changes)
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

    @tied
    def __exit__(self, *exc: object) -> None:
        self.lost()

    def lost(self) -> None:
        """Give the settings their values back."""
        if self.before:
            held, before = self.settings.__dict__, self.before[-1]
            held.update(before)
            for name in self.changes.keys() - before.keys():
                held.pop(name, None)
            self.before.pop()

    def __call__(self, function: Any) -> Any:
        if isinstance(function, type):  # of tests, as `unittest.mock.patch` has it
            for name, member in list(vars(function).items()):
                if name.startswith("test") and callable(member):
                    setattr(function, name, self(member))
            return function

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return run
