"""Recurrent layers and cells with weights in 8 bits or half precision: numbers in, numbers out."""

from __future__ import annotations

from typing import Any, ClassVar

from ...... import errors, nn
from ......array import dtype as dt
from ......core.handle import Tensor
from ......nn.utils.rnn import PackedSequence
from ......quantized import recurrent
from ......quantized.packed import LinearHalfParams, linear_weight
from ......table.packets import ops
from ...modules.utils import _quantize_weight

_QINT8 = dt.by_name("qint8")


def pack_weight_bias(qweight: Tensor, bias: Tensor | None, dtype: Any) -> Any:
    """A weight and a bias as recurrent layers hold them."""
    return (linear_weight if dtype is _QINT8 else LinearHalfParams)(qweight, bias)


def _observer_of(mod: nn.Module) -> Any:
    """The maker of observers of weights of a layer that is configured."""
    from .....quantization.qconfig import default_dynamic_qconfig

    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")
    config = mod.qconfig
    maker = config.weight if config is not None and config.weight is not None else (
        default_dynamic_qconfig.weight)
    if maker().dtype not in (_QINT8, dt.float16):
        raise errors.DTypeError("Unsupported dtype for dynamic RNN quantization: "
                                f"{maker().dtype} ({errors.user_line(4)})")
    return maker


def _weight(numbers: Tensor, maker: Any) -> Tensor:
    """A weight as an observer of it says."""
    observer = maker()
    if observer.dtype is not _QINT8:
        return numbers.detach().float()
    observer(numbers)
    return _quantize_weight(numbers.float(), observer)


class PackedParameter(nn.Module):
    """What holds the weights of one direction of one layer."""

    def __init__(self, param: Any):
        super().__init__()
        self.param = param

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}param"] = self.param

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict,
                              strict: bool, *rest: Any) -> None:
        self.param = state_dict.pop(f"{prefix}param")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *rest)


class RNNBase(nn.Module):
    """Layers of a recurrent network."""

    _version = 2
    _FLOAT_MODULE: ClassVar[Any] = nn.RNNBase
    _gates: ClassVar[dict[str, int]] = {"LSTM": 4, "GRU": 3}
    mode: str

    def __init__(self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1,
                 bias: bool = True, batch_first: bool = False, dropout: float = 0.0,
                 bidirectional: bool = False, dtype: Any = _QINT8):
        super().__init__()
        if mode not in self._gates:
            raise ValueError("Unrecognized RNN mode: " + mode)
        if not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1 or dropout is True:
            raise ValueError("dropout should be a number in range [0, 1] representing the "
                             "probability of an element being zeroed")
        self.mode, self.input_size, self.hidden_size = mode, input_size, hidden_size
        self.num_layers, self.bias, self.batch_first = num_layers, bias, batch_first
        self.dropout, self.bidirectional, self.dtype = float(dropout), bidirectional, dtype
        self.version, self.training = 2, False

    def _names(self) -> list[str]:
        """The endings of the names of weights, by layer and direction."""
        ways = ("", "_reverse") if self.bidirectional else ("",)
        return [f"_l{layer}{way}" for layer in range(self.num_layers) for way in ways]

    def _get_name(self) -> str:
        return f"DynamicQuantized{type(self).__name__}"

    def extra_repr(self) -> str:
        s = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (("num_layers", 1), ("bias", True), ("batch_first", False),
                            ("dropout", 0), ("bidirectional", False)):
            value = getattr(self, name)
            if value is not usual and value != usual:
                s += f", {name}={value}"
        return s

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    def set_weight_bias(self, weight_bias_dict: dict) -> None:
        """Hold other weights and biases, by the names that `nn.LSTM` has for them."""
        held = []
        for ending in self._names():
            packs = [pack_weight_bias(weight_bias_dict[f"weight_{of}{ending}"],
                                      weight_bias_dict.get(f"bias_{of}{ending}"), self.dtype)
                     for of in ("ih", "hh")]
            reduced = self.dtype is _QINT8 and self.version is not None and self.version >= 2
            held.append(PackedParameter(recurrent.CellParamsBase(*packs, reduced)))
        self._all_weight_values = nn.ModuleList(held)

    def _weight_bias(self) -> dict[str, dict]:
        found: dict[str, dict] = {"weight": {}, "bias": {}}
        for ending, held in zip(self._names(), self._all_weight_values):
            for of, pack in (("ih", held.param.of_input), ("hh", held.param.of_state)):
                weight, bias = pack.unpack()
                found["weight"][f"weight_{of}{ending}"] = weight
                found["bias"][f"bias_{of}{ending}"] = bias
        return found

    def get_weight(self) -> dict[str, Tensor]:
        """The weights by name."""
        return self._weight_bias()["weight"]

    def get_bias(self) -> dict[str, Tensor]:
        """The biases by name."""
        return self._weight_bias()["bias"]

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict,
                              strict: bool, *rest: Any) -> None:
        self.version = local_metadata.get("version")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *rest)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> RNNBase:
        """The layer that stands for one with numbers."""
        if type(mod) not in (nn.LSTM, nn.GRU):
            raise AssertionError(
                "nn.quantized.dynamic.RNNBase.from_float only works for nn.LSTM and nn.GRU")
        if getattr(mod, "proj_size", 0):
            raise errors.NotInThisBuild(errors.text(
                f"a recurrent layer with projections cannot be quantised ({errors.user_line(3)})",
                cure="leave it as it is: name the other classes in qconfig_spec"))
        maker = _observer_of(mod)
        new = (LSTM if mod.mode == "LSTM" else GRU)(
            mod.input_size, mod.hidden_size, mod.num_layers, mod.bias, mod.batch_first, mod.dropout,
            mod.bidirectional, maker().dtype)
        given = {}
        for ending in new._names():
            for of in ("ih", "hh"):
                name = f"weight_{of}{ending}"
                given[name] = _weight(getattr(mod, name), maker)
                given[f"bias_{of}{ending}"] = getattr(mod, f"bias_{of}{ending}", None)
        new.set_weight_bias(given)
        return new

    def _run(self, input: Any, states: list | None) -> tuple[Any, list]:
        """Outputs and last states, of a tensor or a packed sequence."""
        given = input
        order = back = None
        sizes: list[int] | None = None
        if isinstance(given, PackedSequence):
            input, batch_sizes, order, back = given
            sizes = [int(n) for n in batch_sizes.tolist()]
        elif input.ndim != 3:
            raise errors.ShapeError(
                f"input must have 3 dimensions, got {input.ndim} ({errors.user_line(4)})")
        if input.shape[-1] != self.input_size:
            raise errors.ShapeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got "
                f"{input.shape[-1]} ({errors.user_line(4)})")
        count = sizes[0] if sizes else input.shape[0 if self.batch_first else 1]
        wanted = (len(self._names()), count, self.hidden_size)
        kinds = 2 if self.mode == "LSTM" else 1
        if states is None:
            states = [ops.zeros(wanted)] * kinds
        else:
            for i, s in enumerate(states):
                if tuple(s.shape) != wanted:
                    raise errors.ShapeError(f"Expected hidden[{i}] size {wanted}, got "
                                            f"{tuple(s.shape)} ({errors.user_line(4)})")
            states = [s if order is None else s.index_select(1, order) for s in states]
        params = [held.param for held in self._all_weight_values]
        x, shape = input, None
        if sizes is None:
            x = input.transpose(0, 1) if self.batch_first else input
            shape = x.shape[:2]
            sizes, x = [shape[1]] * shape[0], x.reshape(-1, x.shape[-1])
        out, last = recurrent.layers(self.mode, x, sizes, tuple(states), params, self.num_layers,
                                     self.dropout, self.training, self.bidirectional)
        if shape is None:
            out = PackedSequence(out, given.batch_sizes, order, back)
            return out, [s if back is None else s.index_select(1, back) for s in last]
        out = out.reshape(*shape, out.shape[-1])
        return (out.transpose(0, 1) if self.batch_first else out), last


class LSTM(RNNBase):
    """Layers of long short-term memory."""

    _FLOAT_MODULE: ClassVar[Any] = nn.LSTM

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__("LSTM", *args, **kwargs)

    def forward(self, input: Any, hx: tuple[Tensor, Tensor] | None = None) -> Any:
        out, states = self._run(input, None if hx is None else list(hx))
        return out, tuple(states)


class GRU(RNNBase):
    """Layers of gated recurrent units."""

    _FLOAT_MODULE: ClassVar[Any] = nn.GRU

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input: Any, hx: Tensor | None = None) -> Any:
        out, states = self._run(input, None if hx is None else [hx])
        return out, states[0]


class RNNCellBase(nn.Module):
    """One step of a recurrent network."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, num_chunks: int = 4,
                 dtype: Any = _QINT8):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        self.weight_dtype = dtype

    def _get_name(self) -> str:
        return f"DynamicQuantized{type(self).__name__}"

    def extra_repr(self) -> str:
        s = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            s += f", bias={self.bias}"
        return s + (f", nonlinearity={self.nonlinearity}" if getattr(
            self, "nonlinearity", "tanh") != "tanh" else "")

    def check_forward_input(self, input: Tensor) -> None:
        """Refuse an input that does not fit."""
        if input.shape[1] != self.input_size:
            raise errors.ShapeError(
                f"input has inconsistent input_size: got {input.shape[1]}, expected "
                f"{self.input_size} ({errors.user_line(3)})")

    def check_forward_hidden(self, input: Tensor, hx: Tensor, hidden_label: str = "") -> None:
        """Refuse a state that does not fit."""
        if input.shape[0] != hx.shape[0] or hx.shape[1] != self.hidden_size:
            raise errors.ShapeError(
                f"hidden{hidden_label} has inconsistent size: got {list(hx.shape)}, expected "
                f"{[input.shape[0], self.hidden_size]} ({errors.user_line(3)})")

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> RNNCellBase:
        """The cell that stands for one with numbers."""
        kinds = {nn.LSTMCell: LSTMCell, nn.GRUCell: GRUCell, nn.RNNCell: RNNCell}
        if type(mod) not in kinds:
            raise AssertionError("nn.quantized.dynamic.RNNCellBase.from_float only works for "
                                 "nn.LSTMCell, nn.GRUCell and nn.RNNCell")
        maker = _observer_of(mod)
        more = {"nonlinearity": mod.nonlinearity} if type(mod) is nn.RNNCell else {}
        new = kinds[type(mod)](mod.input_size, mod.hidden_size, bias=mod.bias, dtype=maker().dtype,
                               **more)
        new.set_weight_bias({
            "weight": {f"weight_{of}": _weight(getattr(mod, f"weight_{of}"), maker)
                       for of in ("ih", "hh")},
            "bias": {f"bias_{of}": getattr(mod, f"bias_{of}") for of in ("ih", "hh")}})
        return new

    def set_weight_bias(self, weight_bias_dict: dict) -> None:
        """Hold other weights and biases."""
        for of in ("ih", "hh"):
            pack = pack_weight_bias(weight_bias_dict["weight"][f"weight_{of}"],
                                    weight_bias_dict["bias"][f"bias_{of}"], self.weight_dtype)
            setattr(self, f"_packed_weight_{of}", pack)

    def _weight_bias(self) -> dict[str, dict]:
        found: dict[str, dict] = {"weight": {}, "bias": {}}
        for of in ("ih", "hh"):
            weight, bias = getattr(self, f"_packed_weight_{of}").unpack()
            found["weight"][f"weight_{of}"], found["bias"][f"bias_{of}"] = weight, bias
        return found

    def get_weight(self) -> dict[str, Tensor]:
        """The weights by name."""
        return self._weight_bias()["weight"]

    def get_bias(self) -> dict[str, Tensor]:
        """The biases by name."""
        return self._weight_bias()["bias"]

    def _step(self, name: str, input: Tensor, state: Any) -> Any:
        return recurrent.functions[f"quantized_{name}_cell_dynamic"](
            input, state, self._packed_weight_ih, self._packed_weight_hh, None, None)

    def _zeros(self, input: Tensor) -> Tensor:
        return ops.zeros(input.shape[0], self.hidden_size)

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for of in ("ih", "hh"):
            name = f"_packed_weight_{of}"
            destination[prefix + name] = getattr(self, name)

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict,
                              strict: bool, *rest: Any) -> None:
        for of in ("ih", "hh"):
            name = f"_packed_weight_{of}"
            setattr(self, name, state_dict.pop(prefix + name))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *rest)


class RNNCell(RNNCellBase):
    """One step of a plain recurrent network."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True,
                 nonlinearity: str = "tanh", dtype: Any = _QINT8):
        super().__init__(input_size, hidden_size, bias, num_chunks=1, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        self.check_forward_input(input)
        hx = self._zeros(input) if hx is None else hx
        self.check_forward_hidden(input, hx)
        if self.nonlinearity not in ("tanh", "relu"):
            raise errors.BadValue(
                f"Unknown nonlinearity: {self.nonlinearity} ({errors.user_line(2)})")
        return self._step(f"rnn_{self.nonlinearity}", input, hx)


class LSTMCell(RNNCellBase):
    """One step of long short-term memory."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, num_chunks=4, **kwargs)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> Any:
        self.check_forward_input(input)
        hx = (self._zeros(input),) * 2 if hx is None else hx
        for k in range(2):
            self.check_forward_hidden(input, hx[k], f"[{k}]")
        return self._step("lstm", input, hx)


class GRUCell(RNNCellBase):
    """One step of gated recurrent units."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, dtype: Any = _QINT8):
        super().__init__(input_size, hidden_size, bias, num_chunks=3, dtype=dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        self.check_forward_input(input)
        hx = self._zeros(input) if hx is None else hx
        self.check_forward_hidden(input, hx)
        return self._step("gru", input, hx)
