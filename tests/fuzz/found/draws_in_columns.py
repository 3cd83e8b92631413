INPUTS = dict(
    a=Input('float32', (2, 2), seed=903719, layout='t'),
)
TRAITS = ['random']


def program(a):
    x1 = a.exp() / a.exp().sum(1, keepdim=True)
    x2 = x1.clone().exponential_()
    return (x2, torch.rand_like(x1))
