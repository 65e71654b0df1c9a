#!/usr/bin/env python3
"""Checks memory and CPU time of giant inputs against limits.

    giants.py --program build/tidepool [--events 10000000] [--snapshot-gb 5]

It writes an allocator log of --events events (RMM's CSV) and a memory snapshot of PyTorch of --snapshot-gb gigabytes
(a pickle, with the frames of each call), both from fixed seeds. It imports and processes them. A command fails if it takes
more memory or CPU time than LIMITS allows for its input, plus BASE_MB and one second. The last line is a JSON object: runs, findings, and
the resources of each command.
"""
import argparse
import json
import os
import pathlib
import pickle
import random
import struct
import subprocess
import sys
import tempfile

MB = 1_000_000
BASE_MB = 100  # resident memory of the program without any input
# For each command: bytes of resident memory for each byte of its input, and CPU seconds for each MB.
LIMITS = {"import log": (10, 0.3), "info log": (80, 2.0), "simulate log": (160, 8.0), "import snapshot": (6, 0.1)}


def write_log(path, events):
    """Writes allocations and frees of at most 4,000 live buffers. @return the size of the file in bytes"""
    draw = random.Random(1)
    live, address = [], 0
    with open(path, "w", buffering=1 << 20) as file:
        file.write("Thread,Time,Action,Pointer,Size,Stream\n")
        for event in range(events):
            second, micro = divmod(event, 1_000_000)
            time = f"{second // 3600 % 24:02}:{second // 60 % 60:02}:{second % 60:02}.{micro:06}"
            if live and (len(live) == 4000 or draw.random() < 0.5):
                at = draw.randrange(len(live))
                live[at], live[-1] = live[-1], live[at]
                pointer, size = live.pop()
                file.write(f"1,{time},free,{pointer:#x},{size},0x0\n")
            else:
                address, size = address + (1 << 20), 256 * draw.randint(1, 4096)
                live.append((address, size))
                file.write(f"1,{time},allocate,{address:#x},{size},0x0\n")
    return path.stat().st_size


def text(value):
    return b"\x8c" + bytes([len(value)]) + value.encode()


def whole(value):
    return b"\x8a\x08" + struct.pack("<q", value)


def entry(action, address, size, frames):
    return (b"}(" + text("action") + text(action) + text("addr") + whole(address) + text("size") + whole(size) + text("stream")
            + whole(0) + text("frames") + frames + b"u")


def write_snapshot(path, size):
    """Writes pairs of allocation and free in one segment, as torch.cuda.memory._snapshot() has them.
    @return the size of the file in bytes"""
    draw = random.Random(2)
    base, segment = 1 << 40, 1 << 30
    stacks = []
    for stack in range(64):
        frames = [{"filename": f"/job/model_{stack}.py", "line": line, "name": f"forward_{line}"} for line in range(10)]
        stacks.append(pickle.dumps(frames, protocol=3)[2:-1])  # without header and end; only the frames use the memo
    with open(path, "wb", buffering=1 << 20) as file:
        block = b"}(" + text("size") + whole(segment) + text("state") + text("inactive") + b"u"
        file.write(b"\x80\x04}(" + text("segments") + b"](}(" + text("address") + whole(base) + text("total_size")
                   + whole(segment) + text("segment_type") + text("large") + text("stream") + whole(0) + text("device")
                   + whole(0) + text("blocks") + b"](" + block + b"eue" + text("device_traces") + b"](](")
        file.write(entry("segment_alloc", base, segment, b"]"))
        while file.tell() < size:
            frames, bytes_ = draw.choice(stacks), 512 * draw.randint(4096, 100_000)
            for action in ("alloc", "free_requested", "free_completed"):
                file.write(entry(action, base, bytes_, frames))
        file.write(b"eeu.")
    return path.stat().st_size


class Measured:
    def __init__(self, program, folder):
        self.program, self.folder, self.findings, self.took = program, folder, [], []

    def run(self, name, read, *words):
        """Runs a command and compares its resources with the limits for its input."""
        size = (self.folder / read).stat().st_size
        process = subprocess.Popen([self.program, *words], cwd=self.folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        said = process.stderr.read().decode(errors="replace").strip()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds, memory = usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
        most_bytes, most_seconds = LIMITS[name]
        took = (f"{name}: {size / MB:,.0f} MB in {seconds:,.1f} s of CPU time and {memory / MB:,.0f} MB "
                f"({seconds / (size / MB):.3f} s and {memory / size:.2f} MB a MB; at most {most_seconds} and {most_bytes})")
        self.took.append(took)
        print(took, file=sys.stderr, flush=True)
        if process.returncode != 0:
            self.findings.append(f"{name}: exit code {process.returncode}: {said}")
        if memory > most_bytes * size + BASE_MB * MB:
            self.findings.append(f"{name}: takes {memory / size:.1f} bytes for each byte that it reads; expected {most_bytes}")
        if seconds > most_seconds * (size / MB) + 1:
            self.findings.append(f"{name}: takes {seconds / (size / MB):.3f} s for each MB; expected {most_seconds}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--snapshot-gb", type=float, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="giants-") as scratch:
        folder = pathlib.Path(scratch)
        measured = Measured(asked.program.resolve(), folder)
        write_log(folder / "log.csv", asked.events)
        measured.run("import log", "log.csv", "import", "log.csv", "--format", "rmm", "-o", "log.tide")
        measured.run("info log", "log.tide", "info", "log.tide")
        measured.run("simulate log", "log.tide", "simulate", "log.tide", "--first", "--json")
        (folder / "log.csv").unlink()
        write_snapshot(folder / "giant.pickle", asked.snapshot_gb * 1000 * MB)
        measured.run("import snapshot", "giant.pickle", "import", "giant.pickle", "-o", "giant.tide")
    print(json.dumps({"runs": len(measured.took), "findings": measured.findings, "took": measured.took}))
    return 1 if measured.findings else 0


if __name__ == "__main__":
    sys.exit(main())
