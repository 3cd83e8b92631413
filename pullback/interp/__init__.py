"""Interpreters, one per file: what an operator means at a level of the stack."""
