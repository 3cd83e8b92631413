"""The small heart: what a call of an operator is, from the handle to the tape and to mutation.

Read in this order: `handle`, `schema`, `op`, `formula`, `project`, `stack`, `tape`, `surface`.
What kernels run on is in `array/`, views are in `memory/`, calls that are written out in `eager/`.
"""
