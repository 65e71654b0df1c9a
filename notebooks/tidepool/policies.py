"""Policies: what there is, and classes in Python for trying out an idea.

    @tidepool.register("largest-first", kind="remat")
    class LargestFirst(tidepool.Policy):
        "Drops the largest version first."
        def make_room(self, view, request):
            versions = view.droppable_versions()
            return [tidepool.drop(max(versions, key=view.size))] if versions else []

    tidepool.simulate(trace, policy="largest-first", capacity="0.5x")
    tidepool.check("largest-first", [trace])

A policy in Python decides exactly what the same in C++ would; it is slower by the calls into the interpreter, of which
only one runs at a time.
"""

from __future__ import annotations

from collections.abc import Iterable

import pandas

from tidepool import _native
from tidepool.runs import axes
from tidepool.traces import Trace


class Policy:
    """What is kept, swapped or recomputed. Define what you need of these (they are not here, so that what is missing
    costs nothing):

        start(view)                  a step begins
        make_room(view, request)     `request.size` bytes do not fit; asked again while they still do not
        before_run(view, op)         an op is about to run: prefetch, or evict early
        plan(trace, capacity)        once, before the step

    Each returns a list of actions, or None: drop(version), swap_out(version), swap_in(version), wait(version), run(op).
    In plan() every action says before which op it is done: drop(version, before=op).
    """


_classes: dict[str, type] = {}
_kinds: dict[str, str] = {}


def _made(name: str) -> Policy:
    """An object of the class last registered, whose plan() is given what it expects."""
    policy = _classes[name]()
    if hasattr(policy, "plan"):
        plan = policy.plan
        policy.plan = lambda native, capacity: plan(Trace("the run's trace", native), capacity)
    return policy


def register(name: str, kind: str, paper: str = "none"):
    """Makes a class known as a policy. Registered again, as notebooks do, the new class takes the old one's place;
    results that a sweep kept are those of the class of that time.

    kind: swap, remat or hybrid; says which lower bound holds for its results.
    Raises ValueError if the name is a policy of another kind already.
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


def check(policy: str, traces: Iterable[Trace], pool: str = "best-fit,pytorch,ideal",
          capacity: str = "0.3x,0.5x,0.7x,0.9x,1.1x", **run) -> int:
    """Holds a policy to the contract of all: the same twice; its plan, replayed, costs what was said; within the
    capacity; on real bytes every read finds what it should; no faster than the lower bound.

    Returns the number of runs. Raises AssertionError with every run that breaks the contract, and how.
    """
    runs, broken = 0, []
    for trace in traces:
        failures, count = _native.contract(trace.native, **axes({"policy": policy, "pool": pool, "capacity": capacity, **run}))
        runs += count
        broken += [f"{trace.path}: {which}: {what}" for which, what in failures]
    if broken:
        raise AssertionError("\n".join(broken))
    return runs
