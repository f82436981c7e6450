"""What the plugin writes computes what PyTorch computes, and it writes nothing unless it is preferred."""

import math
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from onnx_exporter import GraphContext, OpTable, UnsupportedOpError, Value, export, installed_plugins
from onnx_exporter.testing import NEWEST, OpCase, expand, opinfo_cases


def randn(*sizes):
    return torch.randn(sizes, generator=torch.Generator().manual_seed(sum(sizes)))


X = randn(2, 3, 8) * 3
MORE = [(randn(5, 3, 8),), (randn(1, 3, 8),), (randn(0, 3, 8),)]
BATCH = {0: {0: "batch"}}
FIRST = (7, 13, NEWEST)


class Residual(nn.Module):
    """A norm of a sum, as around each layer of a transformer."""

    def __init__(self, norm, weighted=True):
        super().__init__()
        self.norm = norm(8, elementwise_affine=weighted)
        for index, parameter in enumerate(self.norm.parameters()):
            parameter.requires_grad_(False)
            nn.init.normal_(parameter, generator=torch.Generator().manual_seed(index))

    def forward(self, x, y):
        total = x + y
        return self.norm(total), total * 2


class WithBias(nn.Module):
    def __init__(self, approximate):
        super().__init__()
        torch.manual_seed(1)
        self.linear, self.approximate = nn.Linear(8, 5), approximate

    def forward(self, x):
        return F.gelu(self.linear(x), approximate=self.approximate)


def case(op, call, *args, label="", **fields):
    fields = {"opsets": FIRST, "dynamic": BATCH, "others": MORE, **fields}
    return OpCase(op, call, args or (X,), label=label, **fields)


def emits(*names):
    return {f"com.microsoft::{name}" for name in names}


TWO = {0: {0: "batch"}, 1: {0: "batch"}}
PAIRS = [(randn(4, 3, 8), randn(4, 3, 8) + 1), (randn(1, 3, 8), randn(1, 3, 8))]
A, B = randn(2, 3, 4), randn(2, 5, 4)
MATRICES = [(randn(6, 3, 4), randn(6, 5, 4))]

ACTIVATIONS = [
    case("aten::gelu", F.gelu, emits=emits("Gelu")),
    case("aten::gelu", lambda x: F.gelu(x, approximate="tanh"), emits=emits("FastGelu"), label="tanh"),
    case("aten::gelu", WithBias("none"), emits=emits("BiasGelu", "FusedMatMul"), avoids={"Add"}, label="bias"),
    case("aten::gelu", WithBias("tanh"), emits=emits("FastGelu"), avoids={"Add"}, label="bias-tanh"),
    case("aten::gelu", lambda x: F.gelu(x + x[:, :, :1]), emits={*emits("Gelu"), "Add"}, label="sum"),
    case("aten::silu", F.silu, emits=emits("QuickGelu")),
    case("aten::mul", lambda x: x * torch.sigmoid(1.702 * x), emits=emits("QuickGelu"), avoids={"Sigmoid"}, label="quick"),
    case("aten::mul", lambda x: torch.sigmoid(x) * x, emits=emits("QuickGelu"), avoids={"Sigmoid"}, label="gate"),
    case("aten::mul", lambda x: x * torch.sigmoid(0.0 * x), emits=emits("QuickGelu"), label="half"),
    case(
        "aten::mul",
        lambda x: x * torch.sigmoid(2 * x + 1),
        emits={"Sigmoid", "Mul"},
        avoids=emits("QuickGelu"),
        label="other gate",
    ),
    case(
        "aten::mul", lambda x: (x + 1) * torch.sigmoid(x), emits={"Sigmoid", "Mul"}, avoids=emits("QuickGelu"), label="of another"
    ),
]

PRODUCTS = [
    case(
        "aten::matmul",
        lambda a, b: a @ b.mT,
        A,
        B,
        dynamic=TWO,
        others=MATRICES,
        emits=emits("FusedMatMul"),
        avoids={"Transpose"},
    ),
    case(
        "aten::bmm",
        lambda a, b: torch.bmm(a.transpose(1, 2), b.transpose(2, 1).transpose(1, 2)),
        *(randn(2, 3, 4), randn(2, 3, 5)),
        dynamic=TWO,
        others=[(randn(6, 3, 4), randn(6, 3, 5))],
        emits=emits("FusedMatMul"),
        label="first",
    ),
    case(
        "aten::matmul",
        lambda a, b: (a @ b.mT / math.sqrt(4), 0.25 * (a @ b.mT), (a @ b.mT) * -3),
        *(A, B),
        dynamic=TWO,
        others=MATRICES,
        emits=emits("FusedMatMul"),
        avoids={"Mul", "Div"},
        label="scaled",
    ),
    case(
        "aten::matmul",
        lambda a, b: (a @ b.mT * 0, (a / 0) @ b.mT * 0.0),
        *(A, B),
        dynamic=TWO,
        others=MATRICES,
        opsets=(13,),
        emits=emits("FusedMatMul"),
        avoids={"Mul"},
        label="times zero",
    ),
    *(
        case(
            "aten::matmul",
            lambda a, b, factor=factor: a @ b.mT * factor,
            *(A, B),
            dynamic=TWO,
            others=MATRICES,
            opsets=(13,),
            emits={"Mul"},
            label=f"times {factor}",
        )
        for factor in (1e-40, math.inf)
    ),
    case(
        "aten::matmul",
        lambda a, b: a @ b.mT * 1e-30 * 1e-30 * 1e30,
        *(A, B),
        dynamic=TWO,
        others=MATRICES,
        opsets=(13,),
        emits={"Mul", *emits("FusedMatMul")},
        atol=0,
        label="underflow",
    ),
    case("aten::linear", nn.Linear(8, 5), X[0], opsets=(13,), dynamic={}, others=(), emits={"Gemm"}, label="with bias"),
    case(
        "aten::matmul",
        lambda a, b: (a.unsqueeze(1) @ b[0].mT, a[0] @ b.mT),
        *(A, B),
        dynamic=TWO,
        others=MATRICES,
        emits=emits("FusedMatMul"),
        avoids={"MatMul"},
        label="broadcast",
    ),
    case(
        "aten::matmul",
        lambda a, b: (a.double() @ b.double().mT, a.double() @ b.double().mT * 0.1),
        *(A, B),
        dynamic=TWO,
        others=MATRICES,
        opsets=(9, NEWEST),
        emits={"Mul", *emits("FusedMatMul")},
        label="double",
    ),
    case(
        "aten::matmul",
        lambda a, b: (a @ b[:, :4], a[0].T @ a[0, :, 0], a.long() @ b.mT.long(), a @ b.mT * b[0, :, 0]),
        *(A, B),
        dynamic=TWO,
        others=MATRICES,
        opsets=(9, NEWEST),
        emits={"MatMul", "Mul"},
        captures=("trace",),
        label="standard",
    ),
]

NORMS = [
    case("aten::layer_norm", Residual(nn.LayerNorm), *PAIRS[0], dynamic=TWO, others=PAIRS, emits=emits("SkipLayerNormalization")),
    case(
        "aten::layer_norm",
        Residual(nn.LayerNorm, False),
        *PAIRS[0],
        emits=emits("SkipLayerNormalization"),
        dynamic={},
        others=(),
        label="plain",
    ),
    case(
        "aten::rms_norm",
        Residual(nn.RMSNorm),
        *PAIRS[0],
        dynamic=TWO,
        others=PAIRS,
        emits=emits("SkipSimplifiedLayerNormalization"),
    ),
    case("aten::layer_norm", lambda x: F.layer_norm(x + x, (8,), eps=0.0), emits=emits("SkipLayerNormalization"), label="no eps"),
    *(
        case(
            f"aten::{norm.__name__}",
            lambda x, norm=norm: norm(x + x, (8,), eps=-0.001),
            avoids=emits("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"),
            opsets=(13,),
            label="eps below 0",
        )
        for norm in (F.layer_norm, F.rms_norm)
    ),
    case("aten::layer_norm", nn.LayerNorm(8), avoids=emits("SkipLayerNormalization"), label="no sum"),
    case(
        "aten::layer_norm", lambda x: F.layer_norm(x + x[:, :1], (8,)), avoids=emits("SkipLayerNormalization"), label="broadcast"
    ),
    case("aten::layer_norm", lambda x: F.layer_norm(x + x * 2, (3, 8)), avoids=emits("SkipLayerNormalization"), label="two axes"),
]


SQUARE = torch.eye(3) * 3 + randn(2, 3, 3) / 4
INVERSES = [
    case("aten::linalg_inv", torch.linalg.inv, SQUARE, dynamic=BATCH, others=[(SQUARE[:1],)], emits=emits("Inverse")),
    case("aten::inverse", torch.inverse, SQUARE.double(), dynamic={}, others=(), emits=emits("Inverse"), label="double"),
]

ROWS, IDS = expand([*ACTIVATIONS, *PRODUCTS, *NORMS, *INVERSES, *opinfo_cases("nn.functional.gelu", count=4)])


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, check):
    check(case, opset, capture)


@pytest.mark.parametrize("case", [ACTIVATIONS[2], PRODUCTS[2], NORMS[0], INVERSES[0]], ids=str)
def test_nothing_happens_unless_it_is_preferred(case, exporter):
    result = exporter.export(case, 17)
    assert "contrib" not in result.plugins
    assert set(result.model.opset_imports) == {""}


def test_reasons_are_told_where_nobody_else_converts(preferred):
    case = OpCase("aten::linalg_inv", torch.linalg.inv, (torch.eye(3, dtype=torch.complex64),))
    with pytest.raises(UnsupportedOpError, match=r"Inverse takes torch.float32, torch.float64 on a CPU, not torch.complex64"):
        preferred.export(case, 17)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16], ids=str)
def test_other_types_take_the_standard_operators(dtype, preferred):
    args = (randn(2, 3, 8).to(dtype), randn(2, 3, 8).to(dtype))
    model = Residual(nn.LayerNorm).to(dtype)

    def call(x, y):
        return F.gelu(x), F.silu(x), model(x, y)[0]

    only_reference = dtype is torch.float64  # ONNX Runtime has no Erf of doubles
    result = preferred.check(OpCase("aten::gelu", call, args, reference=only_reference), 17)
    assert set(result.model.opset_imports) == {""}


# Quantized operators


class Quantized(nn.Module):
    """Fake quantization around an operator, as a model trained for it has it."""

    def __init__(self, call, low=0, high=255, scale=0.05, zero=100):
        super().__init__()
        self.call, self.levels = call, (low, high)
        self.scale, self.zero = scale, zero

    def quantize(self, x, times=1.0):
        return torch.fake_quantize_per_tensor_affine(x, self.scale * times, self.zero, *self.levels)

    def forward(self, x, y):
        return self.quantize(self.call(self.quantize(x), self.quantize(y, 0.5)), 2.0)


def quantized(call, name, label="", **fields):
    args = randn(4, 3, 8) * 2, randn(4, 3, 8)
    label = f"{name}-{label}" if label else name
    return OpCase(
        "aten::fake_quantize_per_tensor_affine",
        Quantized(call, **fields),
        args,
        (10, 13, 21, 27),
        TWO,
        PAIRS,
        label=label,
        atol=0.1001,
        captures=("trace",),
        emits=emits(name) if name.startswith("QLinear") else {name},
        avoids=emits("QLinearAdd") - emits(name),
    )


QUANTIZED = [
    quantized(torch.add, "QLinearAdd"),
    quantized(torch.mul, "QLinearMul"),
    quantized(lambda x, y: torch.sigmoid(x), "QLinearSigmoid"),
    quantized(lambda x, y: F.leaky_relu(x, 0.3), "QLinearLeakyRelu"),
    quantized(lambda x, y: torch.cat([x, y, x], 1), "QLinearConcat"),
    quantized(torch.add, "QLinearAdd", "int8", low=-128, high=127, zero=3),
    quantized(torch.add, "Add", "narrow", low=0, high=127),
    quantized(lambda x, y: x - y, "Sub"),
    quantized(lambda x, y: x + y * 2, "Add", "half"),
]
QUANTIZED_ROWS, QUANTIZED_IDS = expand(QUANTIZED)


@pytest.mark.parametrize(("case", "opset", "capture"), QUANTIZED_ROWS, ids=QUANTIZED_IDS)
def test_quantized_operators(case, opset, capture, check):
    """Up to one level of 0.1, where a number lies between two; torch.export cannot capture fake quantization, and opset 28
    brought a QuantizeLinear that ONNX Runtime 1.32 has no kernel for."""
    check(case, opset, capture)


# Operators of the runtime's own


@pytest.fixture
def operators():
    with (
        torch.library._scoped_library("com_microsoft", "DEF") as own,
        torch.library._scoped_library("ai_onnx_contrib", "DEF") as more,
    ):
        own.define("QuickGelu(Tensor X, float alpha) -> Tensor")
        own.impl("QuickGelu", lambda x, alpha: x * torch.sigmoid(alpha * x), "CompositeExplicitAutograd")
        more.define("StringToHashBucketFast(Tensor x, int num_buckets) -> Tensor")
        more.impl("StringToHashBucketFast", lambda x, num_buckets: x % num_buckets, "CompositeExplicitAutograd")
        yield


@pytest.mark.parametrize("prefers", [True, False])
def test_operators_pass_by_name(operators, preferred, exporter, prefers):
    case = OpCase(
        "com_microsoft::QuickGelu",
        lambda x: torch.ops.com_microsoft.QuickGelu(x, 1.5),
        (X,),
        FIRST,
        BATCH,
        MORE,
        emits=emits("QuickGelu"),
    )
    for opset in FIRST:
        (preferred if prefers else exporter).check(case, opset)


def test_a_tokenizers_domain(operators):
    call = lambda x: torch.ops.ai_onnx_contrib.StringToHashBucketFast(x, 7)  # noqa: E731
    result = export(call, (torch.arange(3),))
    (node,) = result.model.graph
    assert (node.domain, node.op_type) == ("ai.onnx.contrib", "StringToHashBucketFast")
    assert node.attributes["num_buckets"].value == 7


def test_a_symbolic_function_for_such_a_name_goes_first(operators):
    table = OpTable()

    @table.op("com_microsoft::QuickGelu")
    def quick_gelu(g: GraphContext, X: Value, alpha: float) -> Value:
        return g.op("Mul", X, g.op("Sigmoid", g.op("Mul", X, g.constant(alpha, like=X))))

    result = export(lambda x: torch.ops.com_microsoft.QuickGelu(x, 1.5), (X,), plugins=[table])
    assert set(result.model.opset_imports) == {""}


def test_is_discovered_and_imports_no_runtime():
    assert installed_plugins()["contrib"].distribution == "exporter-plugin-contrib"
    code = "import sys, exporter_plugin_contrib; sys.exit('onnxruntime' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
