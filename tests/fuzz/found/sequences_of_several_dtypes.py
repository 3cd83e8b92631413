INPUTS = dict(
    a=Input('float32', (2,), values=[1.0, 2.0], grad='leaf'),
    b=Input('bool', (1,), values=[False]),
    c=Input('float64', (3,), values=[0.5, 1.5, 2.5], grad='leaf'),
)


def program(a, b, c):
    x1 = torch.nn.utils.rnn.pad_sequence([a, b, c], True, 1.5)
    x2 = torch.nn.utils.rnn.pad_sequence([b, a], True, 1.5, 'left')
    return x1, x2
