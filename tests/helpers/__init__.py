"""What tests share: programs, ways to compare, and scripts that record what PyTorch gives.

- `texts.py`: recorded graphs and generated C, kept as text.
- `oracle.py` with `oracle_inputs.py`: everything that can be seen of an eager and a compiled call;
  `write_ways.py` does it for programs that write.
- `*_programs.py`, `aot_families.py`, `printed_cases.py`: programs, most of them for PyTorch and for
  this package alike; `random_programs.py` and `wide_programs.py` make them up from a seed.
- `record_*.py`: `python -m tests.helpers.record_printed`, say, writes anew with PyTorch what is in
  `tests/data`; so do `pt2_programs.py`, `lr_schedules.py`, `optimizer_trajectories.py`,
  `module_structure.py` and `reinplaced_programs.py`; `generated_corpus.py` needs no PyTorch.
- `custom_functions.py`: functions with a backward of their own, and ways to make them; `modes.py`:
  modes that write down what they see; `parts.py`: modules made of parts given by name;
  `garbage.py`: blocks without Python's collector.
- `second_device.py`: a device that is not there, for tests of devices; `fake_ops.py` and
  `fake_joint.py`: operators and joint graphs for tests of graphs alone; `compiler_graphs.py` and
  `compiled_checks.py`: graphs and comparisons for the compiler; `interrupts.py`: interrupts
  between any two instructions; `leaves.py`, `peak.py`, `theirs.py`: tensors of given values,
  peaks of memory, and PyTorch where it is installed.
- `sparse_*.py`, `nested/`, `masked_inventory.py`, `quantized/`: programs of tensors that are made
  of others, kinds of checks, and the rows of `tests/data/sparse_nested.tsv`.
"""
