"""The old place of `hub.load_state_dict_from_url`."""

from .. import hub
from ..hub import load_state_dict_from_url

load_url = load_state_dict_from_url


def __getattr__(name: str):
    """`tqdm` and whatever else programs take from here."""
    return getattr(hub, name)
