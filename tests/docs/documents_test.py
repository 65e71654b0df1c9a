#!/usr/bin/env python3
"""Checks the documents: every link has a target, and every command succeeds.

Commands are the lines of ```sh blocks. The commands of one document run one after the other, in a separate folder with
the repository's traces/, notebooks/, tracer/ and tests/, and with the built program as `tidepool`. A block that cannot run here has a
comment above it that says why: <!-- not run: needs a GPU -->. With --package, ```python blocks run as well, all of a
document in one interpreter, in that folder.

    documents_test.py --program build/tidepool [--package build/python] links|commands [DOCUMENT...]
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(```+)\s*(\w*)\s*$")
LINK = re.compile(r"(?<!!)\[[^\]\n]+\]\(([^)\s]+)\)")
NOT_RUN = re.compile(r"^<!-- not run: (.+) -->$")
SECONDS_PER_BLOCK = 900


def documents():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
                            capture_output=True, text=True)
    if listed.returncode == 0:
        return sorted(ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).exists())
    return sorted(path for path in ROOT.rglob("*.md") if not path.relative_to(ROOT).parts[0].startswith("build"))


def blocks(path):
    """The fenced blocks of a document: (line number, language, lines, why it is not run or None)."""
    inside, reason, found = None, None, []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        fence = FENCE.match(line.strip())
        if inside is None:
            said = NOT_RUN.match(line.strip())
            if said:
                reason = said[1]
            elif fence:
                inside = (number, fence[2], [], reason, fence[1])
                reason = None
            elif line.strip():
                reason = None
        elif line.strip() == inside[4]:
            found.append(inside[:4])
            inside = None
        else:
            inside[2].append(line)
    if inside is not None:
        raise SystemExit(f"{path}:{inside[0]}: a block that does not end; expected {inside[4]}")
    return found


def without_blocks(path):
    keep, fence = [], None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        found = FENCE.match(line.strip())
        if fence is None and found:
            fence = found[1]
        elif fence is not None:
            fence = None if line.strip() == fence else fence
        else:
            keep.append((number, line))
    return keep


def anchors(path):
    """The anchors of headings, as code hosts and site generators name them."""
    names = set()
    for _, line in without_blocks(path):
        heading = re.match(r"^#+\s+(.*)$", line)
        if heading:
            text = re.sub(r"[^\w\- ]", "", heading[1].lower())
            names.add(text.strip().replace(" ", "-"))
    return names


def broken_links(paths):
    broken = []
    for path in paths:
        for number, line in without_blocks(path):
            for target in LINK.findall(line):
                if re.match(r"^[a-z]+:", target):
                    continue
                file, _, anchor = target.partition("#")
                leads_to = (path.parent / file).resolve() if file else path
                if not leads_to.exists():
                    broken.append(f"{path.relative_to(ROOT)}:{number}: link to {target}; no such file")
                elif anchor and leads_to.suffix == ".md" and anchor not in anchors(leads_to):
                    broken.append(f"{path.relative_to(ROOT)}:{number}: link to {target}; no such heading")
    return broken


def to_run(path, package):
    """(line number, command) for each ```sh block and, if there is the package, one for all ```python blocks."""
    runnable = [block for block in blocks(path) if block[3] is None]
    commands = [(number, ["bash", "-euo", "pipefail", "-c", "\n".join(lines)])
                for number, language, lines, _ in runnable if language == "sh"]
    python = [(number, "\n".join(lines)) for number, language, lines, _ in runnable if language == "python"]
    if python and package is not None:
        commands.append((python[0][0], [sys.executable, "-c", "\n".join(text for _, text in python)]))
    return commands


def failing_commands(path, program, package):
    """Runs the document's commands up to the first block that fails. @return a list with a message about that block, or []"""
    commands = to_run(path, package)
    if not commands:
        return []
    with tempfile.TemporaryDirectory(prefix="documents-") as folder:
        place = pathlib.Path(folder)
        (place / "bin").mkdir()
        (place / "bin" / "tidepool").symlink_to(program)
        for name in ("traces", "notebooks", "tracer", "tests"):
            (place / name).symlink_to(ROOT / name)
        environment = {**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}", "NO_COLOR": "1",
                       "PYTHONPATH": ":".join(map(str, filter(None, (package, ROOT / "tracer" / "torch")))), "TIDEPOOL": str(program),
                       "MPLBACKEND": "Agg"}
        for number, command in commands:
            try:
                ran = subprocess.run(command, cwd=place, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, text=True, timeout=SECONDS_PER_BLOCK)
            except subprocess.TimeoutExpired:
                return [f"{path.relative_to(ROOT)}:{number}: not done after {SECONDS_PER_BLOCK} s"]
            if ran.returncode != 0:
                return [f"{path.relative_to(ROOT)}:{number}: exit code {ran.returncode}; expected 0\n{ran.stdout}"]
    return []


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--package", type=pathlib.Path, help="folder of the Python package tidepool")
    parser.add_argument("what", choices=["links", "commands"])
    parser.add_argument("documents", nargs="*", type=pathlib.Path)
    asked = parser.parse_args()
    paths = [path.resolve() for path in asked.documents] or documents()
    wrong = broken_links(paths) if asked.what == "links" else []
    if asked.what == "commands":
        for path in paths:
            wrong += failing_commands(path, asked.program.resolve(), asked.package and asked.package.resolve())
    for message in wrong:
        print(message)
    print(f"{len(paths)} documents, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
