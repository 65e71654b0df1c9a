#!/usr/bin/env python3
"""Measures the host's time that recording and following a plan add to each operator of a job.

    PYTHON tests/recording/native_table.py [--program build/tidepool] [--rounds 6] [--mode]

Two jobs on the CPU, with the layers of a GPT and of ResNet-50 and narrow tensors, so that the host's part is large. Steps without
Tidepool, recorded steps, and steps under an empty plan and a plan at 0.6x alternate in random order. Prints the median CPU
time of a step, and what it is above that of a step alone, divided by the number of operators that a dispatch mode sees. "record" is
the step, "its log" the time behind it in which records are made. --mode: the same with a dispatch mode in place of the native core.
"""

import argparse
import contextlib
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "validator/live"), str(ROOT / "tracer/torch")]
LIMIT_S = 600  # of one command
LEARNING, STEPS = 4, 5  # steps in a row that are not measured, and that are


def gpt():
    """24 layers, 32 wide."""
    import torch
    import torch.nn.functional as F
    from torch import nn

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
            self.heads, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down, self.drop = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.Dropout(0.1)

        def forward(self, x):
            batch, length, width = x.shape
            heads = (part.view(batch, length, 2, width // 2).transpose(1, 2)
                     for part in self.heads(self.norms[0](x)).split(width, 2))
            attended = F.scaled_dot_product_attention(*heads, is_causal=True)
            x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
            return x + self.drop(self.down(F.gelu(self.up(self.norms[1](x)))))

    class Gpt(nn.Module):
        def __init__(self, words=64, width=32, length=32):
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
            self.blocks, self.norm = nn.Sequential(*(Block(width) for _ in range(24))), nn.LayerNorm(width)
            self.head = nn.Linear(width, words, bias=False)
            self.head.weight = self.words.weight

        def forward(self, tokens):
            return self.head(self.norm(self.blocks(self.words(tokens) + self.places(torch.arange(tokens.shape[1])))))

    model, text = Gpt(), torch.randint(0, 64, (8, 33))
    return model, lambda: F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())


def cnn():
    """The blocks of ResNet-50 with 1/32 of its channels."""
    import torch
    import torch.nn.functional as F
    from torch import nn

    def layer(inputs, outputs, size, stride=1):
        return [nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outputs)]

    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            half, relu = outputs // 2, nn.ReLU(inplace=True)
            self.body = nn.Sequential(*layer(inputs, half, 1), relu, *layer(half, half, 3, stride), relu, *layer(half, outputs, 1))
            self.short = nn.Sequential(*layer(inputs, outputs, 1, stride)) if inputs != outputs or stride > 1 else nn.Identity()

        def forward(self, x):
            return F.relu(self.body(x) + self.short(x), inplace=True)

    blocks, inputs = [*layer(3, 8, 3), nn.ReLU(inplace=True)], 8
    for outputs, count, stride in ((8, 3, 1), (16, 4, 2), (32, 6, 2), (64, 3, 2)):
        for index in range(count):
            blocks.append(Block(inputs, outputs, stride if index == 0 else 1))
            inputs = outputs
    model = nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    x, labels = torch.randn(8, 3, 32, 32), torch.randint(0, 10, (8,))
    return model, lambda: F.cross_entropy(model(x), labels)


class Bench:
    """A job, and the ways to run its steps."""

    def __init__(self, program, make, native):
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(0)
        self._program, self._native = program, native
        self._model, self._loss = make()
        self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=1e-3, foreach=True)
        for _ in range(3):
            self.step()
        self.ops = self._count()
        with tempfile.TemporaryDirectory() as folder:
            self._plans = self._planned(pathlib.Path(folder))

    def step(self):
        self._optimizer.zero_grad(set_to_none=True)
        self._loss().backward()
        self._optimizer.step()

    def _count(self):
        from torch.utils._python_dispatch import TorchDispatchMode

        class Count(TorchDispatchMode):
            seen = 0

            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                self.seen += 1
                return func(*args, **(kwargs or {}))

        with Count() as count:
            self.step()
        return count.seen

    @contextlib.contextmanager
    def _recorder(self, folder, times=None):
        from tidepool_torch import native
        from tidepool_torch.live_recorder import LiveRecorder
        from tidepool_torch.raw_file import RawFile
        from tidepool_torch.replay import NativeRecorder

        file = RawFile(str(folder))
        given = [self._model], [self._optimizer], file, times
        with (NativeRecorder(native.core(), *given) if self._native else LiveRecorder(*given)) as recorder:
            yield recorder
        file.close()

    def _planned(self, folder):
        from tidepool_live import LiveProgram
        from tidepool_torch.devices import find_device

        raw, trace, plan, made = folder / "raw", folder / "step.tide", folder / "step.plan", folder / "program.json"
        raw.mkdir()
        with self._recorder(raw, find_device("a100")) as recorder:
            self.step()
            recorder.iteration()
        self._run("import", raw, "-o", trace)
        plans = {}
        for name, policy in {"empty plan": ["none"], "plan of tide, 0.6x": ["tide", "--capacity", "0.6x"]}.items():
            self._run("simulate", trace, "--first", "--policy", *policy, "--overhead-limit", "none", "--plan-out", plan)
            self._run("run", "--plan", plan, "--trace", trace, "--program-out", made)
            plans[name] = LiveProgram.load(made)
        return plans

    def _run(self, *arguments):
        subprocess.run([self._program, *map(str, arguments)], check=True, timeout=LIMIT_S, capture_output=True)

    def ways(self):
        """What is measured -> a function that adds CPU times of steps to lists, by name."""
        return {"alone": self._alone, "record": self._recorded, **{name: self._under(name) for name in self._plans}}

    def _alone(self, times):
        for _ in range(STEPS):
            times["alone"].append(self._timed(self.step))

    def _recorded(self, times):
        with tempfile.TemporaryDirectory() as folder, self._recorder(folder) as recorder:
            for _ in range(STEPS):
                times["record"].append(self._timed(self.step))
                times["its log"].append(self._timed(recorder.iteration))

    def _under(self, name):
        def followed(times):
            from tidepool_live import follower_for
            from tidepool_live.device import HostDevice

            with follower_for(self._plans[name], [self._model], [self._optimizer], HostDevice()) as follower:
                for _ in range(LEARNING):
                    self.step()
                for _ in range(STEPS):
                    times[name].append(self._timed(self.step))
            report = follower.report.content()
            if report["iterations"] != LEARNING + STEPS or report["left_out"]:
                raise SystemExit(f"{name}: {report['iterations']} steps were as recorded, left out: {report['left_out']}")

        return followed

    @staticmethod
    def _timed(function):
        begin = time.process_time()
        function()
        return time.process_time() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--program", default=str(ROOT / "build/tidepool"))
    parser.add_argument("--rounds", type=int, default=6, help="how often each way is measured")
    parser.add_argument("--mode", action="store_true", help="with a dispatch mode in place of the native core")
    options = parser.parse_args()
    print("| job | operators a step | way | step, ms | of the step alone | + us an operator |\n|---|---|---|---|---|---|")
    for name, make in {"GPT": gpt, "CNN": cnn}.items():
        bench = Bench(options.program, make, not options.mode)
        ways, times = bench.ways(), {key: [] for key in ("alone", "record", "its log", *bench.ways())}
        for _ in range(options.rounds):
            for way in random.sample(list(ways.values()), len(ways)):
                way(times)
        medians = {way: statistics.median(each) for way, each in times.items()}
        for way, median in medians.items():
            above = median if way == "its log" else median - medians["alone"]
            ratio = "" if way == "its log" else f"{median / medians['alone']:.2f}"
            print(f"| {name} | {bench.ops:,} | {way} | {median * 1e3:.1f} | {ratio} | {above / bench.ops * 1e6:.1f} |", flush=True)


if __name__ == "__main__":
    main()
