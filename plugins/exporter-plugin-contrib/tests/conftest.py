"""Exports in which the plugin is preferred."""

import pytest
from onnxruntime.capi import onnxruntime_pybind11_state as runtime


@pytest.fixture
def preferred(exporter):
    return exporter.only("contrib").preferring("contrib")


@pytest.fixture
def check(preferred):
    """Returns a function that checks a case, and that nodes are as ONNX Runtime describes its operators."""

    def check(case, opset, capture):
        result = preferred.check(case, opset, capture)
        schemas = {(schema.domain, schema.name): schema for schema in runtime.get_all_operator_schema()}
        for node in result.model.graph.all_nodes():
            if node.domain == "com.microsoft":
                schema = schemas[node.domain, node.op_type]
                assert set(node.attributes) <= set(schema.attributes), node
                is_variadic = schema.inputs[-1].option.name == "Variadic"
                assert len(node.inputs) <= len(schema.inputs) or is_variadic, node

    return check
