"""The small modules of `utils`, and `hub`: what they do, and what they refuse."""

import importlib
import os

import numpy as np
import pytest

import pullback
from pullback import errors, hub
from pullback.utils import _foreach_utils, benchmark, cpp_extension, dlpack, model_zoo, tensorboard


@pytest.mark.parametrize("name", ["data", "dlpack", "model_zoo", "benchmark", "tensorboard",
                                  "cpp_extension", "checkpoint", "hooks"])  # fmt: skip
def test_modules_are_found(name):
    assert getattr(pullback.utils, name) is importlib.import_module(f"pullback.utils.{name}")
    with pytest.raises(AttributeError, match="nothing"):
        pullback.utils.nothing


def test_hub(tmp_path, monkeypatch):
    url = "https://example.org/models/net-0123abcd.pth?x=1"
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    assert hub.get_dir() == str(tmp_path / "hub")
    with pytest.raises(NotImplementedError, match="downloads nothing") as caught:
        hub.load_state_dict_from_url(url)
    path = tmp_path / "hub" / "checkpoints" / "net-0123abcd.pth"
    assert str(path) in str(caught.value)
    os.makedirs(path.parent)
    pullback.save({"w": pullback.ones(2)}, path)
    for load in (hub.load_state_dict_from_url, model_zoo.load_url):
        assert load(url, progress=False, map_location="cpu")["w"].tolist() == [1.0, 1.0]
    named = hub.load_state_dict_from_url("x/y.pth", str(path.parent), file_name=path.name)
    assert named["w"].sum() == 2
    monkeypatch.setattr(hub, "_dir", None)
    hub.set_dir(str(tmp_path / "other"))
    assert hub.get_dir() == str(tmp_path / "other")
    for call in (lambda: hub.load("owner/repo", "net"), lambda: hub.download_url_to_file(url, "x")):
        with pytest.raises(errors.NotInThisBuild, match="downloads nothing"):
            call()


@pytest.mark.parametrize("call", [
    lambda: tensorboard.SummaryWriter("runs"), lambda: cpp_extension.load(name="x", sources=[]),
    lambda: cpp_extension.CUDAExtension("x", []), lambda: cpp_extension.BuildExtension(),
])  # fmt: skip
def test_refused_when_used(call):
    with pytest.raises(errors.NotInThisBuild, match=r"test_small_modules\.py"):
        call()


def test_dlpack():
    t = pullback.arange(3.0)
    shared = dlpack.from_dlpack(dlpack.to_dlpack(t))
    shared[0] = 7
    assert t[0] == 7
    assert dlpack.from_dlpack(np.arange(3)).tolist() == [0, 1, 2]


def test_timer():
    seen = []
    x = pullback.ones(3)
    names = {"x": x, "seen": seen}
    timer = benchmark.Timer("y = x + torch.ones(3); seen.append(1)", "z = 1", globals=names,
                            label="sum", sub_label="small")  # fmt: skip
    found = timer.timeit(200)
    assert len(seen) == 202 and found.number_per_run == 200 and len(found.times) == 1
    assert 0 < found.mean == found.median < 0.1 and found.iqr == 0
    assert "sum: small" in repr(found) and "200 runs per measurement, 1 thread" in repr(found)
    found = timer.blocked_autorange(min_run_time=0.01)
    assert sum(found.raw_times) >= 0.01 and min(found.times) <= found.median <= max(found.times)
    assert timer.adaptive_autorange(0.9, max_run_time=0.05).median > 0
    assert benchmark.Timer(lambda: x + 1).timeit(2).median > 0
    with pytest.raises(ValueError, match="C\\+\\+"):
        benchmark.Timer("1", global_setup="#include <x>")


def test_timer_measures_time():
    ticks = iter(range(0, 1000, 3))
    timer = benchmark.Timer("pass", timer=lambda: float(next(ticks)))
    assert timer.timeit(3).median == 1.0  # a block of three runs between two looks at the clock


def test_groups_of_tensors():
    a, b, c = pullback.ones(1), pullback.ones(2).double(), pullback.ones(3)
    found = _foreach_utils._group_tensors_by_device_and_dtype([[a, b, c], [None, b, c]], True)
    assert [key[1] for key in found] == [pullback.float32, pullback.float64]
    lists, places = found[(a.device, pullback.float32)]
    assert places == [0, 2] and lists[0][1] is c and lists[1][0] is None
