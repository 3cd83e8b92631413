"""The tests; what several of them use is in `tests.helpers`."""
