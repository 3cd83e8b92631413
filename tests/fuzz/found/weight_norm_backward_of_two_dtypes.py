INPUTS = dict(
    c=Input('float32', (8, 16), seed=967844),
    d=Input('float64', (3, 1, 1), values=[[[1.1979]], [[0.2071]], [[-1.5814]]]),
    e=Input('float64', (3, 1, 1), values=[[[0.5709]], [[1.6916]], [[1.573]]]),
)


def program(c, d, e):
    x2 = c.reshape(-1)[:24].reshape(3, 4, 2)
    x3, x4 = torch.ops.aten._weight_norm_differentiable_backward.default(x2, x2, d, e, 0)
    return x3, x4
