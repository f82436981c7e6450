"""The engine: walks the source graph in order and dispatches each node. It knows no operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import torch

from onnx_exporter._attributes import to_tensor
from onnx_exporter._blame import called, symbolic_error
from onnx_exporter._branches import convert_if
from onnx_exporter._builder import Builder
from onnx_exporter._context import GraphContext, Unsupported
from onnx_exporter._failures import Failures
from onnx_exporter._fallback import Fallback, pass_through
from onnx_exporter._loops import convert_loop
from onnx_exporter._others import DECLINED, Others, as_results
from onnx_exporter._reconcile import reconcile
from onnx_exporter._registry import Candidate, Registry, Via
from onnx_exporter._source.graph import SourceGraph, SourceNode, SourceValue, map_values
from onnx_exporter._values import Value
from onnx_exporter._version import OWN_DISTRIBUTION, core_version
from onnx_exporter.compat._calling import call_by_position, call_delegated
from onnx_exporter.compat._duck_graph import DuckGraph
from onnx_exporter.compat._quantized import convert_quantized, is_about_quantized, is_quantized
from onnx_exporter.errors import CaptureError, ExportError, SymbolicError
from onnx_exporter.helpers import dtypes, emit

_IGNORED_ARGUMENTS = frozenset(
    ("layout", "device", "pin_memory", "memory_format", "non_blocking", "generator", "copy", "cudnn_enable", "cudnn_enabled",
     "benchmark", "deterministic", "allow_tf32", "requires_grad", "sparse_grad", "scale_grad_by_freq", "sparse", "enable_gqa",)
)  # fmt: skip
"""Arguments that say where or how to compute, not what. `enable_gqa` is told by the shapes."""

_CONTROL_FLOW = {"prim::If": convert_if, "prim::Loop": convert_loop}


class Engine:
    """Converts one source graph.

    Args:
        registry: Who converts what.
        builder: The ONNX graph to grow.
        fallback: What becomes of operators that nobody converts, if they may stay as they are.
        inlines_functions: Whether an ``autograd.Function`` that nobody converts is replaced by what it computes.
    """

    def __init__(
        self, registry: Registry, builder: Builder, fallback: Fallback | None = None, *, inlines_functions: bool = True
    ) -> None:
        self.registry = registry
        self.builder = builder
        self.fallback = fallback
        self._inlines_functions = inlines_functions
        self._others = Others(registry, builder)
        self.env: dict[SourceValue, Value] = {}
        self.failures = Failures(registry, builder.opset)
        self.tainted: set[SourceValue] = set()
        self.duck_graph: DuckGraph | None = None
        """What functions written for torch.onnx see; made for the first of them."""

    def run(self, graph: SourceGraph) -> list[Value]:
        """Converts every node and returns the graph's outputs.

        Raises:
            UnsupportedOpError: If some operators cannot be converted; it lists all of them.
            SymbolicError: If a symbolic function fails.
        """
        self.nodes(graph.nodes)
        if self.failures:
            raise self.failures.error()
        outputs = [self.value(output) for output in graph.outputs]
        if any(is_quantized(output) for output in outputs):
            raise CaptureError("the model returns a quantized tensor, which a file cannot; return what dequantize() gives")
        return outputs

    def nodes(self, nodes: Sequence[SourceNode]) -> None:
        """Converts nodes in order."""
        for node in nodes:
            if self.tainted and any(value in self.tainted for value in node.input_values()):
                self.tainted.update(node.outputs)
                if node.op not in _CONTROL_FLOW and not self._candidates(node) and not self._can_fall_back(node):
                    self.failures.note(node, [])
                continue
            convert = _CONTROL_FLOW.get(node.op)
            results = self._convert(node) if convert is None else convert(self, node)
            if results is None:
                self.tainted.update(node.outputs)
            else:
                self._bind(node, results)

    # Values

    def value(self, source: SourceValue) -> Value:
        """Returns the ONNX value of a source value; weights enter the graph when they are first used."""
        value = self.env.get(source)
        if value is None:
            if source.type.is_list and source.constant is not None:
                return self._empty_list(source)
            if source.constant is None:
                raise AssertionError(f"{source!r} is used before it is computed")
            value = self.env[source] = self.tensor(source.constant, source.name, is_number=source.type.is_number)
        return value

    def _empty_list(self, source: SourceValue) -> Value:
        """A list of the file without elements, where a place needs one from which nobody reads."""
        assert source.type.dtype is not None
        return self.builder.add("SequenceEmpty", [], {"dtype": int(dtypes.to_onnx(source.type.dtype))})[0]

    def tensor(self, tensor: torch.Tensor, name: str = "", *, is_number: bool = False) -> Value:
        """Returns a constant over a torch tensor, which is not copied. Tied weights are stored once."""
        if not name and tensor.numel() <= 64:
            return self.builder.constant(to_tensor(tensor.clone()).numpy(), is_number=is_number)
        place = (tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride(), str(tensor.device))
        key = place if tensor.numel() else (name, *place)
        if tensor.is_conj() or tensor.is_neg():
            tensor = tensor.resolve_conj().resolve_neg()
        return self.builder.weight(name or "constant", to_tensor(tensor), key, is_number=is_number)

    def _lowered(self, node: SourceNode) -> dict[str, Any]:
        return {name: map_values(argument, self.value) for name, argument in node.arguments.items()}

    # Dispatch

    def _candidates(self, node: SourceNode) -> Sequence[Candidate]:
        if node.op == "prim::PythonOp":
            function = node.attributes["function"]
            found = self.registry.python_op_candidates(function.__name__, function.__module__, self.builder.opset)
            if not hasattr(function, "symbolic"):  # else that goes before a handler for any class
                found += self.registry.candidates(node.op, "", self.builder.opset)
            return sorted(found, key=lambda candidate: candidate.provider.order)
        return self.registry.candidates(node.op, node.overload, self.builder.opset)

    def _convert(self, node: SourceNode) -> Sequence[Any] | None:
        """Returns the results of a node, or None if nobody converts it (which is noted)."""
        arguments = self._lowered(node)
        candidates = self._candidates(node)
        context = GraphContext(self, self.builder, node, arguments, candidates)
        reasons: list[str] = []
        is_refused = False
        if self.fallback is not None and self.fallback.goes_first:
            results = self._others.ask_fallback(context, self.fallback, reasons)
            if results is not None:
                return results
        results = self._others.pass_through(context, reasons, replacing=True)
        if results is not None:
            return results
        context._via = None
        takes_levels = is_about_quantized(node.op, arguments)
        for position, candidate in enumerate(candidates):
            if takes_levels and not candidate.entry.by_position:
                continue  # it knows no quantized tensors
            context._position = position
            checkpoint = len(self.builder.nodes)
            try:
                results = self._invoke(context, candidate, arguments)
            except DECLINED as declined:
                self.builder.rollback(checkpoint)
                reasons.append(f"{candidate.provider.name} ({candidate.entry.title}): {declined}")
                is_refused |= candidate.entry.name != "prim::PythonOp"  # a handler for all classes may not know this one
                continue
            if results is not None:
                return results
            reasons.append(f"{candidate.provider.name} ({candidate.entry.title}) declined")
        if takes_levels:
            via = Via.of("quantized tensors", OWN_DISTRIBUTION, core_version(), convert_quantized)
            results = self._others.ask(context, via, reasons, lambda: convert_quantized(context))
            if results is not None:
                return results
        results = self._fall_back(context, reasons, is_refused=is_refused)
        if results is None:
            self.failures.note(node, reasons)
        return results

    def _invoke(self, context: GraphContext, candidate: Candidate, arguments: Mapping[str, Any]) -> Sequence[Any] | None:
        """Calls a symbolic function with converted arguments; what it raises unasked is its bug."""
        entry = candidate.entry
        keywords = {} if entry.by_position else self._bind_arguments(context, candidate, arguments)
        try:
            result = call_by_position(entry.function, context) if entry.by_position else entry.function(context, **keywords)
        except (*DECLINED, ExportError):
            raise
        except Exception as error:
            # RecursionError, TypeError and the like in a symbolic function, or a node that ONNX does not allow
            raise symbolic_error(context.node, arguments, candidate.full_name, error) from error
        return as_results(result)

    def _bind_arguments(self, context: GraphContext, candidate: Candidate, arguments: Mapping[str, Any]) -> dict[str, Any]:
        signature = candidate.entry.signature
        arguments = _by_parameters(arguments, list(signature))
        keywords = {}
        for name, parameter in signature.items():
            if name not in arguments:
                if parameter.required:
                    self._refuse_parameter(context.node, candidate, name, arguments)
                continue
            try:
                keywords[parameter.keyword] = parameter.convert(arguments[name], self._to_value)
            except TypeError as error:
                raise Unsupported(str(error)) from None
        self._check_ignored(context.node, candidate, arguments)
        if candidate.entry.promote:
            self._promote(context, candidate, keywords)
        return keywords

    def _refuse_parameter(self, node: SourceNode, candidate: Candidate, name: str, arguments: Mapping[str, Any]) -> NoReturn:
        """A function for all overloads need not fit each of them; one for this overload must."""
        message = f"parameter {name!r} is no argument of {node.qualified_name}"
        if node.overload and candidate.entry.name == node.op:
            if node.schema is not None and not any("Tensor" in str(item.type) for item in node.schema.arguments):
                raise Unsupported("it takes tensors, and here are numbers that the data decide; compute it of a tensor")
            raise Unsupported(message)
        raise symbolic_error(node, arguments, candidate.full_name, TypeError(message))

    def _to_value(self, argument: Any) -> Value:
        if isinstance(argument, torch.Tensor):
            return self.tensor(argument)
        if isinstance(argument, list):
            return self.tensor(torch.as_tensor(argument))
        return self.tensor(torch.tensor(argument, dtype=torch.float64 if isinstance(argument, float) else None), is_number=True)

    def _check_ignored(self, node: SourceNode, candidate: Candidate, arguments: Mapping[str, Any]) -> None:
        """An argument that the function does not take must have its default."""
        if node.schema is None:
            return
        signature = candidate.entry.signature
        for argument in node.schema.arguments:
            name = argument.name
            if name in signature or name in _IGNORED_ARGUMENTS or name not in arguments:
                continue
            default = argument.default_value if argument.has_default_value() else None
            if arguments[name] != default:
                raise Unsupported(f"argument {name}={arguments[name]!r} is not handled")

    def _promote(self, context: GraphContext, candidate: Candidate, keywords: dict[str, Any]) -> None:
        """Brings the declared operands to the type in which PyTorch computes."""
        names = [name for name in candidate.entry.promote if keywords.get(candidate.entry.signature[name].keyword) is not None]
        operands = [keywords[candidate.entry.signature[name].keyword] for name in names]
        captured = context.result_dtype
        if captured is not None and captured is not torch.bool:
            dtype = captured
        else:
            dtype = dtypes.promote(operands)
            if candidate.entry.float_result and not (dtype.is_floating_point or dtype.is_complex):
                dtype = dtypes.default_float()
        for name, operand in zip(names, operands, strict=True):
            cast = emit.cast(context, operand, dtype) if isinstance(operand, Value) else context.constant(operand, dtype=dtype)
            keywords[candidate.entry.signature[name].keyword] = cast

    def _can_fall_back(self, node: SourceNode) -> bool:
        inlines = bool(node.blocks) and self._inlines_functions
        if node.op == "prim::PythonOp" and (inlines or hasattr(node.attributes["function"], "symbolic")):
            return True
        if is_about_quantized(node.op, {}):
            return True
        if self.registry.passthrough(node.op, self.builder.opset):
            return True
        if self.fallback is not None and self.fallback.accepts(node):
            return True
        return any(self._others.hooks("fallback")) or (node.op == "prim::PythonOp" and any(self._others.hooks("python_op")))

    def _fall_back(self, context: GraphContext, reasons: list[str], *, is_refused: bool) -> Sequence[Any] | None:
        """What is tried once no table converts a node: its own way, rules of plugins, their hooks, what the caller asks for."""
        node = context.node
        if node.op == "prim::PythonOp":
            results = self._python_op(context, reasons, is_refused=is_refused)
            if results is not None:
                return results
        results = self._others.pass_through(context, reasons)
        if results is not None:
            return results
        results = self._others.ask_hooks(context, "fallback", reasons)
        if results is not None:
            return results
        return None if self.fallback is None else self._others.ask_fallback(context, self.fallback, reasons)

    def _python_op(self, context: GraphContext, reasons: list[str], *, is_refused: bool) -> Sequence[Any] | None:
        """An ``autograd.Function``: its own ``symbolic``, else hooks of plugins, else its traced body.

        The body only stands in where nobody who converts the class refused this call: it need not compute the same.
        """
        node = context.node
        if hasattr(node.attributes["function"], "symbolic"):
            return self._others.ask_class(context, reasons)
        asked = len(reasons)
        results = self._others.ask_hooks(context, "python_op", reasons)
        if results is not None:
            return results
        if is_refused or len(reasons) > asked or not node.blocks or not self._inlines_functions:
            return None
        body = node.blocks[0]
        for inner, outer in zip(body.inputs, node.input_values(), strict=False):
            self.env[inner] = self.value(outer)
        self.nodes(body.nodes)
        if any(output in self.tainted for output in body.outputs):
            return None
        return [self.value(output) for output in body.outputs]

    def pass_through(self, context: GraphContext, op_type: str, attributes: Mapping[str, Any]) -> list[Value]:
        """See `GraphContext.pass_through`."""
        return pass_through(context, op_type, **attributes)

    # Delegation

    def call(self, context: GraphContext, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Converts another operator on behalf of a symbolic function."""
        op, _, overload = name.partition(".")
        candidates = self.registry.candidates(op, overload, self.builder.opset)
        if not candidates:
            later = self.registry.available_from(op, overload, self.builder.opset)
            if later is not None:
                raise Unsupported(f"it is built on {name}, which is converted from opset {later} on")
            raise SymbolicError(
                f"{context.node.qualified_name} is built on {name}, which nobody converts at opset {self.builder.opset}"
            )
        return self._delegate(context, candidates, 0, args, kwargs)

    def previous(self, context: GraphContext, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Calls the next candidate for the running operator."""
        if context._position + 1 >= len(context._candidates):
            raise Unsupported("there is no earlier version of it")
        return self._delegate(context, context._candidates, context._position + 1, args, kwargs)

    def _delegate(
        self, context: GraphContext, candidates: Sequence[Candidate], start: int, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        is_other = start == 0 or context._delegated
        inner = GraphContext(self, self.builder, context.node, {}, candidates, delegated=is_other, steps=context._next_steps())
        declined: Exception | None = None
        for position in range(start, len(candidates)):
            inner._position = position
            candidate = candidates[position]
            signature, function = candidate.entry.signature, candidate.entry.function
            if len(args) > len(signature) and not candidate.entry.by_position:
                declined = declined or SymbolicError(
                    f"{candidate.entry.name} is called with {len(args)} arguments; its function at {candidate.entry.place} "
                    f"takes {len(signature)}: name the overload that is meant"
                )
                continue
            given = {**dict(zip(signature, args, strict=False)), **kwargs}
            inner.arguments = given
            try:
                keywords = {
                    signature[name].keyword: signature[name].convert(value, self._to_value)
                    for name, value in given.items()
                    if name in signature
                }
                if candidate.entry.promote:
                    self._promote(inner, candidate, keywords)
                if candidate.entry.by_position:
                    result = call_delegated(candidate.entry.name, function, inner, args, kwargs)
                else:
                    result = function(inner, **keywords)
            except DECLINED as error:
                declined = declined or error
                continue
            if result is not None:
                return result
        raise declined or Unsupported(f"every version of {candidates[0].entry.name} declined")

    # Results

    def _bind(self, node: SourceNode, results: Sequence[Any]) -> None:
        if len(results) < len(node.outputs) or (len(results) > len(node.outputs) and not _has_unread_list(node)):
            raise SymbolicError(
                f"{called(node)} has {len(node.outputs)} results, its symbolic function gave {len(results)}\n  at {node.location}"
            )
        for output, result in zip(node.outputs, results, strict=False):
            if result is None:
                continue
            if not isinstance(result, Value):
                result = self._constant_result(node, result)
            reconcile(node, output.type, result, self.builder)
            if result.is_number != output.type.is_number:
                result = Value(result.ir, elements=result.elements, is_number=output.type.is_number)
            self.env[output] = result

    def _constant_result(self, node: SourceNode, result: Any) -> Value:
        if not isinstance(result, bool | int | float | complex | list | torch.Tensor):
            raise SymbolicError(
                f"{called(node)}: its symbolic function gave {type(result).__name__}; "
                f"it must give a Value, or a list with one for each result\n  at {node.location}"
            )
        return self._to_value(result)


def _by_parameters(arguments: Mapping[str, Any], parameters: Sequence[str]) -> Mapping[str, Any]:
    """Names arguments after a function's parameters, in order, where an operator was defined without names (in C++)."""
    if not arguments or any(name != f"_{index}" for index, name in enumerate(arguments)):
        return arguments
    names = [*parameters, *list(arguments)[len(parameters) :]]
    return dict(zip(names, arguments.values(), strict=False))


def _has_unread_list(node: SourceNode) -> bool:
    """Whether the last result is a list of which the model reads nothing, so that its elements are no results of the node."""
    returns = node.schema.returns if node.schema is not None else []
    return len(node.outputs) < len(returns) and isinstance(returns[-1].type, torch._C.ListType)
