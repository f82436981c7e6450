"""Verification at sizes other than those of the example."""

import pytest
import torch
from onnx import helper

from onnx_exporter._verify_inputs import Symbols, resized
from onnx_exporter._verify_values import fresh_values, resized_values
from onnx_exporter.errors import ArgumentError, VerificationError
from verify_kit import BATCH, FLOAT, add_model, constant, inputs_of, unary, verify


def reshape_model(write, shape):
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    return write(nodes, [("x", FLOAT, ["batch", 3, 4])], [("y", FLOAT, None)], [constant("shape", shape)])


def test_a_right_file_passes_at_three_sizes(write):
    path = reshape_model(write, [-1, 12])
    comparison = verify(path, lambda x: x.flatten(1), torch.randn(2, 3, 4), dynamic=BATCH)
    assert [run.label for run in comparison.runs] == ["as traced", "batch=3", "batch=1"]
    assert [run.sizes for run in comparison.runs] == [{"batch": 2}, {"batch": 3}, {"batch": 1}]
    assert comparison.warnings == ()
    assert len(verify(path, lambda x: x.flatten(1), torch.randn(2, 3, 4), dynamic=BATCH, other_sizes=False).runs) == 1


def test_a_baked_size_that_does_not_run_elsewhere_fails(write):
    with pytest.raises(VerificationError, match=r"does not run at 'batch=3', which PyTorch accepts") as caught:
        verify(reshape_model(write, [2, 12]), lambda x: x.flatten(1), torch.randn(2, 3, 4), dynamic=BATCH)
    assert [run.ok for run in caught.value.comparison.runs] == [True, False, False]


def test_a_baked_size_that_runs_but_gives_another_shape_fails(write):
    with pytest.raises(VerificationError, match="batch=3"):
        verify(reshape_model(write, [2, -1]), lambda x: x.flatten(1), torch.randn(2, 3, 4), dynamic=BATCH)


def test_a_baked_number_fails_at_another_size(write):
    nodes = [helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0), helper.make_node("Div", ["s", "n"], ["y"])]
    path = write(nodes, [("x", FLOAT, ["n"])], [("y", FLOAT, [])], [helper.make_tensor("n", FLOAT, [], [4.0])])
    x = torch.tensor([1.0, 2.0, 4.0, 8.0])
    assert verify(path, lambda x: x.mean(), x).ok
    with pytest.raises(VerificationError, match="output 'y'"):
        verify(path, lambda x: x.mean(), x, dynamic={"x": [0]})


def test_sizes_that_pytorch_refuses_are_passed_over(write):
    def even_only(x):
        if x.shape[0] % 2:
            raise ValueError("only pairs")
        return x.relu()

    comparison = verify(unary(write, "Relu"), even_only, torch.randn(4, 3), dynamic=BATCH)
    assert [run.label for run in comparison.runs] == ["as traced", "batch=8", "batch=2"]
    assert comparison.notes == ("PyTorch refuses batch=5: ValueError: only pairs",)


def test_a_model_of_one_size_gives_a_warning_and_passes(write):
    def four_only(x):
        assert x.shape[0] == 4
        return x.relu()

    comparison = verify(unary(write, "Relu"), four_only, torch.randn(4, 3), dynamic=BATCH)
    assert comparison.ok
    assert len(comparison.runs) == 1
    assert "not verified at another size: batch" in comparison.warnings[0]
    assert "AssertionError" in str(comparison)


def test_an_axis_that_pytorch_fixes_does_not_keep_the_others_from_being_verified(write):
    def fixed_width(x):
        assert x.shape[1] == 3
        return x.relu()

    comparison = verify(unary(write, "Relu"), fixed_width, torch.randn(4, 3), dynamic={"x": {0: "batch", 1: "width"}})
    assert [run.sizes for run in comparison.runs[1:]] == [{"batch": 5, "width": 3}]
    assert "size: width;" in comparison.warnings[0]


def test_one_symbol_has_one_size_everywhere_and_two_have_two():
    inputs = inputs_of(
        lambda a, b: a,
        torch.ones(4, 4),
        torch.ones(4, 4),
        dynamic={"a": {0: "batch", 1: "seq"}, "b": {0: "seq", 1: "batch"}},
    )
    for smaller in (False, True):
        for number, sizes in enumerate(Symbols(inputs).candidates(smaller)):
            a, b = resized(inputs, sizes, seed=0)
            assert a.shape == (sizes["batch"], sizes["seq"])
            assert b.shape == (sizes["seq"], sizes["batch"])
            if number < 4:
                assert len({4, *a.shape}) == 3


def test_axes_of_several_names_that_must_be_equal_are_found(write):
    comparison = verify(
        add_model(write),
        lambda a, b: a + b,
        torch.randn(4, 2),
        torch.randn(4, 2),
        names=("a", "b"),
        dynamic={"a": [0], "b": [0]},
    )
    assert comparison.ok
    assert [tuple(run.sizes.values()) for run in comparison.runs] == [(4, 4), (5, 5), (2, 2)]
    assert comparison.warnings == ()


@pytest.mark.parametrize("name", ["past + new", "total"])
def test_a_size_that_is_the_sum_of_two_others(write, name):
    nodes = [helper.make_node("Concat", ["a", "b"], ["c"], axis=0), helper.make_node("Mul", ["c", "m"], ["y"])]
    path = write(nodes, [(item, FLOAT, None) for item in "abm"], [("y", FLOAT, None)])
    comparison = verify(
        path,
        lambda a, b, m: torch.cat([a, b]) * m,
        *(torch.randn(size, 2) for size in (5, 3, 8)),
        names=("a", "b", "m"),
        dynamic={"a": {0: "past"}, "b": {0: "new"}, "m": {0: name}},
    )
    assert len(comparison.runs) == 3
    assert all(run.sizes[name] == run.sizes["past"] + run.sizes["new"] for run in comparison.runs)
    assert comparison.warnings == ()


def test_an_expression_that_the_traced_sizes_contradict_is_only_a_name():
    inputs = inputs_of(lambda a, b: a, torch.ones(4), torch.ones(9), dynamic={"a": {0: "n"}, "b": {0: "n + 1"}})
    assert Symbols(inputs).free == ["n", "n + 1"]
    inputs = inputs_of(lambda a, b: a, torch.ones(4), torch.ones(9), dynamic={"a": {0: "n"}, "b": {0: "n * 2 + 1"}})
    assert Symbols(inputs).free == ["n"]


def test_an_empty_axis_grows(write):
    comparison = verify(
        add_model(write),
        lambda a, b: a + b,
        torch.randn(0, 2),
        torch.randn(1, 2),
        names=("a", "b"),
        dynamic={"a": {0: "past"}},
    )
    assert [(run.label, run.sizes["past"]) for run in comparison.runs] == [
        ("as traced", 0),
        ("other values", 0),
        ("past=1", 1),
        ("past=2", 2),
    ]


def test_other_arguments_take_the_place_of_generated_sizes(write):
    inputs = (torch.randn(4, 2), torch.randn(4, 2))
    dynamic = {"a": {0: "batch"}, "b": {0: "batch"}}
    options = {"names": ("a", "b"), "dynamic": dynamic}
    other = (torch.randn(9, 2), torch.randn(9, 2))
    comparison = verify(add_model(write), lambda a, b: a + b, *inputs, alt_args=[other], **options)
    assert [run.label for run in comparison.runs] == ["as traced", "alternative 1 (batch=9)"]
    for wrong, message in [
        ((torch.randn(9, 3), torch.randn(9, 2)), r"'a' must be a torch.float32 tensor of shape \['any', 2\]"),
        ((torch.ones(9, 2).long(), torch.randn(9, 2)), "torch.int64"),
        ((torch.randn(9, 2),), "given like args"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            verify(add_model(write), lambda a, b: a + b, *inputs, alt_args=[wrong], **options)


def test_generated_tensors_stay_in_the_domain_of_the_example():
    mask = torch.tensor([0.0, -float("inf"), 0.0, 0.0])
    examples = {
        "ids": torch.tensor([3, 900, 17, 5]),
        "lengths": torch.tensor([7, 5, 5, 2]),
        "mask": mask,
        "flags": torch.tensor([True, True, True, True]),
        "probability": torch.tensor([0.1, 0.2, 0.9, 0.4]),
        "half": torch.tensor([1.0, 2.0, 3.0, 4.0]).to(torch.bfloat16),
        "wide": torch.tensor([7, 9, 11, 5]).to(torch.uint16),
    }
    inputs = inputs_of(
        lambda ids, lengths, mask, flags, probability, half, wide: ids,
        *examples.values(),
        dynamic={name: {0: "n"} for name in examples},
    )
    first, second = (resized(inputs, {"n": 50}, seed=1) for _ in range(2))
    assert all(torch.equal(one, two) for one, two in zip(first, second, strict=True))
    fresh = dict(zip(examples, first, strict=True))
    for name, example in examples.items():
        assert fresh[name].dtype == example.dtype
        assert fresh[name].shape == (50,)
    assert set(fresh["ids"].tolist()) <= {3, 900, 17, 5}
    assert fresh["lengths"].tolist() == sorted(fresh["lengths"].tolist(), reverse=True)
    assert set(fresh["mask"].tolist()) == {0.0, -float("inf")}
    assert fresh["flags"].all()
    assert 0.1 <= fresh["probability"].min() < fresh["probability"].max() <= 0.9
    assert fresh["probability"].unique().numel() == 50
    assert set(fresh["wide"].tolist()) <= {5, 7, 9, 11}


def test_columns_of_generated_tensors_stay_in_the_domain_of_their_column():
    """As in regions of images: the image's number, which PyTorch uses unchecked, and two corners in order."""
    corners = torch.tensor([[0.5, 1.5], [3.5, 2.25], [5.0, 7.5]])
    numbers = torch.tensor([[0.0], [1.0], [0.0]])
    regions = torch.cat([numbers, corners, corners + 2], 1)
    for example in (regions, regions.round(), regions[:1], torch.tensor([[0.0, 0.0, 0.0, 1.0, 1.0]])):
        inputs = inputs_of(lambda regions: regions, example, names=("regions",), dynamic={"regions": {0: "n"}})
        (fresh,) = resized(inputs, {"n": 40}, seed=0)
        assert fresh.shape == (40, 5)
        assert set(fresh[:, 0].tolist()) == set(example[:, 0].tolist())
        assert bool((fresh >= 0.75 * example.min(0).values).all())
        assert bool((fresh <= example.max(0).values).all())
    (fresh,) = resized(inputs_of(lambda r: r, regions, names=("r",), dynamic={"r": {0: "n"}}), {"n": 40}, seed=0)
    assert bool((fresh[:, 1:3] < fresh[:, 3:]).all())
    assert fresh[:, 1].unique().numel() == 40, "equal numbers would make the order of a sort a matter of chance"


def test_rows_of_integers_are_rows_of_the_example():
    edges = torch.tensor([[0, 7], [1, 9], [2, 8]])
    (fresh,) = resized(inputs_of(lambda e: e, edges, names=("e",), dynamic={"e": {0: "n"}}), {"n": 20}, seed=0)
    assert {tuple(row) for row in fresh.tolist()} <= {tuple(row) for row in edges.tolist()}
    tokens = torch.tensor([[5, 3, 8, 1]])
    (fresh,) = resized(inputs_of(lambda e: e, tokens, names=("e",), dynamic={"e": {0: "n"}}), {"n": 3}, seed=0)
    assert len({tuple(row) for row in fresh.tolist()}) > 1


def other_values(*tensors, accepted=lambda tensors: True):
    found = fresh_values(tensors, lambda fresh: True if accepted(fresh) else None)
    return None if found is None else found[0]


@pytest.mark.parametrize(
    "dtype",
    [torch.bool, torch.uint8, torch.uint16, torch.int64, torch.float16, torch.bfloat16, torch.float8_e5m2, torch.complex64],
    ids=str,
)
@pytest.mark.parametrize("shape", [(4,), (2, 3), (1, 3), (3, 3), (2, 0)], ids=str)
def test_other_values_of_every_type(dtype, shape):
    example = (torch.arange(torch.Size(shape).numel()) % 5).reshape(shape).to(dtype)
    ways = []
    assert other_values(example, accepted=lambda tensors: ways.append(tensors[0])) is None
    assert all(way.dtype == dtype and way.shape == shape for way in ways)
    assert ways or not example.numel()
    for keeps_columns in (True, False):
        fresh = resized_values(example, (7, *shape[1:]), torch.Generator().manual_seed(0), keeps_columns=keeps_columns)
        assert (fresh.dtype, fresh.shape) == (dtype, (7, *shape[1:]))


def test_other_values_stay_in_the_domain_of_the_example():
    regions = torch.tensor([[0.0, 0.5, 1.5, 3.5], [1.0, 2.5, 2.25, 4.0], [0.0, 5.5, 6.5, 8.5]])
    (fresh,) = other_values(regions)
    assert sorted(fresh[:, 0].tolist()) == [0, 0, 1]
    assert bool((fresh[:, 1:].diff(dim=1)[:, 1:] > 0).all())
    assert not torch.equal(fresh, regions)
    assert other_values(regions[1:2])[0][0, 0] == 1
    edges = torch.tensor([-1.0, 0.5, 2.0, 2.5])
    assert bool((other_values(edges)[0].diff() > 0).all())
    positions = torch.tensor([3, 0, 2, 1])
    assert sorted(other_values(positions)[0].tolist()) == [0, 1, 2, 3]
    assert other_values(torch.ones(3, dtype=torch.bool), torch.tensor([0.25, 0.75]))[0].all()
    assert other_values(torch.zeros(3))[0].any()
    symmetric = torch.tensor([[2.5, 0.25], [0.25, 1.5]])
    (fresh,) = other_values(symmetric, accepted=lambda tensors: torch.equal(tensors[0], tensors[0].T))
    assert bool((fresh != symmetric).any())


def test_a_baked_value_is_found_at_the_same_size(write):
    x = torch.tensor([1.5, 2.5, 4.0])
    path = write(
        [helper.make_node("Identity", ["c"], ["y"])],
        [("x", FLOAT, [3])],
        [("y", FLOAT, [3])],
        [constant("c", x.exp().tolist(), FLOAT)],
    )
    with pytest.raises(VerificationError, match="differs from PyTorch at 'other values'"):
        verify(path, torch.exp, x)
    assert verify(path, torch.exp, x, other_sizes=False).ok


def test_other_values_that_pytorch_refuses_are_passed_over(write):
    x = torch.tensor([1.5, 2.5, 4.0])

    def example_only(given):
        assert torch.equal(given, x)
        return given.relu()

    comparison = verify(unary(write, "Relu"), example_only, x)
    assert (comparison.ok, len(comparison.runs), comparison.warnings) == (True, 1, ())
    assert comparison.notes[0].startswith("PyTorch refuses other values: AssertionError")


def test_other_values_at_which_results_are_no_numbers_are_passed_over(write):
    comparison = verify(unary(write, "Acosh"), torch.acosh, torch.tensor([1.0, 1.01, 1.5]))
    assert [run.label for run in comparison.runs] == ["as traced", "other values"]
    comparison = verify(unary(write, "Acosh"), torch.acosh, torch.tensor([1.0, 1.0]))
    assert comparison.ok


def test_arguments_that_pytorch_refuses_are_the_callers_fault(write):
    def pairs(x):
        return x.reshape(2, -1)

    path = write(
        [helper.make_node("Reshape", ["x", "s"], ["y"])], [("x", FLOAT, ["n"])], [("y", FLOAT, None)], [constant("s", [2, -1])]
    )
    with pytest.raises(ArgumentError, match=r"PyTorch refuses alternative 1 \(n=3\): RuntimeError: .*give other arguments"):
        verify(path, pairs, torch.ones(4), dynamic={"x": {0: "n"}}, alt_args=[(torch.ones(3),)])
