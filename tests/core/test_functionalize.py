"""Functionalization: what a pure graph computes equals what PyTorch computes in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from source_tools import capture, run, writes

from onnx_exporter._source.functionalize import functionalize
from onnx_exporter._source.graph import Location, SourceGraph, SourceNode, SourceType, SourceValue
from onnx_exporter.errors import UnsupportedOpError

Program = Callable[..., Any]


def check(program: Program, *inputs: torch.Tensor) -> SourceGraph:
    """Checks a program with proven and with unknown sizes; returns the graph with unknown sizes."""
    expected = program(*(value.clone() for value in inputs))
    expected = list(expected) if isinstance(expected, tuple) else [expected]
    for dynamic in (False, True):
        graph = functionalize(capture(program, *inputs, dynamic=dynamic))
        assert writes(graph) == []
        results = run(graph, *(value.clone() for value in inputs))
        for result, wanted in zip(results, expected, strict=True):
            torch.testing.assert_close(result, wanted, rtol=0, atol=0, equal_nan=True)
    return graph


def matrix() -> torch.Tensor:
    return torch.arange(12.0).reshape(3, 4) - 5


PROGRAMS: dict[str, Program] = {}


def program(function: Program) -> Program:
    PROGRAMS[function.__name__] = function
    return function


@program
def set_column(x):
    x = x * 1
    x[:, 0] = torch.tensor([7.0, 8.0, 9.0])
    return x


@program
def set_column_to_number(x):
    x = x * 1
    x[:, 0] = 7
    return x


@program
def set_range(x):
    x = x * 1
    x[1:, ::2] = -1.5
    return x


@program
def set_last(x):
    x = x * 1
    x[..., -1] = x[..., 0]
    x[-1] = 3
    return x


@program
def add_to_masked(x):
    x = x * 1
    x[x > 0] += 1
    return x


@program
def set_masked(x):
    x = x * 1
    x[x > 0] = -3.0
    x[x < -3] = torch.tensor(4.0)
    return x


@program
def add_into_flat(x):
    x = x * 1
    x.view(-1)[5].add_(100)
    return x


@program
def multiply_transposed(x):
    x = x * 1
    y = x.t()
    y.mul_(2)
    return x, y


@program
def write_base_read_view(x):
    x = x * 1
    y = x.t()
    x.mul_(3)
    return y


@program
def views_of_views(x):
    x = x * 1
    a = x.view(2, 6)
    b = a[1]
    c = b.view(2, 3).transpose(0, 1)
    c[0].fill_(50)
    return x, a, b, c


@program
def stale_views(x):
    x = x * 1
    first, second, whole = x[0], x[:, 1], x.view(-1)
    before = whole * 1
    first.add_(10)
    middle = second + 0
    second.mul_(2)
    return x, first, second, whole, before, middle


@program
def write_input(x):
    x.add_(1)
    x[0] = 0
    return x


@program
def write_input_through_view(x):
    x.t()[1].zero_()
    return x + 1


@program
def split_parts(x):
    x = x * 1
    a, b = x.split(2, dim=1)
    a.add_(1)
    b.mul_(a)
    return x, a, b


@program
def uneven_parts(x):
    x = x * 1
    parts = x.split([1, 3], dim=-1)
    parts[1].neg_()
    more = x.tensor_split(2)
    more[0].add_(1)
    return x, *parts, *more


@program
def chunk_then_write_base(x):
    x = x * 1
    a, b = x.chunk(2, dim=1)
    x.add_(1)
    b.zero_()
    return a, b, x


@program
def unbind_rows(x):
    x = x * 1
    for index, row in enumerate(x.unbind()):
        row.mul_(index)
    return x


@program
def unsafe_chunk_gates(x):
    a, b = (x * 1).unsafe_chunk(2, 1)
    a.sigmoid_()
    b.tanh_()
    return a * b


@program
def narrowed(x):
    x = x * 1
    x.narrow(1, 1, 2).fill_(9)
    x.narrow(0, -1, 1).add_(1)
    x.narrow(1, -2, 1).mul_(5)
    return x


@program
def on_diagonal(x):
    x = x * 1
    x.diagonal(1).add_(torch.tensor([1.0, 2.0, 3.0]))
    x[:, :3].fill_diagonal_(-1)
    return x


@program
def transposed_then_base_then_second_view(x):
    x = x * 1
    y, z = x.transpose(0, 1), x[1]
    y[2].add_(1)
    total = x.sum()
    return total, z, y


@program
def permuted(x):
    x = x.view(3, 2, 2) * 1
    x.permute(2, 0, 1)[0].mul_(3)
    x.permute(-1, 0, 1)[1].add_(3)
    x.movedim(0, 2)[0].add_(1)
    x.movedim((0, 1), (1, 2))[0].sub_(1)
    x.swapaxes(0, 2)[1].neg_()
    x.mT[0].add_(7)
    return x


@program
def copy_casts_and_broadcasts(x):
    x = x * 1
    x.copy_(torch.tensor([1, 2, 3, 4]))
    x[0].copy_(torch.tensor(True))
    n = torch.zeros(3, 4, dtype=torch.int32)
    n.copy_(x / 2)
    return x, n


@program
def rounding_division(x):
    n = x.to(torch.int32) * 1
    n.div_(2, rounding_mode="floor")
    n.floor_divide_(torch.tensor(2))
    n.add_(torch.tensor([1, 2, 3, 4]))
    n[0] = n[0] // 2
    return n


@program
def half_plus_float(x):
    h = x.half() * 1
    h.add_(x * 0.3)
    h[0].mul_(2.5)
    return h


@program
def comparison_in_place(x):
    x = x * 1
    x.gt_(0)
    b = x.bool() & (x > -3)
    b.logical_not_()
    b |= x > 5
    b &= x < 7
    b ^= x > 0
    return x, b


@program
def shape_number(x):
    n = x.shape[0]
    n += 1
    n *= 2
    return x + n


@program
def counter(x):
    steps = torch.zeros((), dtype=torch.int64)
    steps += 1
    steps.add_(2)
    return x * steps, steps


@program
def out_arguments(x):
    y = x * 1
    torch.add(x, 1, out=y)
    values, indices = torch.empty(0), torch.empty(0, dtype=torch.int64)
    torch.max(y, 1, out=(values, indices))
    torch.mul(x, 2, out=y[:])
    n = torch.zeros(3, 4, dtype=torch.float64)
    torch.add(torch.ones(3, 4, dtype=torch.int32), 3, out=n)
    return y, values, indices, n


@program
def relu_chain(x):
    x = torch.nn.functional.relu(x * 1, inplace=True)
    y = torch.nn.functional.relu6(x, inplace=True)
    z = torch.nn.functional.hardtanh_(y)
    return x, y, z


@program
def residual_through_identity(x):
    y = x * 1
    z = torch.nn.functional.dropout(y, 0.5, training=False)
    z = z.contiguous().to(torch.float32).type_as(x)
    z += 1
    return y


@program
def detached(x):
    y = x * 1
    z = y.detach()
    z.add_(1)
    y.detach_()
    y[0] = 5
    return y, z


@program
def put(x):
    x = x * 1
    rows, columns = torch.tensor([0, 1, 0]), torch.tensor([1, 1, 1])
    x.index_put_((rows, columns), torch.tensor([1.0, 2.0, 3.0]), accumulate=True)
    x[rows] = 2.0
    torch.ops.aten._index_put_impl_(x, [rows], torch.tensor(9.0), True, False)
    return x


@program
def scatters(x):
    x = x * 1
    index = torch.tensor([[0, 1, 2, 0]])
    x.scatter_(0, index, 1.5)
    x.scatter_(1, index, x * 2)
    x.scatter_add_(0, index, torch.ones(1, 4))
    x.index_fill_(1, torch.tensor([2]), -1)
    x.index_add_(0, torch.tensor([1]), torch.ones(1, 4))
    x.index_copy_(0, torch.tensor([2]), torch.ones(1, 4))
    x.masked_fill_(x > 3, 0)
    x.masked_scatter_(x < 0, torch.ones(12))
    return x


@program
def view_and_base(x):
    x = x * 1
    y = x.view(4, 3)
    y[0] = 1
    return y, x, y


@program
def sizes_changed_in_place(x):
    x = x * 1
    y = x[0]
    x.unsqueeze_(0)
    x.add_(1)
    x.squeeze_(0)
    x.t_()
    x[0] = 7
    x.transpose_(0, 1)
    return x, y


@program
def squeezed(x):
    x = x.view(3, 1, 4) * 1
    x.squeeze(1).add_(1)
    x.squeeze(0).add_(1)
    x.squeeze()[0].add_(1)
    x.unsqueeze(-1).mul_(2)
    x.unsqueeze(0)[0, 1].mul_(3)
    return x


@program
def reshaped(x):
    x = x * 1
    x.flatten()[0] = 100
    x.reshape(2, 6)[1, 1] = 101
    x.t().reshape(-1)[1] = 102  # a copy: x stays as it is
    x.t().flatten()[2] = 103  # a copy too
    x.unflatten(1, (2, 2))[:, 0, 1] = 104
    x.view_as(torch.zeros(4, 3))[3, 0] = 105
    x.reshape_as(torch.zeros(6, 2))[2, 0] = 106
    x.ravel()[7] = 107
    return x


@program
def contiguous_copy(x):
    x = x * 1
    y = x.t().contiguous()
    y.zero_()
    z = x.contiguous()
    z.add_(1)
    return x, y


@program
def conversion_copy(x):
    x = x * 1
    y = x.to(torch.float64)
    y.zero_()
    z = x.to(torch.float32, copy=True)
    z.zero_()
    x.to(torch.float32).add_(1)
    return x, y, z


@program
def expanded_is_read(x):
    x = x * 1
    y = x[:, :1].expand(3, 4)
    z = x.expand(2, 3, 4)
    x.add_(1)
    x.expand(3, 4).mul_(2)
    return y, z


@program
def strided(x):
    x = x * 1
    x.as_strided((2, 2), (1, 2), 1).add_(10)
    return x


@program
def complex_parts(x):
    x = x * 1
    c = torch.view_as_complex(x.view(3, 2, 2))
    c.mul_(2j)
    x.real[0] = 3
    return x


@program
def filled(x):
    x = x * 1
    x[0].fill_(x[1, 1])
    x[1].zero_()
    y = torch.zeros(2, 5)
    y.fill_(1)
    y[:, 1].fill_(torch.tensor(3))
    return x, y


@program
def addition_of_itself(x):
    x = x * 1
    x.add_(x.view(-1)[:4] * 1)
    x.add_(x)
    return x


@program
def many(x):
    parts = [x * 1, x * 2]
    torch._foreach_add_(parts, 1)
    torch._foreach_mul_(parts, [x, x])
    return tuple(parts)


@program
def powers(x):
    x = x.abs() + 1
    x.pow_(torch.tensor(2.0))
    x.pow_(0.5)
    x.clamp_(min=2)
    x.addmm_(torch.ones(3, 2), torch.ones(2, 4), beta=2)
    x.lerp_(torch.zeros(3, 4), 0.25)
    return x


@program
def loop_of_writes(x):
    y = torch.zeros(5, 4)
    for index in range(3):
        y[index] = x[index] + y[index - 1]
    return y


@pytest.mark.parametrize("name", PROGRAMS)
def test_equals_eager(name: str) -> None:
    check(PROGRAMS[name], matrix())


def test_random_writes_become_functional() -> None:
    def noise(x: torch.Tensor) -> torch.Tensor:
        x = x * 1
        torch.nn.functional.dropout(x, 0.0, training=True, inplace=True)
        x.uniform_(2, 3)
        return x

    graph = functionalize(capture(noise, matrix()))
    assert [node.op for node in graph.nodes] == ["aten::mul", "aten::dropout", "aten::uniform"]
    (result,) = run(graph, matrix())
    assert bool(((result >= 2) & (result <= 3)).all())


@pytest.mark.parametrize(
    ("operator", "functional", "arguments"),
    [
        (torch.ops.aten.normal_.default, "aten::normal_functional", {"mean": 0.0, "std": 1.0, "generator": None}),
        (torch.ops.aten.bernoulli_.float, "aten::bernoulli.p", {"p": 0.5, "generator": None}),
        (torch.ops.aten.random_.to, "aten::random.to", {"to": 5, "generator": None}),
    ],
    ids=str,
)
def test_random_operators(operator: Any, functional: str, arguments: dict[str, Any]) -> None:
    value = SourceValue("x", SourceType(torch.float32, (3,)))
    result = SourceValue("y", SourceType(torch.float32, (3,)))
    node = SourceNode(operator._schema.name, operator._schema.overload_name, {"self": value, **arguments}, [result], schema=operator._schema)
    graph = functionalize(SourceGraph([value], [node], [result]))
    assert graph.nodes[0].qualified_name == functional
    (computed,) = run(graph, torch.zeros(3))
    assert computed.shape == (3,)


def test_pure_graph_is_left_alone() -> None:
    graph = capture(lambda x: (x.t().reshape(-1) + 1, x[0]), matrix())
    nodes = list(graph.nodes)
    before = repr(graph)
    assert functionalize(graph) is graph
    assert graph.nodes == nodes and repr(graph) == before


def test_nodes_keep_the_location_of_the_call() -> None:
    graph = functionalize(capture(set_column, matrix(), dynamic=True))
    first = set_column.__code__.co_firstlineno
    lines = {node.op: node.location.line - first for node in graph.nodes}
    assert (lines["aten::mul"], lines["aten::select_scatter"], lines["aten::expand_as"]) == (2, 3, 3)
    assert all(node.location.file == __file__ for node in graph.nodes)


def test_same_dtype_needs_no_cast() -> None:
    graph = functionalize(capture(relu_chain, matrix()))
    assert "aten::to" not in [node.op for node in graph.nodes]


def test_proven_sizes_need_no_broadcast() -> None:
    graph = functionalize(capture(set_column, matrix()))
    assert "aten::expand_as" not in [node.op for node in graph.nodes]


def test_unknown_sizes_stay_unknown() -> None:
    """What is traced at one size is right at another."""

    def halves(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x = x * 1
        a, b = x.chunk(2, dim=0)
        b.add_(1)
        x.flatten()[0] = 5
        x[1:].mul_(2)
        x[:, 0] = 9
        return x, a, b

    graph = functionalize(capture(halves, torch.ones(4, 3), dynamic=True))
    for rows in (4, 6, 7):
        x = torch.arange(3.0 * rows).view(rows, 3)
        for result, wanted in zip(run(graph, x), halves(x), strict=True):
            torch.testing.assert_close(result, wanted)


def test_later_uses_may_name_the_written_tensor() -> None:
    """As in graphs of torch.export, where the result of an in-place call need not be used."""
    add, view = torch.ops.aten.add_.Scalar._schema, torch.ops.aten.view.default._schema
    kind = SourceType(torch.float32, (4,))
    x, flat, ignored = SourceValue("x", kind), SourceValue("flat", SourceType(torch.float32, (2, 2))), SourceValue("", kind)
    nodes = [
        SourceNode("aten::view", "", {"self": x, "size": [2, 2]}, [flat], schema=view),
        SourceNode("aten::add_", "Scalar", {"self": x, "other": 1, "alpha": 1}, [ignored], schema=add),
    ]
    graph = functionalize(SourceGraph([x], nodes, [x, flat, ignored]))
    results = run(graph, torch.zeros(4))
    assert [result.tolist() for result in results] == [[1.0] * 4, [[1.0, 1.0]] * 2, [1.0] * 4]


def test_writes_to_constants_leave_the_constant_alone() -> None:
    class Accumulate(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.total[1:].add_(x[1:])
            return self.total + x

    graph = functionalize(capture(Accumulate(), torch.ones(3)))
    held = {value for node in graph.nodes for value in node.input_values() if value.name == "total"}
    before = [value.constant.clone() for value in held if value.constant is not None]
    (result,) = run(graph, torch.ones(3))
    assert writes(graph) == [] and len(before) == 1
    assert torch.equal(result, before[0] + torch.tensor([1.0, 2.0, 2.0]))
    assert all(value.constant is not None and torch.equal(value.constant, before[0]) for value in held)


def test_output_names_follow_the_value() -> None:
    graph = capture(stale_views, matrix())
    for index, output in enumerate(graph.outputs):
        output.name = f"result_{index}"
    functionalize(graph)
    assert [output.name for output in graph.outputs] == [f"result_{index}" for index in range(6)]


def test_what_cannot_be_undone_is_refused() -> None:
    graph = capture(lambda x: x.mul(1).unfold(1, 2, 1).relu_(), matrix())
    with pytest.raises(UnsupportedOpError) as caught:
        functionalize(graph)
    line = test_what_cannot_be_undone_is_refused.__code__.co_firstlineno + 1
    assert "aten::unfold" in str(caught.value) and f"{__file__}:{line}" in str(caught.value)


@pytest.mark.parametrize(
    ("view", "arguments"),
    [(torch.ops.aten.resize_.default, {"size": [2], "memory_format": None}), (torch.ops.aten.view.dtype, {"dtype": torch.int32})],
    ids=str,
)
def test_new_memory_and_bitcasts_are_refused(view: Any, arguments: dict[str, Any]) -> None:
    x, seen = SourceValue("x", SourceType(torch.float32, (3,))), SourceValue("seen", SourceType(torch.int32, (3,)))
    schema, zero = view._schema, torch.ops.aten.zero_.default._schema
    place = Location("layer.0", "model.py", 12)
    nodes = [
        SourceNode(schema.name, schema.overload_name, {"self": x, **arguments}, [seen], place, schema=schema),
        SourceNode("aten::zero_", "", {"self": seen}, [SourceValue()], schema=zero),
    ]
    with pytest.raises(UnsupportedOpError, match=rf"{schema.name}[\s\S]*'layer.0', model.py:12"):
        functionalize(SourceGraph([x], nodes, [x]))


def test_unfold_without_a_write_through_it() -> None:
    def sliding(x: torch.Tensor) -> torch.Tensor:
        x = x * 1
        windows = x.unfold(1, 2, 1)
        x.add_(1)
        return windows

    check(sliding, matrix())


def test_custom_operator_keeps_its_name_and_returns_what_it_writes() -> None:
    schema = torch._C.parse_schema("acme::bump_(Tensor(a!) x, int by) -> ()")
    value = SourceValue("x", SourceType(torch.float32, (3,)))
    graph = functionalize(SourceGraph([value], [SourceNode("acme::bump_", "", {"x": value, "by": 2}, [], schema=schema)], [value]))
    (node,) = graph.nodes
    assert node.op == "acme::bump_" and node.outputs == graph.outputs and graph.outputs[0] is not value
    assert node.outputs[0].type == value.type


def block_graph(inner_writes_outer: bool) -> tuple[SourceGraph, SourceValue]:
    """A branch that reads x, after x was written; it writes x or a tensor of its own."""
    kind = SourceType(torch.float32, (3,))
    x, own, written, result = (SourceValue(name, kind) for name in ("x", "own", "written", "result"))
    neg, add = torch.ops.aten.neg.default._schema, torch.ops.aten.add_.Scalar._schema
    target = x if inner_writes_outer else own
    block = SourceGraph(
        [],
        [
            SourceNode("aten::neg", "", {"self": x}, [own], schema=neg),
            SourceNode("aten::add_", "Scalar", {"self": target, "other": 1, "alpha": 1}, [written], schema=add),
        ],
        [own],
    )
    nodes = [
        SourceNode("aten::add_", "Scalar", {"self": x, "other": 1, "alpha": 1}, [SourceValue("", kind)], schema=add),
        SourceNode("prim::If", "", {"condition": SourceValue("c")}, [result], Location(file="model.py", line=3), blocks=[block]),
    ]
    return SourceGraph([x], nodes, [result]), x


def test_block_reads_current_values_and_may_write_its_own() -> None:
    graph, x = block_graph(inner_writes_outer=False)
    functionalize(graph)
    block = graph.nodes[1].blocks[0]
    assert writes(block) == []
    assert block.nodes[0].arguments["self"] is graph.nodes[0].outputs[0] is not x
    assert block.outputs == block.nodes[1].outputs


def test_block_that_writes_outside_is_refused() -> None:
    with pytest.raises(UnsupportedOpError, match=r"prim::If[\s\S]*model.py:3"):
        functionalize(block_graph(inner_writes_outer=True)[0])


# Random programs: a pool of tensors that share memory, views taken and writes made in random order.

VIEWS: list[Callable[[torch.Tensor, int], torch.Tensor]] = [
    lambda t, n: t.select(n % t.dim(), n % t.shape[n % t.dim()]) if t.dim() else t.view(1),
    lambda t, n: t.select(n % t.dim(), -1) if t.dim() else t.unsqueeze(0),
    lambda t, n: t.narrow(n % t.dim(), 0, max(1, t.shape[n % t.dim()] // 2)) if t.dim() else t.alias(),
    lambda t, n: t[n % 2 :: 2] if t.dim() and t.shape[0] > 2 else t[None],
    lambda t, n: t.transpose(0, n % t.dim()) if t.dim() else t.detach(),
    lambda t, n: t.permute([(d + n) % t.dim() for d in range(t.dim())]) if t.dim() else t.view(1, 1),
    lambda t, n: t.reshape(-1),
    lambda t, n: t.contiguous(),
    lambda t, n: t.flatten(),
    lambda t, n: t.unsqueeze(n % (t.dim() + 1)) if t.dim() < 4 else t.squeeze(),
    lambda t, n: t.squeeze(n % t.dim()) if t.dim() else t.view(()),
    lambda t, n: t.squeeze(),
    lambda t, n: t.diagonal(0, 0, 1) if t.dim() > 1 else t.view_as(t),
    lambda t, n: t.chunk(2, n % t.dim())[-1] if t.dim() else t.expand(1),
    lambda t, n: t.unbind(n % t.dim())[0] if t.dim() else t.detach(),
    lambda t, n: t.split(2, n % t.dim())[0] if t.dim() else t.alias(),
    lambda t, n: t.movedim(0, -1) if t.dim() else t.reshape(1),
    lambda t, n: t.mT if t.dim() > 1 else t[..., None],
]
WRITES: list[Callable[[torch.Tensor, torch.Tensor, int], object]] = [
    lambda t, s, n: t.add_(n),
    lambda t, s, n: t.mul_(2),
    lambda t, s, n: t.fill_(n),
    lambda t, s, n: t.zero_(),
    lambda t, s, n: t.copy_(s) if s.shape == t.shape else t.copy_(s.sum()),
    lambda t, s, n: t.add_(s.sum()),
    lambda t, s, n: t.masked_fill_(t > n, -n),
    lambda t, s, n: t.unsqueeze_(0) if t.dim() < 4 else t.squeeze_(),
    lambda t, s, n: t.sub_(t.mean(-1, keepdim=True)) if t.dim() else t.neg_(),
]

STEP = st.tuples(st.booleans(), st.integers(0, 100), st.integers(0, 100), st.integers(0, 100), st.integers(0, 3))


@settings(derandomize=True, max_examples=150, deadline=None)
@given(st.lists(STEP, min_size=2, max_size=10))
def test_random_programs(steps: list[tuple[bool, int, int, int, int]]) -> None:
    def random_program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        pool = [x * 1]
        for is_write, operation, first, second, number in steps:
            target, source = pool[first % len(pool)], pool[second % len(pool)]
            if is_write:
                WRITES[operation % len(WRITES)](target, source, number)
            else:
                pool.append(VIEWS[operation % len(VIEWS)](target, number))
        return tuple(pool)

    check(random_program, torch.arange(24.0).reshape(2, 3, 4) - 7)
