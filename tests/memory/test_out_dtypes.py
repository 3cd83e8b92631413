"""The dtypes that `out=` takes: castable for arithmetic, the very one elsewhere, any for sums."""

import pytest

import pullback as torch

V, M, I = torch.tensor([1.5, 2.5]), torch.tensor([[2.0, 1], [1, 3]]), torch.tensor([0, 1])


def empty(dtype):
    return torch.empty(2, dtype=dtype)


def places():
    return torch.empty(2, dtype=torch.int64)


CASTABLE = {
    "add": lambda out: torch.add(V, V, out=out),
    "exp": lambda out: torch.exp(V, out=out),
    "mul": lambda out: torch.mul(V, 2, out=out),
    "mean": lambda out: torch.mean(M, 0, out=out),
    "var": lambda out: torch.var(M, 0, out=out),
    "logsumexp": lambda out: torch.logsumexp(M, 0, out=out),
    "cat": lambda out: torch.cat([V[:1], V[:1]], out=out),
    "stack": lambda out: torch.stack([V[0], V[1]], out=out),
    "addcmul": lambda out: torch.addcmul(V, V, V, out=out),
}
ANY = {
    "sum": lambda out: torch.sum(M, 0, out=out),
    "prod": lambda out: torch.prod(M, 0, out=out),
    "cumsum": lambda out: torch.cumsum(V, 0, out=out),
    "cumprod": lambda out: torch.cumprod(V, 0, out=out),
}
EXACT = {
    "mm": lambda out: torch.mm(M, M, out=out),
    "matmul": lambda out: torch.matmul(M, M, out=out),
    "bmm": lambda out: torch.bmm(M[None], M[None], out=out),
    "addmv": lambda out: torch.addmv(V, M, V, out=out),
    "dot": lambda out: torch.dot(V, V, out=out),
    "index_select": lambda out: torch.index_select(V, 0, I, out=out),
    "gather": lambda out: torch.gather(V, 0, I, out=out),
    "where": lambda out: torch.where(V > 1, V, V, out=out),
    "clamp": lambda out: torch.clamp(V, 0, 1, out=out),
    "round": lambda out: torch.round(V, out=out),
    "neg": lambda out: torch.neg(V, out=out),
    "sort": lambda out: torch.sort(V, out=(out, places())),
    "max": lambda out: torch.max(M, 0, out=(out, places())),
    "topk": lambda out: torch.topk(V, 2, out=(out, places())),
    "amax": lambda out: torch.amax(M, 0, out=out),
    "vector_norm": lambda out: torch.linalg.vector_norm(M, dim=0, out=out),
    "solve": lambda out: torch.linalg.solve(M, V, out=out),
    "inv": lambda out: torch.linalg.inv(M, out=out),
    "eigvalsh": lambda out: torch.linalg.eigvalsh(M, out=out),
    "diag": lambda out: torch.diag(M, out=out),
    "tril": lambda out: torch.tril(M, out=out),
    "softmax": lambda out: torch.softmax(V, 0, out=out),
    "scatter": lambda out: torch.scatter(V, 0, I, V, out=out),
    "index_add": lambda out: torch.index_add(V, 0, I, V, out=out),
}


@pytest.mark.parametrize("name", CASTABLE)
def test_castable(name):
    for dtype in (torch.float16, torch.float64, torch.complex64):
        out = empty(dtype)
        CASTABLE[name](out)
        assert out.dtype is dtype
    for dtype in (torch.int64, torch.bool):
        with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
            CASTABLE[name](empty(dtype))


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized:UserWarning")
@pytest.mark.parametrize("name", EXACT)
def test_exact(name):
    EXACT[name](empty(torch.float32))
    for dtype in (torch.float16, torch.float64, torch.complex64, torch.int64):
        with pytest.raises(RuntimeError, match=f"output type {dtype.name}"):
            EXACT[name](empty(dtype))


@pytest.mark.parametrize("name", ANY)
def test_sums_are_made_in_the_dtype_of_out(name):
    for dtype in (torch.float64, torch.int64):
        out = empty(dtype)
        ANY[name](out)
        assert out.dtype is dtype
    out = empty(torch.int64)
    torch.cumprod(V, 0, out=out)
    assert out.tolist() == [1, 2]  # of 1 and 2, not of 1.5 and 2.5


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized:UserWarning")
def test_places_and_truth_values():
    for call in (lambda out: torch.argmax(M, 0, out=out),
                 lambda out: torch.max(M, 0, out=(empty(torch.float32), out)),
                 lambda out: torch.nonzero(V, out=out),
                 lambda out: torch.searchsorted(V, V, out=out)):
        call(places())
        for dtype in (torch.int32, torch.float32):
            with pytest.raises(RuntimeError, match=f"output type {dtype.name}"):
                call(empty(dtype))
    for call in (lambda out: torch.any(M, 0, out=out), lambda out: torch.all(M, 0, out=out)):
        for dtype in (torch.bool, torch.uint8):
            call(empty(dtype))
        with pytest.raises(RuntimeError, match="output type float32"):
            call(empty(torch.float32))


@pytest.mark.parametrize("call", [
    lambda out: torch.add(V, V, out=out), lambda out: torch.exp(V, out=out),
    lambda out: torch.cumsum(V, 0, out=out), lambda out: torch.cat([V], out=out),
    lambda out: torch.mm(M, M, out=out.expand(2, 2))])
def test_elements_that_are_one_cannot_take_two_results(call):
    with pytest.raises(RuntimeError, match="single memory location"):
        call(torch.zeros(1).expand(2))
