"""Convolution under the names of single kernels: general, dilated, transposed, depthwise.

Each is `convolution` with some of its arguments fixed, so one function composes them all; what a
name means is read off the name, and its arguments off its schema.  `conv.py` has the operator and
its kernels.
"""

from __future__ import annotations

from ..core.op import Composite, overload
from ..errors import ShapeError
from ..table.packets import ops
from .conv import _batched

_WEIGHTED = "(Tensor self, Tensor weight, SymInt[{0}] kernel_size, Tensor? bias"
_STEPS = ", SymInt[{0}] stride, SymInt[{0}] padding"
_STEPS_WITH_DEFAULTS = "=None, SymInt[{0}] stride=1, SymInt[{0}] padding=0"
_DILATION = ", SymInt[{0}] dilation"

FORMS = {  # name -> (number of spatial dims, arguments)
    "thnn_conv2d": (2, _WEIGHTED + _STEPS_WITH_DEFAULTS),
    "_slow_conv2d_forward": (2, _WEIGHTED + _STEPS),
    "slow_conv3d": (3, _WEIGHTED + _STEPS_WITH_DEFAULTS),
    "slow_conv3d_forward": (3, _WEIGHTED + _STEPS),
    "slow_conv_dilated2d": (2, _WEIGHTED + _STEPS_WITH_DEFAULTS + _DILATION + "=1"),
    "slow_conv_dilated3d": (3, _WEIGHTED + _STEPS_WITH_DEFAULTS + _DILATION + "=1"),
    "slow_conv_transpose2d": (
        2, _WEIGHTED + _STEPS_WITH_DEFAULTS + ", SymInt[{0}] output_padding=0" + _DILATION + "=1"),
    "slow_conv_transpose3d": (
        3, _WEIGHTED + _STEPS_WITH_DEFAULTS + ", SymInt[{0}] output_padding=0" + _DILATION + "=1"),
    "_conv_depthwise2d": (2, _WEIGHTED + _STEPS + _DILATION),
    "conv_depthwise3d": (3, _WEIGHTED + _STEPS + _DILATION),
}


def _make(name: str, rank: int, arguments: str) -> None:
    transposed, depthwise = "transpose" in name, "depthwise" in name

    def compose(*args):
        given = dict(zip(overload(name).schema.names, args))
        weight, bias, sizes = given["weight"], given["bias"], tuple(given["kernel_size"])
        x, alone = _batched(name, given["self"], rank)
        if tuple(weight.shape[2:]) != sizes:
            raise ShapeError(f"{name}: a weight of shape {list(weight.shape)} has no kernels of "
                             f"size {list(sizes)}")
        out = ops.convolution(
            x, weight, bias, given["stride"], given["padding"], given.get("dilation", [1] * rank),
            transposed, given.get("output_padding", [0] * rank), x.shape[1] if depthwise else 1)
        return out.squeeze(0) if alone else out

    def samples(s):
        kernel, image = [2, 3, 2][:rank], [4, 5, 3][:rank]
        inputs, outputs = (4, 4) if depthwise else (2, 3)
        ends = (inputs, outputs) if transposed else (outputs, 1 if depthwise else inputs)
        dilated = arguments.endswith("dilation")  # it has no default
        rest = [[1] * rank] if dilated else []
        yield s(s.real(2, inputs, *image), s.real(*ends, *kernel), kernel, s.real(outputs),
                [1] * rank, [0] * rank, *rest)
        rest = [[1, 2, 1][:rank]] if dilated else []
        yield s(s.real(inputs, *image), s.real(*ends, *kernel), kernel, None, [2, 1, 2][:rank],
                [1, 1, 0][:rank], *rest)

    words = {True: "Transposed convolution", False: "Convolution"}[transposed]
    body = {
        "__doc__": f"{words} over {rank} dims{', each channel by itself' if depthwise else ''}.",
        "__module__": __name__,
        "schema": f"{name}{arguments.format(rank)}) -> Tensor",
        "compose": compose,
        "samples": samples,
        "complex": True,
        "method": False,
        "function": False,
    }
    type(name, (Composite,), body)


for _name, (_rank, _arguments) in FORMS.items():
    _make(_name, _rank, _arguments)


class _slow_conv2d_backward(Composite):
    """Gradients of `_slow_conv2d_forward`, as the mask asks."""

    schema = ("_slow_conv2d_backward.output_mask(Tensor grad_output, Tensor self, Tensor weight,"
              " SymInt[2] kernel_size, SymInt[2] stride, SymInt[2] padding, bool[3] output_mask)"
              " -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)")
    method = False
    function = False
    complex = True

    def compose(grad_output, self, weight, kernel_size, stride, padding, output_mask):
        found = ops.convolution_backward(
            grad_output, self, weight, [weight.shape[0]], stride, padding, [1, 1], False, [0, 0], 1,
            output_mask)
        return overload("_slow_conv2d_backward.output_mask").result_class(*found)

    def samples(s):
        yield s(s.real(2, 3, 3, 3), s.real(2, 2, 4, 5), s.real(3, 2, 2, 3), [2, 3], [1, 1], [0, 0],
                [True, True, True])
        yield s(s.real(1, 3, 2, 3), s.real(1, 2, 4, 3), s.real(3, 2, 3, 3), [3, 3], [2, 1], [1, 1],
                [True, True, False])


class convolution_overrideable(Composite):
    """`convolution`, as a device from outside would provide it."""

    schema = ("convolution_overrideable(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride,"
              " SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding,"
              " SymInt groups) -> Tensor")
    method = False
    function = False
    complex = True

    def compose(*args):
        return ops.convolution(*args)

    def samples(s):
        yield s(s.real(2, 4, 6), s.real(2, 2, 3), s.real(2), [2], [1], [1], False, [0], 2)


class convolution_backward_overrideable(Composite):
    """`convolution_backward`, as a device from outside would provide it."""

    schema = ("convolution_backward_overrideable(Tensor grad_output, Tensor input, Tensor weight,"
              " SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed,"
              " SymInt[] output_padding, SymInt groups, bool[3] output_mask)"
              " -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)")
    method = False
    function = False
    complex = True

    def compose(grad_output, input, weight, *numbers):
        transposed, groups = numbers[3], numbers[5]
        bias = weight.shape[1] * groups if transposed else weight.shape[0]
        found = ops.convolution_backward(grad_output, input, weight, [bias], *numbers)
        return overload("convolution_backward_overrideable").result_class(*found)

    def samples(s):
        yield s(s.real(2, 2, 3), s.real(2, 4, 6), s.real(2, 2, 3), [2], [1], [1], False, [0], 2,
                [True, True, True])
        yield s(s.real(2, 2, 6), s.real(2, 3, 4), s.real(3, 2, 3), [1], [0], [1], True, [0], 1,
                [False, True, True])
