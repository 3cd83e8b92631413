INPUTS = dict(
    a=Input('float32', (33,), seed=702839),
    b=Input('int64', (), values=5),
)
TRAITS = ['write']


def program(a, b):
    x1 = torch.narrow(a, 0, b, 0)
    a[1:].mul_(b.sum())
    return x1
