"""Runs, sweeps and their results."""

from __future__ import annotations

import contextlib
import difflib
import json
import numbers
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import warnings

import pandas

from tidepool import _native
from tidepool.traces import Trace, Traces, each_of, load


def flat(row: dict) -> dict:
    """A result with the column names of the database: {"stall_ns": {"h2d": 3}} becomes {"stall_ns_h2d": 3}."""
    columns = {}
    for key, value in row.items():
        if isinstance(value, dict):
            columns.update({f"{key}_{inner}": number for inner, number in value.items()})
        else:
            columns[key] = value
    return columns


def typed(rows: list, columns: list[str] | None = None) -> pandas.DataFrame:
    """The rows as a table. Columns of whole numbers are integers, also where values are missing (Int64). Beside
    overhead_ratio is `overhead`, in per cent: 100 * (overhead_ratio - 1)."""
    table = pandas.DataFrame(rows, columns=columns, dtype=object)
    for name in table:
        given = table[name].dropna()
        whole = len(given) > 0 and given.map(type).eq(int).all()
        if whole:
            table[name] = table[name].astype("int64" if len(given) == len(table) else "Int64")
        else:
            table[name] = table[name].infer_objects()
    if "overhead_ratio" in table:
        table.insert(table.columns.get_loc("overhead_ratio") + 1, "overhead", 100 * (table["overhead_ratio"].astype(float) - 1))
    return table


def axes(given: dict) -> dict[str, str]:
    """Arguments as texts of the command line: lists become comma-separated, capacities in bytes get their unit. Those
    that are None are left out."""
    known = ("pool", "policy", "capacity", "machine", "seed", "assume", "overhead_limit", "iterations", "first")
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            raise TypeError(f"{name!r} is not an option of a run{f', did you mean {near[0]!r}?' if near else ''}; "
                            f"expected one of {', '.join(known)}")
    if given.get("first") not in (True, False, None):
        raise TypeError(f"first is {given['first']!r}; expected True or False")
    return {name: bool(value) if name == "first" else listed(value, size_text if name == "capacity" else str)
            for name, value in given.items() if value is not None}


def listed(value, text=str) -> str:
    """One value, or several separated by commas."""
    return ",".join(map(text, value)) if isinstance(value, (list, tuple, range)) else text(value)


def size_text(size) -> str:
    """A size as a text of the command line: whole numbers are bytes."""
    return f"{size}B" if isinstance(size, numbers.Integral) and not isinstance(size, bool) else str(size)


def simulate(trace: Trace | str | os.PathLike, plan_out: str | os.PathLike | None = None, **run) -> pandas.DataFrame:
    """Simulates a step: one row for each combination of the options, with the columns of `tidepool simulate --json`.

    The options are pool, policy, capacity, machine, seed, assume, overhead_limit and iterations. Each is one value or a
    list of values, written as on the command line. `overhead` is in per cent. A capacity may also be a whole number of bytes. first=True simulates
    only the first step instead of the steady state. `plan_out` is a file for the plan of a single run, for
    `tidepool validate`. If the run has no plan, since its outcome is not ok, a warning says that the file is not written.
    """
    trace = trace if isinstance(trace, Trace) else load(trace)
    rows = _native.simulate(trace.native, trace.path, os.fspath(plan_out) if plan_out else "", **axes(run))
    rows = typed([flat(json.loads(row)) for row in rows])
    if plan_out and rows["outcome"][0] != "ok":
        warnings.warn(f"{os.fspath(plan_out)}: not written; the run ended with {rows['outcome'][0]}, and only a run with "
                      "outcome ok has a plan", stacklevel=2)
    return rows


def sweep(traces: Traces, output: str | os.PathLike | None = None, threads: int | None = None,
          **run) -> pandas.DataFrame:
    """Runs every combination of the options for every trace, on all cores. `output` is the database of results: runs in
    it are not repeated. An interrupted sweep is continued by the same call or, if no policy in Python is registered, by
    `tidepool sweep DATABASE`. Returns read_results(output).
    """
    if threads is not None and not 1 <= threads <= 1024:
        raise ValueError(f"threads={threads!r}; expected 1 to 1024, or None for all cores")
    paths = [each.path if isinstance(each, Trace) else os.fspath(each) for each in each_of(traces)]
    with contextlib.ExitStack() as stack:
        if output is None:
            output = os.path.join(stack.enter_context(tempfile.TemporaryDirectory()), "results.sqlite")
        _native.sweep(paths, os.fspath(output), threads or os.cpu_count() or 1, **axes(run))
        return read_results(output)


def read_results(path: str | os.PathLike, table: str = "runs") -> pandas.DataFrame:
    """A table or view of a database of results: runs, frontier, best_policy, gap_to_bound, ...
    (simulator/studies/sweep/DATABASE.md). Raises InputError for a file that is no database."""
    try:
        with contextlib.closing(
                sqlite3.connect(pathlib.Path(path).absolute().as_uri() + "?mode=ro", uri=True)) as connection:
            known = [name for name, in connection.execute(
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")]
            if not known:
                raise _native.InputError(f"{os.fspath(path)}: has no tables; expected a database that sweep wrote")
            if table not in known:
                raise ValueError(f"{os.fspath(path)}: no table {table!r}; expected one of {', '.join(sorted(known))}")
            found = connection.execute(f'SELECT * FROM "{table}"')
            return typed(found.fetchall(), [name for name, *_ in found.description])
    except sqlite3.DatabaseError as error:
        raise _native.InputError(f"{os.fspath(path)}: {error}; expected a database that sweep wrote") from error


def program(*arguments: str, json_lines: bool = True) -> pandas.DataFrame | str:
    """Runs a command of the program, as in program("pack", "step.tide", "--pool", "cnmem"). Adds --json and returns the
    output as a table. With json_lines=False, returns the output without --json as a text.

    The program is $TIDEPOOL, the one that this package was built with, or the one on the PATH.
    Raises InputError with the program's message if it exits with neither 0 nor 1, and RuntimeError if it exits with 1
    and only a message, or is ended by a signal.
    """
    if not json_lines:
        return printed(*arguments)
    return typed([flat(json.loads(line)) for line in printed(*arguments, "--json").splitlines()])


def printed(*arguments: str) -> str:
    """The output of the program. Raises as program() does."""
    package = pathlib.Path(_native.__file__).resolve().parent  # in a wheel, or below a build folder
    built = next((path for path in (package / "tidepool", package.parents[1] / "tidepool") if path.is_file()), None)
    path = os.environ.get("TIDEPOOL") or built or shutil.which("tidepool")
    if path is None:
        raise FileNotFoundError("no program tidepool: set $TIDEPOOL, or have it on the PATH")
    ran = subprocess.run([path, *arguments], capture_output=True, text=True)
    said = ran.stderr.strip().removeprefix("tidepool: ")
    if ran.returncode < 0:
        raise RuntimeError(f"tidepool {arguments[0]} was ended by {signal.Signals(-ran.returncode).name}")
    if ran.returncode not in (0, 1):
        raise _native.InputError(said)
    if ran.returncode == 1 and not ran.stdout and said:  # there is no answer, as when a disk is full
        raise RuntimeError(said)
    return ran.stdout
