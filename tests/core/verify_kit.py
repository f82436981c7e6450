"""Small ONNX files, right and wrong ones, and their verification."""

import torch
from onnx import TensorProto, helper

from onnx_exporter._frontends._inputs import model_inputs
from onnx_exporter._verify import verify_file

FLOAT, INT64, BFLOAT16 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BFLOAT16


def unary(write, op, type_=FLOAT, out_type=None, **kwargs):
    nodes = [helper.make_node(op, ["x"], ["y"], **kwargs)]
    return write(nodes, [("x", type_, None)], [("y", out_type or type_, None)])


def inputs_of(forward, *args, names=None, dynamic=None, kwargs=None):
    return model_inputs(forward, args, kwargs or {}, names, dynamic)


def verify(path, model, *args, names=("x",), dynamic=None, outputs=("y",), **options):
    forward = model.forward if isinstance(model, torch.nn.Module) else model
    return verify_file(path, model, inputs_of(forward, *args, names=names, dynamic=dynamic), outputs, **options)


def constant(name, values, type_=INT64):
    return helper.make_tensor(name, type_, [len(values)], values)


BATCH = {"x": {0: "batch"}}


def add_model(write):
    nodes = [helper.make_node("Add", ["a", "b"], ["y"])]
    return write(nodes, [("a", FLOAT, None), ("b", FLOAT, None)], [("y", FLOAT, None)])
