"""`ao`: marks for a quantiser, which models carry; see `quantization.py`."""
