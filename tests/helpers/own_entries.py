"""Entries of the table that only a test knows."""

import contextlib

from pullback.core.op import Op, families, registry
from pullback.core.overload import overload_of


@contextlib.contextmanager
def entry(schema: str, kind: type = Op, **attributes):
    """The operator of an entry that is in the table for as long as the block runs."""
    name = schema[:schema.index("(")]
    made = type(name, (kind,), {"schema": schema, **attributes})
    try:
        yield overload_of(made)
    finally:
        del registry[name], families[name]
