"""What tests share: programs, comparisons, and the scripts that record what PyTorch gives.

`texts.py` keeps recorded graphs and generated C as text.
"""
