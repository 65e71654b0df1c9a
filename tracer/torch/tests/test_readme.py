"""The program in README.md runs as printed."""

import os
import re
import tempfile
import unittest

from support import torch
from torch import nn


class Readme(unittest.TestCase):
    def test_the_readmes_program_records_a_model(self):
        with open(os.path.join(os.path.dirname(__file__), "..", "README.md"), encoding="utf-8") as file:
            (program,) = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)

        def model():
            return nn.Sequential(nn.Conv2d(3, 8, 7, stride=8), nn.Flatten(), nn.Linear(8 * 28 * 28, 1000))

        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                exec(compile(program, "README.md", "exec"), {"MyModel": model})
                with open("step.jsonl", encoding="utf-8") as trace:
                    self.assertIn('"name":"2.weight.grad"', trace.read())
            finally:
                os.chdir(before)


if __name__ == "__main__":
    unittest.main()
