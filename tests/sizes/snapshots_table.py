#!/usr/bin/env python3
"""Prints what a page of a large memory snapshot costs: seconds and memory of `report`, and size and opening of the page.

    tests/sizes/snapshots_table.py [--program build/tidepool] [--events 100000,1000000,10000000] [--keep FOLDER]

A snapshot is a pickle as torch.cuda.memory._dump_snapshot writes it: 200 steps of allocations and frees, each event a
dict with a list of 24 frames that events share, about 200 B. Needs numpy; the last column is the time from navigation
to the first drawn view in a headless Chromium, if one is installed.
"""

import argparse
import os
import pathlib
import pickle
import resource
import struct
import subprocess
import sys
import tempfile
import time

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "browser"))
import chromium  # noqa: E402

FRAMES = 24
STEPS = 200


def memoized(texts, start):
    """Opcodes that put texts into the memo from `start` on, and leave nothing on the stack."""
    return b"".join(b"\x8c" + bytes([len(text)]) + text.encode() + b"\x940" for text in texts), \
        {text: b"j" + struct.pack("<I", start + i) for i, text in enumerate(texts)}


def write_snapshot(path, events):
    """Layers allocate activations in a step, the last ones are freed first; every step is alike."""
    keys = ["action", "alloc", "free_requested", "free_completed", "addr", "size", "stream", "time_us", "frames", "filename",
            "line", "name"]
    out = open(path, "wb")
    out.write(b"\x80\x04")
    texts, get = memoized(keys, 0)
    out.write(texts)
    memo = len(keys)
    frames = []
    for i in range(400):
        file = f"/usr/lib/python3.11/site-packages/torch/nn/module{i}.py" if i % 8 else f"/home/ada/net/layer{i // 8}.py"
        out.write(b"}" + b"\x94" + b"(" + get["filename"] + b"\x8c" + bytes([len(file)]) + file.encode() + get["line"] + b"K" +
                  bytes([i % 200 + 1]) + get["name"] + b"\x8c\x07forward" + b"u0")
        frames.append(memo)
        memo += 1
    out.write(b"}(\x8c\x08segments]\x8c\x0ddevice_traces](](")

    def event(action):
        """One event with zeros for address, size, time and frames, and where these are."""
        head = b"}\x94(" + get["action"] + get[action] + get["addr"] + b"\x8a\x08"
        at_address = len(head)
        head += bytes(8) + get["size"] + b"J"
        at_size = len(head)
        head += bytes(4) + get["stream"] + b"K\x00" + get["time_us"] + b"\x8a\x08"
        at_time = len(head)
        head += bytes(8) + get["frames"] + b"]\x94("
        at_frames = len(head)
        return head + b"j\0\0\0\0" * FRAMES + b"eu", at_address, at_size, at_time, at_frames

    # In a step, `layers` allocations, and then their frees, of which each is two events.
    layers = max(1, events // STEPS // 3)
    written = 0
    for step in range(STEPS):
        for action, order in (("alloc", range(layers)), ("free_requested", None), ("free_completed", None)):
            template, at_address, at_size, at_time, at_frames = event(action)
            block = numpy.tile(numpy.frombuffer(template, numpy.uint8), (layers, 1))
            layer = numpy.arange(layers, dtype=numpy.int64)
            if order is None:
                layer = layer[::-1].copy()

            def put(at, values):
                block[:, at:at + values.dtype.itemsize] = values.view(numpy.uint8).reshape(layers, -1)

            put(at_address, 0x7F0000000000 + layer * (1 << 21))
            put(at_size, ((layer % 1000 + 1) * 2048).astype(numpy.int32))
            put(at_time, 1_700_000_000_000_000 + step * 100_000 + numpy.arange(layers, dtype=numpy.int64))
            for i in range(FRAMES):
                put(at_frames + 5 * i + 1, (frames[0] + (layer % 50) * 8 + i % 8).astype(numpy.uint32))
            for first in range(0, layers, 1000):  # Python adds elements to a list a thousand at a time
                out.write(block[first:first + 1000].tobytes() + b"e(")
            written += layers
    out.write(b"eeu.")
    out.close()
    return written


def measured(command):
    """Seconds and peak bytes of a command."""
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    error = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(command)}: exit code {os.waitstatus_to_exitcode(status)}: {error}")
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def opening(page):
    """How long Chromium takes until the page's first view is drawn, as a text."""
    if not chromium.find():
        return "no Chromium"
    with chromium.Page() as browser:
        seconds = browser.open(str(page))
        if browser.errors:
            sys.exit(f"{page}: {browser.errors[0]}")
        return f"{seconds:.1f} s"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/tidepool")
    parser.add_argument("--events", default="100000,1000000,10000000")
    parser.add_argument("--keep", help="a folder for the snapshots, which stay there")
    options = parser.parse_args()
    program = str(pathlib.Path(options.program).resolve())
    print("| events | pickle | seconds | CPU seconds | memory | of the file | B / event | page | opens in |\n|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(options.keep or scratch)
        for count in map(int, options.events.split(",")):
            snapshot, page = folder / f"snapshot{count}.pickle", pathlib.Path(scratch) / "page.html"
            events = count // STEPS // 3 * 3 * STEPS if snapshot.exists() else write_snapshot(snapshot, count)
            if count == 100000:
                pickle.loads(snapshot.read_bytes())  # Python reads it too
            size = snapshot.stat().st_size
            seconds, cpu, memory = measured([program, "report", str(snapshot), "-o", str(page)])
            print(f"| {events:,} | {size / 1e6:,.0f} MB | {seconds:.1f} | {cpu:.1f} | {memory / 1e6:,.0f} MB | {memory / size:.2f}x | "
                  f"{memory / events:.0f} | {page.stat().st_size / 1e6:.2f} MB | {opening(page)} |", flush=True)
            if not options.keep:
                snapshot.unlink()


if __name__ == "__main__":
    sys.exit(main())
