"""Programs whose functionalized captures print as PyTorch's do (`record_captures.py`)."""


def programs(torch) -> dict:
    """Name -> (function, arguments)."""
    ones = torch.ones

    def simple(x: torch.Tensor) -> torch.Tensor:
        tmp = torch.ones(2)
        y = x.view(4, 2)
        y.add_(tmp)
        return x

    def transposed_simple(x: torch.Tensor) -> torch.Tensor:
        y = x.transpose(1, 0)
        y.add_(1)
        return y

    def input_written(x):
        x.add_(2)
        return x * 3

    def view_of_view(x):
        v = x.view(4)
        v[1:3].add_(1)
        return v

    def row(x):
        y = x + 1
        z = y[0]
        z.mul_(2)
        return y

    def out(x):
        y = torch.zeros(4)
        torch.add(x.view(4), 1, out=y)
        return y

    def several_out(x):
        low, high = torch.empty(0), torch.empty(0)
        torch.aminmax(x, dim=0, out=(low, high))
        return low, high

    def pieces(x):
        a, b = x.split(1)
        a.diagonal().add_(1)
        return x * b

    def rows(x):
        a, b = x.unbind(0)
        b.mul_(a)
        return x

    def views(x):
        y = x.expand(3, 2, 2).transpose(0, 1).unsqueeze(0).squeeze(0)[..., 0]
        return y, x.detach(), x.permute(1, 0), x.narrow(0, 0, 1), x.t()

    def index_list(x, i):
        return x[i, :, i].sin_()

    def places(x, i):
        x[i] = x[i] * 2
        return x.sum()

    def linear(x, w, b):
        return torch.nn.functional.linear(x, w, b).relu_()

    def several_results(x):
        v, i = torch.empty(0), torch.empty(0, dtype=torch.int64)
        torch.max(x, 0, out=(v, i))
        return v + i

    def strided(x):
        x.as_strided((2,), (2,), 1).add_(1)
        return x

    def sized_pieces(x):
        a, b = x.split([1, 3])
        a.add_(1)
        b.mul_(2)
        return x

    def reshaped(x):
        x.reshape(8)[:4].copy_(torch.zeros(4))
        return x.sum()

    def other_dtype(x):
        y = x.to(torch.int64)
        y.add_(1)
        return x + y

    def chained(x):
        x.mul_(2).add_(1).clamp_(0, 5)
        x.masked_fill_(x > 1, 0.0)
        return x

    def deep_view(x):
        y = x.transpose(0, 1)
        y[0].view(2, 2).add_(1)
        return y

    def out_is_a_view(x):
        out = torch.empty(4, 2)
        torch.sin(x, out=out[:])
        return out

    def joined(x):
        y = torch.stack([x[0], x[1]])
        y.mul_(2)
        return torch.cat([y, x])

    def view_of_written(x):
        y = x.clone()
        y.add_(1)
        y.view(8).add_(1)
        return y

    def resized_out(x):
        out = torch.empty(())
        torch.add(x, x, out=out)
        out.view(8).add_(1)
        return out

    x, i = ones(2, 2), torch.tensor([0, 1])
    return {
        "simple": (simple, (ones(4, 2),)),
        "transposed": (transposed_simple, (x,)),
        "input_written": (input_written, (x,)),
        "view_of_view": (view_of_view, (x,)),
        "row": (row, (x,)),
        "out": (out, (x,)),
        "several_out": (several_out, (x,)),
        "pieces": (pieces, (x,)),
        "rows": (rows, (x,)),
        "views": (views, (x,)),
        "index_list": (index_list, (ones(2, 3, 2), i)),
        "places": (places, (ones(3, 2), i)),
        **{f.__name__: (f, (ones(4, 2),)) for f in (
            several_results, strided, sized_pieces, reshaped, other_dtype, chained, deep_view,
            out_is_a_view, joined, view_of_written, resized_out)},
        "linear": (linear, (ones(3, 4), ones(5, 4), ones(5))),
    }
