"""ONNX's own interface to runtimes, `onnx.backend.base`: `prepare` a model, then `run` it on arrays.

    import minitorch.export.onnx_backend as backend
    backend.prepare(onnx.load("model.onnx")).run([x])

ONNX's tests of operators run against any such module: ``python -m tests.onnx_nodes``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from minitorch.autograd import no_grad
from minitorch.functional.conversion import numpy
from minitorch.functional.creation.data import tensor
from minitorch.tensor import Tensor

from .common import newest_opset, package
from .reading.loading import module_of, parsed
from .reading.module import OnnxModule

package()  # or its absence is an error of one sentence
base: Any = import_module("onnx.backend.base")


class Prepared(base.BackendRep):  # type: ignore[misc]
    """A model that is ready to run; `module` is its module, which `jit`, `Session` and `freeze` take, too."""

    def __init__(self, module: OnnxModule) -> None:
        self.module = module

    def run(self, inputs: Any, **options: Any) -> tuple[Any, ...]:
        """The results as arrays.

        Args:
            inputs: an array for each input of the model, in order, or a dict of them by name.
            options: none are known.
        """
        if isinstance(inputs, Mapping):
            names = self.module.input_names
            unknown = [name for name in inputs if name not in names]
            if unknown:
                raise ValueError(f"the model has no input {unknown[0]!r}; it has {', '.join(names)}")
            inputs = [inputs.get(name) for name in names]
        with no_grad():
            found = self.module(*[_given(each) for each in inputs])
        return tuple([_found(each) for each in (found if isinstance(found, tuple) else (found,))])


class Backend(base.Backend):  # type: ignore[misc]
    """Models on this library's eager mode."""

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **options: Any) -> Prepared:
        """A model that is ready to run.

        Args:
            model: an `onnx.ModelProto`.
            device: the CPU.
            options: none are known.

        Raises:
            OnnxError: for a model that breaks a rule of the format (``MT801``).
            TranslationError: for operators without a translation (``MT802``).

        Example:
            >>> import numpy as np, onnx
            >>> model = onnx.parser.parse_model('''
            ...     <ir_version: 8, opset_import: ["": 18]> g (float[2] x) => (float[2] y) { y = Neg(x) }''')
            >>> Backend.prepare(model).run([np.array([1, 2], np.float32)])
            (array([-1., -2.], dtype=float32),)
        """
        if not cls.supports_device(device):
            raise ValueError(f"the device is the CPU, not {device}")
        return Prepared(module_of(parsed(model.SerializeToString())))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **options: Any) -> tuple[Any, ...]:
        """The results of a model as arrays; the arguments are those of `prepare` and `Prepared.run`."""
        return cls.prepare(model, device).run(inputs)

    @classmethod
    def run_node(
        cls, node: Any, inputs: Any, device: str = "CPU", outputs_info: Sequence[Any] | None = None, **options: Any
    ) -> tuple[Any, ...]:
        """The results of one node.

        Args:
            node: an `onnx.NodeProto` of the newest opset, or that of `opset_version` among the options.
            inputs: an array for each of its inputs.
            device: the CPU.
            outputs_info: not needed.
            options: `opset_version`.
        """
        helper = package().helper
        names = [name for name in node.input if name]
        if len(inputs) != len(names):
            raise ValueError(f"{node.op_type} has the inputs {', '.join(names)}, and {len(inputs)} arrays are given")
        given = {name: np.asarray(each) for name, each in zip(names, inputs, strict=True)}
        infos = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in given.items()
        ]
        results = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        opset = helper.make_opsetid(node.domain, options.get("opset_version") or newest_opset())
        model = helper.make_model(helper.make_graph([node], "node", infos, results), opset_imports=[opset])
        return cls.run_model(model, list(given.values()), device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether a device, such as ``"CPU"`` or ``"CUDA:1"``, is one to run on."""
        return device.partition(":")[0] == "CPU"


def _given(value: Any) -> Any:
    if value is None or isinstance(value, Tensor):
        return value
    return [_given(each) for each in value] if isinstance(value, list) else tensor(np.asarray(value))


def _found(value: Any) -> Any:
    if isinstance(value, Tensor):
        return numpy(value)
    return [_found(each) for each in value] if isinstance(value, list) else None


prepare, run_model, run_node = Backend.prepare, Backend.run_model, Backend.run_node
supports_device = Backend.supports_device
