"""Policies: the list of all policies, and policies as Python classes.

    @tidepool.register("largest-first", kind="remat")
    class LargestFirst(tidepool.Policy):
        "Drops the largest version first."
        def make_room(self, view, request):
            versions = view.droppable_versions()
            return [tidepool.drop(max(versions, key=view.size))] if versions else []

    tidepool.simulate(trace, policy="largest-first", capacity="0.5x")
    tidepool.check("largest-first", [trace])

A policy in Python makes exactly the same decisions as the same policy in C++. It is slower: each decision calls the
interpreter, and only one thread runs Python at a time.
"""

from __future__ import annotations

import pandas

from tidepool import _native
from tidepool.runs import axes
from tidepool.traces import Trace, Traces, each_of, load


class Policy:
    """Base class of policies, which decide what is kept, swapped or recomputed. Define any of these methods; the others
    cost no time:

        start(view)                  a step begins
        make_room(view, request)     `request.size` bytes do not fit; called again until they fit or no action is returned
        before_run(view, op)         an op is about to run: prefetch, or evict early
        plan(trace, capacity)        once, before the step

    Each but start returns a list of actions, or None: drop(version), swap_out(version), swap_in(version), wait(version), run(op).
    A view tells of a version: cost_ns (of its producer), chain_cost_ns (of all that is absent and needed for it), copy_out_ns and copy_in_ns
    (alone on the link), size, resident, evictable, droppable, on_host, last_access_ns, order and address.
    In plan(), every action names the op before which it is done: drop(version, before=op). Actions before the same op are
    done in the order of the list.
    """


_classes: dict[str, type] = {}
_kinds: dict[str, str] = {}


def _made(name: str) -> Policy:
    """An object of the class that was registered last under a name."""
    policy = _classes[name]()
    if not any(hasattr(policy, method) for method in ("start", "make_room", "before_run", "plan")):
        raise TypeError(f"{type(policy).__name__} has none of the methods of a policy; expected make_room, before_run "
                        "or plan")
    if hasattr(policy, "plan"):
        plan = policy.plan
        policy.plan = lambda native, capacity: plan(Trace("the run's trace", native), capacity)
    return policy


def register(name: str, kind: str, paper: str = "none"):
    """Registers a class as a policy. If the name is registered again, as in a notebook cell that is run again, the new
    class replaces the old one; results that a sweep stored before remain those of the old class.

    kind: swap, remat or hybrid; decides which lower bound holds for its results. A run in which a swap policy
    recomputes, or a remat policy copies, ends with the outcome error.
    Raises ValueError if the name belongs to a policy in Python of another kind, and InputError if it belongs to a
    policy in C++ or a chain of policies cannot name it.
    """

    def known(policy: type) -> type:
        is_new = name not in _classes
        if _kinds.get(name, kind) != kind:
            raise ValueError(f"policy {name!r} is a {_kinds[name]} policy already; "
                             "expected the same kind, or another name")
        if is_new:
            summary = (policy.__doc__ or "a policy in Python").strip().splitlines()[0].rstrip(".")
            _native.add_policy(name, kind, summary, paper, lambda: _made(name))
        _classes[name], _kinds[name] = policy, kind
        return policy

    return known


def policies() -> pandas.DataFrame:
    """Every policy: name, summary, paper."""
    return pandas.DataFrame(_native.policies())


def check(policy: str, traces: Traces, pool: str = "best-fit,pytorch,ideal",
          capacity: str = "0.3x,0.5x,0.7x,0.9x,1.1x", **run) -> int:
    """Checks that a policy keeps the contract of all policies, on one trace or several. Two runs are equal. A replay of
    the plan has the same times and counts. The footprint is within the capacity. On real bytes, every read finds the
    expected content. The time is not below the lower bound.

    Returns the number of runs. Raises AssertionError with every run that violates the contract, and the violation.
    """
    runs, broken = 0, []
    for each in each_of(traces):
        trace = each if isinstance(each, Trace) else load(each)
        failures, count = _native.contract(trace.native, **axes({"policy": policy, "pool": pool, "capacity": capacity, **run}))
        runs += count
        broken += [f"{trace.path}: {which}: {what}" for which, what in failures]
    if broken:
        raise AssertionError("\n".join(broken))
    return runs
