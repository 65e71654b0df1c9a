#!/usr/bin/env python3
"""Every plan of every sample, executed; one sample on each core.

    samples.py --program build/tidepool_nightly [--kept FOLDER]

With --kept, results of samples are kept in this folder, and the same command continues after an interruption. The last
line is a JSON object: runs (plans) and findings.
"""
import argparse
import pathlib
import re
import sys

import pieces

SAMPLES = pathlib.Path(__file__).resolve().parents[2] / "traces" / "samples"


def result(said):
    ended = re.search(r"^\S+: (\d+) plans$", said, re.MULTILINE)
    failed = re.search(r"^\S+: FAILED:$", said, re.MULTILINE)
    if failed:  # the lines with the run's name, and what was wrong
        return 0, ["; ".join(line.strip() for line in said[failed.start():].splitlines()[:12] if line.strip())], {}
    return (int(ended[1]), [], {}) if ended else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--kept", type=pathlib.Path)
    asked = parser.parse_args()
    # The largest first: none is left to run alone at the end.
    traces = sorted(SAMPLES.glob("*.tide"), key=lambda path: path.stat().st_size, reverse=True)
    return pieces.run_all([pieces.Piece(path.stem, [asked.program.resolve(), "every plan*", "-c", path.stem], result)
                           for path in traces], asked.kept)


if __name__ == "__main__":
    sys.exit(main())
