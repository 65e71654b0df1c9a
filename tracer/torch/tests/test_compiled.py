"""What the recorder takes of torch.compile and Triton. Neither needs to be able to compile here."""

import os
import sys
import tempfile
import types
import unittest
from unittest import mock

from support import torch

from torch.optim.optimizer import register_optimizer_step_post_hook

from tidepool_torch import compiled, launches
from tidepool_torch.compiled_recorder import _compiles_again, _in_compiled_frame


class CompileWatchTest(unittest.TestCase):
    def watched(self, **options):
        """Whether a call of torch.compile with these options counts."""
        begun = []
        watch = compiled.CompileWatch(begun.append)
        self.addCleanup(watch.stop)
        torch.compile(lambda: None, **options)
        return bool(begun)

    def test_calls_that_compile_nothing_do_not_count(self):
        self.assertTrue(self.watched(backend="eager"))
        self.assertFalse(self.watched(disable=True))
        with mock.patch("torch._dynamo.config.disable", True), compiled.warnings.catch_warnings():
            self.assertFalse(self.watched())

    def test_a_decorator_of_a_library_counts_once_something_is_compiled(self):
        begun = []
        watch = compiled.CompileWatch(begun.append)
        self.addCleanup(watch.stop)
        with tempfile.TemporaryDirectory() as folder, mock.patch("sys.path", [folder, *sys.path]):
            with open(os.path.join(folder, "tidepool_library.py"), "w", encoding="utf-8") as file:
                file.write("import torch\n\n@torch.compile(backend='eager')\ndef double(x):\n    return 2 * x\n")
            import tidepool_library
        self.addCleanup(sys.modules.pop, "tidepool_library")
        with mock.patch.dict("torch._dynamo.utils.counters", clear=True):
            self.assertEqual((begun, watch.compiles()), ([True], False))
            tidepool_library.double(torch.ones(1))
            self.assertTrue(watch.compiles())
        with mock.patch.dict("torch._dynamo.utils.counters", clear=True):
            torch.compile(lambda: None)
            self.assertEqual((begun, watch.compiles()), ([True, False], True))


class PlaceTest(unittest.TestCase):
    def module_of(self, *paths):
        calls = {str(number): (path, torch.nn.Module) for number, path in enumerate(paths)}
        return compiled._module_of(types.SimpleNamespace(meta={"nn_module_stack": calls}))

    def test_the_innermost_module_has_the_path_that_it_has_in_the_model(self):
        self.assertEqual(self.module_of("L['self']", "L['self'].layers[3].mlp"), "layers.3.mlp")
        self.assertEqual(self.module_of("L['fn'].0.1"), "0.1")
        self.assertEqual(self.module_of("L['self']._modules['blocks']._modules['2']"), "blocks.2")
        self.assertEqual(self.module_of("L['self']._orig_mod.head"), "head")
        self.assertEqual(self.module_of("L['self'].__dict__['kept'].mlp"), "kept.mlp")
        self.assertEqual(self.module_of("L['self'].mlp.forward.__closure__[0].cell_contents.__self__.w1"), "mlp.w1")
        self.assertEqual(self.module_of("L['self']"), "")
        self.assertEqual(self.module_of(), "")

    def test_the_place_of_a_line_is_that_of_the_part_that_it_is_in(self):
        site = torch.__path__[0] + "/nn/functional.py"
        stack = (f'  File "/home/me/model.py", line 30, in forward\n    x = self.mlp(x)\n'
                 f'  File "{site}", line 5, in gelu\n    return y\n')
        lines = (10, 20), (stack + "  of module mlp\n", None)
        self.assertEqual(compiled._place(lines, 15), ("mlp", "model.py:30"))
        self.assertEqual(compiled._place(lines, 9), ("", ""))
        self.assertEqual(compiled._place(lines, 25), ("", ""))
        self.assertEqual(compiled._place([], 25), ("", ""))

    def test_paths_are_those_of_the_model_before_it_was_compiled(self):
        self.assertEqual([compiled.plain_path(path) for path in ("_orig_mod", "_orig_mod.head", "layers.0._orig_mod.mlp", "a_orig_mod")],
                         ["", "head", "layers.0.mlp", "a_orig_mod"])


class LaunchesTest(unittest.TestCase):
    def test_launches_are_told_with_the_names_of_their_kernels_while_they_are_watched(self):
        class JITFunction:
            def __init__(self, fn):
                self.fn = fn

            def run(self, *arguments, warmup=False):
                return arguments

        run = JITFunction.run
        module = types.SimpleNamespace(JITFunction=JITFunction)
        told = []

        def squared():
            """A kernel."""

        with mock.patch.dict(sys.modules, {"triton.runtime.jit": module}):
            with launches.watched(lambda name, start, end: told.append((name, start <= end))):
                self.assertEqual(JITFunction(squared).run(3, warmup=False), (3,))
                JITFunction(squared).run(warmup=True)
        self.assertEqual(told, [("squared", True)])
        self.assertIs(JITFunction.run, run)


class CompiledFrameTest(unittest.TestCase):
    def test_a_hook_knows_whether_the_step_of_its_optimizer_is_compiled(self):
        found = []
        hook = register_optimizer_step_post_hook(
            torch._disable_dynamo(lambda *_: found.append(_in_compiled_frame())))
        self.addCleanup(hook.remove)
        parameter = torch.nn.Parameter(torch.ones(2))
        parameter.grad = torch.ones(2)
        optimizer = torch.optim.SGD([parameter])
        optimizer.step()
        self.addCleanup(torch._dynamo.utils.counters.clear)  # by which a recorder knows of what was compiled
        torch.compile(optimizer.step, backend="eager")()
        self.assertEqual(found, [False, True])

    def test_a_job_on_a_gpu_is_not_compiled_again_for_the_recorder(self):
        graphs = []

        def backend(graph, _inputs):
            graphs.append(graph)
            return graph.forward

        class Mode(torch.utils._python_dispatch.TorchDispatchMode):
            @classmethod
            def ignore_compile_internals(cls):
                return True

            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                return function(*args, **(kwargs or {}))

        self.addCleanup(torch._dynamo.utils.counters.clear)
        compiled_model = torch.compile(torch.nn.Linear(2, 2), backend=backend)
        compiled_model(torch.ones(2, 2))
        with Mode():
            compiled_model(torch.ones(2, 2))
        self.assertEqual(len(graphs) > 1, _compiles_again())


if __name__ == "__main__":
    unittest.main()
