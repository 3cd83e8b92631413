"""The optimizers with `foreach=True` as default, under PyTorch's name for the module."""

import functools

from .. import NAdam as _NAdam
from .. import RAdam as _RAdam
from .. import RMSprop as _RMSprop
from .. import Rprop as _Rprop
from ..adadelta import Adadelta as _Adadelta
from ..adagrad import Adagrad as _Adagrad
from ..adam import Adam as _Adam
from ..adamax import Adamax as _Adamax
from ..adamw import AdamW as _AdamW
from ..asgd import ASGD as _ASGD
from ..sgd import SGD as _SGD

Adadelta, Adagrad, Adam, Adamax, AdamW, ASGD, NAdam, RAdam, RMSprop, Rprop, SGD = (
    functools.partial(_cls, foreach=True)
    for _cls in (_Adadelta, _Adagrad, _Adam, _Adamax, _AdamW, _ASGD, _NAdam, _RAdam, _RMSprop,
                 _Rprop, _SGD)
)
