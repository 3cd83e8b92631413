"""Anomaly detection and `debug.nans()`: what is reported, where, and what it costs not to ask."""

import math
import threading

import pytest

import pullback as torch
from pullback import debug, errors
from pullback.array import evaluate
from pullback.autograd import engine
from pullback.core import stack, surface
from pullback.threads.state import fast

pytestmark = pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled:UserWarning")


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    assert engine.WATCH is None and fast["ACTIVE"] == 0
    assert stack.run_raw is evaluate.run_raw and surface.run_raw is evaluate.run_raw
    assert debug._here.inside == debug._here.forward == debug._here.backward == 0


def here():
    import sys

    return f"test_debug.py:{sys._getframe(1).f_lineno}"


def caught(function, *args):
    with pytest.raises(errors.NotFinite) as info:
        function(*args)
    return str(info.value)


# anomaly mode


def test_anomaly_names_the_forward_line():
    x = torch.zeros(2, requires_grad=True)
    y, line = torch.sqrt(x), here()
    z = (y * 0.0).sum()
    with torch.autograd.detect_anomaly():
        text = caught(lambda: z.backward())
    assert "Function 'SqrtBackward0' returned nan values in its 0th output" in text
    assert line in text.splitlines()[0] and "torch.sqrt(x)" in text


def test_anomaly_without_looking_for_nan():
    x = torch.zeros(2, requires_grad=True)
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        region = torch.autograd.detect_anomaly(check_nan=False)
    with region:
        (torch.sqrt(x) * 0.0).sum().backward()
    assert x.grad.isnan().all()


def test_anomaly_tells_where_a_failing_backward_came_from():
    x = torch.ones(2, requires_grad=True)
    c = torch.ones(2)
    y, line = x * c, here()
    c.mul_(2)
    with (
        torch.autograd.set_detect_anomaly(True),
        pytest.raises(RuntimeError, match="modified") as info,
    ):
        y.sum().backward()
    (note,) = info.value.__notes__
    assert "MulBackward0" in note and line in note


def test_anomaly_flags():
    assert not torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()
    torch.autograd.set_detect_anomaly(True)
    assert torch.is_anomaly_enabled()
    torch.autograd.set_detect_anomaly(False)
    assert not torch.is_anomaly_enabled()
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        assert torch.is_anomaly_enabled() and not torch.is_anomaly_check_nan_enabled()
        with torch.autograd.detect_anomaly():
            assert torch.is_anomaly_check_nan_enabled()
        assert torch.is_anomaly_enabled() and not torch.is_anomaly_check_nan_enabled()
    assert not torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()


def test_anomaly_inside_of_transforms():
    with torch.autograd.detect_anomaly():
        text = caught(torch.func.grad(lambda x: (x.sqrt() * 0).sum()), torch.zeros(3))
    assert "SqrtBackward0" in text


def test_anomaly_does_not_look_at_shapes_without_values():
    with torch.autograd.detect_anomaly():
        graph = torch.make_fx(torch.func.grad(lambda x: x.sqrt().sum()))(torch.ones(2))
    assert graph(torch.ones(2)).tolist() == [0.5, 0.5]


# nans


def test_forward():
    x = torch.tensor([1.0, 0.0, 4.0])

    def f():
        with debug.nans():
            return torch.log(x)

    text = caught(f)
    first, source, *_ = text.splitlines()
    assert first.startswith("log (test_debug.py:") and "infinity" in first
    assert "return torch.log(x)" in source
    assert "-inf at index [1] (1 of 3 elements" in text and "from 0 to 4, 1 zero" in text
    assert "clamp(min=eps)" in text and "where(mask" in text


def test_forward_by_a_number_and_in_place():
    x = torch.ones(2)
    with debug.nans():
        text = caught(lambda: x / 0)
        assert text.startswith("div (") and "other = 0" in text
        assert caught(lambda: torch.ones(2).div_(0)).startswith("div (")
        assert caught(lambda: torch.tensor([100.0]).exp()).startswith("exp (")
        assert "nan" in caught(lambda: torch.tensor([-1.0]).sqrt())


def test_what_came_in_infinite_may_go_out_infinite():
    with debug.nans():
        scores = torch.ones(2, 3).masked_fill(torch.tensor([True, False, False]), -torch.inf)
        scores = scores.requires_grad_()
        scores.softmax(1)[:, 1].sum().backward()
        torch.full((2,), torch.nan) + 1
        torch.tensor([1.0, torch.inf]).exp()
        torch.empty(5)
        torch.arange(5) // 2


def test_backward_of_an_infinite_derivative():
    x = torch.tensor([4.0, 0.0], requires_grad=True)
    with debug.nans():
        y, line = torch.sqrt(x), here()
        text = caught(lambda: y.sum().backward())
    assert text.splitlines()[0].startswith(f"the gradient of sqrt ({line}) became infinity")
    assert "y, line = torch.sqrt(x)" in text
    assert "the gradient of `self`: grad / (2 * result" in text
    assert "it gives inf at index [1]" in text and "result: float32[2], from 0 to 2, 1 zero" in text
    assert "adding a small number" in text


@pytest.mark.parametrize(
    "discard",
    [
        lambda mask, y: torch.where(mask, y, 0.0),
        lambda mask, y: y.masked_fill(~mask, 0.0),
        lambda mask, y: torch.where(mask, y * 2 + 1, torch.zeros(3)),
    ],
)
def test_the_masked_branch(discard):
    x = torch.tensor([4.0, 0.0, 1.0], requires_grad=True)
    with debug.nans():
        y = torch.sqrt(x)
        z = discard(x > 0, y)
        text = caught(lambda: z.sum().backward())
    assert "became nan" in text and "it gives nan at index [1]" in text
    assert "discards this element: the gradient there is 0 * inf = nan" in text
    assert ("where at test_debug.py" in text) or ("maskedfill at test_debug.py" in text)
    assert "where(mask, sqrt(where(mask, x, 1.0)), 0.0)" in text


def test_the_cure_works():
    x = torch.tensor([4.0, 0.0, 1.0], requires_grad=True)
    with debug.nans():
        mask = x > 0
        torch.where(mask, torch.sqrt(torch.where(mask, x, 1.0)), 0.0).sum().backward()
    assert x.grad.tolist() == [0.25, 0, 0.5]


def test_zero_times_infinity_without_a_mask():
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    with debug.nans():
        text = caught(lambda: (torch.sqrt(x) * torch.tensor([0.0, 1.0])).sum().backward())
    assert "0 * inf = nan" in text and "not used" in text


def test_as_function_and_decorator():
    def step(x):
        return (x / x).sum()

    assert "nan" in caught(debug.nans(step), torch.zeros(2))
    assert debug.nans(step)(torch.ones(2)) == 2
    assert debug.nans(step).__name__ == "step"

    @debug.nans(backward=False)
    def other(x):
        x.sqrt().sum().backward()

    x = torch.zeros(2, requires_grad=True)
    other(x)
    assert x.grad.isinf().all()


def test_only_backward():
    x = torch.tensor([1.0], requires_grad=True)
    with debug.nans(forward=False):
        torch.log(torch.zeros(1))
        y = (x - 1).sqrt()
        caught(lambda: y.backward())


def test_inside_of_transforms():
    masked = lambda x: torch.where(x > 0, x.sqrt() * 2, 0.0).sum()
    with debug.nans():
        text = caught(torch.func.grad(masked), torch.tensor([0.0, 1.0]))
        assert "where at test_debug.py" in text
        text = caught(torch.vmap(torch.func.grad(torch.sqrt)), torch.tensor([1.0, 0.0]))
        assert "index [1]" in text
        text = caught(
            lambda: torch.func.jvp(torch.sqrt, (torch.zeros(2),), (torch.ones(2),))
        )
        assert "div" in text
        assert torch.func.grad(masked)(torch.ones(2)).tolist() == [1, 1]


def test_together_with_anomaly_mode():
    x = torch.zeros(2, requires_grad=True)
    with torch.autograd.detect_anomaly(), debug.nans():
        y = x.sqrt()
        caught(lambda: (y * 0.0).sum().backward())
        assert debug._here.inside == 0


def test_other_threads_are_left_alone():
    found = []
    with debug.nans():
        thread = threading.Thread(target=lambda: found.append(torch.log(torch.zeros(1))))
        thread.start()
        thread.join()
    assert found[0].isinf().all()


def test_a_whole_network_passes():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.LayerNorm(8))
    with debug.nans():
        net(torch.randn(4, 3)).pow(2).mean().backward()
    assert all(p.grad is not None for p in net.parameters())


def test_loading_is_lazy():
    import subprocess
    import sys

    code = "import sys, pullback; print('pullback.debug' in sys.modules, pullback.debug.nans)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.startswith("False ")


def test_compiled_functions_are_looked_into():
    @torch.compile
    def f(x):
        y = x * 2
        return torch.log(y).sum() + torch.sqrt(x).sum()

    assert f(torch.ones(2)).item() == pytest.approx(2 * math.log(2) + 2)
    with pytest.raises(errors.NotFinite, match="log"), debug.nans():
        f(torch.tensor([1.0, 0.0]))
    x = torch.tensor([1.0, 0.0], requires_grad=True)

    @torch.compile
    def g(x):
        return torch.sqrt(x).sum()

    with pytest.raises(errors.NotFinite, match="sqrt"), debug.nans():
        g(x).backward()
