"""Attention: the function of several heads (`forward`), its module (`layer`)."""
