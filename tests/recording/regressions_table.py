#!/usr/bin/env python3
"""Plants 50 regressions of memory in 25 training scripts, and checks that `diff` or `explain --growth` names the planted line.

Each regression is an edit of a script (regressions_scripts.py). The script and its edited form are recorded dry. The first line
of `diff`, or of `explain --growth` where the edit keeps something for ever, must name a line that the edit added or changed, or
one that makes the buffers that it is about. Then come 50 pairs without a difference: each script recorded on another device with
other times, and each trace with other addresses and another order of frees that follow each other. Needs PyTorch for CUDA; no GPU.

    tests/recording/regressions_table.py [--program build/tidepool] [--jobs 2] [NAME...]
"""

import argparse
import concurrent.futures
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import regressions_scripts

# Devices with cuBLAS's workspaces of one size.
DEVICE, OTHER_DEVICES = "a100-80gb", ("a100-40gb", "rtx-4090")


class Recorder:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def record(self, name, text, *options):
        """The trace of a script. Each is recorded in a folder of its own, under the same name."""
        folder = self.folder / name
        folder.mkdir()
        (folder / "train.py").write_text(text)
        trace = folder / "run.tide"
        ran = subprocess.run([self.program, "record", "--dry", "--torch", *options, "-o", str(trace), "--", sys.executable,
                              "train.py"], cwd=folder, capture_output=True, text=True, timeout=600)
        if not trace.exists():
            raise RuntimeError(f"{name}: not recorded:\n{ran.stderr}")
        return trace

    def first_line(self, *arguments):
        ran = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True, timeout=600)
        return ran.stdout.split("\n", 1)[0].replace(str(self.folder), "") or ran.stderr

    def shuffled(self, trace, seed):
        """The trace with other addresses, and with frees that follow each other in another order."""
        drawn = random.Random(seed)
        text = trace.with_suffix(".jsonl")
        subprocess.run([self.program, "export", str(trace), "--to", "jsonl", "-o", str(text)], check=True, capture_output=True)
        lines, frees = [], []
        for line in text.read_text().splitlines():
            record = json.loads(line)
            if "free" in record:
                frees.append(line)
                continue
            lines += drawn.sample(frees, len(frees))
            frees = []
            if "address" in record:
                record["address"] = record["address"] // 2 + (drawn.randrange(1 << 20) << 21)
                line = json.dumps(record)
            lines.append(line)
        lines += drawn.sample(frees, len(frees))
        other = trace.with_name("shuffled.jsonl")
        other.write_text("\n".join(lines) + "\n")
        return other


def names(answer, text, parts, before):
    """Whether the answer names a line of a script that has one of the parts."""
    named = re.findall(r"train\.py:(\d+)", answer)
    lines = [script.splitlines()[int(number) - 1] for number in named for script in (text, before)
             if int(number) <= len(script.splitlines())]
    return any(part in line for line in lines for part in parts)


def rows_of(recorder, index, name, text, edits, wanted):
    """The rows of a script: what is planted, whether the answer is right, and the answer."""
    rows = []
    base = None
    if not wanted or any(not edit.grows and edit.name in wanted for edit in edits):
        base = recorder.record(f"base{index}", text, "--device", DEVICE)
    for i, edit in enumerate(edits):
        if wanted and edit.name not in wanted:
            continue
        changed = regressions_scripts.edited(text, edit)
        options = ("--iterations", "4") if edit.grows else ("--device", DEVICE)
        trace = recorder.record(f"variant{index}-{i}", changed, *options)
        answer = recorder.first_line(*(("explain", "--growth") if edit.grows else ("diff", base)), trace)
        right = names(answer, changed, edit.parts, text) if edit.lines else edit.parts[0] in answer
        rows.append((f"{edit.name} in {name}", right, answer))
    if not wanted:
        device = OTHER_DEVICES[index % len(OTHER_DEVICES)]
        other = recorder.record(f"other{index}", text, "--device", device, "--times", device)
        for what, pair in ((f"{DEVICE} and {device}", other), ("other addresses and order of frees", recorder.shuffled(base, index))):
            answer = recorder.first_line("diff", base, pair)
            rows.append((f"nothing ({what}) in {name}", answer.startswith("no difference"), answer))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="edits; all, and pairs without a difference, if there is none")
    parser.add_argument("--program", default="build/tidepool")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    right = total = 0
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        recorder = Recorder(str(pathlib.Path(options.program).resolve()), pathlib.Path(scratch))
        print("| planted | right | first line |\n|---|---|---|")
        tasks = [pool.submit(rows_of, recorder, index, name, text, edits, options.names)
                 for index, (name, text, edits) in enumerate(regressions_scripts.planted())]
        for task in tasks:
            for what, is_right, answer in task.result():
                right += is_right
                total += 1
                print(f"| {what} | {'yes' if is_right else 'NO'} | {answer} |", flush=True)
    print(f"{right} of {total} right")
    return 0 if right == total else 1


if __name__ == "__main__":
    sys.exit(main())
