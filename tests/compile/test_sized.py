"""Native code for symbolic sizes: one library for many sizes, exactly where texts allow it."""

import numpy as np
import pytest

import pullback as torch
from pullback.compile import native, sized, toolchain
from pullback.compile.errors import CompilerNotFound

try:
    toolchain.find()
except CompilerNotFound:
    pytest.skip("no C compiler", allow_module_level=True)


@pytest.fixture
def builds(monkeypatch):
    """The libraries that are compiled."""
    made = []
    build = native.build

    def counted(source, name, extra=()):
        if not name.startswith(("runtime", "product")):
            made.append(name)
        return build(source, name, extra)

    monkeypatch.setattr(native, "build", counted)
    return made


def layer(x, w, b):
    return (torch.nn.functional.gelu(x @ w + b).softmax(-1) * x.shape[0]).mean()


def check(f, n, seed):
    """A compiled function against itself, eager, at one size; the size makes texts unique."""
    torch.manual_seed(seed)
    values = [torch.randn(n, 24), torch.randn(24, 20), torch.randn(20)]
    found = []
    for function in (f, f.function):
        leaves = [v.clone().requires_grad_() for v in values]
        out = function(*leaves)
        out.backward()
        found.append([out.detach(), *[t.grad for t in leaves]])
    for a, b in zip(*found):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-4, atol=1e-6)


def test_sizes_share_a_library(builds, monkeypatch):
    monkeypatch.setattr(sized.cache, "key", salted(sized.cache.key))
    f = torch.compile(layer, dynamic=True)
    for seed, n in enumerate((32, 40, 100)):
        check(f, n, seed)
    assert 2 <= len(builds) <= 3  # for the first size, and for all sizes (perhaps twice)
    for seed, n in enumerate((33, 77, 128, 51, 64)):
        check(f, n, seed)
    assert len(builds) <= 4


def salted(key):
    """Keys of this test alone, so that no library is found on disk."""
    salt = str(np.random.default_rng().integers(1 << 62))
    return lambda *parts: key(*parts, salt)


TEXT = """/* 7 rows */ static const pb_api *pb;
void f(float *x) {{ k1(q, 0, {0}); for (int i = 0; i < {1}; i += 16) x[i] *= {2}; }}"""


def test_texts_are_compared_number_by_number(monkeypatch):
    monkeypatch.setattr(sized.native, "build", lambda source, name, extra=(): None)
    s = sized.Skeletons()
    assert s.fit(TEXT.format(1, 32, "0.5f")) is None
    key, numbers = s.fit(TEXT.format(1, 48, "0.25f"))
    assert numbers == [48.0, 0.25]
    assert s.fit(TEXT.format(1, 64, "0.125f")) == (key, [64.0, 0.125])
    other, numbers = s.fit(TEXT.format(3, 64, "0.125f"))  # another number varies, too
    assert other != key and numbers == [3.0, 3.0, 64.0, 0.125]
    source = s.known[0].source()
    assert "static int32_t pb_n0" in source and "static float pb_n3" in source
    assert "i += 16" in source and "rows" not in source
    assert s.fit(TEXT.format(1, 48, "2")) is None  # an integer where a float was
    assert s.fit(TEXT.replace("*=", "+=").format(1, 48, "0.5f")) is None and len(s.known) == 3
    assert s.fit(TEXT.format(1, 1 << 40, "0.5f")) is None  # too large for a variable


def test_a_compiler_that_wants_constants(monkeypatch):
    def refuse(source, name, extra=()):
        raise sized.CompilerFailed(["cc"], "constant expected", str(source))

    monkeypatch.setattr(sized.native, "build", refuse)
    s = sized.Skeletons()
    s.fit(TEXT.format(1, 32, "0.5f"))
    assert s.fit(TEXT.format(1, 48, "0.5f")) is None
    assert s.fit(TEXT.format(1, 64, "0.5f")) is None  # and it is not asked again


def test_a_graph_with_symbolic_sizes_can_be_called_by_itself():
    from pullback.aot import aot_function
    from pullback.compile.ahead import ts_compile

    f = aot_function(lambda x: (x * 2).sin().sum(0), ts_compile, dynamic=True)
    for n in (3, 8, 21):
        x = torch.randn(n, 5, requires_grad=True)
        y = f(x)
        y.sum().backward()
        assert torch.allclose(y, (x * 2).sin().sum(0), atol=1e-5)
        assert torch.allclose(x.grad, 2 * (x * 2).cos(), atol=1e-5)
