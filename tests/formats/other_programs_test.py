"""Imports what JAX and TensorFlow write, and compares the counts with those programs' own.

TIDEPOOL_JAX_PYTHON and TIDEPOOL_TENSORFLOW_PYTHON name Pythons that have them; without one, its tests are skipped. No GPU is
needed. TIDEPOOL_PROGRAM names the program, if it is not build/tidepool.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("TIDEPOOL_PROGRAM", str(ROOT / "build/tidepool"))

JAX_JOB = """
import jax, jax.numpy as jnp

def loss(weights, x):
    for weight in weights:
        x = jnp.tanh(x @ weight)
    return (x ** 2).mean()

weights = [jnp.ones((256, 256)) * 0.01 * i for i in range(6)]
x = jnp.ones((128, 256))
gradients = jax.jit(jax.value_and_grad(loss))(weights, x)
jax.block_until_ready(gradients)
jax.profiler.save_device_memory_profile("memory.prof")
"""
TENSORFLOW_JOB = """
import glob, json
import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

weights = [tf.Variable(tf.ones((256, 256))) for _ in range(4)]
tf.profiler.experimental.start("log")
for _ in range(2):
    with tf.GradientTape() as tape:
        x = tf.ones((128, 256))
        for weight in weights:
            x = tf.tanh(x @ weight)
        loss = tf.reduce_mean(x ** 2)
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(gradient)
tf.profiler.experimental.stop()
space = xplane_pb2.XSpace()
[file] = glob.glob("log/plugins/profile/*/*.xplane.pb")
space.ParseFromString(open(file, "rb").read())
live, counts = set(), {"allocations": 0, "older": 0}
events = []
for plane in space.planes:
    for line in plane.lines:
        for event in line.events:
            name = plane.event_metadata[event.metadata_id].name
            if name in ("MemoryAllocation", "MemoryDeallocation"):
                address = [s.int64_value for s in event.stats if plane.stat_metadata[s.metadata_id].name == "addr"][0]
                events.append((line.timestamp_ns * 1000 + event.offset_ps, name, address))
for _, name, address in sorted(events):
    if name == "MemoryAllocation":
        counts["allocations"] += 1
        live.add(address)
    else:
        counts["older"] += address not in live
        live.discard(address)
json.dump({"file": file, **counts}, open("counts.json", "w"))
try:
    tf.zeros((1 << 25,))
except tf.errors.ResourceExhaustedError:
    pass
"""


def info(file, folder, *options):
    """What the trace of an imported file is."""
    trace = str(folder / "imported.tide")
    subprocess.run([PROGRAM, "import", str(file), *options, "-o", trace], check=True, capture_output=True, timeout=60)
    return json.loads(subprocess.run([PROGRAM, "info", trace, "--json"], check=True, capture_output=True, timeout=60).stdout)


class Jobs(unittest.TestCase):
    def run_job(self, variable, module, text, **environment):
        python = os.environ.get(variable)
        if not python:
            self.skipTest(f"{variable} names no Python with {module}")
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "job.py").write_text(text)
        ran = subprocess.run([python, "job.py"], cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True,
                             timeout=300)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return folder, ran.stderr

    def test_jax(self):
        folder, _ = self.run_job("TIDEPOOL_JAX_PYTHON", "JAX", JAX_JOB, XLA_FLAGS="--xla_dump_to=dump", JAX_PLATFORMS="cpu")
        [assignment] = folder.glob("dump/*jit_loss*buffer-assignment.txt")
        [ranges] = folder.glob("dump/*jit_loss*live-range.txt")
        step = info(assignment, folder)
        own = re.search(r"Live ranges at \d+ \(peak\):\n(.*?)\n\s*Stack trace", ranges.read_text(), re.S)[1]
        self.assertEqual(step["ideal_peak_bytes"], int(re.findall(r"cumulative: (\d+) bytes", own)[-1]))
        packed = subprocess.run([PROGRAM, "pack", str(assignment)], capture_output=True, text=True, timeout=60).stdout
        self.assertIn("XLA placed them in ", packed)
        if not shutil.which("protoc"):
            self.skipTest("no protoc")
        profile = subprocess.run(f"gzip -dc {folder / 'memory.prof'} | protoc --decode_raw", shell=True, check=True,
                                 capture_output=True, text=True, timeout=60).stdout
        samples = re.findall(r'^2 \{\n(.*?)^\}', profile, re.S | re.M)
        values = [re.search(r'^  2: "((?:[^"\\]|\\.)*)"', sample, re.M)[1] for sample in samples]
        with_bytes = [value for value in values if not value.endswith(r"\000")]
        self.assertEqual(info(folder / "memory.prof", folder)["buffers"], len(with_bytes))

    def test_tensorflow(self):
        folder, log = self.run_job("TIDEPOOL_TENSORFLOW_PYTHON", "TensorFlow", TENSORFLOW_JOB, TF_CPU_ALLOCATOR_USE_BFC="1",
                                   TF_CPU_BFC_MEM_LIMIT_IN_MB="64", CUDA_VISIBLE_DEVICES="")
        counts = json.loads((folder / "counts.json").read_text())
        self.assertEqual(info(folder / counts["file"], folder)["buffers"], counts["allocations"] + counts["older"])
        (folder / "job.log").write_text(log)
        self.assertEqual(info(folder / "job.log", folder, "--format", "tf-oom")["buffers"], log.count("InUse at "))


if __name__ == "__main__":
    unittest.main()
