"""Tensors in the hands of other libraries: pandas, scikit-learn, matplotlib, einops.

`make parity` has them in its environment and runs this file; `make test` does not.
"""

import numpy as np
import pytest

import pullback as torch

pytestmark = [pytest.mark.libraries, pytest.mark.torch]


@pytest.fixture
def x():
    torch.manual_seed(0)
    return torch.randn(60, 3)


# --- matplotlib --------------------------------------------------------------------------------


@pytest.fixture
def axes():
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots()
    yield axes
    figure.canvas.draw()
    pyplot.close(figure)


def test_lines_and_points(axes, x):
    (line,) = axes.plot(x[:, 0], x[:, 1])
    np.testing.assert_array_equal(line.get_xydata(), x[:, :2].numpy())
    points = axes.scatter(x[:, 0], x[:, 1], c=x[:, 2], s=x[:, 2].abs())
    np.testing.assert_array_equal(points.get_offsets(), x[:, :2].numpy())
    axes.axhline(x.mean())
    axes.set_xlim(x[:, 0].min(), x[:, 0].max())


def test_images_and_columns(axes, x):
    assert axes.imshow(x[:9].reshape(9, 3)).get_array().shape == (9, 3)
    assert len(axes.boxplot(x)["boxes"]) == 3  # columns, as of an array
    counts, _, _ = axes.hist(x[:, 0], bins=5)
    assert counts.tolist() == np.histogram(x[:, 0].numpy(), bins=5)[0].tolist()


def test_what_is_being_differentiated_must_be_detached(axes, x):
    x.requires_grad_()
    with pytest.raises(RuntimeError, match="detach"):
        axes.plot(x[:, 0])
    axes.plot(x[:, 0].detach())


# --- pandas ------------------------------------------------------------------------------------


def test_frames(x):
    import pandas

    frame = pandas.DataFrame({"a": x[:, 0], "b": x[:, 1]}).assign(c=torch.arange(60))
    assert [str(t) for t in frame.dtypes] == ["float32", "float32", "int64"]
    assert pandas.DataFrame(x).shape == (60, 3)
    assert frame.iloc[torch.tensor([0, 2])].c.tolist() == [0, 2]
    assert torch.equal(torch.tensor(frame[["a", "b"]].values), x[:, :2])
    assert torch.tensor(frame.c).tolist() == torch.as_tensor(frame.c).tolist() == list(range(60))
    np.testing.assert_array_equal(pandas.Series(x[:, 0]).to_numpy(), x[:, 0].numpy())


# --- scikit-learn ------------------------------------------------------------------------------


def test_estimators_take_tensors(x):
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import accuracy_score, confusion_matrix
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    y = (x[:, 0] > 0).long()
    parts = train_test_split(x, y, random_state=0)
    assert all(isinstance(part, torch.Tensor) for part in parts) and len(parts[0]) == 45
    ours, theirs = (LogisticRegression().fit(a, b) for a, b in ((x, y), (x.numpy(), y.numpy())))
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4)  # one in double precision
    predicted = ours.predict(x)
    assert accuracy_score(y, predicted) == (torch.from_numpy(predicted) == y).float().mean().item()
    assert confusion_matrix(y, y).tolist() == [[int((y == 0).sum()), 0], [0, int(y.sum())]]
    scaled = torch.as_tensor(StandardScaler().fit_transform(x))
    expected = (x - x.mean(0)) / x.std(0, correction=0)
    assert torch.allclose(scaled.float(), expected, atol=1e-5)


# --- einops ------------------------------------------------------------------------------------


def check_einops(x):
    import einops

    x = x.detach().requires_grad_()
    parts = einops.rearrange(x, "(a b) c -> b (a c)", a=6)
    assert torch.equal(parts, x.reshape(6, 10, 3).permute(1, 0, 2).reshape(10, 18))
    assert torch.equal(einops.reduce(x, "(a b) c -> a c", "max", a=6), x.reshape(6, 10, 3).amax(1))
    assert torch.equal(einops.repeat(x[0], "c -> c n", n=2), torch.stack([x[0], x[0]], dim=1))
    assert torch.equal(einops.einsum(x, x, "a c, b c -> a b"), torch.einsum("ac,bc->ab", x, x))
    packed, shapes = einops.pack([x, x[:1]], "* c")
    assert torch.equal(einops.unpack(packed, shapes, "* c")[1], x[:1])
    parts.square().sum().backward()
    assert torch.equal(x.grad, 2 * x.detach())


def test_einops(x):
    import pullback.utils.einops  # noqa: F401  (makes the tensors known)

    check_einops(x)


def test_einops_layers(x, without_torch):
    """Where the package stands in for PyTorch einops needs to be told nothing."""
    import sys

    import einops._backends

    known = dict(einops._backends._loaded_backends), dict(einops._backends._type2backend)
    for table in (einops._backends._loaded_backends, einops._backends._type2backend):
        table.clear()
    try:
        with torch.install_as_torch():
            from einops.layers.torch import EinMix, Rearrange, Reduce

            check_einops(x)
            cut, mean = Rearrange("(a b) c -> a b c", a=6), Reduce("a b c -> a c", "mean")
            assert torch.allclose(torch.nn.Sequential(cut, mean)(x), x.reshape(6, 10, 3).mean(1))
            mix = EinMix("a c -> a d", weight_shape="c d", c=3, d=2)
            assert torch.allclose(mix(x), x @ mix.weight.reshape(3, 2), atol=1e-6)
    finally:
        for name in [n for n in sys.modules if n.startswith(("einops.layers", "einops._torch"))]:
            del sys.modules[name]
        einops._backends._loaded_backends.clear()
        einops._backends._type2backend.clear()
        einops._backends._loaded_backends.update(known[0])
        einops._backends._type2backend.update(known[1])
