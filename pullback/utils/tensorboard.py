"""`SummaryWriter` can be imported, so that programs which do not log run; it cannot be made."""

from __future__ import annotations

from .. import errors


class SummaryWriter:
    """Refuses to be made."""

    def __init__(self, *args, **kwargs):
        raise errors.NotInThisBuild(
            errors.text(f"SummaryWriter is not part of this package ({errors.user_line(2)})",
                        cure="tensorboardX.SummaryWriter writes the same files")
        )


FileWriter = SummaryWriter
