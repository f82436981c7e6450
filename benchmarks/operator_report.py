"""Tables and the report of the operator sweep."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from operator_families import family

Row = Mapping[str, Any]

HEADER = """# Operator sweep

`python benchmarks/operator_coverage.py -v --ops NAME --opsets N --jobs 1` runs one operator (or a pattern) again.

## Totals
"""
ABSENT = """## UNSUPPORTED: operators without a symbolic function

`alone`: entries of op_db in which it is the only operator that the newest opset lacks; what comes after it is not looked at.
"""


def totals(rows: Iterable[Row]) -> str:
    """How many operators are right, wrong, in error or refused: float32 by method and opset, all types and kinds in short.

    Beside peers only what they were measured on counts: `PEER_OPSETS` and the first `PEER_SAMPLES` samples.
    """
    rows = list(rows)
    plain = [row for row in rows if (row["column"], row["kind"]) == ("float32", "call")]
    with_peers = any(row["method"] != "ours" for row in plain)
    methods: dict[tuple[str, int], _Count] = {}
    for row in plain:
        if not with_peers or (row["opset"] in PEER_OPSETS and row["sample"] < PEER_SAMPLES):
            methods.setdefault((row["method"], row["opset"]), _Count()).add(row)
    lines = []
    if methods:
        lines += ["", "float32, call:", "", _BY_METHOD, "| --- " * 8 + "|"]
    for (method, opset), count in sorted(methods.items(), key=lambda item: (item[0][0] != "ours", item[0])):
        lines.append(f"| {method} | {opset} | {' | '.join(map(str, count.numbers()))} |")
    groups: dict[tuple[str, str], dict[int, _Count]] = {}
    for row in rows:
        if row["method"] == "ours":
            groups.setdefault((row["column"], row["kind"]), {}).setdefault(row["opset"], _Count()).add(row)
    if groups.keys() - {("float32", "call")}:
        lines += _in_short(groups)
    return "\n".join([*lines, ""])


PEER_OPSETS = (9, 13, 17, 18, 20)
PEER_SAMPLES = 6
_BY_METHOD = "| method | opset | operators | right | wrong | error | refused | fail the checker |"


def _in_short(groups: Mapping[tuple[str, str], Mapping[int, _Count]]) -> list[str]:
    """A line for each type and kind, a column for each opset at which they were measured."""
    opsets = sorted({opset for key, counts in groups.items() if key != ("float32", "call") for opset in counts})
    lines = ["", "ours, right / refused at each opset:", ""]
    lines += [f"| type, kind | operators | {' | '.join(map(str, opsets))} | wrong | error | by onnx.reference |"]
    lines += ["| --- " * (len(opsets) + 5) + "|"]
    for (column, kind), counts in groups.items():
        numbers = {opset: count.numbers() for opset, count in counts.items() if opset in opsets}
        shown = [f"{numbers[opset][1]} / {numbers[opset][4]}" if opset in numbers else "" for opset in opsets]
        entries = max((count[0] for count in numbers.values()), default=0)
        wrong, error = (max((count[index] for count in numbers.values()), default=0) for index in (2, 3))
        referenced = {name for opset in numbers for name in counts[opset].referenced}
        lines.append(f"| {column}, {kind} | {entries} | {' | '.join(shown)} | {wrong} | {error} | {len(referenced)} |")
    return lines


@dataclasses.dataclass
class _Count:
    """What came of the operators with one method at one opset."""

    statuses: dict[str, set[str]] = dataclasses.field(default_factory=dict)
    unsound: set[str] = dataclasses.field(default_factory=set)
    referenced: set[str] = dataclasses.field(default_factory=set)

    def add(self, row: Row) -> None:
        """Counts one sample."""
        self.statuses.setdefault(row["operator"], set()).add(row["status"])
        if row["stage"] == "check" or row.get("checker"):
            self.unsound.add(row["operator"])
        if row["status"] == "pass" and row["runtime"] == "onnx.reference":
            self.referenced.add(row["operator"])

    def numbers(self) -> tuple[int, int, int, int, int, int]:
        """Operators, and of these: right, wrong, in error, refused, with a file that fails the checker."""
        found = list(self.statuses.values())
        right = sum(status == {"pass"} for status in found)
        wrong = sum("wrong" in status for status in found)
        error = sum("error" in status for status in found)
        refused = sum("refused" in status and not status & {"wrong", "error"} for status in found)
        return len(found), right, wrong, error, refused, len(self.unsound)


def report(rows: Sequence[Row]) -> str:
    """What failed, by reason and family, in Markdown."""
    lines = [HEADER, totals(rows)]
    for title, status in (
        ("WRONG: the file differs from PyTorch", "wrong"),
        ("ERROR: exporter, checker or runtime fails", "error"),
    ):
        lines += [f"## {title}", "", *_listed(row for row in rows if row["status"] == status)]
    early = (row for row in rows if row["status"] == "refused" and not row["missing"])
    lines += ["## REFUSED: before conversion (capture, writes, kinds of input)", "", *_listed(early)]
    lines += _refusals([row for row in rows if row["status"] == "refused" and row["missing"]])
    return "\n".join(lines) + "\n"


def _listed(rows: Iterable[Row]) -> list[str]:
    """A line for each operator and kind of failure, by family, with opsets, samples and one example."""
    groups: dict[str, dict[tuple[str, ...], list[Row]]] = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows:
        key = (row["operator"], row["column"], row["kind"], row["stage"], row["runtime"])
        groups[family(row["operator"])][key].append(row)
    lines = []
    for label, found in sorted(groups.items()):
        lines += [f"### {label} ({len(found)})", ""]
        for (operator, column, kind, stage, runtime), members in sorted(found.items()):
            last = members[-1]
            where = f"{column} {kind}, {stage}{' (onnx.reference)' if runtime == 'onnx.reference' else ''}"
            which = f"opsets {_short(row['opset'] for row in members)}, samples {_short(row['sample'] for row in members)}"
            detail = last["detail"].replace("\n", " ")[:420]
            lines.append(f"- **{operator}** {where}, {which}: `{last['call']}`: {detail}")
        lines.append("")
    return lines or ["none", ""]


@dataclasses.dataclass
class _Obstacle:
    """One operator that is missing, or one reason for which it is refused."""

    name: str
    detail: str
    call: str
    users: set[str] = dataclasses.field(default_factory=set)
    opsets: set[int] = dataclasses.field(default_factory=set)


def _refusals(rows: Sequence[Row]) -> list[str]:
    absent: dict[tuple[str, str], _Obstacle] = {}
    declined: dict[tuple[str, str], _Obstacle] = {}
    newest = max((row["opset"] for row in rows), default=0)
    at_newest: dict[str, set[str]] = collections.defaultdict(set)
    for row in rows:
        reasons = dict(part.partition(": ")[::2] for part in row["detail"].split("; "))
        for name in row["missing"]:
            detail = reasons.get(name, "")
            is_absent = detail.startswith(("no symbolic function", "from opset"))
            found = (absent if is_absent else declined).setdefault((name, detail), _Obstacle(name, detail, row["call"]))
            found.users.add(row["operator"])
            found.opsets.add(row["opset"])
            if row["opset"] == newest:
                at_newest[row["operator"]].add(name)
    lines = [ABSENT]
    for label, obstacles in _by_family(absent.values()):
        lines += [f"### {label} ({len(obstacles)})", ""]
        for obstacle in sorted(obstacles, key=lambda item: (-len(item.users), item.name)):
            alone = sum(at_newest.get(user) == {obstacle.name} for user in obstacle.users)
            later = f" ({obstacle.detail})" if obstacle.detail.startswith("from") else ""
            users = f"{len(obstacle.users)} entries ({', '.join(sorted(obstacle.users)[:6])}), alone {alone}"
            lines.append(f"- **{obstacle.name}**{later}: {users}, opsets {_short(obstacle.opsets)}: `{obstacle.call}`")
        lines.append("")
    lines += ["## UNSUPPORTED: refused with certain arguments", ""]
    for label, obstacles in _by_family(declined.values()):
        lines += [f"### {label} ({len(obstacles)})", ""]
        for obstacle in sorted(obstacles, key=lambda item: (item.name, item.detail)):
            users = f"{', '.join(sorted(obstacle.users)[:6])}, opsets {_short(obstacle.opsets)}"
            lines.append(f"- **{obstacle.name}**: {obstacle.detail[:300]}; {users}: `{obstacle.call}`")
        lines.append("")
    return lines


def _by_family(obstacles: Iterable[_Obstacle]) -> list[tuple[str, list[_Obstacle]]]:
    groups: dict[str, list[_Obstacle]] = collections.defaultdict(list)
    for obstacle in obstacles:
        groups[family(obstacle.name)].append(obstacle)
    return sorted(groups.items())


def _short(numbers: Iterable[int]) -> str:
    found = sorted(set(numbers))
    return ",".join(map(str, found[:9])) + ("..." if len(found) > 9 else "")
