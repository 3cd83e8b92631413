INPUTS = dict(
    a=Input('float32', (2,), seed=298729, grad='leaf'),
)
TRAITS = ['function']


def program(a):
    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx, p):
            return p.view_as(p)
        @staticmethod
        def backward(ctx, g):
            return -0.5 * g
    x2 = Own.apply(a)
    return x2
