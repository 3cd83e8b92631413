"""Every exception class of the package, with its cause and its cure.

The first line of a message says what happened in the user's words, with the user's file and line;
then comes the state (shapes, versions, operators); then one or two cures.  Each class also
derives from the builtin type that PyTorch raises in the same place, so `except RuntimeError`
keeps working. The docstrings below are the pages of `docs/errors.md`.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import warnings
import weakref
from bisect import bisect_right
from collections.abc import Iterable
from pickle import UnpicklingError
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_INTERNAL = (_HERE, "<pullback")
_BLOCKS = contextlib.contextmanager.__code__.co_filename  # decorators made of `with` blocks
# Files that exist in memory only, made from graphs: which line of the user's a line there is from.
generated: dict = {}


def is_users(filename: str) -> bool:
    """Is a file the user's: neither of this package nor the one that runs decorators?"""
    return not filename.startswith(_INTERNAL) and filename != _BLOCKS


def module_of(thing: object) -> str:
    """The module that a function or class says it is from; empty where that is no text, as for
    classes in C with a descriptor of this name."""
    found = getattr(thing, "__module__", None)
    return found if isinstance(found, str) else ""


def user_line(depth: int = 1) -> str:
    """The innermost `file:line` outside of this package."""
    frame = sys._getframe(depth)
    while frame is not None:
        name = frame.f_code.co_filename
        if is_users(name):
            return f"{os.path.basename(name)}:{line_of(frame)}"
        frame = frame.f_back
    return "<unknown>:0"


def warn(text: str, kind: type[Warning] = UserWarning) -> None:
    """Warn at the user's line."""
    frame, level = sys._getframe(1), 2
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, kind, stacklevel=level)


said: set[str] = set()  # what was warned of
warnings_repeat = False  # what `set_warn_always` was given


def warn_once(about: str, text: str, kind: type[Warning] = UserWarning) -> None:
    """Warn at the user's line, once per process for each matter unless `set_warn_always`."""
    if about not in said or warnings_repeat:
        said.add(about)
        warn(text, kind)


def describe_place(where: tuple | None) -> str:
    """`file:line` of a recorded place (code object, instruction offset)."""
    if where is None:
        return "an unrecorded line"
    return f"{os.path.basename(where[0].co_filename)}:{_line(where)}"


users: set = set()  # names of files that are known not to be of this package
_own: set = set()  # of those that are


def place(depth: int = 2) -> tuple:
    """The user's place: code object and instruction offset of the innermost outer frame.

    Looking at a frame makes an object of it, so those known to be ours are skipped by `depth`.
    """
    frame = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        name = code.co_filename
        if name not in _own:
            if name in users or not name.startswith(_INTERNAL):
                users.add(name)
                return code, frame.f_lasti
            if name[0] != "<":  # generated functions come and go
                _own.add(name)
        frame = frame.f_back
    return None


def line_of(frame) -> int:
    """The line at which a frame is; for long functions, such as those of graphs, in constant time
    (Python counts lines from the function's start each time)."""
    last = frame.f_lasti
    return frame.f_lineno if last < _SHORT else _line((frame.f_code, last))


_SHORT = 1 << 12  # bytes of instructions
_tables: dict = {}  # id of a code object -> a reference to it, starts of its ranges, lines


def _line(where: tuple) -> int:
    """The line of an instruction of a code object, that before it where it has none."""
    code, last = where
    found = _tables.get(id(code))
    if found is None:
        starts, lines, line = [], [], code.co_firstlineno
        for start, _, number in code.co_lines():
            line = line if number is None else number
            starts.append(start)
            lines.append(line)
        key = id(code)
        found = weakref.ref(code, lambda _, held=_tables: held.pop(key, None)), starts, lines
        _tables[key] = found
    _, starts, lines = found
    return lines[max(bisect_right(starts, last) - 1, 0)] if lines else code.co_firstlineno


def traceback_line(where: tuple | None) -> str | None:
    """A recorded place as it stands in a traceback; None if it is not the user's."""
    if where is None or where[0].co_filename.startswith(_INTERNAL):
        return None
    if where[0].co_filename in generated:
        return generated[where[0].co_filename](_line(where))
    return f'  File "{where[0].co_filename}", line {_line(where)}, in {where[0].co_name}'


def variable_of(value, depth: int = 2) -> str:
    """`, 'name' (set at file:line)`: the user's variable that holds a value, if one does."""
    import dis

    frame, name = sys._getframe(depth), None
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_INTERNAL):
            name = name or next((k for k, v in frame.f_locals.items() if v is value), None)
            if name is not None and frame.f_locals.get(name) is value:
                sets = [
                    i.offset
                    for i in dis.get_instructions(code)
                    if i.opname.startswith("STORE_")
                    and (i.argval == name or type(i.argval) is tuple and name in i.argval)
                    and i.offset <= frame.f_lasti
                ]
                if sets:
                    return f", '{name}' (set at {describe_place((code, sets[-1]))})"
        frame = frame.f_back
    return "" if name is None else f", '{name}'"


def close_matches(name: str, known: Iterable[str], count: int = 3, alike: float = 0.6) -> list[str]:
    """Names that somebody who wrote this one may have meant."""
    import difflib  # most programs make no mistakes

    return difflib.get_close_matches(name, known, count, alike)


def public_name(operator: str) -> str:
    """An operator by the name that programs call it by: `linalg_det` is `linalg.det`."""
    return re.sub(r"^(linalg|fft|special)_(?=\w)", r"\1.", operator.lstrip("_"))


def text(what: str, state: str | list[str] = (), cure: str | list[str] = ()) -> str:
    """Compose a message: what happened, the state, the cure."""
    state = [state] if isinstance(state, str) else list(state)
    cure = [cure] if isinstance(cure, str) else list(cure)
    lines = [what] + ["  " + line for line in state if line] + ["  Fix: " + c for c in cure if c]
    return "\n".join(lines)


def named(kind: type, name: str, what: str, state: list[str] = (), cure: str = "") -> Exception:
    """An error of an operator or method: its name and the user's line come first."""
    first, *rest = what.strip().splitlines() or [""]
    return kind(text(f"{name} ({user_line(2)}): {first}", [*rest, *state], cure or kind.cure))


def located(error: PullbackError, state: list[str] = ()) -> None:
    """Give an error the user's line in its first line and a cure, whoever raised it."""
    first, *rest = str(error).splitlines() or [""]
    if not re.search(r"\S+:\d+\)?", first):
        first = f"{first} ({user_line(2)})"
        if not any("Fix:" in line for line in rest):
            rest += text("", state, error.cure).splitlines()[1:]
        error.args = ("\n".join([first, *rest]),)


_DTYPE_WORDS = (
    "dtype",
    "scalar type",
    "not implemented for",
    "data type",
    "floating point",
    "integral",
)


def translated(name: str, error: Exception, state: str | list[str] = ()) -> Exception:
    """A plain exception as the class of this package that derives from its type."""
    what = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    if isinstance(error, IndexError):
        return named(DimError, name, what, state)
    if isinstance(error, TypeError):
        return named(ArgumentError, name, what, state)
    if isinstance(error, ValueError):
        return named(BadValue, name, what, state)
    if type(error) is RuntimeError:
        if any(word in what for word in _DTYPE_WORDS):
            return named(DTypeError, name, what, state)
        shapes = any(word in what.lower() for word in _SHAPE_WORDS)
        return named(ShapeError if shapes else RefusedValue, name, what, state)
    return error


_SHAPE_WORDS = ("shape", "size", "dim", "broadcast", "element", "length", "stride", "row", "column",
                "batch", "channel", "class", "empty", "scalar", "tensor", "matri", "vector", "-d ")


class PullbackError(Exception):
    """Base of all errors of this package.

    Catch it to tell this package's refusals from any other exception.
    """

    cure = ""  # what to do, where the place that raises knows nothing better


class ShapeError(PullbackError, RuntimeError):
    """Shapes do not fit the operator.

    Cause: operands cannot be broadcast, inner sizes of a matrix product differ, or a view does
    not have as many elements as its input.  Cure: compare the shapes in the message; `unsqueeze`,
    `transpose` or `reshape` the operand that is wrong.
    """

    cure = "compare the shapes; unsqueeze, transpose or reshape the operand that is wrong"


class DTypeError(PullbackError, RuntimeError):
    """The operator does not take this dtype, or a result cannot be stored in the given tensor.

    Cause: for instance `mean` of integers, or writing floats into an integer tensor in place.
    Cure: convert with `.float()` / `.to(dtype)` first, or use the out-of-place operator.
    """

    cure = "convert with .to(dtype) first"


class DeviceError(PullbackError, RuntimeError):
    """Tensors live on different devices, or the device does not exist here.

    Cure: move with `.to(device)`; for `cuda` install the extra `pullback[cuda]`.
    """

    cure = "move the tensors to one device with .to(device)"


class DimError(PullbackError, IndexError):
    """A dimension or an index is out of range.

    Cure: dimensions run from `-ndim` to `ndim - 1`, indices in brackets from `-n` to `n - 1`, rows
    of `embedding` and `index_select` from 0 to `n - 1`.
    """

    cure = ("dimensions and indices in brackets run from -n to n - 1, rows of embedding and "
            "index_select from 0 to n - 1")


class ArgumentError(PullbackError, TypeError):
    """The arguments match no overload of the operator.

    Cure: the message lists the accepted signatures.
    """


class CallMismatch(ArgumentError, RuntimeError):
    """The arguments do not match the schema of a registered operator.

    Cure: the message lists the signature.
    """


class UnknownOperator(PullbackError, AttributeError, RuntimeError):
    """No operator of this name was defined.

    Cure: define it first, with `library.custom_op` or `Library(...).define`.
    """

    cure = "define it first, with custom_op or Library(...).define"


class BadValue(PullbackError, ValueError):
    """An argument has a value that the operator does not take.

    Cause: for instance a slice with a negative step.  Cure: as the message says.
    """


class UnknownSetting(PullbackError, AttributeError, RuntimeError):
    """A `config` has no setting of this name.

    Cure: the message names those that look alike; `config.to_dict()` has all of them.
    """


class RefusedValue(PullbackError, RuntimeError):
    """An argument has a value that the operator does not take.

    Cause: for instance a quantile outside of [0, 1].  `BadValue` is the same where PyTorch raises
    a ValueError.  Cure: as the message says.
    """


class LinAlgError(PullbackError, RuntimeError):
    """A matrix has no inverse, solution or factorization of the kind that was asked for.

    Cause: the matrix is singular, not positive-definite, or has infinite or undefined elements.
    Cure: check the matrix; adding a small multiple of the identity often helps; the operators
    whose names end in `_ex` return `info` instead of raising.
    """


class LeafWriteError(PullbackError, RuntimeError):
    """An in-place operator was called on a leaf that requires grad (or on a view of one).

    Cause: the old value would be needed as the place where gradients arrive.  Cure: run the update
    under `no_grad()`, or compute on `x.clone()`.
    """


class InferenceTensor(PullbackError, RuntimeError):
    """A tensor made in `inference_mode` was used in a way that needs versions or gradients.

    Cause: such tensors are not tracked: outside of the mode they cannot be written, require grad
    or be saved for backward.  Cure: `clone()` it outside of the mode, or use `no_grad` instead.
    """


class ViewWriteError(PullbackError, RuntimeError):
    """An in-place operator was called on a view that must not be written.

    Cause: the view is one of several made by one call (`split`, `unbind`), was made under
    `no_grad`, or its elements share memory (`expand`).  Cure: clone the view first, or index the
    base directly.
    """


class SavedValueModified(PullbackError, RuntimeError):
    """A value that a gradient needs was overwritten in place after it was saved.

    Cause: the tensor was used by an operator whose derivative needs it, then changed by an
    in-place operator. Cure: use the out-of-place operator, or clone before writing.
    """


class GraphFreed(PullbackError, RuntimeError):
    """Backward ran a second time through a graph whose saved values were released.

    Cure: pass `retain_graph=True` to the first `backward()`/`grad()`.
    """


class LayoutError(PullbackError, NotImplementedError):
    """An operator, or a function, does not take tensors of this layout.

    Sparse, nested, masked and quantised tensors have the operators that mean something for them.
    """

    cure = "convert the tensor first, for instance with .to_dense()"

    def of(self, name: str) -> LayoutError:
        """The same in the name of the function that was called, of which an operator refused."""
        first, *rest = str(self).splitlines() or [""]
        within, told, what = first.partition(": ")
        if told and re.fullmatch(r"[\w.]+", within) and not name.startswith("_"):
            self.args = ("\n".join([f"{public_name(name)}: {what}", *rest]),)
        return self


class NoGraph(PullbackError, RuntimeError):
    """Backward was asked of a tensor that has no history.

    Cause: no input required grad, the computation ran under `no_grad`, or the tensor was detached.
    Cure: call `requires_grad_()` on an input before computing.
    """


class GradientShapeError(PullbackError, RuntimeError):
    """A gradient does not have the shape, dtype or kind of the tensor that it belongs to.

    Cure: give `backward(gradient=...)` a tensor of the output's shape; return from a custom
    backward a gradient of the input's shape.
    """


class NotFinite(PullbackError, RuntimeError):
    """An operator made infinities or NaN out of finite numbers, and somebody asked to be told.

    Cause: a division by zero, the logarithm or root of zero, an overflow; or the gradient of a
    branch that `where` discards, which is 0 times infinity.  Cure: as the message says.  Raised
    under `debug.nans()` and `autograd.detect_anomaly()` only.
    """


class UnusedInput(PullbackError, RuntimeError):
    """An input of `autograd.grad` was not used in the graph of the outputs.

    Cure: pass `allow_unused=True` (its gradient is then None) or `materialize_grads=True`.
    """


class NotDifferentiable(PullbackError, RuntimeError):
    """The operator has no derivative with respect to an argument that requires grad.

    Cause: mathematically there is none, or the argument is not meant to be differentiated.
    Cure: `detach()` the argument.
    """


class NoFormula(PullbackError, NotImplementedError):
    """There is no formula for a quantity of a distribution, a constraint or a transform.

    Cause: it has no closed form, or does not exist at all; PyTorch raises here too.  Cure: estimate
    it from samples; for the divergence of two distributions, write a function and register it with
    `register_kl`.
    """


class DerivativeNotWritten(PullbackError, NotImplementedError):
    """The operator's table entry has no derivative formula for the transform that was asked.

    Cure: add the formula to the entry that the message names (CONTRIBUTING.md says how).
    """


class NotInThisBuild(PullbackError, NotImplementedError):
    """The operator has a place in PyTorch's registry, but this package does not provide it.

    Cause: it belongs to sparse or nested tensors, or to packed weights of one vendor's library; or
    it was called with an argument that only such a library knows.  Cure: the message names the
    dense operator that does the same; `python -m pullback table` lists all of these operators.
    """

    cure = "use the operator for dense tensors"


class LibraryError(PullbackError, OSError):
    """A binary library of operators for PyTorch was to be loaded (`ops.load_library`).

    Cause: such files call functions inside of PyTorch's own binary, which is not there.  Packages
    that bring one usually go on without it.  Cure: register the operators in Python.
    """

    cure = "register the operators that the program needs in Python, with library.custom_op"


class MetadataMismatchError(PullbackError, RuntimeError):
    """A tensor without data is not as the real one: another shape, dtype, stride or device.

    Cause: `CrossRefFakeMode` or `fake_tensor_propagate_real_tensors` compares what operators make
    of shapes with what they make of data, and the fake of a custom operator is wrong.  Cure:
    correct the function given to `register_fake`.
    """


class EscapedTensor(PullbackError, RuntimeError):
    """A tensor made inside a transform was used after the transform had finished.

    Cause: a value computed under `vmap` or a trace was kept in an outer variable. (From `grad` and
    `jvp` such a value is the plain number, without its derivative.)
    Cure: return it from the transformed function instead.
    """


class BatchedWriteError(PullbackError, RuntimeError):
    """A value that differs per example was written into a tensor from outside of `vmap`.

    Cure: create the tensor inside the mapped function, or pass it as a mapped argument.
    """


class UserError(PullbackError, RuntimeError):
    """A program cannot be captured or exported as it was asked for.

    Cause: arguments of `export` that are no tuple, `dynamic_shapes` of another structure, or a
    Python decision about data.  Cure: as the message says.
    """

    @property
    def msg(self) -> str:
        """The message."""
        return str(self)


class DataDependentError(UserError):
    """The program asked for a value while only shapes are known (capture, fake tensors, vmap).

    Cause: `if tensor:`, `.item()`, `nonzero` and the like depend on data.  Cure: use `where`, or
    keep the decision outside of the compiled function.
    """


class DynamicOutputShapeException(DataDependentError):
    """An operator's result has a size that only the data decides (`nonzero`, `unique`, masks).

    Cure: capture with symbolic sizes, where such a size is a symbol of its own (in `compile`, with
    `_dynamo.config.capture_dynamic_output_shape_ops`), or keep the operator outside of the captured
    function.
    """


class GuardOnDataDependentSymNode(DataDependentError):
    """The program asked about a size that only the data decides, as in `if x.nonzero().shape[0]`.

    Cure: say what holds with `torch._check`, or use `where` or `cond` instead of Python's `if`.
    """


class ConstraintViolationError(UserError):
    """A size that was marked as dynamic had to be fixed by the capture.

    Cause: the function uses the number itself (`int`, `range`, a comparison with a constant), or
    the size is 0 or 1.  Cure: the line named in the message, or `maybe_mark_dynamic`.
    """


class FormulaError(PullbackError, ValueError):
    """A derivative formula of the operator table is malformed.

    Cause: an unknown name, mixed gradient spellings, a wrong count, and so on; the message quotes
    the entry.  Cure: correct the formula; the names in scope are listed.
    """


class SchemaError(PullbackError, ValueError, RuntimeError):
    """An operator schema does not follow the grammar, or names an unknown operator."""


class CompileError(PullbackError, RuntimeError):
    """A captured graph could not be compiled.

    Cause: a broken compiler or an unusable cache directory.  Cure: as the message says;
    `PULLBACK_CC` selects a compiler, `PULLBACK_CACHE_DIR` the cache.
    """


class AliasedInputs(CompileError, AssertionError):
    """Inputs of a compiled function share memory, one of them is written, and they have no base in
    common.

    Cause: `aot.config.strict_input_aliases` asks for PyTorch's restrictions.  Cure: `clone()` one
    of the inputs, or leave the setting off: then such inputs are no problem.
    """


class OverBudget(CompileError):
    """A compiled function needs more memory than `compile(memory=...)` allows.

    Cause: even with everything computed again, what is alive at once is larger; the message says
    how large.  Cure: allow that much, or make the inputs smaller.
    """


class CheckFailed(CompileError, AssertionError):
    """A compiled function does something else than the function itself: `compile(check=True)`.

    Cause: a mistake in this package, or a function that is another each time in a way that nobody
    sees.  The message names what differs and the first node of the graph that does, with its line.
    Cure: `backend="numpy"` where native code is wrong, or no `compile`; and a report.
    """


class ExportError(PullbackError, RuntimeError):
    """A function cannot be exported, or an exported program is not called as it was exported.

    Cause: it does something that a graph of values cannot say, such as changing the shape of an
    input in place; or the arguments differ in number, structure, dtype or shape from those that it
    was exported with.  Cure: as the message says.
    """


class SpecViolationError(ExportError):
    """The graph of an exported program, its signature and its tensors contradict each other.

    Cause: one of them was changed alone, or the graph has calls that a program must not have:
    modules, methods, operators that write.  Cure: change them together.
    """


class SignatureError(ExportError, ValueError, AssertionError):
    """An exported program was called with other arguments than it was exported for.

    Cause: another number, another structure, dtype or shape, or another value where the value is
    part of the program.  Cure: pass what the message names, or export the module for it.
    """


class TransformError(PullbackError, RuntimeError):
    """A function transform was called with arguments that it cannot take.

    Cause: `in_dims` that do not fit the arguments, tangents of another shape, and so on.
    """


class MappingError(TransformError, ValueError):
    """`vmap` cannot map the function over what it was given, or return what it gave.

    Cause: `in_dims` or `out_dims` that do not fit, sizes that differ, outputs that are no tensors.
    """


class CheckpointError(PullbackError, RuntimeError):
    """A checkpointed function computed something else when it ran again.

    Cause: it depends on something that changed in between, such as global state.  Cure: make it a
    function of its arguments; `debug=True` shows the operators of both runs.
    """


class OrderError(PullbackError, RuntimeError, AssertionError):
    """A call that must come before or after another one, and did not.

    Cause: for instance `GradScaler.step` twice without `update` between.  Cure: as the message
    says.
    """


class LayerRefused(PullbackError, AssertionError):
    """A layer, or the dtype of its weights, that `utils.mkldnn.to_mkldnn` cannot take.

    Cause: its layers are for inference: batch normalisation in training, or without parameters or
    running statistics, is none, and neither are convolutions with padding by name or other than
    zeros.  Cure: call `module.eval()` first; leave out the layer that the message names.
    """


class InstallError(PullbackError, RuntimeError):
    """`install_as_torch()` while PyTorch itself is imported.

    Cause: a module that was imported earlier says `import torch` and found the real one.  Cure:
    call `install_as_torch()` first, or run the program with `python -m pullback run`.
    """


class UnsafePickle(PullbackError, UnpicklingError):
    """A file to load has a pickle that asks for more than values, or a damaged one.

    Cause: `load` reads pickles without running them and knows only tensors, plain values and what
    `serialization.add_safe_globals` allows.  Cure: save `state_dict()` instead of whole objects, or
    allow the class that the message names; `weights_only=False` runs the code that a file asks for.
    """


class FileFormatError(PullbackError, RuntimeError):
    """A file to load is damaged, cut off, of another kind, or made to do harm.

    Cause: sizes, places or names in it contradict each other or the size of the file.  Cure: get
    the file again from where it came.
    """


class WorkerError(PullbackError, RuntimeError):
    """A worker process ended without being told to, or before its message was read.

    Cause: it was killed (often because memory ran out), left by `os._exit`, or its interpreter
    crashed.  Cure: run with `num_workers=0` to see what happens, or with fewer workers.
    """


class ProcessException(PullbackError, RuntimeError):
    """A process that `multiprocessing.spawn` started has failed.

    Cause: its function raised (`ProcessRaisedException`, with the traceback) or it ended with an
    exit code or by a signal (`ProcessExitedException`).  Cure: what the traceback says.
    """

    def __init__(self, msg: str, error_index: int, error_pid: int):
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid

    def __reduce__(self) -> tuple:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """A process that `multiprocessing.spawn` started has raised; the message has its traceback."""


class ProcessExitedException(ProcessException):
    """A process that `multiprocessing.spawn` started ended with an exit code, or by a signal."""

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int,
                 signal_name: str | None = None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> tuple:
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code,
                            self.signal_name)


_COMPILER = (
    "CacheUnusable",
    "CodeNotSound",
    "CompileWarning",
    "CompilerFailed",
    "CompilerNotFound",
    "GraphNotSupported",
    "GraphTooLarge",
)


def freed(node: Any) -> GraphFreed:
    """The error for a node whose saved values are gone."""
    return GraphFreed(
        text(
            "Trying to backward through the graph a second time (or directly access saved tensors "
            "after they have already been freed): "
            f"the saved values of {node.name()} ({describe_place(node.where)}) are gone",
            cure="Specify retain_graph=True in the first backward() or grad()",
        )
    )


def operation_of(node: Any) -> str:
    """The operation that a node differentiates: `Mul`, or the class of a custom function."""
    return node.name().rpartition("::")[2].partition("Backward")[0]


def output_of(t: Any) -> str:
    """Which result of what a tensor is, for messages: `0 of Unbind`."""
    edge = t._edge
    node, number = (edge.node, edge.number) if hasattr(edge, "number") else (edge, 0)
    return f"{number} of {operation_of(node)}"


def modified(node: Any, name: str, value: Any) -> SavedValueModified:
    """The error for a saved value that was overwritten."""
    cell = value._cell
    if not cell.counted:
        return SavedValueModified(
            text(
                "Inference tensors cannot be saved for backward: the gradient of "
                f"{node.name()} ({describe_place(node.where)}) needs `{name}`, which was "
                "made in inference mode",
                f"{name}: {value.dtype.name}{list(value._payload.shape)}",
                "clone() it outside of inference_mode() first, or use no_grad() instead",
            )
        )
    late = sum(s > node.stamp for s in cell.stamps)
    expected = cell.version - late
    operation = operation_of(node).lower()
    made = "" if value._edge is None or hasattr(value._edge, "leaf") else (
        f"which is output {output_of(value)}, ")
    return SavedValueModified(
        text(
            "one of the variables needed for gradient computation has been modified by an "
            "inplace operation: "
            f"the gradient of `{operation}` ({describe_place(node.where)}) needs `{name}`, "
            "which was "
            f"overwritten at {describe_place(cell.where)} after it was saved",
            f"{name}: {value.dtype.name}{list(value._payload.shape)}, {made}is at version "
            f"{cell.version}; expected version {expected} instead",
            "use the out-of-place operator (x = x + y instead of x.add_(y)), or clone before "
            "writing",
        )
    )


def __getattr__(name: str) -> type:
    """The compiler's own classes; they live with the compiler, which is loaded when first used."""
    if name in _COMPILER:
        import importlib

        return getattr(importlib.import_module("pullback.compile.errors"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
