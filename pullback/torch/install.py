"""Pullback under the name `torch`, for files that say `import torch`.

`install_as_torch()` puts a finder in front of Python's import system.  It answers for `torch` and
everything below it: with the module of the same path in this package, the same object, or, where
PyTorch keeps names in a file that this package does not have, with a `Facade` that looks them up in
the places that `PLACES` lists.  Nothing is copied, and nothing is done before a program asks.
`uninstall_as_torch()` takes all of it back.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import sys
import types

from .. import errors, version
from ..facade import Facade, Package, _held, file_of
from ..serialization.names import OWN

# PyTorch's module -> where its names are here, in the order in which they are looked up (`*`: in
# every file there).  A path that exists in this package needs no line.  `=`: one module itself.
PLACES = {
    "torch.torch_version": "version",
    "torch._custom_ops": "torch.custom_ops",
    "torch._tensor": ".",
    "torch._VF": ".",
    "torch._utils": "utils.flat",
    "torch._tensor_str": "printing",
    "torch.autograd.profiler_util": "autograd.profiler_events",
    "torch.testing._comparison": "testing.compare",
    "torch.testing._internal": "testing",
    "torch.testing._internal.two_tensor": "testing.two_tensor",
    "torch.testing._internal.logging_tensor": "testing.logging_tensor",
    "torch.testing._internal.optests": "testing.user",
    "torch.utils._mode_utils": "utils._python_dispatch",
    "torch._jit_internal": "torch.jit",
    "torch._ops": "torch.operator_kinds torch.higher_order .",
    "torch._dispatch": "utils._python_dispatch",
    "torch._dispatch.python": "utils._python_dispatch torch.crossref",
    "torch.autograd.variable": "autograd",
    "torch._C._autograd": "autograd.running_sweep autograd.graph",
    "torch._C._functions": "autograd.running_sweep",
    "torch.autograd.gradcheck": "autograd.differences autograd",
    "torch._dynamo.utils": "torch._dynamo graph.fake_mode graph.counters",
    "torch._dynamo.testing": "torch.dynamo_testing",
    "torch._dynamo.functional_export": "torch.functional_export",
    "torch._inductor.custom_graph_pass": "torch.custom_graph_pass",
    "torch.multiprocessing.reductions": "torch.weak_references",
    "torch._dynamo.aot_compile_types": "capture.compilers",
    "torch._dynamo.exc": "compile.errors",
    "torch._inductor.codecache": "torch.autograd_cache",
    "torch._inductor.decomposition": "torch._inductor",
    "torch._inductor.utils": "torch.autograd_cache",
    "torch._inductor.compile_fx": "compile.backends",
    "torch._prims_common": "array.layout torch.crossref",
    "torch._prims": "decomp",
    "torch._prims.rng_prims": "cut.prepare capture.seeded_draws",
    "torch._prims.utils": "array.layout torch.crossref",
    "torch._subclasses.fake_utils": "torch.crossref",
    "torch._dynamo.backends": "compile.backends",
    "torch._dynamo.backends.common": "compile.backends aot",
    "torch._dynamo.backends.registry": "compile.backends",
    "torch._dynamo.eval_frame": "torch._dynamo",
    "torch._dynamo.decorators": "torch._dynamo",
    "torch._dynamo._trace_wrapped_higher_order_op": "torch._dynamo",
    "torch.jit.annotations": "torch.jit",
    "torch._logging": "capture.explain",
    "torch.fx.experimental": "graph",
    "torch.fx.experimental._config": "=symbolic.settings.config",
    "torch.fx.experimental.symbolic_shapes":
        "symbolic symbolic.queries symbolic.guards symbolic.number symbolic.env errors",
    "torch._dynamo.source": "symbolic.guards",
    "torch.fx.experimental.sym_node": "symbolic.number",
    "torch.fx.experimental.proxy_tensor":
        "graph.make_fx graph.isolated graph.sizes torch.proxy_mode",
    "torch.fx.experimental.optimization": "torch.fuse",
    "torch.fx.experimental.const_fold": "torch.const_fold",
    "torch.fx.experimental.normalize": "torch.normalize",
    "torch.fx.experimental.rewriter": "graph.tracer",
    "torch.fx.passes.split_utils": "graph.passes.split_module",
    "torch.fx.passes.infra": "graph.passes.infra",
    "torch.fx.passes.infra.pass_base": "graph.passes.infra",
    "torch.fx.passes.infra.pass_manager": "graph.passes.infra",
    "torch.fx.passes.infra.partitioner": "graph.passes.partitioner",
    "torch.fx.passes.operator_support": "graph.passes.partitioner",
    "torch.fx.passes.utils.fuser_utils": "graph.passes.partitioner",
    "torch.fx.passes.utils": "graph.passes.partitioner graph.passes.matcher",
    "torch.fx.passes.utils.common": "graph.passes.matcher",
    "torch.fx.passes.utils.matcher_utils": "graph.passes.matcher",
    "torch.fx.passes.utils.source_matcher_utils": "graph.passes.sources",
    "torch.fx.passes.utils.matcher_with_name_node_map_utils": "graph.passes.matcher",
    "torch.fx.passes.tools_common": "graph.passes.order graph.passes.partitioner",
    "torch.fx.passes.dialect": "graph.passes",
    "torch.fx.passes.dialect.common": "graph.passes",
    "torch.fx.passes.dialect.common.cse_pass": "graph.passes.order",
    "torch.fx.annotate": "graph.tracer",
    "torch.fx._lazy_graph_module": "nn.traced",
    "torch.fx._symbolic_trace": "graph.tracer graph",
    "torch._higher_order_ops": "control",
    "torch._higher_order_ops.effects": "control.effects table.effects",
    "torch._library": "library",
    "torch._library.effects": "table.effects",
    "torch._library.custom_ops": "library library.definition",
    "torch._library.infer_schema": "library.hints",
    "torch._higher_order_ops.cond": "control.cond control",
    "torch._higher_order_ops.map": "control.loops control",
    "torch._higher_order_ops.out_dtype": "control.out_dtype",
    "torch._higher_order_ops.scan": "control.loops control",
    "torch._higher_order_ops.while_loop": "control.whiles control",
    "torch._higher_order_ops.associative_scan": "control.loops control",
    "functorch.einops": "func.einops",
    "functorch.experimental.control_flow": "control control.loops",
    "torch._decomp": "decomp",
    "torch._decomp.decompositions": "decomp",
    "torch._subclasses": "graph.fake_mode torch.crossref",
    "torch._subclasses.fake_tensor": "graph.fake_mode nn.fake_copy torch.crossref",
    "torch._guards": "graph.fake_mode torch.tracing_context",
    "torch._subclasses.functional_tensor": "torch.functional_tensor",
    "torch.fx.proxy": "graph.proxy graph.errors graph",
    "torch._refs": "decomp .",
    "torch._refs.nn": "nn",
    "torch._refs.nn.functional": "nn.functional decomp",
    "torch._refs.special": "special",
    "torch._refs.linalg": "linalg",
    "torch._refs.fft": "fft",
    "torch._functorch": "func",
    "torch._functorch.aot_autograd":
        "aot cut.partition capture.export capture.signature cut.settings",
    "torch._functorch._activation_checkpointing": "aot",
    "torch._functorch._activation_checkpointing.knapsack": "cut.knapsack",
    "torch._functorch._aot_autograd": "aot",
    "torch.export.exported_program": "export.program",
    "torch.export._draft_export": "export.draft",
    "torch.export.decomp_utils": "decomp",
    "torch._export": "export",
    "torch._export.verifier": "export.check errors",
    "torch._functorch._aot_autograd.autograd_cache": "torch.autograd_cache",
    "torch._functorch._aot_autograd.descriptors": "capture.descriptors",
    "torch._functorch._aot_autograd.fx_utils": "torch.graph_lookup",
    "torch._functorch._aot_autograd.schemas":
        "capture.signature capture.export torch.forward_metadata capture.compilers",
    "torch._functorch._aot_autograd.collect_metadata_analysis":
        "torch.forward_metadata",
    "torch._functorch._aot_autograd.utils": "aot",
    "torch._functorch._aot_autograd.logging_utils": "aot torch.stack_traces",
    "torch._functorch._aot_autograd.subclass_parametrization": "nn.utils.unwrapping",
    "torch._functorch.compile_utils": "graph.passes.cse cut.split cut.extraction torch.minifier",
    "torch._functorch.fx_minifier": "torch.minifier",
    "torch._functorch.compilers": "aot compile.ahead graph.make_fx cut.partition",
    "torch._functorch.config": "=aot.config",
    "torch._functorch.partitioners": "cut.partition cut.extraction torch.partitioners aot",
    "torch._functorch.vmap": "func.vmap func",
    "torch._functorch.eager_transforms": "func.grad func.jacobian func",
    "torch._functorch.apis": "func func.vmap",
    "torch._functorch.autograd_function": "func.contexts",
    "torch._functorch.utils": "func.contexts",
    "torch._C._functorch": "func.inside",
    "torch._C._nn": "torch.native_layers nn.functional nn.utils.rnn",
    "torch._functorch.deprecated": "torch.functorch",
    "torch._functorch.make_functional": "torch.make_functional",
    "torch._functorch.functional_call": "func",
    "torch.quantization": "=ao.quantization",
    **{f"torch.quantization.{file}": f"=ao.quantization.{file}" for file in (
        "quantize", "qconfig", "observer", "fake_quantize", "stubs", "fuse_modules", "utils",
        "quantization_mappings")},
    "torch.nn.quantized": "=ao.nn.quantized",
    "torch.nn.quantized.dynamic": "=ao.nn.quantized.dynamic",
    "torch.nn.quantized.modules": "=ao.nn.quantized.modules",
    "torch.nn.quantized.functional": "=ao.nn.quantized.functional",
    "torch.nn.qat": "=ao.nn.qat",
    "torch.nn.quantizable": "=ao.nn.quantizable",
    "torch.nn.intrinsic": "=ao.nn.intrinsic",
    "torch.ao.nn.intrinsic.modules.fused": "ao.nn.intrinsic.modules",
    "torch.ao.nn.quantized.modules.activation": "ao.nn.quantized.modules.layers",
    "torch.ao.nn.quantized.modules.normalization": "ao.nn.quantized.modules.layers",
    "torch.ao.nn.quantized.modules.batchnorm": "ao.nn.quantized.modules.layers",
    "torch.ao.nn.quantized.modules.dropout": "ao.nn.quantized.modules.layers",
    "functorch": "torch.functorch graph.make_fx",
    "functorch.compile": "aot cut.partition compile.ahead decomp graph.make_fx torch.minifier",
    "functorch.experimental": "func func.vmap",
}
NAMES = ("torch", "functorch")

_active: _Finder | None = None


def counterpart(name: str) -> types.ModuleType | None:
    """The module that stands for a module of PyTorch, None if there is none."""
    if name == "torch":
        return sys.modules[OWN]
    if name in PLACES:
        place = PLACES[name]
        if place[0] == "=":  # that module itself, so that assignments reach it
            held, _, tail = place[1:].rpartition(".")
            return getattr(importlib.import_module(f"{OWN}.{held}"), tail)
        return Facade(name, place)
    parent, _, tail = name.rpartition(".")
    above = sys.modules.get(parent) or counterpart(parent) if parent else None
    if above is None:
        return None
    if isinstance(above, Facade) or not hasattr(above, "__path__"):
        return None
    package = above.__package__  # not __name__: the root calls itself `torch` meanwhile
    own = file_of(f"{package}.{tail}") if package.partition(".")[0] == OWN else None
    held = getattr(above, tail, own)
    if isinstance(held, types.ModuleType):  # it may be a file of another name
        return held
    if isinstance(above, Package):  # both are PyTorch's
        return own
    if own is not None:  # a name over a file of ours: the next finder would load it once more
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return None


# PyTorch's paths, and those that pickles of earlier versions name, whose files are elsewhere here
MOVED = {
    "__config__": "torch.build", "_C": "torch._C",
    "_dynamo": "torch._dynamo", "_inductor": "torch._inductor", "fx": "graph",
    "futures": "torch.futures", "jit": "torch.jit", "onnx": "torch.onnx",
    "as_torch": "torch.install", "aot.partition": "cut.partition",
    "autograd.looking": "autograd.running_sweep", "autograd.seen": "autograd.dispatched_sweep",
    "core.dispatching": "interp.operator_dispatch",
    "core.overriding": "interp.function_overrides", "core.wrapping": "interp.wrapper_subclass",
    "aot.extraction": "cut.extraction", "aot.export": "capture.export",
    "core.device": "array.device", "core.dtype": "array.dtype", "core.effects": "table.effects",
    "core.fake": "array.fake", "core.generator": "array.generator", "core.layout": "array.layout",
    "core.legacy": "tensor.legacy_types", "core.state": "threads.state",
    "core.hooks": "tensor.hooks", "core.expression": "table.expression",
    "core.derivative": "table.derivative", "core.pytree": "pytree",
    "core.sending": "memory.sending", "core.size": "array.size",
    "func.functional_tensor": "torch.functional_tensor", "fx.normalize": "torch.normalize",
    "fx.minifier": "torch.minifier", "capture.lookup": "torch.graph_lookup", "capture.tokens":
    "capture.effect_tokens",
    "capture.metadata": "torch.forward_metadata", "library.higher": "torch.higher_order",
    "library.kinds": "torch.operator_kinds", "export.pt2": "torch.pt2",
    "export.pt2_writer": "torch.pt2_writer", "export.wishes": "export.shapes_collection",
    "library.older": "torch.custom_ops", "machine": "torch.machine",
    "nn.const_fold": "torch.const_fold", "nn.fuse": "torch.fuse", "nn.older":
    "torch.make_functional", "nn.functorch": "torch.functorch", "symbolic.asking":
    "symbolic.queries", "utils.crossref": "torch.crossref",
}


def moved(path: str) -> str | None:
    """Where the file of a path is now, None if it has not moved."""
    head, tail = path, ""
    while head:
        if head in MOVED:
            return MOVED[head] + tail
        head, dot, last = head.rpartition(".")
        tail = f"{dot}{last}{tail}"
    return None


def spec_below(fullname: str) -> importlib.machinery.ModuleSpec | None:
    """How to import a path of PyTorch's below this package: `pullback._functorch.config`."""
    path = fullname.removeprefix(f"{OWN}.")
    if f"torch.{path}" in PLACES:
        module = counterpart(f"torch.{path}")
        return importlib.machinery.ModuleSpec(fullname, _Loader(module), is_package=True)
    now = moved(path)
    module = file_of(f"{OWN}.{now}") if now is not None else None
    if module is None:
        return None
    return importlib.machinery.ModuleSpec(
        fullname, _Loader(module), is_package=hasattr(module, "__path__"))


def renamed(fullname: str, path: object) -> importlib.machinery.ModuleSpec | None:
    """How to import below `torch` where a program has given that name to this package itself."""
    install_as_torch()
    return _active.find_spec(fullname, path)


class _Finder(importlib.abc.MetaPathFinder):
    """Answers imports of `torch`, and questions about the version that is installed."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] not in NAMES:
            return None
        module = counterpart(fullname)
        if module is None:
            return None
        return importlib.machinery.ModuleSpec(
            fullname, _Loader(module), origin=getattr(module, "__file__", None),
            is_package=hasattr(module, "__path__"))

    def find_distributions(self, context=None):
        name = getattr(context, "name", None)
        return [_Distribution()] if name is None or name.lower() == "torch" else []

    def invalidate_caches(self):
        """Nothing is kept."""


class _Loader(importlib.abc.Loader):
    """Hands over a module that exists already."""

    def __init__(self, module: types.ModuleType):
        self.module = module
        self.kept = getattr(module, "__spec__", None)

    def create_module(self, spec):
        return self.module

    def exec_module(self, module):
        if self.kept is not None:  # the import system has put the spec of the new name in its place
            module.__spec__ = self.kept


class _Distribution(importlib.metadata.Distribution):
    """What `importlib.metadata` tells programs that ask for PyTorch."""

    def read_text(self, filename):
        if filename == "METADATA":
            return f"Metadata-Version: 2.1\nName: torch\nVersion: {version.__version__}\n"
        return None

    def locate_file(self, path):
        return path


class Installation:
    """What `install_as_torch` returns: leave a `with` block of it to uninstall."""

    def __enter__(self) -> Installation:
        return self

    def __exit__(self, *exc) -> None:
        uninstall_as_torch()


def _is_ours(module: object) -> bool:
    """Is this a module of this package, under whatever name a program has put it?"""
    name = getattr(getattr(module, "__spec__", None), "name", None) or ""
    return isinstance(module, Facade) or (
        name.partition(".")[0] == OWN and sys.modules.get(name) is module)


def install_as_torch() -> Installation:
    """Make `import torch` give this package, for files that cannot be changed.

    Refused where the real one has been imported: two libraries under one name would meet in the
    same program. Undone by `uninstall_as_torch()`, or at the end of a `with` block.
    """
    global _active
    if _active is not None:
        return Installation()
    own = sys.modules[OWN]
    other = next((n for n in sys.modules if n.partition(".")[0] in NAMES
                  and not _is_ours(sys.modules[n])), None)
    if other is not None:
        raise errors.InstallError(errors.text(
            f"PyTorch itself is already imported here ({errors.user_line(2)})",
            f"sys.modules has {other!r}, from {getattr(sys.modules[other], '__file__', 'memory')}",
            "call install_as_torch() before anything imports torch, or in a new process: "
            "python -m pullback run FILE"))
    _active = _Finder()
    sys.meta_path.insert(0, _active)
    _active.version, own.__version__ = own.__version__, version.__version__
    own.__name__ = "torch"
    sys.modules["torch"] = own
    return Installation()


def uninstall_as_torch() -> None:
    """Take back `install_as_torch`; modules that were imported meanwhile keep what they hold."""
    global _active
    if _active is None:
        return
    sys.meta_path.remove(_active)
    own = sys.modules[OWN]
    own.__version__, own.__name__ = _active.version, OWN
    for name in [n for n in sys.modules if n.partition(".")[0] in NAMES]:
        module = sys.modules.pop(name)
        parent, _, tail = name.rpartition(".")
        ours = sys.modules.get(f"{OWN}.{name.partition('.')[2]}") is module
        if isinstance(module, Facade) and parent and not ours:
            # the import system bound it to its parent
            above = counterpart(parent)
            if above is not None and _held(above).get(tail) is module:
                delattr(above, tail)
    _active = None
