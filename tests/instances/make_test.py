"""The maker of traces/instances: which plan and which bound of a row stay."""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "traces" / "instances"))
sys.dont_write_bytecode = True
import make  # noqa: E402

NAME = "vgg16-60-12GB"


def row(time, bound, bound_name):
    return {"name": NAME, "baseline_ns": 100, "time_ns": time, "bound_ns": bound, "bound": bound_name}


class Make(unittest.TestCase):
    def again(self, stored, made):
        """The row after `make.py --again` has made a new one."""
        with tempfile.TemporaryDirectory() as folder:
            rows = pathlib.Path(folder) / "instances.json"
            rows.write_text(json.dumps([stored]))
            with mock.patch.multiple(make, HERE=rows.parent, ROWS=rows, make_row=lambda *_: (made, "{}")), \
                    mock.patch.object(sys, "argv", ["make.py", "--again", NAME]), \
                    contextlib.redirect_stdout(io.StringIO()):
                make.main()
            return json.loads(rows.read_text())[0]

    def test_a_better_plan_does_not_replace_a_better_bound(self):
        self.assertEqual(self.again(row(130, 120, "theirs"), row(125, 110, "cut")), row(125, 120, "theirs"))

    def test_a_better_plan_brings_a_better_bound(self):
        self.assertEqual(self.again(row(130, 120, "theirs"), row(125, 121, "cut")), row(125, 121, "cut"))

    def test_a_plan_that_is_not_better_changes_nothing(self):
        self.assertEqual(self.again(row(130, 120, "theirs"), row(130, 125, "cut")), row(130, 120, "theirs"))


if __name__ == "__main__":
    unittest.main()
