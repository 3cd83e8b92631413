"""Small programs over sizes, for captures with symbolic ones: name -> function of one matrix.

Each takes a float tensor `x` of shape (n, 6) for any n, 0 and 1 among them, unless `LEAST` says how
many rows it needs.  They use PyTorch's names alone, so that the same programs run there.
"""

F = None
torch = None


def using(library):
    """The programs of a library."""
    global torch, F
    torch, F = library, library.nn.functional
    return dict(PROGRAMS)


PROGRAMS = {}
LEAST = {}


def program(least=0):
    def added(function):
        PROGRAMS[function.__name__] = function
        if least:
            LEAST[function.__name__] = least
        return function

    return added


@program()
def reshape_minus_one(x):
    return x.reshape(-1) * 2


@program(1)
def view_rows_split(x):
    return x.view(x.shape[0], 2, -1).sum(1)


@program()
def reshape_pairs(x):
    return x.reshape(x.shape[0] * 2, 3).cumsum(0)


@program()
def flatten_unflatten(x):
    return x.flatten().unflatten(0, (x.shape[0], 3, 2)).mean(-1)


@program()
def split_columns(x):
    a, b = x.split([2, 4], 1)
    return torch.cat([b, a * 2], 1)


@program(2)
def split_rows(x):
    n = x.shape[0]
    a, b = x.split([n // 2, n - n // 2])
    return a.sum(0) - b.sum(0)


@program(1)
def chunk_rows(x):
    return sum(c.sum() for c in x.chunk(2))


@program()
def chunk_columns(x):
    a, b, c = x.chunk(3, 1)
    return a * b - c


@program()
def cat_with_itself(x):
    return torch.cat([x, x.flip(0), x[:1]])


@program()
def cat_of_ones(x):
    return torch.cat([x, torch.ones(x.shape[0], 2)], 1).sum(1)


@program()
def stack_of_views(x):
    return torch.stack([x, x * 2, x.neg()]).sum(0)


@program()
def pad_columns(x):
    return F.pad(x, (1, 2), value=3.0)


@program()
def pad_rows_to_multiple(x):
    return F.pad(x, (0, 0, 0, -x.shape[0] % 4))


@program(1)
def pad_reflected(x):
    return F.pad(x[None], (2, 1), mode="reflect")


@program()
def conv1d_over_columns(x):
    w = torch.arange(6.0).reshape(2, 1, 3) / 7
    return F.conv1d(x[:, None], w, padding=1)


@program(3)
def conv1d_over_rows(x):
    w = torch.arange(36.0).reshape(2, 6, 3) / 7
    return F.conv1d(x.t()[None], w)


@program(3)
def conv2d_stride(x):
    w = torch.arange(18.0).reshape(2, 1, 3, 3) / 7
    return F.conv2d(x[None, None], w, stride=2, padding=1)


@program(1)
def max_pool(x):
    return F.max_pool1d(x.t()[None], 2, ceil_mode=True)


@program(2)
def avg_pool(x):
    return F.avg_pool1d(x.t()[None], 2)


@program(1)
def adaptive_pool(x):
    return F.adaptive_avg_pool1d(x.t()[None], 3)


@program()
def arange_rows(x):
    return x * torch.arange(x.shape[0])[:, None]


@program()
def arange_of_product(x):
    return torch.arange(x.shape[0] * 6, dtype=x.dtype).reshape(x.shape) + x


@program(1)
def linspace_rows(x):
    return x * torch.linspace(0, 1, x.shape[0])[:, None]


@program()
def causal_mask(x):
    scores = x @ x.t()
    n = x.shape[0]
    mask = torch.ones(n, n, dtype=torch.bool).tril()
    return scores.masked_fill(~mask, -1e9).softmax(-1)


@program()
def mask_from_positions(x):
    keep = torch.arange(x.shape[0]) < x.shape[0] // 2
    return torch.where(keep[:, None], x, x * 0.5)


@program(1)
def attention(x):
    q = x.view(1, x.shape[0], 2, 3).transpose(1, 2)
    return F.scaled_dot_product_attention(q, q * 0.5, q + 1, is_causal=True)


@program(1)
def attention_by_hand(x):
    q, k, v = (x @ x.t() @ x * s for s in (0.1, 0.2, 0.3))
    return (q @ k.t() / x.shape[0] ** 0.5).softmax(-1) @ v


@program()
def loop_over_rows(x):
    total = torch.zeros(6)
    for i in range(x.shape[0]):
        total = total + x[i] * i
    return total


@program()
def iterate_rows(x):
    return [row * 2 for row in x]


@program()
def unbind_columns(x):
    return sum(c * i for i, c in enumerate(x.unbind(1)))


@program(1)
def minimum_of_sizes(x):
    return x[: min(x.shape[0], 3)].sum(0)


@program()
def maximum_of_sizes(x):
    return x.new_zeros(max(x.shape[0], 4), 6).sum(0) + x.sum(0)


@program()
def floor_division(x):
    return x[: x.shape[0] // 2] * 3


@program()
def remainder(x):
    return x * (x.shape[0] % 3 + 1)


@program()
def branch_even(x):
    return x.view(2, -1, 6).sum(0) if x.shape[0] % 2 == 0 else x * 3


@program()
def branch_on_size(x):
    if x.shape[0] > 4:
        return x.tanh()
    if x.shape[0] == 0:
        return x + 1
    return x.sigmoid()


@program()
def branch_square(x):
    return x @ x if x.shape[0] == x.shape[1] else x @ x.t()


@program()
def size_as_factor(x):
    return x * x.shape[0] + x.numel() / (x.shape[0] + 1)


@program()
def mean_by_hand(x):
    return x.sum() / max(x.numel(), 1)


@program()
def size_in_power(x):
    return x / (x.shape[0] + 1) ** 0.5


@program()
def expand_to_sizes(x):
    return x.sum(0).expand(x.shape[0], 6) + x.sum(1, keepdim=True).expand_as(x)


@program()
def outer_product(x):
    return x[:, None, :] - x[None, :, :]


@program()
def roll_by_size(x):
    return x.roll(x.shape[0] // 2, 0)


@program()
def slice_from_end(x):
    return x[-2:] * 2


@program()
def slice_with_step(x):
    return x[::2].sum(0) + x[1::3].sum(0)


@program()
def write_into_slice(x):
    y = x * 1
    y[: x.shape[0] // 2] = 0
    y[:, 1:3] += 1
    return y


@program(1)
def select_last(x):
    return x[x.shape[0] - 1] * x[-1]


@program()
def index_reversed(x):
    return x[torch.arange(x.shape[0] - 1, -1, -1)]


@program(1)
def gather_rows(x):
    i = torch.arange(x.shape[0])[:, None].expand(-1, 2) % 6
    return x.gather(1, i)


@program()
def one_hot_rows(x):
    return F.one_hot(torch.arange(x.shape[0]) % 3, 3).to(x.dtype).t() @ x


@program()
def triangle(x):
    return (x @ x.t()).tril(-1).sum(1)


@program()
def repeat_and_tile(x):
    return x.repeat(2, 1).sum(0) + x.tile(1, 2).sum()


@program()
def repeat_interleave(x):
    return x.repeat_interleave(2, 0)


@program(1)
def softmax_over_rows(x):
    return x.softmax(0) * x.log_softmax(0)


@program(2)
def variance(x):
    return x.var(0) + x.std(0, unbiased=False)


@program(1)
def layer_norm(x):
    return F.layer_norm(x, (6,)) + F.layer_norm(x, x.shape)


@program(2)
def batch_norm(x):
    return F.batch_norm(x, torch.zeros(6), torch.ones(6), training=True)


@program(1)
def group_norm(x):
    return F.group_norm(x[None].transpose(1, 2), 3)


@program(1)
def largest(x):
    return x.max(0).values + x.amax(0) + x.argmax(0)


@program(2)
def top_two(x):
    return x.topk(2, 0).values


@program()
def sort_columns(x):
    return x.sort(0, descending=True).values


@program(1)
def cross_entropy(x):
    return F.cross_entropy(x, torch.arange(x.shape[0]) % 6)


@program()
def mse_loss(x):
    return F.mse_loss(x, torch.zeros_like(x), reduction="sum")


@program(1)
def interpolate(x):
    return F.interpolate(x.t()[None], scale_factor=2.0)


@program(1)
def interpolate_to_size(x):
    return F.interpolate(x.t()[None], size=x.shape[0] * 3, mode="linear")


@program(2)
def unfold_windows(x):
    return x.unfold(0, 2, 1).sum(-1)


@program()
def einsum(x):
    return torch.einsum("ni,mi->nm", x, x * 2)


@program()
def several_results(x):
    return x + 1, x.shape[0] * 2, x.shape, x.t(), x.sum()


@program()
def diagonal(x):
    return x.diagonal().sum() + (x @ x.t()).diagonal()


@program()
def transposed_then_flat(x):
    return x.t().reshape(-1) + x.t().contiguous().view(-1)


@program()
def as_strided_square(x):
    return x.as_strided((x.shape[0], 3), (6, 2)) * 2


@program()
def dimension_of_size_one(x):
    return x.unsqueeze(1).squeeze(1) + x[:, :1].squeeze(1)[:, None]


@program()
def meshgrid(x):
    a, b = torch.meshgrid(torch.arange(x.shape[0]), torch.arange(6), indexing="ij")
    return x * (a + b)


@program()
def bucket(x):
    return x.clamp(-1, 1).round() * torch.full((x.shape[0], 1), 2.0)


@program()
def scatter_rows(x):
    i = (torch.arange(x.shape[0]) // 2)[:, None].expand(-1, 6)
    return torch.zeros(x.shape[0] + 1, 6).scatter_add(0, i, x)


@program()
def double_loop_of_halves(x):
    n, steps = x.shape[0], 0
    while n > 1:
        n = (n + 1) // 2
        steps += 1
    return x * steps
