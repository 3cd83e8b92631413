INPUTS = dict(
    b=Input('float64', (3, 4), seed=474960),
    c=Input('float32', (3, 4), values=[[-0.6415, 1.4989, 1.8777, 1.9896], [-1.2669, -0.6506, 0.3194, 1.6457], [1.899, 0.4939, 0.9109, -1.6205]]),
)
TRAITS = ['cut', 'random']


def program(b, c):
    x1, x2 = torch.rrelu_with_noise_functional(b, c, 0.1, 0.3)
    return x1, x2
