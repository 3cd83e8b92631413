"""Programs with wrapper subclasses whose AOT graphs print as PyTorch's: names are behaviours.

`programs(torch, TwoTensor)` gives name -> (function, function that makes the arguments).
"""


def programs(torch, TwoTensor) -> dict:
    """Name -> (function, how to make its arguments)."""
    found = {}

    def plain(*shape):
        return torch.ones(shape or (2, 2))

    def leaf(*shape):
        return plain(*shape).requires_grad_()

    def two(*shape):
        return TwoTensor(plain(*shape), plain(*shape) * 2)

    def two_leaf(*shape):
        return two(*shape).requires_grad_()

    def two_inner(*shape):
        return two_leaf(*shape) * 1

    def nested():
        return TwoTensor(two(), two()).requires_grad_()

    def case(*makers):
        def keep(function):
            found[function.__name__] = (function, lambda: [m() for m in makers])
            return function

        return keep

    @case(two_leaf, leaf)
    def simple(a, b):
        return torch.mul(a, 6) + torch.div(b, 2)

    @case(two, plain)
    def inference(a, b):
        return torch.mul(a, 6) + torch.div(b, 2)

    @case(two_leaf, two_leaf)
    def two_wrappers(a, b):
        return (a @ b).sin()

    @case(two_leaf, leaf)
    def output_alias(a, b):
        return a.view(a.shape), a * b

    @case(two_inner, lambda: leaf() * 1)
    def both_written(a, b):
        a.mul_(2)
        b.mul_(3)
        return a + b

    @case(two, plain)
    def both_written_without_history(a, b):
        a.mul_(2)
        b.mul_(3)
        return a + b

    @case(two_inner, lambda: leaf() * 1)
    def written_and_alias(a, b):
        a.mul_(2)
        return a.view(-1), a + b

    @case(nested)
    def nested_wrapper(a):
        return a.sin().cos()

    @case(nested, two_leaf, leaf)
    def nested_and_others(x, y, z):
        return x.sin(), (y * z).cos()

    @case(leaf, leaf)
    def made_inside(a, b):
        return TwoTensor(a.detach(), b.detach()) * a

    @case(two_leaf)
    def several_outputs(a):
        return a * 2, a.sum(), 5

    @case(two_leaf, plain)
    def wrapper_without_gradient_beside(a, b):
        return a * b

    @case(two, leaf)
    def only_the_plain_one_tracked(a, b):
        return a * b

    @case(two_leaf)
    def factory_inside(a):
        return a + torch.ones_like(a) * 2

    @case(two_leaf)
    def same_wrapper_twice(a):
        return a * a + a

    @case(two_leaf, two_leaf)
    def products(a, w):
        return torch.nn.functional.linear(a, w).relu().sum()

    return found
