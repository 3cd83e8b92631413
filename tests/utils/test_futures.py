"""Results that are set later: `futures.Future`, and what `jit.fork` gives."""

import threading

import pytest

import pullback as pb
from pullback.futures import Future, collect_all, wait_all


def test_waiting_for_another_thread():
    future = Future()
    assert not future.done()
    with pytest.raises(RuntimeError, match="not complete"):
        future.value()
    worker = threading.Thread(target=lambda: future.set_result(7))
    worker.start()
    assert future.wait() == 7 and future.done() and future.value() == 7
    worker.join()
    with pytest.raises(RuntimeError, match="only be marked completed once"):
        future.set_result(8)


def test_callbacks_run_in_order_and_futures_follow():
    future, seen = Future(), []
    future.add_done_callback(lambda f: seen.append(f.value()))
    doubled = future.then(lambda f: f.wait() * 2)
    failed = future.then(lambda f: 1 / 0)
    future.set_result(3)
    assert seen == [3] and doubled.wait() == 6
    future.add_done_callback(lambda f: seen.append("late"))
    assert seen == [3, "late"]
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        failed.wait()
    with pytest.warns(UserWarning, match="KeyError"):
        future.add_done_callback(lambda f: {}["missing"])


def test_exceptions_and_lists():
    one, two = Future(), Future()
    together = collect_all([one, two])
    one.set_result(1)
    assert not together.done()
    two.set_result(2)
    assert together.wait() == [one, two] and wait_all([one, two]) == [1, 2]
    assert collect_all([]).wait() == []
    broken = Future()
    broken.set_exception(ValueError("no"))
    for wait in (broken.wait, lambda: wait_all([one, broken])):
        with pytest.raises(ValueError, match="no"):
            wait()
    with pytest.raises(AssertionError, match="not an Exception"):
        Future().set_exception(3)


def test_fork_gives_one():
    future = pb.jit.fork(pb.add, pb.ones(2), 1)
    assert isinstance(future, pb.futures.Future) and pb.futures.Future is pb.Future
    assert pb.equal(pb.jit.wait(future), pb.full((2,), 2.0))
