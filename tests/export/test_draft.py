"""Drafts: programs of modules that `export` refuses, and what is said about them."""

import numpy as np
import pytest

import pullback as torch
from pullback import errors, library
from pullback.export import Dim, draft_export, export
from pullback.export.draft import FailureType
from tests.helpers.export_modules import Parts


def module(forward):
    class Made(torch.nn.Module):
        pass

    Made.forward = lambda self, *args: forward(*args)
    return Made()


def kinds(program):
    return [f.failure_type for f in program._report.failures]


def test_data_decide_and_are_checked():
    def forward(x, y, z):
        res = 0
        for v in (x, y):
            res = res + (v * v if v.item() > 10 else v + v)
        return z * res

    given = torch.tensor(5), torch.tensor(3), torch.tensor(2)
    with pytest.raises(errors.GuardOnDataDependentSymNode):
        export(module(forward), given)
    program = draft_export(module(forward), given)
    assert kinds(program) == [FailureType.DATA_DEPENDENT_ERROR]
    assert program._report.failures[0].data["occurrences"] == 2
    assert "torch._check" in str(program._report)
    made = program.module()
    assert made(torch.tensor(4), torch.tensor(1), torch.tensor(3)).item() == 30
    with pytest.raises(RuntimeError, match="u0 <= 10"):
        made(torch.tensor(11), torch.tensor(1), torch.tensor(3))


def test_the_number_itself():
    program = draft_export(module(lambda x, n: x * int(n.item())), (torch.ones(2), torch.tensor(3)))
    assert kinds(program) == [FailureType.DATA_DEPENDENT_ERROR]
    assert program.module()(torch.ones(2), torch.tensor(3)).tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match=r"Eq\(u0, 3\)"):
        program.module()(torch.ones(2), torch.tensor(4))


def test_tensors_as_conditions():
    program = draft_export(module(lambda x: x * 2 if x.sum() > 0 else x), (torch.ones(2),))
    assert kinds(program) == [FailureType.DATA_DEPENDENT_ERROR]
    assert program.module()(torch.tensor([3.0, -1.0])).tolist() == [6.0, -2.0]
    with pytest.raises(RuntimeError, match="Runtime assertion failed"):
        program.module()(torch.tensor([-3.0, 1.0]))


def test_floats_decide():
    def forward(x):
        y = x * 2 if x.sum().item() * 2 > 0.5 else x
        return y if x.mean().item() > 10 else y + int(x.max().item())

    program = draft_export(module(forward), (torch.ones(2),))
    assert kinds(program) == [FailureType.DATA_DEPENDENT_ERROR] * 2
    assert program.module()(torch.tensor([1.0, 0.5])).tolist() == [3.0, 2.0]
    for other in ([-1.0, 0.0], [20.0, 20.0], [2.0, 1.0]):
        with pytest.raises(RuntimeError, match="Runtime assertion failed"):
            program.module()(torch.tensor(other))


def test_nothing_is_written_or_drawn():
    class Counting(Parts):
        def forward(self, x):
            self.count.add_(1)
            return x.mul_(2) + torch.rand(3) if self.count.item() == 3 else x

    mod = Counting(count=torch.nn.Buffer(torch.tensor(2)))
    x, before = torch.ones(3), torch.get_rng_state()
    program = draft_export(mod, (x,))
    assert mod.count.item() == 2 and x.tolist() == [1.0] * 3
    assert (torch.get_rng_state() == before).all()
    assert kinds(program) == [FailureType.DATA_DEPENDENT_ERROR]


def test_sizes_that_promise_too_much():
    def forward(x):
        assert x.shape[0] == 3
        return x * x

    shapes = {"args_0": {0: Dim("n")}}
    program = draft_export(module(forward), (torch.ones(3, 3),), dynamic_shapes=shapes)
    assert kinds(program) == [FailureType.GUARD_ADDED]
    assert "Dim.AUTO" in str(program._report)
    program.module()(torch.ones(3, 3))
    with pytest.raises(errors.SignatureError):
        program.module()(torch.ones(4, 3))


def test_a_good_program_is_said_to_be_one():
    program = draft_export(module(lambda x: x.sin()), (torch.ones(2),))
    assert program._report.successful() and kinds(program) == []
    assert "No issues" in str(program._report)
    assert export(module(lambda x: x.sin()), (torch.ones(2),))._report is None


@library.custom_op("draft::unknown", mutates_args=())
def unknown(a: torch.Tensor) -> torch.Tensor:
    return a.repeat(2)


@library.custom_op("draft::wrong", mutates_args=())
def wrong(a: torch.Tensor) -> list[torch.Tensor]:
    return [a * 2, a.repeat(2), a.to(torch.float64)]


@wrong.register_fake
def _(a):
    return [torch.empty_like(a) for _ in range(3)]


def test_operators_without_right_fakes():
    x = torch.tensor([1.0, 2.0])
    program = draft_export(module(lambda x: unknown(x) + 1), (x,))
    assert kinds(program) == [FailureType.MISSING_FAKE_KERNEL]
    assert program._report.failures[0].data["op"] == "draft.unknown.default"
    assert program.module()(x).tolist() == [2.0, 3.0, 2.0, 3.0]
    program = draft_export(module(lambda x: wrong(x)), (x,))
    assert kinds(program) == [FailureType.MISMATCHED_FAKE_KERNEL] * 2
    reasons = [f.data["reason"] for f in program._report.failures]
    assert "float32[4]" in reasons[0] and "float64[2]" in reasons[1]
    for found, expected in zip(program.module()(x), wrong(x), strict=True):
        assert found.dtype is expected.dtype
        np.testing.assert_array_equal(found.numpy(), expected.numpy())


@library.custom_op("draft::secretly", mutates_args=())
def secretly(a: torch.Tensor, b: list[torch.Tensor]) -> torch.Tensor:
    b[0].add_(1)
    return a + b[0]


@secretly.register_fake
def _(a, b):
    return torch.empty_like(a)


def test_operators_that_write_and_do_not_say_so():
    x = torch.ones(2)
    with pytest.raises(errors.MetadataMismatchError, match=r"mutation mismatch.* argument 'b'"):
        draft_export(module(lambda x: secretly(x, [x * 2])), (x,))
    assert x.tolist() == [1.0, 1.0]
