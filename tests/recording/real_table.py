#!/usr/bin/env python3
"""Compares dry recordings of public scripts with snapshots that the same scripts made on real GPUs.

Three public repositories (Stanford's CS336, assignment 2) have both a snapshot of PyTorch's allocator from a real GPU
and the script that made it. Each script is run under `tidepool record --dry` with the PyTorch of its lock file, makes
its own snapshot, and the two are compared:

    tests/recording/real_table.py --venvs FOLDER [--code FOLDER] [--program build/tidepool] [JOB...]

Peaks are those of the allocator's blocks (`tidepool audit`), in bytes. Events are allocations and frees; two differ if
their action or size differs. Segments: whether those of the two runs have the same sizes. Same place: the share of
common allocations that have the same offset in a segment of the same size. Addresses of segments differ between
devices, and PyTorch breaks ties by address. So the last column has the reserved bytes of the dry run with `--placement
top-down`.

--code has the repositories at OWNER/NAME, or as OWNER_NAME.code.tar.xz; missing ones are cloned from GitHub.
Snapshots are taken from the folder of the tests' inputs (tests/inputs/fetch.py), else from a clone. --venvs has a
Python with each PyTorch, torch-VERSION/bin/python; missing ones are installed (Python 3.12 or newer, 5 GB each). No
GPU is needed.
"""

import argparse
import bisect
import collections
import difflib
import json
import lzma
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
INPUTS = pathlib.Path(os.environ.get("TIDEPOOL_SHARED") or HERE.parents[1] / ".." / "shared" / "data")
LIMIT_S = 7200  # of one command
PLACEMENTS = ("lowest-first", "top-down")
PACKAGES = ("einops", "einx", "jaxtyping", "numpy", "pandas", "jinja2")

# The needs of a repository's jobs: its commit, PyTorch, device, working directory, and folders of Python modules.
Source = collections.namedtuple("Source", "commit torch device cwd paths")
SOURCES = {
    "kkaitlyn111/cs336-a2-systems": Source("c1272e1", "2.6.0", "h100-80gb", ".", (".", "../cs336-assignment1")),
    "Wedsonlin/assignment2-systems": Source("87b0864", "2.11.0", "a100-80gb", "scripts", ("cs336-basics",)),
    "Athrun0109/CS336_assignment2": Source("3cbe350", "2.10.0", "rtx-pro-5000", ".", ("cs336-basics",)),
}
# Code that a repository takes from another one.
OTHERS = {"kkaitlyn111/cs336-a2-systems": ("kkaitlyn111/cs336-assignment1", "b3ac129")}
SNAPSHOTS = {"kkaitlyn111/cs336-a2-systems": "c1c174d", "Wedsonlin/assignment2-systems": "8630bcf",
             "Athrun0109/CS336_assignment2": "58f5fc9"}

# A snapshot: its repository, its path there, the job's arguments, the file that the job writes, its name in the inputs.
# If there are several variants of the arguments, no file says which one was run, and the first one with the snapshot's
# number of events is taken.
Job = collections.namedtuple("Job", "repository snapshot variants written file")


def jobs():
    made = {}
    for precision, end in (("fp32", ""), ("bf16", "mixed")):
        for kind in ("forward", "fullstep"):
            for context in ("128", "256", "512"):
                if (kind, end) != ("fullstep", "mixed"):  # for that one, there is no snapshot
                    path = f"memory_files/memory_ctx{context}_{kind}_{end}.pickle"
                    made[f"k {context} {kind} {precision}"] = Job(
                        "kkaitlyn111/cs336-a2-systems", path, [("kkaitlyn111", precision, kind, context)], path,
                        f"kk_{pathlib.Path(path).name}")
    for kind, pattern in (("inference", "forward-only"), ("training", "full-training-step")):
        for context in ("128", "256", "512", "1024"):
            path = f"results/medium_{context}_{kind}_memory_snapshot.pickle"
            made[f"w {context} {kind}"] = Job("Wedsonlin/assignment2-systems", path, [("wedsonlin", pattern, context, autocast)
                                                                                      for autocast in ("false", "true")], path,
                                              f"wl_medium_{context}_{kind}.pickle")
    for name, precision, forward_only, context in (("True_ctx128", "none", "True", "128"), ("True_ctx512", "none", "True", "512"),
                                                   ("False_ctx128", "none", "False", "128"),
                                                   ("bf16_False_ctx128", "bf16", "False", "128")):
        path = f"memory_snapshot_{name}.pickle"
        made[f"a {name}"] = Job("Athrun0109/CS336_assignment2", path, [("athrun0109", precision, forward_only, context)],
                                f"memory_snapshot_{precision}_{forward_only}_ctx{context}.pickle", f"at_{path}")
    return made


class Missing(Exception):
    """A row that cannot be made; the text has the reason."""


def run(*command, **options):
    ran = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                         **{"timeout": LIMIT_S, **options})
    if ran.returncode != 0:
        said = [line for line in ran.stderr.splitlines() if line.strip() and not line.startswith("tidepool: ")]
        raise Missing((said or ran.stderr.splitlines() or ["nothing said"])[-1])
    return ran.stdout


class Code:
    """The repositories, from a folder or as clones."""

    def __init__(self, given, scratch):
        self.given, self.clones = given, scratch / "clones"

    def clone(self, repository):
        clone = self.clones / repository
        if not clone.exists():
            run("git", "clone", "--quiet", "--filter=blob:none", "--no-checkout", f"https://github.com/{repository}", clone,
                env={**os.environ, "GIT_TERMINAL_PROMPT": "0"})
        return clone

    def tree(self, repository, commit, to):
        """Writes the files of a commit to a folder that is not there yet."""
        if self.given and (self.given / repository).is_dir():
            shutil.copytree(self.given / repository, to)
        elif self.given and (archive := self.given / f"{repository.replace('/', '_')}.code.tar.xz").exists():
            with tarfile.open(archive) as files:
                files.extractall(to, filter="data")
        else:
            clone = self.clone(repository)
            run("git", "-C", clone, "worktree", "add", "--quiet", "--detach", to, commit)
        for path in to.rglob("*.py"):
            if "\n<<<<<<< " in (text := path.read_text()):
                path.write_text(without_conflicts(text))

    def snapshot(self, job, to):
        """Writes a real snapshot to a file."""
        if (stored := INPUTS / "torch_snapshot" / f"{job.file}.xz").exists():
            to.write_bytes(lzma.decompress(stored.read_bytes()))
        else:
            found = subprocess.run(["git", "-C", self.clone(job.repository), "cat-file", "blob",
                                    f"{SNAPSHOTS[job.repository]}:{job.snapshot}"], capture_output=True,
                                   timeout=LIMIT_S)
            if found.returncode != 0:
                raise Missing(found.stderr.decode().strip())
            to.write_bytes(found.stdout)


def without_conflicts(text):
    """The text of a file that was committed with the marks of a merge. Of each conflict, the first version is taken."""
    kept, keep = [], True
    for line in text.splitlines(keepends=True):
        if line.startswith(("<<<<<<< ", ">>>>>>> ", "=======")):
            keep = not line.startswith("=======")
        elif keep:
            kept.append(line)
    return "".join(kept)


def python_with(version, venvs):
    folder = venvs / f"torch-{version}"
    if not (folder / "bin" / "python").exists():
        print(f"installing PyTorch {version} in {folder}", file=sys.stderr)
        run(sys.executable, "-m", "venv", folder)
        run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-cache-dir", f"torch=={version}", *PACKAGES)
    return folder / "bin" / "python"


def dry_snapshot(job, arguments, placement, asked, code, scratch, to):
    """Runs a job and takes the snapshot that it writes."""
    source = SOURCES[job.repository]
    python = python_with(source.torch, asked.venvs)
    trees = pathlib.Path(tempfile.mkdtemp(dir=scratch))
    code.tree(job.repository, source.commit, trees / "code")
    if job.repository in OTHERS:
        repository, commit = OTHERS[job.repository]
        code.tree(repository, commit, trees / pathlib.Path(repository).name)
    written = trees / "code" / job.written
    written.parent.mkdir(exist_ok=True)
    paths = os.pathsep.join(str(trees / "code" / path) for path in source.paths)
    run(asked.program, "record", "--dry", "--device", source.device, "--placement", placement, "-o", trees / "dry.tide",
        "--", python, HERE / "real_jobs.py", *arguments, cwd=trees / "code" / source.cwd, env={**os.environ, "PYTHONPATH": paths})
    shutil.move(written, to)
    shutil.rmtree(trees)


def dry_snapshots(job, asked, code, scratch, real, to):
    """Makes the dry snapshots of a job, one for each placement. @param to  their files; existing files are kept"""
    events = len(Snapshot(asked.program, real).operations())
    for arguments in job.variants:
        for placement, path in zip(PLACEMENTS, to):
            if not path.exists():
                dry_snapshot(job, arguments, placement, asked, code, scratch, path)
            if len(Snapshot(asked.program, path).operations()) != events and arguments != job.variants[-1]:
                path.unlink()
                break
        else:
            return


class Plain(pickle.Unpickler):
    """Reads plain values only, and runs no code, since snapshots are files of other projects."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name} in a snapshot")


class Snapshot:
    def __init__(self, program, path):
        with open(path, "rb") as file:
            said = Plain(file).load()
        device = next(number for number, events in enumerate(said["device_traces"]) if events)
        self.events = said["device_traces"][device]
        self.segments = {segment["address"]: segment["total_size"] for segment in said["segments"]
                         if segment["device"] == device}
        audit = subprocess.run([program, "audit", path, "--json"], capture_output=True, text=True, timeout=LIMIT_S)
        if not audit.stdout:
            raise Missing(audit.stderr.strip())
        audited = next((entry for entry in json.loads(audit.stdout)["devices"] if entry["device"] == device), {})
        self.allocated, self.reserved = (audited.get(f"peak_{key}_bytes") for key in ("allocated", "reserved"))
        if self.allocated is None or self.reserved is None:
            raise Missing(f"{path.name}: no peaks: {audited.get('first_mismatch') or 'nothing was compared'}")

    def operations(self):
        """(action, bytes) of allocations and frees, in order."""
        return [(event["action"], event["size"]) for event in self.events if event["action"] in ("alloc", "free_completed")]

    def places(self):
        """For each allocation, the size of its segment and its offset there."""
        live = dict(self.segments)
        for event in reversed(self.events):
            if event["action"] == "segment_alloc":
                del live[event["addr"]]
            elif event["action"] == "segment_free":
                live[event["addr"]] = event["size"]
        starts, found = sorted(live), []
        for event in self.events:
            address = event.get("addr")
            if event["action"] == "segment_alloc":
                live[address] = event["size"]
                bisect.insort(starts, address)
            elif event["action"] == "segment_free":
                starts.remove(address)
            elif event["action"] == "alloc":
                start = starts[bisect.bisect_right(starts, address) - 1]
                found.append((live[start], address - start))
        return found


def differing(first, second):
    """The number of items that have no equal partner in the other sequence, with partners in the same order; of the two
    sequences, the larger number."""
    same = 0
    while same < min(len(first), len(second)) and first[same] == second[same]:
        same += 1
    first, second = first[same:], second[same:]
    if len(first) == len(second) and (aligned := sum(a != b for a, b in zip(first, second))) < 100:
        return aligned
    blocks = difflib.SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks()
    return max(len(first), len(second)) - sum(block.size for block in blocks)


def against(real, dry):
    """"equal", or the bytes and the error."""
    return "equal" if dry == real else f"{dry:,} ({dry / real - 1:+.3%})"


def memory_row(name, real, dry):
    operations = real.operations()
    return (f"| {name} | {len(operations):,} / {differing(operations, dry.operations()):,} | {real.allocated:,} | "
            f"{against(real.allocated, dry.allocated)} | {real.reserved:,} | {against(real.reserved, dry.reserved)} |")


def segments_row(name, real, dry, moved):
    segments = [sorted(snapshot.segments.values()) for snapshot in (real, dry)]
    places = list(zip(real.places(), dry.places()))
    same = sum(a == b for a, b in places) / len(places)
    return (f"| {name} | {len(segments[0])} {'equal' if segments[0] == segments[1] else f'against {len(segments[1])}'} | "
            f"{same:.0%} | {against(real.reserved, moved.reserved)} |")


def errors(rows, key, which):
    found = [abs(getattr(row[which], key) / getattr(row[0], key) - 1) for row in rows]
    return f"exact in {sum(error == 0 for error in found)}; mean {sum(found) / len(found):.4%}, worst {max(found):.3%}"


def print_summary(rows):
    identical = sum(real.operations() == dry.operations() for real, dry, _ in rows)
    events = sum(len(real.operations()) for real, _, _ in rows)
    print(f"| *all {len(rows)}* | {events:,}; {identical} of {len(rows)} identical | | {errors(rows, 'allocated', 1)} | | "
          f"{errors(rows, 'reserved', 1)} |")


def print_segments(names, rows):
    print("\n| run | segments | same place | reserved, placed top-down |\n|---|---|---|---|")
    for name, snapshots in zip(names, rows):
        print(segments_row(name, *snapshots))
    print(f"| *all {len(rows)}* | | | {errors(rows, 'reserved', 2)} |")


def main():
    known = jobs()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=f"default: all of {', '.join(known)}")
    parser.add_argument("--program", type=pathlib.Path, default="build/tidepool")
    parser.add_argument("--venvs", type=pathlib.Path, required=True)
    parser.add_argument("--code", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the snapshots; those of dry runs in it are used again")
    asked = parser.parse_args()
    asked.program, asked.venvs = asked.program.resolve(), asked.venvs.resolve()
    asked.code = asked.code and asked.code.resolve()
    if unknown := [name for name in asked.jobs if name not in known]:
        parser.error(f"{', '.join(unknown)}: expected some of {', '.join(known)}")
    print("| run | events / differing | allocated, real | dry | reserved, real | dry |\n|---|---|---|---|---|---|")
    names, rows, missing = [], [], []
    with tempfile.TemporaryDirectory() as temporary:
        scratch = pathlib.Path(temporary)
        kept = asked.keep or scratch
        kept.mkdir(parents=True, exist_ok=True)
        code = Code(asked.code, scratch)
        for name in asked.jobs or known:
            real, *dry = (kept / f"{name}.{kind}.pickle" for kind in ("real", *PLACEMENTS))
            try:
                code.snapshot(known[name], real)
                dry_snapshots(known[name], asked, code, scratch, real, dry)
                rows.append([Snapshot(asked.program, path) for path in (real, *dry)])
            except Missing as error:
                missing.append(f"{name}: {error}")
                continue
            names.append(name)
            print(memory_row(name, *rows[-1][:2]), flush=True)
    if rows:
        print_summary(rows)
        print_segments(names, rows)
    for line in missing:
        print(f"not compared: {line}", file=sys.stderr)
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
