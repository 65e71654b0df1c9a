"""A long test in pieces: as many run at once as there are cores, and an interrupted test continues with the next piece."""
import concurrent.futures
import json
import os
import subprocess
import sys


class Piece:
    """@param name     also that of the file in which its result is kept
    @param command  its program and arguments
    @param result   what the command printed -> (runs, findings: one line each, other counts by name); None if the command
                    did not end"""

    def __init__(self, name, command, result, environment=None):
        self.name, self.command, self.result, self.environment = name, command, result, environment or {}

    def run(self):
        ran = subprocess.run(self.command, env={**os.environ, **self.environment}, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        runs, findings, counts = self.result(ran.stdout) or (0, [], {})
        if ran.returncode != 0 and not findings:
            said = ran.stdout.strip().splitlines() or ["nothing was said"]
            findings = [f"exit code {ran.returncode}: {said[-1]}"]
        return {"runs": runs, "findings": [f"{self.name}: {finding}" for finding in findings], "counts": counts}


def run_kept(piece, kept):
    """The result of a piece, from the folder `kept` if it is there. A result with findings is not kept: the piece may have
    been interrupted. `kept` may be None."""
    path = kept / f"{piece.name}.json" if kept else None
    if path and path.exists():
        return json.loads(path.read_text())
    found = piece.run()
    if path and not found["findings"]:
        new = path.with_suffix(".new")
        new.write_text(json.dumps(found) + "\n")
        new.replace(path)
    return found


def run_all(pieces, kept):
    """Runs the pieces. Prints their findings in the order of the pieces, and the sums in a JSON object at the end.
    @return the exit code"""
    if kept:
        kept.mkdir(parents=True, exist_ok=True)
    runs, findings, counts = 0, [], {}
    workers = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
    try:
        for number, found in enumerate(workers.map(lambda piece: run_kept(piece, kept), pieces), 1):
            runs, findings = runs + found["runs"], findings + found["findings"]
            for name, count in found["counts"].items():
                counts[name] = counts.get(name, 0) + count
            for finding in found["findings"]:
                print(finding, file=sys.stderr)
            print(f"{number} of {len(pieces)} pieces, {runs} runs, {len(findings)} findings", file=sys.stderr, flush=True)
    finally:
        workers.shutdown(cancel_futures=True)
    print(json.dumps({"runs": runs, "findings": findings, "took": [f"{count} {name}" for name, count in counts.items()]}))
    return 1 if findings else 0
