"""The same model traced and scripted: a trace keeps the branch that the example took, a script keeps both."""

import warnings

import torch

import onnx_exporter

warnings.filterwarnings("ignore", "`torch.jit.script` is deprecated", FutureWarning)


class SumOrMean(torch.nn.Module):
    """Adds a small input up, and averages a large one, as often as it is told."""

    def forward(self, x, rounds: int):
        for _ in range(rounds):
            if bool(x.sum() < 10):
                x = x + x.sum(0)
            else:
                x = x * 0.5
        return x


model = SumOrMean()
small, large = torch.ones(2, 3), torch.full((2, 3), 9.0)

traced = onnx_exporter.export(model, (small, 2), "traced.onnx")
print("traced:", sorted({node.op_type for node in traced.model.graph.all_nodes()}))
print("fixed by the trace:", *traced.baked, sep="\n  ")

scripted = onnx_exporter.export(
    torch.jit.script(model),
    (small, 2),
    "scripted.onnx",
    verify=True,
    verify_args=[(large, 2), (small, 5), (small, 0)],  # other branches, other numbers of rounds
)
print("scripted:", sorted({node.op_type for node in scripted.model.graph.all_nodes()}))
print(scripted.comparison)
