"""How graphs print: of programs, of families of functions, of the table's entries.

The same functions run with PyTorch (`record_printed.py`) and with this package
(`tests/graph/test_printed_graphs.py`).
"""

import contextlib
import io
import warnings

from tests.helpers.aot_prints import prints

MODES = ("real", "fake", "symbolic", "pre")


def quietly(function):
    """What a function gives; an error as a text under the name "error"."""
    with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function()
        except Exception as error:
            return {"error": type(error).__name__}


def of_family(torch, aot_function, make_boxed_compiler, function, start) -> dict:
    """Graph -> code, of AOT."""
    torch.manual_seed(0)
    return quietly(lambda: prints(torch, aot_function, make_boxed_compiler, function, start))


def of_program(torch, make_fx, function, args, mode: str) -> dict:
    """Code, graph and commented source of a capture."""
    def run():
        module = make_fx(
            function, tracing_mode="real" if mode == "pre" else mode,
            _allow_non_fake_inputs=True, pre_dispatch=mode == "pre")(*args)
        return {"code": module.code.strip(), "graph": str(module.graph),
                "readable": module.print_readable(print_output=False)}

    torch.manual_seed(0)
    return quietly(run)


def of_entry(torch, make_fx, aot_function, make_boxed_compiler, name: str, args, kwargs) -> dict:
    """Graph -> code, of the call of an operator: by `make_fx` and by AOT."""
    base, _, overload = name.partition(".")
    operator = getattr(getattr(torch.ops.aten, base), overload or "default")
    tensors = []

    def taken(value):
        if isinstance(value, torch.Tensor):
            tensors.append(value)
            return len(tensors) - 1, None
        return [taken(v) for v in value] if isinstance(value, (list, tuple)) else (-1, value)

    tree = [taken(a) for a in args], {k: taken(v) for k, v in kwargs.items()}

    def put(item, given):
        if isinstance(item, list):
            return [put(i, given) for i in item]
        return given[item[0]] if item[0] >= 0 else item[1]

    def call(*given):
        return operator(*[put(a, given) for a in tree[0]],
                        **{k: put(v, given) for k, v in tree[1].items()})

    names = ", ".join(f"x{i}" for i in range(len(tensors)))
    space = {"call": call}
    exec(f"def function({names}): return call({names})", space)
    torch.manual_seed(0)
    found = quietly(lambda: {"fx": make_fx(space["function"])(*tensors).code.strip()})

    def start():
        leaves = [t.detach().clone() for t in tensors]
        return [t.requires_grad_() if t.dtype in (torch.float32, torch.complex64) else t
                for t in leaves]

    if tensors:
        found |= of_family(torch, aot_function, make_boxed_compiler, space["function"], start)
    found.pop("error", None)
    return found
