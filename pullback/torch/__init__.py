"""What exists only because PyTorch has it: the map of its module paths, facades, settings.

Nothing else in this package imports from here; `install.py` says which file stands for which
module of PyTorch.  Programs say `torch.torch`, too: names that are not files here are those of the
package.
"""

import sys


def __getattr__(name: str):
    return getattr(sys.modules[__package__.partition(".")[0]], name)
