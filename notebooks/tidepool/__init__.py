"""Tidepool from Python: traces and results as pandas tables, runs, sweeps, and policies written in Python.

    import tidepool
    trace = tidepool.load("traces/samples/resnet50.tide")
    tidepool.simulate(trace, policy="dtr-eq,tide", capacity="0.4x..1.0x/7")

Sizes are bytes and times ns, as column names say. Capacities are texts, as on the command line ("16GiB", "0.5x"), or
whole numbers of bytes.
"""

from tidepool._native import Action, InputError, Request, View, drop, run, swap_in, swap_out, wait
from tidepool._native import version as __version__
from tidepool.commands import advise, bound, explain, fit, report, validate
from tidepool.policies import Policy, check, policies, register
from tidepool.runs import program, read_results, simulate, sweep
from tidepool.traces import Trace, load

__all__ = ["Action", "InputError", "Policy", "Request", "Trace", "View", "__version__", "advise", "bound", "check",
           "drop", "explain", "fit", "load", "policies", "program", "read_results", "register", "report", "run",
           "simulate", "swap_in", "swap_out", "sweep", "validate", "wait"]
