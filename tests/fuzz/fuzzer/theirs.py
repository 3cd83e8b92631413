"""PyTorch as the yardstick: the text of a program runs in a process that has it.

`TORCHPY` names an interpreter with PyTorch; without it, this one is asked. The other process gets
texts, one pickle per program, and answers with what it saw. What PyTorch does otherwise, and why
that is its own matter, is in the lists of names below; `docs/differences.md` says it to users.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import re
import struct
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

from .compare import ROUNDING, Refused, difference, observe, spread

# beginnings of operators' names, without `special_`; nothing is compared where they occur
APART = (
    "_ctc_loss", "embedding_bag", "_embedding_bag",  # parts of results that nobody documents
    "_linalg_slogdet", "_linalg_det",  # factors, which are those of the transposed matrix there
    "bucketize", "searchsorted",  # what is not sorted
    "upsample_nearest1d_backward", "upsample_nearest3d_backward", "upsample_bicubic2d_backward",
    "_upsample_bilinear2d_aa_backward", "_upsample_bicubic2d_aa_backward",
    "_upsample_lanczos2d_aa_backward",  # they take scales otherwise than the forward does
    "_softmax_backward_data", "_log_softmax_backward_data",  # with a dtype that is not the input's
    "slice_inverse",  # reads memory behind its argument
    "_sample_dirichlet", "_dirichlet_grad", "_standard_gamma",  # parameters that are not positive
    "fused_moving_avg_obs_fake_quant", "_fused_moving_avg",  # states that are one tensor
    "_weight_norm_interface",  # reads operands as if they lay in one piece
    "_fake_quantize_learnable",  # scales that are NaN
    "cumprod_backward",  # with a product that is not that of its factors
    "log_sigmoid_backward",  # with a buffer that is not that of its input
    "slow_conv_transpose2d",  # one image comes back as a batch
    "_scaled_dot_product_flash_attention_for_cpu_backward",  # with results that are not its own
    "smooth_l1_loss_backward",  # with a gradient of another dtype
    "_segment_reduce_backward",  # with results that are not those of its values
    "mkldnn_rnn_layer",  # its last result is what the library wants to see again
)
# the same for gradients alone: PyTorch has none and says nothing, or they are not those of the
# values (statistics beside a result, resampling by other scales, arguments outside of the domain, a
# radius below zero)
CUT = (
    "bessel_", "modified_bessel_", "scaled_modified_bessel_", "spherical_bessel_", "airy_ai",
    "chebyshev_polynomial_", "shifted_chebyshev_polynomial_", "hermite_polynomial_",
    "laguerre_polynomial_", "legendre_polynomial_", "native_layer_norm", "native_group_norm",
    "_native_batch_norm", "native_batch_norm", "_batch_norm", "batch_norm_", "_fused_rms_norm",
    "upsample_", "_upsample_", "igamma", "gammainc", "polar",
    "rrelu_with_noise_functional",  # takes the noise that comes in for that which it has drawn
    "binary_cross_entropy_backward",  # its derivative has another limit beside 0 and 1, and outside
    "embedding_dense_backward",  # its derivative forgets `scale_grad_by_freq`
    # in place the gradient goes through them as if they had not been there
    "logical_not_", "logical_and_", "logical_or_", "logical_xor_",
)
# losses as operators: the gradient of what was broadcast counts elements otherwise there
BROADCAST = ("smooth_l1_loss", "huber_loss", "mse_loss")
# NaN is lost there: in polynomials, in the queries of attention, in gradients behind a factor of 0
# and where the sign of the incoming gradient decides
NAN_LOST = ("chebyshev_polynomial_", "shifted_chebyshev_polynomial_", "hermite_polynomial_",
            "laguerre_polynomial_", "legendre_polynomial_", "scaled_dot_product_attention",
            "_scaled_dot_product", "cumprod", "logcumsumexp")
# results that lie in columns, there or in both: draws over them are made along memory there
COLUMNS = ("linalg", "inv", "cholesky", "solve", "pinverse", "einsum", "nonzero", "rot90", "lu_",
           "swapaxes", "swapdims", "transpose", "permute", "movedim", "moveaxis", "adjoint", "mT")
POLES = ("polygamma",)  # infinite at whole numbers below one, which are large numbers there
# they read inputs as if these lay in one piece
IN_ONE_PIECE = {"native_group_norm", "_scaled_dot_product_flash_attention_for_cpu",
                "_masked_softmax"}
EXPANDED = ("median", "nanmedian")  # reads memory behind what is repeated
# windows that overlap: a write through them reads what it has just written, there or here
WINDOWS = re.compile(r"(\w+) = \w+\.unfold\(-?\d+, 2, 1\)[^\0]*\b\1(\[.*\])?(\.\w+_\(| [-+*/]?= )")
EMPTY_KEPT = ("pixel_unshuffle",)  # what has no elements comes back as it is
# products of narrow steps wrap, and differences without a sign; losses of whole numbers are cut off
NARROW_STEPS, WHOLE_LOSSES = {"gradient"}, {"hinge_embedding_loss"}
UNSIGNED = ("soft_margin_loss",)  # targets are negated: 255 in place of -1
# what LAPACK leaves of a matrix that it cannot factorize, and the sign of a determinant that is NaN
# (0): NaN here
UNFACTORED = ("cholesky_ex", "linalg_cholesky_ex", "slogdet", "linalg_slogdet")
# singular values of infinite matrices: NaN here, there what LAPACK gives, zeros among it
SINGULAR = ("nuclear_norm", "svd", "linalg_svd", "pinverse", "linalg_pinv", "linalg_matrix_norm",
            "linalg_cond", "linalg_matrix_rank")
# clamped between 0 and the largest number: NaN is 0 or itself by its place, inf is that number
CLAMPED = ("_add_relu",)
# NaN at infinity in whole vectors of float32 there, infinite for single elements, and here
INFINITE = ("gelu",)
# draws by a count or a rate that is NaN or infinite: they do not return, or give something
ENDLESS = ("binomial", "poisson")
# the factor's diagonal is to be real; where it is not, theirs is not the solution of its equations
REAL_DIAGONAL = ("cholesky_inverse",)
# the gradient at NaN is one thing in whole vectors of the machine, another in the rest; that of the
# last two is the one at 0
NAN_BY_PLACE = ("hardtanh", "relu6", "hardswish", "softshrink", "hardshrink", "elu", "celu", "selu",
                "i1", "i1e")
# good for few digits: the first between -4.5 and -2.09, the gradient of the second by a sixth of
# float32, Bessel functions from 5 to about 15, where theirs jump by up to 9e-7
INACCURATE = {"airy_ai": 3e-6, "hardsigmoid": 1e-8, "bessel_j0": 1e-7, "bessel_j1": 1e-7,
              "bessel_y0": 1e-7, "bessel_y1": 1e-7}
# computed in half precision there if one operand is, and the result is float32
IN_HALF = {"binary_cross_entropy_with_logits"}
# multiplied in half precision there: factors on the way may overflow before a 0 makes NaN of them
NARROW_PRODUCTS = {"prod", "cumprod"}
HALF = {"half": "float16", "float16": "float16", "bfloat16": "bfloat16"}
WHOLE_POWERS = ("ldexp",)  # whole exponents below zero: the factor of the gradient is 0, not 2^-n
# the gradient is a zero that stays one whatever it meets: 0, where 0 times NaN is NaN here
ZERO_KEPT = {"sgn", "sgn_"}
# derivatives that are refused here and silently wrong, or none, there (`docs/differences.md`)
OUR_OWN = re.compile("for 'n' is not implemented|which is arbitrary|linalg_ldl_solve")
# its gradients for input and weight are one operator here, which keeps both of these for either
KEPT = {"_convolution_double_backward"}
WHOLE = re.compile(r"\b(u?int\d+|int|long|short|char|byte|bool)\b")  # dtypes and casts to them
_server: subprocess.Popen | None = None


def interpreter() -> str | None:
    """A Python with PyTorch, if there is one."""
    given = os.environ.get("TORCHPY")
    if given:
        return given if Path(given).exists() else None
    return sys.executable if importlib.util.find_spec("torch") else None


def ask(source: str, inputs: dict, gradients: bool):
    """What PyTorch makes of a text: values seen, or (name, words) of an error."""
    global _server
    if _server is None or _server.poll() is not None:
        env = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        _server = subprocess.Popen(
            [interpreter(), str(Path(__file__).parents[1]), "--serve-torch"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
    data = pickle.dumps((source, inputs, gradients))
    _server.stdin.write(struct.pack("<q", len(data)) + data)
    _server.stdin.flush()
    head = _server.stdout.read(8)
    if len(head) < 8:
        _server = None
        return "died", "PyTorch's process ended"
    return pickle.loads(_server.stdout.read(struct.unpack("<q", head)[0]))


def serve() -> None:
    """The other process: answers until nobody asks any more."""
    import torch

    from .program import function_of

    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    torch.set_num_threads(1)
    while True:
        head = sys.stdin.buffer.read(8)
        if len(head) < 8:
            return
        source, inputs, gradients = pickle.loads(
            sys.stdin.buffer.read(struct.unpack("<q", head)[0]))
        try:
            answer = observe(torch, function_of(source, torch), inputs, gradients)
        except Refused as error:
            answer = type(error.__cause__).__name__, str(error.__cause__)[:300]
        except Exception as error:
            answer = type(error).__name__, str(error)[:300]
        data = pickle.dumps(answer)
        answers.write(struct.pack("<q", len(data)) + data)
        answers.flush()


def words_of(case) -> set[str]:
    """Names in a program, those of operators among them."""
    return {w.removeprefix("special_") for w in re.findall(r"\w+", str(case.program))}


def gradients_of(case) -> bool | None:
    """May gradients be compared, too? None: nothing may be."""
    words = words_of(case)

    def has(names: tuple) -> bool:
        return any(w.startswith(names) for w in words)

    values = [s.value for s in case.wanted if not s.is_text]
    if "ambiguous" in case.traits or has(APART) or "random" in case.traits and has(COLUMNS):
        return None
    odd = any(v.dtype.kind in "fc" and np.isnan(v).any() for v in values)
    if odd and (has(NAN_LOST) or has(UNFACTORED)):
        return None
    if has(POLES) and any(v.dtype.kind in "fc" and np.isinf(v).any() for v in values):
        return None
    if has(REAL_DIAGONAL) and any(v.dtype.kind == "c" for v in values):
        return None
    if has(ENDLESS) and (odd or any(i.odd for i in case.inputs.values())):
        return None
    if has(SINGULAR + CLAMPED + INFINITE) and any(
            v.dtype.kind in "fc" and not np.isfinite(v).all() for v in values):
        return None
    if has(("grid_sampler", "grid_sample")) and any(i.odd for i in case.inputs.values()):
        return None  # places that are infinite or NaN: vectorised code has NaN, the rest has 0
    if IN_ONE_PIECE & words and any(i.layout in ("t", "step") for i in case.inputs.values()):
        return None
    if has(EXPANDED) and "expand" in str(case.program):
        return None
    if case.written and WINDOWS.search(case.program.source()):
        return None
    if NARROW_STEPS & words and {"uint8", "int8", "int16"} & words or (
            WHOLE_LOSSES & words and WHOLE.search(str(case.program))):
        return None
    if has(EMPTY_KEPT) and any(v.size == 0 for v in values):
        return None
    if odd and has(NAN_BY_PLACE):
        return False
    wrong = "uint8" in words and has(UNSIGNED) or "aten" in words and has(BROADCAST) or (
        WHOLE.search(str(case.program)) and has(WHOLE_POWERS))
    return not has(CUT) and not wrong


def rounding_of(case) -> float:
    """That of all values on the way: integers become float32, inside of a step, too."""
    eps = max(case.eps * 2, 1e-10)  # some of its special functions are good for ten digits
    words = words_of(case)
    eps = max([eps, *(size for name, size in INACCURATE.items() if name in words)])
    if IN_HALF & words:
        eps = max([eps, *(ROUNDING[dtype] for name, dtype in HALF.items() if name in words)])
    return max(eps, ROUNDING["float32"]) if WHOLE.search(str(case.program)) else eps


def check(case) -> str | None:
    """What Pullback's eager mode does otherwise than PyTorch."""
    from pullback.errors import SavedValueModified  # not in PyTorch's process

    from .modes import room_of

    gradients = gradients_of(case)
    if gradients is None or tied(case):
        return None
    ours = isinstance(case.error, SavedValueModified) and KEPT & words_of(case)
    if case.error is not None and gradients and not ours and not OUR_OWN.search(str(case.error)):
        answer = ask(case.program.source(), case.inputs, True)
        if not isinstance(answer, tuple):
            return f"it has the gradient that eager mode refuses: {case.error}"
    gradients = gradients and case.gradients
    answer = ask(case.program.source(), case.inputs, gradients)
    if isinstance(answer, tuple):
        return None  # it refuses what we take: not a wrong number
    if any(s.dtype == "complex32" for s in answer):
        return None  # nothing is computed in it here
    chosen = [k for k, s in enumerate(answer) if not s.cut]  # where it has no derivative, we may
    ours, answer = [case.wanted[k] for k in chosen], [answer[k] for k in chosen]
    padded = "conv" in case.program.source()  # its zeros meet infinite weights there
    words = words_of(case)
    kept = ZERO_KEPT & words
    lost = bool(NARROW_PRODUCTS & words and {"half", "float16"} & words)
    for mine, other in zip(ours, answer):  # a NaN of theirs that is a number here
        if (padded or lost or mine.place.startswith("gradient")) and not mine.is_text and (
                mine.value.shape == other.value.shape and mine.value.dtype.kind in "fc"):
            other.value = np.where(np.isnan(other.value), mine.value, other.value)
            if kept and mine.place.startswith("gradient"):
                zero = np.isnan(mine.value) & (other.value == 0)
                other.value = np.where(zero, mine.value, other.value)
    eps = rounding_of(case)
    found = difference(ours, answer, eps)
    if found:
        room = room_of(case.program, case.wanted, case.eps, case.gradients)
        found = difference(ours, answer, eps, [room[k] for k in chosen])
    if found:
        room = their_error(case, answer, chosen, gradients)
        found = difference(ours, answer, eps, room)
    return found


def tied(case) -> bool:
    """Does it sort equal numbers, whose order is not defined?"""
    import pullback as pb
    from pullback.utils._python_dispatch import TorchDispatchMode

    class Sorting(TorchDispatchMode):
        found = False

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func._schema.name in ("aten::sort", "aten::topk"):
                values = args[0].detach().double().numpy()
                self.found |= np.unique(values).size < values.size
            return func(*args, **(kwargs or {}))

    if not {"sort", "argsort", "topk"} & words_of(case):
        return False
    with Sorting() as sorting:
        observe(pb, case.function, case.inputs, False)
    return sorting.found


def their_error(case, answer: list, chosen: list, gradients: bool) -> list:
    """How far PyTorch is from what it gives in float64: where it overflows we need not."""
    from .program import WIDE

    wide = {n: replace(i, dtype=WIDE.get(i.dtype, i.dtype)) for n, i in case.inputs.items()}
    none = [0.0] * len(answer)
    if wide == case.inputs:
        return none
    better = ask(case.program.source(), wide, gradients)
    if isinstance(better, tuple) or len(better) <= max(chosen, default=0):
        return none
    return spread([[better[k] for k in chosen]], answer, 1.0) or none
