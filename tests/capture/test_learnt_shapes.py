"""Operators of users without a fake in compiled functions: called whole, their shapes learnt."""

import warnings

import numpy as np
import pytest

import pullback as torch
from pullback import errors
from pullback.aot import aot_function, nop

WAYS = {"compile": torch.compile, "numpy": lambda f: torch.compile(f, backend="numpy"),
        "aot": lambda f: aot_function(f, nop)}
pytestmark = pytest.mark.filterwarnings("ignore:.*has no fake", "ignore:.*stay fixed")


@torch.library.custom_op("learnt::rows", mutates_args=())
def rows(x: torch.Tensor, count: int) -> torch.Tensor:
    return torch.from_numpy(np.repeat(x.numpy()[None], count, 0))


@torch.library.custom_op("learnt::half", mutates_args=())
def half(x: torch.Tensor) -> list[torch.Tensor]:
    return [x[: len(x) // 2].clone(), x[len(x) // 2 :].double()]


@torch.library.custom_op("learnt::double", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(2 * x.detach().numpy())


double.register_autograd(lambda ctx, grad: double(grad))


@torch.library.custom_op("learnt::bump", mutates_args=("x",))
def bump(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.add_(y)
    return y.clone()


@torch.library.custom_op("learnt::positive", mutates_args=())
def positive(x: torch.Tensor) -> torch.Tensor:
    return x[x > 0].clone()


@pytest.mark.parametrize("way", WAYS)
def test_operators_are_called_as_they_are(way):
    def f(x):
        first, second = half(rows(x.sin(), 4)[0])
        return first * 2, second.sum()

    x, compiled = torch.arange(6.0), WAYS[way](f)
    for _ in range(3):
        for a, b in zip(compiled(x), f(x)):
            assert torch.equal(a, b) and a.dtype == b.dtype
    longer = torch.arange(8.0)
    assert torch.equal(compiled(longer)[0], f(longer)[0])


@pytest.mark.parametrize("way", WAYS)
def test_their_gradients_may_be_such_operators(way):
    x = torch.arange(3.0, requires_grad=True)
    WAYS[way](lambda x: (double(x) * x).sum())(x).backward()
    assert x.grad.tolist() == [0, 4, 8]


@pytest.mark.parametrize("way", WAYS)
def test_writing_operators(way):
    x, y = torch.ones(3), torch.arange(3.0)
    out = WAYS[way](lambda x, y: bump(x, y) + x)(x, y)
    assert x.tolist() == [1, 2, 3] and out.tolist() == [1, 3, 5]


def test_one_warning_says_so(monkeypatch):
    monkeypatch.setattr(errors, "said", set())
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for n in (3, 4):
            torch.compile(lambda x: double(x) + 1, dynamic=False)(torch.ones(n))
    assert len(seen) == 1 and seen[0].filename == __file__
    assert "learnt.double.default has no fake" in str(seen[0].message)
    assert "float32[3]" in str(seen[0].message)


def test_they_are_called_once_more_than_the_function(capsys):
    @torch.library.custom_op("learnt::said", mutates_args=())
    def said(x: torch.Tensor) -> torch.Tensor:
        print("called")
        return x.clone()

    f = aot_function(lambda x: said(said(x)) * 2, nop)
    f(torch.ones(3)), f(torch.ones(3))
    assert capsys.readouterr().out.count("called") == 2 + 2 * 2


def test_another_shape_than_the_learnt_one_is_refused():
    f = torch.compile(lambda x: positive(x) * 2)
    assert f(torch.tensor([1.0, -1.0, 2.0])).tolist() == [2, 4]
    with pytest.raises(errors.MetadataMismatchError, match=r"(?s)shape \[1\].* made for \[2\].*"
                       "test_learnt_shapes.py.*new_dynamic_size"):
        f(torch.tensor([1.0, -1.0, -2.0]))
    assert f(torch.tensor([1.0, 3.0, -2.0])).tolist() == [2, 6]


def test_another_number_of_results_is_refused():
    @torch.library.custom_op("learnt::ones", mutates_args=())
    def ones(x: torch.Tensor) -> list[torch.Tensor]:
        return [torch.ones(2) for _ in range(int(x[0]))]

    f = torch.compile(lambda x: sum(ones(x)))
    assert f(torch.tensor([3.0])).tolist() == [3, 3]
    with pytest.raises(errors.MetadataMismatchError, match=r"returned 2 results .* made for 3"):
        f(torch.tensor([2.0]))


def test_what_only_acts_needs_no_fake():
    @torch.library.custom_op("learnt::note", mutates_args=())
    def note(x: torch.Tensor, text: str) -> None:
        seen.append((text, x.sum().item()))

    def f(x):
        note(x, "before")
        note(x * 2, "after")
        return x * 3

    seen = []
    note.register_effect(torch.library.EffectType.ORDERED)
    for make in WAYS.values():
        compiled = make(f)
        seen.clear()
        for _ in range(2):
            assert compiled(torch.ones(2)).tolist() == [3, 3]
        assert seen == [("before", 2.0), ("after", 4.0)] * 2


def test_sizes_stay_numbers():
    f = torch.compile(lambda x: double(x).sum())
    assert [f(torch.ones(n)).item() for n in (3, 4, 5)] == [6, 8, 10]
    with pytest.raises(errors.DerivativeNotWritten, match="register_fake"):
        torch.compile(lambda x: double(x), dynamic=True)(torch.ones(3))


def test_programs_for_others_want_a_fake():
    class Model(torch.nn.Module):
        def forward(self, x):
            return double(x)

    with pytest.raises(errors.DerivativeNotWritten, match="register_fake"):
        torch.export.export(Model(), (torch.ones(3),))


def test_operators_with_effects_want_a_fake():
    seen = []

    @torch.library.custom_op("learnt::noted", mutates_args=())
    def noted(x: torch.Tensor) -> torch.Tensor:
        seen.append(float(x.sum()))
        return x.clone()

    noted.register_effect(torch._library.effects.EffectType.ORDERED)
    with pytest.raises(errors.DerivativeNotWritten, match="register_fake"):
        torch.compile(lambda x: noted(x) * 2)(torch.ones(3))
    assert seen == []
