INPUTS = dict(
    a=Input('float64', (2, 3), seed=996866, grad='leaf'),
    c=Input('float64', (), values=0.10000000149011612),
    d=Input('int32', (), values=3),
    e=Input('float32', (3,), values=[0.1, 0.2, 0.5]),
    f=Input('int32', (3,), values=[0, 1, 2]),
)


def program(a, c, d, e, f):
    x1 = torch.fake_quantize_per_tensor_affine(a, c, d, -10, 20)
    x2 = torch.fake_quantize_per_channel_affine(a, e, f, 1, -5, 5)
    return x1, x2
