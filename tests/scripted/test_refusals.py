"""What a file cannot express is refused with its line; what it does not do is warned of."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from onnx_exporter import CaptureError, ExportWarning, UnsupportedOpError, export


class ListOfUnknownLength(nn.Module):
    def forward(self, x: Tensor, n: int) -> list[Tensor]:
        outs: list[Tensor] = []
        for i in range(n):
            outs.append(x * i)
        return outs


class ReadsWhatItAppends(nn.Module):
    def forward(self, x: Tensor, n: int) -> Tensor:
        outs = [x]
        for i in range(n):
            outs.append(outs[-1] * i)
        return torch.stack(outs)


class AppendsSometimes(nn.Module):
    def forward(self, x: Tensor, n: int) -> Tensor:
        outs = [x]
        for i in range(n):
            if bool(x.sum() > i):
                outs.append(x * i)
        return torch.stack(outs)


class RankGrows(nn.Module):
    def forward(self, x: Tensor, n: int) -> Tensor:
        for _ in range(n):
            x = x.unsqueeze(0)
        return x


class MaybeNone(nn.Module):
    def forward(self, x: Tensor) -> Tensor | None:
        if bool(x.sum() > 0):
            return x
        return None


class WritesAChoice(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = x
        if bool(x.sum() > 0):
            y = x * 2
        y.add_(1.0)
        return x + y


class DictByData(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        seen: dict[int, Tensor] = {}
        seen[int(x.sum())] = x
        return seen[int(x.sum())]


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
        (ListOfUnknownLength(), (X, 2), "returns a list whose length the data decide"),
        (ReadsWhatItAppends(), (X, 2), r"a list is read in the loop that appends to it[\s\S]*test_refusals.py:\d+"),
        (AppendsSometimes(), (X, 2), r"test_refusals.py:\d+"),
        (RankGrows(), (X, 2), r"rank 2 or 3[\s\S]*test_refusals.py:\d+"),
        (DictByData(), (X,), r"a dict is changed under a key that the data decide[\s\S]*test_refusals.py:\d+"),
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


def test_a_result_that_may_be_none_is_refused() -> None:
    with pytest.raises(CaptureError, match="None"):
        export(torch.jit.script(MaybeNone()), (X,), None)


def test_a_write_that_two_names_may_share_is_refused() -> None:
    with pytest.raises(UnsupportedOpError, match=r"test_refusals.py:\d+[\s\S]*in place"):
        export(torch.jit.script(WritesAChoice()), (X,), None)


def test_assertions_and_prints_are_left_out_with_one_warning() -> None:
    with pytest.warns(ExportWarning, match="neither checks, raises nor prints") as caught:
        export(torch.jit.script(Checks()), (X,), None, verify=True)
    (warning,) = [item for item in caught if "neither checks" in str(item.message)]
    assert "print" in str(warning.message)
    assert "an assertion or exception" in str(warning.message)


def test_a_model_that_always_raises_is_refused() -> None:
    with pytest.raises(CaptureError, match=r"raises here[\s\S]*test_refusals.py:\d+"):
        export(torch.jit.script(Checks()), (X[0],), None)
