"""Extensions of PyTorch in C++ and CUDA need its libraries: every name here refuses when used."""

from __future__ import annotations

from .. import errors

CUDA_HOME = ROCM_HOME = None


def _refuse(*args, **kwargs):
    raise errors.NotInThisBuild(
        errors.text(f"extensions in C++ and CUDA cannot be built here ({errors.user_line(2)})",
                    "they are compiled against PyTorch's own libraries",
                    "register the operator with library.custom_op, or use compile()")
    )


class BuildExtension:
    """Refuses to be made."""

    def __init__(self, *args, **kwargs):
        _refuse()

    with_options = staticmethod(_refuse)


load = load_inline = CppExtension = CUDAExtension = SyclExtension = include_paths = _refuse
