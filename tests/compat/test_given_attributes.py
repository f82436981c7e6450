"""Attributes as symbolic functions give them to ``g.op``: arrays, bytes, enumerations, names."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import torch

from onnx_exporter import SymbolicError
from onnx_exporter.compat._drop_in import patch_torch_onnx

pytest.importorskip("onnxruntime", reason="the files are run")
from clients import attributes, function_of, inside, verified

X = torch.randn(2, 3)
pytestmark = pytest.mark.parametrize("capture", ["trace", "export"])


def test_arrays_are_lists(capture: str) -> None:
    call = function_of(lambda g, x: g.op("Transpose", x, perm_i=np.array([1, 0])), lambda x: x.t().clone())
    verified(call, X, capture=capture)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"a_i": np.array([1, 0])}, [1, 0]),
        ({"a_f": np.array([0.5, 2.0])}, [0.5, 2.0]),
        ({"a_f": np.array(0.5)}, 0.5),
        ({"a_i": np.int32(3)}, 3),
        ({"a_i": torch.tensor([4, 5])}, [4, 5]),
        ({"a_i": torch.tensor(4)}, 4),
        ({"a_s": np.array(["p", "q"])}, ["p", "q"]),
        ({"a_i": np.array([], dtype=np.int64)}, []),
        ({"a_i": torch.onnx.TensorProtoDataType.DOUBLE}, 11),
        ({"a_i": [torch.tensor(1), np.int64(2)]}, [1, 2]),
    ],
)
def test_forms(given: dict[str, Any], expected: Any, capture: str) -> None:
    found = attributes(inside(lambda g, x: g.op("vendor::A", x, **given).setType(x.type()), capture=capture), "A")["a"]
    assert (list(found) if isinstance(expected, list) else found) == expected


def test_arrays_as_tensors(capture: str) -> None:
    call = function_of(lambda g, x: g.op("Add", x, g.op("Constant", value_t=np.ones(3, np.float32))), lambda x: x + 1)
    verified(call, X, capture=capture)


def test_bytes_that_are_no_text(capture: str) -> None:
    result = inside(lambda g, x: g.op("vendor::A", x, blob_s=b"x\xff\x00", text_s=b"ok").setType(x.type()), capture=capture)
    (node,) = onnx.load_from_string(result.model_proto.SerializeToString()).graph.node
    assert {item.name: item.s for item in node.attribute} == {"blob": b"x\xff\x00", "text": b"ok"}


def test_names_without_a_kind(capture: str) -> None:
    for name in ("axis", "bad_q", "i"):
        with pytest.raises(SymbolicError, match=rf"ValueError: the attribute '{name}' does not say of which kind it is"):
            inside(lambda g, x, name=name: g.op("vendor::A", x, **{name: 1}), capture=capture)


def test_values_that_only_the_running_model_knows(capture: str) -> None:
    with pytest.raises(SymbolicError, match=r"attribute 'n_i' is .*only known when the model runs"):
        inside(lambda g, x: g.op("vendor::A", x, n_i=g.op("Shape", g.op("NonZero", x))), capture=capture)


def test_source_that_exec_ran(capture: str) -> None:
    """Its functions have no module."""
    code = "def symbolic(g, x):\n    return g.op('Relu', x)\n"
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["symbolic"].__module__ in (None, "builtins")
    verified(function_of(names["symbolic"], torch.relu), X, capture=capture)


def test_the_function_itself_may_be_so(capture: str) -> None:
    code = (
        "import torch\nclass F(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x): return x.relu()\n"
        "    @staticmethod\n    def symbolic(g, x): return g.op('Relu', x)\n"
    )
    names: dict[str, Any] = {}
    exec(code, names)
    with patch_torch_onnx():
        verified(lambda x: names["F"].apply(x), X, capture=capture)
