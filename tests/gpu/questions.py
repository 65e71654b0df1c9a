"""Answers the open questions of the recorder's design on a machine with a GPU, and prints a table of the answers.

    questions.py PROGRAM FOLDER     the path of tidepool, and a folder for recordings
"""

import collections
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

import raw_records

HERE = pathlib.Path(__file__).parent
LIMIT_S = 100


def run(command, **environment):
    """Runs a probe. Returns the object that it printed, its exit status, its stderr, and the seconds from the object's
    time `end` to the exit."""
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=LIMIT_S)
    ended = time.time()
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    printed = json.loads(lines[-1]) if lines else {}
    return printed, done.returncode, done.stderr, ended - printed.get("end", ended)


class Machine:
    def __init__(self, program, folder):
        self.program, self.folder = program, pathlib.Path(folder) / "questions"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    def bare(self, probe, **environment):
        return run([sys.executable, HERE / "probe.py", probe], **environment)

    def recorded(self, name, probe, options=(), **environment):
        """As run(), with a recorder; returns the raw files too."""
        output = self.folder / f"{name}.tide"
        command = [self.program, "record", "--keep-raw", "-o", output, *options, "--", sys.executable, HERE / "probe.py", probe]
        answer = run(command, **environment)
        return *answer, raw_records.read_folder(output.with_suffix(".raw"))


def mapped_memory(machine):
    _, _, _, _, files = machine.recorded("vmm", "plain", PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
    maps = [(v.address, v.address + v.size) for v in files[0]["vmm"] if v.operation == 3]
    inside = sum(any(begin <= m.address < end for begin, end in maps) for m in files[0]["memory"] if m.operation == 1)
    return f"{len(maps)} cuMemMap calls seen; MEMORY2 reports {inside} allocations inside them: {'yes' if inside else 'no'}"


def who_allocates(machine):
    _, _, _, _, files = machine.recorded("plain", "plain")
    sources = collections.Counter(files[0]["text"].get(m.source, "?") or "?" for m in files[0]["memory"] if m.operation == 1)
    return ", ".join(f"{name}: {count}" for name, count in sources.most_common())


def duplicates(machine):
    files = raw_records.read_folder(machine.folder / "plain.raw")
    counts = collections.Counter((m.correlation, m.operation, m.address) for m in files[0]["memory"] if m.operation in (1, 2))
    return f"{sum(counts.values())} records of {len(counts)} operations: {'yes' if max(counts.values(), default=0) > 1 else 'no'}"


def correlations(machine):
    file = raw_records.read_folder(machine.folder / "plain.raw")[0]
    by = {"outermost": {launch.correlation: launch for launch in file["launch"]},
          "nested": {launch.inner_correlation: launch for launch in file["launch"] if launch.inner_correlation},
          "driver": {launch.driver_correlation: launch for launch in file["launch"] if launch.driver_correlation}}
    launched = by["driver"] | by["nested"] | by["outermost"]
    kernels = [kernel for kernel in file["kernel"] if kernel.graph_node == 0]
    matched = ", ".join(f"{sum(kernel.correlation in ids for kernel in kernels)} {name}" for name, ids in by.items())
    missed = sum(kernel.correlation not in launched for kernel in kernels)
    flags = sum(launched[k.correlation].flags & 2 != 0 for k in kernels if k.correlation in launched)
    uses = [launched[k.correlation].uses for k in kernels if k.correlation in launched]
    return (f"of {len(kernels)} kernels, the id is that of a call: {matched}; {missed} of none; "
            f"{flags} with parameters that could not be read; {statistics.mean(uses or [0]):.1f} uses each; {sum(k.start == 0 for k in kernels)} kernels without times")


def handles(machine):
    return "parameters: " + raw_records.read_folder(machine.folder / "plain.raw")[0]["info"].get("parameters", "not said")


def versions(machine):
    info = raw_records.read_folder(machine.folder / "plain.raw")[0]["info"]
    return (f"CUPTI {info.get('cupti')} of {info.get('cupti_library')}, driver {info.get('driver')}; built with the headers of "
            f"CUPTI {info.get('cupti_headers')} and CUDA {info.get('driver_headers')}")


def clocks(machine):
    readings = [c for file in raw_records.read_folder(machine.folder / "plain.raw") for c in file["clock"]]
    offsets = [c.monotonic_raw - c.time for c in readings]
    return f"{len(readings)} readings; the offset of CUPTI's clock changes by {max(offsets) - min(offsets)} ns at most"


def pinned(machine):
    import torch

    torch.cuda.init()  # without it, PyTorch gives no statistics
    asked = 5 << 20
    block = torch.empty(asked, dtype=torch.uint8, pin_memory=True)
    held = torch.cuda.host_memory_stats().get("allocated_bytes.current", 0)
    del block
    return f"{asked} bytes asked for, {held} held: {'yes' if held > asked else 'no'}"


def cost(machine):
    figures = [f"bare {machine.bare('launches')[0].get('us_per_launch', 0):.2f}"]
    for name, environment in (("recorded", {}), ("without resolving", {"TIDEPOOL_RESOLVE": "0"})):
        printed, *_ = machine.recorded(f"launches {name}".replace(" ", "-"), "launches", **environment)
        figures.append(f"{name} {printed.get('us_per_launch', 0):.2f}")
    return "us of the host for each launch: " + ", ".join(figures)


def device_memory(machine):
    figures = [f"bare {machine.bare('plain')[0].get('used_bytes', 0) >> 20}"]
    for name, options in (("host buffers", []), ("device buffers", ["--device-buffers"])):
        printed, *_, files = machine.recorded(name.replace(" ", "-"), "plain", options)
        setting = files[0]["info"].get("setting.cupti_buffers")
        figures.append(f"{name} {printed.get('used_bytes', 0) >> 20} (CUPTI says: {setting})")
    return "MiB of the device in use: " + ", ".join(figures)


def graphs(machine):
    _, _, _, _, files = machine.recorded("graph", "graph")
    nodes = {launch.graph_node for launch in files[0]["launch"] if launch.correlation == 0}
    kernels = [kernel for kernel in files[0]["kernel"] if kernel.graph_node != 0]
    return f"{sum(k.graph_node in nodes for k in kernels)} of {len(kernels)} kernels of graphs have a node that was seen being made"


def end_of_job(machine):
    *_, bare = machine.bare("plain")
    _, code, err, recorded, files = machine.recorded("end", "plain")
    return f"{bare:.2f} s bare, {recorded:.2f} s recorded and assembled; exit status {code}; {err.count('did not hand out')} hangs"


def workers(machine):
    printed, code, err, _, files = machine.recorded("workers", "workers")
    return f"exit status {code}, {len(files)} raw files, sum {printed.get('sum')}; stderr: {err.strip() or 'empty'}"


def tracepoints(machine):
    import torch

    library = pathlib.Path(torch.__file__).parent / "lib/libc10_cuda.so"
    notes = subprocess.run(["readelf", "-n", library], capture_output=True, text=True, timeout=LIMIT_S).stdout
    return f"torch {torch.__version__}: {'yes' if 'stapsdt' in notes else 'no'}"


QUESTIONS = {
    "Does MEMORY2 report mapped memory?": mapped_memory,
    "Which libraries allocate?": who_allocates,
    "Are memory records doubled, once for each context?": duplicates,
    "Do driver callbacks and kernel records share ids?": correlations,
    "Which call describes the parameters of what is launched?": handles,
    "Which versions meet?": versions,
    "Do the clocks of CUPTI and the host drift?": clocks,
    "Does PyTorch round pinned memory up?": pinned,
    "What does looking at 10,000 launches cost?": cost,
    "Do CUPTI's buffers leave the device's memory alone?": device_memory,
    "Do kernels of graphs lead to their parameters?": graphs,
    "Does the end of a Python job hang?": end_of_job,
    "Do DataLoader workers (fork) survive the injection?": workers,
    "Does this torch carry tracepoints of its allocator?": tracepoints,
}


def main():
    machine = Machine(sys.argv[1], sys.argv[2])
    failed = 0
    for question, ask in QUESTIONS.items():
        try:
            answer = ask(machine)
        except Exception as error:  # the other questions are still worth asking
            answer, failed = f"FAILED: {type(error).__name__}: {error}", failed + 1
        print(f"{question}\n    {answer}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
