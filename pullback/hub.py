"""Pretrained weights: files that are on this machine already.

Nothing is downloaded.  What PyTorch has downloaded, or somebody has put into the same folder, is
loaded from there.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
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


def load_state_dict_from_url(url: str, model_dir: str | None = None, map_location: Any = None,
                             progress: bool = True, check_hash: bool = False,
                             file_name: str | None = None, weights_only: bool = True) -> Any:
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


def _entry(folder: str, model: str) -> Any:
    """A function that the file `hubconf.py` of a folder defines."""
    path = os.path.join(folder, "hubconf.py")
    spec = importlib.util.spec_from_file_location("hubconf", path)
    if not os.path.isfile(path) or spec is None or spec.loader is None:
        raise FileNotFoundError(f"there is no hubconf.py in {folder!r}")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    found = getattr(module, model, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return found


def load(repo_or_dir: str, model: str, *args: Any, source: str = "github", trust_repo: Any = None,
         force_reload: bool = False, verbose: bool = True, skip_validation: bool = False,
         **kwargs: Any) -> Any:
    """A model of a folder on this machine (`source="local"`); nothing is downloaded.

    The file `hubconf.py` of the folder is run, and its function `model` called.
    """
    source = source.lower()
    if source == "local":
        return _entry(repo_or_dir, model)(*args, **kwargs)
    if source != "github":
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    raise _offline(f"the model {model!r} of {repo_or_dir!r} was to be downloaded",
                   "fetch the repository, and say source='local' with its folder")


def list(github: str, force_reload: bool = False, skip_validation: bool = False,
         trust_repo: Any = None, verbose: bool = True):
    """Refuses: nothing is downloaded."""
    raise _offline(f"the models of {github!r} were asked for", "fetch the repository")


def help(github: str, model: str, force_reload: bool = False, skip_validation: bool = False,
         trust_repo: Any = None):
    """Refuses: nothing is downloaded."""
    raise _offline(f"the model {model!r} of {github!r} was asked for", "fetch the repository")


def __getattr__(name: str):
    """`tqdm`, the progress bar that others import from here, if it is installed."""
    if name == "tqdm":
        try:
            from tqdm.auto import tqdm
        except ImportError as error:
            raise AttributeError("hub.tqdm: the package tqdm is not installed") from error
        return tqdm
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
