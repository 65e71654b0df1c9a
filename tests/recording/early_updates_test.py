"""Updates in backward, as `tidepool advise` prints them: the changed job computes the same bits as the job, and has the
advised peak, both recorded and while it runs."""

import os
import tempfile
import unittest

try:
    import torch  # noqa: F401
except ImportError:
    if "TIDEPOOL_REQUIRE_TORCH" in os.environ:
        raise
    raise unittest.SkipTest("PyTorch is not installed; the tests of early updates need it") from None

from early_updates_table import row

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.environ.get("TIDEPOOL_PROGRAM", os.path.join(HERE, "../../build/tidepool"))


class EarlyUpdates(unittest.TestCase):
    def test_an_mlp_under_sgd_has_the_advised_peak_and_the_same_losses(self):
        with tempfile.TemporaryDirectory() as folder:
            found = row(PROGRAM, "mlp/sgd", folder)
        self.assertTrue(found["same"])
        self.assertEqual(found["measured_plain"], found["peak"])
        self.assertLess(found["predicted"], 0.8 * found["peak"])
        for measured in (found["again"], found["measured"]):
            self.assertLess(abs(found["predicted"] / measured - 1), 0.001)


if __name__ == "__main__":
    unittest.main()
