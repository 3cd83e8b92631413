"""Processes share the memory of tensors: fork, spawn and forkserver, queues, pools, training."""

import gc
import multiprocessing
import os
import pathlib
import pickle
import subprocess
import sys
import time
from multiprocessing import connection

import numpy as np
import pytest

import pullback as torch
from pullback import errors, nn
from pullback import multiprocessing as mp
from pullback.memory import descriptors
from pullback.memory import storages as memory

HERE = pathlib.Path(__file__).parents[1] / "helpers"
FORK = multiprocessing.get_context("fork")


def ran(name, *args):
    return subprocess.run([sys.executable, "-W", "error", str(HERE / name), *args], timeout=120,
                          capture_output=True, text=True)  # fmt: skip


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_share_tensors(method):
    done = ran("sharing_program.py", method)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_hogwild_training():
    done = ran("hogwild_program.py")
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def through_a_pipe(value):
    """As another process gets it: the pickle of `multiprocessing`, there and back."""
    one, two = multiprocessing.Pipe()
    one.send(value)
    return two.recv()


def test_memory_that_comes_back_is_the_same():
    x = torch.arange(6.0)
    y = through_a_pipe(x[2:])
    assert y.is_shared() and y.untyped_storage() is x.untyped_storage()
    y[0] = 9
    assert x[2] == 9 and y.storage_offset() == 2
    a, (b,) = through_a_pipe((x, [x.view(2, 3).t()]))
    assert a.untyped_storage() is b.untyped_storage() and b.stride() == (1, 3)
    s = through_a_pipe(x.untyped_storage())
    assert s is x.untyped_storage()


def test_other_pickles_carry_bytes():
    x = torch.arange(3.0).share_memory_()
    y = pickle.loads(pickle.dumps(x))
    y.add_(1)
    assert x.tolist() == [0, 1, 2] and not y.is_shared()


def test_parameters_and_history():
    p = through_a_pipe(nn.Parameter(torch.ones(2)))
    assert type(p) is nn.Parameter and p.requires_grad and p.is_leaf
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf"):
        through_a_pipe(p * 2)
    assert pickle.loads(pickle.dumps(p * 2)).requires_grad


def test_mapped_files_are_not_shared_memory(tmp_path):
    torch.save(torch.arange(4.0), tmp_path / "f")
    t = torch.load(tmp_path / "f", mmap=True)
    assert not t.is_shared() and t.share_memory_().is_shared() and t.tolist() == [0, 1, 2, 3]


def test_descriptors_are_closed_when_the_last_tensor_goes():
    def count():
        return len(os.listdir("/proc/self/fd"))

    torch.zeros(1).share_memory_()
    gc.collect()  # descriptors of other tests must not be closed meanwhile
    before = count()
    held = [torch.full((5,), i).share_memory_() for i in range(9)]
    view = held[3][2:]
    assert count() > before
    del held
    assert view.tolist() == [3, 3, 3]
    del view
    assert count() == before


def test_those_without_the_key_get_no_descriptor_and_disturb_nobody():
    read, write = os.pipe()
    tickets = [descriptors.offer(write), descriptors.offer(write)]
    os.close(write)
    with pytest.raises(multiprocessing.AuthenticationError):
        connection.Client(tickets[0].address, "AF_UNIX", authkey=b"another")
    for ticket in tickets:  # the thread that answers is there still
        os.close(ticket.detach())
    assert os.read(read, 1) == b""  # nobody has the other end any more
    os.close(read)


def test_tensors_go_along_when_their_memory_is_shared():
    alone = torch.ones(3)
    alone.untyped_storage()
    alone.share_memory_()
    sent = torch.ones(4)
    through_a_pipe(sent)
    assert not memory.left  # nobody shows an old place
    x = torch.ones(3)
    y = x.detach()
    x.share_memory_()
    assert memory.left
    y[0] = 5
    assert x[0] == 5 and not memory.left and sent.is_shared()


WRITES = {
    "add_": lambda x: x.add_(1), "sub": lambda x: x.__isub__(1), "zero_": lambda x: x.zero_(),
    "fill_": lambda x: x.fill_(3), "copy_": lambda x: x.copy_(torch.ones(4)),
    "set": lambda x: x.__setitem__(slice(None), 2), "mask": lambda x: x.__setitem__(x > 1, 2),
    "normal_": lambda x: x.normal_(), "clamp_": lambda x: x.clamp_(0, 1),
    "exp_": lambda x: x.exp_(), "out": lambda x: torch.add(x, 1, out=x),
    "lerp_": lambda x: x.lerp_(torch.ones(4), 0.5), "cumsum_": lambda x: x.cumsum_(0),
    "index_add_": lambda x: x.index_add_(0, torch.tensor([1]), torch.ones(1)),
    "foreach": lambda x: torch._foreach_add_([x], 1),
    "compiled": lambda x: torch.compile(lambda t: t.mul_(2).add_(1))(x),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITES)
def test_writes_reach_the_shared_memory(name):
    x = torch.arange(4.0).share_memory_()
    seen = np.frombuffer(memory.owner_of(x).base, np.float32, 4)
    WRITES[name](x)
    assert x.is_shared() and x.tolist() == seen.tolist()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_optimizers_write_to_the_shared_memory(kind, compiled):
    model = nn.Linear(3, 1).share_memory()
    seen = [np.frombuffer(memory.owner_of(p).base, np.float32, p.numel())
            for p in model.parameters()]
    optimizer = getattr(torch.optim, kind)(model.parameters(), lr=0.1)

    def step():
        optimizer.zero_grad()
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()

    step = torch.compile(step) if compiled else step
    for _ in range(3):
        before = [s.copy() for s in seen]
        step()
        for p, s, b in zip(model.parameters(), seen, before):
            assert p.detach().reshape(-1).tolist() == s.tolist() and (s != b).all()


def test_a_message_outlives_its_sender():
    queue = FORK.Queue()
    process = FORK.Process(target=lambda: queue.put(torch.arange(4)))
    process.start()
    process.join(20)  # before the message is read
    assert process.exitcode == 0 and queue.get(timeout=20).tolist() == [0, 1, 2, 3]


def test_large_memory_of_a_sender_that_was_killed():
    queue, ready = FORK.Queue(), FORK.Event()

    def send():
        queue.put(torch.ones(100000))
        ready.set()
        time.sleep(60)

    process = FORK.Process(target=send)
    process.start()
    assert ready.wait(20)
    while queue.empty():
        time.sleep(0.01)
    process.kill()
    process.join()
    with pytest.raises(errors.WorkerError, match="a process that has ended"):
        queue.get(timeout=20)


def _half(rank, x):
    x[rank] = rank + 1
    if x[0] < 0:
        raise ValueError(f"rank {rank} does not like it")


def _leave(rank):
    os._exit(3)


def test_start_processes():
    x = torch.zeros(2).share_memory_()
    assert mp.start_processes(_half, (x,), nprocs=2, start_method="fork") is None
    assert x.tolist() == [1, 2]
    started = mp.start_processes(_half, (x,), nprocs=2, join=False, start_method="fork")
    assert len(started.pids()) == 2
    while not started.join(timeout=20):
        pass
    assert not any(os.path.exists(name) for name in started.error_files)


def test_failures_of_processes():
    x = torch.full((2,), -1.0).share_memory_()
    with pytest.raises(mp.ProcessRaisedException, match="rank 1 does not like it") as caught:
        mp.start_processes(lambda rank, x: _half(1, x), (x,), start_method="fork")
    assert caught.value.error_index == 0 and "ValueError" in caught.value.msg
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.msg == caught.value.msg and again.error_pid == caught.value.error_pid
    with pytest.raises(mp.ProcessExitedException, match="process 0 terminated with exit code 3"):
        mp.start_processes(_leave, nprocs=1, start_method="fork")


def test_strategies():
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
    with pytest.raises(ValueError, match="unknown sharing strategy"):
        mp.set_sharing_strategy("pigeon")
