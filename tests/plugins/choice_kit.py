"""Plugins for operators that several could convert."""

from __future__ import annotations

import torch

from onnx_exporter import export
from onnx_exporter._plugins import load_plugins

X = torch.randn(2, 3)

CODE = """
{before}
from onnx_exporter import ExportWarning, GraphContext, OpTable, Value, hookimpl

{requires}
table = OpTable({table})

@table.op({names})
def converted(g: GraphContext, self: Value) -> Value:
    return g.op({emits!r}, self)

@hookimpl
def onnx_exporter_tables():
    return [table]
"""


def code(*names, table="", emits="Neg", requires="", before=""):
    return CODE.format(names=", ".join(map(repr, names)), table=table, emits=emits, requires=requires, before=before)


def kinds(function, **options):
    return [node.op_type for node in export(function, (X,), **options).model.graph]


def negate(x):
    return torch.ops.demo.negate(x)


def error_of(name):
    (found,) = [item for item in load_plugins().plugins if item.info.name == name]
    return found.error
