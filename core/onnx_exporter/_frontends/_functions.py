"""What every capture asks of a ``torch.autograd.Function``."""

from __future__ import annotations

import inspect

import torch


def forward_parameters(function: type[torch.autograd.Function], count: int) -> list[str]:
    """Returns a name for each of `count` arguments of ``apply``: those of the parameters of ``forward``, without ``ctx``."""
    parameters = list(inspect.signature(function.forward).parameters.values())
    if function.setup_context is torch.autograd.Function.setup_context:
        parameters = parameters[1:]
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [names[index] if index < len(names) else f"arg_{index}" for index in range(count)]
