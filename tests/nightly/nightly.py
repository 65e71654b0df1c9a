#!/usr/bin/env python3
"""Runs the tests that take hours, part by part, and writes a page of their results.

    tests/nightly.sh [PART...] [--minutes 20] [--points 200] [--kills 200] [--steps 200000] [--events 10000000]
                     [--snapshot-gb 5]

Parts run in the order in which they are named. If none is named, all parts run. `fuzz` stands for every fuzz target and
`fuzz:NAME` for one; `faults` and `faults:COMMAND` likewise. A part that has ended for this commit and these options is
not run again, so the same command continues after an interruption; `steps` and `samples` continue within the part. With
uncommitted changes, each part is run again.
Logs and results are in build-nightly/COMMIT.
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "nightly"))
import page  # noqa: E402

BUILD = "cmake --build build -j2 --target"


def fuzz_targets():
    return sorted(path.stem for path in (ROOT / "tests" / "fuzz").glob("*.cpp"))


class Part:
    """@param command  a line of bash, run in the root of the repository
    @param result   (log, exit code) -> (runs, findings: one line each, further remarks)
    @param limit    what the part leaves out because of an option"""

    def __init__(self, name, what, command, result, limit=""):
        self.name, self.what, self.command, self.result, self.limit = name, what, command, result, limit


def fuzz_result(log, code):
    counted = re.findall(r"stat::number_of_executed_units:\s+(\d+)", log) or re.findall(r"^#(\d+)", log, re.MULTILINE)
    saved = re.findall(r"Test unit written to (\S+)", log)
    return int(counted[-1]) if counted else 0, or_exit_code(saved, log, code), ""


def json_result(log, code):
    try:
        last = json.loads(log.strip().splitlines()[-1])
        findings = ["; ".join(map(str.strip, finding.splitlines())) for finding in last["findings"]]
        return last["runs"], or_exit_code(findings, log, code), "; ".join(last.get("took", []))
    except (IndexError, KeyError, TypeError, ValueError):
        return 0, [f"exit code {code}: {last_line(log)}"], ""


def sanitizers_result(log, code):
    counted = re.search(r"^\d+% tests passed, \d+ tests failed out of (\d+)$", log, re.MULTILINE)
    reports = re.findall(r"^(?:==\d+==)?((?:WARNING: ThreadSanitizer|ERROR: (?:Address|Leak)Sanitizer|.*runtime error): .*)$",
                         log, re.MULTILINE)
    failed = re.findall(r"^\s+\d+ - (.+ \([A-Za-z ]+\))$", log.partition("The following tests FAILED:")[2], re.MULTILINE)
    skipped = len(re.findall(r"^ *\d+/\d+ Test .*\*\*\*Skipped ", log, re.MULTILINE))
    return int((counted or [0, 0])[1]), or_exit_code(reports + failed, log, code), f"{skipped} skipped" if skipped else ""


def wheel_result(log, code):
    skipped = re.findall(r"skipped '(.*)'", log)
    return 0 if skipped else 1, or_exit_code([], log, code), "; ".join(skipped)


def or_exit_code(findings, log, code):
    """The findings; if there are none and the part has failed, its exit code."""
    return findings or ([f"exit code {code}: {last_line(log)}"] if code != 0 else [])


def last_line(log):
    lines = log.strip().splitlines()
    return lines[-1] if lines else "nothing was said"


def all_parts(asked, folder):
    """@param folder  for the results of a part's pieces, which the same command does not run again; None if not to keep them"""
    program, library = "--program build/tidepool", "--library build/libtidepool_faults.so"

    def in_pieces(name, options=""):
        kept = f" --kept {relative(folder / name)}" if folder else ""
        return (f"{BUILD} tidepool_nightly && "
                f"python3 tests/nightly/{name}.py --program build/tidepool_nightly{options}{kept}")

    tests = f"-R {shlex.quote(asked.tests)}" if asked.tests else ""
    selected = f"only tests {asked.tests}".replace("|", "/") if asked.tests else ""

    def sanitized(preset):
        return (f"(cmake --preset {preset} && cmake --build --preset {preset} -j2 --target tidepool_tests) && "
                f"ctest --test-dir build-{preset} --output-on-failure -j 2 {tests}".rstrip())

    parts = [Part(f"fuzz:{name}", "any bytes are read or refused", f"tests/fuzz/run.sh {name} {round(asked.minutes * 60)}",
                  fuzz_result) for name in fuzz_targets()]
    parts += [Part(f"faults:{name}", "every failing call is reported, and no file is half-written",
                   f"{BUILD} tidepool tidepool_faults && "
                   f"python3 tests/faults/faults.py {program} {library} --points {asked.points} {name}", json_result)
              for name in ("import", "record", "record-failed", "sweep", "merge", "report")]
    parts += [
        Part("kills", "a killed sweep continues to the same results",
             f"{BUILD} tidepool && python3 tests/nightly/kills.py {program} --kills {asked.kills}", json_result),
        Part("steps", "no bound above the optimum, no result below it, every plan executes",
             in_pieces("steps", f" --steps {asked.steps}"), json_result),
        Part("samples", "every plan of every sample executes", in_pieces("samples"), json_result),
        Part("live", "live PyTorch jobs under every policy's plans compute the same, in the plan's memory",
             f"{BUILD} tidepool && ${{TIDEPOOL_TORCH_PYTHON:-python3}} tests/nightly/live_plans.py {program}", json_result),
        Part("verdicts", "fit says of random jobs what their dry runs do",
             f"{BUILD} tidepool tidepool_dry && ${{TIDEPOOL_TORCH_PYTHON:-python3}} tests/nightly/verdicts.py {program}", json_result),
        Part("wheel", "the wheel of the Python package works where nothing else is",
             "python3 tests/nightly/wheel.py", wheel_result),
        Part("asan", "address and undefined behaviour sanitizers", sanitized("asan"), sanitizers_result, selected),
        Part("tsan", "thread sanitizer", sanitized("tsan"), sanitizers_result, selected),
        Part("giants", "memory and time of giant inputs",
             f"{BUILD} tidepool && python3 tests/nightly/giants.py {program} --events {asked.events} "
             f"--snapshot-gb {asked.snapshot_gb}", json_result),
    ]
    return parts


def chosen(parts, names):
    if not names:
        return parts
    found = []
    for name in names:
        matching = [part for part in parts if part.name == name or part.name.startswith(name + ":")]
        if not matching:
            raise SystemExit(f"no part named '{name}'; known: {', '.join(part.name for part in parts)}")
        found += matching
    return found


def relative(path):
    return os.path.relpath(path.resolve(), ROOT)


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], check=True, capture_output=True, text=True).stdout.strip()


def run(part, commit, folder):
    """Runs a part and writes its log. @return its row of the page"""
    log = folder / f"{part.name.replace(':', '-')}.log"
    begin = time.monotonic()
    with open(log, "w", buffering=1) as file:  # a line at a time: how far a part is can be read there
        process = subprocess.Popen(["bash", "-c", part.command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors="replace")
        for line in process.stdout:
            file.write(line)
        code = process.wait()
    runs, findings, said = part.result(log.read_text(errors="replace"), code)
    return {"part": part.name, "what": part.what, "command": part.command, "commit": commit,
            "minutes": (time.monotonic() - begin) / 60, "runs": runs, "findings": findings,
            "said": "; ".join(filter(None, [part.limit, said]))}


def main():
    parser = argparse.ArgumentParser(prog="tests/nightly.sh", description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--minutes", type=float, default=20, help="for each fuzz target")
    parser.add_argument("--points", type=int, default=200, help="calls of each kind that fail, for each command")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--tests", default="",
                        help="names of the tests that the sanitizers run, as a regular expression; all if not given")
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--snapshot-gb", type=float, default=5)
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "notebooks" / "guide" / "nightly.md")
    asked = parser.parse_args()
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", f":(exclude,top){relative(asked.page)}") != ""
    commit = git("rev-parse", "--short=7", "HEAD") + ("+" if changed else "")
    folder = ROOT / "build-nightly" / commit
    folder.mkdir(parents=True, exist_ok=True)
    parts = chosen(all_parts(asked, None if changed else folder), asked.parts)
    if not (ROOT / "build").exists():
        subprocess.run(["cmake", "--preset", "release"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    findings = 0
    for number, part in enumerate(parts, 1):
        kept = folder / f"{part.name.replace(':', '-')}.json"
        row = json.loads(kept.read_text()) if kept.exists() and not changed else None
        print(f"[{number}/{len(parts)}] {part.name}: ", end="", flush=True)
        if row is None or row["command"] != part.command:
            row = run(part, commit, folder)
            kept.write_text(json.dumps(row, indent=1) + "\n")
            page.put(asked.page, row)
        else:
            print("done before, ", end="")
        findings += len(row["findings"])
        print(f"{row['runs']:,} runs in {row['minutes']:.1f} min, {len(row['findings'])} findings", flush=True)
        for finding in row["findings"]:
            print(f"    {finding}", flush=True)
    return 1 if findings else 0


if __name__ == "__main__":
    os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=1")
    os.environ.setdefault("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1")
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on from there", file=sys.stderr)
        sys.exit(130)
