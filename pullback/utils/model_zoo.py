"""The old place of `hub.load_state_dict_from_url`."""

from ..hub import load_state_dict_from_url

load_url = load_state_dict_from_url
