"""The Python package: its tables of traces, runs and sweeps equal the program's, and policies can be written in
Python."""
import contextlib
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "traces" / "samples" / "vgg16.tide"

try:
    import pandas  # noqa: F401
except ImportError as error:
    raise unittest.SkipTest(f"skipped: {error}") from error
import tidepool


@tidepool.register("least-recent", kind="remat")
class LeastRecent(tidepool.Policy):
    """The policy `lru` in Python."""

    def make_room(self, view, request):
        versions = view.droppable_versions()
        oldest_first = lambda version: (view.last_access_ns(version), -view.order(version))  # noqa: E731
        return [tidepool.drop(min(versions, key=oldest_first))] if versions else []


@tidepool.register("out-largest", kind="swap")
class OutLargest(tidepool.Policy):
    """Copies the largest version out."""

    def make_room(self, view, request):
        versions = view.evictable_versions()
        return [tidepool.swap_out(max(versions, key=view.size))] if versions else []


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.trace = tidepool.load(SAMPLE)

    def program_text(self, *arguments):
        return subprocess.run([os.environ["TIDEPOOL"], *arguments], check=True, capture_output=True, text=True).stdout

    def program(self, *arguments):
        return [json.loads(line) for line in self.program_text(*arguments).splitlines()]

    def test_tables_agree_with_info(self):
        info, = self.program("info", str(SAMPLE), "--json")
        self.assertEqual(len(self.trace.buffers), info["buffers"])
        self.assertEqual(len(self.trace.ops), info["ops"])
        self.assertEqual(self.trace.ideal_peak_bytes, info["ideal_peak_bytes"])
        self.assertEqual(self.trace.live_bytes.max(), info["ideal_peak_bytes"])
        self.assertEqual(self.trace.ops["duration_ns"].sum(), info["duration_ns"])
        lifetimes = self.program_text("export", str(SAMPLE), "--to", "csv").splitlines()[1:]
        self.assertEqual(self.trace.buffers["size"].sum(), sum(int(line.split(",")[3]) for line in lifetimes))
        self.assertEqual(self.trace.uses["op"].nunique(), len(self.trace.ops))

    def test_runs_are_those_of_the_program(self):
        run = {"policy": "dtr-eq,lru-swap", "capacity": "0.6x,0.9x", "pool": "pytorch"}
        rows = tidepool.simulate(self.trace, **run)
        printed = self.program("simulate", str(SAMPLE), "--policy", run["policy"], "--capacity", run["capacity"],
                               "--pool", run["pool"], "--json")
        self.assertEqual(list(rows["makespan_ns"]), [row["makespan_ns"] for row in printed])
        self.assertEqual(list(rows["stall_ns_h2d"]), [row["stall_ns"]["h2d"] for row in printed])
        lists = tidepool.simulate(self.trace, policy=["dtr-eq", "lru-swap"], capacity=["0.6x", "0.9x"], pool="pytorch")
        self.assertEqual(list(rows["makespan_ns"]), list(lists["makespan_ns"]))

    def test_whole_numbers_are_integers_and_overhead_is_in_per_cent(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/r.sqlite"
            rows = tidepool.sweep(self.trace, path, policy="lru-swap", capacity="0.8x,none")
            for table in (rows, tidepool.simulate(self.trace, policy="lru-swap", capacity="0.8x,none")):
                self.assertEqual(str(table["makespan_ns"].dtype), "int64")
                self.assertEqual(str(table["capacity_bytes"].dtype), "Int64")  # no number without a limit
                self.assertEqual(list(table["overhead"]), [100 * (ratio - 1) for ratio in table["overhead_ratio"]])

    def test_runs_of_a_sweep_are_kept_and_not_repeated(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/r 1%20#?.sqlite"
            rows = tidepool.sweep(self.trace, path, policy="lru-swap", capacity="0.5x..1.0x/6")
            self.assertEqual(len(rows), 6)
            again = tidepool.sweep(self.trace, path, policy="lru-swap", capacity="0.5x..1.0x/6")
            self.assertEqual(list(rows["plan_ns"]), list(again["plan_ns"]))  # equal wall times: no run was repeated
            best = rows[rows["outcome"] == "ok"].sort_values("capacity_bytes")["overhead_ratio"]
            self.assertEqual(len(tidepool.read_results(path, "frontier")), best.cummin().nunique())
            with self.assertRaisesRegex(ValueError, "no table 'frontiers'; expected one of best_policy, "):
                tidepool.read_results(path, "frontiers")
        for threads in (0, -1, 1025):
            with self.assertRaisesRegex(ValueError, f"^threads={threads}; expected 1 to 1024, or None for all cores$"):
                tidepool.sweep(self.trace, threads=threads)

    def test_resume_continues_a_sweep_that_the_package_began(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/r.sqlite"
            # Another process, which has registered no policy, does not know the policies of this one.
            subprocess.run([sys.executable, "-c", f"import tidepool; tidepool.sweep({self.trace.path!r}, {path!r}, "
                            "policy='lru-swap', capacity='0.5x..1.0x/6')"], check=True)
            whole = tidepool.read_results(path)
            # tide also tries the policies of this process, so this sweep is not stored as a request.
            tidepool.sweep(self.trace, path, policy="tide", capacity="0.8x")
            with contextlib.closing(sqlite3.connect(path)) as database, database:
                database.execute("DELETE FROM runs WHERE capacity_bytes < (SELECT avg(capacity_bytes) FROM runs)")
            self.assertLess(len(tidepool.read_results(path)), 6)
            self.assertIn("overhead in %", tidepool.program("sweep", path, json_lines=False))
            rows = tidepool.read_results(path).query("policy == 'lru-swap'")
            self.assertEqual(sorted(rows["makespan_ns"]), sorted(whole["makespan_ns"]))

    def test_policies_in_python_keep_the_contract_and_are_listed(self):
        self.assertEqual(tidepool.check("least-recent", [self.trace]), 15)
        self.assertEqual(tidepool.check("out-largest", SAMPLE), 15)
        self.assertIn("least-recent", list(tidepool.policies()["name"]))

    def test_a_policy_in_python_decides_as_the_same_policy_in_cpp(self):
        rows = tidepool.simulate(self.trace, policy="least-recent,lru", capacity="0.6x,0.8x")
        for column in ("outcome", "makespan_ns", "eviction_count", "recompute_count"):
            values = rows.pivot(index="capacity_bytes", columns="policy", values=column)
            self.assertEqual(list(values["least-recent"]), list(values["lru"]), column)

    def test_a_view_tells_the_cost_of_a_chain_and_the_time_of_a_copy(self):
        seen = []

        @tidepool.register("costs", kind="remat")
        class Costs(tidepool.Policy):
            def make_room(self, view, request):
                versions = view.droppable_versions()
                seen.extend((view.cost_ns(v), view.chain_cost_ns(v), view.copy_out_ns(v), view.size(v)) for v in versions)
                return [tidepool.drop(min(versions, key=view.chain_cost_ns))] if versions else []

        row, = tidepool.simulate(self.trace, policy="costs", capacity="0.8x", machine="a100-pcie4").itertuples()
        self.assertEqual(row.outcome, "ok", getattr(row, "message", ""))
        self.assertTrue(all(chain >= own for own, chain, *_ in seen))
        self.assertTrue(any(chain > own for own, chain, *_ in seen))
        for *_, copy, size in seen:  # 26 GB/s and 10 us
            self.assertAlmostEqual(copy, 10_000 + size / 26, delta=1)

    def test_a_policy_may_plan_the_whole_step_beforehand(self):
        asked = []

        @tidepool.register("planner", kind="swap")
        class Planner(OutLargest):
            def plan(self, trace, capacity):
                asked.append(capacity)
                activation = trace.buffers[trace.buffers["kind"] == "activation"]["size"].idxmax()
                version = trace.versions[trace.versions["buffer"] == activation].index[0]
                produced = trace.versions["producer"][version]
                return [tidepool.swap_out(version, before=produced + 1)]

        row, = tidepool.simulate(self.trace, policy="planner", capacity="none").itertuples()
        self.assertEqual(row.outcome, "ok", getattr(row, "message", ""))
        self.assertEqual(row.swap_out_bytes, self.trace.buffers.query("kind == 'activation'")["size"].max())
        self.assertEqual(len(asked), 1)

    def test_the_plan_of_a_policy_is_followed_in_the_order_of_the_ops(self):
        made = []

        class Listed(tidepool.Policy):
            def plan(self, trace, capacity):
                return made

        register = tidepool.register("listed", kind="swap")
        register(Listed)
        self.addCleanup(register, OutLargest)  # other tests may run all registered policies
        run = lambda: next(tidepool.simulate(self.trace, policy="listed", capacity="none", pool="ideal",  # noqa: E731
                                             first=True).itertuples())
        made = [tidepool.swap_out(66, before=10), tidepool.swap_out(69, before=15), tidepool.swap_out(70, before=20)]
        row = run()
        made.reverse()
        turned = run()
        self.assertEqual(row.outcome, "ok")
        self.assertLess(row.peak_bytes, self.trace.ideal_peak_bytes)
        self.assertEqual((turned.peak_bytes, turned.makespan_ns), (row.peak_bytes, row.makespan_ns))
        for before, named in ((None, "after the last op"), (92, "before op 92")):
            made = [tidepool.swap_out(66, before=before)]
            row = run()
            self.assertEqual((row.outcome, row.message),
                             ("error", f"policy listed: swap out version 66 {named}: expected an op of the step, as in "
                                       "before=0; the step has 92 ops"))

    def test_a_policy_that_is_registered_again_replaces_the_old_one(self):
        @tidepool.register("changing", kind="swap")
        class First(tidepool.Policy):
            def make_room(self, view, request):
                raise ZeroDivisionError("first")

        row, = tidepool.simulate(self.trace, policy="changing", capacity="0.6x").itertuples()
        self.assertEqual(row.outcome, "error")
        self.assertIn("policy changing: ZeroDivisionError: first", row.message)
        tidepool.register("changing", kind="swap")(OutLargest)
        row, = tidepool.simulate(self.trace, policy="changing", capacity="0.6x").itertuples()
        self.assertEqual(row.outcome, "ok")
        with self.assertRaisesRegex(ValueError, "^policy 'changing' is a swap policy already; "
                                                "expected the same kind, or another name$"):
            tidepool.register("changing", kind="remat")(OutLargest)

    def test_a_view_cannot_be_used_after_the_policy_has_answered(self):
        kept = []

        @tidepool.register("keeper", kind="swap")
        class Keeper(OutLargest):
            def make_room(self, view, request):
                kept.append(view)
                return super().make_room(view, request)

        tidepool.simulate(self.trace, policy="keeper", capacity="0.8x")
        with self.assertRaisesRegex(RuntimeError, "a view can be used only while the policy is asked"):
            kept[0].evictable_versions()

    def test_a_policy_may_keep_the_trace_that_it_planned(self):
        kept = []

        @tidepool.register("reader", kind="swap")
        class Reader(OutLargest):
            def plan(self, trace, capacity):
                kept.append(trace)
                return []

        tidepool.simulate(self.trace, policy="reader", capacity="0.8x")
        self.assertEqual(len(kept[0].ops), len(self.trace.ops))

    def test_ctrl_c_in_a_policy_ends_all_runs(self):
        asked = []

        class Interrupted(tidepool.Policy):
            def make_room(self, view, request):
                asked.append(request)
                raise KeyboardInterrupt

        register = tidepool.register("interrupted", kind="remat")
        register(Interrupted)
        self.addCleanup(register, LeastRecent)  # other tests may run all registered policies
        for runs in (lambda: tidepool.simulate(self.trace, policy="interrupted", capacity="0.7x,0.8x"),
                     lambda: tidepool.check("interrupted", [self.trace]),
                     lambda: tidepool.sweep(SAMPLE, threads=1, policy="interrupted", capacity="0.7x,0.8x")):
            asked.clear()
            with self.assertRaises(KeyboardInterrupt):
                runs()
            self.assertLessEqual(len(asked), 2)  # check() repeats a run

    def registered(self, name, kind, **methods):
        """Registers a policy for one test: other tests may run all registered policies."""
        register = tidepool.register(name, kind=kind)
        register(type("Policy", (tidepool.Policy,), methods))
        self.addCleanup(register, LeastRecent if kind == "remat" else OutLargest)

    def error_of(self, policy, **run):
        row, = tidepool.simulate(self.trace, policy=policy, **run).itertuples()
        self.assertEqual(row.outcome, "error")
        return row.message

    def test_an_answer_that_is_no_list_of_actions_is_named(self):
        expected = "; expected a list of actions, as in [tidepool.drop(version)], or None"
        for number, (method, answer, named) in enumerate((
                ("make_room", tidepool.drop(3), "Action"), ("make_room", [3, tidepool.drop(3)], "list with int"),
                ("make_room", [None], "list with NoneType"), ("before_run", "drop", "str"), ("plan", 3, "int"))):
            name = f"mistaken-{number}"
            self.registered(name, "remat", **{method: lambda *_, answer=answer: answer})
            self.assertEqual(self.error_of(name, capacity="0.6x"), f"policy {name}: {method} returned {named}{expected}")

    def test_a_policy_without_any_method_of_a_policy_is_refused(self):
        self.registered("misspelt", "remat", makeroom=lambda self, view, request: [])
        self.assertIn("policy misspelt: TypeError: Policy has none of the methods of a policy; expected make_room, "
                      "before_run or plan", self.error_of("misspelt", capacity="0.6x"))

    def test_a_policy_that_acts_against_its_kind_has_no_result_beside_a_bound(self):
        self.registered("copies", "remat", make_room=OutLargest.make_room)
        self.assertRegex(self.error_of("copies", capacity="0.7x", machine="gh200-c2c", pool="ideal"),
                         r"^'copies' copied [0-9.]+ GiB to the host; expected a policy that is registered with the kind "
                         "swap or hybrid, since the kind decides which bound holds$")
        self.registered("reruns", "swap", make_room=LeastRecent.make_room)
        self.assertRegex(self.error_of("reruns", capacity="0.8x", pool="ideal"),
                         r"^'reruns' ran [0-9,]+ ops? again; expected a policy that is registered with the kind remat "
                         "or hybrid, since the kind decides which bound holds$")

    def test_a_policy_that_fails_does_not_end_a_run_of_tide(self):
        run = {"policy": "tide(with=swap,effort=50,rivals=on)", "capacity": "0.5x", "pool": "ideal", "first": True}
        before, = tidepool.simulate(self.trace, **run).itertuples()

        def fail(self, view, request):
            raise ValueError("no rival")

        self.registered("failing", "swap", make_room=fail)
        after, = tidepool.simulate(self.trace, **run).itertuples()
        self.assertEqual((after.outcome, after.makespan_ns), ("ok", before.makespan_ns))

    def test_a_plan_that_is_not_written_is_said(self):
        with tempfile.TemporaryDirectory() as folder:
            plan = pathlib.Path(folder) / "run.plan"
            plan.write_text("the plan of an earlier run")
            with self.assertWarnsRegex(UserWarning, f"^{plan}: not written; the run ended with infeasible, and only a "
                                                    "run with outcome ok has a plan$"):
                tidepool.simulate(self.trace, plan, policy="lru-swap", capacity="0.1x", first=True)

    def test_a_command_that_ends_with_a_message_alone_raises_it(self):
        with self.assertRaisesRegex(RuntimeError, "^/dev/full: cannot be written: No space left on device$"):
            tidepool.report(self.trace, "/dev/full", policy="none", capacity="1x")
        with tempfile.TemporaryDirectory() as folder:
            killed = pathlib.Path(folder) / "tidepool"
            killed.write_text("#!/bin/sh\nkill -KILL $$\n")
            killed.chmod(0o755)
            with unittest.mock.patch.dict(os.environ, TIDEPOOL=str(killed)), \
                    self.assertRaisesRegex(RuntimeError, "^tidepool info was ended by SIGKILL$"):
                tidepool.program("info", str(SAMPLE))

    def test_check_names_the_run_and_the_action_that_break_the_contract(self):
        @tidepool.register("forgetful", kind="remat")
        class Forgetful(tidepool.Policy):
            def make_room(self, view, request):
                return [tidepool.drop(0)]  # a parameter cannot be recomputed

        with self.assertRaisesRegex(AssertionError, r"vgg16.tide: forgetful on best-fit at .*: .*drop version 0"):
            tidepool.check("forgetful", [self.trace], pool="best-fit", capacity="0.6x")

    def test_the_output_of_a_command_is_a_table(self):
        rows = tidepool.program("pack", str(SAMPLE), "--pool", "best-fit,tide-pool")
        self.assertEqual([row["height_bytes"] for row in self.program("pack", str(SAMPLE), "--pool",
                                                                      "best-fit,tide-pool", "--json")],
                         list(rows["height_bytes"]))
        self.assertIn("vgg16", tidepool.program("info", str(SAMPLE), json_lines=False))
        with self.assertRaisesRegex(tidepool.InputError, "no pool named 'best-fitt', did you mean 'best-fit'"):
            tidepool.program("pack", str(SAMPLE), "--pool", "best-fitt")

    def test_capacities_are_texts_or_bytes(self):
        half = self.trace.ideal_peak_bytes // 2
        capacities = tidepool.simulate(self.trace, policy="lru-swap", capacity=[half, "0.8x"])["capacity_bytes"]
        self.assertEqual(list(capacities), [half, int(self.trace.ideal_peak_bytes * 0.8)])
        self.assertEqual(set(tidepool.bound(self.trace, half)["capacity_bytes"]), {half})

    def test_options_that_are_none_are_left_out(self):
        given, = tidepool.simulate(self.trace, machine=None, policy=None, capacity="2x", first=None).itertuples()
        usual, = tidepool.simulate(self.trace, capacity="2x").itertuples()
        self.assertEqual((given.machine, given.policy, given.steady), (usual.machine, usual.policy, usual.steady))

    def test_bounds_are_those_of_the_program(self):
        rows = tidepool.bound(self.trace, ["0.4x", "0.7x"], with_="remat", steady=True)
        printed = self.program("bound", str(SAMPLE), "--capacity", "0.4x,0.7x", "--with", "remat", "--steady", "--json")
        self.assertEqual(list(rows["name"]), [each["name"] for answer in printed for each in answer["bounds"]])
        self.assertEqual(list(rows["capacity_bytes"].unique()), [answer["capacity_bytes"] for answer in printed])
        best = rows.groupby("capacity_bytes")["makespan_ns"].last()
        self.assertEqual(best.iloc[1], printed[1]["bounds"][-1]["makespan_ns"])

    def test_a_plan_is_validated(self):
        with tempfile.TemporaryDirectory() as folder:
            plan = pathlib.Path(folder) / "run.plan"
            row, = tidepool.simulate(self.trace, plan, policy="dtr-eq", capacity="0.9x", first=True).itertuples()
            answer = tidepool.validate(plan, self.trace)
            self.assertEqual((answer["outcome"], answer["corrupt_bytes"]), ("ok", 0))
            self.assertEqual(answer["predicted_ns"], row.makespan_ns)
            self.assertEqual(answer["measured_peak_bytes"], row.peak_bytes)
            other = ROOT / "traces" / "samples" / "resnet50.tide"
            with self.assertRaisesRegex(tidepool.InputError, "expected the trace given"):
                tidepool.validate(plan, other)

    def test_a_report_is_written(self):
        with tempfile.TemporaryDirectory() as folder:
            database, page = f"{folder}/r.sqlite", f"{folder}/r.html"
            tidepool.sweep(self.trace, database, policy="lru-swap", capacity="0.6x,0.8x")
            written = tidepool.report([database, self.trace], page, policy="none,lru-swap", capacity="0.6x")
            text = written.read_text()
            self.assertEqual(written, pathlib.Path(page))
            self.assertTrue(text.startswith("<!doctype html>"))
            self.assertIn('"frontiers":[{"trace":"vgg16.tide"', text)

    def test_fit_and_explain_agree_with_the_program(self):
        fits = tidepool.fit(self.trace, "a100-40gb")
        printed, = self.program("fit", str(SAMPLE), "--device", "a100-40gb", "--json")
        self.assertEqual(fits["predicted_bytes"], printed["predicted_bytes"])
        self.assertEqual(list(fits["holders"]["bytes"]), [holder["bytes"] for holder in printed["holders"]])
        with self.assertRaisesRegex(tidepool.InputError, "no device named 'a100-40g', did you mean 'a100-40gb'"):
            tidepool.fit(self.trace, "a100-40g")
        alive = tidepool.explain(self.trace)
        self.assertEqual(alive["live_bytes"], self.trace.ideal_peak_bytes)
        self.assertEqual(alive["kinds"]["bytes"].sum(), alive["live_bytes"])
        self.assertEqual(alive["buffers"]["bytes"].sum(), alive["live_bytes"])
        self.assertLess(tidepool.explain(self.trace, at=0)["live_bytes"], alive["live_bytes"])
        with self.assertRaisesRegex(tidepool.InputError, "--at: '92' is no op of the trace; expected a number from 0 to 91"):
            tidepool.explain(self.trace, at=92)

    def test_fit_of_a_job_agrees_with_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            job = pathlib.Path(folder) / "job.json"
            trace_hash = self.program("info", str(SAMPLE), "--json")[0]["trace_hash"]
            ranks = [{"trace": str(SAMPLE), "trace_hash": trace_hash, "start_ns": 0}] * 2
            job.write_text(json.dumps({"tidepool_job": 1, "clock_residual_ns": 0, "ranks": ranks, "groups": [],
                                       "collectives": []}))
            fits = tidepool.fit(job, "a100-40gb")
            printed, = self.program("fit", str(job), "--device", "a100-40gb", "--json")
        ranks = fits.pop("ranks")
        self.assertEqual(ranks.to_dict("records"), printed.pop("ranks"))
        self.assertEqual(fits, printed)

    def test_advice_is_that_of_the_program(self):
        changes = tidepool.advise(self.trace, "0.9x", plans="none")
        printed, = self.program("advise", str(SAMPLE), "--capacity", "0.9x", "--plans", "none", "--json")
        self.assertEqual(list(changes["kind"]), [change["kind"] for change in printed["changes"]])
        self.assertEqual(changes.attrs["base_peak_bytes"], printed["base_peak_bytes"])
        self.assertEqual(changes.attrs["base_allocated_bytes"], printed["base_allocated_bytes"])
        offloads = tidepool.advise(self.trace, "0.9x", kinds=["offload", "budget"])
        self.assertLessEqual(set(offloads["kind"]), {"offload", "budget"})

    def test_the_commands_of_the_program_print_nothing(self):
        shown = subprocess.run([sys.executable, "-c", "import tidepool; print('before'); "
                                f"tidepool.explain({self.trace.path!r}); print('after')"],
                               check=True, capture_output=True, text=True)
        self.assertEqual(shown.stdout, "before\nafter\n")

    def test_bad_input_is_refused_with_a_message(self):
        with self.assertRaisesRegex(tidepool.InputError, "no policy named 'dtrr', did you mean 'dtr'"):
            tidepool.simulate(self.trace, policy="dtrr")
        with self.assertRaisesRegex(tidepool.InputError, "cannot be opened"):
            tidepool.load("absent.tide")
        with self.assertRaisesRegex(TypeError, "'polcy' is not an option of a run, did you mean 'policy'[?]; expected one of pool, "):
            tidepool.simulate(self.trace, polcy="lru")
        with self.assertRaisesRegex(TypeError, "'xyz' is not an option of a run; expected one of pool, policy, "):
            tidepool.simulate(self.trace, xyz="0.5x")
        with self.assertRaisesRegex(TypeError, "first is 'yes'; expected True or False"):
            tidepool.simulate(self.trace, first="yes")
        for path in ("/nowhere/r.sqlite", str(SAMPLE)):
            with self.assertRaisesRegex(tidepool.InputError, f"{path}: .*; expected a database that sweep wrote"):
                tidepool.read_results(path)
        with tempfile.NamedTemporaryFile(suffix=".sqlite") as empty:
            with self.assertRaisesRegex(tidepool.InputError, "has no tables; expected a database that sweep wrote"):
                tidepool.read_results(empty.name)
        with self.assertRaisesRegex(tidepool.InputError, "--capacity: 'True' is not a size"):
            tidepool.simulate(self.trace, capacity=True)
        with self.assertRaisesRegex(tidepool.InputError, "policy 'lru' is known already; expected a name of its own"):
            tidepool.register("lru", kind="swap")(OutLargest)
        for name in ("a+b", "a=b", "a(b)", "[a", "a,b", " a", "", "all"):
            with self.assertRaises(tidepool.InputError) as refused:
                tidepool.register(name, kind="swap")(OutLargest)
            self.assertEqual(str(refused.exception), f"policy '{name}' could not be named in a chain; expected a name "
                                                     "other than all, without + , = ( ) [ and without spaces at its ends")


if __name__ == "__main__":
    unittest.main()
