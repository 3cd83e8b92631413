"""The profiler: what it records, adds up and writes, and that it leaves nothing behind."""

import gzip
import json

import pytest

import pullback as torch
from pullback.autograd import engine
from pullback.core import stack, surface
from pullback.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule
from pullback.table import lists as foreach
from pullback.table import packets as table
from pullback.threads.state import fast


@pytest.fixture(autouse=True)
def nothing_stays():
    before = fast["ACTIVE"], stack.bind, table.bind, surface.run_raw, foreach.run_raw, engine.WATCH
    yield
    after = fast["ACTIVE"], stack.bind, table.bind, surface.run_raw, foreach.run_raw, engine.WATCH
    assert after == before


def run():
    x = torch.ones(3, 4, requires_grad=True)
    with record_function("forward"):
        loss = (x @ torch.ones(4, 2)).tanh().sum()
    loss.backward()
    with torch.no_grad():
        x.add_(1)


def test_operators_nodes_and_ranges():
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True,
                 with_stack=True) as prof:
        run()
    by_name = {e.name: e for e in prof.events()}
    assert {"forward", "aten::matmul", "aten::tanh", "aten::sum", "aten::add_",
            "autograd::engine::evaluate_function: TanhBackward0"} <= set(by_name)
    forward, tanh = by_name["forward"], by_name["aten::tanh"]
    assert tanh.cpu_parent is forward and tanh in forward.cpu_children
    assert tanh.input_shapes == [[3, 2]] and tanh.cpu_memory_usage == 3 * 2 * 4
    assert tanh.stack[0].startswith("test_profiler.py:")
    assert forward.cpu_time_total >= sum(c.cpu_time_total for c in forward.cpu_children)
    children = sum(c.cpu_time_total for c in forward.children)
    assert forward.self_cpu_time_total == pytest.approx(forward.cpu_time_total - children)
    assert forward.time_range.elapsed_us() == pytest.approx(forward.cpu_time_total)


def test_sums_and_tables():
    with profile(record_shapes=True) as prof:
        for n in (2, 2, 3):
            torch.ones(n).sin()
    sums = {(e.key, e.input_shapes): e for e in prof.key_averages(group_by_input_shape=True)}
    assert sums["aten::sin", "[[2]]"].count == 2 and sums["aten::sin", "[[3]]"].count == 1
    whole = {e.key: e for e in prof.key_averages()}["aten::sin"]
    assert whole.count == 3 and whole.cpu_time == pytest.approx(whole.cpu_time_total / 3)
    table = prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=1)
    lines = table.splitlines()
    assert "Self CPU %" in lines[1] and "# of Calls" in lines[1] and len(lines) == 6
    assert lines[5].startswith("Self CPU time total: ")
    assert prof.key_averages().self_cpu_time_total == pytest.approx(
        sum(e.self_cpu_time_total for e in prof.events()))
    with pytest.raises(ValueError, match="sort"):
        prof.key_averages().table(sort_by="no_such")


def test_trace_files(tmp_path):
    with profile(with_stack=True) as prof:
        run()
    prof.add_metadata("who", "me")
    for path in (tmp_path / "t.json", tmp_path / "t.json.gz"):
        prof.export_chrome_trace(str(path))
        with (gzip.open(path, "rt") if path.suffix == ".gz" else open(path)) as file:
            trace = json.load(file)
        assert trace["who"] == "me" and len(trace["traceEvents"]) == len(prof.events())
        event = next(e for e in trace["traceEvents"] if e["name"] == "aten::tanh")
        assert event["ph"] == "X" and event["dur"] > 0 and event["cat"] == "cpu_op"
    prof.export_stacks(str(tmp_path / "stacks"))
    assert "test_profiler.py" in (tmp_path / "stacks").read_text()


def test_schedules_are_pytorchs():
    names = {a: a.name[0] if a is not ProfilerAction.RECORD_AND_SAVE else "S"
             for a in ProfilerAction}
    one = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    two = schedule(wait=2, warmup=1, active=1, skip_first=1, skip_first_wait=1)
    assert "".join(names[one(i)] for i in range(12)) == "NNWRSNWRSNNN"
    assert "".join(names[two(i)] for i in range(12)) == "NWSNNWSNNWSN"
    ready = []
    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
                 on_trace_ready=lambda p: ready.append((p.step_num, len(p.events())))) as prof:
        for _ in range(10):
            torch.ones(2).sin()
            prof.step()
    assert [step for step, _ in ready] == [4, 8] and ready[0][1] == ready[1][1] == 6
    with pytest.raises(ValueError, match="active"):
        schedule(wait=1, warmup=1, active=0)


def test_old_interface_compiled_functions_and_writing(tmp_path):
    f = torch.compile(lambda x: x * 2)
    f(torch.ones(2))
    with torch.autograd.profiler.profile() as prof:
        f(torch.ones(2))
    assert "CompiledFunction" in prof.table() and prof.total_average().count == len(
        prof.function_events)
    handler = torch.profiler.tensorboard_trace_handler(str(tmp_path), "me", use_gzip=True)
    with profile(on_trace_ready=handler):
        torch.ones(1)
    (written,) = tmp_path.iterdir()
    assert written.name.startswith("me.") and written.name.endswith(".pt.trace.json.gz")
    with pytest.raises(RuntimeError, match="nothing yet"):
        profile().events()


def test_off_means_off():
    @record_function("named")
    def f():
        return 1

    assert f() == 1
    with pytest.raises(ZeroDivisionError), profile() as prof:
        f()
        1 / 0
    assert [e.name for e in prof.events()] == ["named"]


def test_nodes_have_the_numbers_of_their_operators():
    with torch.autograd.profiler.profile() as found:
        assert torch.autograd._profiler_enabled()
        x = torch.ones(3, requires_grad=True)
        (x + x).sum().backward()
    assert not torch.autograd._profiler_enabled()
    events = {e.name: e for e in reversed(found.function_events)}
    node = events["AddBackward0"]
    assert node.cpu_parent is events["autograd::engine::evaluate_function: AddBackward0"]
    assert node.sequence_nr == events["aten::add"].sequence_nr > 0
    assert node.fwd_thread == events["aten::add"].thread and events["aten::add"].fwd_thread == 0
    assert torch.profiler.itt.is_available() is False


def test_events_made_by_hand():
    from pullback.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg

    made = [FunctionEvent(id=i, node_id=0, name="foo", thread=0, start_us=a, end_us=b)
            for i, (a, b) in enumerate([(0, 2), (1, 2), (1, 3)])]
    events = EventList(made)
    events._populate_cpu_children()
    assert [[c.id for c in e.cpu_children] for e in made] == [[], [], [1]]
    total = FunctionEventAvg()
    for start, end in ((10, 15), (20, 30)):
        total.add(FunctionEvent("foo", 0, start_us=start, end_us=end))
    total.add(total)
    assert (total.key, total.count, total.cpu_time_total, total.cpu_time) == ("foo", 4, 30, 7.5)
