"""Modules and objects of a scripted program: their attributes, and calls that TorchScript does not inline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnx_exporter._frontends._script_values import UNINITIALISED, Abstract, DictValue, Handler, ModuleValue

if TYPE_CHECKING:
    from onnx_exporter._frontends._script_interpreter import Interpreter

_WITHOUT_EFFECT = (
    "__torch__.torch.autograd.grad_mode.",
    "__torch__.torch.autograd.profiler.",
    "__torch__.torch.profiler.",
    "__torch__.torch.utils._contextlib.",
)
"""Where the contexts of ``with`` are defined that change no result."""

_TORCHBIND = "__torch__.torch.classes."


def _get_attr(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return interpreter.attribute(args[0], node.s("name"), node)


def _set_attr(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    owner, value = args
    if isinstance(owner, DictValue):
        owner.items[node.s("name")] = value
        return None
    if not isinstance(owner, ModuleValue):
        raise interpreter.refusal(node, "an attribute of a value that a branch or loop has chosen is set", "use tensors")
    path = f"{owner.path}.{node.s('name')}" if owner.path else node.s("name")
    interpreter.assigned[path] = (owner.scripted, node.s("name"))
    interpreter.attributes.items[path] = value
    return None


def _create_object(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """An object of a class that the program defines; its methods are inlined, so it is no more than its attributes."""
    name = _class_of(node.output())
    if name.startswith(_TORCHBIND):
        raise _refuse_class(interpreter, node, name)
    return interpreter.adopt(DictValue({}))


def _class_of(value: Any) -> str:
    """The name of the class of a TorchScript value."""
    kind = value.type()
    return str(kind.qualified_name() if kind.kind() == "ClassType" else kind)


def _refuse_class(interpreter: Interpreter, node: Any, name: str) -> Exception:
    what = f"an object of the custom C++ class {name.removeprefix(_TORCHBIND)}"
    return interpreter.refusal(node, what, "a file has no such objects: compute what it holds in Python before")


def _call_method(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """A method that TorchScript did not inline, since which one it is the object at hand decides."""
    name, owner = _class_of(node.inputsAt(0)), args[0]
    if name.startswith(_TORCHBIND):
        raise _refuse_class(interpreter, node, name)
    if not isinstance(owner, ModuleValue) or not hasattr(owner.scripted, "_get_method"):
        raise interpreter.refusal(node, f"the method {node.s('name')} of an object of {name}", "use a torch.nn.Module")
    return interpreter.run_graph(owner.scripted._get_method(node.s("name")).graph, args, node)


def _call_function(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    raise interpreter.refusal(node, "a call that cannot be inlined (a function that calls itself)", "write it as a loop")


def _fork(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """``torch.jit.fork``: what it computes is computed at once."""
    return interpreter.run_graph(node.g("Subgraph"), args, node)


def _wait(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return args[0]


def _enter(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """``with``, of a context that changes no result."""
    name = _class_of(node.inputsAt(0))
    if not name.startswith(_WITHOUT_EFFECT):
        raise interpreter.refusal(node.inputsAt(0).node(), f"a with block of {name}", "write the model without it")
    return args[0]


def _exit(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return None


def _python(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    what = f"a call of the Python function {node.pyname()}, which was not scripted (torch.jit.ignore or unused)"
    raise interpreter.refusal(node, what, "script it too, or export the part of the model that comes before")


def _uninitialised(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return UNINITIALISED


HANDLERS: dict[str, Handler] = {
    "prim::GetAttr": _get_attr,
    "prim::SetAttr": _set_attr,
    "prim::CreateObject": _create_object,
    "prim::CallFunction": _call_function,
    "prim::CallMethod": _call_method,
    "prim::fork": _fork,
    "aten::wait": _wait,
    "prim::Enter": _enter,
    "prim::Exit": _exit,
    "prim::PythonOp": _python,
    "prim::Uninitialized": _uninitialised,
}
