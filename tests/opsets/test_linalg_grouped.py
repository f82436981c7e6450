"""Matrix products of groups of rows against eager PyTorch."""

import pytest
import torch

from onnx_exporter.testing import NEWEST, OpCase, expand

torch.manual_seed(0)
ROWS_OF_8, EXPERTS = torch.randn(6, 8), torch.randn(3, 8, 4)
OPSETS = (10, 11, 13, NEWEST)


def ends(*numbers):
    return torch.tensor(numbers, dtype=torch.int32)


def grouped(self, mat2, offs=None):
    return torch._grouped_mm(self, mat2, offs=offs)


CASES = [
    OpCase(
        "aten::_grouped_mm",
        grouped,
        (ROWS_OF_8, EXPERTS, ends(2, 2, 6)),
        dynamic={0: {0: "rows"}},
        others=[(torch.randn(9, 8), EXPERTS, ends(0, 9, 9)), (torch.randn(1, 8), EXPERTS, ends(0, 0, 1))],
        opsets=OPSETS,
        captures=("trace",),  # torch.export lets only bfloat16 through, which ONNX Runtime does not multiply
        label="experts-with-a-group-of-none",
    ),
    OpCase(
        "aten::_grouped_mm",
        grouped,
        (torch.randn(3, 4, 8), torch.randn(8, 12), ends(4, 8, 12)),
        opsets=OPSETS,
        captures=("trace",),
        label="groups-of-columns",
    ),
    OpCase(
        "aten::_grouped_mm",
        grouped,
        (torch.randn(4, 12), torch.randn(12, 8), ends(4, 4, 12)),
        opsets=OPSETS,
        captures=("trace",),
        label="groups-of-what-is-summed",
    ),
    OpCase(
        "aten::_grouped_mm",
        grouped,
        (torch.randn(3, 4, 8), torch.randn(3, 8, 4)),
        dynamic={0: {0: "batch"}, 1: {0: "batch"}},
        opsets=(10, NEWEST),
        captures=("trace",),
        label="batches",
    ),
]
ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)


def test_a_number_of_groups_that_varies_is_refused(exporter):
    case = OpCase("aten::_grouped_mm", grouped, (ROWS_OF_8, EXPERTS, ends(2, 2, 6)), dynamic={2: {0: "groups"}, 1: {0: "groups"}})
    exporter.refuse(case, NEWEST, reason="number of groups")
