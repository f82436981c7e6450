"""The operators of a model that nobody converts, gathered until all of them can be reported at once."""

from __future__ import annotations

from collections.abc import Sequence

from onnx_exporter._blame import called
from onnx_exporter._registry import Registry
from onnx_exporter._source.graph import SourceNode
from onnx_exporter.errors import UnsupportedOp, UnsupportedOpError


class Failures:
    """What could not be converted, where and why.

    Args:
        registry: Who converts what, to tell what would help.
        opset: The target opset.
    """

    def __init__(self, registry: Registry, opset: int) -> None:
        self._registry = registry
        self._opset = opset
        self._known: dict[str, tuple[list[str], list[str]]] = {}
        self.optional_inputs: list[str] = []
        """Names of inputs that need not be given; what runs without them is converted only for their sake."""

    def __bool__(self) -> bool:
        return bool(self._known)

    def note(self, node: SourceNode, reasons: Sequence[str]) -> None:
        """Notes that nobody converts a node, and why each who was asked declined."""
        name = called(node)
        places, known = self._known.setdefault(name, ([], []))
        if str(node.location) not in places:
            places.append(str(node.location))
        known += [reason for reason in reasons if reason not in known]

    def error(self) -> UnsupportedOpError:
        """Returns the error that lists all of them."""
        return UnsupportedOpError([self._describe(name) for name in self._known], self._opset)

    def _describe(self, name: str) -> UnsupportedOp:
        places, reasons = self._known[name]
        op, _, overload = name.partition(".")
        later = None
        if not reasons and not name.startswith("autograd"):
            later = self._registry.available_from(op, overload, self._opset)
        stand_by = [] if reasons else self._registry.stand_by(op, overload, self._opset)
        hint = self._hint(name, bool(reasons or later))
        hints = filter(None, (*stand_by, hint, self._hint_about_optional_inputs()))
        return UnsupportedOp(name, tuple(places), tuple(reasons), later, "\n    ".join(hints))

    def _hint_about_optional_inputs(self) -> str:
        if not self.optional_inputs:
            return ""
        names = ", ".join(self.optional_inputs)
        return f"if it runs only without {names}: a module that takes a Tensor and passes it on leaves that out of the file"

    def _hint(self, name: str, known: bool) -> str:
        if name.startswith("autograd.Function") and known:
            return "its forward does not stand in for what is refused; a handler that returns None lets it"
        if name.startswith("autograd.Function"):
            return "give the class a static method symbolic(g, ...), or a plugin a handler: @table.python_op(...)"
        if known:
            return ""
        namespace = name.partition("::")[0]
        close = self._registry.close_names(name.partition(".")[0])
        similar = f"similar: {', '.join(close)}; " if close else ""
        if namespace == "aten":
            return f"{similar}add it with a symbolic function in a plugin (@table.op({name!r}); see CONTRIBUTING.md)"
        if namespace in ("prim", "higher_order"):
            return "this control flow is not converted: have the model do without, or export the part that comes before"
        plugin = f"look for a plugin (by convention exporter-plugin-{namespace})"
        return f"{similar}{plugin}, or add a symbolic function (@table.op({name!r}))"
