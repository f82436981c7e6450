"""Tables and the report of the operator sweep."""

from __future__ import annotations

import collections
import fnmatch
from collections.abc import Iterable, Mapping, Sequence

Rows = Sequence[Mapping[str, object]]

# The first pattern that fits decides; the names are ATen's without namespace, overload and underscores in front.
FAMILIES: dict[str, tuple[str, ...]] = {
    "complex and fft": (
        "*fft*",
        "stft",
        "istft",
        "*complex*",
        "real",
        "imag",
        "angle",
        "conj*",
        "resolve_*",
        "polar",
        "*hilbert*",
    ),
    "quantized": ("*quant*", "*int_repr*", "q_*", "*dequant*"),
    "random and creation": (
        *(
            "rand*",
            "normal*",
            "bernoulli*",
            "*dropout*",
            "full*",
            "ones*",
            "zeros*",
            "new_*",
            "eye",
            "arange",
            "linspace",
            "logspace",
        ),
        *("*window*", "empty*", "tri?_indices", "vander", "scalar_tensor", "lift_fresh*", "kaiser*"),
    ),
    "norm, attention, rnn, loss, embedding": (
        *(
            "*loss*",
            "*norm_except_dim*",
            "*_norm",
            "native_*norm*",
            "*layer_norm*",
            "*attention*",
            "lstm*",
            "gru*",
            "rnn*",
            "embedding*",
        ),
        *(
            "*entropy*",
            "*kl_div*",
            "cosine_similarity",
            "pairwise_distance",
            "pdist",
            "*ctc*",
            "renorm",
            "normalize",
            "one_hot",
            "*batch_norm*",
        ),
        "cosine_embedding*",
    ),
    "conv, pool, pad, resize": (
        *(
            "conv*",
            "*convolution*",
            "*pool*",
            "*pad",
            "*pad?d*",
            "upsample*",
            "*interpolate*",
            "grid_*",
            "affine_grid*",
            "im2col",
            "col2im",
        ),
        *("pixel_*", "channel_shuffle", "*unfold*", "fold*", "slow_conv*", "thnn_*", "mkldnn*"),
    ),
    "linalg and matmul": (
        *(
            "linalg*",
            "*mm",
            "mm",
            "*mv",
            "matmul",
            "dot",
            "vdot",
            "inner",
            "outer",
            "einsum",
            "kron",
            "cross",
            "cholesky*",
            "qr",
            "svd*",
        ),
        *(
            "lu*",
            "triangular_solve",
            "inverse",
            "pinverse",
            "det",
            "logdet",
            "slogdet",
            "eig*",
            "symeig",
            "geqrf",
            "orgqr",
            "ormqr",
            "lstsq",
        ),
        *(
            "trace",
            "addr",
            "cdist*",
            "matrix_*",
            "tensordot",
            "chain_matmul",
            "householder*",
            "*bilinear",
            "linear",
            "cov",
            "corrcoef",
            "ger",
        ),
        *("cumulative_trapezoid", "trapz", "trapezoid", "block_diag"),
    ),
    "indexing, scatter, sort": (
        *(
            "index*",
            "scatter*",
            "gather*",
            "take*",
            "masked_*",
            "put*",
            "sort*",
            "argsort*",
            "topk*",
            "kthvalue*",
            "unique*",
            "nonzero*",
        ),
        *(
            "searchsorted*",
            "bucketize*",
            "histc*",
            "histogram*",
            "bincount*",
            "msort",
            "select*",
            "slice*",
            "where*",
            "*_scatter",
            "segment_*",
        ),
        *("repeat_interleave*", "argwhere", "unravel_index", "cummax", "cummin", "mode*", "median*", "nanmedian*", "*quantile*"),
    ),
    "reduction": (
        *(
            "sum*",
            "mean*",
            "prod*",
            "std*",
            "var*",
            "a?max*",
            "a?min*",
            "max*",
            "min*",
            "aminmax*",
            "all*",
            "any*",
            "argm*",
            "logsumexp*",
        ),
        *(
            "nansum*",
            "nanmean*",
            "count_nonzero*",
            "norm*",
            "*cum*",
            "dist",
            "logcumsumexp*",
            "reduce*",
            "softmax*",
            "log_softmax*",
        ),
    ),
    "shape": (
        *(
            "view*",
            "reshape*",
            "expand*",
            "permute*",
            "transpose*",
            "t",
            "squeeze*",
            "unsqueeze*",
            "flatten*",
            "unflatten*",
            "cat*",
            "stack*",
        ),
        *(
            "*stack",
            "split*",
            "*split*",
            "chunk*",
            "roll*",
            "rot90*",
            "flip*",
            "tile*",
            "repeat*",
            "diag*",
            "tri?",
            "as_strided*",
            "move*",
        ),
        *(
            "meshgrid*",
            "cartesian*",
            "combinations*",
            "broadcast*",
            "narrow*",
            "unbind*",
            "swap*",
            "size*",
            "*copy*",
            "alias*",
            "contiguous*",
        ),
        *(
            "unsafe_*",
            "T",
            "mT",
            "mH",
            "H",
            "numpy_T",
            "adjoint",
            "ravel",
            "resize*",
            "atleast*",
            "unfold*",
            "to",
            "type_as",
            "clone*",
        ),
    ),
}


def family(operator: str) -> str:
    """The family of an ATen operator or of an entry in op_db."""
    name = operator.partition("::")[2] or operator
    name = name.partition(".")[0] if "::" in operator else name.partition("/")[0].rpartition(".")[2]
    if "." in operator and operator.startswith(("linalg.", "fft.")):
        name = operator.replace(".", "_")
    name = name.lstrip("_") or name
    for label, patterns in FAMILIES.items():
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            return label
    return "pointwise and special"


def totals(rows: Rows) -> str:
    """A table: for each type and kind, how many operators are right, wrong, in error, refused, per method and opset."""
    groups: dict[tuple[str, str], dict[tuple[str, int], dict[str, set[str]]]] = {}
    for row in rows:
        cell = groups.setdefault((str(row["column"]), str(row["kind"])), {}).setdefault(
            (str(row["method"]), int(str(row["opset"]))), {}
        )
        cell.setdefault(str(row["operator"]), set()).add(str(row["status"]))  # type: ignore[arg-type]
    lines = []
    for (column, kind), cells in groups.items():
        lines += [
            "",
            f"{column}, {kind}:",
            "",
            "| method | opset | operators | every sample right | a sample wrong | a sample fails in the checker or the runtime | else refused |",
            "| --- | --- | --- | --- | --- | --- | --- |",
        ]
        for (method, opset), operators in sorted(cells.items(), key=lambda item: (item[0][0] != "ours", item[0])):
            statuses = list(operators.values())
            right = sum(status == {"pass"} for status in statuses)
            wrong = sum("wrong" in status for status in statuses)
            error = sum("error" in status for status in statuses)
            refused = sum("refused" in status and not status & {"wrong", "error"} for status in statuses)
            lines.append(f"| {method} | {opset} | {len(statuses)} | {right} | {wrong} | {error} | {refused} |")
    return "\n".join([*lines, ""])


def report(rows: Rows) -> str:
    """What failed, by reason and family, in Markdown."""
    opsets = sorted({int(str(row["opset"])) for row in rows})
    command = "`python benchmarks/operator_coverage.py -v --ops NAME --opsets N --jobs 1` runs one operator again."
    lines = ["# Operator sweep", "", command, "", "## Totals", totals(rows)]
    lines += ["## WRONG: the file differs from PyTorch", "", *_listed(row for row in rows if row["status"] == "wrong")]
    lines += [
        "## ERROR: exporter, checker, runtime or process fails",
        "",
        *_listed(row for row in rows if row["status"] == "error"),
    ]
    lines += ["## REFUSED: before conversion (capture, writes, kinds of input)", ""]
    lines += _listed(row for row in rows if row["status"] == "refused" and not row["missing"])
    lines += _missing(rows, opsets)
    return "\n".join(lines) + "\n"


def _listed(rows: Iterable[Mapping[str, object]]) -> list[str]:
    """A line for each operator, kind and kind of failure, by family; with all opsets, samples and one example."""
    groups: dict[tuple[str, str], dict[tuple[str, str, str, str], list[Mapping[str, object]]]] = {}
    for row in rows:
        key = (str(row["operator"]), str(row["kind"]), str(row["column"]), str(row["stage"]))
        groups.setdefault((family(str(row["operator"])), ""), {}).setdefault(key, []).append(row)
    lines = []
    for (label, _), found in sorted(groups.items()):
        lines += [f"### {label} ({len(found)})", ""]
        for (operator, kind, column, stage), members in sorted(found.items()):
            opsets = sorted({int(str(row["opset"])) for row in members})
            indices = sorted({int(str(row["sample"])) for row in members})
            first = members[-1]
            text = str(first["detail"]).replace("\n", " ")[:420]
            runtime = " (onnx.reference)" if first["runtime"] == "onnx.reference" else ""
            lines.append(
                f"- **{operator}** {column} {kind}, {stage}{runtime}, opsets {_short(opsets)}, samples {_short(indices)}: `{first['call']}`: {text}"
            )
        lines.append("")
    return lines or ["none", ""]


def _missing(rows: Rows, opsets: Sequence[int]) -> list[str]:
    """Two lists, by family: operators without a symbolic function, and refusals of one with certain arguments."""
    absent: dict[str, dict[str, dict[str, set[int]]]] = collections.defaultdict(
        lambda: collections.defaultdict(lambda: collections.defaultdict(set))
    )
    declined: dict[str, dict[tuple[str, str], dict[str, set[int]]]] = collections.defaultdict(
        lambda: collections.defaultdict(lambda: collections.defaultdict(set))
    )
    example: dict[object, str] = {}
    blockers: dict[tuple[str, int], set[str]] = collections.defaultdict(set)
    for row in rows:
        if row["status"] != "refused" or not row["missing"]:
            continue
        parts = str(row["detail"]).split("; ")
        for name in row["missing"]:  # type: ignore[attr-defined]
            blockers[str(row["operator"]), int(str(row["opset"]))].add(name)
            detail = next((part.partition(": ")[2] for part in parts if part.startswith(f"{name}: ")), "")
            if detail.startswith(("no symbolic function", "from opset")):
                absent[family(name)][f"{name}" if detail.startswith("no") else f"{name} ({detail})"][str(row["operator"])].add(
                    int(str(row["opset"]))
                )
                example.setdefault(f"{name}" if detail.startswith("no") else f"{name} ({detail})", str(row["call"]))
            else:
                declined[family(name)][name, detail][str(row["operator"])].add(int(str(row["opset"])))
                example.setdefault((name, detail), str(row["call"]))
    newest = max(opsets)
    lines = ["## UNSUPPORTED: operators without a symbolic function", ""]
    lines += ["`alone` counts the entries of op_db for which it is the only obstacle that was met at the newest opset.", ""]
    for label, names in sorted(absent.items()):
        lines += [f"### {label} ({len(names)})", ""]
        for name, users in sorted(names.items(), key=lambda item: (-len(item[1]), item[0])):
            bare = name.partition(" (")[0]
            alone = sum(blockers.get((user, newest)) == {bare} for user in users)
            reached = sorted(set().union(*users.values()))
            lines.append(
                f"- **{name}**: {len(users)} entries ({', '.join(sorted(users)[:6])}), alone {alone}, opsets {_short(reached)}: `{example[name]}`"
            )
        lines.append("")
    lines += ["## UNSUPPORTED: refused with certain arguments", ""]
    for label, reasons in sorted(declined.items()):
        lines += [f"### {label} ({len(reasons)})", ""]
        for (name, detail), users in sorted(reasons.items()):
            reached = sorted(set().union(*users.values()))
            lines.append(
                f"- **{name}**: {detail[:300]}; {', '.join(sorted(users)[:6])}, opsets {_short(reached)}: `{example[name, detail]}`"
            )
        lines.append("")
    return lines


def _short(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers[:9])) + ("..." if len(numbers) > 9 else "")
