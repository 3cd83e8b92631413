"""What each input and output of a captured graph stands for.

`node.meta["desc"]` of a placeholder, and the list there on the output node, hold these: a parameter
by its name, an argument by its place, the gradient of either, the new value of an input.  They are
values: equal where they mean the same.  `export.py` writes them, `lookup.py` reads them.
"""

from __future__ import annotations

import dataclasses
from string import Formatter


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


_MADE = {  # name -> (base, text); its fields are the names in the text
    name: (base, text) for base, texts in {
        DifferentiableAOTInput: {
            "ParamAOTInput": "self.get_parameter({target!r})",
            "BufferAOTInput": "self.get_buffer({target!r})",
            "PlainAOTInput": "args[{idx}]",
            "ViewBaseAOTInput": "{base_of}._base",
            "SyntheticBaseAOTInput": "__make_synthetic_base({base_of})",
            "TangentAOTInput": "__output_tangent({output})",
        },
        AOTInput: {
            "DummyAOTInput": "__dummy{idx}",
            "ForwardTokenAOTInput": "__forward_token{idx}",
            "BackwardTokenAOTInput": "__backward_token{idx}",
            "PhiloxForwardSeedAOTInput": "__philox_forward_seed",
            "PhiloxForwardBaseOffsetAOTInput": "__philox_forward_base_offset",
            "PhiloxBackwardSeedAOTInput": "__philox_backward_seed",
            "PhiloxBackwardBaseOffsetAOTInput": "__philox_backward_base_offset",
        },
        DifferentiableAOTOutput: {
            "PlainAOTOutput": "output[{idx}]",
            "InputMutationAOTOutput": "__input_mutation({mutated_input})",
            "IntermediateBaseAOTOutput": "__intermediate_base({base_of})",
            "MetadataMutationAOTOutput": "__aliased_arg_with_metadata_mutation{idx}",
            "GradAOTOutput": "__grad({grad_of})",
        },
        AOTOutput: {
            "ForwardTokenAOTOutput": "__forward_token{idx}",
            "BackwardTokenAOTOutput": "__backward_token{idx}",
            "PhiloxUpdatedForwardOffsetAOTOutput": "__philox_updated_forward_offset",
            "PhiloxUpdatedBackwardOffsetAOTOutput": "__philox_updated_backward_offset",
            "SavedForBackwardsAOTOutput": "__saved_for_backwards_{idx}",
            "SavedForBackwardsNoVcCheckAOTOutput": "__saved_for_backwards_no_vc_check_{idx}",
            "DummyAOTOutput": "__dummy{idx}",
        },
    }.items() for name, text in texts.items()
} | {
    f"Subclass{kind}AOT{side.__name__[3:]}": (side, text)
    for side in (AOTInput, AOTOutput)
    for kind, text in (("GetAttr", "{base}.{attr}"), ("Size", "{base}.size({idx})"),
                       ("Stride", "{base}.stride({idx})"))
}


def _made(name: str, base: type, text: str) -> type:
    bases = (_Part, base) if name.startswith("SubclassGetAttr") else (base,)
    fields = [field for _, field, *_ in Formatter().parse(text) if field]
    made = dataclasses.make_dataclass(
        name, fields, bases=bases, frozen=True,
        namespace={"text": text, "__module__": __name__})
    made.__doc__ = f"`{text}`."
    made.__module__ = __name__
    return made


for _name, _facts in _MADE.items():
    globals()[_name] = _made(_name, *_facts)

__all__ = ["AOTInput", "AOTOutput", "DifferentiableAOTInput", "DifferentiableAOTOutput", *_MADE]
