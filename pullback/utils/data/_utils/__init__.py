"""What `DataLoader` is made of: collation, fetching, worker processes and what they send."""

from . import collate, worker

__all__ = ["collate", "worker"]
