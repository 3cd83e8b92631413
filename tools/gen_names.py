"""Writes pullback/table/names.py: which file of the operator table has which names.

With it a file is imported when one of its operators is first used: `import pullback` reads none.

    python tools/gen_names.py            # or: make stubs
    python tools/gen_names.py --check    # part of make lint
"""

from __future__ import annotations

import sys
import textwrap

from generated import ROOT, main

sys.path.insert(0, str(ROOT))

import pullback  # noqa: F401  (the table's entries need it)
from pullback.core.op import registry
from pullback.table.catalog import FILES, load_all

HEADER = '''\
"""Names of the operators by the file that has them. Made by tools/gen_names.py.

`name:kinds`, or `alias=name:kinds`; kinds of Tensor methods: m (ordinary), p (pointwise), i (there
is a variant `name_`).
"""

NAMES = {
'''


def kinds(op: type, name: str) -> str:
    """The methods that an entry gives a name."""
    head = op.schema[op.schema.index("(") + 1 :]
    if not head.startswith("Tensor") or head.startswith("Tensor[") or op.base_name[:2] == "__":
        return ""
    own = ("p" if op.kind == "pointwise" else "m") if op.method else ""
    return own + ("i" if op.inplace and not name.endswith("_") else "")


def tokens() -> dict[str, dict[str, str]]:
    """File -> name -> kinds, in the order of the entries."""
    found: dict[str, dict[str, str]] = {file: {} for file in FILES}
    home: dict[str, str] = {}
    for op in list(registry.values()):
        package, _, file = op.__module__.rpartition(".")
        if package != "pullback.ops" or file not in found:
            raise SystemExit(f"the entry '{op.full_name}' is not in a file of the table")
        if home.setdefault(op.base_name, file) != file:
            raise SystemExit(
                f"'{op.base_name}' has entries in {home[op.base_name]}.py and in {file}.py: "
                "a family of overloads belongs into one file"
            )
        for name in (op.base_name, *op.aliases):
            token = name if name == op.base_name else f"{name}={op.base_name}"
            have = found[file].get(token, "")
            new = kinds(op, name)
            if have and have[0] in "mp":
                new = new.lstrip("mp")
            found[file][token] = have + "".join(k for k in new if k not in have)
    return found


def text() -> str:
    load_all()
    parts = [HEADER]
    for file, names in tokens().items():
        if not names:
            continue
        words = " ".join(f"{token}:{kind}" if kind else token for token, kind in names.items())
        lines = textwrap.wrap(words, 88, break_long_words=False, break_on_hyphens=False)
        parts.append(f'    "{file}": (\n')
        parts += [
            f'        "{line}{" " if i + 1 < len(lines) else ""}"\n' for i, line in enumerate(lines)
        ]
        parts.append("    ),\n")
    return "".join(parts) + "}\n"


if __name__ == "__main__":
    sys.exit(main(__doc__.split("\n")[0], {"pullback/table/names.py": text()}, "stubs"))
