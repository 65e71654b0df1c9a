#!/usr/bin/env python3
"""Prints what each command costs on steps of growing length: CPU seconds and peak memory.

    tests/sizes/sizes_table.py [--program build/tidepool] [--ops 10000,100000] [--limit 150] [--commands NAME,...]

The step is a chain: one op forward, one backward and one update in place for each of ops / 3 layers. Sizes of buffers and
times of ops vary. A command that takes more than --limit CPU seconds, or 8 GiB, is ended; its cell begins with ">".
"""

import argparse
import json
import os
import pathlib
import random
import resource
import subprocess
import sys
import tempfile

# {step}: the chain; {other}: the same, with larger buffers of one layer; {out}: a file without an extension.
COMMANDS = {
    "info": "info {step}",
    "explain": "explain {step}",
    "fit": "fit {step} --device h200",
    "simulate, none": "simulate {step} --policy none",
    "simulate, best-fit": "simulate {step} --pool best-fit",
    "simulate, tide-pool": "simulate {step} --pool tide-pool",
    "simulate, lru-swap": "simulate {step} --policy lru-swap --capacity 0.8x",
    "simulate, dtr-eq": "simulate {step} --policy dtr-eq --capacity 0.8x",
    "simulate, capuchin": "simulate {step} --policy capuchin --capacity 0.8x",
    "bound": "bound {step} --capacity 0.8x",
    "advise": "advise {step} --capacity 0.8x",
    "report": "report {step} -o {out}.html",
    "simulate --view": "simulate --view {step}",
    "order": "order {step} -o {out}.tide",
    "pack": "pack {step}",
    "diff": "diff {step} {other}",
}
GIB = 1 << 30


def chain(ops, large=None):
    """The lines of a step of `ops` ops; the output and the gradient of layer `large` are four times as large."""
    layers = ops // 3
    drawn = random.Random(1)
    sizes = [drawn.randint(1, 8) << 20 for _ in range(layers + 1)]
    times = [drawn.randint(10, 80) * 1000 for _ in range(layers)]
    if large is not None:
        sizes[large] *= 4
    parameter, weight_gradient = (lambda i: i), (lambda i: 3 * layers + 2 + i)
    activation, gradient = (lambda i: layers + i), (lambda i: 2 * layers + 1 + i)

    def run(name, phase, layer, nanos, uses):
        return {"run": name, "phase": phase, "module": f"blocks.{layer // 8}.fc{layer % 8}", "line": f"model.py:{10 + layer % 50}",
                "duration_ns": nanos, "uses": [[buffer, access, "schema"] for buffer, access in uses]}

    yield {"tidepool": 1, "meta": {"source": "chain"}, "streams": ["0"]}
    for i in range(layers):
        yield {"buffer": parameter(i), "born_before": True, "size_bytes": sizes[i] // 8, "kind": "parameter"}
    yield {"buffer": activation(0), "born_before": True, "size_bytes": sizes[0], "kind": "input"}
    for i in range(layers):
        yield {"alloc": activation(i + 1), "size_bytes": sizes[i + 1], "kind": "activation"}
        yield run("aten::linear", "forward", i, times[i],
                  [(activation(i), "read"), (parameter(i), "read"), (activation(i + 1), "write")])
    yield {"alloc": gradient(layers), "size_bytes": sizes[layers]}
    yield run("aten::loss", "forward", layers - 1, 10_000, [(activation(layers), "read"), (gradient(layers), "write")])
    for i in reversed(range(layers)):
        yield {"alloc": gradient(i), "size_bytes": sizes[i]}
        yield {"alloc": weight_gradient(i), "size_bytes": sizes[i] // 8, "kind": "gradient"}
        yield run("aten::linear_backward", "backward", i, 2 * times[i],
                  [(gradient(i + 1), "read"), (activation(i), "read"), (parameter(i), "read"), (gradient(i), "write"),
                   (weight_gradient(i), "write")])
        yield {"free": gradient(i + 1)}
        yield {"free": activation(i + 1)}
    yield {"free": gradient(0)}
    for i in range(layers):
        yield run("aten::add_", "optimizer", i, times[i] // 8, [(weight_gradient(i), "read"), (parameter(i), "read_write")])
        yield {"free": weight_gradient(i)}


def make_step(program, folder, name, lines):
    """The path of a .tide file with these lines."""
    text, step = folder / f"{name}.jsonl", folder / f"{name}.tide"
    with open(text, "w") as out:
        out.writelines(json.dumps(line) + "\n" for line in lines)
    subprocess.run([program, "import", text, "-o", step], check=True, stdout=subprocess.DEVNULL)
    text.unlink()
    return step


def measure(arguments, limit, log):
    """CPU seconds, bytes and how the command ended: its exit code, or None if it was ended."""
    def bounded():
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        resource.setrlimit(resource.RLIMIT_AS, (8 * GIB, 8 * GIB))

    with open(log, "w") as out:
        child = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=out, preexec_fn=bounded)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = 0
    code = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, None if code < 0 else code


def cell(seconds, size, code):
    ended = "" if code in (0, 1) else "> " if code is None else f"exit {code}: "
    digits = 2 if seconds < 1 else 1 if seconds < 10 else 0
    return f"{ended}{seconds:.{digits}f} s, {size / (1 << 20):,.0f} MiB"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/tidepool")
    parser.add_argument("--ops", default="10000,100000", metavar="N,...")
    parser.add_argument("--limit", type=int, default=150, metavar="SECONDS")
    parser.add_argument("--commands", default=";".join(COMMANDS), metavar="NAME;...")
    parser.add_argument("--keep", metavar="FOLDER", help="keep what the commands print, there")
    options = parser.parse_args()
    sizes = [int(text) for text in options.ops.split(",")]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(options.keep or scratch)
        folder.mkdir(exist_ok=True, parents=True)
        steps = {ops: (make_step(options.program, folder, f"chain{ops}", chain(ops)),
                       make_step(options.program, folder, f"other{ops}", chain(ops, ops // 6))) for ops in sizes}
        print(f"| command | {' | '.join(f'{ops:,} ops' for ops in sizes)} |")
        print(f"|---|{'---|' * len(sizes)}", flush=True)
        for name in options.commands.split(";"):
            cells = []
            for ops in sizes:
                step, other = steps[ops]
                out = folder / f"{name.replace(', ', '-')}{ops}"
                words = [word.format(step=step, other=other, out=out) for word in COMMANDS[name].split()]
                cells.append(cell(*measure([options.program, *words], options.limit, f"{out}.log")))
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
