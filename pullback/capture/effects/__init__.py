"""What a captured function did besides computing values, one kind of effect per file.

`effect.py` says what an effect is, `order.py` in which order a call replays them.
"""
