"""The graphs that compilers get print to PyTorch's letter.

`literal_programs.py` has the programs, `record_literals.py` wrote what PyTorch prints. `OTHERWISE`
lists the graphs that differ on purpose, with the reason, as docs/differences.md does.
"""

import json
from pathlib import Path

import pytest

import pullback as pb
from pullback.aot import aot_function, make_boxed_compiler
from tests.helpers.aot_prints import check, prints
from tests.helpers.aot_programs import programs

RECORDED = json.loads((Path(__file__).parents[1] / "data/aot_graphs.json").read_text())

WRITES = "statistics are saved as they were written, not as views of what was written"
# A write that autograd does not see gives its input no gradient of its own.
UNSEEN = "written behind autograd's back"
OTHERWISE = {
    "written_without_tape backward": UNSEEN,
    "written_without_tape backward, writes kept": UNSEEN,
    "written_through_detached backward": UNSEEN,
    "turned_and_written forward": "what was written is not viewed back and forth",
    "turned_and_written backward": "what was written is not viewed back and forth",
    "views_of_written_inputs forward": "what was written is not viewed back and forth",
    "interleaved_parts_written inference": "every second element: no overlap here",
    "interleaved_parts_written inference, writes kept": "every second element: no overlap here",
    **dict.fromkeys(("batch_norm forward", "batch_norm backward",
                     "batch_norm forward, writes kept"), WRITES),
}
PROGRAMS = programs(pb)


@pytest.mark.parametrize("name", RECORDED)
def test_prints_as_recorded(name):
    found = prints(pb, aot_function, make_boxed_compiler, *PROGRAMS[name])
    check(name, found, RECORDED[name], OTHERWISE)
