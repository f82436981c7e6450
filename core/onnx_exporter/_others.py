"""Who is asked for a node besides functions of tables: rules and hooks of plugins, a class's own way, what the caller says."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from onnx_exporter._arguments import NotConstantError
from onnx_exporter._blame import symbolic_error
from onnx_exporter._builder import Builder, TypeNotSupported, place_in_package
from onnx_exporter._context import GraphContext, Unsupported
from onnx_exporter._fallback import Fallback, pass_through
from onnx_exporter._registry import Provider, Registry, Via
from onnx_exporter._version import core_version
from onnx_exporter.compat._calling import call_symbolic, place_of
from onnx_exporter.errors import ExportError

DECLINED = (Unsupported, NotConstantError, TypeNotSupported)
"""What passes a node on to whoever is asked next."""


class Others:
    """Asks each in turn; whoever cannot convert a node returns None, and says why in the list of reasons.

    Args:
        registry: Who contributes rules and hooks.
        builder: The ONNX graph to grow.
    """

    def __init__(self, registry: Registry, builder: Builder) -> None:
        self._registry = registry
        self._builder = builder

    def hooks(self, kind: str) -> Iterator[tuple[Provider, Callable[..., Any]]]:
        """Yields the hooks of plugins that are for the target opset, in the order of precedence."""
        for provider in self._registry.providers:
            hook = getattr(provider, kind)
            if hook is not None and self._builder.opset in provider.opsets:
                yield provider, hook

    def ask_hooks(self, context: GraphContext, kind: str, reasons: list[str]) -> Sequence[Any] | None:
        """Asks the hooks of a kind."""
        for provider, hook in self.hooks(kind):
            via = Via.of(provider.name, provider.name, provider.version, hook)
            results = self.ask(context, via, reasons, functools.partial(hook, context, context.node))
            if results is not None:
                return results
        return None

    def pass_through(self, context: GraphContext, reasons: list[str], *, replacing: bool = False) -> Sequence[Any] | None:
        """Goes by a plugin's fall-through rule; if `replacing`, one that goes before every symbolic function."""
        found = self._registry.passthrough(context.node.op, self._builder.opset, replacing=replacing)
        if found is None:
            return None
        rule, provider = found
        name = context.node.op.rpartition("::")[2]
        context.domain_version(rule.domain, rule.version)
        op_type = f"{rule.domain}::{rule.rename.get(name, name)}"
        file, _, line = rule.place.rpartition(":")
        place = f"{place_in_package(rule.module, file)}:{line}"
        via = Via(provider.name, provider.name, provider.version, rule.module, f"passthrough {rule.pattern}", place=place)
        return self.ask(context, via, reasons, lambda: pass_through(context, op_type))

    def ask_fallback(self, context: GraphContext, fallback: Fallback, reasons: list[str]) -> Sequence[Any] | None:
        """Does what the caller wants of operators that nobody converts."""
        if not fallback.accepts(context.node):
            return None
        via = Via.of(fallback.name, fallback.name, core_version(), fallback.convert)
        return self.ask(context, via, reasons, lambda: fallback.convert(context, context.node))

    def ask_class(self, context: GraphContext, reasons: list[str]) -> Sequence[Any] | None:
        """Calls the ``symbolic`` of an ``autograd.Function``."""
        function = context.node.attributes["function"]
        symbolic = function.symbolic
        name = f"{function.__qualname__}.symbolic at {place_of(symbolic)}"
        return self.ask(
            context,
            Via.of(name, "autograd.Function", "", symbolic),
            reasons,
            lambda: call_symbolic(symbolic, context, list(context.arguments.values()), {}, keeps_objects=True),
        )

    def ask(self, context: GraphContext, via: Via, reasons: list[str], convert: Callable[[], Any]) -> Sequence[Any] | None:
        """Calls what is no entry of a table; None if it declines, which is noted."""
        checkpoint = len(self._builder.nodes)
        context._via = via
        try:
            result = convert()
        except DECLINED as declined:
            self._builder.rollback(checkpoint)
            reasons.append(f"{via.name}: {declined}")
            return None
        except ExportError:
            raise
        except Exception as error:  # a function of a plugin or of the model, which may raise anything
            raise symbolic_error(context.node, context.arguments, via.name, error) from error
        return as_results(result)


def as_results(result: Any) -> list[Any] | None:
    """Returns what a symbolic function gave as a list; None if it declined."""
    if result is None:
        return None
    return list(result) if isinstance(result, list | tuple) else [result]
