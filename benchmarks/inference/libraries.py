"""The ways to run a model of `models`: minitorch's, PyTorch's, onnxruntime's and JAX's, each with one number format.

Where a library has several ways to the same format, such as engines, all are prepared and each is tried; what is
measured is the one that was fastest in the trial, which `form` names afterwards.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from minitorch.primitives import dot

from .. import processor
from ..libraries import EPS, JAX, Array, Library, Minitorch, Torch
from ..peaks import INT8
from . import onnx_graphs
from .models import Model, calibration, state

Step = Callable[[], Any]

# How far results may be from the float64 reference: the root mean square of the error, relative to that of the result
# (`cases.deviation`); 0 for the tolerance of the case, of the largest error. A step of int8 is 1/127 of the largest
# number of a channel, one of int4 1/7 of the largest of 32, bfloat16 has 8 bits. Four layers add up.
TOLERANCES = {"float32": 0.0, "bfloat16": 0.02, "int8": 0.06, "int8 weights": 0.03, "int4 weights": 0.25}
VNNI = ("avx512vnni", "avx_vnni")  # by the names of `processor`
ENGINES = "x86", "onednn"  # of torch.ao
TRIAL = 0.1  # seconds for each form in a trial


def fastest(library: Any, steps: Iterable[tuple[str, Step]], seconds: float = TRIAL) -> tuple[str, Step]:
    """The name and the step of the form that was fastest; each is tried for so many seconds."""
    found = []
    for name, step in steps:
        library.wait(step())
        times: list[float] = []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(times) < 5:
            start = time.perf_counter()
            library.wait(step())
            times.append(time.perf_counter() - start)
        found.append((float(np.median(times)), name, step))
    _, name, step = min(found, key=lambda each: each[0])
    return name, step


class Inference(Library):
    """What the ways have in common: they run models, and nothing else; inputs are NumPy's until a model is made."""

    precision = "float32"

    def set_precision(self, precision: str) -> None:
        """Say the number format, and with it the tolerance."""
        self.precision, self.tolerance = precision, TOLERANCES[precision]

    def supports(self, program: Any) -> bool:
        return isinstance(program, Model)

    def inference(self, model: Model, parameters: list[Array], x: Array) -> Step:
        """A call of the model, ready to be measured."""
        raise NotImplementedError


# --- minitorch --------------------------------------------------------------------------------------------------------


class Ours(Inference):
    """minitorch: compiled with weights as arguments, or frozen, in a number format.

    Args:
        precision: of `TOLERANCES`.
        frozen: whether the weights are constants.
    """

    def __init__(self, precision: str = "float32", frozen: bool = True) -> None:
        import minitorch as mt

        self.mt, self.frozen, self.version = mt, frozen, mt.__version__
        self.set_precision(precision)

    def numpy(self, x: Any) -> Array:
        return x.detach().float().numpy()

    def instructions(self) -> str:
        return Minitorch().instructions()

    def to_probe(self) -> Library:
        return Minitorch("llvm")

    def products(self, size: int) -> Iterable[tuple[str, Step]]:
        mt = self.mt
        x, y = (mt.tensor(np.ones((size, size), kind)) for kind in (np.uint8, np.int8))
        product = mt.jit(lambda x, y: dot(x, y, dtype=mt.int32))
        return [(INT8, lambda: product(x, y))]

    def inference(self, model: Model, parameters: list[Array], x: Array) -> Step:
        mt, given = self.mt, self.mt.tensor(x)
        module = model.module(mt.nn, mt.nn.functional, parameters)
        values = state(list(module.state_dict()), parameters)
        module.load_state_dict({name: mt.tensor(value) for name, value in values.items()}, strict=False)
        function = self._converted(module.eval(), x)
        if self.frozen:
            called = mt.freeze(function, given)
            return lambda: called(given)
        compiled = mt.jit(function)

        def step() -> Any:
            with mt.no_grad():
                return compiled(given)

        return step

    def _converted(self, module: Any, x: Array) -> Any:
        mt, q = self.mt, self.mt.quantization
        if self.precision == "int8":
            from minitorch.compiler.codegen.host import host

            target = host()  # of activations, 8 bits with VNNI, and 7 without it, as PyTorch's engines have them
            self.form = "onednn" if target.avx512_vnni or target.avx_vnni else "x86"
            prepared = q.prepare(module, q.get_default_qconfig(self.form), mt.tensor(x))
            return q.convert(q.calibrate(prepared, [mt.tensor(batch) for batch in calibration(x)]))
        if self.precision == "int8 weights":
            return q.quantize_weights_(q.fuse(module, mt.tensor(x)), bits=8)
        if self.precision == "int4 weights":
            return q.quantize_weights_(q.fuse(module, mt.tensor(x)), bits=4, group_size=onnx_graphs.GROUP)
        if self.precision == "bfloat16":

            def mixed(given: Any) -> Any:
                with mt.autocast("cpu", dtype=mt.bfloat16):
                    return module(given)

            return mixed
        return module


# --- JAX --------------------------------------------------------------------------------------------------------------


class Jitted(Inference, JAX):
    """`jax.jit` of the model, with the parameters as arguments."""

    def __init__(self) -> None:
        JAX.__init__(self)

    def to_probe(self) -> Library:
        return JAX()

    def products(self, size: int) -> Iterable[tuple[str, Step]]:
        x = self.jnp.ones((size, size), self.jnp.int8)
        product = self.jax.jit(partial(self.jnp.matmul, preferred_element_type=self.jnp.int32))
        return [(INT8, lambda: product(x, x))]

    def array(self, x: Array) -> Any:
        return JAX.array(self, x)

    def normalized_convolution(self, x: Any, stride: int, weight: Any, bias: Any, *norm: Any) -> Any:
        """With batch normalization and ReLU, as users write it."""
        jax, (gain, shift, mean, variance) = self.jax, (each[:, None, None] for each in norm)
        padding = ((1, 1), (1, 1))
        y = jax.lax.conv_general_dilated(x, weight, (stride, stride), padding) + bias[:, None, None]
        return jax.nn.relu((y - mean) * jax.lax.rsqrt(variance + EPS) * gain + shift)

    def inference(self, model: Model, parameters: list[Any], x: Any) -> Step:
        step = self.jax.jit(partial(model.program, self))
        return lambda: step(parameters, x)


# --- PyTorch ----------------------------------------------------------------------------------------------------------


class TorchFloat(Inference, Torch):
    """PyTorch's module, in inference mode; eager, or under `torch.compile` with frozen weights.

    Args:
        compiled: by `torch.compile`.
    """

    def __init__(self, compiled: bool = False) -> None:
        Torch.__init__(self, compiled)
        warnings.simplefilter("ignore")

    def array(self, x: Array) -> Any:
        return x

    def to_probe(self) -> Library:
        return Torch()

    def module(self, model: Model, parameters: list[Array]) -> Any:
        """The model in evaluation, with its parameters."""
        torch = self.torch
        module = model.module(torch.nn, torch.nn.functional, parameters)
        values = state(list(module.state_dict()), parameters)
        module.load_state_dict({name: torch.from_numpy(value) for name, value in values.items()}, strict=False)
        return module.eval()

    def called(self, module: Any, x: Array) -> Step:
        """A call of a module, without gradients."""
        torch, given = self.torch, self.torch.from_numpy(x)

        def step() -> Any:
            with torch.inference_mode():
                return module(given)

        return step

    def inference(self, model: Model, parameters: list[Array], x: Array) -> Step:
        module = self.module(model, parameters)
        if self.compiled:
            import torch._inductor.config

            torch._inductor.config.freezing = True
            self.torch.compiler.reset()
            module = self.torch.compile(module, dynamic=False)
        return self.called(module, x)


class TorchInt8(TorchFloat):
    """`torch.ao`, static (FX) and dynamic, by each engine: the fastest of them."""

    def __init__(self) -> None:
        super().__init__()
        self.set_precision("int8")

    def products(self, size: int) -> Iterable[tuple[str, Step]]:
        from torch.ao import quantization as q

        torch = self.torch
        x, layer = torch.ones(size, size), torch.nn.Sequential(torch.nn.Linear(size, size, bias=False))
        for engine in ENGINES:
            torch.backends.quantized.engine = engine
            yield INT8, self.called(q.quantize_dynamic(layer, {torch.nn.Linear}, dtype=torch.qint8), x.numpy())

    def inference(self, model: Model, parameters: list[Array], x: Array) -> Step:
        self.form, step = fastest(self, self._forms(model, parameters, x))
        engine = self.form.split()[-1]
        self.torch.backends.quantized.engine = engine
        return step

    def _forms(self, model: Model, parameters: list[Array], x: Array) -> Iterable[tuple[str, Step]]:
        from torch.ao import quantization as q
        from torch.ao.quantization import quantize_fx as fx

        torch = self.torch
        for engine in ENGINES:
            torch.backends.quantized.engine = engine
            mapping = q.get_default_qconfig_mapping(engine)
            if model.name == "block":  # scores, softmax and norms stay in float, as in the others
                mapping = q.QConfigMapping().set_object_type(torch.nn.Linear, q.get_default_qconfig(engine))
            prepared = fx.prepare_fx(self.module(model, parameters), mapping, (torch.from_numpy(x),))
            with torch.no_grad():
                for batch in calibration(x):
                    prepared(torch.from_numpy(batch))
            yield f"static {engine}", self.called(fx.convert_fx(prepared), x)
            if model.name != "CNN":  # there are no dynamic convolutions
                made = q.quantize_dynamic(self.module(model, parameters), {torch.nn.Linear}, dtype=torch.qint8)
                yield f"dynamic {engine}", self.called(made, x)


# --- onnxruntime ------------------------------------------------------------------------------------------------------


class _Batches:
    """Calibration data, as onnxruntime reads it."""

    def __init__(self, batches: Iterable[Array]) -> None:
        self.batches = iter(batches)

    def get_next(self) -> dict[str, Array] | None:
        """The next feed, or None at the end."""
        batch = next(self.batches, None)
        return None if batch is None else {"x": batch}


class OnnxRuntime(Inference):
    """onnxruntime on the CPU: float; int8 by its own quantiser, static in both formats and dynamic; int4 weights.

    Args:
        precision: of `TOLERANCES`.
    """

    def __init__(self, precision: str = "float32") -> None:
        import onnxruntime

        self.runtime, self.version = onnxruntime, onnxruntime.__version__
        self.set_precision(precision)
        warnings.simplefilter("ignore")

    def supports(self, program: Any) -> bool:
        """Its weights of 4 bits are those of ``MatMul`` nodes alone."""
        return super().supports(program) and (self.precision != "int4 weights" or program.name == "product")

    def products(self, size: int) -> Iterable[tuple[str, Step]]:
        square = np.ones((size, size), np.float32)
        integers = square.astype(np.int8)
        for kind, model, given in (
            ("float32", onnx_graphs.graph("product", [square], square.shape), square),
            (INT8, onnx_graphs.product_of_8_bits(integers), square.astype(np.uint8)),
        ):
            yield kind, self.session(model.SerializeToString(), given)

    def inference(self, model: Model, parameters: list[Array], x: Array) -> Step:
        with tempfile.TemporaryDirectory() as folder:
            self.form, step = fastest(self, self._forms(model, parameters, x, Path(folder)))
        return step

    def session(self, model: Path | bytes, x: Array) -> Step:
        """A call of a model, a file or its bytes, whose result is a NumPy array."""
        options = self.runtime.SessionOptions()
        options.log_severity_level = 3
        session = self.runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return lambda: session.run(["y"], {"x": x})[0]

    def _forms(self, model: Model, parameters: list[Array], x: Array, folder: Path) -> Iterable[tuple[str, Step]]:
        import onnx

        plain, ready = folder / "float.onnx", folder / "prepared.onnx"
        onnx.save(onnx_graphs.graph(model.name, parameters, x.shape), plain)
        if self.precision == "float32":
            yield "", self.session(plain, x)
            return
        from onnxruntime import quantization as q
        from onnxruntime.quantization.shape_inference import quant_pre_process

        if self.precision == "int4 weights":
            for accuracy in onnx_graphs.ACCURACIES:
                onnx.save(onnx_graphs.product_of_4_bits(parameters[0], x.shape, accuracy), ready)
                yield f"accuracy level {accuracy}", self.session(ready, x)
            return
        quant_pre_process(plain, ready, skip_symbolic_shape=True)
        # Without VNNI, MLAS adds two products of bytes in 16 bits, which saturates unless weights have 7.
        saturates = processor.shown().isdisjoint(VNNI)
        for form in (q.QuantFormat.QDQ, q.QuantFormat.QOperator):
            name = folder / f"{form.name}.onnx"
            q.quantize_static(
                ready, name, _Batches(calibration(x)), quant_format=form, per_channel=True, reduce_range=saturates,
                activation_type=q.QuantType.QUInt8, weight_type=q.QuantType.QInt8,
                op_types_to_quantize=["Gemm", "MatMul", "Conv"] if model.name != "block" else ["Gemm", "MatMul"],
            )  # fmt: skip
            yield f"static {form.name}", self.session(name, x)
        if model.name != "CNN":
            q.quantize_dynamic(ready, folder / "dynamic.onnx", per_channel=True, reduce_range=saturates)
            yield "dynamic", self.session(folder / "dynamic.onnx", x)
