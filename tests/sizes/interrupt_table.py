#!/usr/bin/env python3
"""Interrupts long commands with Ctrl-C after some seconds, and checks how they end.

    tests/sizes/interrupt_table.py [--program build/tidepool] [--ops 300000] [--after 1,5,20] [--commands NAME;...]

A command must end within 2 s with exit code 130, print what it knows or a word that it knows nothing, and leave no file:
neither its output nor an unfinished one. A command that ends before it is interrupted is not checked. Prints a row for
each command, and exits with 1 if one of them did not end so.
"""

import argparse
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from sizes_table import COMMANDS, chain, make_step

PATIENCE = 2.0  # seconds
MORE = {
    "sweep": "sweep {step} --policy none,lru-swap,dtr-eq --capacity 0.5x..1.0x/200 --no-plot -j 1",
    "simulate, tide": "simulate {step} --policy tide --capacity 0.8x",
    "pack, tide-pool": "pack {step} --pool tide-pool --time-limit 60s",
    "bound, long": "bound {step} --capacity 0.8x --time-limit 60s",
}


def interrupt(arguments, after, folder):
    """How the command ended: "" as it must, "ended before", or what is wrong; and the seconds that it took to end."""
    before = set(folder.iterdir())
    with open(folder / "said.log", "w+") as said:
        before.add(folder / "said.log")
        child = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True)
        try:
            child.wait(after)
            return "ended before", 0.0
        except subprocess.TimeoutExpired:
            begin = time.monotonic()
            child.send_signal(signal.SIGINT)
        try:
            child.wait(10 * PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        took = time.monotonic() - begin
        said.seek(0)
        text = said.read()
    left = sorted(path.name for path in set(folder.iterdir()) - before)
    wrong = [f"took {took:.1f} s"] if took > PATIENCE else []
    wrong += [f"exit code {child.returncode}"] if child.returncode != 130 else []
    wrong += ["no word"] if not text.strip() else []
    wrong += [f"left {', '.join(left)}"] if left else []
    time.sleep(0.5)  # until what it started has ended too
    states = subprocess.run(["ps", "-s", str(child.pid), "-o", "stat="], capture_output=True, text=True).stdout.split()
    if any(not state.startswith("Z") for state in states):  # Z: ended
        os.killpg(child.pid, signal.SIGKILL)
        wrong.append("left a process")
    return ", ".join(wrong), took


def main():
    commands = COMMANDS | MORE
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/tidepool")
    parser.add_argument("--ops", type=int, default=300_000)
    parser.add_argument("--after", default="1,5,20", metavar="SECONDS,...")
    parser.add_argument("--commands", default=";".join(commands), metavar="NAME;...")
    options = parser.parse_args()
    all_well = True
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        step = make_step(options.program, folder, "step", chain(options.ops))
        other = make_step(options.program, folder, "other", chain(options.ops, options.ops // 6))
        times = options.after.split(",")
        print(f"| command | {' | '.join(f'after {seconds} s' for seconds in times)} |\n|---|{'---|' * len(times)}", flush=True)
        for name in options.commands.split(";"):
            words = [word.format(step=step, other=other, out=folder / "out") for word in commands[name].split()]
            cells = []
            for seconds in times:
                wrong, took = interrupt([options.program, *words], float(seconds), folder)
                cells.append(wrong or f"{took:.2f} s")
                all_well = all_well and wrong in ("", "ended before")
                if wrong == "ended before":
                    break
            print(f"| {name} | {' | '.join(cells + [''] * (len(times) - len(cells)))} |", flush=True)
    return 0 if all_well else 1


if __name__ == "__main__":
    sys.exit(main())
