"""A program whose processes share tensors; `test_multiprocessing.py` runs it for each method."""

import sys

import pullback as torch
from pullback import multiprocessing as mp
from pullback import nn


class Marked(torch.Tensor):
    """A class of the user's, with an attribute."""


def writes(x, part, model, results, more):
    """A process: write to what came as an argument, send results, write to what is sent later."""
    assert part.untyped_storage() is x.untyped_storage() and x.is_shared()
    x.add_(10)
    part[0] = 99
    assert x[2] == 99
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    results.put({"x": x, "small": torch.arange(3), "large": torch.ones(50000), "empty": x[:0]})
    later = more.get()
    later.mul_(2)
    last = Marked([1.0, 2.0])
    last.mark = "kept"
    results.put((last, torch.full((30000,), 7.0)))  # and end: nobody has fetched it yet


def doubled(t):
    """What a pool does: write to what came, return something new."""
    t.add_(1)
    return t * 2


def main(method):
    context = mp.get_context(method)
    x = torch.zeros(5).share_memory_()
    part, model = x[2:4], nn.Linear(2, 1, bias=False).share_memory()
    before, results, more = model.weight.detach().clone(), context.Queue(), context.Queue()
    process = context.Process(target=writes, args=(x, part, model, results, more))
    process.start()
    got = results.get(timeout=30)
    assert got["x"].untyped_storage() is x.untyped_storage() and got["empty"].shape == (0,)
    assert x.tolist() == [10, 10, 99, 10, 10] and part.tolist() == [99, 10]
    assert torch.equal(model.weight, before - 1), model.weight
    assert got["small"].tolist() == [0, 1, 2] and got["large"].sum() == 50000
    mine = torch.ones(6)
    alias = mine.view(2, 3)[1]
    more.put(alias)
    last, large = results.get(timeout=30)
    process.join(30)
    assert process.exitcode == 0
    assert mine.tolist() == [1, 1, 1, 2, 2, 2] and alias.tolist() == [2, 2, 2]
    assert mine.is_shared() and alias.is_shared()
    assert type(last) is Marked and last.mark == "kept" and last.tolist() == [1, 2]
    assert large.sum() == 210000
    with context.Pool(1) as pool:
        given = [torch.full((2,), float(i)) for i in range(3)]
        back = pool.map(doubled, given)
    assert [t.tolist() for t in back] == [[2, 2], [4, 4], [6, 6]]
    assert [t.tolist() for t in given] == [[1, 1], [2, 2], [3, 3]]


if __name__ == "__main__":
    main(sys.argv[1])
    print("done")
