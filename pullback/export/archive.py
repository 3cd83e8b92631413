"""Files of programs: `program.txt` and `weights.safetensors`, in one zip file or in a folder."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import IO, Any

from .. import errors, safetensors
from ..core.handle import Tensor, make
from ..nn.parameter import Parameter
from ..serialization.archive import Archive, Writer, replacing
from . import pt2
from .check import check_program
from .graph_signature import InputKind
from .parse import Parsed, parse
from .program import ExportedModule, ExportedProgram
from .reader import alike
from .text import program_text, type_text

TEXT, WEIGHTS = "program.txt", "weights.safetensors"
File = str | os.PathLike | IO[bytes]


def save(
    ep: ExportedProgram,
    f: File,
    *,
    extra_files: dict[str, Any] | None = None,
    opset_version: dict[str, int] | None = None,
) -> None:
    """Write a program: to a file, or into a folder if `f` is one (or ends with a slash).

    The text is for reading and comparing, the weights are in safetensors format.
    """
    if not isinstance(ep, ExportedProgram):
        raise errors.ArgumentError(
            f"The 'ep' parameter must be an instance of 'ExportedProgram', got "
            f"'{type(ep).__name__}' instead. ({errors.user_line(2)})")
    text = program_text(ep).encode()
    parse(text.decode())  # what is written can be read
    weights = safetensors.save(_weights(ep))
    folder = isinstance(f, (str, os.PathLike)) and (os.path.isdir(f) or str(f).endswith("/"))
    if folder:
        os.makedirs(f, exist_ok=True)
        for name, data in ((TEXT, text), (WEIGHTS, weights)):
            with replacing(Path(f) / name) as file:
                file.write(data)
        return
    if isinstance(f, (str, os.PathLike)):
        with replacing(f) as file:
            _write(file, text, weights, extra_files)
    else:
        _write(f, text, weights, extra_files)


def _write(file: IO[bytes], text: bytes, weights: bytes, extra: dict[str, Any] | None) -> None:
    writer = Writer(file, "program")
    writer.add(TEXT, text)
    writer.add(WEIGHTS, weights)
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
        return _program(text, weights)
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return _load(file, extra_files)
    return _load(f if f.seekable() else io.BytesIO(f.read()), extra_files)


def _load(file: IO[bytes], extra: dict[str, Any] | None) -> ExportedProgram:
    archive = Archive(file)
    if TEXT not in archive and pt2.MODEL in archive:  # PyTorch's own format
        for name in extra or {}:
            extra[name] = archive.read(f"extra/{name}").decode()
        return pt2.read(archive)
    for name in (TEXT, WEIGHTS):
        if name not in archive:
            raise _refused(f"the file has no {name}: it is no exported program")
    for name in extra or {}:
        extra[name] = archive.read(f"extra/{name}").decode()
    return _program(archive.read(TEXT), archive.read(WEIGHTS))


def _program(text: bytes, weights: bytes) -> ExportedProgram:
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
    return program


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
            value = make(value._data)
        lasting = spec.kind is InputKind.PARAMETER or spec.persistent
        (state if lasting else constants)[spec.target] = value
    if found:
        raise _refused(f"the weights have {sorted(found)[0]!r}, which the program has not")
    return state, constants


def _refused(what: str) -> Exception:
    return errors.FileFormatError(errors.text(
        f"{what} ({errors.user_line(2)})", cure="get the file again from where it came"))
