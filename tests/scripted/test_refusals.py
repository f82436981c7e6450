"""What a file cannot express is refused with its line; what it does not do is warned of."""

from __future__ import annotations

from typing import Any

import programs_forms as forms
import pytest
import torch
from torch import Tensor, nn

from onnx_exporter import CaptureError, ExportWarning, UnsupportedOpError, export


class RankGrows(nn.Module):
    def forward(self, x: Tensor, n: int) -> Tensor:
        for _ in range(n):
            x = x.unsqueeze(0)
        return x


class WritesWhatALoopChose(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = x
        for _ in range(int(x.sum())):
            y = y * 2
        y.add_(1.0)
        return x + y


class DictByData(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        seen: dict[int, Tensor] = {}
        seen[int(x.sum())] = x
        return seen[int(x.sum())]


class DictOfRounds(nn.Module):
    def forward(self, x: Tensor, n: int) -> Tensor:
        seen: dict[int, Tensor] = {}
        for i in range(n):
            seen[i] = x * i
        return seen[0]


class KeyByData(nn.Module):
    def forward(self, x: Tensor, n: int) -> Tensor:
        parts = {1: x, 2: x + 1}
        return parts[n]


class TextOfData(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        text = str(x.sum().item())
        if text[0] == "-":
            return x
        return x + 1


@torch.jit.script
class Context:
    def __init__(self, count: int) -> None:
        self.count = count

    def __enter__(self) -> int:
        return self.count

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        pass


class OwnContext(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        with Context(3):
            y = x + 1
        return y * 2


class PackedWeight(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        weight = torch.quantize_per_tensor(torch.ones(3, 3), 0.1, 0, torch.qint8)
        self.packed = torch.ops.quantized.linear_prepack(weight, None)

    def forward(self, x: Tensor) -> Tensor:
        weight, _ = self.packed.unpack()
        return x @ weight.dequantize()


class ListOfDicts(nn.Module):
    def forward(self, x: Tensor, n: int) -> list[dict[str, Tensor]]:
        found: list[dict[str, Tensor]] = []
        for i in range(n):
            found.append({"x": x[:i]})
        return found


class SeveralForms(nn.Module):
    def forward(self, x: Tensor, n: int) -> Tensor:
        items: list[Tensor] = [x.long()]
        for i in range(n):
            items.append(x[:i])
        return items[-1]


class JoinsTwoTypes(nn.Module):
    def forward(self, x: Tensor, n: int) -> Tensor:
        items: list[Tensor] = [x.long()]
        for i in range(n):
            items.append(x * i)
        return torch.stack(items)


class ComparesLists(nn.Module):
    def forward(self, x: Tensor, n: int) -> Tensor:
        numbers: list[int] = []
        for i in range(n):
            numbers.append(i)
        return x + 1 if numbers == [0, 1] else x


class ChangesOneOfTwo(nn.Module):
    def forward(self, x: Tensor, n: int) -> Tensor:
        first: list[Tensor] = [x]
        second: list[Tensor] = [x]
        for i in range(n):
            target = first if i % 2 == 0 else second
            target.append(x * i)
        return torch.stack(first)


class KeepsAndWrites(nn.Module):
    def forward(self, x: Tensor, n: int) -> Tensor:
        state = torch.zeros_like(x)
        states: list[Tensor] = []
        for _ in range(n):
            state += x
            states.append(state)
        return torch.stack(states)


class WritesAnElement(nn.Module):
    def forward(self, x: Tensor, n: int) -> Tensor:
        items: list[Tensor] = [x.clone()]
        for i in range(n):
            if i % 2 == 0:
                items.append(x * i)
        items[-1].add_(5)
        return torch.stack(items)


class Checks(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        assert x.dim() == 2, "a matrix"
        if bool(x.max() > 1000):
            raise ValueError(f"too large: {x.max()}")
        print(x.shape)
        return x + 1


X = torch.ones(2, 3)


@pytest.mark.parametrize(
    ("model", "args", "message"),
    [
        (RankGrows(), (X, 2), r"rank 2 or 3[\s\S]*test_refusals.py:\d+"),
        (DictByData(), (X,), r"a dict is read or changed under a key that the data decide[\s\S]*test_refusals.py:\d+"),
        (DictOfRounds(), (X, 2), r"a dict is read or changed under a key that the data decide[\s\S]*test_refusals.py:\d+"),
        (KeyByData(), (X, 2), r"under a key that the data decide[\s\S]*test_refusals.py:\d+"),
        (TextOfData(), (X,), r"text that is made of data[\s\S]*test_refusals.py:\d+"),
        (forms.CallsPython(), (X,), r"the Python function python_part[\s\S]*programs_forms.py:\d+"),
        (OwnContext(), (X,), r"a with block of __torch__\.\S*Context[\s\S]*test_refusals.py:\d+"),
        (PackedWeight(), (X,), r"custom C\+\+ class quantized.LinearPackedParamsBase[\s\S]*test_refusals.py:\d+"),
        (ListOfDicts(), (X, 2), r"holds a dict[\s\S]*test_refusals.py:\d+"),
        (ChangesOneOfTwo(), (X, 2), r"a list is changed of which the data decide which it is[\s\S]*test_refusals.py:\d+"),
        (JoinsTwoTypes(), (X, 2), r"float32 or int64, depending on the data\n  at \S*test_refusals.py:\d+"),
        (ComparesLists(), (X, 2), r"lists whose length the data decide[\s\S]*test_refusals.py:\d+\n  compare lengths"),
        (SeveralForms(), (X, 2), r"int64 or float32[\s\S]*test_refusals.py:\d+"),
    ],
    ids=lambda item: type(item).__name__ if isinstance(item, nn.Module) else "",
)
def test_refused_with_its_line(model: nn.Module, args: tuple[object, ...], message: str) -> None:
    with pytest.raises(CaptureError, match=message):
        export(torch.jit.script(model), args, None)


class IntOrFloat(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.to(torch.int64) if bool(x.sum() > 0) else x


def test_a_result_of_two_types_is_refused_with_its_line() -> None:
    with pytest.raises(CaptureError, match=r"no one form[\s\S]*test_refusals.py:\d+"):
        export(torch.jit.script(IntOrFloat()), (X,), None)


@pytest.mark.parametrize(
    ("model", "message"),
    [(KeepsAndWrites(), "that a list holds"), (WritesAnElement(), "that is read later|that comes from a list")],
)
def test_a_write_that_a_list_should_see_is_refused(model: nn.Module, message: str) -> None:
    with pytest.raises(UnsupportedOpError, match=rf"test_refusals.py:\d+[\s\S]*{message}"):
        export(torch.jit.script(model), (X, 2), None)


class Collects(nn.Module):
    def forward(self, x: Tensor, n: int) -> Tensor:
        outs: list[Tensor] = []
        for i in range(n):
            outs.append(x[:i])
        return torch.cat(outs)


@pytest.mark.parametrize("opset", [9, 11])
def test_a_list_in_a_loop_needs_its_opset(opset: int) -> None:
    with pytest.raises(UnsupportedOpError, match=r"test_refusals.py:\d+[\s\S]*opset 13"):
        export(torch.jit.script(Collects()), (X, 2), None, opset_version=opset)


class MaybeNone(nn.Module):
    def forward(self, x: Tensor) -> Tensor | None:
        if bool(x.sum() > 0):
            return x
        return None


def test_an_optional_result_needs_its_opset() -> None:
    with pytest.raises(UnsupportedOpError, match=r"test_refusals.py:\d+[\s\S]*opset 16"):
        export(torch.jit.script(MaybeNone()), (X,), None, opset_version=15)


def test_a_write_that_two_names_may_share_is_refused() -> None:
    with pytest.raises(UnsupportedOpError, match=r"test_refusals.py:\d+[\s\S]*in place"):
        export(torch.jit.script(WritesWhatALoopChose()), (X,), None)


def test_assertions_and_prints_are_left_out_with_one_warning() -> None:
    with pytest.warns(ExportWarning, match="neither checks, raises nor prints") as caught:
        export(torch.jit.script(Checks()), (X,), None, verify=True)
    (warning,) = [item for item in caught if "neither checks" in str(item.message)]
    assert "print" in str(warning.message)
    assert "an assertion or exception" in str(warning.message)


def test_a_model_that_always_raises_is_refused() -> None:
    with pytest.raises(CaptureError, match=r"raises here[\s\S]*test_refusals.py:\d+"):
        export(torch.jit.script(Checks()), (X[0],), None)
