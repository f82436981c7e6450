"""Models that write in place and through views, run as files at other sizes too."""

from __future__ import annotations

import warnings

import pytest
import torch

from onnx_exporter import ExportWarning, export


def column(x, v):
    x = x.clone()
    x[:, 0] = 7.0
    return x


def masked_add(x, v):
    x = x * 1
    x[x > 0] += 1
    return x


def masked_fill(x, v):
    y = x + 0
    y[y < 0] = 0.5
    return y, x


def through_view(x, v):
    y = x.clone()
    y.view(-1)[2].add_(v[0])
    return y


def through_transpose(x, v):
    y = x.clone()
    t = y.t()
    t.mul_(2)
    return y, t


def chain_of_views(x, v):
    y = x.clone()
    y.t()[1:].t()[:, 0].add_(10)
    return y


def read_between_writes(x, v):
    y = x.clone()
    row = y[0]
    before = row + 0
    y.add_(1)
    middle = row + 0
    row.mul_(3)
    return before, middle, row, y


def negative_and_stepped(x, v):
    y = x.clone()
    y[-1, ::2] = -1.0
    return y


def index_put(x, v):
    y = x.clone()
    y[torch.tensor([0, 1]), torch.tensor([1, 2])] = v[:2]
    return y


def write_to_input(x, v):
    x.add_(1)
    return x * 2


def parts(x, v):
    y = x.clone()
    first, second = y.split([1, 3], dim=1)
    first.zero_()
    second += 1
    return y


def unbound(x, v):
    y = x.clone()
    a, b, *_ = y.unbind(1)
    b.copy_(a)
    return y, b


def diagonal(x, v):
    y = x.t().clone()
    torch.diagonal(y, 1).fill_(9.0)
    return y


def copy_casts(x, v):
    y = torch.zeros_like(x, dtype=torch.float64)
    y.copy_(x)
    y[:, :1].copy_(v[:1])
    return y


def size_arithmetic(x, v):
    n = x.shape[0]
    n += 1
    y = torch.zeros(n, x.shape[1])
    y[:-1] = x
    return y


def out_argument(x, v):
    y = torch.empty_like(x)
    torch.add(x, x, out=y)
    return y


def activations(x, v):
    y = torch.nn.functional.relu(x + 1, inplace=True)
    y.sigmoid_().mul_(2)
    return y


def dynamic_bounds(x, v):
    y = x.clone()
    n = y.shape[0]
    y[n // 2 :, 1:3] = v[1:3]
    return y


def value_of_the_written_size(x, v):
    """PyTorch expands the value to the example's size before it copies; the tracer records that size."""
    y = x.clone()
    y[1:, 1:3] = v[None, None, 1:3]
    y[:, 3] = x[:, 0]
    return y


def running_totals(x, v):
    """Out of place these give int64."""
    y = (x * 10).int()
    return y.clone().cumsum_(1), y.to(torch.uint8).cumprod_(0)


PROGRAMS = [
    value_of_the_written_size, column, masked_add, masked_fill, through_view, through_transpose,
    chain_of_views, read_between_writes, negative_and_stepped, index_put, write_to_input, parts, unbound,
    diagonal, copy_casts, size_arithmetic, out_argument, activations, dynamic_bounds, running_totals,
]  # fmt: skip


@pytest.mark.parametrize("opset", [11, 18])
@pytest.mark.parametrize("capture", ["trace", "export"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program(program, capture, opset):
    args = (torch.randn(3, 4), torch.randn(4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExportWarning)  # verification at other sizes says whether they matter
        result = export(program, args, opset_version=opset, capture=capture, dynamic_axes={"x": {0: "rows"}}, verify=True)
    assert len(result.comparison.runs) >= 2
    assert not {"If", "Loop"} & {node.op_type for node in result.model.graph}


def test_a_write_through_overlapping_memory_is_refused():
    from onnx_exporter import ExportError

    def program(x):
        y = x.clone()
        y.unfold(0, 2, 1).add_(1)
        return y

    with pytest.raises(ExportError):
        export(program, (torch.randn(4),))
