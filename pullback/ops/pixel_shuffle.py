"""Shuffles of pixels and of channels."""

from __future__ import annotations

from ..core.op import Composite, Op
from ..errors import ShapeError
from ..table.packets import ops
from .batching import join_batch, part_batch


def _shuffled_shape(shape, r: int) -> tuple:
    """The shape of `pixel_shuffle`."""
    if len(shape) < 3:
        raise ShapeError("pixel_shuffle expects input to have at least 3 dimensions, but got input "
                         f"with {len(shape)} dimension(s)")
    if r <= 0:
        raise ShapeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    *lead, c, h, w = shape
    if c % (r * r):
        raise ShapeError("pixel_shuffle expects its input's 'channel' dimension to be divisible by "
                         f"the square of upscale_factor, but input.size(-3)={c} is not divisible "
                         f"by {r * r}")
    return (*lead, c // (r * r), h * r, w * r)


def _unshuffled_shape(shape, r: int) -> tuple:
    """The shape of `pixel_unshuffle`."""
    if len(shape) < 3:
        raise ShapeError("pixel_unshuffle expects input to have at least 3 dimensions, but got "
                         f"input with {len(shape)} dimension(s)")
    if r <= 0:
        raise ShapeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *lead, c, h, w = shape
    if h % r or w % r:
        raise ShapeError("pixel_unshuffle expects height and width to be divisible by "
                         f"downscale_factor, but {h} or {w} is not divisible by {r}")
    return (*lead, c * r * r, h // r, w // r)


def _shuffle(self, r: int, move):
    """Blocks of r * r channels become blocks of pixels; `move` permutes dims."""
    *lead, c, h, w = _shuffled_shape(self.shape, r)
    n = len(lead)
    split = self.reshape((*lead, c, r, r, h // r, w // r))
    order = (*range(n + 1), n + 3, n + 1, n + 4, n + 2)
    return move(split, order).reshape((*lead, c, h, w))


def _unshuffle(self, r: int, move):
    """The inverse of `_shuffle`."""
    *lead, c, h, w = _unshuffled_shape(self.shape, r)
    n = len(lead)
    split = self.reshape((*lead, c // (r * r), h, r, w, r))
    order = (*range(n + 1), n + 2, n + 4, n + 1, n + 3)
    return move(split, order).reshape((*lead, c, h, w))


def _permuted(t, order):
    return t.permute(order)


class pixel_shuffle(Op):
    """Each r * r channels become blocks of r by r pixels."""

    schema = "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor"
    lies = "channels"
    linear = ("self",)
    grad = {"self": "pixel_unshuffle(grad, upscale_factor)"}
    complex = True
    cost = "cheap"
    method = False
    shape = staticmethod(lambda self, upscale_factor: _shuffled_shape(self.shape, upscale_factor))

    def run(xp, self, upscale_factor):
        return _shuffle(self, upscale_factor, xp.transpose).copy()

    def batch(n, batched, self, upscale_factor):
        _shuffled_shape(self.shape[1:], upscale_factor)
        return ops.pixel_shuffle(self, upscale_factor)

    def decomp(self, upscale_factor):
        out = _shuffle(self, upscale_factor, _permuted)
        return out.clone() if upscale_factor == 1 else out

    def samples(s):
        yield s(s.real(2, 8, 3, 2), 2)
        yield s(s.real(9, 2, 3), 3)
        yield s(s.real(2, 3, 4), 1)
        yield s(s.real(0, 4, 3, 2), 2)
        yield s(s.real(3, 2, 4).T, 2)


class pixel_unshuffle(Op):
    """Blocks of r by r pixels become r * r channels."""

    schema = "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor"
    lies = "channels"
    linear = ("self",)
    grad = {"self": "pixel_shuffle(grad, downscale_factor)"}
    complex = True
    cost = "cheap"
    method = False
    shape = staticmethod(
        lambda self, downscale_factor: _unshuffled_shape(self.shape, downscale_factor))

    def run(xp, self, downscale_factor):
        return _unshuffle(self, downscale_factor, xp.transpose).copy()

    def batch(n, batched, self, downscale_factor):
        _unshuffled_shape(self.shape[1:], downscale_factor)
        return ops.pixel_unshuffle(self, downscale_factor)

    def decomp(self, downscale_factor):
        out = _unshuffle(self, downscale_factor, _permuted)
        return out.clone() if downscale_factor == 1 else out

    def samples(s):
        yield s(s.real(2, 2, 6, 4), 2)
        yield s(s.real(2, 3, 6), 3)
        yield s(s.real(2, 3, 4), 1)
        yield s(s.real(0, 4, 4, 2), 2)
        yield s(s.real(4, 2, 3).T, 2)


def _check_channels(name: str, shape, groups: int) -> None:
    if len(shape) < 3:
        raise ShapeError(f"{name} expects input with > 2 dims, but got input with sizes "
                         f"{list(shape)}")
    if groups <= 0 or shape[1] % groups:
        raise ShapeError(f"{name}: number of channels must be divisible by a positive number of "
                         f"groups, but got {shape[1]} channels and {groups} groups")


def _mixed(self, groups: int):
    """Channel k of each group becomes neighbour of channel k of the others."""
    n, c, *rest = self.shape
    split = self.reshape((n, groups, c // groups, *rest))
    return split.swapaxes(1, 2).reshape((n, c, *rest))


class channel_shuffle(Op):
    """Channels in groups are interleaved: the first of each group, then the second of each, ..."""

    schema = "channel_shuffle(Tensor self, SymInt groups) -> Tensor"
    lies = "channels"
    linear = ("self",)
    grad = {"self": "channel_shuffle(grad, grad.shape[1] // groups if groups else 1)"}
    complex = True
    cost = "cheap"
    method = False

    def run(xp, self, groups):
        _check_channels("channel_shuffle", self.shape, groups)
        return _mixed(self, groups).copy()

    def shape(self, groups):
        _check_channels("channel_shuffle", self.shape, groups)
        return tuple(self.shape)

    def batch(n, batched, self, groups):
        return part_batch(n, ops.channel_shuffle(join_batch(n, self, True), groups))

    def decomp(self, groups):
        _check_channels("channel_shuffle", self.shape, groups)
        out = _mixed(self, groups)
        return out.clone() if groups in (1, self.shape[1]) else out

    def samples(s):
        yield s(s.real(2, 6, 2, 3), 2)
        yield s(s.real(2, 6, 4), 3)
        yield s(s.real(1, 4, 2), 1)
        yield s(s.real(0, 4, 2), 2)
        yield s(s.real(2, 3, 4, 6).transpose(1, 3), 3)


class native_channel_shuffle(Composite):
    """The same as `channel_shuffle`."""

    schema = "native_channel_shuffle(Tensor self, SymInt groups) -> Tensor"
    method = False
    complex = True

    def compose(self, groups):
        return ops.channel_shuffle(self, groups)

    samples = channel_shuffle.samples
