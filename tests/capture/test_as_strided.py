"""`as_strided` and `storage_offset` in captured functions, of arguments that are parts of memory.

Offsets count from the start of the memory, which a graph does not have: what a value of the graph
cannot show runs as it is written, or is refused by graphs that are shown.
"""

import pytest

import pullback as pb

pytestmark = pytest.mark.filterwarnings("ignore")


def read(a, b):
    return a.as_strided((2,), (1,), 1) * 1


def read_of_a_part_of_a_result(a, b):
    return (a * 1)[1:].as_strided((2,), (1,), 2) * 1


def read_after_a_write(a, b):
    a.add_(100)
    return a.as_strided((2,), (1,), 1) * 1


def view_before_a_write(a, b):
    v = a.as_strided((2,), (1,), 1)
    a.add_(100)
    return v * 1


def read_what_another_argument_wrote(a, b):
    a.add_(100)
    return b.as_strided((2,), (1,), 1) * 1


def written(a, b):
    a.as_strided((2,), (1,), 1).add_(100)
    return a * 1


def offset(a, b):
    return a.as_strided((2,), (1,), a.storage_offset()) * a.view(-1).storage_offset()


def part_of_an_argument(a, b):
    return a[1:].as_strided((2,), (1,))


def view_of_a_view(a, b):
    c = a * 1
    v = c.as_strided((3,), (1,), 1).as_strided((2,), (1,))
    c.mul_(2)
    return v * 1


def in_place(a, b):
    return a.as_strided_((2,), (1,), 1) * 1


FUNCTIONS = [read, read_of_a_part_of_a_result, read_after_a_write, view_before_a_write,
             read_what_another_argument_wrote, written, offset, part_of_an_argument, view_of_a_view,
             in_place]
PARTS = {"all": lambda x: pb.arange(4.0), "later": lambda x: x[4:8], "early": lambda x: x[2:6],
         "gaps": lambda x: x[::3], "first": lambda x: x[:4]}


def seen(run, part: str):
    """What a call returns and leaves behind, and where in the argument's memory its result lies."""
    x = pb.arange(12.0)
    a, b = PARTS[part](x), x[6:10]
    out = run(a, b)
    whole = a if part == "all" else x
    inside = 0 <= out.data_ptr() - whole.data_ptr() < whole.nbytes
    return out.tolist(), x.tolist(), a.tolist(), out.data_ptr() - a.data_ptr() if inside else None


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_captured_for_one_part_and_called_with_others(function):
    for order in (list(PARTS), list(PARTS)[::-1]):
        compiled = pb.compile(function, backend="numpy")
        for part in order:
            assert seen(compiled, part) == seen(function, part), part


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_graphs_that_are_shown_are_right_or_refuse(function):
    for part in PARTS:
        if function is read_what_another_argument_wrote and part != "all":
            continue  # arguments that do not overlap: as in PyTorch
        try:
            found = seen(pb.aot.aot_function(function, pb.aot.nop), part)
        except pb.errors.TransformError as error:
            assert "places in" in str(error) or "does not show" in str(error)
        else:
            assert found == seen(function, part), part


@pytest.mark.parametrize("function", [read, read_of_a_part_of_a_result,
                                      read_what_another_argument_wrote], ids=lambda f: f.__name__)
def test_native_code(function):
    compiled = pb.compile(function)
    for part in ("later", "all", "gaps"):
        assert seen(compiled, part) == seen(function, part), part
