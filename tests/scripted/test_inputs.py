"""The forms in which scripted programs come, and what they take: numbers, lists, dicts, text."""

from __future__ import annotations

import io
from typing import Any

import programs_forms as forms
import pytest
import torch
from torch import Tensor, nn

from onnx_exporter import export

X = torch.tensor([[1.0, -2, 3, 4], [0.5, 6, -7, 8], [9, 1, 1, -3]])
torch.manual_seed(0)


class Rounds(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor, n: int) -> Tensor:
        for _ in range(n):
            if bool(x.sum() > 0):
                x = self.linear(x)
            else:
                x = x + 1
        return x


class Gate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            return self.linear(x)
        return x * 2


class CallsScripted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = torch.jit.script(Gate())

    def forward(self, x: Tensor) -> Tensor:
        return self.gate(x) + self.gate(x - 1)


def check(model: Any, args: Any, *others: Any, **options: Any) -> set[str]:
    """Exports, compares with PyTorch, and returns the operators of the file."""
    result = export(model, args, None, verify=True, verify_args=others or None, **options)
    return {node.op_type for node in result.model.graph.all_nodes()}


def reloaded(model: Any) -> Any:
    stream = io.BytesIO()
    torch.jit.save(model, stream)
    stream.seek(0)
    return torch.jit.load(stream)


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_every_capture_takes_a_scripted_model(capture: str) -> None:
    assert "Loop" in check(torch.jit.script(Rounds()), (X, 2), (X, 0), (-X, 3), capture=capture)


def test_a_saved_model() -> None:
    assert "Loop" in check(reloaded(torch.jit.script(Rounds())), (X, 2), (-X, 5))


def test_a_saved_trace_with_scripted_parts() -> None:
    assert "If" in check(reloaded(torch.jit.trace(CallsScripted(), (X,))), (X,), (-X,))


def test_a_frozen_model() -> None:
    assert "Loop" in check(torch.jit.freeze(torch.jit.script(Rounds().eval())), (X, 2), (-X, 5))


def test_a_model_optimized_for_inference() -> None:
    assert "If" in check(torch.jit.optimize_for_inference(torch.jit.script(Gate().eval())), (X,), (-X,))


@torch.jit.script
def steps(x: Tensor, n: int = 2, by: float = 0.5, multiplies: bool = False) -> Tensor:
    for _ in range(n):
        x = x * by if multiplies else x + by
    return x


def test_numbers_are_inputs_of_the_file() -> None:
    result = export(steps, (X, 3, 1.5, True), None)
    assert [value.name for value in result.model.graph.inputs] == ["x", "n", "by", "multiplies"]
    check(steps, (X, 3, 1.5, True), (X, 1, 2.5, False), (X, 0, 0.5, True))


def test_defaults_are_constants() -> None:
    check(steps, (X,), (-X,))


def test_keyword_arguments() -> None:
    check(steps, (X, {"by": 2.0, "multiplies": True}), (X, {"by": 3.0, "multiplies": False}))


@torch.jit.script_if_tracing
def shrink(x: Tensor, n: int) -> Tensor:
    for _ in range(n):
        if bool(x.sum() > 0):
            x = x * 0.5 - 1
    return x


class CallsScriptIfTracing(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return shrink(x, 3) + 1


def test_script_if_tracing() -> None:
    assert "If" in check(CallsScriptIfTracing(), (X,), (-X,))


class Structured(nn.Module):
    def forward(
        self, xs: list[Tensor], named: dict[str, Tensor], sizes: list[int], pair: tuple[Tensor, int], mode: str
    ) -> Tensor:
        total = named["a"] * pair[1]
        for x in xs:
            total = total + x * sizes[0]
        words = mode.split("_")
        if words[0].upper() == "ADD" and mode.startswith("add") and len(mode) > 3:
            total = total + len(words)
        return total + pair[0]


def test_structures_and_text() -> None:
    check(torch.jit.script(Structured()), ([X, X + 1], {"a": X}, [2, 3], (X, 4), "add_two"))


class Numbers(nn.Module):
    def forward(self, x: Tensor, flag: bool, k: int | None = None) -> tuple[Tensor, int, float, bool]:
        if flag:
            x = x + 1
        return x, x.size(0) + (k if k is not None else 0), float(x.sum()), flag


def test_numbers_as_results() -> None:
    check(torch.jit.script(Numbers()), (X, True), (X, False))


def test_optional_numbers() -> None:
    check(torch.jit.script(Numbers()), (X, True, 3), (X, False, 5))


class OptionalNumbers(nn.Module):
    def forward(self, x: Tensor, times: int | None = None, more: float | None = None, turns: bool | None = None) -> Tensor:
        if times is not None:
            x = x * times
        if more is not None:
            x = x + more
        return -x if turns is not None and turns else x


@pytest.mark.parametrize(
    ("args", "other", "names"),
    [
        ((X, 3), (X, 5), ["x", "times"]),
        ((X, 3, 0.5, True), (X, -2, 1.5, False), ["x", "times", "more", "turns"]),
        ((X, None, 0.5), (X, None, 2.5), ["x", "more"]),
        ((X, {"turns": False}), (X, {"turns": True}), ["x", "turns"]),
    ],
)
def test_optional_numbers_that_are_given_are_inputs(args: Any, other: Any, names: list[str]) -> None:
    result = export(torch.jit.script(OptionalNumbers()), args, None, verify=True, verify_args=[other])
    assert [value.name for value in result.model.graph.inputs] == names


def test_a_module_behind_an_interface() -> None:
    result = export(torch.jit.script(forms.UsesInterface()), (X,), None)
    assert "part.weight" in result.model.graph.initializers
    assert "If" in check(torch.jit.script(forms.UsesInterface()), (X,), (-X,))


def halve(x: Tensor) -> Tensor:
    return x * 0.5


class Forks(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        future = torch.jit.fork(halve, x)
        y = x + 1
        return torch.jit.wait(future) + y


def test_a_fork_is_computed_in_order() -> None:
    check(torch.jit.script(Forks()), (X,))


class WithoutGradients(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            y = x * 2
            if bool(y.sum() > 0):
                y = y + 1
        return y


def test_a_block_without_gradients() -> None:
    check(torch.jit.script(WithoutGradients()), (X,), (-X,))


def test_enumerations_and_attributes() -> None:
    check(torch.jit.script(forms.Constants()), (X,))


class Remembers(nn.Module):
    """Attributes and buffers that a call changes are as before afterwards, or other runs would not compare."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("memory", torch.zeros(3, 4))
        self.steps = 2

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        self.steps += 1
        if bool(x.sum() > 0):
            self.memory = self.memory + x
        else:
            self.memory.mul_(2).add_(1)
        return self.memory * self.count * self.steps


def test_state_is_as_before() -> None:
    model = torch.jit.script(Remembers())
    check(model, (X,), (X + 1,), (-X,))
    assert model.steps == 2
    assert torch.equal(model.memory, torch.zeros(3, 4))


class ReadsInBranches(nn.Module):
    """A list that is an attribute, read for the first time and changed on one side of a branch."""

    def __init__(self) -> None:
        super().__init__()
        self.values = [1, 2]

    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            values = self.values
            values.append(3)
            x = x + len(values)
        return x * len(self.values)


def test_an_attribute_that_a_branch_reads_first() -> None:
    result = export(torch.jit.script(ReadsInBranches()), (X,), None)
    for sign in (1.0, -1.0):
        got = _run(result, X * sign)
        assert torch.equal(got, ReadsInBranches()(X * sign))


def _run(result: Any, x: Tensor) -> Tensor:
    import onnxruntime

    session = onnxruntime.InferenceSession(result.model_proto.SerializeToString())
    return torch.from_numpy(session.run(None, {"x": x.numpy()})[0])


class PackedGru(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(4, 5, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out, h = self.gru(packed)
        padded, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
        return padded, h


@pytest.mark.filterwarnings("ignore:a file neither checks")
def test_unsorted_packed_sequences() -> None:
    first = (torch.randn(3, 6, 4), torch.tensor([2, 6, 3]))
    check(torch.jit.script(PackedGru()), first, (torch.randn(3, 6, 4), torch.tensor([6, 1, 3])))


@pytest.mark.filterwarnings("ignore:a file neither checks")
def test_a_transformer_with_a_mask() -> None:
    """nn.Transformer finds out of the mask whether it is causal, and drops it then."""
    model = torch.jit.script(nn.Transformer(8, 2, 1, 2, 16, batch_first=True).eval())
    source, target = torch.randn(2, 5, 8), torch.randn(2, 4, 8)
    causal = nn.Transformer.generate_square_subsequent_mask(4)
    other = causal.clone()
    other[2, 0] = float("-inf")
    args = [(source, target, {"tgt_mask": mask}) for mask in (causal, other)]
    check(model, args[0], args[1])


def _innermost(x: Tensor) -> Tensor:
    return x * 2


def _inner(x: Tensor) -> Tensor:
    return _innermost(x) + 1


def _calls_of_calls(x: Tensor) -> Tensor:
    return _inner(x) - 3


def test_calls_of_calls_after_an_unoptimised_run() -> None:
    """Which leaves the calls inside the functions that a function calls."""
    model = torch.jit.script(_calls_of_calls)
    with torch.jit.optimized_execution(False):
        model(torch.ones(2))
        export(model, (torch.ones(2),), verify=True)
    export(model, (torch.ones(2),), verify=True)


@torch.jit.script
def either(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    return a if bool(c.sum() > 0) else b


@torch.jit.script
def written(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    v = a if bool(c.sum() > 0) else b
    v.add_(1)
    return v


@torch.jit.script
def item_of(items: list[Tensor], c: Tensor) -> Tensor:
    return items[0] if bool(c.sum() > 0) else items[1]


@torch.jit.script_if_tracing
def while_tracing(a: Tensor, b: Tensor) -> Tensor:
    return a if bool(a.sum() > 0) else b


class EitherPart(nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return a if bool(a.sum() > 0) else b


class CallsWithBuffer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", torch.zeros(2))
        self.part = torch.jit.script(EitherPart())


class ReturnsABuffer(CallsWithBuffer):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return either(self.kept, y, x) + self.kept + y


class ReturnsFromAPart(CallsWithBuffer):
    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return self.part(x, y) + x, y * 2


class WritesAnArgument(CallsWithBuffer):
    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        a, b = x * 1, y * 1
        result = written(a, b, x)
        return result, a, b


class ReturnsAnArgument(CallsWithBuffer):
    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return either(x, y, x) + x, item_of([x, y], x) + x + y, while_tracing(x, y) - x


@pytest.mark.parametrize("opset", [9, 17])
@pytest.mark.parametrize("model", [ReturnsABuffer, ReturnsFromAPart, WritesAnArgument, ReturnsAnArgument])
def test_an_argument_stays_what_it_is_where_a_scripted_function_may_return_it(model: type[nn.Module], opset: int) -> None:
    args, others = (torch.ones(2), torch.zeros(2)), [(-torch.ones(2), torch.zeros(2)), (torch.ones(2) * 2, torch.ones(2) * 3)]
    export(model(), args, None, opset_version=opset, verify=True, verify_args=others)
