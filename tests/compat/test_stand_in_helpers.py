"""The stand-in's ``symbolic_helper`` and ``symbolic_opsetN``: each client here gives the same with torch.onnx's and with ours."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.onnx
from torch import nn

from onnx_exporter import SymbolicError, UnsupportedOpError
from onnx_exporter.compat.stand_in import modules

pytest.importorskip("onnxruntime", reason="the files are run")
from clients import checked, exported, inside, int_of, op_types, registered

OURS = modules()
BOTH = pytest.mark.parametrize("whose", ["torch", "ours"])
X = torch.randn(2, 3, 4)


def helper_of(whose: str) -> Any:
    return OURS["torch.onnx.symbolic_helper"] if whose == "ours" else torch.onnx.symbolic_helper


@pytest.fixture(autouse=True)
def _no_deprecation() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "torch.quantize_per_tensor", UserWarning)
        yield


USED = [
    *(
        "parse_args",
        "_get_tensor_sizes",
        "_get_tensor_rank",
        "_get_tensor_dim_size",
        "_get_const",
        "_maybe_get_const",
    ),
    *(
        "_is_none",
        "_unsqueeze_helper",
        "cast_pytorch_to_onnx",
        "scalar_type_to_onnx",
        "_slice_helper",
        "_squeeze_helper",
    ),
    *(
        "_is_value",
        "_is_tensor",
        "_unimplemented",
        "_maybe_get_scalar",
        "quantize_helper",
        "dequantize_helper",
    ),
    *(
        "_reshape_helper",
        "_repeat_interleave_split_helper",
        "_generate_wrapped_number",
        "_batchnorm_helper",
    ),
    *(
        "_reducesum_helper",
        "_unpack_list",
        "_is_constant",
        "_try_get_scalar_type",
        "scalar_type_to_pytorch_type",
    ),
    *(
        "_onnx_unsupported",
        "_onnx_opset_unsupported_detailed",
        "_topk_helper",
        "_get_interpolate_attributes",
        "_node_get",
    ),
    *(
        "quantized_args",
        "_is_bool",
        "_is_fp",
        "_scalar",
        "_is_packed_list",
        "_is_tensor_list",
        "_is_scalar_list",
    ),
    *(
        "_is_tuple_construct",
        "_unpack_tuple",
        "_unpack_quantized_tensor",
        "_parse_arg",
        "pytorch_name_to_type",
    ),
    *(
        "scalar_name_to_pytorch",
        "requantize_bias_helper",
        "check_training_mode",
        "is_complex_value",
    ),
    *(
        "args_have_same_dtype",
        "_interpolate_get_scales_and_mode",
        "_interpolate_helper",
        "_size_helper",
        "_select_helper",
    ),
    *(
        "_sort_helper",
        "_max_helper",
        "_min_helper",
        "_argmin_argmax_helper",
        "_flatten_helper",
        "_numel_helper",
    ),
    *(
        "_scatter_helper",
        "_unbind_helper",
        "_lt_helper",
        "_avgpool_helper",
        "_var_mean_helper",
    ),
    *(
        "_reduce_op_symbolic_helper",
        "_maybe_cast_reduce_op_input",
        "_op_with_optional_float_cast",
    ),
    *(
        "_handle_reduce_dim_none",
        "_default_onnx_opset_version",
        "_export_onnx_opset_version",
        "_onnx_stable_opsets",
    ),
    *(
        "_set_opset_version",
        "is_caffe2_aten_fallback",
    ),
]


def test_it_has_every_name_that_clients_use() -> None:
    ours = helper_of("ours")
    assert [name for name in USED if not hasattr(ours, name)] == [] and not hasattr(ours, "_no_such_name")


def test_what_takes_keywords_has_torchs_names() -> None:
    """Clients pass some arguments by name."""
    import inspect

    ours, theirs = helper_of("ours"), helper_of("torch")
    for name in USED:
        if inspect.isfunction(getattr(theirs, name, None)) and name not in ("parse_args", "_apply_params", "_interpolate_helper"):
            mine, other = (list(inspect.signature(getattr(owner, name)).parameters) for owner in (ours, theirs))
            if not any(item in ("args", "kwargs") for item in other) and name not in ("is_caffe2_aten_fallback",):
                assert mine[: len(other[:3])] == other[:3] and len(mine) >= len(other), name


@BOTH
def test_quantized_tensors(whose: str) -> None:
    helper = helper_of(whose)

    def add(g: Any, x: Any, y: Any, scale: Any, zero: Any) -> Any:
        assert helper._is_tuple_construct(x) and len(helper._unpack_quantized_tensor(x)) == 3
        first, second = (helper.dequantize_helper(g, value)[0] for value in (x, y))
        return helper.quantize_helper(g, g.op("Add", first, second), scale, zero)

    @helper.quantized_args(True)
    def relu(g: Any, x: Any) -> Any:
        return g.op("Relu", x)

    @helper.quantized_args(True, scale=1.0 / 256.0, zero_point=0)
    @helper.parse_args("v")
    def sigmoid(g: Any, x: Any) -> Any:
        return g.op("Sigmoid", x)

    def model(x: torch.Tensor) -> torch.Tensor:
        q = torch.quantize_per_tensor(x, 0.05, 100, torch.quint8)
        both = torch.ops.quantized.add(q, q.relu(), 0.13, 60)
        return both.sigmoid().dequantize() + x.sigmoid()

    with registered({"quantized::add": add, "aten::relu": relu, "aten::sigmoid": sigmoid}, 13):
        result = exported(model, X, opset_version=13, verify=True)
    assert op_types(result).count("QuantizeLinear") == 4 and op_types(result).count("Sigmoid") == 2


@BOTH
def test_a_bias_of_a_quantized_layer(whose: str) -> None:
    helper = helper_of(whose)

    def symbolic(g: Any, x: Any, scale: Any) -> Any:
        bias = helper.requantize_bias_helper(g, x, scale, scale)
        levels, by, zero = helper._unpack_tuple(bias)
        return g.op("Mul", g.op("Cast", g.op("Sub", levels, zero), to_i=1), by)

    rounded = torch.round if whose == "ours" else torch.trunc  # PyTorch's kernels round
    bias, scale = torch.tensor([1.0, -2.0, 4.0]), torch.tensor([0.5, 0.25, 1.0])
    checked(symbolic, lambda x, scale: rounded(x / (scale * scale)) * (scale * scale), bias, scale)


@BOTH
@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm(whose: str, affine: bool) -> None:
    helper = helper_of(whose)

    @helper.parse_args("v", "v", "v", "v", "v", "i", "f", "f", "i")
    def batch_norm(
        g: Any, x: Any, weight: Any, bias: Any, mean: Any, var: Any, training: Any, momentum: Any, eps: Any, _: Any
    ) -> Any:
        helper.check_training_mode(training, "batch_norm")
        values = helper._batchnorm_helper(g, x, weight, bias, mean, var)
        return g.op("BatchNormalization", x, *values, epsilon_f=eps, momentum_f=1 - momentum)

    with registered({"aten::batch_norm": batch_norm}):
        result = exported(nn.BatchNorm1d(3, eps=1e-2, affine=affine), X, opset_version=13, verify=True)
    assert op_types(result) == ["BatchNormalization"]


@BOTH
@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_interpolation(whose: str, mode: str) -> None:
    """mmcv's way: scales if they are known, else from sizes."""
    helper = helper_of(whose)

    def upsample(g: Any, x: Any, size: Any, *args: Any) -> Any:
        scales, align_corners = helper._get_interpolate_attributes(g, "nearest" if mode == "nearest" else "linear", args)
        align_corners = helper._maybe_get_scalar(align_corners)
        if scales is None:
            scales = helper._interpolate_size_to_scales(g, x, size, 4)
        how = "asymmetric" if mode == "nearest" else "align_corners" if align_corners else "half_pixel"
        return g.op(
            *("Resize", x, g.op("Constant", value_t=torch.tensor([])), scales),
            mode_s="nearest" if mode == "nearest" else "linear",
            coordinate_transformation_mode_s=how,
            nearest_mode_s="floor",
        )

    image = torch.randn(1, 2, 4, 6)
    corners = {} if mode == "nearest" else {"align_corners": True}
    for given in ({"scale_factor": 2.0}, {"size": (8, 12)}):
        with registered({f"aten::upsample_{mode}2d": upsample}, 11):
            exported(
                lambda x, given=given: nn.functional.interpolate(x, mode=mode, **given, **corners),
                image,
                opset_version=13,
                verify=True,
            )


@BOTH
def test_older_interpolate(whose: str) -> None:
    helper = helper_of(whose)

    def symbolic(g: Any, x: Any) -> Any:
        factor, none = (g.op("Constant", value_t=torch.tensor([2.0, 3.0])), g.op("prim::Constant"))
        mode = g.op("Constant", value_s="nearest")
        scales, name = helper._interpolate_get_scales_and_mode(g, x, none, factor, mode, none)
        assert name == "nearest"
        return g.op("Resize", x, None, scales, mode_s=name, coordinate_transformation_mode_s="asymmetric", nearest_mode_s="floor")

    checked(symbolic, lambda x: nn.functional.interpolate(x, scale_factor=(2, 3)), torch.randn(1, 2, 4, 6))


CASES: dict[str, tuple[Any, Any]] = {
    "repeat_interleave_split": (
        lambda g, h, x: g.op("Concat", *reversed(h._repeat_interleave_split_helper(g, x, 3, 1)), axis_i=1),
        lambda x: x.flip(1),
    ),
    "generate_wrapped_number": (lambda g, h, x: g.op("Mul", x, h._generate_wrapped_number(g, 2.5)), lambda x: x * 2.5),
    "select": (lambda g, h, x: h._select_helper(g, x, int_of(g, 1), int_of(g, 2)), lambda x: x[:, 2:3].clone()),
    "size": (lambda g, h, x: g.op("Cast", h._size_helper(g, x, int_of(g, 1)), to_i=1), lambda x: torch.tensor(3.0)),
    "numel": (lambda g, h, x: g.op("Cast", h._numel_helper(g, x), to_i=1), lambda x: torch.tensor(24.0)),
    "flatten": (lambda g, h, x: h._flatten_helper(g, x, 1, 2, 3), lambda x: x.flatten(1)),
    "unbind": (lambda g, h, x: g.op("Sum", *h._unbind_helper(g, x, int_of(g, 1), 3)), lambda x: x.sum(1)),
    "sort": (lambda g, h, x: h._sort_helper(g, x, 1)[0], lambda x: x.sort(1, descending=True)[0]),
    "topk": (lambda g, h, x: h._topk_helper(g, x, int_of(g, 2), dim=1, sorted=True)[0], lambda x: x.topk(2, 1)[0]),
    "max of all": (lambda g, h, x: h._max_helper(g, x), lambda x: x.max()),
    "max of two": (lambda g, h, x: h._max_helper(g, x, g.op("Neg", x)), lambda x: x.abs()),
    "min along": (lambda g, h, x: h._min_helper(g, x, int_of(g, 1), int_of(g, 0))[0], lambda x: x.min(1)[0]),
    "lt": (lambda g, h, x: g.op("Cast", h._lt_helper(g, x, g.op("Neg", x)), to_i=1), lambda x: (x < -x).float()),
    "argmax": (
        lambda g, h, x: g.op("Cast", h._argmin_argmax_helper(g, x, int_of(g, 1), int_of(g, 0), "ArgMax"), to_i=1),
        lambda x: x.argmax(1).float(),
    ),
    "reduce": (
        lambda g, h, x: h._reduce_op_symbolic_helper("ReduceMean")(
            g, x, g.op("Constant", value_t=torch.tensor([1, 2])), int_of(g, 1)
        ),
        lambda x: x.mean((1, 2), keepdim=True),
    ),
    "reduce all": (lambda g, h, x: h._handle_reduce_dim_none(g, x, "ReduceMax"), lambda x: x.max()),
    "float cast": (
        lambda g, h, x: g.op("Cast", h._op_with_optional_float_cast(g, "Abs", g.op("Cast", x, to_i=6), opset_before=14), to_i=1),
        lambda x: x.int().abs().float(),
    ),
    "reducesum": (lambda g, h, x: h._reducesum_helper(g, x, axes_i=[1], keepdims_i=0), lambda x: x.sum(1)),
    "squeeze": (lambda g, h, x: h._squeeze_helper(g, h._unsqueeze_helper(g, x, [1]), [1]), lambda x: x.clone()),
    "slice": (lambda g, h, x: h._slice_helper(g, x, axes=[1, 2], starts=[0, 1], ends=[2, 3]), lambda x: x[:, :2, 1:3].clone()),
    "reshape": (lambda g, h, x: h._reshape_helper(g, x, [0, -1]), lambda x: x.reshape(2, 12).clone()),
}


@BOTH
@pytest.mark.parametrize("name", CASES)
def test_helpers(whose: str, name: str) -> None:
    symbolic, forward = CASES[name]
    helper = helper_of(whose)
    checked(lambda g, x: symbolic(g, helper, x), forward, X)


@BOTH
def test_refusals(whose: str) -> None:
    helper = helper_of(whose)
    for refuse in (
        lambda: helper._unimplemented("frob", "it is only for this test"),
        lambda: helper._onnx_unsupported("frob"),
        lambda: helper._onnx_opset_unsupported("frob", 9, 11),
        lambda: helper._onnx_opset_unsupported_detailed("frob", 9, 11, "it is only for this test"),
    ):
        with pytest.raises(UnsupportedOpError, match="frob"):
            inside(lambda g, x, refuse=refuse: refuse(), X)


def test_more_arguments_than_are_described() -> None:
    helper = helper_of("ours")

    @helper.parse_args("v")
    def symbolic(g: Any, x: Any, extra: Any) -> Any:
        return g.op("Relu", x)

    with pytest.raises(SymbolicError, match="given 2 arguments, but has 1 described"):
        inside(symbolic, X, 13, 3)
