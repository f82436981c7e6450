"""The engine: walks the source graph in order and dispatches each node. It knows no operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import onnx_ir as ir
import torch

from onnx_exporter._arguments import NotConstantError
from onnx_exporter._attributes import to_tensor
from onnx_exporter._branches import convert_if
from onnx_exporter._builder import Builder, NodeError, TypeNotSupported
from onnx_exporter._context import GraphContext, Unsupported
from onnx_exporter._inference import name_unknown
from onnx_exporter._registry import Candidate, Registry
from onnx_exporter._source.graph import SourceGraph, SourceNode, SourceType, SourceValue, map_values
from onnx_exporter._values import Value
from onnx_exporter.errors import ExportError, SymbolicError, UnsupportedOp, UnsupportedOpError
from onnx_exporter.helpers import dtypes, emit

_IGNORED_ARGUMENTS = frozenset(
    ("layout", "device", "pin_memory", "memory_format", "non_blocking", "generator", "copy", "cudnn_enable", "cudnn_enabled",
     "benchmark", "deterministic", "allow_tf32", "requires_grad", "sparse_grad", "scale_grad_by_freq", "sparse", "enable_gqa",)
)  # fmt: skip
"""Arguments that say where or how to compute, not what. `enable_gqa` is told by the shapes."""

_DECLINED = (Unsupported, NotConstantError, TypeNotSupported)


class Engine:
    """Converts one source graph.

    Args:
        registry: Who converts what.
        builder: The ONNX graph to grow.
    """

    def __init__(self, registry: Registry, builder: Builder) -> None:
        self.registry = registry
        self.builder = builder
        self.env: dict[SourceValue, Value] = {}
        self._failed: dict[str, tuple[list[str], list[str]]] = {}
        self.tainted: set[SourceValue] = set()

    def run(self, graph: SourceGraph) -> list[Value]:
        """Converts every node and returns the graph's outputs.

        Raises:
            UnsupportedOpError: If some operators cannot be converted; it lists all of them.
            SymbolicError: If a symbolic function fails.
        """
        self.nodes(graph.nodes)
        if self._failed:
            raise self._unsupported_error()
        return [self.value(output) for output in graph.outputs]

    def nodes(self, nodes: Sequence[SourceNode]) -> None:
        """Converts nodes in order."""
        for node in nodes:
            if self.tainted and any(value in self.tainted for value in node.input_values()):
                self.tainted.update(node.outputs)
                if not self._candidates(node) and not self._can_fall_back(node):
                    self._fail(node, [])
                continue
            results = convert_if(self, node) if node.op == "prim::If" else self._convert(node)
            if results is None:
                self.tainted.update(node.outputs)
            else:
                self._bind(node, results)

    # Values

    def value(self, source: SourceValue) -> Value:
        """Returns the ONNX value of a source value; weights enter the graph when they are first used."""
        value = self.env.get(source)
        if value is None:
            if source.constant is None:
                raise AssertionError(f"{source!r} is used before it is computed")
            value = self.env[source] = self.tensor(source.constant, source.name, is_number=source.type.is_number)
        return value

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

    def _candidates(self, node: SourceNode) -> list[Candidate]:
        if node.op == "prim::PythonOp":
            function = node.attributes["function"]
            return self.registry.python_op_candidates(function.__name__, function.__module__, self.builder.opset)
        return self.registry.candidates(node.op, node.overload, self.builder.opset)

    def _convert(self, node: SourceNode) -> Sequence[Any] | None:
        """Returns the results of a node, or None if nobody converts it (which is noted)."""
        arguments = self._lowered(node)
        candidates = self._candidates(node)
        context = GraphContext(self, self.builder, node, arguments, candidates)
        reasons: list[str] = []
        for position, candidate in enumerate(candidates):
            context._position = position
            checkpoint = len(self.builder.nodes)
            try:
                results = self._invoke(context, candidate, arguments)
            except _DECLINED as declined:
                self.builder.rollback(checkpoint)
                reasons.append(f"{candidate.provider.name} ({candidate.entry.function.__name__}): {declined}")
                continue
            if results is not None:
                return results
            reasons.append(f"{candidate.provider.name} ({candidate.entry.function.__name__}) declined")
        results = self._fall_back(context)
        if results is None:
            self._fail(node, reasons)
        return results

    def _invoke(self, context: GraphContext, candidate: Candidate, arguments: Mapping[str, Any]) -> Sequence[Any] | None:
        """Calls a symbolic function with converted arguments; what it raises unasked is its bug."""
        keywords = self._bind_arguments(context, candidate, arguments)
        try:
            result = candidate.entry.function(context, **keywords)
        except (*_DECLINED, ExportError):
            raise
        except Exception as error:
            # RecursionError, TypeError and the like in a symbolic function, or a node that ONNX does not allow
            raise self._symbolic_error(context.node, candidate, error) from error
        if result is None:
            return None
        return list(result) if isinstance(result, list | tuple) else [result]

    def _bind_arguments(self, context: GraphContext, candidate: Candidate, arguments: Mapping[str, Any]) -> dict[str, Any]:
        signature = candidate.entry.signature
        keywords = {}
        for name, parameter in signature.items():
            if name not in arguments:
                if parameter.required:
                    self._refuse_parameter(context.node, candidate, name)
                continue
            try:
                keywords[parameter.keyword] = parameter.convert(arguments[name], self._to_value)
            except TypeError as error:
                raise Unsupported(str(error)) from None
        self._check_ignored(context.node, candidate, arguments)
        if candidate.entry.promote:
            self._promote(context, candidate, keywords)
        return keywords

    def _refuse_parameter(self, node: SourceNode, candidate: Candidate, name: str) -> NoReturn:
        """A function for all overloads need not fit each of them; one for this overload must."""
        message = f"parameter {name!r} is no argument of {node.qualified_name}"
        if node.overload and candidate.entry.name == node.op:
            raise Unsupported(message)
        raise self._symbolic_error(node, candidate, TypeError(message))

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
        if node.op == "prim::PythonOp":
            return bool(node.blocks) or hasattr(node.attributes["function"], "symbolic")
        if self.registry.passthrough(node.op, self.builder.opset):
            return True
        return any(provider.fallback for provider in self.registry.providers)

    def _fall_back(self, context: GraphContext) -> Sequence[Any] | None:
        """What is tried once no table converts a node."""
        node = context.node
        if node.op == "prim::PythonOp":
            return self._python_op(context)
        found = self.registry.passthrough(node.op, self.builder.opset)
        if found is not None:
            rule, provider = found
            context._via = provider.name
            name = node.op.rpartition("::")[2]
            context.domain_version(rule.domain, rule.version)
            return self.pass_through(context, f"{rule.domain}::{rule.rename.get(name, name)}")
        for provider in self.registry.providers:
            if provider.fallback is not None:
                context._via = provider.name
                result = provider.fallback(context, node)
                if result is not None:
                    return list(result) if isinstance(result, list | tuple) else [result]
        return None

    def pass_through(self, context: GraphContext, op_type: str) -> list[Value]:
        """Emits the captured call as one node: tensors become inputs, constants attributes named by the schema."""
        inputs: list[Any] = []
        attributes: dict[str, Any] = {}
        for name, argument in context.arguments.items():
            if isinstance(argument, Value):
                inputs.append(argument)
            elif isinstance(argument, list) and any(isinstance(item, Value) for item in argument):
                inputs += [item if isinstance(item, Value) else context.constant(item) for item in argument]
            elif name not in _IGNORED_ARGUMENTS and argument is not None:
                attributes[name] = int(dtypes.to_onnx(argument)) if isinstance(argument, torch.dtype) else argument
        count = len(context.node.outputs)
        made: Value | tuple[Value, ...] = context.op(op_type, *inputs, outputs=count, **attributes)
        return [made] if isinstance(made, Value) else list(made)

    def _python_op(self, context: GraphContext) -> Sequence[Any] | None:
        """An ``autograd.Function``: its own ``symbolic``, else its traced body."""
        node = context.node
        symbolic = getattr(node.attributes["function"], "symbolic", None)
        if symbolic is not None:
            context._via = f"{node.attributes['function'].__qualname__}.symbolic"
            result = symbolic(context, *context.arguments.values())
            return list(result) if isinstance(result, list | tuple) else [result]
        if not node.blocks:
            return None
        body = node.blocks[0]
        for inner, outer in zip(body.inputs, node.input_values(), strict=False):
            self.env[inner] = self.value(outer)
        self.nodes(body.nodes)
        if any(output in self.tainted for output in body.outputs):
            return None
        return [self.value(output) for output in body.outputs]

    # Delegation

    def call(self, context: GraphContext, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Converts another operator on behalf of a symbolic function."""
        op, _, overload = name.partition(".")
        candidates = self.registry.candidates(op, overload, self.builder.opset)
        if not candidates:
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
        inner = GraphContext(self, self.builder, context.node, {}, candidates, delegated=start == 0 or context._delegated)
        declined: Exception | None = None
        for position in range(start, len(candidates)):
            inner._position = position
            candidate = candidates[position]
            signature, function = candidate.entry.signature, candidate.entry.function
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
                result = function(inner, **keywords)
            except _DECLINED as error:
                declined = declined or error
                continue
            if result is not None:
                return result
        raise declined or Unsupported(f"every version of {candidates[0].entry.name} declined")

    # Results

    def _bind(self, node: SourceNode, results: Sequence[Any]) -> None:
        if len(results) < len(node.outputs):
            raise SymbolicError(
                f"{node.qualified_name} has {len(node.outputs)} results, its symbolic function gave {len(results)}\n"
                f"  at {node.location}"
            )
        for output, result in zip(node.outputs, results, strict=False):
            if result is None:
                continue
            if not isinstance(result, Value):
                result = self._to_value(result)
            if result.is_number != output.type.is_number:
                result = Value(result.ir, elements=result.elements, is_number=output.type.is_number)
            self._reconcile(node, output.type, result)
            self.env[output] = result

    def _reconcile(self, node: SourceNode, captured: SourceType, value: Value) -> None:
        """Holds what was emitted against what PyTorch computed, and adds what only capture knows."""
        if captured.dtype is not None:
            if value.ir.dtype is None:
                value.ir.type = ir.TensorType(dtypes.to_onnx(captured.dtype))
            elif value.dtype != captured.dtype and not (captured.is_number or value.is_number):
                raise SymbolicError(
                    f"{node.qualified_name} gave {value.dtype}, PyTorch gives {captured.dtype}\n  at {node.location}\n"
                    "  this is a bug of the symbolic function; please report it with the model"
                )
        if captured.shape is None:
            return
        if value.ir.shape is None:
            value.ir.shape = ir.Shape([dim if isinstance(dim, int) else ir.SymbolicDim(None) for dim in captured.shape])
            name_unknown(value, self.builder)
            return
        if value.rank != captured.rank:
            raise SymbolicError(
                f"{node.qualified_name} gave rank {value.rank}, PyTorch gives {captured.rank}\n  at {node.location}\n"
                "  this is a bug of the symbolic function; please report it with the model"
            )
        dims = list(value.ir.shape.dims)
        for axis, (known, fact) in enumerate(zip(dims, captured.shape, strict=True)):
            if isinstance(fact, int) and not isinstance(known, int):
                dims[axis] = fact
            elif isinstance(fact, int) and known != fact:
                raise SymbolicError(
                    f"{node.qualified_name} gave shape {value.shape}, PyTorch gives {captured.shape}\n  at {node.location}\n"
                    "  this is a bug of the symbolic function; please report it with the model"
                )
        if dims != list(value.ir.shape.dims):
            value.ir.shape = ir.Shape(dims)

    # Failures

    def _fail(self, node: SourceNode, reasons: Sequence[str]) -> None:
        name = node.qualified_name
        if node.op == "prim::PythonOp":
            function = node.attributes["function"]
            name = f"autograd.Function {function.__module__}:{function.__qualname__}"
        places, known = self._failed.setdefault(name, ([], []))
        if str(node.location) not in places:
            places.append(str(node.location))
        known += [reason for reason in reasons if reason not in known]

    def _unsupported_error(self) -> UnsupportedOpError:
        ops = []
        for name, (places, reasons) in self._failed.items():
            op, _, overload = name.partition(".")
            later = (
                None if reasons or name.startswith("autograd") else self.registry.available_from(op, overload, self.builder.opset)
            )
            ops.append(UnsupportedOp(name, tuple(places), tuple(reasons), later, self._hint(name, bool(reasons or later))))
        return UnsupportedOpError(ops, self.builder.opset)

    def _hint(self, name: str, known: bool) -> str:
        if name.startswith("autograd.Function"):
            return "give the class a static method symbolic(g, ...), or a plugin a handler: @table.python_op(...)"
        if known:
            return ""
        namespace = name.partition("::")[0]
        close = self.registry.close_names(name.partition(".")[0])
        similar = f"similar: {', '.join(close)}; " if close else ""
        if namespace == "aten":
            return f"{similar}add it with a symbolic function in a plugin (@table.op({name!r}); see CONTRIBUTING.md)"
        if namespace in ("prim", "higher_order"):
            return "control flow is not converted yet: have the model do without, or export the part that comes before"
        plugin = f"look for a plugin (by convention exporter-plugin-{namespace})"
        return f"{similar}{plugin}, or add a symbolic function (@table.op({name!r}))"

    def _symbolic_error(self, node: SourceNode, candidate: Candidate, error: Exception) -> SymbolicError:
        kind = "" if isinstance(error, NodeError) else f"{type(error).__name__}: "
        return SymbolicError(
            f"converting {node.qualified_name} failed: {kind}{error}\n  at {node.location}\n"
            f"  by {candidate.provider}: {candidate.entry.function.__name__} at {candidate.entry.place}\n"
            "  this is a bug of the symbolic function, not of the model"
        )
