"""A switch of PyTorch that is kept: `empty` gives what was in memory, whatever it says."""

fill_uninitialized_memory: bool = True
