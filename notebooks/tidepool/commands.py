"""The commands of the program as functions that return dicts and tables.

Options have the names and texts of the command line: `time_limit="30s"` is --time-limit 30s, `steady=True` is --steady.
Traces are paths or results of load(). Wrong input raises InputError with the message of the program.
"""

from __future__ import annotations

import json
import os
import pathlib

import pandas

from tidepool.runs import axes, flat, listed, printed, size_text, typed
from tidepool.traces import Trace


def path_of(trace: Trace | str | os.PathLike) -> str:
    return trace.path if isinstance(trace, Trace) else os.fspath(trace)


def words(options: dict) -> list[str]:
    """Options as words of the command line; those that are None or False are left out."""
    given = []
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is True:
            given.append(option)
        elif value is not None and value is not False:
            given += [option, listed(value, size_text if name == "capacity" else str)]
    return given


def answers(command: str, *arguments: str, **options) -> list[dict]:
    """The JSON objects that a command prints. If a command exits with 1, they contain the failure."""
    return [json.loads(line) for line in printed(command, *arguments, *words(options), "--json").splitlines()]


def bound(trace: Trace | str | os.PathLike, capacity, with_: str = "swap,remat", **options) -> pandas.DataFrame:
    """Lower bounds on the time of every plan: one row for each capacity and bound, the best of a capacity last.

    Columns: capacity_bytes, machine, feasible (whether any plan may exist), name, with, makespan_ns (none if no plan
    exists), limited_by, proof, and free_from_bytes, the capacity below which every plan has overhead.
    `with_` names what plans may do: some of order, swap and remat, separated by commas, or none. Options: machine,
    assume, iterations, steady=True.
    """
    rows = []
    for answer in answers("bound", path_of(trace), capacity=capacity, with_=with_, **options):
        shared = {name: answer.get(name) for name in ("capacity_bytes", "machine", "free_from_bytes", "feasible")}
        rows += [{**shared, **{name: each.get(name) for name in ("name", "with", "makespan_ns", "limited_by", "proof")}}
                 for each in answer["bounds"]]
    return pandas.DataFrame(rows)


def validate(plan: str | os.PathLike, trace: Trace | str | os.PathLike, backend: str = "host", **options) -> dict:
    """Executes a plan of simulate(plan_out=...) on real memory and compares every byte with the program's.

    The keys of `tidepool validate --json`: outcome ("ok" if nothing differs), corrupt_bytes, predicted_ns, measured_ns
    (where time is measured), predicted_peak_bytes, measured_peak_bytes, ...
    Options: repeat, time_scale, move=True, detail=True, machine, arena, results, device, graph=True.
    """
    answer, = answers("validate", os.fspath(plan), trace=path_of(trace), backend=backend, **options)
    return answer


def report(inputs, output: str | os.PathLike = "report.html", **run) -> pathlib.Path:
    """Writes one HTML file that needs no network, and returns its path. `inputs` are sweep databases, whose frontiers
    it shows, and at most one trace. For the trace, it shows all details of the runs that the options describe. Of two
    traces alone, it shows what differs.

    The options are those of simulate().
    """
    inputs = inputs if isinstance(inputs, (list, tuple)) else [inputs]
    printed("report", *map(path_of, inputs), *words(axes(run)), "-o", os.fspath(output))
    return pathlib.Path(output)


def fit(job: Trace | str | os.PathLike, device: str, **options) -> dict:
    """Whether a recorded step, a memory snapshot of PyTorch, or a job of several ranks fits a device.

    The keys of `tidepool fit --json`: fits, predicted_bytes, low_bytes, high_bytes, margin_bytes, peak_at, ...;
    `holders` is a table of module, kind and bytes, the largest first; `advice` is there if the job does not fit
    although some memory is left for its tensors. For a job of several ranks, these are fits, first_rank (which runs out
    of memory first or, if all fit, takes most), ... and `ranks`, a table of one row for each rank.
    Options: capacity, pool, show.
    """
    answer, = answers("fit", path_of(job), device=device, **options)
    return answer | {name: pandas.DataFrame(answer[name]) for name in ("holders", "ranks") if name in answer}


def explain(trace: Trace | str | os.PathLike, at: int | None = None, **options) -> dict:
    """The buffers that are alive at the peak, or while op `at` runs, and changes that would lower the peak.

    The keys of `tidepool explain --json`; `kinds`, `holders`, `buffers` and `lowering` are tables. Options: depth,
    show.
    """
    answer, = answers("explain", path_of(trace), at=at, **options)
    return answer | {name: pandas.DataFrame([flat(row) for row in answer[name]])
                     for name in ("kinds", "holders", "buffers", "lowering")}


def advise(trace: Trace | str | os.PathLike, capacity, **options) -> pandas.DataFrame:
    """Changes of the script with which a step fits a capacity, the best first: one row for each.

    Columns: kind, modules, code, fits, peak_bytes, overhead_ratio, bound_ns, gap, and where a kind has them
    allocated_bytes (peak in blocks of PyTorch's allocator), peak_is_least, operators, copied_bytes and reserved_bytes;
    attrs has capacity_bytes, base_peak_bytes, base_allocated_bytes and notes. Options: machine, pool, kinds, plans.
    """
    answer, = answers("advise", path_of(trace), capacity=capacity, **options)
    changes = typed(answer["changes"])
    changes.attrs = {name: answer[name] for name in ("capacity_bytes", "base_peak_bytes", "base_allocated_bytes", "notes")}
    return changes
