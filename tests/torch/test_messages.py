"""What is not there says so in the user's words."""

import pytest

import pullback as torch
from pullback import errors


@pytest.mark.parametrize("name", ["smm"])
def test_other_layouts(name):
    with pytest.raises(errors.NotInThisBuild, match=rf"{name}\(\).*test_messages.py"):
        getattr(torch.ones(2), name)()


def test_groups_of_processes():
    with pytest.raises(errors.NotInThisBuild, match="several processes"):
        torch.distributed.init_process_group("gloo")
    with pytest.raises(ValueError, match="not been initialized"):
        torch.distributed.get_rank()
