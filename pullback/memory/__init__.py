"""Memory that tensors show: views and versions, storages, indexing, memory that processes share.

Read `views.py` first: how a view follows from its base and what a write does to both; then
`assign.py`, how a tensor gets another value.  `storages.py` is about who shows which memory,
`indexing.py` about `x[key]` and `x[key] = value`.
"""
