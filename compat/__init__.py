"""Real programs written for PyTorch, run unchanged; `python -m compat` compares the losses."""
