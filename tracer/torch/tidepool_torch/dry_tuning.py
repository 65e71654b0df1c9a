"""Autotuning in a dry run. Times of a device that is not there choose nothing, and what a benchmark allocates and launches is no
part of a step. So Triton and Inductor take the first configuration that the device can run, and measure none."""

import ctypes
import functools
import sys

from . import triton_uses
from .after_import import after_import, replace
from .compiled import keep_modules

_TIME_MS = 1.0  # of everything that is measured


@functools.cache
def _say():
    """States in the trace, once, that the job would tune on a device."""
    state = getattr(ctypes.CDLL(None), "tidepool_state", None)
    if state is not None:
        state(b"assumed_tuning", b"a dry run tunes no kernels; on a device, the first step also holds what benchmarks allocate")


def _testing(module):
    """Triton's functions that measure a call: it runs once, since it may fail."""

    def measure(function, *_, quantiles=None, return_mode="mean", **__):
        _say()
        function()
        if quantiles is not None:
            return [_TIME_MS] * len(quantiles)
        return [_TIME_MS] if return_mode == "all" else _TIME_MS

    for name in ("do_bench", "do_bench_cudagraph"):
        replace(module, name, measure)


def _autotuner(module):
    """@triton.autotune: configurations behind the first one that runs are not compiled."""
    kind = module.Autotuner
    run, bench = kind.run, kind._bench

    def run_with_first(self, *args, **kwargs):
        self._tidepool_rest = None  # the times of further configurations, when one has run
        return run(self, *args, **kwargs)

    def bench_until_first(self, *args, **kwargs):
        _say()
        if self._tidepool_rest is not None:
            return self._tidepool_rest
        times = bench(self, *args, **kwargs)
        several = isinstance(times, (list, tuple))  # Triton 3.0 has one number from a CUDA graph
        if (min(times) if several else times) < float("inf"):
            self._tidepool_rest = [float("inf")] * 3 if several else float("inf")
        return times

    replace(kind, "run", run_with_first)
    replace(kind, "_bench", bench_until_first)


def _compiler(module):
    """A kernel of Triton that has been loaded."""
    load = module.CompiledKernel._init_handles

    def load_and_tell(self):
        loaded = self.module is not None
        load(self)
        if not loaded:
            triton_uses.tell(self)

    replace(module.CompiledKernel, "_init_handles", load_and_tell)


def _heuristics(module):
    """Inductor's own kernels."""
    kind = module.CachingAutotuner

    def take_first(self, *_, **__):
        _say()
        return {self.launchers[0]: _TIME_MS}

    replace(kind, "benchmark_all_configs", take_first)
    replace(kind, "coordinate_descent_tuning", lambda self, launcher, *_, **__: launcher)


def _benchmarking(module):
    def measure(*_, **__):
        _say()
        return _TIME_MS

    for kind in list(vars(module).values()):
        for name in ("benchmark_gpu", "benchmark_gpu_with_cuda_graph"):
            if isinstance(kind, type) and name in vars(kind):
                replace(kind, name, measure)


def _algorithms(module):
    """Matrix products and attention: an operator of ATen, if there is one, else the first template."""
    call = module.AlgorithmSelectorCache.__call__

    def call_with_one(self, name, choices, *args, **kwargs):
        if len(choices) > 1:
            _say()
        library = [choice for choice in choices if isinstance(choice, module.ExternKernelCaller)]
        return call(self, name, (library or choices)[:1], *args, **kwargs)

    replace(module.AlgorithmSelectorCache, "__call__", call_with_one)


def _padding(module):
    """Operands of matrix products whose sizes the device dislikes: padded copies, which is the larger memory."""
    replace(module, "get_cached_should_pad", lambda _key: True)


_CHANGES = {
    "triton.compiler.compiler": _compiler,
    "triton.testing": _testing,
    "triton.runtime.autotuner": _autotuner,
    "torch._inductor.runtime.triton_heuristics": _heuristics,
    "torch._inductor.runtime.benchmarking": _benchmarking,
    "torch._inductor.select_algorithm": _algorithms,
    "torch._inductor.fx_passes.pad_mm": _padding,
    "torch._inductor.graph": keep_modules,  # in every dry run, since compiled code is kept for later ones
}


def _change(name, module):
    """Changes a module. One of another version may lack what is changed: it tunes as it does on a device."""
    try:
        _CHANGES[name](module)
    except AttributeError as error:
        print(f"tidepool dry run: {name}: {error}; autotuning measures times that mean nothing", file=sys.stderr, flush=True)


def attach():
    """Called when torch has been imported."""
    after_import(_CHANGES, _change)
