"""Derivatives of discrete Fourier transforms.

All three transforms are linear, so the pullbacks are transforms too.  A one-sided spectrum leaves
out the conjugates of its *interior* bins (all but the first, and but the last if the signal's
length is even); a transform to real numbers counts each of those twice.  The entries are in
`ops/fft.py`.
"""

from __future__ import annotations

from ..table.packets import ops


def _scale_interior(spectrum, dim, size, factor):
    """A one-sided spectrum of a signal of `size` elements with its interior bins multiplied."""
    interior = size - spectrum.shape[dim]  # as many as were left out
    if interior <= 0:
        return spectrum
    pieces = [spectrum.narrow(dim, 0, 1), spectrum.narrow(dim, 1, interior) * factor]
    if interior + 1 < spectrum.shape[dim]:
        pieces.append(spectrum.narrow(dim, interior + 1, 1))
    return ops.cat(pieces, dim)


def fft_r2c_pullback(grad, dim, normalization, onesided, size):
    """The real part of the inverse transform of the gradient, the left-out bins being zero.

    The inverse to real numbers does that at half the cost: it adds the conjugates of the interior
    bins, that is twice their real parts, so they are halved first.
    """
    if not onesided:
        return ops._fft_c2c(grad, dim, normalization, False).real
    return ops._fft_c2r(_scale_interior(grad, dim[-1], size, 0.5), dim, normalization, size)


def fft_c2r_pullback(grad, dim, normalization, bins):
    """The one-sided transform of the gradient with its interior bins doubled, in `bins` bins."""
    spectrum = ops._fft_r2c(grad, dim, normalization, True)
    spectrum = _scale_interior(spectrum, dim[-1], grad.shape[dim[-1]], 2)
    unused = bins - spectrum.shape[dim[-1]]  # the transform reads no more than half of the bins
    if unused <= 0:
        return spectrum
    shape = list(spectrum.shape)
    shape[dim[-1]] = unused
    return ops.cat([spectrum, spectrum.new_zeros(shape)], dim[-1])
