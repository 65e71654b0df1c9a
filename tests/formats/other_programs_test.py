"""Imports what JAX, TensorFlow and protoc write, and compares the counts with those programs' own. For formats in JSON, the counts
are made here.

TIDEPOOL_JAX_PYTHON and TIDEPOOL_TENSORFLOW_PYTHON name Pythons that have them; without one, its tests are skipped. No GPU is
needed. TIDEPOOL_PROGRAM names the program, if it is not build/tidepool.
"""

import json
import os
import pathlib
import random
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


class Counts(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.draw = random.Random(1)

    @unittest.skipUnless(shutil.which("protoc"), "no protoc")
    def test_chakra(self):
        schemas = ROOT / "traces/import/schemas"

        def encoded(kind, text):
            message = subprocess.run(["protoc", f"--encode=tidepool.chakra.{kind}", f"-I{schemas}", "chakra.proto"], check=True,
                                     input=text.encode(), capture_output=True, timeout=60).stdout
            self.assertLess(len(message), 128)
            return bytes([len(message)]) + message

        on_host = [self.draw.random() < 0.5 for _ in range(40)]
        content = encoded("Metadata", 'version: "0.0.4"')
        for number, host in enumerate(on_host):
            content += encoded("Node", f'id: {number + 1} name: "op{number}" type: COMP_NODE duration_micros: {number} '
                               f'attr {{ name: "is_cpu_op" bool_val: {str(host).lower()} }}')
        (self.folder / "job.et").write_bytes(content)
        step = info(self.folder / "job.et", self.folder)
        times = sum(number for number, host in enumerate(on_host) if not host)
        self.assertEqual((step["ops"], step["duration_ns"]), (on_host.count(False), 1000 * times))

    def test_rocprofiler(self):
        host, gpu = {"handle": 1}, {"handle": 2}
        time, dispatches, copies, memory, live = 0, [], [], [], []
        for _ in range(400):
            time += 10
            span = {"start_timestamp": time, "end_timestamp": time + self.draw.randint(1, 9)}
            kind = self.draw.choice(["dispatch", "copy", "allocate", "free"])
            if kind == "dispatch":
                dispatches.append({**span, "stream_id": {"handle": 0}, "dispatch_info": {
                    "agent_id": gpu, "queue_id": {"handle": 3}, "kernel_id": 7}})
            elif kind == "copy":
                copies.append({**span, "kind": 1, "operation": 1, "dst_agent_id": gpu, "src_agent_id": host})
            elif kind == "allocate":
                agent = self.draw.choice([host, gpu])
                live.append((hex(0x1000 * (len(memory) + 1)), agent))
                memory.append({**span, "kind": 2, "operation": 1, "agent_id": agent, "address": live[-1][0],
                               "allocation_size": 256})
            elif live:
                address, _ = live.pop(self.draw.randrange(len(live)))
                memory.append({**span, "kind": 2, "operation": 2, "agent_id": {"handle": 0}, "address": address,
                               "allocation_size": 0})
        words = [{"kind": "NONE", "operations": []}, {"kind": "MEMORY_COPY", "operations": ["NONE", "MEMORY_COPY_HOST_TO_DEVICE"]},
                 {"kind": "MEMORY_ALLOCATION", "operations": ["NONE", "MEMORY_ALLOCATION_ALLOCATE", "MEMORY_ALLOCATION_FREE"]}]
        (self.folder / "job.json").write_text(json.dumps({"rocprofiler-sdk-tool": [{
            "agents": [{"id": host, "type": 1, "product_name": "EPYC"}, {"id": gpu, "type": 2, "product_name": "MI300X"}],
            "kernel_symbols": [{"kernel_id": 7, "formatted_kernel_name": "gemm"}], "strings": {"buffer_records": words},
            "buffer_records": {"kernel_dispatch": dispatches, "memory_copy": copies, "memory_allocation": memory}}]}))
        step = info(self.folder / "job.json", self.folder)
        on_gpu = sum(each["agent_id"] is gpu for each in memory)
        self.assertEqual((step["kernels"], step["copies"], step["buffers"]), (len(dispatches), len(copies), on_gpu))

    def test_iopddl(self):
        begins = [self.draw.randrange(100) for _ in range(500)]
        lives = [[begin, begin + self.draw.randint(0, 30)] for begin in begins]
        usages = [[self.draw.randint(0, 99) for _ in range(3)] for _ in lives]
        (self.folder / "problem.json").write_text(json.dumps({"problem": {"name": "drawn", "nodes": {
            "intervals": lives, "usages": usages, "costs": [[0] * 3 for _ in lives]}, "edges": {"nodes": [], "costs": []}}}))
        peak = max(sum(min(usage) for (begin, end), usage in zip(lives, usages) if begin <= time < end) for time in range(130))
        self.assertEqual(info(self.folder / "problem.json", self.folder)["ideal_peak_bytes"], peak)


if __name__ == "__main__":
    unittest.main()
