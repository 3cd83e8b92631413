"""`no_grad`, `enable_grad`, `set_grad_enabled`, `inference_mode`: as blocks, decorators, nested."""

import pytest

import pullback as torch


@pytest.fixture
def x():
    return torch.ones(2, requires_grad=True)


def test_no_grad(x):
    with torch.no_grad():
        assert not torch.is_grad_enabled()
        y = x * 2
        z = x.exp().sum()
        assert not y.requires_grad and y.is_leaf and y.grad_fn is None and not z.requires_grad
    assert torch.is_grad_enabled() and (x * 2).requires_grad
    assert not (y * 3).requires_grad


def test_leaves_made_under_no_grad(x):
    with torch.no_grad():
        w = torch.ones(2, requires_grad=True)
        assert w.requires_grad and not (w * 2).requires_grad
    assert (w * 2).requires_grad


def test_nesting(x):
    with torch.no_grad():
        with torch.enable_grad():
            assert (x * 2).requires_grad
            with torch.no_grad():
                assert not (x * 2).requires_grad
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad


def test_restored_after_an_exception(x):
    with pytest.raises(ValueError, match="stop"), torch.no_grad():
        raise ValueError("stop")
    assert (x * 2).requires_grad
    with pytest.raises(ValueError, match="stop"), torch.no_grad(), torch.enable_grad():
        raise ValueError("stop")
    assert torch.is_grad_enabled()


def test_decorators(x):
    @torch.no_grad()
    def quiet(t):
        """Docs stay."""
        return t * 2

    @torch.no_grad
    def bare(t):
        return t * 2

    @torch.enable_grad()
    def loud(t):
        return t * 2

    assert not quiet(x).requires_grad and not bare(x).requires_grad
    assert quiet.__name__ == "quiet" and quiet.__doc__ == "Docs stay."
    with torch.no_grad():
        assert loud(x).requires_grad
    assert torch.is_grad_enabled()


def test_recursive_decorator(x):
    @torch.no_grad()
    def down(n):
        return (x * 2).requires_grad if n == 0 else down(n - 1)

    assert down(3) is False and torch.is_grad_enabled()


def test_generators_switch_only_while_they_run(x):
    @torch.no_grad()
    def numbers():
        for i in range(3):
            received = yield (i, torch.is_grad_enabled())
            assert received is None or not torch.is_grad_enabled()

    for i, (n, on) in enumerate(numbers()):
        assert n == i and not on
        assert torch.is_grad_enabled()


def test_generators_get_what_is_sent_and_thrown():
    events = []

    @torch.no_grad()
    def coroutine():
        try:
            events.append((yield "ready"))
            yield "again"
        except KeyError:
            events.append(("thrown", torch.is_grad_enabled()))
            yield "caught"
        finally:
            events.append("closed")

    running = coroutine()
    assert next(running) == "ready"
    assert running.send(5) == "again"
    assert running.throw(KeyError) == "caught"
    running.close()
    assert events == [5, ("thrown", False), "closed"] and torch.is_grad_enabled()


def test_set_grad_enabled(x):
    with torch.set_grad_enabled(False):
        assert not (x * 2).requires_grad
        with torch.set_grad_enabled(True):
            assert (x * 2).requires_grad
    assert (x * 2).requires_grad
    torch.set_grad_enabled(False)
    try:
        assert not torch.is_grad_enabled() and not (x * 2).requires_grad
    finally:
        torch.set_grad_enabled(True)
    assert (x * 2).requires_grad

    @torch.set_grad_enabled(False)
    def quiet(t):
        return t * 2

    assert torch.is_grad_enabled() and not quiet(x).requires_grad


def test_inference_mode(x):
    assert not torch.is_inference_mode_enabled()
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled() and not torch.is_grad_enabled()
        y = x * 2
        assert not y.requires_grad
        y.add_(1)
    assert not torch.is_inference_mode_enabled() and torch.is_grad_enabled()
    with torch.inference_mode(False):
        assert (x * 2).requires_grad
    with torch.inference_mode(), torch.inference_mode(False):
        assert not torch.is_inference_mode_enabled()

    @torch.inference_mode()
    def quiet(t):
        return t * 2

    assert not quiet(x).requires_grad and torch.is_grad_enabled()


def test_one_manager_entered_twice(x):
    quiet = torch.no_grad()
    with quiet:
        with quiet:
            assert not torch.is_grad_enabled()
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()


def test_backward_inside_no_grad(x):
    y = (x * x).sum()
    with torch.no_grad():
        y.backward()
    assert x.grad.tolist() == [2, 2] and not x.grad.requires_grad
    z = (x * x).sum()
    with torch.no_grad():
        g, = torch.autograd.grad(z, x, create_graph=True)
    assert g.requires_grad


def test_no_grad_inside_a_transform(x):
    """The innermost level's tape is switched; outer levels keep recording."""
    def inner(t):
        with torch.no_grad():
            c = t * t
        return (t * c).sum()  # c counts as a constant

    assert torch.func.grad(inner)(torch.tensor([3.0])).tolist() == [9]
    with torch.no_grad():  # outside: the transform differentiates all the same
        assert torch.func.grad(lambda t: (t * t).sum())(torch.tensor([3.0])).tolist() == [6]


# coroutines


def test_coroutines_keep_their_mode_to_themselves():
    import asyncio

    x = torch.ones(2, requires_grad=True)

    @torch.no_grad()
    async def quiet(log):
        for _ in range(3):
            log.append((x * 2).requires_grad)
            await asyncio.sleep(0)
        return "done"

    async def loud(log):
        for _ in range(3):
            log.append((x * 2).requires_grad)
            await asyncio.sleep(0)

    async def main():
        first, second = [], []
        answer, _ = await asyncio.gather(quiet(first), loud(second))
        return answer, first, second

    assert asyncio.run(main()) == ("done", [False] * 3, [True] * 3)
    assert torch.is_grad_enabled()


def test_coroutines_get_exceptions_inside_of_the_mode():
    import asyncio

    @torch.no_grad()
    async def waiting(log):
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            log.append(torch.is_grad_enabled())
            raise

    async def main():
        log = []
        task = asyncio.create_task(waiting(log))
        await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            log.append(torch.is_grad_enabled())
        return log

    assert asyncio.run(main()) == [False, True]


def test_asynchronous_generators():
    import asyncio

    @torch.no_grad()
    async def values():
        for _ in range(2):
            await asyncio.sleep(0)
            yield torch.is_grad_enabled()

    async def main():
        return [(v, torch.is_grad_enabled()) async for v in values()]

    assert asyncio.run(main()) == [(False, True)] * 2
