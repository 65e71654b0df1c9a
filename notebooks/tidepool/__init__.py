"""Tidepool from Python: traces and results as pandas tables, runs, sweeps, and policies for trying out an idea.

    import tidepool
    trace = tidepool.load("traces/samples/resnet50.tide")
    tidepool.simulate(trace, policy="dtr-eq,tide", capacity="0.4x..1.0x/7")

Sizes are bytes and times ns, as column names say; capacities are texts, as on the command line ("16GiB", "0.5x").
"""

from tidepool._native import Action, InputError, Request, View, drop, run, swap_in, swap_out, wait
from tidepool._native import version as __version__
from tidepool.policies import Policy, check, policies, register
from tidepool.runs import program, read_results, simulate, sweep
from tidepool.traces import Trace, load

__all__ = ["Action", "InputError", "Policy", "Request", "Trace", "View", "__version__", "check", "drop", "load",
           "policies", "program", "read_results", "register", "run", "simulate", "swap_in", "swap_out", "sweep", "wait"]
