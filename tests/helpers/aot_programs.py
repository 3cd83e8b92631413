"""Programs whose AOT graphs print as PyTorch's do: `record_literals.py` wrote what that is.

`programs(torch)` gives name -> (function, function that makes the arguments). Names say what a
program does to its arguments and what it returns; they are those of the behaviours in the tests.
"""


def programs(torch) -> dict:
    """Name -> (function, how to make its arguments)."""
    F, found = torch.nn.functional, {}

    def leaf(*shape):
        return torch.ones(shape or (3, 3), requires_grad=True)

    def inner(*shape):
        return leaf(*shape) * 1

    def plain(*shape):
        return torch.ones(shape or (3, 3))

    def base_views(*views, tracked=True):
        def start():
            base = inner(4) if tracked else plain(4)
            return [v(base) for v in views]

        return start

    def case(*makers):
        start = makers[0] if len(makers) == 1 and makers[0].__name__ == "start" else (
            lambda: [m() for m in makers])

        def keep(function):
            found[function.__name__] = (function, start)
            return function

        return keep

    # plain calls: containers, numbers, gradients

    @case(leaf, leaf)
    def single_output(a, b):
        return a + b

    @case(leaf, leaf)
    def several_outputs(a, b):
        return a + b, a - b

    @case(leaf, leaf)
    def list_of_outputs(a, b):
        return [a + b, a - b]

    @case(leaf, leaf)
    def dictionary_of_outputs(a, b):
        s = a * b
        return {"x": s, "y": s, "z": a}

    @case(plain, plain)
    def inference(a, b):
        return (a @ b).relu(), a.sum()

    @case(leaf, plain)
    def one_input_requires_grad(a, b):
        return a * b

    @case(leaf, plain)
    def one_output_requires_grad(a, b):
        return a * 2, b * 2

    @case(leaf)
    def detached_output(a):
        return a.detach() * 2, a * 3

    @case(leaf)
    def integer_output(a):
        return a > 0, a.argmax(1), a * 2

    @case(leaf, lambda: 3, lambda: None)
    def number_and_none(a, n, nothing):
        return a * n, nothing, 5

    @case(leaf)
    def no_output_requires_grad(a):
        with torch.no_grad():
            return a * 2

    @case(leaf)
    def recorded_inside(a):
        with torch.no_grad():
            b = a * 2
            with torch.enable_grad():
                c = a * 3
        return b, c

    @case(leaf, leaf, leaf)
    def linear(x, w, b):
        return F.linear(x, w, b).relu().sum()

    @case(leaf, leaf)
    def matrix_products(a, b):
        return (a @ b).tanh() @ b

    @case(leaf)
    def softmax(a):
        return a.softmax(-1).log_softmax(0)

    @case(leaf)
    def unused_input(a, b=None):
        return a.cos().cos()

    @case(leaf, leaf)
    def argument_not_used(a, b):
        return a * 2

    @case(leaf)
    def constant(a):
        return a * torch.ones(3) + torch.zeros(3, 3)

    @case(leaf)
    def several_results_of_one(a):
        return a.max(1)

    @case(leaf)
    def one_result_of_several(a):
        return a.max(1)[0] * 2

    @case(leaf)
    def gradient_inside(a):
        (g,) = torch.autograd.grad(a.sin().sum(), a)
        return g * 2

    @case(leaf)
    def shared_value(a):
        b = a.exp()
        return b * b, b + 1

    @case(leaf)
    def dead_code(a):
        a.sin()
        return a.cos()

    @case(leaf)
    def dtypes(a):
        return a.double().sum().float(), a.half()

    @case(leaf)
    def broadcast(a):
        return a * a[0] + a.sum(0, keepdim=True)

    # inputs that are written

    @case(inner)
    def written(a):
        a.mul_(2)
        return a + 1

    @case(plain)
    def written_plain(a):
        a.mul_(2)
        return a + 1

    @case(plain)
    def written_and_returned_plain(a):
        a.mul_(2)
        return a

    @case(inner)
    def written_and_returned(a):
        a.mul_(2)
        return a

    @case(inner, inner, inner)
    def several_written(a, b, c):
        a.mul_(2)
        c.add_(1)
        return a + b + c

    @case(plain, plain)
    def written_by_out(a, b):
        return torch.sin(a, out=b)

    @case(leaf, plain)
    def plain_written_beside_tracked(a, b):
        b.mul_(2)
        return a * b

    @case(inner)
    def written_without_tape(a):
        with torch.no_grad():
            a.mul_(2)
        return a + 3

    @case(leaf)
    def leaf_written_without_tape_alone(a):
        with torch.no_grad():
            a.mul_(2)

    @case(leaf)
    def written_through_detached(a):
        a.detach().mul_(2)
        return a + 3

    @case(inner)
    def written_with_and_without_tape(a):
        with torch.no_grad():
            a.mul_(2)
        a.mul_(3)
        return a + 5

    @case(plain, leaf)
    def requires_grad_afterwards(a, b):
        a.add_(b)
        return a.mul(b)

    @case(plain)
    def written_to_its_own_value(a):
        a.copy_(a)
        return a * 2

    @case(inner)
    def item_written(a):
        a[0] = a[1] * 2
        return a.sum()

    @case(inner)
    def view_of_input_written(a):
        a.view(-1).mul_(2)
        return a + 1

    @case(inner)
    def diagonal_written(a):
        a.diagonal().add_(1)
        return a * 2

    @case(plain)
    def column_written_plain(a):
        a[:, 1].mul_(3)
        return a.sum()

    @case(inner)
    def detached_view_before_the_write(a):
        d = a.detach()
        a.mul_(2)
        return d + 1, a * 2

    @case(plain)
    def written_twice_plain(a):
        a.mul_(2)
        a.add_(1)
        return a.sum()

    @case(plain)
    def filled(a):
        a.zero_()
        return a + 1

    # inputs whose shape is changed

    @case(inner)
    def turned(a):
        a.transpose_(1, 0)
        return a + 1

    @case(inner, inner)
    def turned_and_other_written(a, b):
        a.transpose_(1, 0)
        b.mul_(2)
        return a + b

    @case(inner)
    def turned_and_written(a):
        a.t_()
        a.mul_(2)
        return a * 3

    @case(plain)
    def unsqueezed_plain(a):
        a.unsqueeze_(0)
        return a + 1

    @case(inner)
    def turned_and_returned(a):
        a.transpose_(1, 0)
        return a

    # outputs that are views of inputs

    @case(inner)
    def view_of_input(a):
        return a.view(-1)

    @case(plain)
    def view_of_plain_input(a):
        return a.view(-1)

    @case(inner, inner, inner, inner)
    def views_of_written_inputs(a, b, c, d):
        b.transpose_(1, 0)
        c.mul_(3)
        d.mul_(4)
        d.transpose_(1, 0)
        return d[0], b[0], c.view(-1), a.view(-1)

    @case(inner)
    def input_returned(a):
        return a, a * 2

    @case(leaf)
    def leaf_returned(a):
        return a.view(-1), a

    @case(inner)
    def written_then_view_returned(a):
        a.add_(1)
        return a.view(-1)

    @case(plain)
    def pieces_of_input(a):
        return a.unbind(0)

    @case(inner)
    def pieces_of_tracked_input(a):
        return a.unbind(0)

    @case(inner)
    def pieces_and_view_of_input(a):
        return *a.unbind(0), a.view(-1)

    @case(inner)
    def detached_input_returned(a):
        return a.detach(), a * 1

    @case(inner)
    def chain_of_views_of_input(a):
        return a.t().unsqueeze(0)[0]

    @case(inner)
    def view_without_tape_of_input(a):
        with torch.no_grad():
            v = a.view(-1)
        return v, a * 2

    # outputs that are views of intermediates

    @case(leaf)
    def one_view_of_intermediate(a):
        return a.mul(3).view(-1)

    @case(leaf)
    def two_views_of_intermediate(a):
        b = a.mul(3)
        return b.view(-1), b.view(-1)

    @case(leaf)
    def intermediate_and_views(a):
        b = a.mul(3)
        return b, b.view(-1), b.t()

    @case(leaf)
    def views_and_intermediate_twice(a):
        b = a.mul(3)
        return b.view(-1), b, b

    @case(leaf)
    def views_of_two_intermediates(a):
        b, c = a.mul(3), a.mul(4)
        return b.view(-1), c.view(-1), b[0], c + 1

    @case(plain)
    def views_of_plain_intermediate(a):
        b = a.mul(3)
        return b.view(-1), b.t()

    @case(leaf)
    def detached_slice_of_intermediate(a):
        b = a.mul(3)
        return b.view(-1), b[0].detach()

    @case(leaf)
    def view_without_tape_of_intermediate(a):
        b = a.mul(3)
        with torch.no_grad():
            v = b.view(-1)
        return b, v

    @case(leaf)
    def pieces_of_intermediate(a):
        return a.mul(3).unbind(0)

    @case(leaf)
    def pieces_and_intermediate(a):
        b = a.mul(3)
        return *b.unbind(0), b

    @case(leaf)
    def written_view_of_intermediate(a):
        b = a.mul(3)
        b[0].mul_(2)
        return b, b[0]

    @case(leaf)
    def intermediate_and_detached(a):
        b = a.mul(3)
        return b.detach(), b

    @case(leaf)
    def turned_intermediate_detached(a):
        b = a.mul(3)
        b.t_()
        b.detach_()
        return b, a * 2

    # inputs that share memory

    @case(base_views(lambda b: b.view(2, 2), lambda b: b))
    def view_and_base_first_written(a, b):
        a.add_(1)
        return a.view(-1) + b

    @case(base_views(lambda b: b.view(-1), lambda b: b.view(-1)))
    def last_written_and_viewed(a, b):
        b.mul_(2)
        return b.view(-1)

    @case(base_views(lambda b: b.view(-1), lambda b: b.view(-1)))
    def last_written_twice_and_viewed(a, b):
        b.mul_(2)
        b.add_(1)
        return b.view(2, 2), b.view(-1)

    @case(base_views(lambda b: b.view(2, 2), lambda b: b[0]))
    def two_views_first_written(a, b):
        a.add_(1)
        return a * b

    @case(base_views(lambda b: b.view(2, 2), lambda b: b.view(2, 2), tracked=False))
    def two_plain_views_first_written(a, b):
        a.add_(1)
        return a * b

    @case(base_views(lambda b: b.view(2, 2), lambda b: b))
    def views_returned_of_shared(a, b):
        a.add_(1)
        return a.view(-1), b.view(2, 2)

    @case(base_views(lambda b: b[:2], lambda b: b[2:]))
    def disjoint_parts_written(a, b):
        a.mul_(2)
        return a + b

    @case(base_views(lambda b: b[:3], lambda b: b[1:]))
    def overlapping_parts_written(a, b):
        a.mul_(2)
        return a + b

    @case(base_views(lambda b: b[::2], lambda b: b[1::2], tracked=False))
    def interleaved_parts_written(a, b):
        a.mul_(2)
        b.mul_(3)
        return a + b

    @case(base_views(lambda b: b.view(2, 2), lambda b: b, lambda b: torch.ones(2, 2)))
    def shared_beside_another(a, b, c):
        b.mul_(2)
        c.add_(1)
        return a + c

    @case(base_views(lambda b: b.view(2, 2), lambda b: b.view(2, 2)))
    def shared_unwritten(a, b):
        return a * b

    @case(base_views(lambda b: b, lambda b: b))
    def same_twice_unwritten(a, b):
        return a * b

    @case(base_views(lambda b: b, lambda b: b))
    def same_twice_written(a, b):
        a.mul_(2)
        return a + b

    @case(base_views(lambda b: b, lambda b: b, lambda b: b * 2))
    def same_twice_returned(a, b, c):
        b.mul_(2)
        return a, b, c + a

    # modules and operators with state

    @case(plain, leaf, leaf, plain, plain)
    def batch_norm(x, w, b, mean, var):
        return F.batch_norm(x, mean[0], var[0], w[0], b[0], True)

    @case(plain, plain, plain)
    def batch_norm_in_evaluation(x, mean, var):
        return F.batch_norm(x, mean[0], var[0])

    @case(lambda: leaf(2, 3, 4), lambda: leaf(4))
    def layer_norm(x, w):
        return F.layer_norm(x, (4,), w)

    @case(lambda: leaf(1, 2, 4, 4), lambda: leaf(3, 2, 3, 3), lambda: leaf(3))
    def convolution(x, w, b):
        return F.max_pool2d(F.conv2d(x, w, b), 2)

    @case(leaf, lambda: torch.tensor([0, 1, 2]))
    def cross_entropy(x, target):
        return F.cross_entropy(x, target)

    @case(lambda: torch.tensor([0, 2]), leaf)
    def embedding(i, w):
        return F.embedding(i, w)

    @case(leaf)
    def indexing(a):
        return a[torch.tensor([0, 2])] + a[:, 1:].sum()

    # functions with a backward of their own

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    @case(leaf)
    def function_of_ones_own(a):
        return Square.apply(a) + 1

    return found
