INPUTS = dict(
    a=Input('float64', (2, 3), seed=1),
    b=Input('float32', (2, 4), seed=2),
    c=Input('float64', (4, 3), seed=3),
    d=Input('float32', (4, 4), seed=4),
)


def program(a, b, c, d):
    return torch.rnn_tanh_cell(a, b, c, d)
