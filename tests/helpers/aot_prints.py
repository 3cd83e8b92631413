"""What AOT hands to its compilers, as text."""


def prints(torch, aot_function, make_boxed_compiler, function, start) -> dict:
    """Name of a graph -> its code; with and without writes kept in inference graphs."""
    found = {}
    for keep in (False, True):
        seen = []

        def compiler(name, seen=seen):
            def run(module, inputs):
                seen.append((name, module.code.strip()))
                return module

            return make_boxed_compiler(run)

        compiled = aot_function(
            function, compiler("forward"), compiler("backward"),
            inference_compiler=compiler("inference"), keep_inference_input_mutations=keep)
        out = compiled(*start())
        out = list(out.values()) if isinstance(out, dict) else out
        out = [o for o in (out if isinstance(out, (tuple, list)) else [out])
               if isinstance(o, torch.Tensor) and o.requires_grad and not o.is_leaf]
        if out:
            torch.autograd.backward(out, [torch.ones_like(o) for o in out])
        for name, code in seen:
            found[f"{name}, writes kept" if keep and found.get(name) != code else name] = code
    return found


def check(name, found, recorded, otherwise) -> None:
    """Compare the graphs of a program with the recorded ones; those of `otherwise` differ."""
    for graph, text in recorded.items():
        if f"{name} {graph}" in otherwise:
            assert found.get(graph) != text, "no longer different: take it off the list"
        else:
            assert found.get(graph) == text
