"""Export time and memory, side by side with bare tracing, a plain write and torch.onnx, in one run.

    python benchmarks/export_time.py [--repeat 5] [--model resnet50 ...] [--markdown docs/benchmarks.md]

Times are medians of CPU seconds of one thread (wall time beside them); memory is the peak resident size above
what the process had before, as a multiple of the weights. Needs torchvision, transformers and onnxscript.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from pages import write_table

THREADS = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
OPSET = 18
MODELS = ("resnet50", "vit_b_16", "bert-base", "gpt2-24-layers")
METHODS = ("capture", "plain write", "ours, one file", "ours, external data", "dynamo=False", "dynamo=True")


def make(name: str):
    """Returns the model and its example arguments."""
    import torch

    torch.manual_seed(0)
    if name in ("resnet50", "vit_b_16"):
        import torchvision

        return torchvision.models.get_model(name, weights=None).eval(), (torch.randn(1, 3, 224, 224),)
    import transformers

    ids = torch.randint(1, 1000, (1, 128))
    mask = torch.ones(1, 128, dtype=torch.int64)
    if name == "bert-base":
        model = transformers.BertModel(transformers.BertConfig())
        return _Encoder(model).eval(), (ids, mask)
    config = transformers.GPT2Config(n_embd=1024, n_layer=24, n_head=16)
    return _Decoder(transformers.GPT2LMHeadModel(config)).eval(), (ids, mask)


def _wrappers():
    import torch

    class Encoder(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, input_ids, attention_mask):
            return self.model(input_ids=input_ids, attention_mask=attention_mask, return_dict=False)

    class Decoder(Encoder):
        def forward(self, input_ids, attention_mask):
            return self.model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).logits

    return Encoder, Decoder


def method_of(name: str, model, args, folder: Path) -> Callable[[], object]:
    """Returns a function that does the work once."""
    import torch

    import onnx_exporter

    path = folder / "model.onnx"

    def capture():
        with torch.no_grad():
            return torch.jit.trace(model, args, check_trace=False, strict=False)

    def plain_write():
        with (folder / "plain.bin").open("wb") as stream:
            for tensor in model.state_dict().values():
                stream.write(memoryview(tensor.contiguous().numpy()).cast("B") if tensor.numel() else b"")

    def ours(external: bool):
        return onnx_exporter.export(model, args, path, opset_version=OPSET, external_data=external)

    def theirs(dynamo: bool):
        target = folder / ("dynamo.onnx" if dynamo else "script.onnx")
        options = (
            {"dynamo": dynamo, "opset_version": OPSET, "external_data": False}
            if dynamo
            else {"dynamo": False, "opset_version": OPSET}
        )
        with contextlib.redirect_stdout(io.StringIO()):
            return torch.onnx.export(model, args, target, verbose=False, **options)

    return {
        "capture": capture,
        "plain write": plain_write,
        "ours, one file": lambda: ours(False),
        "ours, external data": lambda: ours(True),
        "dynamo=False": lambda: theirs(False),
        "dynamo=True": lambda: theirs(True),
    }[name]


def child_times(model_name: str, repeat: int) -> dict[str, dict[str, float]]:
    """Every method in turn, `repeat` rounds, after one round that is not counted."""
    import torch

    torch.set_num_threads(1)
    model, args = make(model_name)
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in METHODS}
    # dynamo=True comes last: the millions of objects that it leaves behind slow all that follows
    others = [name for name in METHODS if name != "dynamo=True"]
    rounds = [(name, number) for number in range(repeat + 1) for name in others]
    rounds += [("dynamo=True", number) for number in range(min(repeat, 2) + 1)]
    with tempfile.TemporaryDirectory() as folder:
        for name, number in rounds:
            run = method_of(name, model, args, Path(folder))
            for old in Path(folder).iterdir():
                old.unlink()
            gc.collect()
            gc.freeze()  # what is there already is not looked at again while the clock runs
            cpu, wall = time.process_time(), time.perf_counter()
            run()
            if number:  # the first of each loads what it imports
                samples[name].append((time.process_time() - cpu, time.perf_counter() - wall))
    return {
        name: {"cpu": statistics.median(cpu for cpu, _ in rows), "wall": statistics.median(wall for _, wall in rows)}
        for name, rows in samples.items()
    }


def child_memory(model_name: str, method: str) -> dict[str, float]:
    """Peak resident size of one export above what was there before it, in bytes."""
    model, args = make(model_name)
    weights = sum(tensor.numel() * tensor.element_size() for tensor in {id(t): t for t in model.state_dict().values()}.values())
    small = _warm_up(method)
    del small
    gc.collect()
    with tempfile.TemporaryDirectory() as folder:
        run = method_of(method, model, args, Path(folder))
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak
        before = _status("VmRSS")
        run()
        peak = _status("VmHWM")
    return {"extra": peak - before, "weights": weights}


def _warm_up(method: str):
    """Loads what the method imports, so that it does not count."""
    import torch

    with tempfile.TemporaryDirectory() as folder:
        return method_of(
            method, torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()).eval(), (torch.randn(2, 4),), Path(folder)
        )()


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {field} in /proc/self/status")


def spawn(*arguments: str):
    """Runs a measurement in a process of its own and returns what it prints."""
    result = subprocess.run(
        [sys.executable, __file__, *arguments], capture_output=True, text=True, env={**os.environ, **THREADS}, check=False
    )
    if result.returncode:
        sys.exit(result.stderr)
    return json.loads(result.stdout.splitlines()[-1])


def measure(model_name: str, repeat: int) -> list[str]:
    """Returns the rows of one model in Markdown."""
    times = spawn("--child", "times", "--model", model_name, "--repeat", str(repeat))
    base = times["capture"]["cpu"] + times["plain write"]["cpu"]
    rows = []
    for name in METHODS:
        row = times[name]
        if name == "plain write":
            memory = ""
        else:
            used = spawn("--child", "memory", "--model", model_name, "--method", name)
            memory = f"{used['extra'] / used['weights']:.2f}"
        rows.append(f"| {model_name} | {name} | {row['cpu']:.2f} | {row['wall']:.2f} | {row['cpu'] / base:.2f} | {memory} |")
        print(rows[-1], flush=True)
    ours, external = times["ours, one file"]["cpu"], times["ours, external data"]["cpu"]
    rows.append(
        f"| {model_name} | **ratios** | dynamo=False / ours: {times['dynamo=False']['cpu'] / ours:.1f} (one file), "
        f"{times['dynamo=False']['cpu'] / external:.1f} (external); "
        f"dynamo=True / ours: {times['dynamo=True']['cpu'] / ours:.1f} | | | |"
    )
    print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", nargs="*", default=MODELS, choices=MODELS)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--markdown", type=Path, help="File whose table between the markers is replaced.")
    parser.add_argument("--child", choices=["times", "memory"])
    parser.add_argument("--method", choices=METHODS)
    options = parser.parse_args()
    if options.child:
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        global _Encoder, _Decoder
        _Encoder, _Decoder = _wrappers()
        (model_name,) = options.model
        print(
            json.dumps(
                child_times(model_name, options.repeat) if options.child == "times" else child_memory(model_name, options.method)
            )
        )
        return
    header = [
        f"{os.cpu_count()} cores, one thread used; opset {OPSET}; median of {options.repeat} runs.",
        "",
        "| model | method | CPU s | wall s | CPU / (capture + plain write) | peak extra memory / weights |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    print("\n".join(header))
    rows: list[str] = []
    for name in options.model:
        rows += measure(name, options.repeat)
        if options.markdown:
            write_table(options.markdown, "export_time", [*header, *rows])


if __name__ == "__main__":
    main()
