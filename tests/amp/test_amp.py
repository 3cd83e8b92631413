"""Autocast and the gradient scaler. Dtypes are those of PyTorch 2.13's CPU autocast."""

import threading

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.core.op import families
from pullback.threads.state import fast, state
from pullback.utils.checkpoint import checkpoint

B, H, S, D = torch.bfloat16, torch.float16, torch.float32, torch.float64
a = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
low = a.to(B)
i = a[None, None]

CASES = {
    "matmul": (lambda: a @ a, B),
    "doubles stay": (lambda: a.double() @ a.double(), D),
    "integers stay": (lambda: (a.long() @ a.long()), torch.int64),
    "linear": (lambda: F.linear(a, a), B),
    "conv2d": (lambda: F.conv2d(i, i), B),
    "conv_transpose2d": (lambda: F.conv_transpose2d(i, i), B),
    "bmm": (lambda: torch.bmm(i[0], i[0]), B),
    "baddbmm": (lambda: torch.baddbmm(i[0], i[0], i[0]), B),
    "einsum": (lambda: torch.einsum("ij,jk->ik", a, a), B),
    "prelu": (lambda: F.prelu(a, a[0, :1]), B),
    "attention": (lambda: F.scaled_dot_product_attention(a[None], a[None], a[None]), B),
    "multi-head attention": (lambda: torch.nn.MultiheadAttention(2, 1)(a, a, a)[0], B),
    "lstm": (lambda: torch.nn.LSTM(2, 3)(a)[0], B),
    "dot is not listed": (lambda: torch.dot(a[0], a[0]), S),
    "mv is not listed": (lambda: torch.mv(a, a[0]), S),
    "pointwise promotes": (lambda: a + low, S),
    "softmax keeps": (lambda: low.softmax(0), B),
    "sum keeps": (lambda: low.sum(), B),
    "layer_norm keeps": (lambda: F.layer_norm(low, [2]), B),
    "prod": (lambda: low.prod(), S),
    "mse_loss": (lambda: F.mse_loss(low, a), S),
    "cross_entropy": (lambda: F.cross_entropy(low, torch.tensor([0, 1])), S),
    "cdist": (lambda: torch.cdist(low, low), S),
    "inverse": (lambda: torch.linalg.inv(low), S),
    "cat of both": (lambda: torch.cat([a, low]), S),
    "cat of one": (lambda: torch.cat([low, low]), B),
    "stack of both": (lambda: torch.stack([a, low]), S),
    "in place": (lambda: torch.zeros(2, 2).addmm_(a, a), S),
    "out": (lambda: torch.mm(a, a, out=torch.empty(2, 2)), S),
}


@pytest.mark.parametrize("name", CASES)
def test_dtypes(name):
    run, dtype = CASES[name]
    with torch.autocast("cpu"):
        out = run()
    assert out.dtype is dtype
    with torch.autocast("cpu", dtype=H):
        out = run()
    assert out.dtype is {B: H}.get(dtype, dtype) or "low" in run.__code__.co_names


def test_the_overloads_of_an_operator_are_of_one_class():
    for name, entries in families.items():
        assert len({entry.autocast for entry in entries}) == 1, name
        assert entries[0].autocast in (None, "lower", "float32", "widest"), name


def test_nesting_and_what_is_asked():
    with torch.autocast("cpu"):
        assert torch.is_autocast_enabled("cpu") and not torch.is_autocast_enabled("cuda")
        with torch.autocast("cpu", enabled=False):
            assert (a @ a).dtype is S and not torch.is_autocast_cpu_enabled()
            with torch.autocast("cpu", dtype=H):
                assert (a @ a).dtype is H and torch.get_autocast_dtype("cpu") is H
        assert (a @ a).dtype is B
    assert (a @ a).dtype is S and torch.get_autocast_cpu_dtype() is B
    torch.set_autocast_enabled("cpu", True)
    try:
        assert (a @ a).dtype is B
    finally:
        torch.set_autocast_enabled("cpu", False)
    assert (a @ a).dtype is S


def test_nothing_is_left_behind_and_other_threads_do_not_see_it():
    before, seen = fast["ACTIVE"], []
    with pytest.raises(ZeroDivisionError), torch.autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append((a @ a).dtype))
        thread.start()
        thread.join()
        1 / 0
    assert seen == [S] and fast["ACTIVE"] == before and state.autocast is None


def test_as_a_decorator():
    @torch.autocast("cpu", dtype=H)
    def product(x):
        """Doc."""
        return x @ x

    assert product(a).dtype is H and product.__doc__ == "Doc." and (a @ a).dtype is S


def test_gradients_have_the_dtype_of_the_weights():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    x, y = torch.randn(5, 4), torch.tensor([0, 1, 2, 0, 1])
    with torch.autocast("cpu"):
        loss = F.cross_entropy(model(x), y)
        loss.backward()  # inside, as many programs do
    mixed = [p.grad for p in model.parameters()]
    assert all(g.dtype is S for g in mixed)
    model.zero_grad()
    F.cross_entropy(model(x), y).backward()
    for got, exact in zip(mixed, (p.grad for p in model.parameters()), strict=True):
        assert (got - exact).abs().max() < 0.02 * exact.abs().max()


def test_weights_are_converted_once_per_block_and_again_after_a_write():
    w = torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu"):
        one, two = (a @ w).grad_fn, (a @ w).grad_fn
        casts = {id(n.next_functions[-1][0]) for n in (one, two)}
        assert len(casts) == 1
        with torch.no_grad():
            assert (a @ w).grad_fn is None
            w.mul_(2)
        assert torch.equal(a @ w, (a @ (w * 1)))
    with torch.autocast("cpu", cache_enabled=False):
        one, two = (a @ w).grad_fn, (a @ w).grad_fn
        assert one.next_functions[-1][0] is not two.next_functions[-1][0]


def test_under_transforms_and_compile():
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 3)
    x = torch.randn(5, 4)

    def inside(x):
        with torch.autocast("cpu"):
            return model(x).float().square().sum()

    def plain(x):
        return model(x).float().square().sum()

    eager = inside(x)
    (expected,) = torch.autograd.grad(eager, model.weight)
    compiled = torch.compile(inside)
    out = compiled(x)
    assert torch.equal(torch.autograd.grad(out, model.weight)[0], expected)
    assert out.item() == eager.item() != plain(x).item()
    outside = torch.compile(plain)  # each state of autocast has its own program
    assert outside(x).item() == pytest.approx(plain(x).item(), rel=1e-6)
    with torch.autocast("cpu"):
        assert outside(x).item() == eager.item()
    assert outside(x).item() == pytest.approx(plain(x).item(), rel=1e-6)
    rows = torch.vmap(inside)(x)
    assert rows.shape == (5,) and rows.sum().item() == pytest.approx(eager.item(), rel=1e-2)
    assert torch.func.grad(inside)(x).dtype is S


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpoint_runs_again_in_the_same_dtypes(reentrant):
    x, w = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2, requires_grad=True)
    seen = []

    def block(x):
        seen.append((x @ w).dtype)
        return (x @ w).float().sum()

    with torch.autocast("cpu"):
        y = checkpoint(block, x, use_reentrant=reentrant)
    y.backward()
    assert seen == [B, B] and x.grad.dtype is S


def test_functions_take_autocast_along():
    class Product(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu")
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x @ y

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            dtypes.append((grad @ y.T).dtype)
            return grad @ y.T, x.T @ grad

    class Exact(Product):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=S)
        def forward(ctx, x, y):
            dtypes.append((x @ y).dtype)
            ctx.save_for_backward(x, y)
            return x @ y

    dtypes = []
    x = a.clone().requires_grad_()
    with torch.autocast("cpu"):
        out = Product.apply(x, a)
    assert out.dtype is B
    out.sum().backward()
    with torch.autocast("cpu"):
        assert Exact.apply(x, low).dtype is S
    assert dtypes == [B, S]


@pytest.mark.parametrize(
    "make, text",
    [(lambda: torch.autocast("cuda"), "no device of type 'cuda'"),
     (lambda: torch.autocast("cpu", dtype=S), "float16 and bfloat16"),
     (lambda: torch.amp.GradScaler(), "no device of type 'cuda'")],
)
def test_what_cannot_be_done_is_said_and_off(make, text):
    with pytest.warns(UserWarning, match=text):
        made = make()
    assert not made._enabled


def test_refusals():
    with pytest.raises(RuntimeError, match="Invalid device string: 'no'"):
        torch.autocast("no")
    with pytest.raises(ValueError, match="str"):
        torch.autocast(1)
    with pytest.raises(ValueError, match="growth"):
        torch.amp.GradScaler("cpu", growth_factor=0.5)


def trained(scaler, bad=None):
    w = torch.tensor([1.0], requires_grad=True)
    opt = torch.optim.SGD([w], lr=0.5)
    rows = []
    for step in range(5):
        opt.zero_grad()
        scaler.scale((w * w).sum()).backward()
        if step == bad:
            w.grad.fill_(float("inf"))
        scaler.step(opt)
        scaler.update()
        rows.append((scaler.get_scale(), w.item()))
    return rows


def test_the_scale_grows_and_shrinks_and_bad_steps_are_left_out():
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
    # w - 0.5 · 2w = 0 after the first step, whatever the scale
    assert trained(scaler) == [(4.0, 0.0), (8.0, 0.0), (8.0, 0.0), (16.0, 0.0), (16.0, 0.0)]
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
    assert trained(scaler, bad=0)[:3] == [(2.0, 1.0), (2.0, 0.0), (4.0, 0.0)]
    other = torch.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict() and other.get_backoff_factor() == 0.5
    off = torch.amp.GradScaler("cpu", enabled=False)
    assert trained(off)[0] == (1.0, 0.0) and off.state_dict() == {}


def test_the_order_of_calls():
    w = torch.tensor([1.0], requires_grad=True)
    opt, scaler = torch.optim.SGD([w], lr=0.5), torch.amp.GradScaler("cpu", init_scale=8.0)
    with pytest.raises(RuntimeError, match="_scale is None"):
        scaler.step(opt)
    scaler.scale([w.sum(), (w * 2).sum()])[1].backward()
    assert w.grad.item() == 16.0
    scaler.unscale_(opt)
    assert w.grad.item() == 2.0
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(opt)
    scaler.step(opt)
    assert w.item() == 0.0
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.step(opt)
    scaler.update(32.0)
    assert scaler.get_scale() == 32.0
    with pytest.raises(RuntimeError, match="inf checks"):
        scaler.update()
    half = torch.tensor([1.0], dtype=H, requires_grad=True)
    half.sum().backward()
    with pytest.raises(RuntimeError, match="FP16"):
        scaler.unscale_(torch.optim.SGD([half], lr=0.5))
    assert half.grad.item() == 1.0


def test_constants_of_a_scaler_are_set_by_name():
    scaler = torch.amp.GradScaler("cpu")
    scaler.set_growth_factor(new_factor=3.0)
    scaler.set_backoff_factor(new_factor=0.25)
    scaler.set_growth_interval(new_interval=7)
    found = scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval()
    assert found == (3.0, 0.25, 7)


@pytest.mark.parametrize(("kind", "dtype"), [("cpu", torch.bfloat16), ("cuda", torch.float16)])
def test_old_names_take_their_old_arguments(kind, dtype):
    old = getattr(torch, kind).amp
    with pytest.warns(FutureWarning, match=rf"torch\.{kind}\.amp\.autocast\(args"):
        block = old.autocast(False)
    assert isinstance(block, old.autocast) and type(block) is torch.amp.autocast
    assert (block._enabled, block.device, block.fast_dtype) == (False, kind, dtype)
    with pytest.warns(FutureWarning, match="GradScaler"):
        scaler = old.GradScaler(enabled=False)
    assert isinstance(scaler, old.GradScaler) and not scaler.is_enabled()
    with pytest.raises(RuntimeError, match="Invalid device string: 'nowhere'"):
        torch.autocast("nowhere")


def normalised(x, w):
    moved = torch.nn.functional.batch_norm(x, None, None, w, None, True)
    return torch.einsum("bcij,c->bij", moved, w).float().softmax(-1) + (moved.sum(1) @ moved[:, 0])


@pytest.mark.parametrize("way", [
    lambda f: torch.aot.aot_function(f, torch.aot.nop), torch.compile], ids=["aot", "compile"])
def test_compiled_programs_cast_as_eager_ones(way):
    torch.manual_seed(0)
    x, w = torch.randn(2, 3, 4, 4), torch.randn(3)
    found = []
    for run in (normalised, way(normalised)):
        leaves = [t.clone().requires_grad_() for t in (x, w)]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = run(*leaves)
            with torch.autocast("cpu", enabled=False):
                plain = run(*leaves)
        assert plain.dtype is torch.float32
        found.append((out, plain, *torch.autograd.grad(out.float().sin().sum(), leaves)))
    for a, b in zip(*found, strict=True):
        assert a.dtype is b.dtype
        torch.testing.assert_close(a, b, atol=0.05, rtol=0.05)


def test_graphs_show_casts_from_the_last_argument_to_the_first():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        graph = torch.make_fx(torch.nn.functional.linear)(
            torch.ones(2, 3), torch.ones(4, 3), torch.ones(4))
    copies = graph.graph.find_nodes(op="call_function", target=torch.ops.aten._to_copy.default)
    assert [n.args[0].name for n in copies] == ["bias_1", "weight_1", "input_1"]
