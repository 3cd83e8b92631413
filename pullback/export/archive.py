"""Files of programs: `program.txt` and `weights.safetensors`, in one zip file or in a folder.

`examples.safetensors` has the arguments of the export, if they were tensors with values.
"""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
from typing import IO, Any

import numpy as np

from .. import errors, safetensors
from ..core.handle import Tensor, make
from ..facade import for_torch
from ..nn.parameter import Parameter
from ..pytree import tree_flatten, tree_unflatten
from ..serialization.archive import Archive, Writer, replacing
from .check import check_program
from .graph_signature import ConstantArgument, InputKind
from .parse import Parsed, parse
from .program import ExportedModule, ExportedProgram
from .reader import alike
from .text import program_text, type_text

MODEL = "models/model.json"  # by which PyTorch's own files (`torch/pt2.py`) are known
TEXT, WEIGHTS, EXAMPLES = "program.txt", "weights.safetensors", "examples.safetensors"
File = str | os.PathLike | IO[bytes]


def save(
    ep: ExportedProgram,
    f: File,
    *,
    extra_files: dict[str, Any] | None = None,
    opset_version: dict[str, int] | None = None,
    format: str = "text",
) -> None:
    """Write a program: to a file, or into a folder if `f` is one (or ends with a slash).

    The text is for reading and comparing, the weights are in safetensors format.  `format="pt2"`
    writes a file for PyTorch instead.
    """
    if not isinstance(ep, ExportedProgram):
        raise errors.ArgumentError(
            f"The 'ep' parameter must be an instance of 'ExportedProgram', got "
            f"'{type(ep).__name__}' instead. ({errors.user_line(2)})")
    if format == "pt2":
        data = for_torch("pt2_writer").archive(ep, extra_files)
        if isinstance(f, (str, os.PathLike)):
            with replacing(f) as file:
                file.write(data)
        else:
            f.write(data)
        return
    if format != "text":
        raise errors.BadValue(
            f"save(): format={format!r}; it is 'text' or 'pt2' ({errors.user_line(2)})")
    text = program_text(ep).encode()
    parse(text.decode())  # what is written can be read
    records = {TEXT: text, WEIGHTS: safetensors.save(_weights(ep))}
    examples = _examples(ep)
    if examples:
        with contextlib.suppress(errors.BadValue):  # of a dtype that such files do not have
            records[EXAMPLES] = safetensors.save(examples)
    folder = isinstance(f, (str, os.PathLike)) and (os.path.isdir(f) or str(f).endswith("/"))
    if folder:
        os.makedirs(f, exist_ok=True)
        for name, data in records.items():
            with replacing(Path(f) / name) as file:
                file.write(data)
        if EXAMPLES not in records:
            (Path(f) / EXAMPLES).unlink(missing_ok=True)  # of a program that was there before
        return
    if isinstance(f, (str, os.PathLike)):
        with replacing(f) as file:
            _write(file, records, extra_files)
    else:
        _write(f, records, extra_files)


def _write(file: IO[bytes], records: dict[str, bytes], extra: dict[str, Any] | None) -> None:
    writer = Writer(file, "program")
    for name, data in records.items():
        writer.add(name, data)
    for name, data in (extra or {}).items():
        writer.add(f"extra/{name}", data.encode() if isinstance(data, str) else data)
    writer.close()


def _weights(ep: ExportedProgram) -> dict[str, Tensor]:
    """All tensors that the program holds, each with memory of its own."""
    out = {}
    for spec in ep.graph_signature.input_specs:
        if spec.kind is not InputKind.USER_INPUT:
            value = ep.tensor(spec.target).detach()
            out[spec.target] = value.clone(memory_format=None).contiguous()
    return out


def _examples(ep: ExportedProgram) -> dict[str, Tensor]:
    """The tensors that the program was exported with, by the names of the inputs."""
    if ep.example_inputs is None:
        return {}
    names = [s.arg.name for s in ep.graph_signature.input_specs if s.kind is InputKind.USER_INPUT]
    leaves = tree_flatten(ep.example_inputs)[0]
    found = {n: v.detach() for n, v in zip(names, leaves) if isinstance(v, Tensor)}
    if any(type(v._payload) is not np.ndarray for v in found.values()):
        return {}  # without values
    return {n: v.clone(memory_format=None).contiguous() for n, v in found.items()}


def load(
    f: File,
    *,
    extra_files: dict[str, Any] | None = None,
    expected_opset_version: dict[str, int] | None = None,
) -> ExportedProgram:
    """Read a program that `save` has written; none of it is run, and no code is needed.

    `extra_files` names the records that are wanted; their contents are put into it.
    """
    if isinstance(f, (str, os.PathLike)) and os.path.isdir(f):
        try:
            text, weights = (Path(f) / TEXT).read_bytes(), (Path(f) / WEIGHTS).read_bytes()
        except FileNotFoundError as error:
            raise _refused(f"the folder has no {Path(error.filename).name}") from None
        known = Path(f) / EXAMPLES
        return _program(text, weights, known.read_bytes() if known.exists() else None)
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return _load(file, extra_files)
    if not hasattr(f, "read"):
        raise errors.ArgumentError(
            f"load(): a name of a file or a file is wanted, got {f!r:.60} ({errors.user_line(2)})")
    return _load(f if f.seekable() else io.BytesIO(f.read()), extra_files)


def _load(file: IO[bytes], extra: dict[str, Any] | None) -> ExportedProgram:
    archive = Archive(file)
    if TEXT not in archive and MODEL in archive:  # PyTorch's own format
        for name in extra or {}:
            extra[name] = archive.read(f"extra/{name}").decode()
        return for_torch("pt2").read(archive)
    for name in (TEXT, WEIGHTS):
        if name not in archive:
            raise _refused(f"the file has no {name}: it is no exported program")
    for name in extra or {}:
        extra[name] = archive.read(f"extra/{name}").decode()
    examples = archive.read(EXAMPLES) if EXAMPLES in archive else None
    return _program(archive.read(TEXT), archive.read(WEIGHTS), examples)


def _program(text: bytes, weights: bytes, examples: bytes | None = None) -> ExportedProgram:
    try:
        parsed = parse(text.decode())
    except UnicodeDecodeError:
        raise _refused("the text of the program is no text") from None
    state, constants = _held(parsed, safetensors.load(bytes(weights)))
    program = ExportedProgram(
        parsed.module, parsed.signature, state, constants, parsed.call_spec, parsed.names,
        env=parsed.env)
    check_program(program)
    try:
        ExportedModule(program)  # names that no module can have
    except KeyError as error:
        raise _refused(f"the program cannot be a module: {error.args[0]}") from None
    if examples is not None:
        _exemplify(program, safetensors.load(bytes(examples)))
    return program


def _exemplify(program: ExportedProgram, found: dict[str, Tensor]) -> None:
    """Give a program the arguments that it was exported with."""
    leaves = []
    vals = {n.name: n.meta.get("val") for n in program.graph.find_nodes(op="placeholder")}
    for spec in program.graph_signature.input_specs:
        if spec.kind is not InputKind.USER_INPUT:
            continue
        if isinstance(spec.arg, ConstantArgument):
            leaves.append(spec.arg.value)
            continue
        value, facts = found.pop(spec.arg.name, None), vals[spec.arg.name]
        if value is None or value.dtype is not facts.dtype or value.ndim != facts.ndim:
            raise _refused(f"the example of {spec.arg.name!r} does not fit the program")
        leaves.append(make(value._payload))
    if found:
        raise _refused(f"the examples have {sorted(found)[0]!r}, which the program does not take")
    program.example_inputs = tree_unflatten(leaves, program.call_spec.in_spec)


def _held(parsed: Parsed, found: dict[str, Tensor]) -> tuple[dict, dict]:
    """The tensors of a program, by name; each must be there, and as the text says."""
    state: dict[str, Tensor] = {}
    constants: dict[str, Tensor] = {}
    for spec, facts, marked in parsed.tensors:
        value = found.pop(spec.target, None)
        if value is None:
            raise _refused(f"the weights have no {spec.target!r}")
        if not alike(value, facts):
            raise _refused(f"{spec.target!r} is {type_text(value)} among the weights, and "
                           f"{type_text(facts)} in the program")
        if spec.kind is InputKind.PARAMETER:
            floating = value.is_floating_point() or value.is_complex()
            if not marked and not floating:
                raise _refused(f"{spec.target!r} cannot have gradients: it is {type_text(value)}")
            value = Parameter(value, requires_grad=not marked)
        else:
            value = make(value._payload)
        lasting = spec.kind is InputKind.PARAMETER or spec.persistent
        names = [name for name, target in parsed.targets.items() if target == spec.target]
        (state if lasting else constants).update(dict.fromkeys(names, value))
    if found:
        raise _refused(f"the weights have {sorted(found)[0]!r}, which the program has not")
    return state, constants


def _refused(what: str) -> Exception:
    return errors.FileFormatError(errors.text(
        f"{what} ({errors.user_line(2)})", cure="get the file again from where it came"))
