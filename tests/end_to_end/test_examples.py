"""Every example runs, and shows what it says."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))

SHOWN = {
    "alexnet": ["%learned_15", "Conv", "scores of shape (10, 1000)"],
    "behaves_differently": ["eager: (1, 2)"],
    "beyond_two_gigabytes": ["large.onnx.data: 2152960000 bytes"],
    "custom_operator": ["custom_domain::Foo", "'custom_domain': 2"],
    "deformable_convolution": ["my_domain::DeformConv2d", "verified against PyTorch with onnxruntime: ok"],
    "dynamic_sizes": ["(2, 4, 17, 40)", "['[batch,queries,8]', '[batch,keys,8]', '[batch,queries,8]']"],
    "metadata": ["orchard | Tells apples from pears.", "'author': 'A. Gardener'"],
    "operators_by_hand": ["['Elu', 'Asinh']", "verified against PyTorch with onnxruntime: ok"],
    "traced_and_scripted": [
        "traced: ['Add', 'Mul', 'ReduceSum']",
        "'If', 'Less', 'Loop'",
        "verified against PyTorch with onnxruntime: ok",
    ],
    "python_op_handler": [
        "MyClip: argument 0 is a tensor, requires_grad=True\nMyClip: argument 1 is -0.5\n",
        "['Clip', 'Mul', 'Relu'] verified against PyTorch with onnxruntime: ok",
    ],
    "static_symbolic": [
        "trace ['Gemm', 'Clip'] verified against PyTorch with onnxruntime: ok",
        "export ['Gemm', 'Clip'] verified against PyTorch with onnxruntime: ok",
    ],
}
"""What each example must print."""


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_example(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out
    for part in SHOWN[path.stem]:
        assert part in printed, printed
