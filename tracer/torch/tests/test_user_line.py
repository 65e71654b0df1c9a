"""The line of the user's code that each op has: in forward, in backward, in the optimizer, through packages."""

import os
import sys
import tempfile
import unittest
import unittest.mock
from types import SimpleNamespace

from support import record, short, torch

from tidepool_torch.user_line import UserLine, is_user_code

HERE = "test_user_line.py"


def line_after(function, further):
    """The line that is `further` lines below the first line of a function."""
    return f"{HERE}:{function.__code__.co_firstlineno + further}"


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 8), torch.nn.Linear(8, 2)

    def forward(self, x):
        hidden = self.first(x)
        hidden = torch.nn.functional.gelu(hidden)
        return self.second(hidden)


def net():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=True)
    x = torch.randn(16, 4)

    def step():
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    net.step = step
    return model, optimizer, step


class Lines(unittest.TestCase):
    def setUp(self):
        self.ops = record(net).ops()

    def lines(self, phase, name):
        return [op.line for op in self.ops if op.phase == phase and short(op.name) == name]

    def test_an_op_has_the_innermost_line_of_the_users_code_that_called_pytorch(self):
        self.assertEqual(self.lines("forward", "addmm"), [line_after(Net.forward, 1), line_after(Net.forward, 3)])
        self.assertEqual(self.lines("forward", "gelu"), [line_after(Net.forward, 2)])
        self.assertEqual(self.lines("forward", "sum"), [line_after(net.step, 1)])

    def test_an_op_of_backward_has_the_line_of_the_forward_op_whose_gradient_it_computes(self):
        self.assertEqual(self.lines("backward", "gelu_backward"), [line_after(Net.forward, 2)])
        self.assertEqual(self.lines("backward", "mm"), 2 * [line_after(Net.forward, 3)] + [line_after(Net.forward, 1)])

    def test_an_op_of_the_optimizer_has_the_line_that_calls_the_optimizer(self):
        self.assertEqual({op.line for op in self.ops if op.phase == "optimizer"}, {line_after(net.step, 2)})

    def test_a_checkpointed_module_that_runs_again_in_backward_has_its_lines(self):
        def make():
            model, optimizer, _ = net()
            x = torch.randn(16, 4, requires_grad=True)

            def step():
                torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False).sum().backward()

            return model, optimizer, step

        self.ops = record(make).ops()
        self.assertEqual(self.lines("forward", "gelu"), 2 * [line_after(Net.forward, 2)])
        self.assertEqual(self.lines("backward", "gelu_backward"), [line_after(Net.forward, 2)])

    def test_the_trace_has_the_lines(self):
        lines = [line for line in record(net).lines() if line.get("run") == "aten::gelu"]
        self.assertEqual([line["line"] for line in lines], [line_after(Net.forward, 2)])


class Files(unittest.TestCase):
    def test_scripts_modules_and_cells_of_notebooks_are_user_code(self):
        for file in (__file__, "/home/ada/torch/train.py", "net/model.py", "<stdin>", "<ipython-input-3-0a1b>",
                     "/tmp/ipykernel_71/4242.py"):
            self.assertTrue(is_user_code(file), file)

    def test_python_pytorch_packages_and_generated_code_are_not_user_code(self):
        for file in (torch.nn.__file__, unittest.__file__, sys.modules[UserLine.__module__].__file__, "<string>",
                     "<frozen importlib._bootstrap>", "/opt/env/lib/python3.9/site-packages/einops/einops.py",
                     "/usr/lib/python3/dist-packages/numpy/__init__.py", "/tmp/torchinductor_ada/xy/cxyz.py"):
            self.assertFalse(is_user_code(file), file)

    def test_a_folder_on_the_path_in_which_packages_are_installed_is_not_the_users(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(sys, "path", [*sys.path, folder]):
            for name in ("vendored", "own"):
                os.mkdir(os.path.join(folder, name))
            os.mkdir(os.path.join(folder, "vendored", "einops-0.8.1.dist-info"))
            sys.path += [os.path.join(folder, name) for name in ("vendored", "own")]
            self.assertFalse(is_user_code(os.path.join(folder, "vendored", "einops", "einops.py")))
            self.assertTrue(is_user_code(os.path.join(folder, "own", "model.py")))

    def test_an_entry_of_the_path_that_is_no_text_is_passed_over(self):
        with unittest.mock.patch.object(sys, "path", [b"/srv/code", None, *sys.path]):
            self.assertTrue(is_user_code("/home/ada/net/model.py"))

    def test_a_frame_that_is_at_no_line_stands_at_the_begin_of_its_function(self):
        frame = frame_without_line("/home/ada/net/model.py", first=7)
        with unittest.mock.patch.object(sys, "_getframe", lambda _: frame):
            self.assertEqual(UserLine().now(), "model.py:7")

    def test_without_code_of_the_user_there_is_no_line(self):
        file = sys.modules[UserLine.__module__].__file__
        found = {}
        exec(compile("found['line'] = user_line.now()", file, "exec"), {"found": found, "user_line": Hidden()})
        self.assertEqual(found["line"], "")


def frame_without_line(file, first):
    """A frame whose instruction belongs to no line, as CPython 3.10 and later have them."""
    return SimpleNamespace(f_code=SimpleNamespace(co_filename=file, co_firstlineno=first), f_lineno=None, f_back=None)


class Hidden(UserLine):
    """Treats this test file as code that is not the user's."""

    def __init__(self):
        super().__init__()
        self._is_user[__file__] = self._is_user[sys.argv[0]] = False


if __name__ == "__main__":
    unittest.main()
