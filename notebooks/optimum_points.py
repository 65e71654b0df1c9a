"""Points of optimum.py: steps with capacities and machines, runs of every policy at each, and the bound for it."""

import hashlib
import json
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

TRACES = pathlib.Path(__file__).resolve().parents[1] / "traces"
SAMPLES, INSTANCES = TRACES / "samples", TRACES / "instances"
sys.path.insert(0, str(INSTANCES))

from make import write_machine  # noqa: E402
from sweep_rows import rows_of, run_within, trace_names  # noqa: E402


@dataclass(frozen=True)
class Point:
    """A step with a capacity, the words of the command line for its runs, and the best known times."""

    group: str
    step: str
    capacity: str
    trace: str
    machine: str
    run: tuple = ()  # words for `simulate` only
    both: tuple = ()  # words for `simulate` and `bound`
    recompute_only: bool = False
    best_ns: int | None = None  # time of the best plan that is published with the step
    bound_ns: int | None = None  # bound that is published with the step
    bound_of: str = field(default="", compare=False)

    @property
    def name(self):
        machine = "" if self.recompute_only else f" {self.machine}"
        return f"{self.step} {self.capacity}{machine}"

    @property
    def ours(self):
        return "tide-remat" if self.recompute_only else "tide"


def points_of_traces(traces, capacities, machines, pool):
    """Points of samples, or of other traces, whose group is their path."""
    names = trace_names(map(str, traces))

    def group(trace):
        path = pathlib.Path(trace).resolve()
        return "samples" if path.parent == SAMPLES else str(path)
    return [Point(group(trace), names[str(trace)], capacity, str(trace), machine, run=("--pool", pool),
                  both=("--capacity", capacity, "--machine", machine))
            for trace in map(str, traces) for machine in machines for capacity in capacities]


def points_of_instances(folder):
    """The published instances of traces/instances; their machines are written to the folder."""
    points = []
    for row in json.loads((INSTANCES / "instances.json").read_text(encoding="utf-8")):
        _, share, link = row["name"].rsplit("-", 2)
        machine = write_machine(link, pathlib.Path(folder))
        points.append(Point("instances", row["step"], f"{share}%",
                            str(INSTANCES / "steps" / f"{row['step']}.jsonl.gz"), link, run=("--pool", "best-fit"),
                            both=("--capacity", f"{row['capacity_bytes']}B", "--machine", str(machine)),
                            best_ns=row["time_ns"], bound_ns=row["bound_ns"], bound_of=row["bound"]))
    return points


def points_of_problems(folder, tidepool):
    """The problems of Checkmate, MONeT and Moccasin in a folder, as `tidepool audit` reads them."""
    points = []
    for path in sorted(pathlib.Path(folder).glob("*.json*")):
        audit, = rows_of([tidepool, "audit", path, "--json"])
        for budget in audit["budgets"]:
            points.append(Point("published", path.name.split(".json")[0], budget["budget"], str(path), "",
                                run=("--pool", "ideal", "--first"),
                                both=("--capacity", f"{budget['capacity_bytes']}B", "--assume", audit["format"]),
                                recompute_only=True, best_ns=budget.get("stored_cost_ns")))
    return points


def every_policy(tidepool):
    """(name, kind) of each policy."""
    known, = rows_of([tidepool, "policies", "--json"])
    return [(each["name"], each["kind"]) for each in known if each["kind"] != "pool"]


def version_of(tidepool):
    return subprocess.run([tidepool, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout.strip()


class Rows:
    """Answers in a file, one JSON line each, found by the question (`asked`)."""

    def __init__(self, path, version):
        self.path, self.version = pathlib.Path(path), version
        self.kept = {}
        if self.path.exists():
            whole = self.path.read_text(encoding="utf-8").rpartition("\n")[0]  # without a last line that was cut
            self.path.write_text(whole + "\n" * bool(whole), encoding="utf-8")
            for line in whole.splitlines():
                row = json.loads(line)
                if row["version"] == version:
                    self.kept[row["asked"]] = row

    def get(self, asked, answer):
        """The row in the file for a question. If there is none, the row that `answer()` returns, which is added."""
        if asked not in self.kept:
            row = {"asked": asked, "version": self.version, **answer()}
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            self.kept[asked] = row
        return self.kept[asked]


def content_of(point):
    """A hash of the trace and, if the machine is a file, of that file."""
    files = [path for path in map(pathlib.Path, (point.trace, *point.both)) if path.is_file()]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


def run_of(tidepool, point, policy, limit):
    """A run of one policy: outcome, times in ns and CPU time of the search in s."""
    command = [tidepool, "simulate", point.trace, "--policy", policy, *point.run, *point.both, "--json"]
    rows, used, share = run_within(command, limit)
    if rows is None:
        return {"outcome": "search_limit", "search_s": used}
    row = rows[0]
    kept = ("outcome", "makespan_ns", "baseline_ns", "recompute_ns", "stall_ns")
    return {key: row[key] for key in kept
            if key in row} | {"search_s": row["plan_ns"] / 1e9 * share if "plan_ns" in row else used}


def bound_of(tidepool, point):
    """The better bound of `tidepool bound` and of the publication: feasible, bound_ns, bound and limited_by."""
    answer, = rows_of([tidepool, "bound", point.trace, *point.both, "--json",
                       *(("--with", "remat") if point.recompute_only else ("--with", "swap,remat", "--steady"))])
    if not answer["feasible"]:
        return {"feasible": False}
    best = answer["bounds"][-1]
    found = {"feasible": True, "bound_ns": best["makespan_ns"], "bound": best["name"], "limited_by": best["limited_by"]}
    if point.bound_ns and point.bound_ns > best["makespan_ns"]:
        found |= {"bound_ns": point.bound_ns, "bound": point.bound_of}
    return found


def measured(points, policies, tidepool, rows, limit, threads):
    """Runs all that `rows` lacks, small steps first. Returns, for each point, its bound and its runs by policy."""
    contents = {point: f"{point.group} {point.name} {content_of(point)}" for point in points}

    def bound(point):
        return rows.get(f"bound {contents[point]}", lambda: bound_of(tidepool, point))

    def run(point, policy):
        asked = f"{policy} {' '.join(point.run)} {contents[point]} {limit}s"
        return rows.get(asked, lambda: run_of(tidepool, point, policy, limit))

    tasks = [(point, name) for point in sorted(points, key=lambda each: pathlib.Path(each.trace).stat().st_size)
             for name in (None, *(name for name, kind in policies
                                  if not point.recompute_only or kind in ("none", "remat")))]
    with ThreadPoolExecutor(threads) as workers:
        done = dict(zip(tasks, workers.map(lambda task: run(*task) if task[1] else bound(task[0]), tasks)))
    return {point: (done[point, None], {name: row for (each, name), row in done.items() if each == point and name})
            for point in points}
