"""Names of PyTorch that this package leaves out, and why.

Asking for one gives a function that says so when it is called, or a class of which nothing is an
instance and nothing can be made; so programs that only mention a name run.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import types

from . import errors
from .facade import OWN, elsewhere, public_path

# family -> (what it belongs to, what to do instead)
WHY = {
    "sparse": ("an older form of sparse tensors",
               "use torch.sparse_coo_tensor, or to_sparse_semi_structured() of torch.sparse"),
    "quantised": ("an older form of quantised tensors",
                  "use torch.ao.quantization, or the functions of torch.ops.quantized"),
    "graphs": ("other ways of quantising graphs",
               "use prepare_fx() and convert_fx() of quantize_fx, prepare() and convert(), or "
               "quantize_dynamic()"),
    "script": ("the compiler of TorchScript", "jit.script and jit.trace run the Python program"),
    "dispatch": ("the dispatcher of PyTorch", "overrides.TorchFunctionMode sees every call"),
    "pipes": ("datapipes", "write a Dataset or an IterableDataset"),
    "accelerator": ("an accelerator's driver", "ask is_available() first"),
    "package": ("archives of code", "install the program, and save state_dicts"),
    "valgrind": ("instruction counts by Valgrind", "Timer measures times"),
    "fuzzer": ("inputs made at random for benchmarks", "write the inputs down"),
    "archives": ("switches of PyTorch's file format", "save and load take no such options"),
    "onnx": ("the exporter to ONNX", "save the parameters: save(module.state_dict(), file)"),
    "traces": ("traces of another profiler", "profiler.profile writes Chrome traces"),
    "phones": ("programs for phones", "compile writes a C file of a function"),
    "flash": ("implementations of attention to choose from",
              "scaled_dot_product_attention needs no choice here"),
    "replicas": ("copies of a module on several devices", "call the module itself"),
    "guards": ("the guards of PyTorch's compiler", "leave them to compile()"),
}

# module (of this package; "" is its root) -> family -> names
NAMES: dict[str, dict[str, str]] = {
    "": {
        "quantised": """QInt32Storage QInt8Storage QUInt2x4Storage QUInt4x2Storage
            QUInt8Storage""",
        "script": """AggregationType AliasDb AnyType Argument ArgumentSpec AwaitType BenchmarkConfig
            BenchmarkExecutionStats Block BoolType BufferDict CallStack Capsule ClassType Code
            CompilationUnit CompleteArgumentSpec ComplexType ConcreteModuleType
            ConcreteModuleTypeBuilder DeepCopyMemoTable DeserializationStorageContext DeviceObjType
            DictType EnumType ErrorReport ExecutionPlan FatalError FloatType FunctionSchema
            FutureType Gradient Graph GraphExecutorState IODescriptor InferredType IntType
            InterfaceType JITException ListType LiteScriptModule LockingLogger LoggerBase ModuleDict
            Node NoneType NoopLogger NumberType OperatorInfo OptionalType ParameterDict PyObjectType
            PyTorchFileReader PyTorchFileWriter RRefType ScriptClass ScriptClassFunction ScriptDict
            ScriptDictIterator ScriptDictKeyIterator ScriptList ScriptListIterator ScriptMethod
            ScriptModuleSerializer ScriptObjectProperty SerializationStorageContext
            StaticModule StreamObjType StringType SymBoolType SymIntType TensorType
            ThroughputBenchmark TracingState TupleType Type UnionType Use Value import_ir_module
            import_ir_module_from_buffer merge_type_from_type_comment parse_ir parse_schema
            parse_type_comment unify_type_list""",
        "dispatch": "DispatchKey DispatchKeySet ExcludeDispatchKeyGuard",
    },
    "sparse": {"sparse": """SparseSemiStructuredTensorCUSPARSELT SparseSemiStructuredTensorCUTLASS
        FloatTensor DoubleTensor HalfTensor BFloat16Tensor IntTensor LongTensor ShortTensor
        CharTensor ByteTensor"""},
    "ao.quantization": {
        "graphs": """AffineQuantizedObserverBase Granularity MappingType MatchAllNode PerAxis
            PerBlock PerGroup PerRow PerTensor PerToken TorchAODType ZeroPointDomain get_block_size
            get_fuser_method_new get_default_static_quant_reference_module_mappings""",
        "script": """convert_dynamic_jit convert_jit fuse_conv_bn_jit prepare_dynamic_jit
            prepare_jit quantize_dynamic_jit quantize_jit script_qconfig script_qconfig_dict"""},
    "ao.quantization.quantize_fx": {"graphs": "attach_preserved_attrs_to_model"},
    "package": {"package": """PackageImporter PackageExporter Directory EmptyMatchError
        GlobGroup ObjMismatchError ObjNotFoundError OrderedImporter PackagingError Importer
        sys_importer analyze is_from_package"""},
    "monitor": {"traces": """Aggregation Event EventHandlerHandle Stat TensorboardEventHandler
        data_value_t log_event register_event_handler unregister_event_handler"""},
    "utils.mobile_optimizer": {"phones": """optimize_for_mobile generate_mobile_module_lints
        LintCode MobileOptimizerType"""},
    "jit": {"script": """CompilationUnit ONNXTracedModule RecursiveScriptClass ScriptWarning
        TracedModule TracerWarning enable_onednn_fusion export_opnames fuser
        jit_module_from_flatbuffer onednn_fusion_enabled optimized_execution
        run_frozen_optimizations save_jit_module_to_flatbuffer set_fusion_strategy
        strict_fusion"""},
    "utils.data": {"pipes": """DFIterDataPipe DataChunk IterDataPipe MapDataPipe
        argument_validation functional_datapipe guaranteed_datapipes_determinism non_deterministic
        runtime_validation runtime_validation_disabled"""},
    "utils.benchmark": {
        "valgrind": "CallgrindStats CopyIfCallgrind FunctionCount FunctionCounts",
        "fuzzer": "FuzzedParameter FuzzedSparseTensor FuzzedTensor Fuzzer ParameterAlias"},
    "serialization": {"archives": """check_module_version_greater_or_equal
        default_restore_location get_crc32_options get_default_mmap_options location_tag
        normalize_storage_type register_package set_crc32_options set_default_mmap_options
        skip_data storage_to_tensor_type validate_cuda_device validate_hpu_device"""},
    "onnx": {"onnx": """ExportableModule InputObserver JitScalarType ONNXProgram
        OnnxExporterError ops select_model_mode_for_export"""},
    "autograd.profiler": {"traces": """EnforceUnique KinetoStepTracker MemRecordsAcc load_nvprof
        parse_nvprof_trace"""},
    "profiler": {"traces": "DeviceType ExecutionTraceObserver"},
    "nn.attention": {"flash": """activate_flash_attention_impl current_flash_attention_impl
        list_flash_attention_impls register_flash_attention_impl restore_flash_attention_impl"""},
    "nn.parallel": {
        "replicas": "DistributedDataParallelCPU gather parallel_apply replicate scatter"},
    "compiler": {"guards": """CacheInfo keep_portable_guards_unsafe keep_tensor_guards_unsafe
        load_cache_artifacts load_compiled_function save_cache_artifacts
        set_enable_guard_collectives skip_all_guards_unsafe skip_guard_on_all_nn_modules_unsafe
        skip_guard_on_globals_unsafe skip_guard_on_inbuilt_nn_modules_unsafe"""},
    "cuda": {"accelerator": """CUDAPluggableAllocator CudaError DeferredCudaCallError ExternalStream
        GreenContext caching_allocator_alloc caching_allocator_delete caching_allocator_disabled
        caching_allocator_enable can_device_access_peer change_current_allocator check_error
        clock_rate cudaStatus cudart current_blas_handle current_solver_handle device_memory_used
        get_allocator_backend get_gencode_flags get_per_process_memory_fraction
        get_stream_from_external get_sync_debug_mode graph_pool_handle host_memory_stats
        host_memory_stats_as_nested_dict list_gpu_processes make_graphed_callables memory_snapshot
        memory_stats_as_nested_dict memory_summary memory_usage power_draw
        reset_accumulated_host_memory_stats reset_max_memory_cached reset_peak_host_memory_stats
        set_per_process_memory_fraction set_sync_debug_mode temperature use_mem_pool
        utilization"""},
    "mps": {"accelerator": """compile_shader current_allocated_memory driver_allocated_memory
        load_metallib recommended_max_memory set_per_process_memory_fraction"""},
    "xpu": {"accelerator": """XPUGraph XPUPluggableAllocator can_device_access_peer
        change_current_allocator clock_rate device_memory_used get_gencode_flags
        get_per_process_memory_fraction get_stream_from_external graph_pool_handle
        make_graphed_callables memory_snapshot memory_stats_as_nested_dict memory_usage power_draw
        set_per_process_memory_fraction temperature use_mem_pool utilization"""},
    "mtia": {"accelerator": """DeferredMtiaCallError MTIAGraph attach_out_of_memory_observer
        graph_pool_handle record_memory_history snapshot"""},
    "accelerator": {"accelerator": "Graph empty_host_cache get_memory_info"},
    "backends.cuda": {"accelerator": """SDPAParams can_use_cudnn_attention cuBLASModule
        cuFFTPlanCache cuFFTPlanCacheAttrContextProp cuFFTPlanCacheManager"""},
}  # fmt: skip
MODULES = ("package", "monitor")  # that have nothing else


@functools.cache
def _table(module: str) -> dict[str, str]:
    """Name -> family."""
    families = NAMES.get(module, {})
    return {name: family for family, names in families.items() for name in names.split()}


@functools.cache
def find(module: str, name: str):
    """What stands for a name that a module of this package leaves out; None if it does not."""
    family = _table(module).get(name)
    if family is None:
        return None
    whole = f"torch.{module}.{name}" if module else f"torch.{name}"
    what, cure = WHY[family]

    def refuse(*args, **kwargs):
        raise errors.NotInThisBuild(errors.text(
            f"{whole} was asked for ({errors.user_line(2)}), but it belongs to {what}, which this "
            "package does not have", cure=cure))

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Not here: it belongs to {what}."
    if name[0].islower():
        return refuse
    return type(name, (), {"__new__": refuse, "__doc__": refuse.__doc__, "__module__": "torch"})


def getter(module: str):
    """A module's `__getattr__`: the names that it leaves out."""
    path = public_path(module)

    def __getattr__(name: str):
        found = None if name.startswith("__") else find(path, name)
        return elsewhere(module, name) if found is None else found

    return __getattr__


class Nothing(types.ModuleType):
    """A module of which nothing is here but the refusals."""

    def __init__(self, path: str):
        super().__init__(f"{__package__}.{path}", f"Not here: {WHY[next(iter(NAMES[path]))][0]}.")
        self.__path__: list[str] = []
        self.__dict__["__getattr__"] = getter(self.__name__)
        self.__all__ = sorted(_table(path))


modules = functools.cache(Nothing)


class Facts(types.ModuleType):
    """A module made of a table; `switches` of it can be set for a while with `flags(...)`."""

    def __init__(self, path: str, doc: str, facts: dict):
        super().__init__(f"{OWN}.{path}", doc)
        self.__path__: list[str] = []
        self.__dict__.update(facts)
        sys.modules[self.__name__] = self
        parent, _, tail = self.__name__.rpartition(".")
        if isinstance(sys.modules.get(parent), Facts):
            setattr(sys.modules[parent], tail, self)

    def __getattr__(self, name: str):
        return getter(self.__name__)(name)

    @contextlib.contextmanager
    def flags(self, *args, **changes):
        """Other switches for a while."""
        before = {name: getattr(self, name, None) for name in changes}
        self.__dict__.update(changes)
        try:
            yield
        finally:
            self.__dict__.update(before)


def always(value):
    """A function that answers the same to everything."""
    return lambda *args, **kwargs: value


def nothing(*args, **kwargs) -> None:
    """There is nothing to do."""
