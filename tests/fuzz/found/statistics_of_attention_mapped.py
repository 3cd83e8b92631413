INPUTS = dict(
    c=Input('float32', (2, 3, 4, 3), seed=904891, low=-1.979, high=1.974),
    d=Input('float32', (2, 3, 5, 3), seed=840495, low=-1.917, high=1.98, grad='leaf'),
)
TRAITS = ['cut']


def program(c, d):
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default(c, d, d)[1]
