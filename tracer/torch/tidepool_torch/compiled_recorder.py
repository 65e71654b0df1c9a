"""Recording of a job that torch.compile compiles, on a GPU or the stand-in for one: these see the kernels and the memory of
compiled code. Import this module only in jobs that compile: its decorators import the compiler."""

import os
import sys

import torch
from torch.utils._pytree import tree_leaves

from . import graphs
from .compiled import CompiledPlaces
from .guest import unseen
from .launches import watched as watched_launches
from .live_recorder import LivePosition, LiveRecorder
from .program import Buffer
from .raw_file import now
from .storages import storage_of, wraps


class CompiledPosition(LivePosition):
    """Without hooks on modules, which would be compiled or warned of. The compiler knows the modules of its code."""

    def __init__(self, models, call_ended):
        super().__init__(models, call_ended)
        self._places = CompiledPlaces()

    def now(self):
        module, phase, line = super().now()
        compiled_module, compiled_line = self._places.now() or ("", "")
        return compiled_module or module, phase, compiled_line or line

    def _module_hooks(self):
        return []


def _in_compiled_frame():
    """Whether a hook runs within a call that torch.compile has compiled, as of an optimizer's step: below the compiler's call of
    the hook there is another one. PyTorch restores its dispatch state at the end of such a call, so no mode may begin or end."""
    frame, calls = sys._getframe(1), 0
    while frame is not None and calls < 2:
        calls += frame.f_code.co_filename == torch._dynamo.eval_frame.__file__
        frame = frame.f_back
    return calls == 2


def _compiles_again():
    """Whether this PyTorch compiles a job again while a dispatch mode is on: 2.4 and 2.9 do, 2.15 does not. A dry run may."""
    return tuple(map(int, torch.__version__.split(".")[:2])) < (2, 15) and "TIDEPOOL_DRY_DEVICE" not in os.environ


class CompiledRecorder(LiveRecorder):
    """If the step of the optimizer is compiled, or the job would be compiled again for a dispatch mode, only what Triton launches
    has a place in the program."""

    # The job's frames are compiled while this runs; these would be, too.
    __torch_dispatch__ = torch._disable_dynamo(LiveRecorder.__torch_dispatch__)
    launched = torch._disable_dynamo(LiveRecorder.launched)

    def __init__(self, *arguments):
        self._is_mode = False
        super().__init__(*arguments)
        self._file.write(kind="info", key="ops", value="graphs" if self._allocates else "compiled")

    @property
    def on_cpu(self):
        return self._allocates

    @classmethod
    def _should_skip_dynamo(cls):
        return True

    def add_existing(self, buffer):
        """Memory that compiled code has allocated is seen when an operator uses it. Its kind follows from its uses."""
        if buffer.kind == "input" and not self._allocates:
            buffer.kind = "unknown"
        super().add_existing(buffer)

    def _made(self, node, given, result):
        """Names what a node of a graph has made, as far as backward may need it."""
        if self.lost or torch._C._current_graph_task_id() != -1 or not graphs.name_of(node):
            return
        try:
            with unseen():
                several = isinstance(result, (list, tuple))
                given = {storage_of(each)._cdata for each in tree_leaves(given) if isinstance(each, torch.Tensor)}
                for place, each in enumerate(result if several else [result]):
                    buffer = self._storages.known(each) if isinstance(each, torch.Tensor) and not wraps(type(each)) else None
                    if isinstance(buffer, Buffer) and not buffer.name and storage_of(each)._cdata not in given:
                        buffer.name = graphs.name_of(node) + (f"[{place}]" if several else "")
                        self._tell("existing", buffer, now())
        except Exception as error:
            self.lose(error)

    def _enter_mode(self):
        graphs.watcher = self._made
        if _in_compiled_frame() or _compiles_again():
            self._scope.enter_context(watched_launches(self.launched))
        else:
            super()._enter_mode()
            self._is_mode = True

    def _leave_mode(self, *error):
        graphs.watcher = None
        if self._is_mode and _in_compiled_frame():
            self.lost = True  # ops pass through
        else:
            super()._leave_mode(*error)

    def _new_position(self):
        return CompiledPosition(self.models(), self._step.call_ended)
