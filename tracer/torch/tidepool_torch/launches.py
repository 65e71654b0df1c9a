"""Kernels of Triton that the job launches: operators that PyTorch does not dispatch."""

import contextlib
import functools
import sys

from .raw_file import now


@contextlib.contextmanager
def watched(launched):
    """While entered, calls launched(name, start, end) behind each launch of a kernel by Triton's or Inductor's Python code. Only
    what is imported now is seen."""
    with contextlib.ExitStack() as scope:
        for module, kind in (("triton.runtime.jit", "JITFunction"), ("torch._inductor.runtime.triton_heuristics", "CachingAutotuner")):
            owner = getattr(sys.modules.get(module), kind, None)
            if owner is not None:
                _watch(owner, launched, scope)
        yield


def _watch(owner, launched, scope):
    run = owner.run

    @functools.wraps(run)
    def run_and_tell(self, *args, **kwargs):
        start = now()
        result = run(self, *args, **kwargs)
        if not kwargs.get("warmup"):
            launched(_name_of(self), start, now())
        return result

    owner.run = run_and_tell
    scope.callback(lambda: setattr(owner, "run", run) if owner.run is run_and_tell else None)


def _name_of(kernel):
    meta = getattr(kernel, "inductor_meta", None) or {}
    return meta.get("kernel_name") or getattr(getattr(kernel, "fn", None), "__name__", "triton")
