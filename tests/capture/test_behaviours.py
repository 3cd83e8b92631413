"""Behaviours of ahead-of-time compilation, one by one; `test_semantics.py` has the common ones.

Each case is run eagerly and compiled, with writes kept in the graph and not, with assertions on,
and everything that can be seen is compared (`oracle.py`). What is special about a behaviour, the
form of the graph or the text of an error, is asserted beside it.
"""

import pytest

import pullback as pb
from pullback import aot, errors
from tests.helpers.custom_functions import custom_function, dirtying, writing
from tests.helpers.oracle import check
from tests.helpers.oracle_inputs import inner, leaf, plain, related, values

CASES = {}


def case(start, **options):
    def keep(function):
        CASES[function.__name__] = (function, start, options)
        return function

    return keep


@pytest.fixture(autouse=True)
def asserted():
    with aot.config.patch(debug_assert=True):
        yield


@pytest.mark.parametrize("way", ["nop", "boxed"])
@pytest.mark.parametrize("name", CASES)
def test_as_eager(name, way):
    function, start, options = CASES[name]
    check(function, start, ways=(way,), **options)


@pytest.mark.parametrize("part", range(4))
def test_as_eager_without_functionalization(part):
    for name in sorted(CASES)[part::4]:
        function, start, options = CASES[name]
        check(function, start, ways=("writing",), **{"orders": (1,), **options})


def graphs(f, *args, keep=False):
    """What the compilers get: name -> module."""
    found = {}

    def compiler(name):
        return aot.make_boxed_compiler(lambda module, _: found.setdefault(name, module))

    compiled = aot.aot_function(
        f, compiler("forward"), compiler("backward"), inference_compiler=compiler("inference"),
        keep_inference_input_mutations=keep)
    return compiled(*args), found


def counts(module) -> tuple[int, int]:
    """Inputs and results of a graph."""
    inputs = [n for n in module.graph.nodes if n.op == "placeholder"]
    return len(inputs), len(module.graph.output_node().args[0])


# Input mutation: data


@case(inner((2, 3)), orders=(1,))
def written_detached_and_tracked(a):
    a.detach().mul_(2)
    a.mul_(3)
    return a + 1


@case(inner((2, 3)), orders=(1,))
def written_without_tape_then_tracked(a):
    pb.no_grad()(a.mul_)(2)
    a.mul_(3)
    return a + 1


@case(leaf((2, 3)), orders=(1,))
def leaf_written_without_tape_and_viewed(a):
    with pb.no_grad():
        a.mul_(2)
        a.view(-1).add_(1)
    return a.view(-1) * 2


@case(inner((2, 3)))
def written_many_times(a):
    for _ in range(3):
        a.add_(1)
    return a.sin()


@case(inner((2, 3), (2, 3), (2, 3)))
def first_and_last_of_three_written(a, b, c):
    a.mul_(2)
    c.div_(3)
    return b + a, c


@case(plain((2, 3)))
def written_to_a_constant(a):
    a.zero_()
    return a.cos()


@case(related(lambda b: b.view(-1)[::2]))
def strided_view_written(a):
    a.mul_(2)
    return a.sum()


@case(plain((3,), (3,)))
def result_and_its_out_argument(a, b):
    c = pb.add(a, 1, out=b)
    return c * 2, b


def test_aliases_of_a_written_input_see_it():
    """Version and kind of history of a view that was not passed are those of eager."""
    found = []
    for wrap in (lambda f: f, lambda f: aot.aot_function(f, aot.nop)):
        source = values(4).requires_grad_()
        base = source * 1
        alias = base.view(2, 2)
        wrap(lambda b: (b.mul_(2), b + 1)[1])(base).sum().backward(retain_graph=True)
        (g,) = pb.autograd.grad(alias.sum(), source)
        found.append((alias._version, type(alias.grad_fn).__name__, alias.tolist(), g.tolist(),
                      source.grad.tolist()))
    assert found[0] == found[1]


def test_buffers_are_written_at_the_end_of_a_training_graph():
    norm = pb.nn.BatchNorm1d(3)
    code = []
    run = aot.aot_module(
        norm, lambda g, _: (code.append(g.code), g)[1], keep_inference_input_mutations=True)
    run(pb.randn(4, 3)).sum().backward()
    lines = code[0].strip().splitlines()
    assert [line.split()[0] for line in lines if "aten.copy_" in line] == [
        "copy_", "copy__1", "copy__2"]
    assert "getitem_3, getitem_4" in lines[-1]  # what the backward needs: the new statistics
    assert "primals_3" not in lines[-1]
    assert norm.num_batches_tracked.item() == 1


def test_no_write_in_evaluation():
    norm = pb.nn.BatchNorm1d(3).eval()
    code = []
    aot.aot_module(norm, lambda g, _: (code.append(g.code), g)[1],
                   keep_inference_input_mutations=True)(pb.randn(4, 3))
    assert "copy_" not in code[0]


AddsToSaved = writing("AddsToSaved", lambda y: y.data.add_(1))


@case(related(lambda b: b, lambda b: values(4, 3)), writes=(False,), orders=(1,))
def written_in_forward_and_backward(a, y):
    y.mul_(2)
    return AddsToSaved.apply(a, y) + y


def test_backward_writes_when_it_runs():
    x, y = values(3).requires_grad_(), pb.zeros(3).double()
    out = aot.aot_function(AddsToSaved.apply, aot.nop)(x, y)
    assert y.tolist() == [0.0] * 3
    out.sum().backward()
    assert y.tolist() == [1.0] * 3


def test_backward_that_writes_a_tracked_input_is_not_differentiated_again():
    Writes = writing("Writes", pb.no_grad()(lambda y: y.add_(1)))
    x, y = values(3).requires_grad_(), values(3).requires_grad_()
    out = aot.aot_function(Writes.apply, aot.nop)(x, y)
    with pytest.raises(RuntimeError, match="does not support input mutations with "
                                           "requires_grad in backward for create_graph=True"):
        pb.autograd.grad(out.sum(), x, create_graph=True)


# Input mutation: shape and memory


@case(inner((2, 3), (2, 3)))
def one_turned_one_written_both_viewed(a, b):
    a.t_()
    b.mul_(2)
    return a[0], b[0], a, b


@case(plain((2, 3)))
def unsqueezed_and_written(a):
    a.unsqueeze_(0).mul_(2)
    return a + 1


@case(inner((2, 3)))
def view_and_view_in_place(a):
    v = a.view(-1)
    a.unsqueeze_(0)
    return v * 2, a * 3


@case(plain((2, 3), (2, 3)))
def memory_of_another(a, b):
    with pb.no_grad():
        a.set_(b)
    return a * 2


@case(leaf((2, 3), (2, 3)), writes=(False,))
def leaf_takes_memory_of_another(a, b):
    with pb.no_grad():
        a.set_(b)
    return a * 2


@case(plain((2, 3), (2, 3)))
def memory_of_another_then_written(a, b):
    with pb.no_grad():
        a.set_(b)
        b.mul_(2)
    return a * 2


@case(plain((6,)))
def fewer_elements(a):
    a.resize_(2, 2)
    return a * 2


@case(plain((6,)))
def more_elements(a):
    a.resize_(12)
    a.fill_(1)
    return a * 2


def test_memory_taken_and_given_back_leaves_no_trace():
    def f(a):
        old = a.detach()
        with pb.no_grad():
            a.set_(a * 2)
            a.set_(old)
        return a + 1

    a = values(3)
    _, found = graphs(f, a)
    assert counts(found["inference"]) == (1, 1) and "mul" not in found["inference"].code
    assert a._version == 0


def test_set_that_takes_part_in_autograd_is_refused():
    f = aot.aot_function(lambda a, b: (a.set_(b), a * 2)[1], aot.nop)
    with pytest.raises(RuntimeError, match="has other mutations that we cannot"):
        f(values(3).requires_grad_() * 1, values(3).requires_grad_() * 1)


def test_memory_taken_by_an_input_stands_in_the_graph():
    def f(a, b):
        with pb.no_grad():
            a.set_(b)
            b.mul_(2)
        return a + b

    a, b = (values(3).requires_grad_() * 1 for _ in range(2))
    _, found = graphs(f, a, b, keep=True)
    assert found["forward"].code.strip() == """\
def forward(self, primals_1, primals_2):
    mul = torch.ops.aten.mul.Tensor(primals_2, 2)
    add = torch.ops.aten.add.Tensor(mul, mul)
    set_ = torch.ops.aten.set_.source_Tensor(primals_1, mul);  primals_1 = set_ = None
    copy_ = torch.ops.aten.copy_.default(primals_2, mul);  primals_2 = mul = copy_ = None
    return (add,)"""
    assert a.data_ptr() == b.data_ptr() and pb.equal(a, values(3) * 2)


def test_memory_of_another_shape_taken_and_given_back():
    def f(a):
        b = pb.arange(9, dtype=a.dtype)
        old = pb.ops.aten.alias.default(a)
        with pb.no_grad():
            a.set_(b)
            a.set_(old)
        return a + b.reshape(3, 3)

    a = pb.ones(3, 3, requires_grad=True)
    out, found = graphs(f, a, keep=True)
    assert "set_" not in found["forward"].code and out.tolist()[2] == [7, 8, 9]
    out.sum().backward()
    assert a.grad.tolist() == [[1] * 3] * 3 and a.shape == (3, 3)


def test_writes_to_memory_that_an_input_had_before_are_refused():
    def f(a):
        view = a.view(-1)
        with pb.no_grad():
            a.set_(pb.ones(3, 3))
            view.mul_(2)
        return a + 1

    with pytest.raises(RuntimeError, match="cannot mutate tensors with frozen storage"):
        aot.aot_function(f, aot.nop)(pb.ones(3, 3, requires_grad=True))
    x, y = pb.ones(3, 3), pb.ones(3, 3)
    view = y.view(-1)
    assert pb.equal(pb.compile(f, backend="numpy")(x), f(y)) and view[0] == 2


def test_memory_taken_and_written_with_a_history_is_refused():
    def f(a, b):
        pb.no_grad()(a.set_)(b)
        a.mul_(2)
        return a + b

    tracked = [pb.ones(3, 3, requires_grad=True) * 1 for _ in range(2)]
    with pytest.raises(AssertionError, match="but the input has other mutations that we cannot"):
        aot.aot_function(f, aot.nop)(*tracked)


def emptied():
    a = pb.ones(8)
    a.untyped_storage().resize_(0)
    return a


@pb.no_grad()
def fill(a):
    a.untyped_storage().resize_(32)
    a.copy_(pb.ones(8))


def size_up(a):
    fill(a)
    return a.clone()


def size_down(a):
    out = a.cos()
    with pb.no_grad():
        a.copy_(pb.ones(8))
        a.untyped_storage().resize_(0)
    return out


def size_up_and_down(a):
    fill(a)
    with pb.no_grad():
        b = a * 2
        a.untyped_storage().resize_(0)
    return b


def size_before_set(a):
    with pb.no_grad():
        a.untyped_storage().resize_(0)
        a.set_(pb.ones(2))
    return a * 2


def size_by_operator(a):
    pb.ops.inductor.resize_storage_bytes_(a, 32)
    with pb.no_grad():
        a.copy_(pb.ones(8))
    return a + 1


def test_sizes_of_storages_stand_in_the_graph():
    def down(a):
        out = a.sin()
        pb.ops.inductor.resize_storage_bytes_(a, 0)
        return out

    a = emptied().requires_grad_()
    _, found = graphs(size_by_operator, a, keep=True)
    assert found["forward"].code.strip() == """\
def forward(self, primals_1):
    resize_storage_bytes_ = torch.ops.inductor.resize_storage_bytes_.default(primals_1, 32);  \
resize_storage_bytes_ = None
    ones = torch.ops.aten.ones.default([8], device = device(type='cpu'), pin_memory = False)
    copy = torch.ops.aten.copy.default(primals_1, ones);  ones = None
    add = torch.ops.aten.add.Tensor(copy, 1)
    copy_ = torch.ops.aten.copy_.default(primals_1, copy);  primals_1 = copy = copy_ = None
    return (add,)"""
    assert a.tolist() == [1] * 8
    a = pb.zeros(8, requires_grad=True)
    out, found = graphs(down, a, keep=True)
    assert found["forward"].code.strip() == """\
def forward(self, primals_1):
    sin = torch.ops.aten.sin.default(primals_1)
    resize_storage_bytes_ = torch.ops.inductor.resize_storage_bytes_.default(primals_1, 0);  \
resize_storage_bytes_ = None
    return (sin, primals_1)"""
    assert a.untyped_storage().nbytes() == 0 and out.tolist() == [0] * 8


def size_beyond(a):
    a.untyped_storage().resize_(64)
    return a + 1


@pytest.mark.parametrize("wrap", [
    lambda f: aot.aot_function(f, aot.nop), lambda f: pb.compile(f, backend="numpy"),
    lambda f: aot.aot_function(f, aot.nop, keep_inference_input_mutations=True)])
@pytest.mark.parametrize(("f", "start"), [
    (size_up, emptied), (size_by_operator, emptied), (size_down, lambda: pb.zeros(8)),
    (size_up_and_down, emptied),
    (size_before_set, lambda: pb.zeros(8)), (size_beyond, lambda: pb.zeros(8))])
def test_sizes_of_storages(f, start, wrap):
    compiled = wrap(f)
    for _ in range(2):
        a, b = start(), start()
        expected, found = f(a), compiled(b)
        assert found.tolist() == expected.tolist()
        assert b.untyped_storage().nbytes() == a.untyped_storage().nbytes()
        assert (b.tolist(), b._version, b.shape) == (a.tolist(), a._version, a.shape)


def test_storages_that_are_half_gone_are_refused():
    def f(a):
        a.untyped_storage().resize_(4)
        return a

    def g(a):
        return a * a.untyped_storage().nbytes()

    a = values(3)
    with pytest.raises(errors.TransformError, match=r"storage of a tensor 4 bytes .*py:"):
        aot.aot_function(f, aot.nop)(a)
    with pytest.raises(errors.TransformError, match="memory of a tensor"):
        aot.aot_function(g, aot.nop)(a)
    assert a.untyped_storage().nbytes() == 24 and a._version == 0


# Outputs that alias inputs


@case(related(lambda b: b.view(-1), lambda b: b.view(2, 6)))
def each_output_a_view_of_its_own_input(a, b):
    return b.t(), a.unsqueeze(0)


@case(inner((2, 3)))
def views_of_views(a):
    v = a.t()
    return v[0], v, v[0].view(1, -1)


@case(inner((2, 3)))
def written_through_a_view_that_is_returned(a):
    v = a.view(-1)
    v.mul_(2)
    return v, a


@case(inner((2, 3)))
def input_and_sum_twice(a):
    s = a.sum()
    return {"a": a, "b": a, "s": s, "t": s}


@case(leaf((2, 3)))
def view_of_a_view_without_tape(a):
    with pb.no_grad():
        v = a.view(-1)
        w = v[:2]
    return w, a * 2


@case(inner((2, 3)))
def recorded_inside_of_no_grad(a):
    with pb.no_grad():
        b = a * 2
        with pb.enable_grad():
            c = a.view(-1) * 3
    return b, c


@case(inner((4, 2)))
def split_with_sizes(a):
    return a.split([1, 3])


@pytest.mark.parametrize("write", [lambda o, x: o[0].mul_(2), lambda o, x: x.mul_(2)])
def test_pieces_of_an_input_refuse_writes(write):
    x = values(2, 3).requires_grad_() * 1
    out = aot.aot_function(lambda a: a.unbind(0), aot.nop)(x)
    with pytest.raises(RuntimeError, match="Such functions do not allow the output views"):
        write(out, x)
        out[0].grad_fn  # after a write to the base


def test_history_of_views_is_that_of_the_view():
    x = values(2, 3).requires_grad_()
    out = aot.aot_function(lambda a: (a.view(-1), a.t()), aot.nop)(x)
    assert [type(o.grad_fn).__name__ for o in out] == ["ViewBackward0", "TBackward0"]
    assert all(o._base is x for o in out)


# Outputs that alias intermediates


@case(inner((2, 3)))
def two_intermediates(a):
    b, c = a * 2, a * 3
    return b.view(-1), c.view(-1), b[0]


@case(plain((2, 3)))
def views_of_an_intermediate_nobody_tracks(a):
    b = a * 2
    return b.view(-1), b.t(), b


@case(inner((2, 3)))
def detached_piece_and_view(a):
    b = a * 2
    return b.view(-1), b[0].detach(), b[1].detach()


@case(inner((2, 3)))
def detached_in_place_after_a_turn(a):
    b = a * 2
    b.t_()
    b.detach_()
    return b, a * 3


@case(inner((2, 3)))
def written_intermediate_and_views(a):
    b = a * 2
    v = b.view(-1)
    v.mul_(2)
    return b, v, b.t()


@case(inner((4, 2)))
def pieces_written_before_they_are_taken(a):
    b = a * 2
    b.add_(1)
    return (*b.chunk(2), b)


@case(inner((2, 3)))
def expanded(a):
    b = a.sum(0)
    return b.expand(2, 3), b


def test_bases_of_views_are_the_last_results():
    def f(a):
        b, c = a * 2, a * 3
        return b.view(-1), c.view(-1), b[0], c[0], a + 1

    _, found = graphs(f, values(2, 3).requires_grad_())
    names = [n.name for n in found["forward"].graph.output_node().args[0][:7]]
    assert names == ["view", "view_1", "select", "select_1", "add", "mul", "mul_1"]


def test_mutated_inputs_come_before_results():
    def f(a, b, c):
        c.mul_(2)
        a.add_(1)
        return b + 1, a * c

    _, found = graphs(f, *[values(3) for _ in range(3)])
    results = found["inference"].graph.output_node().args[0]
    assert [n.name for n in results] == ["add", "mul", "add_1", "mul_1"]


# Inputs that share memory


@case(related(lambda b: b, lambda b: b.view(-1), lambda b: b.t(), shape=(2, 2)))
def shared_by_three_all_written(a, b, c):
    a.mul_(2)
    b.add_(1)
    c.sub_(3)
    return a + c, b


@case(related(lambda b: b.view(-1), lambda b: values(4, 3), lambda b: b))
def shared_around_another(a, b, c):
    b.mul_(2)
    c.add_(1)
    return a + 1, b


@case(related(lambda b: b, lambda b: b.view(-1), tracked=False))
def shared_untracked(a, b):
    b.mul_(2)
    return a + 1, a, b.view(3, 4)


@case(related(lambda b: b.view(-1), lambda b: b, tracked=False))
def shared_and_turned_alone(a, b):
    b.t_()
    return a + 1, b + 1


@case(related(lambda b: b, lambda b: b.view(-1), tracked=False))
def one_written_the_other_turned(a, b):
    a.mul_(2)
    b.unsqueeze_(0)
    return a + 1, b + 1


LAYOUTS = {
    "halves": (lambda b: b[:2], lambda b: b[2:], False),
    "columns": (lambda b: b[:, :2], lambda b: b[:, 2:], False),
    "every second row": (lambda b: b[::2], lambda b: b[1::2], False),
    "every second column": (lambda b: b[:, ::2], lambda b: b[:, 1::2], False),
    "blocks": (lambda b: b[:2, :2], lambda b: b[2:, 2:], False),
    "row and column": (lambda b: b[0], lambda b: b[:, 0], True),
    "overlapping rows": (lambda b: b[:3], lambda b: b[2:], True),
    "overlapping columns": (lambda b: b[:, :3], lambda b: b[:, 2:], True),
    "whole and part": (lambda b: b, lambda b: b[1, 1], True),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_overlap_of_layouts(name):
    """Parts of one memory that have no element in common are inputs of their own."""
    one, other, overlap = LAYOUTS[name]

    def f(a, b):
        a.mul_(2)
        return b + 1

    base = values(4, 4)
    _, found = graphs(f, one(base), other(base))
    assert counts(found["inference"])[0] == (1 if overlap else 2)
    check(f, related(one, other, shape=(4, 4)), ways=("nop",))


@case(related(lambda b: b, lambda b: b, lambda b: b))
def three_times_the_same_turned_and_written(a, b, c):
    a.t_()
    b.mul_(2)
    c.t_()
    return a + b, c


@case(related(lambda b: b, lambda b: values(4, 3), lambda b: b))
def same_first_and_last(a, b, c):
    c.add_(b)
    return a * 2


# requires_grad


@case(plain((2, 3), (2, 3)))
def nothing_requires_grad(a, b):
    return a + b, a


@case(related(lambda b: b, lambda b: values(4, 3)))
def one_of_two_requires_grad(a, b):
    return a * b, b * 2, (a > 1)


@case(inner((2, 3)))
def whole_numbers(a):
    return a.argmax(0), a.long(), a * 2


@case(lambda: ([], [values(2, 3), 3, None, "mean"]))
def numbers_none_and_text(a, n, nothing, how):
    return (a * n).mean() if how == "mean" else nothing


@case(inner((2, 3)))
def nested_containers(a):
    return [a + 1, (a * 2, {"x": [a - 1], "y": None})], 7


@case(inner((2, 3)))
def nothing_returned(a):
    a.mul_(2)


# Functions and operators of the user's


# returns its input as it is, with a derivative of its own
Passed = custom_function("Passed", lambda x: x, lambda grad: grad * 0.5)


@case(inner((2, 3)), orders=(1,))
def input_passed_through_a_function(a):
    return Passed.apply(a)


@case(inner((2, 3)), orders=(1,))
def input_passed_and_used(a):
    return Passed.apply(a) * 2, a * 3


Dirty = dirtying("Dirty", 3)


@case(inner((2, 3)), orders=(1,))
def written_by_a_function(a):
    b = a * 2
    return Dirty.apply(b) + 1, b


class Boxed(pb.autograd.Function):
    """Takes its gradients in one list."""

    boxed_grads_call = True

    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, grads):
        one, other = grads
        grads.clear()
        return 2 * one + 3 * other


@case(inner((2, 3)), orders=(1,))
def gradients_in_a_list(a):
    x, y = Boxed.apply(a)
    return x + y * y


def test_registered_operator():
    @pb.library.custom_op("aotlib::cube", mutates_args=())
    def cube(x: pb.Tensor) -> pb.Tensor:
        return pb.tensor(x.numpy() ** 3)

    cube.register_fake(lambda x: pb.empty_like(x))
    cube.register_autograd(
        lambda ctx, g: 3 * ctx.saved_tensors[0] ** 2 * g,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
    x = values(3).requires_grad_()
    out, found = graphs(lambda x: cube(x) * 2, x)
    out.sum().backward()
    assert pb.allclose(x.grad, 6 * x**2)
    assert "torch.ops.aotlib.cube.default(primals_1)" in found["forward"].code


def test_operator_of_a_library():
    lib = pb.library.Library("aotlib2", "DEF")
    lib.define("twice(Tensor x) -> Tensor")
    lib.impl("twice", lambda x: pb.tensor(x.numpy() * 2), "CPU")
    lib.impl("twice", lambda x: pb.empty_like(x), "Meta")
    out, found = graphs(lambda x: pb.ops.aotlib2.twice(x) + 1, values(3))
    assert "aotlib2.twice" in found["inference"].code
    assert pb.allclose(out, values(3) * 2 + 1)


# Tangents and autocast


@pytest.mark.parametrize("seed", [
    lambda shape: pb.ones(1).double().expand(shape), lambda shape: values(*shape[::-1]).t(),
    lambda shape: values(*shape, 2)[..., 0], lambda shape: values(*shape)],
    ids=["expanded", "transposed", "with gaps", "dense"])
def test_tangents_of_any_layout(seed):
    def f(a):
        b = a.sin()
        return b.t(), b * 2

    x = values(3, 4).requires_grad_()
    found = []
    for run in (f, aot.aot_function(f, aot.nop)):
        out = run(x)
        seeds = [seed(tuple(o.shape)) for o in out]
        found.append(pb.autograd.grad(out, x, seeds)[0])
    assert pb.allclose(*found)


def test_tangent_has_the_layout_of_its_output():
    x = pb.ones(2, 3, 4, 5).to(memory_format=pb.channels_last).requires_grad_()
    out, found = graphs(lambda a: a * 2, x)
    out.backward(pb.ones(2, 3, 4, 5))
    (tangent,) = [n for n in found["backward"].graph.nodes if n.name == "tangents_1"]
    assert tangent.meta["val"].is_contiguous(memory_format=pb.channels_last)
    assert "contiguous" not in found["backward"].code and "clone" not in found["backward"].code


def test_tangents_are_freed_once_the_backward_has_them():
    import weakref

    alive = []

    def compiler(module, inputs):
        def run(args):
            tangent = weakref.ref(args[-1]._payload)
            args.clear()
            alive.append(tangent() is not None)
            return [pb.ones(64)]

        run._boxed_call = True
        return run

    x = pb.ones(64, requires_grad=True)
    out = aot.aot_function(lambda x: x * 2, aot.nop, compiler)(x)
    (out * 3).sum().backward()
    assert alive == [False]


def test_autocast_is_captured_once():
    def f(x, w):
        return (x @ w).relu()

    x, w = pb.ones(3, 3, requires_grad=True), pb.ones(3, 3, requires_grad=True)
    with pb.autocast("cpu", dtype=pb.bfloat16):
        out, found = graphs(f, x, w)
        expected = f(x, w)
    assert out.dtype is pb.bfloat16 and pb.equal(out, expected)
    assert found["forward"].code.count("_to_copy.default") == 2
    out.sum().backward()
    assert x.grad.dtype is pb.float32
    assert "autocast" not in found["backward"].code
    # outside of the block it is another program
    again = aot.aot_function(f, aot.nop)
    assert again(x, w).dtype is pb.float32


class Multiplies(pb.autograd.Function):
    """A backward with an operator that autocast changes."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x + 1

    @staticmethod
    def backward(ctx, grad):
        return grad @ ctx.saved_tensors[0]


@pytest.mark.parametrize("setting, casts", [
    ("same_as_forward", ["bfloat16"]), ("off", []),
    ([{"device_type": "cpu", "dtype": pb.float16}], ["float16"])])
def test_autocast_of_the_backward(setting, casts):
    x = pb.ones(2, 2, requires_grad=True)
    with aot.config.patch(backward_pass_autocast=setting), pb.autocast("cpu", dtype=pb.bfloat16):
        out, found = graphs(Multiplies.apply, x)
    out.sum().backward()
    code = found["backward"].code
    assert [name for name in ("bfloat16", "float16") if f"torch.{name}" in code] == casts
    assert x.grad.dtype is pb.float32


@pytest.mark.parametrize("way", [
    lambda f: aot.aot_function(f, aot.nop), lambda f: pb.compile(f, backend="numpy")])
def test_saved_tensors_are_packed_when_the_function_runs(way):
    seen = []

    def pack(t):
        seen.append(("pack", tuple(t.shape), t.numpy().sum()))
        return t.numpy().copy()

    def unpack(array):
        seen.append(("unpack", array.shape, array.sum()))
        return pb.tensor(array)

    compiled = way(lambda x: x.sin().sum())
    for _ in range(2):
        seen.clear()
        x = pb.ones(3, requires_grad=True)
        with pb.autograd.graph.saved_tensors_hooks(pack, unpack):
            out = compiled(x)
        out.backward()
        assert seen == [("pack", (3,), 3.0), ("unpack", (3,), 3.0)]
        assert pb.allclose(x.grad, pb.cos(x))


@pytest.mark.parametrize("wrap", [
    lambda f: aot.aot_function(f, aot.nop), lambda f: aot.aot_function(f, aot.nop, dynamic=True),
    lambda f: pb.compile(f, backend="numpy"), lambda f: pb.compile(f, backend="aot_eager"),
    lambda f: pb.compile(f, backend="numpy", dynamic=True)])
@pytest.mark.parametrize("view", [lambda a: a, lambda a: a.view(-1), lambda a: a[1:]])
def test_a_result_and_its_detached_alias_share_memory(view, wrap):
    def detached_first(x):
        a = view(x * 2)
        return a.detach(), a

    def detached_last(x):
        a = view(x * 2)
        return a, a.detach()

    for f in (detached_first, detached_last):
        x = values(2, 3).requires_grad_()
        out = wrap(f)(x)
        apart, a = out if f is detached_first else out[::-1]
        assert not apart.requires_grad and apart.grad_fn is None and not apart._is_view()
        assert a.requires_grad and a.data_ptr() == apart.data_ptr()
        apart.zero_()
        assert a.count_nonzero() == 0
        a.sum().backward()
        assert pb.equal(x.grad, pb.autograd.grad(view(x * 2).sum(), x)[0])


def test_sizes_of_an_input_that_is_written_are_saved_not_the_input():
    def f(a, b):
        out = b.expand(a.shape[0], 4) * 1
        a.mul_(2)
        return out

    seen = {}
    compiled = aot.aot_function(
        f, lambda g, _: seen.setdefault("forward", g), lambda g, _: seen.setdefault("backward", g),
        keep_inference_input_mutations=True, dynamic=True)
    for n in (3, 5):
        a, b = pb.ones(n, 4), pb.ones(1, 4, requires_grad=True)
        compiled(a, b).sum().backward()
        assert b.grad.tolist() == [[n] * 4] and a[0, 0] == 2
    saved = seen["forward"].graph.output_node().args[0][1:]
    assert all(not isinstance(s.meta["val"], pb.Tensor) for s in saved)


def test_pieces_alone_are_results_of_the_compiled_function():
    x = values(2, 3).requires_grad_() * 1
    run = aot.aot_function(lambda a: a.unbind(0), aot.nop)
    out = run(x)
    assert [type(o.grad_fn).__name__ for o in out] == ["CompiledFunctionBackward"] * 2
    assert [o.grad_fn.name() for o in out] == ["CompiledFunctionBackward"] * 2
    assert all(o._base is x._base or o._base is x for o in out)
    # with another view of the same they are made again
    out = aot.aot_function(lambda a: (*a.unbind(0), a.view(-1)), aot.nop)(x)
    assert [o.grad_fn.name() for o in out] == ["UnbindBackward0"] * 2 + ["ViewBackward0"]
    out[-1].mul_(2)
    assert x[0].tolist() == (values(2, 3)[0] * 2).tolist()


def test_a_write_that_is_refused_changes_no_storage():
    def f(a, b):
        with pb.no_grad():
            a.untyped_storage().resize_(32)
            a.copy_(pb.ones(8))
        b.add_(1)
        return a.clone()

    compiled = pb.compile(f, backend="numpy")
    compiled(emptied(), (pb.zeros(3, requires_grad=True) * 1).view(3))
    a, leaf = emptied(), pb.zeros(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a view of a leaf"):
        compiled(a, leaf.view(3))
    assert a.untyped_storage().nbytes() == 0 and not leaf.any()
