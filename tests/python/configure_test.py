"""A build folder that was configured without pybind11 has the package as a target when it is configured again with it."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@unittest.skipUnless(shutil.which("cmake") and shutil.which("ninja"), "skipped: cmake or ninja is not installed")
class Configure(unittest.TestCase):
    def test_the_package_is_a_target_as_soon_as_pybind11_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            def has_package(missing):
                subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", f"-DPython3_EXECUTABLE={sys.executable}",
                                f"-DCMAKE_DISABLE_FIND_PACKAGE_pybind11={missing}"], check=True, capture_output=True)
                return "tidepool_python" in (pathlib.Path(folder) / "build.ninja").read_text()

            self.assertFalse(has_package(missing=True))
            self.assertTrue(has_package(missing=False))


if __name__ == "__main__":
    unittest.main()
