"""Random programs as text, with many kinds of inputs: eager against compiled.

A program is a list of lines, each from a table, on a growing list of names; lines that eager code
refuses are left out.  The same text runs under PyTorch: execute `Program(seed).source()` with its
`torch` in scope.
"""

import random

import pullback as pb

VIEWS = """
v.t() | v[0] | v[..., 1:] | v[::2] | v[None] | v.unsqueeze(-1) | v.unbind(0)[-1]
v.chunk(2, -1)[1] | v.split(1)[0] | v.split([1, 2], -1)[1] | v.tensor_split(2)[-1] | v.reshape(-1)
v.view(-1) | v.view(3, 2) | v.detach() | v.transpose(0, 1) | v.expand(2, *v.shape) | v.diagonal()
v.narrow(0, 0, 1) | v.squeeze() | v.view_as(v) | v.movedim(0, -1) | v.flatten() | v.contiguous()
v.select(-1, -1) | v.data | v.mT | torch.view_as_real(v) | v.real | v.imag | v.conj()
v.expand_as(v) | v.swapaxes(0, -1) | v.unflatten(-1, (1, -1))
"""
WRITES = """
v.mul_(2) | v.sin_() | v.fill_(0.5) | v.zero_() | v[0] = 1.5 | v[..., 1:] = 0.25
v[v > 0.1] = 0.75 | v[torch.tensor([0, 0])] = 0.3 | v[[-1]] += 1
v.masked_fill_(v < 0, 0.2) | v.clamp_(-0.5, 0.5) | v.t_() | v.unsqueeze_(0) | v.squeeze_()
v.view(-1).add_(1) | v.diagonal().mul_(2) | v[0].mul_(3) | v.detach().mul_(2)
v.requires_grad_() | v.uniform_(0, 1) | torch.nn.functional.dropout(v, 0.5, inplace=True)
v *= 2 | v.unbind(0)[0].mul_(2) | v.view(-1)[1:].exp_() | v.transpose(0, 1)[0].add_(1)
v.retain_grad() | v.real.mul_(2) | torch._foreach_add_([v], 1)
v.add_(w) | v.copy_(w) | v[0] = w[0] | v[..., 1:] = w[..., :-1] | v[w > 0] = 0.5 | v[:] = w
v.lerp_(w, 0.5) | v.index_add_(0, torch.tensor([0]), w[:1]) | v.t().copy_(w.t())
v.index_put_((torch.tensor([0, 1]),), w, accumulate=True) | v[0] += w[0] | v, w = w, v
"""
MATHS = """
v.cos() | v * 0.5 | v.clone() | v.cumsum(0) | torch.cat([v, v]) | torch.ones_like(v) * v
v.sum() | v.mean(0) | v.max(0)[0] | v > 0 | v.long() | v.to(torch.float32) | v.t() + 1
torch.where(v > 0, v, -v) | torch.zeros_like(v) | torch.rand_like(v) | v.topk(1)[0]
torch.nn.functional.dropout(v, 0.5) | torch.func.grad(lambda q: (q * q).sum())(v)
torch.vmap(lambda q: q * 2)(v) | torch.func.jvp(torch.sin, (v,), (v,))[1] | v.flip(0)
torch.sigmoid(v) | v[torch.tensor([0, 0])] | v.masked_fill(v > 0, 2.0) | v.chunk(2, -1)
torch.utils.checkpoint.checkpoint(lambda q: q.sin() * q, v, use_reentrant=False)
torch.autograd.grad((v * v * v).sum(), v, create_graph=True)[0] | v.detach().requires_grad_()
v * w | v + w | v @ w | torch.maximum(v, w) | torch.stack([v, w]) | (v, w) | v.expand_as(w)
torch.autograd.grad((v * w).sum(), v, allow_unused=True)[0] | v.shape | v.requires_grad
"""
FIRST = """
make(n) | leaf(n) | leaf(n) * 1 | leaf(n) * 1 | make(n).t().contiguous().t()
(leaf(n) * 1).repeat(1, 2)[:, ::2] | make(n)[:1].expand(2, 3)
leaf(n).view(2, 3) | torch.complex(leaf(n), leaf(n) * 0.5) | make(n).long() | make(n) > 0
make(n)[:, :0].clone() | make(n)[0, 1].clone() | leaf(n)[0, 1] * 1 | leaf(n)[0] * 1
"""
OTHERS = """
v | v.detach() | v[0] | v[..., 1:] | v.t() | v.view(-1) | v.unbind(0)[-1] | v.data | v.clone()
torch.view_as_real(v) | v.expand(2, *v.shape) | v.detach()[..., 1:]
"""
MODES = ["with torch.no_grad(): ", "with torch.enable_grad(): "]
ERRORS = (RuntimeError, ValueError, TypeError, IndexError, AttributeError)
HEAD = '''
leaves = []
def make(n):
    return (torch.arange(6.0, dtype=torch.float64) * (0.3 + n) - 0.7).reshape(2, 3).clone()
def leaf(n):
    leaves.append(make(n).requires_grad_())
    return leaves[-1]
'''


def _lines(table: str) -> list[str]:
    return [line.strip() for row in table.strip().splitlines() for line in row.split(" | ")]


def _filled(line: str, **names: str) -> str:
    """A line of a table with names for its letters."""
    out, word = [], ""
    for c in line + " ":
        if c.isalnum() or c in "_":
            word += c
        else:
            out += [names.get(word, word), c]
            word = ""
    return "".join(out)[:-1]


class Program:
    """A program under construction."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.seed, self.steps, self.result = seed, [], "None"
        first, others = _lines(FIRST), _lines(OTHERS)
        self.setup = [f"x0 = {_filled(self.rng.choice(first), n='0')}"]
        for k in range(1, self.rng.choice([1, 2, 2, 3])):
            new = self.rng.random() < 0.5
            self.setup.append(f"x{k} = " + (
                _filled(self.rng.choice(first), n=str(k)) if new
                else _filled(self.rng.choice(others), v=f"x{self.rng.randrange(k)}")))
            if self._values() is None:
                self.setup.pop()
                break
        self.names = [line.split(" = ")[0] for line in self.setup]
        self.inputs, self.plain = list(self.names), []
        tables = [_lines(VIEWS), _lines(WRITES), _lines(WRITES), _lines(MATHS)]
        for number in range(self.rng.choice([4, 8, 12])):
            self._grow(number, self.rng.choice(tables), tables)
        self.result = self._chosen()

    def _grow(self, number: int, table: list, tables: list) -> None:
        choice = self.rng.choice
        last = self.rng.random() < 0.5
        line = _filled(choice(table), v=self.names[-1] if last else choice(self.names),
                       w=choice(self.names))
        new = f"v{number}" if table is tables[0] or table is tables[-1] else None
        mode = choice(MODES) if self.rng.random() < 0.12 else ""
        self.steps.append(f"{mode}{line}" if new is None else f"{mode}{new} = {line}")
        values = self._values()
        if values is None:
            self.steps.pop()
        elif new is not None:
            (self.names if isinstance(values[new], pb.Tensor) else self.plain).append(new)

    def _chosen(self) -> str:
        picks = [self.rng.choice([*self.names, *self.plain]) for _ in range(2)] + self.names[-1:]
        return self.rng.choice([
            f"({', '.join(picks)},)", picks[-1], f"{picks[0]}, None, [{', '.join(picks[1:])}]",
            f"{{'a': {picks[0]}, 'b': {picks[2]}}}"])

    def _values(self) -> dict | None:
        """All that the program knows by name when it ends; None if it fails."""
        names = [line.split(" = ")[0] for line in self.setup]
        try:
            function, start = self.functions("locals()", names)
            pb.manual_seed(7)
            return function(*start()[1])
        except ERRORS:
            return None

    def source(self, result: str | None = None, names: list | None = None) -> str:
        given = ", ".join(self.inputs if names is None else names)
        lines = [HEAD, "def start():", "    leaves.clear()", *(f"    {s}" for s in self.setup),
                 f"    return list(leaves), [{given}]", f"def function({given}):",
                 *(f"    {s}" for s in self.steps), f"    return {result or self.result}"]
        return "\n".join(lines)

    def functions(self, result: str | None = None, names: list | None = None) -> tuple:
        space = {"torch": pb}
        exec(compile(self.source(result, names), f"<program {self.seed}>", "exec"), space)
        return space["function"], space["start"]


def make_text_program(seed: int) -> tuple:
    """(function, start, text) of the program with a number."""
    program = Program(seed)
    text = "\n".join([*program.setup, "--", *program.steps, f"return {program.result}"])
    return *program.functions(), f"seed {seed}:\n{text}"
