"""Builds the package as a wheel by one command, and uses it in an environment without any other file of this
project."""
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "traces" / "samples" / "vgg16.tide"
# The build folder. A build takes minutes without the objects of an earlier one.
BUILD = ROOT / "build" / "wheel"


class Wheel(unittest.TestCase):
    def test_it_is_built_and_works_in_a_fresh_environment(self):
        for backend in ("scikit_build_core", "pip"):
            if importlib.util.find_spec(backend) is None:
                self.skipTest(f"{backend}, which builds wheels, is not installed")
        with tempfile.TemporaryDirectory() as folder:
            # The README's command, but with the installed build backend, so that no network is needed.
            subprocess.run([sys.executable, "-m", "pip", "wheel", ROOT / "notebooks", "--no-deps", "--no-build-isolation",
                            "--wheel-dir", folder, "-C", f"build-dir={BUILD}"], check=True, stdout=subprocess.DEVNULL)
            wheel, = pathlib.Path(folder).glob("tidepool-*.whl")
            fresh = pathlib.Path(folder) / "fresh"
            venv.create(fresh, with_pip=True, system_site_packages=True)  # for pandas
            python = fresh / "bin" / "python"
            subprocess.run([python, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", wheel], check=True)
            environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "TIDEPOOL")}
            told = subprocess.run([python, "-c", "import tidepool; print(tidepool.__file__); "
                                   f"print(tidepool.simulate({str(SAMPLE)!r}, policy='lru-swap', capacity='0.7x')['outcome'][0]); "
                                   f"print(tidepool.explain({str(SAMPLE)!r})['live_bytes'])"],
                                  check=True, capture_output=True, text=True, cwd=folder, env=environment)
            where, outcome, live = told.stdout.splitlines()
            self.assertTrue(where.startswith(str(fresh)), where)
            self.assertEqual(outcome, "ok")
            self.assertGreater(int(live), 0)


if __name__ == "__main__":
    unittest.main()
