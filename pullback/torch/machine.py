"""What programs ask about the machine: `cuda`, `mps`, `backends.cudnn`, `distributed` and the like.

Tables of names and answers, those of a PyTorch that was built for the CPU alone (`cuda` answers for
CuPy where that finds a GPU).  A `Facts` module holds one table; assignments to it are kept, as
programs set flags like `backends.cudnn.benchmark`.  Nothing here changes what is computed.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import os
import platform
import sys
import types
import warnings
from collections import OrderedDict

from .. import errors
from ..absent import Facts, always, nothing
from ..array import device as dev
from ..facade import OWN
from ..tensor.legacy_types import tensor_types

__all__ = ["accelerator", "backends", "cpu", "cuda", "distributed", "mps", "mtia", "xpu"]


def _absent(kind: str, name: str):
    def refuse(*args, **kwargs):
        raise errors.DeviceError(errors.text(
            f"{kind}.{name}() was called ({errors.user_line(2)}), but there is no such device here",
            cure=f"ask {kind}.is_available() first"))

    refuse.__name__ = name
    return refuse


class Stream:
    """A queue of work of an accelerator; operators of the CPU run at once."""

    def __init__(self, device=None, priority: int = 0, **kwargs):
        raise errors.DeviceError(errors.text(
            f"a stream or event was asked for ({errors.user_line(2)}), but there is no accelerator",
            cure="ask is_available() first"))


class Event(Stream):
    """A mark in such a queue."""


class _Shell:
    """A stream or an event of the CPU: nothing waits, and nothing is to be waited for."""

    def __init__(self, *args, **kwargs):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exc) -> None:
        return None

    def query(self) -> bool:
        """All is done."""
        return True

    def record(self, stream=None) -> None:
        """Nothing to note."""

    synchronize = wait = wait_stream = wait_event = record_event = record


class CUDAGraph(Stream):
    """Recorded work of such a queue."""


class no_device:
    """`with torch.cuda.device(...)`: -1 and None mean none, and others are refused."""

    def __init__(self, device=None):
        index = getattr(device, "index", device)
        if index not in (None, -1):
            raise _absence(index)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc) -> None:
        return None


def _absence(index) -> Exception:
    return errors.DeviceError(errors.text(
        f"device {index} was asked for ({errors.user_line(3)}), but there is no accelerator here",
        cure="ask is_available() first"))


_NEEDS_ONE = (
    "current_device current_stream default_stream get_device_capability get_device_name "
    "get_device_properties get_rng_state init initial_seed ipc_collect mem_get_info set_rng_state "
    "set_device synchronize set_stream"
)


def _accelerator(kind: str, **more) -> Facts:
    """The module of an accelerator that is not there."""
    facts = {name: _absent(kind, name) for name in _NEEDS_ONE.split()}
    facts |= {name: always(0) for name in (
        "device_count", "memory_allocated", "max_memory_allocated", "memory_reserved",
        "max_memory_reserved", "memory_cached", "max_memory_cached")}
    facts |= dict.fromkeys(
        ("empty_cache", "manual_seed", "manual_seed_all", "seed", "seed_all", "set_rng_state_all",
         "reset_peak_memory_stats", "reset_max_memory_allocated",
         "reset_accumulated_memory_stats"), nothing)
    facts |= {name: always(False) for name in (
        "is_available", "is_initialized", "is_bf16_supported", "is_tf32_supported",
        "is_current_stream_capturing")}
    facts |= {
        "Event": Event, "Stream": Stream, "StreamContext": Stream, "CUDAGraph": CUDAGraph,
        "graph": CUDAGraph, "MemPool": CUDAGraph, "device": no_device,
        "device_of": no_device, "default_generators": (), "get_arch_list": list,
        "get_rng_state_all": list, "memory_stats": OrderedDict,
        "stream": lambda stream: contextlib.nullcontext(), **more}
    return Facts(kind, f"{kind}: asked about, and not there.", facts)


# CUDA: CuPy's, where that finds a GPU


@functools.cache
def _cupy():
    try:
        return dev.namespace("cuda")
    except errors.DeviceError:
        return None


def _through_cupy(name: str, run, otherwise):
    def ask(*args, **kwargs):
        cupy = _cupy()
        return otherwise(*args, **kwargs) if cupy is None else run(cupy, *args, **kwargs)

    ask.__name__ = name
    return ask


_CUPY = {
    "is_available": (lambda cupy: True, always(False)),
    "is_initialized": (lambda cupy: True, always(False)),
    "device_count": (lambda cupy: cupy.cuda.runtime.getDeviceCount(), always(0)),
    "current_device": (lambda cupy: cupy.cuda.runtime.getDevice(), None),
    "synchronize": (lambda cupy, device=None: cupy.cuda.runtime.deviceSynchronize(), None),
    "mem_get_info": (lambda cupy, device=None: cupy.cuda.runtime.memGetInfo(), None),
    "memory_allocated": (
        lambda cupy, device=None: cupy.get_default_memory_pool().used_bytes(), always(0)),
    "memory_reserved": (
        lambda cupy, device=None: cupy.get_default_memory_pool().total_bytes(), always(0)),
    "empty_cache": (lambda cupy: cupy.get_default_memory_pool().free_all_blocks(), nothing),
}

cuda = _accelerator(
    "cuda", has_half=True, has_magma=False, _initialized=False, **tensor_types("cuda"),
    **{name: _through_cupy(name, run, otherwise or _absent("cuda", name))
       for name, (run, otherwise) in _CUPY.items()})


class _OldName(type):
    """The class of old names: they make objects of the class that they derive from."""

    def __instancecheck__(cls, value) -> bool:
        return isinstance(value, cls.__base__)


def _amp_of(kind: str, fast: str) -> Facts:
    """Mixed precision under its old names, which are those of one device."""
    from ..amp.autocast_mode import autocast, custom_bwd, custom_fwd
    from ..amp.grad_scaler import GradScaler
    from ..array import dtype as dt

    def old(name: str) -> None:
        warnings.warn(f"`torch.{kind}.amp.{name}(args...)` is deprecated. Please use "
                      f"`torch.amp.{name}('{kind}', args...)` instead.", FutureWarning,
                      stacklevel=3)

    class OldAutocast(autocast, metaclass=_OldName):
        def __new__(cls, enabled: bool = True, dtype=None, cache_enabled: bool = True):
            old("autocast")
            return autocast(kind, getattr(dt, fast) if dtype is None else dtype, enabled,
                            cache_enabled)

    class OldScaler(GradScaler, metaclass=_OldName):
        def __new__(cls, *args, **options):
            old("GradScaler")
            return GradScaler(kind, *args, **options)

    OldAutocast.__name__, OldScaler.__name__ = "autocast", "GradScaler"
    return Facts(f"{kind}.amp", "Mixed precision under its old name.", {
        "GradScaler": OldScaler,
        "autocast": OldAutocast,
        "custom_fwd": functools.partial(custom_fwd, device_type=kind),
        "custom_bwd": functools.partial(custom_bwd, device_type=kind),
        "common": types.SimpleNamespace(amp_definitely_not_available=always(_cupy() is None)),
    })


class _Lazily(Facts):
    """`cuda` and `cpu`: their mixed precision is loaded when it is asked for."""

    def __getattr__(self, name: str):
        if name == "amp":
            kind = self.__name__.rpartition(".")[2]
            return _amp_of(kind, "bfloat16" if kind == "cpu" else "float16")
        return super().__getattr__(name)


cuda.__class__ = _Lazily
Facts("cuda.nvtx", "Marks for NVIDIA's profiler: nobody reads them.", {
    "range_push": always(0), "range_pop": always(0), "mark": nothing,
    "range": lambda *a, **k: contextlib.nullcontext()})
Facts("cuda.random", "The generators of GPUs.", {
    name: getattr(cuda, name) for name in
    ("get_rng_state", "get_rng_state_all", "set_rng_state", "set_rng_state_all", "manual_seed",
     "manual_seed_all", "seed", "seed_all", "initial_seed")})
Facts("cuda.memory", "The memory of GPUs.", {
    name: getattr(cuda, name) for name in
    ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved",
     "empty_cache", "memory_stats", "reset_peak_memory_stats", "mem_get_info")})

mps, xpu, mtia = _accelerator("mps"), _accelerator("xpu"), _accelerator("mtia")
accelerator = _accelerator(
    "accelerator", current_accelerator=always(None),
    **{n: _absent("accelerator", n) for n in
       ("current_device_index", "current_device_idx", "set_device_index", "empty_cache",
        "memory_allocated", "max_memory_allocated")})
cpu = Facts("cpu", "The device that is always there.", {
    "is_available": always(True), "is_initialized": always(True), "device_count": always(1),
    "current_device": always("cpu"), "synchronize": nothing, "set_device": nothing,
    "get_capabilities": lambda: {"architecture": platform.machine(),
                                 "num_logical_cores": os.cpu_count()},
    # operators of the CPU run at once: its streams are empty shells
    "Stream": _Shell, "Event": _Shell, "StreamContext": _Shell,
    "current_stream": lambda device=None: _Shell(), "stream": lambda stream: _Shell(),
})
cpu.__class__ = _Lazily

# backends

backends = Facts("backends", "Libraries that PyTorch may use; switches are kept.",
                 {"disable_global_flags": nothing})
_MATH = {
    "allow_tf32": False, "allow_fp16_reduced_precision_reduction": True,
    "allow_bf16_reduced_precision_reduction": True, "allow_fp16_accumulation": False,
    "fp32_precision": "none"}
_SDP = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True, "fastpath": True}


def _sdp_functions() -> dict:
    def switch(kind):
        return lambda enabled: _SDP.__setitem__(kind, bool(enabled))

    kinds = [kind for kind in _SDP if kind != "fastpath"]
    return {**{f"{kind}_sdp_enabled": functools.partial(_SDP.get, kind) for kind in kinds},
            **{f"enable_{kind}_sdp": switch(kind) for kind in kinds}}


_BACKENDS = {
    "cpu": {"get_cpu_capability": always("DEFAULT")},
    "cuda": {
        "is_built": always(False), "matmul": types.SimpleNamespace(**_MATH),
        "cufft_plan_cache": types.SimpleNamespace(size=0, max_size=0, clear=nothing),
        "is_flash_attention_available": always(False), **_sdp_functions(),
        "sdp_kernel": lambda *a, **k: contextlib.nullcontext(),
        "can_use_flash_attention": always(False), "can_use_efficient_attention": always(False),
        "preferred_linalg_library": always("default"), "preferred_blas_library": always("default"),
        "fp16_bf16_reduction_math_sdp_allowed": always(False),
        "allow_fp16_bf16_reduction_math_sdp": nothing},
    "cudnn": {
        "is_available": always(False), "version": always(None), "is_acceptable": always(False),
        "enabled": True, "benchmark": False, "benchmark_limit": 10, "deterministic": False,
        "allow_tf32": True, "fp32_precision": "none", "set_flags": nothing,
        "rnn": types.SimpleNamespace(fp32_precision="none"),
        "conv": types.SimpleNamespace(fp32_precision="none")},
    "cusparselt": {"is_available": always(False), "version": always(None)},
    "kleidiai": {"is_available": always(False)},
    "mha": {"get_fastpath_enabled": functools.partial(_SDP.get, "fastpath"),
            "set_fastpath_enabled": lambda value: _SDP.update(fastpath=bool(value))},
    "miopen": {"immediate": False},
    "mkl": {"is_available": always(False), "VERBOSE_OFF": 0, "VERBOSE_ON": 1,
            "verbose": lambda enable: contextlib.nullcontext()},
    "mkldnn": {"is_available": always(False), "enabled": True, "deterministic": False,
               "allow_tf32": True, "fp32_precision": "none",
               "verbose": lambda level: contextlib.nullcontext()},
    "mps": {"is_available": always(False), "is_built": always(False),
            "is_macos_or_newer": always(False), "is_macos13_or_newer": always(False)},
    "nnpack": {"is_available": always(False), "enabled": True},
    "openmp": {"is_available": always(True)},
    "opt_einsum": {"is_available": always(True), "enabled": True, "strategy": "auto",
                   "get_opt_einsum": always(None)},
    "quantized": {"engine": "x86", "supported_engines": ["x86", "fbgemm", "qnnpack", "onednn"]},
    "xnnpack": {"enabled": False},
}
for _name, _facts in _BACKENDS.items():
    Facts(f"backends.{_name}", f"What a program may ask or set about {_name}.", _facts)

# distributed


class _Alone(Facts):
    """One process."""

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(errors.text(
            f"torch.distributed.{name} was asked for, but this process is alone",
            cure="ask torch.distributed.is_available() first"))


def _no_group(name: str):
    def refuse(*args, **kwargs):
        raise errors.BadValue(errors.text(
            "Default process group has not been initialized", f"{name}() was called",
            "ask torch.distributed.is_initialized() first"))

    return refuse


def _init_process_group(*args, **kwargs):
    raise errors.NotInThisBuild(errors.text(
        "init_process_group(): several processes cannot form a group in this build "
        f"({errors.user_line(2)})",
        "torch.distributed.is_available() is False",
        "run the program as one process, without torchrun or its like"))


@functools.cache
def _apart(name: str):
    """A class or a function that needs several processes."""
    refuse = _no_group(name)
    if name[0].islower():
        return refuse
    return type(name, (), {"__init__": refuse, "__doc__": "Needs a group of processes."})


_GROUPS = """Backend DeviceMesh FileStore GradBucket HashStore P2POp PrefixStore ProcessGroup Store
    TCPStore Work all_gather all_gather_into_tensor all_gather_object all_reduce all_to_all
    all_to_all_single barrier broadcast broadcast_object_list gather gather_object
    get_global_rank get_group_rank get_process_group_ranks irecv isend monitored_barrier
    new_group new_subgroups recv reduce reduce_scatter reduce_scatter_tensor scatter
    scatter_object_list send"""

distributed = _Alone("distributed", "Several processes: not here.", {
    "is_available": always(False), "is_initialized": always(False),
    "is_torchelastic_launched": always(False), "is_nccl_available": always(False),
    "is_gloo_available": always(False), "is_mpi_available": always(False),
    **{name: _no_group(name) for name in ("get_rank", "get_world_size", "get_backend")},
    **{name: _apart(name) for name in _GROUPS.split()},
    "ReduceOp": enum.Enum("ReduceOp", "SUM AVG PRODUCT MIN MAX BAND BOR BXOR PREMUL_SUM"),
    "group": types.SimpleNamespace(WORLD=None),
    "init_process_group": _init_process_group,
    "destroy_process_group": nothing,
})

# What packages import from below it.  Values can be asked whether they are of these classes; none
# is, as making one, like calling one of the functions, needs a group of processes.
_APART = {
    "nn": "all_gather all_reduce all_to_all broadcast gather reduce reduce_scatter scatter",
    "tensor": "DTensor Partial Placement Replicate Shard distribute_module distribute_tensor",
    "_tensor": "DTensor Partial Placement Replicate Shard distribute_module distribute_tensor",
    "tensor.experimental": "context_parallel implicit_replication",
    "_tensor.experimental": "context_parallel implicit_replication",
    "tensor.placement_types": "Partial Placement Replicate Shard",
    "device_mesh": "DeviceMesh init_device_mesh",
    "fsdp": """BackwardPrefetch CPUOffload CPUOffloadPolicy FSDPModule FullOptimStateDictConfig
        FullStateDictConfig FullyShardedDataParallel MixedPrecision MixedPrecisionPolicy
        OffloadPolicy ShardingStrategy StateDictType fully_shard""",
    "fsdp.fully_sharded_data_parallel": """BackwardPrefetch CPUOffload FullStateDictConfig
        FullyShardedDataParallel MixedPrecision ShardingStrategy StateDictType""",
    "_composable.fsdp": "FSDPModule MixedPrecisionPolicy fully_shard",
    "rpc": "RRef init_rpc remote rpc_async rpc_sync shutdown",
    "fsdp.wrap": "size_based_auto_wrap_policy transformer_auto_wrap_policy",
    "algorithms.join": "Join JoinHook Joinable",
}


for _name, _names in _APART.items():
    _path = _name.split(".")
    for _end in range(1, len(_path)):  # a package that is not in the table
        if f"{OWN}.distributed.{'.'.join(_path[:_end])}" not in sys.modules:
            _Alone("distributed." + ".".join(_path[:_end]), "Several processes: not here.", {})
    _Alone(f"distributed.{_name}", "Several processes: not here.",
           {name: _apart(name) for name in _names.split()})


def get_device_module(device=None) -> types.ModuleType:
    """The module of a device: `cpu`, `cuda`, ..."""
    kind = "cpu" if device is None else dev.Device(device).type
    found = {"cpu": cpu, "cuda": cuda, "mps": mps, "xpu": xpu, "mtia": mtia}.get(kind)
    if found is None:
        raise errors.DeviceError(f"there is no module for device type '{kind}' "
                                 f"({errors.user_line(2)})")
    return found
