"""torch.compile in a script: whether it is there, and from which code of the user's its kernels come."""

import bisect
import functools
import os
import re
import sys
import warnings

import torch

from .after_import import after_import, replace
from .graphs import running
from .user_line import is_user_code


class CompileWatch:
    """Tells whether torch.compile was called or has compiled anything. Calls begun(True) before the first call of torch.compile.
    Calls that compile nothing (TORCH_COMPILE_DISABLE=1, disable=True) do not count. Those while a module is imported, as by
    decorators of a library, count once something is compiled; begun(False) is called before the first other call, if it is not
    the first one.

    foreign   whether a compiler was asked for that is neither Inductor nor runs operators"""

    REASON = "torch.compile replaces the ops"

    def __init__(self, begun):
        self._called = self._counts = self.foreign = False
        compile = torch.compile

        @functools.wraps(compile)
        def watched(*args, **kwargs):
            if not kwargs.get("disable") and not _disabled():
                self.foreign |= kwargs.get("backend", "inductor") not in _KNOWN
                first, counts = not self._called, not (self._counts or _imports())
                self._called, self._counts = True, self._counts or counts
                if first or counts:
                    begun(first)
            return compile(*args, **kwargs)

        self._watched, self._compile = watched, compile
        torch.compile = watched

    def stop(self):
        if torch.compile is self._watched:
            torch.compile = self._compile

    def compiles(self):
        dynamo = sys.modules.get("torch._dynamo.utils")
        return self._counts or (dynamo is not None and dynamo.counters["frames"]["ok"] > 0)


_KNOWN = "inductor", "eager", "aot_eager", "aot_eager_decomp_partition"


def _disabled():
    import torch._dynamo.config  # as torch.compile does

    if torch._dynamo.config.disable:  # then the recorder's hooks on modules would have the job warned
        warnings.filterwarnings("ignore", "Using `torch.compile\\(module\\)` when there are global hooks")
    return torch._dynamo.config.disable


def _imports():
    """Whether a module other than the script is being imported."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != "<frozen importlib._bootstrap>":
        frame = frame.f_back
    return frame is not None


_ADDED = re.compile(r"(^|\.)_orig_mod(?=\.|$)")


def plain_path(path):
    """The path of a module or parameter without what torch.compile adds."""
    return _ADDED.sub("", path).removeprefix(".")


# Inductor keeps, for each line of the code that it makes, the stack that the user's code had. This line is added to it.
_MODULE = "  of module "
_FRAME = re.compile(r'File "(.+)", line (\d+), in ')
# The attributes of a module by name, and a module that the closure of its own wrapped forward holds.
_WRAPPED = re.compile(r"\.(?:__dict__|\w+\.__closure__\[\d+\]\.cell_contents\.__self__)")
_PATH = re.compile(r"_modules\['([^']*)'\]|\['([^']*)'\]|\[(\d+)\]|\.(\w+)")


def note_modules():
    """From now on, what Inductor compiles knows the modules of its operators. Called before the job compiles anything."""
    after_import(["torch._inductor.graph"], lambda _name, module: keep_modules(module))


def keep_modules(module):
    """Changes torch._inductor.graph."""
    lower = module.GraphLowering.__init__

    def lower_with_modules(self, gm, *args, **kwargs):
        path = ""
        for node in gm.graph.nodes:  # nodes that the compiler adds, as to pad a matrix, are beside those that need them
            stack, path = node.meta.get("stack_trace") or "", _module_of(node) or path
            if path and _MODULE not in stack:
                node.meta["stack_trace"] = f"{stack}{_MODULE}{path}\n"
        lower(self, gm, *args, **kwargs)

    replace(module.GraphLowering, "__init__", lower_with_modules)


def _module_of(node):
    """The path of the innermost module whose call made a node, as in layers.0.mlp; "" if it is not known."""
    calls = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    path = list(calls.values())[-1][0] if calls else ""
    parts = [next(filter(None, match)) for match in _PATH.findall(_WRAPPED.sub("", path.partition("]")[2]))]
    return ".".join(part for part in parts if part not in ("_modules", "_orig_mod"))


class CompiledPlaces:
    """Finds the user's code behind the line of a compiler's code that runs."""

    def __init__(self):
        self._known = {}  # (file, line), or the node of a graph -> (module, line of the user's code)

    def now(self):
        """(module, line) of the user's code, each "" if it is not known; None if no code of the compiler's runs."""
        node = running()
        if node is not None:
            if node not in self._known:
                self._known[node] = _module_of(node), _line_of(node.meta.get("stack_trace") or "")
            return self._known[node]
        cache = sys.modules.get("torch._inductor.codecache")
        if cache is None:
            return None
        maps = cache.PyCodeCache.linemaps
        frame = sys._getframe(1)
        while frame is not None:
            file = frame.f_code.co_filename
            if file in maps:
                where = file, frame.f_lineno
                if where not in self._known:
                    self._known[where] = _place(maps[file], frame.f_lineno)
                return self._known[where]
            frame = frame.f_back
        return None


def _place(lines, line):
    """lines: the first line of each part, ascending; and for each, the user's stack, innermost frame last."""
    stack = ""
    if len(lines) == 2:
        index = bisect.bisect_right(lines[0], line) - 1
        stack = (lines[1][index] if index >= 0 else None) or ""
    return stack.partition(_MODULE)[2].strip(), _line_of(stack)


def _line_of(stack):
    """The innermost line of the user's code in a stack."""
    frames = [(file, number) for file, number in _FRAME.findall(stack) if is_user_code(file)]
    return f"{os.path.basename(frames[-1][0])}:{frames[-1][1]}" if frames else ""
