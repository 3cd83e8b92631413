"""`pullback.nn.functional`: the stateless half of nn, with PyTorch's signatures.

Each function sorts out its arguments (words for reductions, legacy flags, sizes) and calls
operators of the table.  Modules that hold parameters are in the files beside this package.
"""

from .activations import *
from .arguments import *
from .attention import *
from .losses import *
from .maps import *
from .noise import *
from .normalisation import *
from .pooling import *
from .resampling import *
from .scaled import *
