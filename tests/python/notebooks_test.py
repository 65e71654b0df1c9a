"""The notebooks: their code runs on few and small inputs, and the committed files have the output of every cell."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

try:
    import matplotlib  # noqa: F401
    import pandas  # noqa: F401
except ImportError as error:
    raise unittest.SkipTest(f"skipped: {error}") from error


def cells(path):
    return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]


class Notebooks(unittest.TestCase):
    def test_there_are_at_least_eight(self):
        self.assertGreaterEqual(len(NOTEBOOKS), 8)

    def test_their_code_runs(self):
        for path in NOTEBOOKS:
            with self.subTest(path.name), tempfile.TemporaryDirectory() as folder:
                code = "\n".join("".join(cell["source"]) for cell in cells(path))
                environment = {**os.environ, "TIDEPOOL_SMALL": "1", "MPLBACKEND": "Agg",
                               "TIDEPOOL_SAMPLES": str(ROOT / "traces" / "samples")}
                ran = subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True,
                                     text=True)
                self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_their_output_is_that_of_a_whole_run(self):
        for path in NOTEBOOKS:
            with self.subTest(path.name):
                counts = [cell["execution_count"] for cell in cells(path)]
                self.assertEqual(counts, list(range(1, len(counts) + 1)))
                outputs = [output for cell in cells(path) for output in cell["outputs"]]
                self.assertFalse([output for output in outputs if output["output_type"] == "error"])
                self.assertTrue([output for output in outputs if "image/png" in output.get("data", {})])


if __name__ == "__main__":
    unittest.main()
