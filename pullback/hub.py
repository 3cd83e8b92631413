"""Pretrained weights: files that are on this machine already.

Nothing is downloaded.  What PyTorch has downloaded, or somebody has put into the same folder, is
loaded from there.
"""

from __future__ import annotations

import os
import re
from typing import Any
from urllib.parse import urlparse

from . import errors
from .serialization import load as _load

_dir: str | None = None
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")


def _get_torch_home() -> str:  # the name by which torchvision asks
    """$TORCH_HOME, or ~/.cache/torch."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """The folder of downloaded files: `hub` in `_get_torch_home()`."""
    return os.path.join(_get_torch_home(), "hub") if _dir is None else _dir


def set_dir(d: str | os.PathLike) -> None:
    """Choose another folder."""
    global _dir
    _dir = os.path.expanduser(d)


def _offline(what: str, cure: str):
    return errors.NotInThisBuild(errors.text(f"{what} ({errors.user_line(2)})",
                                             "this package downloads nothing", cure))  # fmt: skip


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> Any:
    """Load a file that was downloaded from `url` before."""
    folder = model_dir or os.path.join(get_dir(), "checkpoints")
    path = os.path.join(folder, file_name or os.path.basename(urlparse(url).path))
    if not os.path.isfile(path):
        raise _offline(f"the weights of {url} are not on this machine",
                       f"download them and put them at {path}")
    return _load(path, map_location=map_location, weights_only=weights_only)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True):
    """Refuses: nothing is downloaded."""
    raise _offline(f"{url} was to be downloaded", f"download it and put it at {dst}")


def load(repo_or_dir: str, model: str, *args: Any, **kwargs: Any):
    """Refuses: programs from the hub are written for PyTorch and would be downloaded and run."""
    raise _offline(f"the model {model!r} of {repo_or_dir!r} was to be downloaded",
                   "install the package that defines it and construct it")


list = help = load


def __getattr__(name: str):
    """`tqdm`, the progress bar that others import from here, if it is installed."""
    if name == "tqdm":
        try:
            from tqdm.auto import tqdm
        except ImportError as error:
            raise AttributeError("hub.tqdm: the package tqdm is not installed") from error
        return tqdm
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
