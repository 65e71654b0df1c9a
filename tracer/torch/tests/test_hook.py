"""The hook that Python loads when it starts attaches once torch has been executed, and leaves no other mark on the job.
A small package stands for torch."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
INJECT = os.path.abspath(os.path.join(HERE, "../../../validator/live/inject"))
ATTACH = "def attach():\n import torch\n print('attached to', torch.ready)\n"
SEARCH = "import importlib.machinery, importlib.util, sys\n"
OWN_FINDER = SEARCH + """
class First:
    def find_spec(self, name, path=None, target=None):
        return CHANGED if name == "torch" else None
sys.meta_path.insert(0, First())
"""


class Hook(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.write("packages/tidepool_torch/__init__.py", "")
        self.write("packages/tidepool_torch/live.py", ATTACH)
        self.write("user/torch/__init__.py", "import torch.inner\nready = 'all of it'\n")
        self.write("user/torch/inner.py", "import bisect\n")

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def run_job(self, job, hook=True, options=()):
        self.write("job.py", job)
        packages, user = (os.path.join(self.folder, name) for name in ("packages", "user"))
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TIDEPOOL"))}
        environment["PYTHONPATH"] = os.pathsep.join([INJECT, packages, user] if hook else [user])
        if hook:
            environment["TIDEPOOL_RECORD_TORCH"] = "1"
        result = subprocess.run([sys.executable, *options, os.path.join(self.folder, "job.py")], capture_output=True,
                                text=True, env=environment)
        return result.returncode, result.stdout, result.stderr

    def attaches(self, job, before="", after=""):
        self.assertEqual(self.run_job(job), (0, before + "attached to all of it\n" + after, ""))

    def test_it_attaches_when_torch_is_imported_and_only_once(self):
        self.attaches("import torch, importlib\nimportlib.reload(torch)\nimport colorsys")

    def test_it_attaches_whoever_looked_for_torch_before(self):
        self.attaches(SEARCH + "for _ in range(3): importlib.util.find_spec('torch')\nimport torch")

    def test_it_attaches_when_a_lazy_module_is_executed(self):
        self.attaches(SEARCH + """
spec = importlib.util.find_spec("torch")
spec.loader = importlib.util.LazyLoader(spec.loader)
torch = sys.modules["torch"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(torch)
import colorsys
print("not yet")
torch.ready
print("done")
""", before="not yet\n", after="done\n")

    def test_it_attaches_in_any_thread(self):
        self.attaches("import threading\nthread = threading.Thread(target=__import__, args=('torch',))\n"
                      "thread.start()\nthread.join()")

    def test_a_finder_before_it_delays_it_to_the_next_import(self):
        spec = "importlib.machinery.PathFinder.find_spec(name, path)"
        self.attaches(OWN_FINDER.replace("CHANGED", spec) + "import torch\nprint('not yet')\nimport colorsys\n",
                      before="not yet\n")

    def test_a_loader_that_cannot_be_changed_delays_it_to_the_next_import(self):
        self.attaches(SEARCH + """
class Loader:
    __slots__ = ()
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        module.ready = "all of it"
class Finder:
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, Loader()) if name == "torch" else None
sys.meta_path.insert(1, Finder())
import torch, colorsys
""")

    @unittest.skipIf(sys.version_info < (3, 10), "loaders of archives execute modules in a way of their own")
    def test_it_attaches_to_torch_in_an_archive(self):
        with zipfile.ZipFile(os.path.join(self.folder, "torch.zip"), "w") as archive:
            archive.writestr("torch/__init__.py", "import torch.inner\nready = 'all of it'\n")
            archive.writestr("torch/inner.py", "")
        self.attaches(f"import sys\nsys.path.insert(1, {self.folder + '/torch.zip'!r})\nimport torch\n"
                      "print('zip' in torch.__file__)", after="True\n")

    def test_an_import_that_fails_does_not_use_it_up(self):
        self.write("user/torch/inner.py", "import sys\nif not hasattr(sys, 'again'): raise OSError\n")
        self.attaches("import sys\ntry:\n import torch\nexcept OSError:\n sys.again = 1\nimport torch")

    def test_a_child_process_has_it_too(self):
        self.attaches("import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'import torch'], "
                      "capture_output=True, text=True).stdout, end='')")

    def test_a_module_that_is_no_pytorch_does_not_end_the_job(self):
        self.write("packages/tidepool_torch/live.py", "from torch import nn\n")
        code, output, errors = self.run_job("import torch\nprint(torch.ready)")
        self.assertEqual((code, output), (0, "all of it\n"))
        self.assertRegex(errors, r"^tidepool: ImportError: cannot import name 'nn' .*; the job runs without Tidepool\n$")

    def test_the_job_sees_the_same_python_as_without_it(self):
        looks = """
import atexit, os, signal, sys, threading
try:
    import sitecustomize
    print(sitecustomize.__file__, getattr(sitecustomize, "mine", None))
except Exception as error:
    print(error)
import torch
print(sys.path, [type(finder) for finder in sys.meta_path], sys.path_hooks, torch.__spec__, vars(torch.__loader__))
print(threading.active_count(), sys.getrecursionlimit(), signal.getsignal(signal.SIGINT), os.getcwd(), os.umask(0))
print(sorted(os.listdir("/proc/self/fd")), sys.gettrace(), sys.getprofile(), sys.excepthook)
"""
        self.write("packages/tidepool_torch/live.py", "def attach():\n pass\n")
        for own in (None, "mine = 1\n", "raise ValueError('mine')\n", "import no_such_module\n"):
            with self.subTest(own=own):
                if own is not None:
                    self.write("user/sitecustomize.py", own)
                plain = self.run_job(looks, hook=False)
                self.assertEqual(plain[0], 0)
                hooked = self.run_job(looks)
                self.assertEqual([without_addresses(each) for each in plain[1:]],
                                 [without_addresses(each) for each in hooked[1:]])


def without_addresses(text):
    return re.sub("0x[0-9a-f]+", "0x", text)


if __name__ == "__main__":
    unittest.main()
