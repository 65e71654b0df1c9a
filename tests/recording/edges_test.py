"""Small inputs that once gave wrong answers: each row of edges/README.md of the published inputs gives the value that is
expected there. Skipped without the inputs ($TIDEPOOL_SHARED or ../shared/data). Jobs run if TIDEPOOL_NIGHTLY is set, with PyTorch
for CUDA; other tests have jobs like them."""

import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = os.environ.get("TIDEPOOL_PROGRAM", str(HERE.parents[1] / "build/tidepool"))
EDGES = pathlib.Path(os.environ.get("TIDEPOOL_SHARED") or HERE.parents[2] / "shared" / "data") / "edges"
PYTHON = os.environ.get("TIDEPOOL_TORCH_PYTHON", sys.executable)
MIB = 2**20


def has(*modules):
    code = "; ".join(f"import {module}" for module in ("torch", *modules)) + "; assert torch.version.cuda"
    return subprocess.run([PYTHON, "-c", code], capture_output=True).returncode == 0


@unittest.skipUnless(EDGES.is_dir(), "needs the published inputs")
class Edges(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.trace = str(self.folder / "x.tide")

    def tidepool(self, *arguments, code=0, **environment):
        ran = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, cwd=self.folder, timeout=600,
                             env={**os.environ, **environment})
        self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
        return ran.stdout + ran.stderr

    def json(self, command, *arguments, code=0):
        said = self.tidepool(command, "--json", *arguments, code=code)
        return json.loads(next(line for line in said.splitlines() if line.startswith("{")))

    def fit(self, file, *options, device="rtx-3090", code=0):
        return self.json("fit", file, "--device", device, *options, code=code)


class Files(Edges):
    def test_a_peak_in_the_middle_of_a_snapshot(self):
        said = self.tidepool("explain", EDGES / "peak_in_middle.pickle")
        self.assertIn("event 2 of 5", said)
        self.assertIn("freed by event 4", said)
        self.assertEqual(self.fit(EDGES / "peak_in_middle.pickle")["peak_at"], {"event": 2, "events": 5})

    def test_memory_on_the_second_device_only(self):
        for name in ("device1.pickle", "device1_list.pickle"):
            self.assertEqual(self.fit(EDGES / name)["reserved_bytes"], 64 * MIB)
            self.assertIn("2 buffers", self.tidepool("tune", EDGES / name))

    def test_a_history_of_one_event(self):
        self.assertIn("lacks", self.json("info", EDGES / "one_event.pickle")["meta"])

    def test_a_cache_without_history(self):
        said = self.tidepool("fit", EDGES / "cached_no_history.pickle", "--device", "rtx-3090")
        self.assertIn("752 MiB reserved", said)
        self.assertNotIn("reserves 20 MiB less", said)

    def test_a_users_metadata_before_the_events(self):
        self.assertEqual(self.json("info", EDGES / "metadata_first.json.gz")["meta"]["source"], "kineto")

    def test_kernels_of_an_earlier_step(self):
        said = self.tidepool("import", EDGES / "async_tail.json.gz", "--iteration", "0", "-o", self.trace)
        self.assertNotIn("lost", said)
        info = self.json("info", self.trace)
        self.assertEqual((info["ops"], info["duration_ns"]), (4, 400_000))

    def test_a_profile_without_uses(self):
        profile = EDGES / "reserved_8GiB.json.gz"
        self.assertGreaterEqual(self.fit(profile)["reserved_bytes"], 8 << 30)
        said = self.tidepool("simulate", profile, "--policy", "lru-swap", "--capacity", "0.3x", code=2)
        self.assertIn("uses", said)

    def test_files_of_others_are_named(self):
        self.assertIn("RMM_LOG_FILE", self.tidepool("info", EDGES / "rmm_log.txt", code=2))
        self.assertIn("git lfs pull", self.tidepool("info", EDGES / "lfs_pointer.sqlite", code=2))

    def test_hostile_names(self):
        self.tidepool("import", EDGES / "inject.jsonl", "-o", self.trace)
        for command in (["explain"], ["simulate", "--policy", "lru-swap", "--capacity", "0.9x", "--decisions", "5"]):
            ran = subprocess.run([PROGRAM, command[0], self.trace, *command[1:]], capture_output=True, timeout=60)
            self.assertFalse(re.search(rb"[\x00-\x08\x0b-\x1f]", ran.stdout + ran.stderr), command)

    def test_a_chain_of_ten_thousand_ops(self):
        text = subprocess.run([sys.executable, str(EDGES / "chain.py"), "10000"], capture_output=True, check=True).stdout
        (self.folder / "chain.jsonl").write_bytes(text)
        self.tidepool("import", "chain.jsonl", "-o", self.trace)
        for arguments in (["bound", self.trace, "--capacity", "0.8x"], ["report", self.trace, "-o", "x.html"]):
            self.tidepool(*arguments)


@unittest.skipUnless("TIDEPOOL_NIGHTLY" in os.environ and EDGES.is_dir() and has(),
                     "needs TIDEPOOL_NIGHTLY=1, the published inputs and PyTorch for CUDA")
class Jobs(Edges):
    def script(self, name, *arguments):
        return [PYTHON, str(EDGES / name), *arguments]

    def dry(self, name, *arguments, options=("--kernels", "--iterations", "0"), code=0, **environment):
        return self.tidepool("record", "--dry", *options, "--device", "rtx-3090", "-o", self.trace, "--",
                             *self.script(name, *arguments), code=code, **environment)

    def fit_script(self, name, *arguments, options=(), code=0):
        return self.json("fit", "--device", "rtx-3090", *options, "--", *self.script(name, *arguments), code=code)

    def test_settings_of_the_allocator(self):
        for name, setting, reserved in (("expand.py", "expandable_segments:True", 802),
                                        ("fragz.py", "max_split_size_mb:128,expandable_segments:True", 14_060)):
            self.dry(name, PYTORCH_ALLOC_CONF=setting, PYTORCH_CUDA_ALLOC_CONF=setting)
            self.assertEqual(self.fit(self.trace)["reserved_bytes"], reserved * MIB)
            self.assertIn(setting, self.fit(self.trace)["settings"])

    def test_allocations_without_kernels(self):
        said = self.dry("frag.py")
        printed = int(re.findall(r"^\d+ \d+ (\d+)$", said, re.M)[-1])
        self.assertEqual(self.fit(self.trace)["reserved_bytes"], printed * MIB)

    def test_graphs_with_pools_of_their_own(self):
        for order in ("down", "up"):
            said = self.dry("graphs.py", "own", order)
            reserved = int(re.search(r"reserved (\d+)", said)[1])
            self.assertEqual(self.fit(self.trace)["reserved_bytes"], reserved * MIB)
        self.assertFalse(self.fit(self.trace, "--capacity", "1GiB")["fits"])
        [snapshot] = glob.glob(str(self.folder / "g_own_up.pickle"))
        self.assertEqual(self.fit(snapshot)["reserved_bytes"], reserved * MIB)

    def test_a_snapshot_of_a_job_that_gives_its_cache_back(self):
        self.dry("modern.py", "empty")
        self.assertEqual(self.fit(str(self.folder / "m_empty.pickle"))["reserved_bytes"], 286 * MIB)

    def test_a_stream_that_is_used_once(self):
        for stream, reserved in (("main", 1130), ("side", 1516)):
            self.dry("oneshot.py", stream)
            self.assertEqual(self.fit(self.trace)["reserved_bytes"], reserved * MIB)

    def test_two_ranks_of_fsdp2(self):
        job = str(self.folder / "f.json")
        torchrun = [PYTHON, "-m", "torch.distributed.run", "--nproc-per-node", "2", str(EDGES / "fsdp2.py")]
        said = self.tidepool("record", "--dry", "--torch", "-o", job, "--", *torchrun)
        printed = max(map(int, re.findall(r"\b\d{10}\b", said)))
        self.assertEqual([rank["reserved_bytes"] for rank in self.fit(job, device="h100-80gb")["ranks"]], [printed] * 2)

    def test_outputs_that_are_kept_after_training(self):
        said = self.dry("leak.py", options=("--torch",))
        printed = int(re.search(r"PyTorch (\d+) MiB", said)[1])
        whole = self.fit(self.trace)
        self.assertGreaterEqual(whole["reserved_bytes"], printed * MIB)
        self.assertIn("outside of this trace", self.tidepool("explain", self.trace))
        self.dry("leak.py", options=("--torch", "--capacity", "5GiB"), code=1)
        self.assertFalse(self.fit(self.trace, "--capacity", "5GiB")["fits"])

    def test_validation_that_keeps_graphs(self):
        self.dry("val.py", options=("--kernels", "--iterations", "0", "--capacity", "64GiB"))
        self.assertIn("28.19 GiB are never used again", self.tidepool("explain", self.trace))

    def test_a_compiled_model_that_is_not_compiled(self):
        said = self.tidepool("fit", "--device", "rtx-3090", "--", *self.script("comp.py"), TORCH_COMPILE_DISABLE="1")
        self.assertIn("fits: ", said)
        self.assertNotIn("before a training step", said)

    def test_values_that_end_loops_and_decide_sizes(self):
        self.assertIn("ended after 8 tokens", self.dry("gen.py"))
        fit = self.fit_script("mask.py")
        self.assertGreater(fit["live_bytes"], 118 * MIB)
        self.assertEqual(fit["sizes_from"], "recorded")

    def test_a_branch_on_integers(self):
        if not has("transformers"):
            self.skipTest("needs transformers")
        self.assertIn("keys, mask: {((2, 2, 512, 64), None)}", self.dry("hf_packed.py", options=()))

    def test_jobs_without_an_optimizer_or_with_one_step(self):
        self.assertTrue(self.fit_script("fwd.py")["fits"])
        self.assertTrue(self.fit_script("one_step.py")["fits"])
        self.assertTrue(self.fit_script("manual_sgd.py")["fits"])
        for kind in ("no", "re", "nonre"):
            self.dry("ckpt.py", kind, options=("--torch",))
            self.assertGreater(self.json("info", self.trace)["iterations"], 0)

    def test_advice_on_gradients_that_share_memory(self):
        self.dry("ad2.py", "tok", options=("--torch", "--skip", "1"))
        said = self.tidepool("advise", self.trace, "--capacity", "0.75x", "--plans", "none")
        self.assertNotIn("do not have one length", said)
        self.assertIn("early-updates", said)

    def test_advice_on_a_large_model(self):
        if not has("torchvision"):
            self.skipTest("needs torchvision")
        measured = {}
        for kind in ("post", "fused", "foreach"):
            said = self.dry("vit.py", kind, options=("--torch", "--skip", "1"))
            measured[kind] = float(re.search(r"PyTorch: ([\d.]+) GB", said)[1]) * 1e9
        spent = os.times()
        advised = self.json("advise", self.trace, "--capacity", "0.75x")
        self.assertLess(sum(os.times()[2:4]) - sum(spent[2:4]), 60)  # s of CPU time
        promised = {change["kind"]: change["allocated_bytes"] for change in advised["changes"]}
        promised["none"] = advised["base_allocated_bytes"]
        for change, kind in (("early-updates", "post"), ("optimizer", "fused"), ("none", "foreach")):
            self.assertAlmostEqual(promised[change] / measured[kind], 1, delta=0.003)

    # On the CPU

    def record(self, name, *arguments, options=(), code=0):
        return self.tidepool("record", "--torch", *options, "-o", self.trace, "--", *self.script(name, *arguments), code=code)

    def test_recorded_jobs_are_as_without(self):
        for name, arguments in (("findspec.py", ("torch",)), ("lifetime.py", ("5",)), ("folds.py", ())):
            alone = subprocess.run(self.script(name, *arguments), capture_output=True, text=True, timeout=100).stdout
            self.assertIn(alone, self.record(name, *arguments), name)
            self.assertGreater(self.json("info", self.trace)["ops"], 0)

    def test_a_job_that_closes_all_descriptors(self):
        self.record("closefds.py")
        lines = (self.folder / "victim.log").read_text().splitlines()
        self.assertEqual([line.split()[0] for line in lines], [str(i) for i in range(8)])

    def test_a_dispatch_mode_of_the_job(self):
        alone = subprocess.run(self.script("dispatch_mode.py"), capture_output=True, text=True, timeout=100).stdout
        self.assertIn(alone, self.record("dispatch_mode.py"))

    def test_a_job_that_ends_between_steps(self):
        said = self.record("crash_mid.py", options=("--skip", "1"), code=1)
        self.assertIn("nothing recorded", said)
        self.assertFalse(os.path.exists(self.trace))

    def test_plans_of_jobs_with_constants_and_a_shorter_last_batch(self):
        for name in ("lift_fresh.py", "shortlast.py"):
            self.record(name, options=("--skip", "1", "--iterations", "1"))
            plan = str(self.folder / "x.plan")
            self.tidepool("simulate", self.trace, "--policy", "tide", "--capacity", "0.7x", "--machine", "a100-pcie4", "--first",
                          "--plan-out", plan)
            alone = subprocess.run(self.script(name), capture_output=True, text=True, timeout=100).stdout
            self.assertIn(alone, self.tidepool("run", "--plan", plan, "--trace", self.trace, "--", *self.script(name)))


if __name__ == "__main__":
    unittest.main()
