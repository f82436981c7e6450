"""A model for the plugin. The operators stand here as acme's own library would define them."""

from typing import Any

import torch

operators = torch.library.Library("acme", "DEF")
operators.define("erf_gate(Tensor x, float slope=1.0) -> Tensor")
operators.impl("erf_gate", lambda x, slope=1.0: x * torch.erf(slope * x), "CompositeExplicitAutograd")

accelerator = torch.library.Library("acme_npu", "DEF")
accelerator.define("frob(Tensor x, Tensor y, int[] taps, float gain=1.0) -> Tensor")
accelerator.impl("frob", lambda x, y, taps, gain=1.0: (x + y) * gain, "CompositeExplicitAutograd")


class AcmeClip(torch.autograd.Function):
    """A function that PyTorch has no operator for."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, low: float) -> torch.Tensor:
        """What it computes."""
        return x.clamp(min=low)


class Model(torch.nn.Module):
    """Uses everything that the plugin converts."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """A gate, a clip and the accelerator's operator."""
        gated = torch.ops.acme.erf_gate(x, 0.5)
        clipped = AcmeClip.apply(gated, 0.1)
        return torch.ops.acme_npu.frob(clipped, x, [1, 2], 2.0)
