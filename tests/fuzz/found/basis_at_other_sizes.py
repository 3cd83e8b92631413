INPUTS = dict(
    a=Input('float32', (3, 4), seed=496477, grad='leaf'),
)
TRAITS = ['ambiguous']


def program(a):
    x3, _ = torch.qr(a, False)
    return x3
