"""Models that tracing could get wrong in silence: they write to their state, or compute sizes from data."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from onnx import numpy_helper

from onnx_exporter import export
from onnx_exporter.errors import CaptureError


def positive(x):
    return x[x > 0]


def write_under_mask(x):
    out, mask = x.new_zeros(3, 2), x > 0
    out[mask, 0] = x[mask]
    return out


def view_of_own_size(x):
    y = positive(x)
    return y.view(1, y.shape[0])


def zeros_of_its_size(x):
    y = positive(x)
    return torch.zeros(y.shape[0]) + y


VECTOR = (torch.tensor([1.0, 3, 2]),)
OTHERS = [(torch.tensor([1.0, -1, 2]),), (torch.tensor([-1.0, 5, 2]),)]
ROWS = (torch.tensor([[1.0, 3], [2, 3], [1, 1]]),)
OTHER_ROWS = [(torch.tensor([[1.0, 3], [-2, -3], [1, 1]]),)]
CASES = {
    "var": (lambda x: positive(x).var(), VECTOR, OTHERS),
    "std": (lambda x: positive(x).std(), VECTOR, OTHERS),
    "number of rows": (lambda x: x * x.nonzero().size(0), VECTOR, OTHERS),
    "number of elements": (lambda x: x * x.nonzero().numel(), VECTOR, OTHERS),
    "ones_like": (lambda x: torch.ones_like(positive(x)), VECTOR, OTHERS),
    "arange": (lambda x: torch.arange(positive(x).shape[0]), VECTOR, OTHERS),
    "zeros": (zeros_of_its_size, VECTOR, OTHERS),
    "last as slice": (lambda x: positive(x)[-1:], VECTOR, OTHERS),
    "last": (lambda x: positive(x)[-1], VECTOR, OTHERS),
    "roll": (lambda x: positive(x).roll(1), VECTOR, OTHERS),
    "view": (view_of_own_size, VECTOR, OTHERS),
    "flatten": (lambda x: x[x[:, 0] > 0].flatten(), ROWS, OTHER_ROWS),
    "squeeze": (lambda x: x[x[:, 0] > 0].squeeze(), ROWS, OTHER_ROWS),
    "write under a mask": (write_under_mask, VECTOR, OTHERS),
    "masked_select": (lambda x: x.masked_select(x > 0).unsqueeze(0) * 2, VECTOR, OTHERS),
    "where": (lambda x: torch.where(x > 0)[0].float().cumsum(0), VECTOR, OTHERS),
    "unique": (lambda x: torch.unique(x) * torch.unique(x).shape[0], VECTOR, [(torch.tensor([1.0, 1, 2]),)]),
    "bytes as mask": (lambda x: x[(x > 0).to(torch.uint8)].flip(0), VECTOR, OTHERS),
    "one_hot": (lambda x: F.one_hot(x) * 2, (torch.tensor([0, 1, 2]),), [(torch.tensor([0, 1, 4]),)]),
    "outer": (lambda x: torch.outer(positive(x), positive(x)).tril(), VECTOR, OTHERS),
    "eye": (lambda x: torch.eye(positive(x).shape[0]), VECTOR, OTHERS),
    "mean by size": (lambda x: positive(x).sum() / positive(x).shape[0], VECTOR, OTHERS),
    "len": (lambda x: torch.zeros(len(positive(x))) + len(positive(x)), VECTOR, OTHERS),
    "lesser": (lambda x: x.topk(min(2, len(positive(x)))), VECTOR, [(torch.tensor([-1.0, -1, 5]),)]),
    "greatest": (lambda x: x * max([1, positive(x).shape[0], (x < 0).sum()]), VECTOR, OTHERS),
    "tensor": (lambda x: torch.tensor([[x.max(), 0.5], [len(positive(x)), 2]]), VECTOR, OTHERS),
    "integer tensor": (lambda x: torch.as_tensor([len(positive(x)), 7]), VECTOR, OTHERS),
    "typed tensor": (lambda x: torch.tensor([x.long().max(), 2], dtype=torch.int32), VECTOR, OTHERS),
    "new_tensor": (lambda x: x.new_tensor([len(positive(x)), 7]), VECTOR, OTHERS),
    "repeat_interleave": (
        lambda x, r: x.repeat_interleave(r, 0).cumsum(0),
        (torch.ones(3), torch.tensor([1, 2, 1])),
        [(torch.ones(3), torch.tensor([2, 0, 0]))],
    ),
    "arange of an input": (
        lambda x, n: torch.arange(n) + x.sum(),
        (torch.ones(3), torch.tensor(4)),
        [(torch.ones(3), torch.tensor(6))],
    ),
    "zeros of an input": (
        lambda x, n: torch.zeros(n) + x.sum(),
        (torch.ones(3), torch.tensor(4)),
        [(torch.ones(3), torch.tensor(6))],
    ),
}


@pytest.mark.parametrize("opset", [11, 18])
@pytest.mark.parametrize("name", CASES)
def test_sizes_that_depend_on_data_follow_the_data(name, opset):
    function, args, others = CASES[name]
    result = export(function, args, opset_version=opset, verify=True, verify_args=others)
    assert len(result.comparison.runs) == 1 + len(others)


class Counter(torch.nn.Module):
    """Counts its calls in a buffer, in one of several ways."""

    def __init__(self, count):
        super().__init__()
        self.register_buffer("c", torch.full((3,), 5.0))
        self.plain = torch.zeros(3)
        self.cache = None
        self.count = count

    def forward(self, x):
        self.count(self, x)
        return x + self.c + self.plain


def rebind(self, x):
    self.c = self.c + 1


def add(self, x):
    self.c += 1


def copy_in(self, x):
    self.c.copy_(x)


def through_view(self, x):
    self.c[0] = x[1]


def grow(self, x):
    self.c = torch.cat([self.c, self.c])[:3] + x


def plain_attribute(self, x):
    self.plain += 1


def rebind_plain(self, x):
    self.plain = self.plain + x
    self.cache = self.plain


WRITES = [rebind, add, copy_in, through_view, grow, plain_attribute, rebind_plain]


@pytest.mark.parametrize("verify", [False, True], ids=["alone", "verified"])
@pytest.mark.parametrize("count", WRITES)
def test_a_file_starts_from_the_state_before_and_the_model_keeps_it(count, verify):
    model = Counter(count)
    c, plain, x = model.c, model.plain, torch.tensor([1.0, 2.0, 3.0])
    expected = None
    for _ in range(2):
        result = export(model, (x,), verify=verify)
        assert model.c is c and model.plain is plain and model.cache is None
        assert torch.equal(c, torch.full((3,), 5.0)) and torch.equal(plain, torch.zeros(3))
        stored = {item.name: numpy_helper.to_array(item) for item in result.model_proto.graph.initializer}
        if "c" in stored:
            assert np.array_equal(stored["c"], np.full(3, 5.0, np.float32))
        session = onnxruntime.InferenceSession(result.model_proto.SerializeToString())
        (got,) = session.run(None, {"x": x.numpy()})
        expected = got if expected is None else expected
        assert np.array_equal(got, expected)
    assert np.array_equal(expected, model(x).numpy())


class Writer(torch.nn.Module):
    """Writes to its parameter."""

    def __init__(self, write):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.write = write

    def forward(self, x):
        self.write(self.weight)
        return x * self.weight


@pytest.mark.parametrize(
    "write",
    [lambda w: w.mul_(2), lambda w: w.data.mul_(2), lambda w: setattr(w, "data", w.detach() * 2)],
    ids=["in place", "through data", "data assigned"],
)
def test_a_write_to_a_parameter_is_refused_by_name(write):
    with pytest.raises(CaptureError, match="parameter 'weight'"):
        export(Writer(write), (torch.ones(3),))


def zero_data(x):
    y = x.clone()
    y.data.zero_()
    return y + x


def zero_detached(x):
    y = x.clone()
    y.detach()[1:].zero_()
    return y + x


@pytest.mark.parametrize("function", [zero_data, zero_detached])
def test_a_write_through_data_counts(function):
    export(function, (torch.tensor([1.0, 2.0]),), verify=True)


def test_data_that_is_assigned_is_refused():
    def forward(x):
        y = x.clone()
        y.data = x * 2
        return y

    with pytest.raises(CaptureError, match=r"assigns to \.data"):
        export(forward, (torch.ones(3),))


class Result:
    def __init__(self, value):
        self.value = value


@pytest.mark.parametrize(
    ("function", "name"), [(lambda x: Result(x), "Result"), (lambda x: (x, np.zeros(3)), "numpy.ndarray")], ids=["class", "array"]
)
def test_a_result_of_another_kind_is_refused_by_name(function, name):
    with pytest.raises(CaptureError, match=name):
        export(function, (torch.ones(3),))


@pytest.mark.parametrize("function", [lambda x: x | True, lambda x: x.clone().fill_(True)], ids=["or", "fill"])
def test_a_limit_of_the_tracer_is_called_that_and_the_other_capture_works(function):
    args = (torch.tensor([True, False]),)
    with pytest.raises(CaptureError, match="tracer cannot record.*\n.*capture='export'"):
        export(function, args)
    export(function, args, capture="export", verify=True)
