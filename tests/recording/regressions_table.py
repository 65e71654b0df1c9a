#!/usr/bin/env python3
"""Plants regressions of memory in a training script, and checks that `diff` or `explain --growth` names the planted line.

Each regression is an edit of one script. The script and its edited form are recorded dry. The first line of `diff`, or of
`explain --growth` where the edit keeps something for ever, must name a line that the edit added or changed, or one that
makes the buffers that it is about. Then the script is recorded on other devices, with other times, which must give no
difference. Needs PyTorch for CUDA; no GPU.

    tests/recording/regressions_table.py [--program build/tidepool] [NAME...]
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

SCRIPT = '''\
import copy
import torch, torch.nn as nn, torch.nn.functional as F

torch.manual_seed(0)
dev = "cuda"


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.ln = nn.LayerNorm(d)
        self.fc1 = nn.Linear(d, 4 * d)
        self.fc2 = nn.Linear(4 * d, d)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        h = self.fc1(self.ln(x))
        h = F.gelu(h)
        return x + self.drop(self.fc2(h))


class Net(nn.Module):
    def __init__(self, d=256, n=4, v=5000):
        super().__init__()
        self.emb = nn.Embedding(v, d)
        self.blocks = nn.ModuleList(Block(d) for _ in range(n))
        self.head = nn.Linear(d, v)

    def forward(self, x):
        h = self.emb(x)
        for b in self.blocks:
            h = b(h)
        return self.head(h)


batch = 16
model = Net().to(dev)
teacher = copy.deepcopy(model)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
kept = []
for step in range(5):
    x = torch.randint(0, 5000, (batch, 128), device=dev)
    y = torch.randint(0, 5000, (batch, 128), device=dev)
    opt.zero_grad()
    logits = model(x)
    with torch.no_grad():
        target = teacher(x)
    loss = F.cross_entropy(logits.view(-1, 5000), y.view(-1))
    loss.backward()
    opt.step()
    print(loss.item())
'''
# By name: the edits (text, replacement), and parts of lines, one of which must be named.
DIFFERENCES = {
    "larger batch": ([("batch = 16", "batch = 24")], ["randint", "self.head(h)", "fc1(", "F.gelu", "cross_entropy"]),
    "lost no_grad": ([("    with torch.no_grad():\n        target", "    if True:\n        target")],
                     ["target =", "self.fc1(self.ln(x))", "F.gelu", "self.fc2(h)", "self.head(h)"]),
    "gradients set to zero": ([("opt.zero_grad()", "opt.zero_grad(set_to_none=False)")], ["zero_grad", "opt.step()"]),
    "moved zero_grad": ([("    opt.zero_grad()\n", ""), ("    opt.step()\n", "    opt.step()\n    opt.zero_grad()\n")],
                        ["opt.zero_grad()", "opt.step()", "y = torch.randint"]),
    "clone": ([("h = F.gelu(h)", "h = F.gelu(h.clone())")], ["F.gelu(h.clone())"]),
    "float64 loss": ([("y.view(-1))", "y.view(-1)) + logits.double().pow(2).mean() * 0")], ["logits.double()"]),
    "mask that lives longer": ([("        h = self.fc1(", "        self.mask = torch.ones(128, 128, 64, device=x.device)\n"
                                 "        h = self.fc1(")], ["self.mask ="]),
    "second optimizer": ([("kept = []", "second = torch.optim.AdamW(model.parameters(), lr=1e-3)\nkept = []"),
                          ("    opt.step()\n", "    opt.step()\n    second.step()\n")], ["second.step()"]),
    "no foreach": ([("lr=1e-3)", "lr=1e-3, foreach=False)")], ["opt.step()"]),
    "foreach of SGD": ([("torch.optim.AdamW(model.parameters(), lr=1e-3)",
                         "torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, foreach=True)")],
                       ["opt.step()", "torch.optim.SGD"]),
    "logits dropped": ([("    loss.backward()", "    del logits\n    loss.backward()")], ["self.head(h)", "loss.backward()"]),
    "relu": ([("F.gelu(h)", "F.relu(h)")], ["F.relu", "F.gelu"]),
    "two losses": ([("y.view(-1))", "y.view(-1)) + F.mse_loss(torch.softmax(logits, -1), torch.softmax(target, -1))")],
                   ["F.mse_loss"]),
    "no inplace activation": ([("h = F.gelu(h)", "h = h * torch.sigmoid(h)")], ["torch.sigmoid(h)"]),
    "wider head": ([("self.head = nn.Linear(d, v)", "self.head = nn.Sequential(nn.Linear(d, 4 * d), nn.Linear(4 * d, v))")],
                   ["self.head"]),
    "gradient norm": ([("    opt.step()", "    torch.stack([p.grad.float().pow(2) .sum() for p in model.parameters()]).sum()"
                       "\n    opt.step()")], ["p.grad"]),
    "attention scores": ([("        h = F.gelu(h)", "        h = F.gelu(h) + 0 * (h @ h.transpose(1, 2)).sum()")],
                         ["h @ h.transpose"]),
}
GROWTHS = {
    "kept loss": ([("    print(loss.item())", "    kept.append(loss)")], ["kept.append", "cross_entropy"]),
    "kept logits": ([("    print(loss.item())", "    kept.append(logits)")], ["kept.append", "self.head(h)"]),
    "cache that grows": ([("        return self.head(h)", "        cache.append(h.detach().clone())\n        return self.head(h)"),
                          ("batch = 16", "cache = []\nbatch = 16")], ["cache.append"]),
    "kept batches": ([("    print(loss.item())", "    kept.append((x, y))")], ["randint"]),
    "kept gradients": ([("    opt.step()", "    kept.append([p.grad.clone() for p in model.parameters()])\n    opt.step()")],
                       ["p.grad.clone()"]),
    "retained graph": ([("    print(loss.item())", "    kept.append(logits.sum())")],
                       ["kept.append", "self.head(h)", "F.gelu", "self.fc1", "self.fc2"]),
    "concatenated outputs": ([("    print(loss.item())", "    kept = torch.cat([kept, target]) if step else target")],
                             ["torch.cat"]),
}


def edited(edits):
    text = SCRIPT
    for before, after in edits:
        if before not in text:
            sys.exit(f"the script has no {before!r}")
        text = text.replace(before, after)
    return text


def record(program, folder, text, *options):
    """The trace of a script. Each is recorded in a folder of its own, under the same name."""
    folder.mkdir()
    (folder / "train.py").write_text(text)
    trace = folder / "run.tide"
    ran = subprocess.run([program, "record", "--dry", "--torch", *options, "-o", str(trace), "--", sys.executable, "train.py"],
                         cwd=folder, capture_output=True, text=True, timeout=600)
    if not trace.exists():
        sys.exit(f"{folder.name}: not recorded:\n{ran.stderr}")
    return trace


def first_line(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=600).stdout.split("\n", 1)[0]


def names(answer, text, parts, before=""):
    """Whether the answer names a line of the script that has one of the parts."""
    lines = {**dict(enumerate(before.splitlines(), 1)), **dict(enumerate(text.splitlines(), 1))}
    named = [lines.get(int(number), "") for number in re.findall(r"train\.py:(\d+)", answer)]
    return any(part in line for line in named for part in parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--program", default="build/tidepool")
    options = parser.parse_args()
    program = str(pathlib.Path(options.program).resolve())
    failed = 0

    def tell(name, right, answer):
        nonlocal failed
        failed += not right
        print(f"| {name} | {'yes' if right else 'NO'} | {answer} |", flush=True)

    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        base = record(program, folder / "base", SCRIPT)
        print("| planted | right line named | first line |\n|---|---|---|")
        for i, (name, (edits, parts)) in enumerate({**DIFFERENCES, **GROWTHS}.items()):
            if options.names and name not in options.names:
                continue
            text = edited(edits)
            if name in DIFFERENCES:
                answer = first_line(program, "diff", str(base), str(record(program, folder / f"variant{i}", text)))
            else:
                answer = first_line(program, "explain", "--growth", str(record(program, folder / f"variant{i}", text,
                                                                               "--iterations", "4")))
            tell(name, names(answer, text, parts, SCRIPT), answer.replace(str(folder), ""))
        if not options.names:
            devices = ("a100-80gb", "a100-40gb", "rtx-4090")  # with cuBLAS's workspaces of one size
            traces = [record(program, folder / device, SCRIPT, "--device", device, "--times", device) for device in devices]
            for device, other in zip(devices[1:], traces[1:]):
                answer = first_line(program, "diff", str(traces[0]), str(other))
                tell(f"nothing, {devices[0]} and {device}", answer.startswith("no difference"), answer)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
