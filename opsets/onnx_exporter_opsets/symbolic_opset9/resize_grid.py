"""Sampling at given positions by gathering the neighbours, for opsets without GridSample."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes
from onnx_exporter.helpers.shapes import Size

table = OpTable(opset=9)

_BILINEAR, _NEAREST, _BICUBIC = range(3)
_ZEROS, _BORDER, _REFLECTION = range(3)
_A = -0.75
"""PyTorch's parameter of cubic convolution."""


class _Sampler:
    """One call of ``grid_sampler``.

    Attributes:
        sizes: Sizes of the input's spatial axes.
        numbers: The same as floating-point values.
        rows: The input as a matrix of a row of channels for each element of each image.
    """

    def __init__(self, g: GraphContext, x: Value, padding_mode: int, align_corners: bool) -> None:
        self.g = g
        self.padding_mode = padding_mode
        self.align_corners = align_corners
        rank = shapes.rank_of(g, x)
        dims = shapes.sizes(g, x)
        assert x.dtype is not None
        self.dtype = x.dtype
        self.sizes: list[Size] = dims[2:]
        self.numbers = [emit.cast(g, shapes.scalar(g, size), x.dtype) for size in self.sizes]
        self.batch = dims[0]
        plane = shapes.total(g, self.sizes)
        last = emit.transpose(g, x, [0, *range(2, rank), 1])
        self.rows = emit.reshape(g, last, [shapes.multiply(g, self.batch, plane), dims[1]])
        starts = g.op("Mul", emit.arange(g, 0, self.batch), shapes.scalar(g, plane))
        self.starts = emit.unsqueeze(g, starts, range(1, rank - 1))

    def number(self, value: float) -> Value:
        return self.g.constant(value, dtype=self.dtype)

    def place(self, coordinate: Value, axis: int) -> Value:
        """A coordinate from -1 to 1 as a position, in elements."""
        g, size = self.g, self.numbers[axis]
        moved = g.op("Add", coordinate, self.number(1))
        if self.align_corners:
            return g.op("Mul", g.op("Div", moved, self.number(2)), g.op("Sub", size, self.number(1)))
        return g.op("Div", g.op("Sub", g.op("Mul", moved, size), self.number(1)), self.number(2))

    def padded(self, place: Value, axis: int) -> Value:
        """A position brought into the image, where the mode asks for it."""
        g = self.g
        if self.padding_mode == _ZEROS:
            return place
        if self.padding_mode == _REFLECTION:
            place = self._reflected(place, axis)
        last = g.op("Sub", self.numbers[axis], self.number(1))
        return g.call("aten::minimum", g.call("aten::maximum", place, self.number(0)), last)  # type: ignore[no-any-return]

    def _reflected(self, place: Value, axis: int) -> Value:
        """Folds the axis at both ends: at the middles of the outer elements, or at their outer edges."""
        g, size = self.g, self.numbers[axis]
        low = self.number(0 if self.align_corners else -0.5)
        span = g.op("Sub", size, self.number(1)) if self.align_corners else size
        # of an image of one element, folded at its middle, there is only that element
        none = g.call("aten::le", span, self.number(0))
        span = emit.where(g, none, self.number(1), span)
        far = g.op("Abs", g.op("Sub", place, low))
        folds = g.op("Floor", g.op("Div", far, span))
        extra = g.op("Sub", far, g.op("Mul", folds, span))
        pairs = g.op("Mul", g.op("Floor", g.op("Div", folds, self.number(2))), self.number(2))
        odd = g.call("aten::gt", folds, pairs)
        back = g.op("Add", emit.where(g, odd, g.op("Sub", span, extra), extra), low)
        return emit.where(g, none, self.number(0), back)

    def at(self, places: Sequence[Value]) -> Value:
        """The channels at whole positions, one for each spatial axis; zeros outside of the image."""
        g = self.g
        index, inside = self.starts, None
        within: Value | None = None
        for axis, place in enumerate(places):
            last = g.op("Sub", self.numbers[axis], self.number(1))
            here = g.op("And", g.call("aten::ge", place, self.number(0)), g.call("aten::le", place, last))
            inside = here if inside is None else g.op("And", inside, here)
            whole = emit.cast(g, emit.where(g, here, place, self.number(0)), torch.int64)
            within = whole if within is None else g.op("Add", g.op("Mul", within, shapes.scalar(g, self.sizes[axis])), whole)
        assert inside is not None and within is not None
        found = g.op("Gather", self.rows, g.op("Add", index, within), axis=0)
        return emit.where(g, emit.unsqueeze(g, inside, [-1]), found, self.number(0))

    def nearest(self, places: Sequence[Value]) -> Value:
        g = self.g
        return self.at([g.call("aten::round", self.padded(place, axis)) for axis, place in enumerate(places)])

    def linear(self, places: Sequence[Value]) -> Value:
        """The mean of the neighbours, weighted by how near they are."""
        g = self.g
        own = [self.padded(place, axis) for axis, place in enumerate(places)]
        lower = [g.op("Floor", place) for place in own]
        upper = [g.op("Add", place, self.number(1)) for place in lower]
        near = [g.op("Sub", high, place) for high, place in zip(upper, own, strict=True)]
        far = [g.op("Sub", place, low) for low, place in zip(lower, own, strict=True)]
        total: Value | None = None
        for corner in itertools.product((0, 1), repeat=len(places)):
            taken = [(lower, upper)[side][axis] for axis, side in enumerate(corner)]
            weights = [(near, far)[side][axis] for axis, side in enumerate(corner)]
            weight = weights[0]
            for other in weights[1:]:
                weight = g.op("Mul", weight, other)
            part = g.op("Mul", self.at(taken), emit.unsqueeze(g, weight, [-1]))
            total = part if total is None else g.op("Add", total, part)
        assert total is not None
        return total

    def cubic(self, places: Sequence[Value]) -> Value:
        """Cubic convolution over four rows of four neighbours; each is brought into the image on its own."""
        g = self.g
        lower = [g.op("Floor", place) for place in places]
        weights = [self._cubic_weights(g.op("Sub", place, low)) for place, low in zip(places, lower, strict=True)]
        taps = [
            [self.padded(g.op("Add", low, self.number(offset)), axis) for offset in (-1, 0, 1, 2)]
            for axis, low in enumerate(lower)
        ]
        total: Value | None = None
        for row in range(4):
            line: Value | None = None
            for column in range(4):
                found = self.at([taps[0][row], taps[1][column]])
                part = g.op("Mul", found, emit.unsqueeze(g, weights[1][column], [-1]))
                line = part if line is None else g.op("Add", line, part)
            assert line is not None
            part = g.op("Mul", line, emit.unsqueeze(g, weights[0][row], [-1]))
            total = part if total is None else g.op("Add", total, part)
        assert total is not None
        return total

    def _cubic_weights(self, t: Value) -> list[Value]:
        """Weights of the neighbours at -1, 0, 1 and 2 for a position `t` after 0."""
        g = self.g
        rest = g.op("Sub", self.number(1), t)
        return [
            self._polynomial(g.op("Add", t, self.number(1)), (_A, -5 * _A, 8 * _A, -4 * _A)),
            self._polynomial(t, (_A + 2, -(_A + 3), 0, 1)),
            self._polynomial(rest, (_A + 2, -(_A + 3), 0, 1)),
            self._polynomial(g.op("Add", rest, self.number(1)), (_A, -5 * _A, 8 * _A, -4 * _A)),
        ]

    def _polynomial(self, t: Value, factors: Sequence[float]) -> Value:
        g = self.g
        result = self.number(factors[0])
        for factor in factors[1:]:
            result = g.op("Mul", result, t)
            result = result if factor == 0 else g.op("Add", result, self.number(factor))
        return result


@table.op("aten::grid_sampler", "aten::grid_sampler_2d", "aten::grid_sampler_3d")
def grid_sampler(
    g: GraphContext, input: Value, grid: Value, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Value:
    """``aten::grid_sampler(Tensor input, Tensor grid, int interpolation_mode, ...)``: Gather of the neighbours, and Where."""
    dtype = input.dtype
    if dtype in (torch.float16, torch.bfloat16) and dtype is not None:
        # positions need more digits than 16-bit floats have; GridSample and PyTorch's GPU kernels compute in float32 too
        wide = [emit.cast(g, x, torch.float32) for x in (input, grid)]
        result = grid_sampler(g, wide[0], wide[1], interpolation_mode, padding_mode, align_corners)
        return emit.cast(g, result, dtype)
    spatial = shapes.rank_of(g, input) - 2
    sampler = _Sampler(g, input, padding_mode, align_corners)
    # the last axis of the grid has the coordinate of the last spatial axis first
    columns = [
        g.op("Gather", grid, g.constant(spatial - 1 - axis, dtype=torch.int64), axis=spatial + 1) for axis in range(spatial)
    ]
    places = [sampler.place(column, axis) for axis, column in enumerate(columns)]
    if interpolation_mode == _NEAREST:
        result = sampler.nearest(places)
    elif interpolation_mode == _BILINEAR:
        result = sampler.linear(places)
    elif spatial == 2:
        result = sampler.cubic(places)
    else:
        raise g.unsupported("bicubic sampling of volumes, which PyTorch does not have")
    return emit.transpose(g, result, [0, spatial + 1, *range(1, spatial + 1)])
