"""Keeps a model's state as it was while its forward runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def unchanged_state(model: Any) -> Iterator[None]:
    """While active, the model may write to its buffers; at the end they are as before, in value and in place.

    The same goes for tensors that are plain attributes of a module. Parameters are not copied.

    Args:
        model: A module, one of its bound methods, or any other callable, which has no state to keep.
    """
    owner = getattr(model, "__self__", model)  # a bound method such as model.forward writes its module's buffers
    if not isinstance(owner, torch.nn.Module):
        yield
        return
    # Assigning to a buffer puts another tensor in its place. A ScriptModule gives no access to the place.
    modules = [module for module in owner.modules() if not isinstance(module, torch.jit.ScriptModule)]
    registered = [(module, dict(module._buffers), dict(module._parameters)) for module in modules]
    plain = [(module, vars(module), dict(vars(module))) for module in modules]
    tensors = {id(buffer): buffer for buffer in owner.buffers()}
    tensors |= {
        id(value): value for _, _, before in plain for value in before.values() if _is_tensor(value) and value.grad_fn is None
    }
    saved = [(tensor, tensor.detach().clone(), _version(tensor)) for tensor in tensors.values()]
    try:
        yield
    finally:
        for module, buffers, parameters in registered:
            _restore(module._buffers, buffers)
            _restore(module._parameters, parameters)
        for _, now, before in plain:
            _restore_tensors(now, before)
        for tensor, copy, version in saved:
            _write_back(tensor, copy, version)


def _restore(now: dict[str, Any], before: dict[str, Any]) -> None:
    if now != before if len(now) != len(before) else any(now.get(name) is not value for name, value in before.items()):
        now.clear()
        now.update(before)


def _restore_tensors(now: dict[str, Any], before: dict[str, Any]) -> None:
    """Takes back attributes that are a tensor now, or were one; all others stay as the model left them."""
    changed = [
        name
        for name in {**now, **before}
        if now.get(name) is not before.get(name) and _is_tensor(now.get(name), before.get(name))
    ]
    for name in changed:
        if name in before:
            now[name] = before[name]
        else:
            del now[name]


def _is_tensor(*values: Any) -> bool:
    return any(isinstance(value, torch.Tensor) for value in values)


def _version(tensor: torch.Tensor) -> int | None:
    return None if tensor.is_inference() else tensor._version


def _write_back(tensor: torch.Tensor, before: torch.Tensor, version: int | None) -> None:
    if tensor.is_meta:
        return
    if tensor.layout is not torch.strided:  # no comparison is defined for the others
        if _version(tensor) == version and version is not None:
            return
    elif tensor.shape == before.shape and _identical(tensor, before):
        return  # a buffer that is a view onto fewer elements cannot be written, so none is without need
    with torch.inference_mode():  # the only mode that writes both normal and inference tensors
        if tensor.shape != before.shape:
            tensor.resize_(before.shape)
        tensor.copy_(before)


def _identical(one: torch.Tensor, two: torch.Tensor) -> bool:
    if one.is_floating_point() and one.element_size() == 1:  # no comparison is defined for float8
        one, two = one.view(torch.uint8), two.view(torch.uint8)
    return torch.equal(one, two)


class ParameterWatch:
    """Tells which parameters were written since it was made; it keeps no copies."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._watched = [
            (name, parameter, _version(parameter), parameter.data_ptr())
            for name, parameter in model.named_parameters()
            if parameter.layout is torch.strided and not torch.nn.parameter.is_lazy(parameter)
        ]

    def written(self) -> list[str]:
        """Returns the names of the parameters that were written."""
        return [
            name
            for name, parameter, version, address in self._watched
            if (_version(parameter), parameter.data_ptr()) != (version, address)
        ]
