"""The small heart: what a call of an operator is, from the handle to the tape and to mutation.

Read in this order: `handle`, `schema`, `op`, `formula`, `project`, `tape`, `stack`, `surface`; then
`overload`.  Kernels run on `array/`, views are in `memory/`, calls are written out in `eager/`.
"""
