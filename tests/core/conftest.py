"""Files made for a test."""

import onnx
import pytest
from onnx import helper


@pytest.fixture
def write(tmp_path):
    """Writes a file from nodes, inputs and outputs as (name, type, shape)."""

    def build(nodes, inputs, outputs, initializers=(), opset=17, domains=()):
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info(*item) for item in inputs],
            [helper.make_tensor_value_info(*item) for item in outputs],
            initializer=list(initializers),
        )
        imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
        path = tmp_path / "m.onnx"
        onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10), path)
        return path

    return build
