#!/usr/bin/env python3
"""The contract of tiny steps, for ranges of a thousand seeds on all cores. A fifth of the steps have several streams.

    steps.py --program build/tidepool_nightly [--steps 200000] [--kept FOLDER]

With --kept, results of ranges are kept in this folder, and the same command continues after an interruption. The last
line is a JSON object: runs, findings and remarks.
"""
import argparse
import pathlib
import re
import sys

import pieces

RANGE = 1000
ONE, SEVERAL = "on many tiny steps no bound*", "on many tiny steps of several streams*"


def result(said):
    ended = re.search(r"^tiny steps.* (\d+) to (\d+): (\d+) solved, \d+ findings$", said, re.MULTILINE)
    if not ended:
        return None
    return (int(ended[2]) - int(ended[1]) + 1, re.findall(r"^seed \d+: .*$", said, re.MULTILINE),
            {"solved exactly": int(ended[3])})


def ranges(program, steps):
    """The pieces. Those of several streams are spread evenly, so that the first pieces tell how long all will take."""
    left = {ONE: [1, steps - steps // 5], SEVERAL: [1, steps // 5]}
    found = []
    while any(count for _, count in left.values()):
        for test in (ONE, ONE, ONE, ONE, SEVERAL):
            first, count = left[test]
            size = min(RANGE, count)
            left[test] = [first + size, count - size]
            if size:
                found.append(pieces.Piece(f"{'streams' if test == SEVERAL else 'one-stream'}-{first}-{size}", [program, test],
                                          result, {"TIDEPOOL_TINY_FIRST": str(first), "TIDEPOOL_TINY_STEPS": str(size)}))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--kept", type=pathlib.Path)
    asked = parser.parse_args()
    return pieces.run_all(ranges(asked.program.resolve(), asked.steps), asked.kept)


if __name__ == "__main__":
    sys.exit(main())
