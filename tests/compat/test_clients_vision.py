"""Detection and bird's-eye-view operators in the manner of many projects: mostly a vendor's node, and a ``forward`` that only
makes results of the right type and size.

Each is written here as the projects named write theirs. Those of which ONNX Runtime has the operators are run.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from torch.autograd import Function
from torch.onnx import symbolic_helper
from torch.onnx.symbolic_helper import parse_args

import onnx_exporter
from onnx_exporter.compat import install

pytest.importorskip("onnxruntime", reason="the files are run")
from clients import attributes, exported, op_types, output_types, verified

BOTH = pytest.mark.parametrize("capture", ["trace", "export"])
BOXES = torch.tensor([[[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30]]])
SCORES = torch.tensor([[[0.9, 0.8, 0.7], [0.1, 0.2, 0.6]]])
IMAGE = torch.randn(1, 4, 8, 8)


# YOLOv6, yolov7, YOLOv8-TensorRT


class ORT_NMS(Function):
    @staticmethod
    def forward(ctx: Any, boxes: Any, scores: Any, max_output: Any, iou: Any, score: Any) -> Any:
        batch = scores.shape[0]
        count = random.Random(0).randint(1, 5)
        batches = torch.randint(0, batch, (count,)).sort()[0].to(boxes.device)
        selected = torch.cat([batches[None], torch.zeros((1, count)).long(), torch.arange(count)[None]], 0).T.contiguous()
        return selected.to(torch.int64)

    @staticmethod
    def symbolic(g: Any, boxes: Any, scores: Any, max_output: Any, iou: Any, score: Any) -> Any:
        return g.op("NonMaxSuppression", boxes, scores, max_output, iou, score)


@BOTH
def test_nms_of_onnx(capture: str) -> None:
    limits = (torch.tensor([2]), torch.tensor([0.5]), torch.tensor([0.3]))
    result = exported(lambda b, s: ORT_NMS.apply(b, s, *limits)[:, 0], BOXES, SCORES, opset_version=13, capture=capture)
    assert op_types(result)[0] == "NonMaxSuppression"


class TRT_NMS(Function):
    @staticmethod
    def forward(
        ctx: Any, boxes: Any, scores: Any, background: int = -1, box_coding: int = 1, iou: float = 0.45, count: int = 100,
        version: str = "1", activation: int = 0, score: float = 0.25,
    ) -> Any:  # fmt: skip
        batch, *_ = scores.shape
        found = torch.randint(0, count, (batch, 1), dtype=torch.int32)
        classes = torch.randint(0, 80, (batch, count), dtype=torch.int32)
        return found, torch.randn(batch, count, 4), torch.randn(batch, count), classes

    @staticmethod
    def symbolic(
        g: Any, boxes: Any, scores: Any, background: int = -1, box_coding: int = 1, iou: float = 0.45, count: int = 100,
        version: str = "1", activation: int = 0, score: float = 0.25,
    ) -> Any:  # fmt: skip
        return g.op(
            "TRT::EfficientNMS_TRT", boxes, scores, background_class_i=background, box_coding_i=box_coding, iou_threshold_f=iou,
            max_output_boxes_i=count, plugin_version_s=version, score_activation_i=activation, score_threshold_f=score, outputs=4,
        )  # fmt: skip


class BatchedNMS(Function):
    @staticmethod
    def forward(ctx: Any, boxes: Any, scores: Any, top_k: int, keep: int) -> Any:
        batch = scores.size(0)
        shapes = [(batch, 1), (batch, keep, 4), (batch, keep), (batch, keep)]
        return torch.zeros(shapes[0], dtype=torch.int32), *(torch.zeros(shape) for shape in shapes[1:])

    @staticmethod
    def symbolic(g: Any, boxes: Any, scores: Any, top_k: int, keep: int) -> Any:
        flags = {"shareLocation_i": True, "isNormalized_i": False, "clipBoxes_i": False}
        return g.op("TRT::BatchedNMSDynamic_TRT", boxes, scores, topK_i=top_k, keepTopK_i=keep, outputs=4, **flags)


@BOTH
def test_nms_of_tensorrt(capture: str) -> None:
    scores = SCORES.transpose(1, 2).contiguous()
    result = exported(lambda b, s: TRT_NMS.apply(b, s, -1, 1, 0.5, 7), BOXES, scores, capture=capture)
    assert output_types(result) == [("INT32", [1, 1]), ("FLOAT", [1, 7, 4]), ("FLOAT", [1, 7]), ("INT32", [1, 7])]
    assert attributes(result, "EfficientNMS_TRT")["plugin_version"] == "1"
    dynamic = {"input_names": ["boxes", "scores"], "dynamic_axes": {"boxes": {0: "n"}, "scores": {0: "n"}}}
    two = (BOXES.repeat(2, 1, 1), scores.repeat(2, 1, 1))
    result = exported(lambda b, s: BatchedNMS.apply(b, s, 5, 3), *two, capture=capture, **dynamic)
    sizes = [[1], [3, 4], [3], [3]]  # under tracing any size may come from the axis that varies
    assert [dims[1:] if capture == "export" else len(dims) - 1 for _, dims in output_types(result)] == (
        sizes if capture == "export" else list(map(len, sizes))
    )
    assert attributes(result, "BatchedNMSDynamic_TRT")["shareLocation"] == 1


# mmdeploy, mmcv


class ONNXNMSop(Function):
    @staticmethod
    def forward(ctx: Any, boxes: Any, scores: Any, count: int, iou: float, score: float) -> Any:
        return torch.tensor([[0, 0, 0], [0, 0, 2], [0, 1, 2]])

    @staticmethod
    def symbolic(g: Any, boxes: Any, scores: Any, count: int, iou: float, score: float) -> Any:
        values = [
            g.op("Constant", value_t=torch.tensor([given], dtype=dtype))
            for given, dtype in ((count, torch.long), (iou, torch.float), (score, torch.float))
        ]
        return g.op("NonMaxSuppression", boxes, scores, *values)


@BOTH
def test_nms_runs(capture: str) -> None:
    """The forward has the answer for these boxes only, as its author's has none at all."""
    options = {"dynamic": False, "capture": capture, "verify_args": [(BOXES, SCORES)]}
    result = verified(lambda b, s: ONNXNMSop.apply(b, s, 2, 0.5, 0.3), BOXES, SCORES, **options)
    assert op_types(result) == ["NonMaxSuppression"]


class TRTBatchedNMSop(Function):
    @staticmethod
    def forward(ctx: Any, boxes: Any, scores: Any, classes: int, pre: int, after: int, index: bool = False) -> Any:
        batch = boxes.shape[0]
        found = torch.rand(batch, after, 5), torch.randint(0, classes, (batch, after))
        return (*found, torch.randint(0, classes, (batch, after))) if index else found

    @staticmethod
    def symbolic(g: Any, boxes: Any, scores: Any, classes: int, pre: int, after: int, index: bool = False) -> Any:
        return g.op(
            "mmdeploy::TRTBatchedNMS", boxes, scores, num_classes_i=classes, topk_i=pre, keep_topk_i=after, return_index_i=index,
            outputs=3 if index else 2,
        )  # fmt: skip


class MultiLevelRoiAlign(Function):
    @staticmethod
    def symbolic(g: Any, *args: Any) -> Any:
        aligned, strides, size = args[-1], list(args[-2]), args[-3]
        rois, feats = args[0], args[1:-3]
        return g.op(
            "mmdeploy::MMCVMultiLevelRoiAlign", rois, *feats, aligned_i=aligned, featmap_strides_f=[1.0 / x for x in strides],
            output_height_i=size, output_width_i=size,
        )  # fmt: skip

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        return args[0].new_zeros(args[0].shape[0], args[1].shape[1], args[-3], args[-3])


class Mark(Function):
    @staticmethod
    def symbolic(g: Any, x: Any, dtype: str, shape: list[int], func: str, type: str, name: str, attrs: dict[str, Any]) -> Any:
        made = g.op("mmdeploy::Mark", x, dtype_s=dtype, shape_i=shape, func_s=func, type_s=type, name_s=name, **attrs)
        made.setType(x.type())
        return made

    @staticmethod
    def forward(ctx: Any, x: Any, *args: Any) -> Any:
        return x


class GridPriorsTRTOp(Function):
    @staticmethod
    def symbolic(g: Any, base: Any, height: Any, width: Any, stride_h: int, stride_w: int) -> Any:
        # the sizes themselves are not used, only the shape of what they index
        empty = g.op("ConstantOfShape", g.op("Constant", value_t=torch.tensor([1])), value_t=torch.tensor([0]))
        return g.op("mmdeploy::GridPriorsTRT", base, empty, empty, stride_h_i=stride_h, stride_w_i=stride_w)

    @staticmethod
    def forward(ctx: Any, base: Any, height: Any, width: Any, stride_h: int, stride_w: int) -> Any:
        return base.new_zeros(8 * 8 * base.shape[0], 4)


@BOTH
def test_mmdeploy(capture: str) -> None:
    scores = SCORES.transpose(1, 2).contiguous()
    result = exported(lambda b, s: TRTBatchedNMSop.apply(b, s, 2, 10, 5, True), BOXES, scores, capture=capture)
    assert output_types(result) == [("FLOAT", [1, 5, 5]), ("INT64", [1, 5]), ("INT64", [1, 5])]
    rois = torch.rand(6, 5)
    result = exported(lambda r, x: MultiLevelRoiAlign.apply(r, x, x, 7, [4, 8], False), rois, IMAGE, capture=capture)
    assert output_types(result) == [("FLOAT", [6, 4, 7, 7])]
    assert list(attributes(result, "MMCVMultiLevelRoiAlign")["featmap_strides"]) == [0.25, 0.125]

    def marked(x: Any) -> Any:
        return Mark.apply(x * 2, "float32", [1, 4, 8, 8], "forward", "input", "image", {"func_id_i": 3}) + 1

    result = exported(marked, IMAGE, capture=capture)
    assert op_types(result) == ["Mul", "mmdeploy::Mark", "Add"] and output_types(result) == [("FLOAT", [1, 4, 8, 8])]
    assert attributes(result, "Mark")["func_id"] == 3
    result = exported(lambda b, x: GridPriorsTRTOp.apply(b, x.shape[2], x.shape[3], 4, 4), rois[:, :4], IMAGE, capture=capture)
    assert output_types(result) == [("FLOAT", [384, 4])]


class RoIAlignFunction(Function):
    @staticmethod
    def symbolic(g: Any, input: Any, rois: Any, size: Any, scale: float, ratio: int, mode: str, aligned: bool) -> Any:
        return g.op(
            "mmcv::MMCVRoiAlign", input, rois, output_height_i=size[0], output_width_i=size[1], spatial_scale_f=scale,
            sampling_ratio_i=ratio, mode_s=mode, aligned_i=aligned,
        )  # fmt: skip

    @staticmethod
    def forward(ctx: Any, input: Any, rois: Any, size: Any, scale: float, ratio: int, mode: str, aligned: bool) -> Any:
        ctx.output_size = size
        return input.new_zeros(rois.size(0), input.size(1), *size)


class ModulatedDeformConv2dFunction(Function):
    @staticmethod
    def symbolic(g: Any, input: Any, offset: Any, mask: Any, weight: Any, bias: Any, stride: Any, groups: int) -> Any:
        tensors = [input, offset, mask, weight]
        if bias is not None:
            tensors.append(bias)
        return g.op("mmcv::MMCVModulatedDeformConv2d", *tensors, stride_i=stride, groups_i=groups)

    @staticmethod
    def forward(ctx: Any, input: Any, offset: Any, mask: Any, weight: Any, bias: Any, stride: Any, groups: int) -> Any:
        return input.new_zeros(input.size(0), weight.size(0), input.size(2) // stride[0], input.size(3) // stride[1])


class SoftNMSop(Function):
    @staticmethod
    def forward(ctx: Any, boxes: Any, scores: Any, iou: float) -> Any:
        return boxes.new_empty(3, 5), torch.arange(3)

    @staticmethod
    def symbolic(g: Any, boxes: Any, scores: Any, iou: float) -> Any:
        dets, kept = g.op("mmcv::SoftNonMaxSuppression", boxes, scores, iou_threshold_f=float(iou), outputs=2)
        return dets, kept


class CARAFEFunction(Function):
    @staticmethod
    def symbolic(g: Any, features: Any, masks: Any, kernel: int, scale: int) -> Any:
        return g.op("mmcv::MMCVCARAFE", features, masks, kernel_size_i=kernel, scale_factor_f=scale)

    @staticmethod
    def forward(ctx: Any, features: Any, masks: Any, kernel: int, scale: int) -> Any:
        n, c, h, w = features.size()
        return features.new_zeros((n, c, h * scale, w * scale))


class PSAMaskFunction(Function):
    @staticmethod
    def symbolic(g: Any, input: Any, psa_type: str, mask_size: Any) -> Any:
        return g.op("mmcv::MMCVPSAMask", input, psa_type_i=psa_type, mask_size_i=mask_size)

    @staticmethod
    def forward(ctx: Any, input: Any, psa_type: int, mask_size: Any) -> Any:
        n, _, h, w = input.size()
        return input.new_zeros((n, h * w, h, w))


@BOTH
def test_mmcv(capture: str) -> None:
    result = exported(
        lambda x, r: RoIAlignFunction.apply(x, r, (7, 5), 0.25, 2, "avg", True), IMAGE, torch.rand(3, 5), capture=capture
    )
    assert output_types(result) == [("FLOAT", [3, 4, 7, 5])] and attributes(result, "MMCVRoiAlign")["mode"] == "avg"
    weight = torch.randn(6, 4, 3, 3)

    def convolve(x: Any, offset: Any) -> Any:
        return ModulatedDeformConv2dFunction.apply(x, offset, offset, weight, None, (2, 2), 1)

    result = exported(convolve, IMAGE, torch.rand(1, 18, 4, 4), capture=capture)
    assert output_types(result) == [("FLOAT", [1, 6, 4, 4])] and len(next(iter(result.model.graph)).inputs) == 4
    result = exported(lambda b, s: SoftNMSop.apply(b, s, 0.5), BOXES[0], SCORES[0, 0], capture=capture)
    assert output_types(result) == [("FLOAT", [3, 5]), ("INT64", [3])]
    result = exported(lambda x, m: CARAFEFunction.apply(x, m, 5, 2), IMAGE, torch.rand(1, 25, 16, 16), capture=capture)
    assert output_types(result) == [("FLOAT", [1, 4, 16, 16])] and attributes(result, "MMCVCARAFE")["scale_factor"] == 2.0
    result = exported(lambda x: PSAMaskFunction.apply(x, 1, [3, 3]), IMAGE, capture=capture)
    assert output_types(result) == [("FLOAT", [1, 64, 8, 8])]


# BEVFormer, BEVFusion, openvino_contrib, Lidar_AI_Solution


class GridSampler2D(Function):
    @staticmethod
    def symbolic(g: Any, input: Any, grid: Any, mode: int, padding: int, align: bool) -> Any:
        return g.op("GridSampler2DTRT", input, grid, interpolation_mode_i=mode, padding_mode_i=padding, align_corners_i=align)

    @staticmethod
    def forward(ctx: Any, input: Any, grid: Any, mode: int, padding: int, align: bool) -> Any:
        return torch.nn.functional.grid_sample(input, grid, align_corners=align)


class MSDeformAttn(Function):
    @staticmethod
    def symbolic(g: Any, value: Any, shapes: Any, points: Any, offsets: Any, weights: Any) -> Any:
        return g.op("trt::MultiScaleDeformableAttnTRT", value, shapes, points, offsets, weights)

    @staticmethod
    def forward(ctx: Any, value: Any, shapes: Any, points: Any, offsets: Any, weights: Any) -> Any:
        return value.new_zeros(value.shape[0], points.shape[1], value.shape[2] * value.shape[3])


class BEVPoolV2(Function):
    @staticmethod
    def symbolic(g: Any, depth: Any, feat: Any, ranks: Any, height: int, width: int) -> Any:
        return g.op("mmdeploy::bev_pool_v2", depth, feat, ranks, out_height_i=height, out_width_i=width)

    @staticmethod
    def forward(g: Any, depth: Any, feat: Any, ranks: Any, height: int, width: int) -> Any:
        return feat.new_zeros(1, feat.shape[-1], height, width)


class FFT(Function):
    @staticmethod
    def symbolic(g: Any, input: Any, dims: Any, inverse: bool) -> Any:
        axes = g.op("Constant", value_t=torch.tensor(dims))
        return g.op("IDFT" if inverse else "FFT", input, axes)

    @staticmethod
    def forward(self: Any, input: Any, dims: Any, inverse: bool) -> Any:
        return torch.view_as_real(torch.fft.fftn(torch.view_as_complex(input), dim=dims))


class Voxelization(Function):
    @staticmethod
    def symbolic(g: Any, points: Any, size: Any, limits: Any) -> Any:
        voxels, coordinates, counts = g.op(
            "lidar::Voxelization", points, voxel_size_f=size, coors_range_f=limits, max_num_i=[5, 100], outputs=3
        )
        return voxels, coordinates, counts

    @staticmethod
    def forward(ctx: Any, points: Any, size: Any, limits: Any) -> Any:
        return points.new_zeros(100, 5, points.size(1)), torch.zeros(100, 3).int(), torch.zeros(100).int()


@pytest.mark.filterwarnings("ignore:.*no operator of ONNX")
@BOTH
def test_birds_eye_view(capture: str) -> None:
    value, points = torch.randn(2, 20, 4, 8), torch.rand(2, 6, 1, 2)
    shapes, rest = torch.tensor([[4, 5]]), torch.rand(2, 6, 4, 1, 4)
    result = exported(lambda *xs: MSDeformAttn.apply(*xs), value, shapes, points, rest, rest, capture=capture)
    assert output_types(result) == [("FLOAT", [2, 6, 32])]
    result = exported(lambda d, f, r: BEVPoolV2.apply(d, f, r, 3, 4), IMAGE, IMAGE, torch.arange(4), capture=capture)
    assert output_types(result) == [("FLOAT", [1, 8, 3, 4])]
    result = exported(lambda x: Voxelization.apply(x, [0.1, 0.1, 0.2], (0.0, -1.0, 1.0)), torch.rand(50, 4), capture=capture)
    assert output_types(result) == [("FLOAT", [100, 5, 4]), ("INT32", [100, 3]), ("INT32", [100])]
    grid = torch.rand(1, 3, 3, 2)
    for function, inputs in (
        (lambda x, y: GridSampler2D.apply(x, y, 0, 0, True), (IMAGE, grid)),
        (lambda x: FFT.apply(x, [1, 2], False), (torch.randn(1, 4, 4, 2),)),
    ):
        with pytest.raises(onnx_exporter.CheckerError, match="No Op registered"):  # as torch.onnx does once it is written
            exported(function, *inputs, capture=capture)


# mmcv 1.x registered with the module of torch 1.8 to 1.12


def test_the_registry_of_old() -> None:
    with install():
        from torch.onnx.symbolic_registry import is_registered_op, register_op, unregister_op

        register_op("cummin", parse_args("v", "i")(lambda g, x, dim: g.op("mmcv::cummin", x, dim_i=dim, outputs=2)), "", 11)
        try:
            assert is_registered_op("cummin", "", 13) and symbolic_helper._export_onnx_opset_version
            result = exported(lambda x: x.cummin(1), IMAGE)
        finally:
            unregister_op("cummin", "", 11)
    assert op_types(result) == ["mmcv::cummin"] and output_types(result)[1][0] == "INT64"
