"""`utils.data`: the same order and the same random numbers as PyTorch, with and without workers.

The expected values of `CASES` are recorded from PyTorch 2.13: `python tests/utils/test_data.py`
writes them anew where it is installed.
"""

import collections
import json
import multiprocessing
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

import pullback
from pullback import errors
from pullback.utils import data as D
from pullback.utils.data import _utils
from pullback.utils.data._utils import transport


@pytest.fixture(autouse=True)
def forked():
    """Workers are forked, also where Python does otherwise (3.14): datasets here are local."""
    before = multiprocessing.get_start_method(allow_none=True)
    multiprocessing.set_start_method("fork", force=True)
    yield
    multiprocessing.set_start_method(before, force=True)

RECORDED = pathlib.Path(__file__).resolve().parents[1] / "data" / "dataloader.json"
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


def squares(torch, size=11):
    """A dataset that shows who made a sample, and with which random numbers."""

    class Squares(torch.utils.data.Dataset):
        def __len__(self):
            return size

        def __getitem__(self, i):
            info = torch.utils.data.get_worker_info()
            return {
                "i": i,
                "x": torch.full((2,), float(i)),
                "drawn": (random.random(), np.random.rand(), torch.rand(1)),
                "worker": None if info is None else info.id,
                "seed": None if info is None else info.seed,
                "text": str(i),
                "numpy": np.float32(i),
                "array": np.arange(2) + i,
            }

    return Squares()


def counted(torch, size):
    """An iterable dataset; with workers each reads a part, of different lengths."""

    class Counted(torch.utils.data.IterableDataset):
        def __iter__(self):
            info = torch.utils.data.get_worker_info()
            mine, step = (0, 1) if info is None else (info.id, info.num_workers)
            for i in range(mine * mine, size, step):
                yield torch.tensor([i, mine])

    return Counted()


def no_none(batch):
    """A collate function that takes what cannot become a tensor."""
    return [plain(sample) for sample in batch]


def loader(torch, *args, **options):
    return torch.utils.data.DataLoader(*args, **options)


CASES = {
    "plain": lambda t: loader(t, squares(t), 4, collate_fn=no_none),
    "shuffled": lambda t: loader(t, squares(t), 4, True, drop_last=True, collate_fn=no_none),
    "generator": lambda t: loader(t, range(11), 4, True, generator=t.Generator().manual_seed(3)),
    "no batches": lambda t: loader(t, range(11), None, True),
    "two workers": lambda t: loader(t, squares(t), 4, True, num_workers=2, collate_fn=no_none),
    "three workers": lambda t: loader(t, range(11), 2, True, num_workers=3, prefetch_factor=1),
    "workers, generator": lambda t: loader(
        t, range(11), 4, True, num_workers=2, generator=t.Generator().manual_seed(3)),
    "iterable": lambda t: loader(t, counted(t, 7), 3),
    "iterable, workers": lambda t: loader(t, counted(t, 13), 2, num_workers=3),
    "iterable, dropped": lambda t: loader(t, counted(t, 15), 2, num_workers=3, drop_last=True),
    "iterable, no batches": lambda t: loader(t, counted(t, 5), None, num_workers=2),
    "replacement": lambda t: t.utils.data.RandomSampler(range(11), True, 70),
    "more than all": lambda t: t.utils.data.RandomSampler(
        range(5), num_samples=12, generator=t.Generator().manual_seed(2)),
    "subset": lambda t: t.utils.data.SubsetRandomSampler([3, 5, 7, 2]),
    "weights": lambda t: t.utils.data.WeightedRandomSampler([0.1, 0.5, 0.2, 0.9], 9),
    "weights, once": lambda t: t.utils.data.WeightedRandomSampler([0.1, 0.5, 0.2], 3, False),
    "replica": lambda t: t.utils.data.DistributedSampler(range(11), 4, 3),
    "replica, dropped": lambda t: t.utils.data.DistributedSampler(
        range(11), 4, 1, seed=9, drop_last=True),
    "replica, tiny": lambda t: t.utils.data.DistributedSampler(range(2), 5, 4, shuffle=False),
    "fractions": lambda t: t.utils.data.random_split(range(11), [0.3, 0.3, 0.4])[1],
    "lengths": lambda t: t.utils.data.random_split(
        range(6), [2, 4], t.Generator().manual_seed(1))[1],
}  # fmt: skip


def plain(value):
    """Lists and numbers."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value.tolist() if hasattr(value, "tolist") else value


def trace(torch, make):
    """All batches of two iterations, with numbers that are drawn between and after them."""
    torch.manual_seed(5)
    random.seed(1)
    np.random.seed(2)
    out = []
    for _ in range(2):
        for batch in make(torch):
            out += [plain(batch), torch.rand(1).tolist()]
        out.append(torch.rand(2).tolist())
    return out


@pytest.mark.parametrize("name", CASES)
def test_order_and_random_numbers(name):
    expected = json.loads(RECORDED.read_text())[name]
    assert json.loads(json.dumps(trace(pullback, CASES[name]))) == expected


class Numbers(D.Dataset):
    """What happens at sample 5 is chosen."""

    def __init__(self, act=lambda: None, size=12):
        self.act, self.size = act, size

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        if i == 5:
            self.act()
        return pullback.full((2, 3), float(i))


def fail(error):
    raise error


def numbers(loader):
    return [batch[:, 0, 0].tolist() for batch in loader]


def test_persistent_workers():
    loader = D.DataLoader(Numbers(), 4, num_workers=2, persistent_workers=True)
    assert numbers(loader) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    first = [p.pid for p in loader._iterator.processes]
    next(iter(loader))  # not finished
    assert len(numbers(loader)) == 3
    assert [p.pid for p in loader._iterator.processes] == first
    assert all(p.is_alive() for p in loader._iterator.processes)
    stream = D.DataLoader(counted(pullback, 6), 2, num_workers=2, persistent_workers=True)
    assert [b.tolist() for b in stream] == [b.tolist() for b in stream]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_start_methods(method):
    x = pullback.arange(40.0).reshape(20, 2)
    loader = D.DataLoader(D.TensorDataset(x, x[:, 0]), 6, num_workers=1,
                          multiprocessing_context=method)  # fmt: skip
    assert pullback.cat([b[0] for b in loader]).tolist() == x.tolist()


def test_large_batches_lie_in_shared_memory():
    class Large(D.Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, i):
            return (pullback.full((100, 200), i, dtype=pullback.bfloat16),
                    pullback.full((200, 100), i).t(), pullback.zeros(0, 2), i)  # fmt: skip

    for n, (a, b, c, i) in enumerate(D.DataLoader(Large(), 3, num_workers=2)):
        assert a.dtype is pullback.bfloat16 and a.shape == (3, 100, 200) and c.shape == (3, 0, 2)
        assert i.tolist() == [3 * n, 3 * n + 1, 3 * n + 2]
        assert a[:, 7, 7].tolist() == b[:, 7, 7].tolist() == i.tolist()
        a += 1  # nobody else has it
        assert a[0, 0, 0] == 3 * n + 1


@pytest.mark.parametrize("size", [0, 3, transport.SMALL, transport.SMALL + 1])
def test_transport(size):
    from multiprocessing import Pipe

    one, two = Pipe()
    value = {"a": np.arange(size, dtype=np.uint8), "b": [np.arange(6.0).reshape(2, 3).T], "c": None}
    transport.send(one, 7, value)
    number, make = transport.receive(two)
    got = make()
    assert number == 7 and got["c"] is None and got["b"][0].tolist() == value["b"][0].tolist()
    assert np.array_equal(got["a"], value["a"]) and got["a"].flags.writeable


def test_a_part_is_sent_as_a_part():
    from multiprocessing import Pipe

    one, two = Pipe()
    whole = pullback.arange(1_000_000.0)
    transport.send(one, 0, {"row": whole[5:8], "leaf": pullback.ones(2, requires_grad=True)})
    got = transport.receive(two)[1]()  # without shared memory, so it was small
    assert got["row"].tolist() == [5.0, 6.0, 7.0] and got["leaf"].requires_grad
    with pytest.raises(RuntimeError, match="non-leaf"):
        transport.send(one, 0, got["leaf"] * 2)


def test_wrappers_are_sent_by_their_parts():
    from multiprocessing import Pipe

    from pullback.testing.two_tensor import TwoTensor

    one, two = Pipe()
    transport.send(one, 0, [TwoTensor(pullback.arange(3), pullback.arange(3) + 1)])
    (got,) = transport.receive(two)[1]()
    assert type(got) is TwoTensor and got.dtype is pullback.int64
    assert (got.a.tolist(), got.b.tolist()) == ([0, 1, 2], [1, 2, 3])


class Odd(Exception):
    def __init__(self, one, two):
        super().__init__(one)


@pytest.mark.parametrize(
    "error, kind",
    [
        (ValueError("bad value"), ValueError),
        (KeyError("bad value"), KeyError),
        (Odd("bad value", 2), RuntimeError),
        (type("Local", (Exception,), {})("bad value"), RuntimeError),
        (StopIteration("bad value"), RuntimeError),
    ],
)
def test_errors_in_workers(error, kind):
    batches = iter(D.DataLoader(Numbers(lambda: fail(error)), 2, num_workers=2))
    assert next(batches)[0, 0, 0] == 0 and next(batches)[0, 0, 0] == 2
    with pytest.raises(kind, match="in DataLoader worker process 0") as caught:
        next(batches)
    assert "bad value" in str(caught.value) and "test_data.py" in str(caught.value)
    assert "\n" in str(caught.value)
    assert next(batches)[0, 0, 0] == 6  # the others go on


def test_what_cannot_be_sent():
    loader = D.DataLoader(Numbers(), 2, num_workers=1, collate_fn=lambda batch: lambda: batch)
    with pytest.raises(RuntimeError, match="pickle"):
        next(iter(loader))


@pytest.mark.parametrize("act", [lambda: os.kill(os.getpid(), signal.SIGKILL), lambda: os._exit(3)],
                         ids=["killed", "exited"])  # fmt: skip
def test_a_worker_that_dies_is_reported(act):
    start = time.monotonic()
    with pytest.raises(errors.WorkerError, match="exited unexpectedly") as caught:
        for _ in D.DataLoader(Numbers(act), 2, num_workers=2):
            pass
    assert "exit code" in str(caught.value)
    assert time.monotonic() - start < 5


def test_timeout():
    batches = iter(D.DataLoader(Numbers(lambda: time.sleep(1.5)), 2, num_workers=1, timeout=0.5))
    assert next(batches)[0, 0, 0] == 0
    next(batches)
    with pytest.raises(RuntimeError, match=r"timed out after 0.5 seconds"):
        next(batches)


def test_init_function():
    def init(number):
        pullback.manual_seed(number + 100)

    class Drawn(Numbers):
        def __getitem__(self, i):
            return pullback.rand(1)

    got = [b.item() for b in D.DataLoader(Drawn(size=2), num_workers=2, worker_init_fn=init)]
    for number, value in enumerate(got):
        pullback.manual_seed(number + 100)
        assert pullback.rand(1).item() == value
    loader = D.DataLoader(Drawn(), num_workers=1, worker_init_fn=lambda n: fail(ValueError("no")))
    with pytest.raises(ValueError, match="worker process 0"):
        next(iter(loader))


def test_out_of_order():
    class Slow(Numbers):
        def __getitem__(self, i):
            if i == 0:
                time.sleep(0.5)
            return i

    got = [b.item() for b in D.DataLoader(Slow(), num_workers=2, in_order=False)]
    assert sorted(got) == list(range(12)) and got[0] != 0


def test_nothing_is_left_over():
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    batches = iter(D.DataLoader(Numbers(), 2, num_workers=2))
    next(batches)
    processes = batches.processes
    del batches
    assert [p.exitcode for p in processes] == [0, 0]
    for _ in D.DataLoader(Numbers(), 2, num_workers=2):
        pass
    del processes, _
    after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert after <= before + 2  # those of the processes that Python has yet to collect


PROGRAM = """
import signal, time, pullback
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
from pullback.utils.data import DataLoader, Dataset
class Slow(Dataset):
    def __len__(self): return 1000
    def __getitem__(self, i): time.sleep(0.01); return i
if __name__ == "__main__":
    for b in DataLoader(Slow(), num_workers=2): print("batch", flush=True)
"""


def test_interrupt(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    root = pathlib.Path(pullback.__file__).parents[1]
    process = subprocess.Popen(
        [sys.executable, str(path)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True, env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    assert process.stdout.readline() == "batch\n"
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=20)
    assert out.count("Traceback") == 1 and out.rstrip().endswith("KeyboardInterrupt")
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:  # the group is empty soon
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("a worker is still running")


Pair = collections.namedtuple("Pair", "a b")


def test_collate():
    made = D.default_collate([Pair(1, "x"), Pair(2, "y")])
    assert type(made) is Pair and made.a.tolist() == [1, 2] and made.b == ("x", "y")
    cases = [
        ([1, 2], pullback.int64), ([True, False], pullback.bool), ([1.0, 2.0], pullback.float64),
        ([np.float32(1), np.float32(2)], pullback.float32), ([np.int8(1)], pullback.int8),
        ([np.ones(2), np.ones(2)], pullback.float64), ([pullback.ones(2)], pullback.float32),
    ]  # fmt: skip
    for batch, dtype in cases:
        got = D.default_collate(batch)
        assert got.dtype is dtype and got.shape[0] == len(batch)
    ordered = collections.OrderedDict(a=1, b=[2, 3])
    got = D.default_collate([ordered, ordered])
    assert type(got) is collections.OrderedDict
    assert [t.tolist() for t in got["b"]] == [[2, 2], [3, 3]]
    assert [t.tolist() for t in D.default_collate([(1, 2), (3, 4)])] == [[1, 3], [2, 4]]
    assert [t.tolist() for t in D.default_collate([range(2), range(2)])] == [[0, 0], [1, 1]]
    with pytest.raises(RuntimeError, match="equal size"):
        D.default_collate([[1], [1, 2]])
    with pytest.raises(RuntimeError):
        D.default_collate([pullback.ones(2), pullback.ones(3)])
    for bad in ([None], [np.array(["a"])], [object()]):
        with pytest.raises(TypeError, match="default_collate"):
            D.default_collate(bad)
    table = {int: lambda batch, *, collate_fn_map: sum(batch)}
    assert _utils.collate.collate([{"a": 1}, {"a": 5}], collate_fn_map=table) == {"a": 6}


def test_convert():
    got = D.default_convert({"a": np.ones(2), "b": (np.int32(3), "x"), "c": [1, np.array(["s"])]})
    assert got["a"].tolist() == [1.0, 1.0] and got["b"][0].dtype is pullback.int32
    assert got["b"][1] == "x" and got["c"][0] == 1 and isinstance(got["c"][1], np.ndarray)
    assert type(D.default_convert(Pair(np.ones(1), 2))) is Pair


def test_datasets():
    x, y = pullback.arange(6.0), pullback.arange(12.0).reshape(6, 2)
    rows = D.TensorDataset(x, y)
    assert len(rows) == 6 and rows[2][1].tolist() == [4.0, 5.0]
    both = D.StackDataset(image=rows, label=range(6))
    assert both[1]["label"] == 1 and len(both) == 6
    assert [s["label"] for s in both.__getitems__([3, 4])] == [3, 4]
    assert D.StackDataset(range(3), range(3))[2] == (2, 2)
    joined = D.TensorDataset(x) + D.TensorDataset(x[:2])
    assert len(joined) == 8 and joined[7][0] == 1 and joined[-1][0] == 1 and joined[0][0] == 0
    chained = counted(pullback, 2) + counted(pullback, 3)
    assert [t[0].item() for t in chained] == [0, 1, 0, 1, 2]
    part = D.Subset(rows, [4, 2])
    assert part[0][0] == 4 and len(part) == 2 and part[[0, 1]][0].tolist() == [4.0, 2.0]
    with pytest.raises(NotImplementedError, match="__getitem__"):
        D.Dataset()[0]


def test_rows_at_once_are_the_rows_one_by_one():
    x, y = pullback.rand(10, 3), pullback.arange(10)
    rows = D.TensorDataset(x, y)
    some = D.Subset(rows, [3, 1, 9, 4])
    for dataset in (rows, some, D.Subset(some, [2, 0])):
        fast = list(D.DataLoader(dataset, 2))
        slow = list(D.DataLoader(dataset, 2, collate_fn=lambda batch: D.default_collate(batch)))
        assert plain(fast) == plain(slow)
        assert [type(b) for b in fast] == [type(b) for b in slow] == [list] * len(fast)


REFUSED = {
    "workers": (lambda: D.DataLoader([1], num_workers=-1), ValueError),
    "timeout": (lambda: D.DataLoader([1], timeout=-1), ValueError),
    "timeout here": (lambda: iter(D.DataLoader([1], timeout=1)), AssertionError),
    "prefetch": (lambda: D.DataLoader([1], prefetch_factor=2), ValueError),
    "negative prefetch": (lambda: D.DataLoader([1], num_workers=1, prefetch_factor=-2), ValueError),
    "persistent": (lambda: D.DataLoader([1], persistent_workers=True), ValueError),
    "shuffled stream": (lambda: D.DataLoader(counted(pullback, 3), shuffle=True), ValueError),
    "sampled stream": (lambda: D.DataLoader(counted(pullback, 3), sampler=[1]), ValueError),
    "batched stream": (lambda: D.DataLoader(counted(pullback, 3), batch_sampler=[[1]]), ValueError),
    "sampler and shuffle": (lambda: D.DataLoader([1], sampler=[0], shuffle=True), ValueError),
    "two batchings": (lambda: D.DataLoader([1], 2, batch_sampler=[[0]]), ValueError),
    "drop what": (lambda: D.DataLoader([1], None, drop_last=True), ValueError),
    "batch size": (lambda: D.DataLoader([1], 0), ValueError),
    "batch size of no kind": (lambda: D.DataLoader([1], 1.5), ValueError),
    "empty and shuffled": (lambda: D.DataLoader([], shuffle=True), ValueError),
    "context": (lambda: D.DataLoader([1], multiprocessing_context="fork"), ValueError),
    "no such context": (
        lambda: D.DataLoader([1], num_workers=1, multiprocessing_context="x"), ValueError),
    "context of no kind": (
        lambda: D.DataLoader([1], num_workers=1, multiprocessing_context=3), TypeError),
    "set later": (lambda: setattr(D.DataLoader([1]), "batch_size", 3), ValueError),
    "replacement": (lambda: D.RandomSampler([1], replacement=1), TypeError),
    "samples": (lambda: D.RandomSampler([1], num_samples=0), ValueError),
    "weights": (lambda: D.WeightedRandomSampler([[1.0]], 1), ValueError),
    "drop_last": (lambda: D.BatchSampler([1], 2, 3), ValueError),
    "rank": (lambda: D.DistributedSampler([1], 2, 2), ValueError),
    "no group": (lambda: D.DistributedSampler([1]), RuntimeError),
    "lengths": (lambda: D.random_split([1, 2], [1, 2]), ValueError),
    "fractions": (lambda: D.random_split([1, 2], [1.5, -0.5]), ValueError),
    "rows": (lambda: D.TensorDataset(pullback.ones(2), pullback.ones(3)), AssertionError),
    "stack": (lambda: D.StackDataset([1], [1, 2]), ValueError),
    "stack of nothing": (lambda: D.StackDataset(), ValueError),
    "both stacks": (lambda: D.StackDataset([1], a=[1]), ValueError),
    "concat": (lambda: D.ConcatDataset([]), AssertionError),
    "concat of streams": (lambda: D.ConcatDataset([counted(pullback, 2)]), AssertionError),
    "chain of lists": (lambda: list(D.ChainDataset([[1]])), AssertionError),
    "before the first": (lambda: D.ConcatDataset([[1]])[-2], ValueError),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what):
    call, kind = REFUSED[what]
    with pytest.raises(kind):
        call()


def test_subclass_of_subset():
    class Half(D.Subset):
        def __getitem__(self, i):
            return 0

    with pytest.raises(NotImplementedError, match="__getitems__"):
        Half([1, 2], [0])


def test_lengths_and_warnings():
    assert len(D.DataLoader(range(10), 4)) == 3
    assert len(D.DataLoader(range(10), 4, drop_last=True)) == 2
    assert len(D.DataLoader(range(10), None)) == 10

    class Long(D.IterableDataset):
        def __len__(self):
            return 2

        def __iter__(self):
            return iter(range(3))

    loader = D.DataLoader(Long(), None)
    assert len(loader) == 2 and len(D.DataLoader(Long(), 2)) == 1
    with pytest.warns(UserWarning, match="Length of IterableDataset"):
        list(loader)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(D.DataLoader(Long(), None))  # nobody asked
    with pytest.warns(UserWarning, match="index 1 is 0"):
        D.random_split([1], [0.5, 0.5])
    with pytest.warns(UserWarning, match="5000 worker processes"):
        D.DataLoader([1], num_workers=5000)


def test_numpy_seed_of_workers_differs():
    states = []
    for number in range(2):
        pullback.utils.data._utils.worker.seed_everything(1 << 40, number)
        states.append((random.random(), np.random.rand(), pullback.rand(1).item()))
    assert len({value for state in states for value in state}) == 6


def record():
    """Write the recorded values anew."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {name: trace(torch, make) for name, make in CASES.items()}
    RECORDED.write_text(json.dumps(found))


if __name__ == "__main__":
    record()
