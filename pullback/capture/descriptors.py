"""What each input and output of a captured graph stands for.

`node.meta["desc"]` of a placeholder, and the list there on the output node, hold these: a parameter
by its name, an argument by its place, the gradient of either, the new value of an input.  They are
values: equal where they mean the same.  `export.py` writes them, `lookup.py` reads them.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class _Descriptor:
    """Base: `text` is where the value comes from, written as Python."""

    text = ""

    def expr(self) -> str:
        """Where the value comes from or goes to, as one would write it."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return self.text.format(**{
            k: v.expr() if isinstance(v, _Descriptor) else v for k, v in fields.items()})

    def _is(self, kind: str, question: str) -> bool:
        if isinstance(self, _Part):
            return getattr(self.base, question)()  # type: ignore[attr-defined]
        return type(self).__name__ == kind


@dataclasses.dataclass(frozen=True)
class AOTInput(_Descriptor):
    """Where an input of a graph comes from."""

    def is_param(self) -> bool:
        """Is it a parameter, or a part of one?"""
        return self._is("ParamAOTInput", "is_param")

    def is_buffer(self) -> bool:
        """Is it a buffer, or a part of one?"""
        return self._is("BufferAOTInput", "is_buffer")

    def is_tangent(self) -> bool:
        """Is it the gradient of an output, or a part of one?"""
        return self._is("TangentAOTInput", "is_tangent")


@dataclasses.dataclass(frozen=True)
class AOTOutput(_Descriptor):
    """Where an output of a graph goes to."""

    def is_grad(self) -> bool:
        """Is it the gradient of an input, or a part of one?"""
        return self._is("GradAOTOutput", "is_grad")


class DifferentiableAOTInput(AOTInput):
    """An input that may have a gradient."""


class DifferentiableAOTOutput(AOTOutput):
    """An output that may have a tangent."""


class _Part:
    """Of a tensor that is made of several."""


_MADE = {  # name -> (bases, fields, text)
    "ParamAOTInput": (DifferentiableAOTInput, "target", "self.get_parameter({target!r})"),
    "BufferAOTInput": (DifferentiableAOTInput, "target", "self.get_buffer({target!r})"),
    "PlainAOTInput": (DifferentiableAOTInput, "idx", "args[{idx}]"),
    "DummyAOTInput": (AOTInput, "idx", "__dummy{idx}"),
    "ViewBaseAOTInput": (DifferentiableAOTInput, "base_of", "{base_of}._base"),
    "SyntheticBaseAOTInput": (
        DifferentiableAOTInput, "base_of", "__make_synthetic_base({base_of})"),
    "TangentAOTInput": (DifferentiableAOTInput, "output", "__output_tangent({output})"),
    "ForwardTokenAOTInput": (AOTInput, "idx", "__forward_token{idx}"),
    "BackwardTokenAOTInput": (AOTInput, "idx", "__backward_token{idx}"),
    "PhiloxForwardSeedAOTInput": (AOTInput, "", "__philox_forward_seed"),
    "PhiloxForwardBaseOffsetAOTInput": (AOTInput, "", "__philox_forward_base_offset"),
    "PhiloxBackwardSeedAOTInput": (AOTInput, "", "__philox_backward_seed"),
    "PhiloxBackwardBaseOffsetAOTInput": (AOTInput, "", "__philox_backward_base_offset"),
    "PlainAOTOutput": (DifferentiableAOTOutput, "idx", "output[{idx}]"),
    "InputMutationAOTOutput": (
        DifferentiableAOTOutput, "mutated_input", "__input_mutation({mutated_input})"),
    "IntermediateBaseAOTOutput": (
        DifferentiableAOTOutput, "base_of", "__intermediate_base({base_of})"),
    "MetadataMutationAOTOutput": (
        DifferentiableAOTOutput, "idx", "__aliased_arg_with_metadata_mutation{idx}"),
    "GradAOTOutput": (DifferentiableAOTOutput, "grad_of", "__grad({grad_of})"),
    "ForwardTokenAOTOutput": (AOTOutput, "idx", "__forward_token{idx}"),
    "BackwardTokenAOTOutput": (AOTOutput, "idx", "__backward_token{idx}"),
    "PhiloxUpdatedForwardOffsetAOTOutput": (AOTOutput, "", "__philox_updated_forward_offset"),
    "PhiloxUpdatedBackwardOffsetAOTOutput": (AOTOutput, "", "__philox_updated_backward_offset"),
    "SavedForBackwardsAOTOutput": (AOTOutput, "idx", "__saved_for_backwards_{idx}"),
    "SavedForBackwardsNoVcCheckAOTOutput": (
        AOTOutput, "idx", "__saved_for_backwards_no_vc_check_{idx}"),
    "DummyAOTOutput": (AOTOutput, "idx", "__dummy{idx}"),
} | {
    f"Subclass{kind}AOT{side.__name__[3:]}": (side, f"base {field}", text)
    for side in (AOTInput, AOTOutput)
    for kind, field, text in (
        ("GetAttr", "attr", "{base}.{attr}"), ("Size", "idx", "{base}.size({idx})"),
        ("Stride", "idx", "{base}.stride({idx})"))
}


def _made(name: str, base: type, fields: str, text: str) -> type:
    bases = (_Part, base) if name.startswith("SubclassGetAttr") else (base,)
    made = dataclasses.make_dataclass(
        name, fields.split(), bases=bases, frozen=True,
        namespace={"text": text, "__module__": __name__})
    made.__doc__ = f"`{text}`."
    made.__module__ = __name__
    return made


for _name, _facts in _MADE.items():
    globals()[_name] = _made(_name, *_facts)

__all__ = ["AOTInput", "AOTOutput", "DifferentiableAOTInput", "DifferentiableAOTOutput", *_MADE]
