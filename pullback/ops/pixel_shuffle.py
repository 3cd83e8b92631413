"""Shuffles of pixels and of channels."""

from __future__ import annotations

from ..core.op import Op
from ..errors import ShapeError
from ..table.packets import ops
from .batching import join_batch, part_batch
from .kinds import Synonym


def _check_shuffle(name: str, shape, factor: str, r: int) -> None:
    """An image, and a positive factor."""
    if len(shape) < 3:
        raise ShapeError(f"{name} expects input to have at least 3 dimensions, but got input "
                         f"with {len(shape)} dimension(s)")
    if r <= 0:
        raise ShapeError(f"{name} expects a positive {factor}, but got {r}")


def _shuffled_shape(shape, r: int) -> tuple:
    """The shape of `pixel_shuffle`."""
    _check_shuffle("pixel_shuffle", shape, "upscale_factor", r)
    *lead, c, h, w = shape
    if c % (r * r):
        raise ShapeError("pixel_shuffle expects its input's 'channel' dimension to be divisible by "
                         f"the square of upscale_factor, but input.size(-3)={c} is not divisible "
                         f"by {r * r}")
    return (*lead, c // (r * r), h * r, w * r)


def _unshuffled_shape(shape, r: int) -> tuple:
    """The shape of `pixel_unshuffle`."""
    _check_shuffle("pixel_unshuffle", shape, "downscale_factor", r)
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


class Shuffle(Op):
    """Elements of images in other places, channels included."""

    memory_format = "channels"
    linear = ("self",)
    complex = True
    cost = "cheap"
    method = False


class PixelShuffle(Shuffle):
    """Channels moved into blocks of pixels or back: `move` permutes, `moved_shape` checks."""

    move = moved_shape = None

    @classmethod
    def run(cls, xp, self, factor):
        return cls.move(self, factor, xp.transpose).copy()

    @classmethod
    def shape(cls, self, factor):
        return cls.moved_shape(self.shape, factor)

    @classmethod
    def batch(cls, n, batched, self, factor):
        cls.moved_shape(self.shape[1:], factor)
        return getattr(ops, cls.base_name)(self, factor)

    @classmethod
    def decomp(cls, self, factor):
        out = cls.move(self, factor, _permuted)
        return out.clone() if factor == 1 else out


class pixel_shuffle(PixelShuffle):
    """Each r * r channels become blocks of r by r pixels."""

    schema = "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor"
    grad = {"self": "pixel_unshuffle(grad, upscale_factor)"}
    move, moved_shape = _shuffle, _shuffled_shape

    def samples(s):
        yield s(s.real(2, 8, 3, 2), 2)
        yield s(s.real(9, 2, 3), 3)
        yield s(s.real(2, 3, 4), 1)
        yield s(s.real(0, 4, 3, 2), 2)
        yield s(s.real(3, 2, 4).T, 2)


class pixel_unshuffle(PixelShuffle):
    """Blocks of r by r pixels become r * r channels."""

    schema = "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor"
    grad = {"self": "pixel_shuffle(grad, downscale_factor)"}
    move, moved_shape = _unshuffle, _unshuffled_shape

    def samples(s):
        for case in pixel_shuffle.samples(s):
            x, factor = case.args
            yield s(s.real(*_shuffled_shape(x.shape, factor)), factor)
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


class channel_shuffle(Shuffle):
    """Channels in groups are interleaved: the first of each group, then the second of each, ..."""

    schema = "channel_shuffle(Tensor self, SymInt groups) -> Tensor"
    grad = {"self": "channel_shuffle(grad, grad.shape[1] // groups if groups else 1)"}

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


class native_channel_shuffle(Synonym):
    """The same as `channel_shuffle`."""

    schema = "native_channel_shuffle(Tensor self, SymInt groups) -> Tensor"
    method = False
    complex = True

    same_as = "channel_shuffle"

    samples = channel_shuffle.samples
