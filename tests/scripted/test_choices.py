"""In-place writes into tensors that branches and loops choose: right, or refused with their line; never a file that is wrong."""

from __future__ import annotations

import random
import textwrap
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from onnx_exporter import UnsupportedOpError, export

X = torch.tensor([1.5, -0.5, 2.0])
OTHERS = [(torch.tensor([0.7]),), (torch.tensor([-3.0, 1, 4, -1.5, 2.5, 0.3, -0.2]),), (-X,)]
AXES = {"x": {0: "n"}}


def exported(function: Any, opset: int = 17) -> Any:
    return export(function, (X,), None, opset_version=opset, dynamic_axes=AXES, verify=True, verify_args=OTHERS)


def narrowed_view(x: Tensor) -> Tensor:
    a = x * 2
    v = a
    for _ in range(x.size(0)):
        v = v[1:] if v.size(0) > 1 else v
        v.mul_(2)
    return a


def loop_gives_a_view(x: Tensor) -> tuple[Tensor, Tensor]:
    a, b = x * 2, x * 3
    for _ in range(x.size(0)):
        a = b.view(-1)
    b.add_(3)
    return a, b


def loop_fills_a_slot(x: Tensor) -> Tensor:
    items = [x * 2, x * 3]
    for _ in range(x.size(0) // 2):
        items[0] = items[1]
    items[-1].add_(2)
    return items[0]


def written_before_break(x: Tensor) -> tuple[Tensor, Tensor]:
    a = x * 2
    c = a
    for _ in range(3):
        c.zero_()
        if x.size(0) > 1:
            break
        a = c[::2]
    return a, c


def swapped(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    a, b = x.clone(), x * 2
    c, i = a, 0
    while i < 4 and bool(c.sum() < 12):
        i += 1
        c, b = b, c
        a.add_(3)
    return a, b, c


def rebound_in_an_inner_loop(x: Tensor) -> tuple[Tensor, Tensor]:
    a = x.clone()
    c, i = a, 0
    while i < 3 and bool(c.sum() < 99):
        for _ in range(x.size(0)):
            a.add_(3)
            a = x * 2
        i += 1
    return a, c


def carried_view_read_after_the_write(x: Tensor) -> Tensor:
    a = x.clone()
    v, total = a, x.new_zeros(1)
    for _ in range(x.size(0)):
        a.mul_(2)
        total = total + v.sum()
        v = v[1:]
    return total


def one_loop_chooses_another_writes(x: Tensor) -> Tensor:
    a, b, c = x.clone(), x * 2, x * 0
    for _ in range(x.size(0) - 1):
        b = a[:2]
    for _ in range(x.size(0)):
        a.add_(1)
        c = c + b.sum()
    return c


def element_is_a_view(x: Tensor) -> Tensor:
    a = x * 1
    for row in [a[i] for i in range(a.size(0))]:
        row.add_(1)
    return a


def collected_views(x: Tensor) -> tuple[Tensor, Tensor]:
    a = x * 1
    rows: list[Tensor] = []
    for i in range(a.size(0)):
        rows.append(a[i])
    rows[0].add_(1)
    return a, torch.stack(rows)


def collected_again_and_again(x: Tensor) -> Tensor:
    a = x * 1
    rows: list[Tensor] = []
    for _ in range(a.size(0)):
        rows.append(a)
    rows[0].mul_(2)
    return torch.stack(rows)


def collected_and_carried(x: Tensor) -> tuple[Tensor, Tensor]:
    h = x
    rows: list[Tensor] = []
    for _ in range(x.size(0)):
        h = h * 2
        rows.append(h)
    rows[-1].mul_(2)
    return torch.stack(rows), h


def rows_of_the_input(x: Tensor) -> Tensor:
    rows = [row for row in x.unbind(0)]  # noqa: C416 - TorchScript makes a loop of it
    rows[-1].zero_()
    return x + 1


@pytest.mark.parametrize(
    "function",
    [narrowed_view, loop_gives_a_view, loop_fills_a_slot, written_before_break, swapped, rebound_in_an_inner_loop,
     carried_view_read_after_the_write, one_loop_chooses_another_writes, element_is_a_view, collected_views,
     collected_again_and_again, collected_and_carried, rows_of_the_input],
)  # fmt: skip
def test_a_write_that_another_name_would_show_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(UnsupportedOpError, match=r"test_choices.py:\d+[\s\S]*in place that may be another one too"):
        exported(torch.jit.script(function))


def chosen_in_one_branch_written_in_another(x: Tensor) -> Tensor:
    a, b = x * 2, x * 3
    if x.size(0) > 2:
        b = a
    if bool(x.sum() > 0):
        a.mul_(10)
    return b


def branch_gives_a_view(x: Tensor) -> Tensor:
    a, b = x.clone(), x * 2
    if x.size(0) > 2:
        b = a.view(-1)
    a[0:1] = 9.0
    return b


def old_name_in_one_branch(x: Tensor) -> Tensor:
    a = x.clone()
    c = a
    if x.size(0) > 2:
        c = a - 1
    a.add_(2)
    if bool(x.sum() > 0):
        c[c > 3] -= 1
    return c


def rebound_in_one_branch(x: Tensor) -> Tensor:
    a = x.clone()
    c = a
    if c.size(0) > 1:
        c[1:].add_(3)
    else:
        c = c * 0.5 + 3
    c.zero_()
    return a


def chosen_and_both_read(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    a, b = x * 2, x + 1
    y = a if bool(x.sum() > 0) else b
    y.add_(1)
    return y, a, b


def one_of_three(x: Tensor) -> tuple[Tensor, Tensor, Tensor, int]:
    a, b = x * 2, x + 1
    k = x.size(0)
    if k > 4:
        y = a
    elif k > 2:
        y = b[1:]
    else:
        y = a[:1]
    y.mul_(3)
    k += y.size(0)
    y[0] = float(k)
    return a, b, y, k


def one_choice_after_another(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    a, b = x * 2, x + 1
    y = a if bool(x.sum() > 0) else b
    y.add_(1)
    z = y if x.size(0) > 2 else a[:1]
    z.mul_(2)
    return a, b, z


def chosen_of_a_choice(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    a, b = x * 2, x + 1
    if x.size(0) > 1:
        y = a if bool(x.sum() > 0) else b
    else:
        y = b
    a.add_(10)
    y[0] = 7.0
    return a, b, y


def chosen_in_each_round(x: Tensor) -> tuple[Tensor, Tensor]:
    a, b = x * 2, x + 1
    for i in range(x.size(0)):
        y = a if bool(x[i] > 0) else b
        y[i] = 5.0
        for j in range(i):
            y[j] += a.sum()
    return a, b


def written_in_a_loop_after_the_choice(x: Tensor) -> tuple[Tensor, Tensor]:
    a = x * 2
    y = a[::2] if bool(x.sum() > 0) else x + 1
    total = x.new_zeros(())
    while bool(y.sum() < 9) and bool(total < 50):
        y.add_(2)
        total = total + a.sum()
    return a, total


def one_of_an_item(x: Tensor) -> tuple[Tensor, Tensor]:
    items = [x * 2, x + 1]
    y = items[0] if bool(x.sum() > 0) else items[-1]
    y.sub_(4)
    return torch.stack(items).sum(0), y


@pytest.mark.parametrize("opset", [9, 13, 17, 23])
@pytest.mark.parametrize(
    "function",
    [chosen_in_one_branch_written_in_another, branch_gives_a_view, old_name_in_one_branch, rebound_in_one_branch,
     chosen_and_both_read, one_of_three, one_choice_after_another, chosen_of_a_choice, chosen_in_each_round,
     written_in_a_loop_after_the_choice, one_of_an_item],
)  # fmt: skip
def test_a_write_into_what_a_branch_chose_is_seen_in_what_it_chose_from(function: Callable[..., Any], opset: int) -> None:
    with torch.jit.optimized_execution(False):
        exported(torch.jit.script(function), opset)


def test_choices_of_choices_that_would_copy_the_program_too_often_are_refused() -> None:
    lines = ["a, b = x * 2, x + 1", "y = a"]
    for count in range(12):
        lines += [f"y = a if x.size(0) > {count} else b", "y.add_(1)"]
    source = "def program(x):\n" + textwrap.indent("\n".join([*lines, "return a, b, y"]), "    ") + "\n"
    with pytest.raises(UnsupportedOpError, match="more than 8 times as big"):
        exported(torch.jit.CompilationUnit(source).program)


def fresh_in_each_round(x: Tensor) -> Tensor:
    y = x
    for i in range(x.size(0)):
        y = y + 1
        y[0] = i
    return y + x


def base_in_a_loop_read_through_its_view(x: Tensor) -> Tensor:
    a = x.clone()
    view, total = a[:1], x.new_zeros(1)
    for _ in range(x.size(0)):
        a.mul_(2)
        total = total + view
    return total


def chosen_and_written_only_there(x: Tensor) -> Tensor:
    y = x * 2 if bool(x.sum() > 0) else x * 3
    y.add_(1)
    return y + x


def previous_and_new(x: Tensor) -> Tensor:
    before, now = x * 0, x * 1
    for _ in range(x.size(0)):
        new = now + before
        new[0] = 1.0
        before, now = now, new
    return now


def written_in_both_branches(x: Tensor) -> Tensor:
    a = x.clone()
    if bool(x.sum() > 0):
        a[0] = 5.0
    else:
        a.mul_(2)
    a.sub_(1)
    return a


def collected_and_written(x: Tensor) -> Tensor:
    h = x
    rows: list[Tensor] = []
    for _ in range(x.size(0)):
        h = h * 2
        rows.append(h)
    rows[0].mul_(2)
    return torch.stack(rows)


@pytest.mark.parametrize(
    "function",
    [fresh_in_each_round, base_in_a_loop_read_through_its_view, chosen_and_written_only_there, previous_and_new,
     written_in_both_branches, collected_and_written],
)  # fmt: skip
def test_a_write_that_no_other_name_shows_is_right(function: Callable[..., Any]) -> None:
    exported(torch.jit.script(function))


STATEMENTS = (
    "{a} = {b}", "{a} = {b} * 2", "{a} = {b}[:1]", "{a} = {b}.view(-1)", "{a}.add_(3)", "{a}[0:1] = 7.0", "{a} = {b}.clone()",
    "{a}, {b} = {b}, {a}", "total = total + {a}.sum()", "{a}.mul_({b}.sum())",
)  # fmt: skip
HEADS = ("if bool({a}.sum() > 1):", "if x.size(0) > 2:", "for _ in range(x.size(0)):")


def random_program(seed: int) -> str:
    """The source of a function of few names, which branches and loops exchange and writes change."""
    draw = random.Random(seed)

    def names() -> dict[str, str]:
        return dict(zip("ab", draw.sample(["p", "q", "r"], 2), strict=True))

    def block(depth: int) -> list[str]:
        lines = []
        for _ in range(draw.randint(1, 3)):
            if depth and draw.random() < 0.4:
                lines.append(draw.choice(HEADS).format(**names()))
                lines += ["    " + line for line in block(depth - 1)]
            else:
                lines.append(draw.choice(STATEMENTS).format(**names()))
        return lines

    body = ["p, q = x.clone(), x * 3", "r = p", "total = x.new_zeros(())", *block(2), *block(2), "return p, q, r, total"]
    return "def program(x):\n" + textwrap.indent("\n".join(body), "    ") + "\n"


@pytest.mark.parametrize("seeds", [range(start, start + 30) for start in (0, 30, 60, 90)], ids=str)
def test_random_programs_are_right_or_refused(seeds: range) -> None:
    with torch.jit.optimized_execution(False):  # TorchScript's optimiser breaks some of them from the second run on
        check(seeds)


def check(seeds: range) -> None:
    right = 0
    for seed in seeds:
        source = random_program(seed)
        scripted = torch.jit.CompilationUnit(source).program
        space: dict[str, Any] = {}
        exec(source, space)
        try:
            is_sound = all(agree(scripted(x.clone()), space["program"](x.clone())) for (x,) in [(X,), *OTHERS])
        except RuntimeError:
            is_sound = False
        if not is_sound:
            continue  # TorchScript itself loses a write, or a value
        try:
            exported(scripted)
        except UnsupportedOpError as refusal:
            assert "in place" in str(refusal), source
        else:
            right += 1
    assert right >= len(seeds) // 2


def agree(first: tuple[Tensor, ...], second: tuple[Tensor, ...]) -> bool:
    return all(one.shape == other.shape and torch.allclose(one, other) for one, other in zip(first, second, strict=True))
