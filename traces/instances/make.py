#!/usr/bin/env python3
"""Makes the instances in this folder, or better plans or bounds for them.

    make.py [--program build/tidepool] [--policy 'tide(effort=2000)'] [--again | --bounds] [NAME...]

An instance is a row of instances.json. A row that exists is left alone, so the same command goes on where it was
interrupted; with --again, a row is replaced if the new plan takes less time, but keeps its bound if this is better.
With --bounds, a row that exists keeps its plan, and gets a better bound if one is found. Rows that are missing are
always made. If NAMEs are given, all this holds for their rows only. Ends with the table for README.md.
"""
import argparse
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ROWS = HERE / "instances.json"

LINKS = {  # 10^9 B/s in each direction; each copy takes 10 us more; the directions do not slow each other down
    "12GB": 12, "25GB": 25, "50GB": 50,
}
SYNTHETIC = {
    "gpt_6_layers": ["gpt", "--layers", "6"],
    "gpt_24_layers": ["gpt", "--layers", "24", "--batch", "4", "--micro-batches", "2"],
    "gpt_48_layers": ["gpt", "--layers", "48", "--batch", "2"],
    "resnet_56": ["resnet", "--layers", "56"],
}
SAMPLES = ["bert_large", "bilstm", "gpt2", "gpt2_xl", "inception_v3", "resnet50", "swin_t", "unet", "vgg16"]


def wanted():
    """(step, share of the step's peak in %, link) of each instance."""
    for step in SAMPLES:
        yield from ((step, 80, "25GB"), (step, 60, "12GB"))
        if step != "gpt2_xl":  # its search takes many minutes
            yield from ((step, 60, "50GB"), (step, 50, "25GB"))
    for step in ("resnet50", "swin_t", "unet", "vgg16"):
        yield (step, 80, "12GB")
    for step in SYNTHETIC:
        yield from ((step, 70, "25GB"), (step, 50, "12GB"), (step, 40, "50GB"))


def write_lines(path, text):
    path.parent.mkdir(exist_ok=True)
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(text.encode())


def tidepool(program, *words):
    ran = subprocess.run([program, *words], capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"make.py: tidepool {' '.join(words)}: {ran.stderr.strip()}")
    return ran.stdout


def write_machine(link, folder):
    """The path of a new machine file for a link of LINKS."""
    machine = folder / f"{link}.json"
    way = {"rate": f"{LINKS[link]}GB/s", "latency": "10us"}
    machine.write_text(json.dumps({
        "name": link, "capacity": "80GiB", "h2d": way, "d2h": way, "device_copy": "1000GB/s", "segment_alloc": "0us",
        "segment_free": "0us", "page_map": "0us", "page_unmap": "0us", "source": "assumed, for the instances"}))
    return machine


def trace_of(program, step, folder):
    """The path of a step's trace. A synthetic one is made in the folder."""
    if step not in SYNTHETIC:
        return ROOT / "traces" / "samples" / f"{step}.tide"
    trace = folder / f"{step}.tide"
    tidepool(program, "make", *SYNTHETIC[step], "-o", str(trace))
    return trace


def best_bound(program, trace, share, machine):
    """The best of all bounds on the mean time of the repeated step, as part of a row."""
    found = json.loads(tidepool(program, "bound", str(trace), "--steady", "--capacity", f"{share / 100}x", "--machine",
                                str(machine), "--json"))
    best = found["bounds"][-1]
    return {"bound_ns": best["makespan_ns"], "bound": best["name"]}


def with_bound(row, other):
    """The row, with the bound of another row of the same instance if this is better."""
    return {**row, **{key: other[key] for key in ("bound_ns", "bound")}} if other["bound_ns"] > row["bound_ns"] else row


def make_row(program, policy, step, share, link, folder):
    trace = trace_of(program, step, folder)
    lines = folder / "step.jsonl"
    tidepool(program, "export", str(trace), "--to", "jsonl", "-o", str(lines))
    write_lines(HERE / "steps" / f"{step}.jsonl.gz", lines.read_text())
    machine = write_machine(link, folder)
    plan = folder / "run.plan"
    result = json.loads(tidepool(program, "simulate", str(trace), "--policy", policy, "--pool", "best-fit", "--capacity",
                                 f"{share / 100}x", "--machine", str(machine), "--plan-out", str(plan), "--json"))
    if result["outcome"] != "ok":
        sys.exit(f"make.py: {step} in {share} %: {result['outcome']}")
    rate = LINKS[link] * 10**9
    row = {"name": f"{step}-{share}-{link}", "step": step, "capacity_bytes": result["capacity_bytes"],
           "machine": {"h2d_bytes_per_second": rate, "h2d_latency_ns": 10000, "d2h_bytes_per_second": rate,
                       "d2h_latency_ns": 10000, "device_copy_bytes_per_second": 10**12},
           "baseline_ns": result["baseline_ns"], "time_ns": result["makespan_ns"],
           **best_bound(program, trace, share, machine), "found_by": policy}
    if result.get("cycle_iterations", 1) != 1:
        row["cycle_iterations"] = result["cycle_iterations"]
    return row, plan.read_text().split("\n", 1)[1]


def table(rows):
    yield "| instance | without limit | plan | overhead | bound | gap |"
    yield "|---|---|---|---|---|---|"
    for row in rows:
        base, time, bound = row["baseline_ns"], row["time_ns"], row["bound_ns"]
        yield (f"| {row['name']} | {base / 1e6:.2f} ms | {time / 1e6:.2f} ms | {time / base - 1:.2%} | {bound / 1e6:.2f} ms "
               f"({row['bound']}) | {time / bound - 1:.2%} |")
    gaps = sorted(row["time_ns"] / row["bound_ns"] - 1 for row in rows)
    yield ""
    yield (f"{len(rows)} instances, {sum(gap <= 0.01 for gap in gaps)} within 1 % of their bounds; "
           f"median gap {gaps[len(gaps) // 2]:.2%}, largest {gaps[-1]:.2%}")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", metavar="NAME")
    options.add_argument("--program", default=str(ROOT / "build" / "tidepool"))
    options.add_argument("--policy", default="tide")
    what = options.add_mutually_exclusive_group()
    what.add_argument("--again", action="store_true")
    what.add_argument("--bounds", action="store_true")
    asked = options.parse_args()
    rows = {row["name"]: row for row in json.loads(ROWS.read_text())} if ROWS.exists() else {}
    order = [f"{step}-{share}-{link}" for step, share, link in wanted()]
    for name in asked.names:
        if name not in order:
            sys.exit(f"make.py: no instance named '{name}'")

    def store():
        ROWS.write_text(json.dumps([rows[each] for each in order if each in rows], indent=1) + "\n")

    for step, share, link in wanted():
        name = f"{step}-{share}-{link}"
        if asked.bounds and name in rows and (not asked.names or name in asked.names):
            with tempfile.TemporaryDirectory() as folder:
                trace = trace_of(asked.program, step, pathlib.Path(folder))
                machine = write_machine(link, pathlib.Path(folder))
                rows[name] = with_bound(rows[name], best_bound(asked.program, trace, share, machine))
            store()
        if (asked.names and name not in asked.names) or (name in rows and not asked.again):
            continue
        with tempfile.TemporaryDirectory() as folder:
            row, plan = make_row(asked.program, asked.policy, step, share, link, pathlib.Path(folder))
        if name in rows and rows[name]["time_ns"] <= row["time_ns"]:
            print(f"{name}: {row['time_ns']} ns, not below {rows[name]['time_ns']} ns", flush=True)
            continue
        write_lines(HERE / "plans" / f"{name}.jsonl.gz", plan)
        row = rows[name] = with_bound(row, rows.get(name, row))
        store()
        print(f"{name}: {row['time_ns']} ns, {row['time_ns'] / row['bound_ns'] - 1:.2%} above the bound", flush=True)
    print("\n".join(table([rows[each] for each in order if each in rows])))


if __name__ == "__main__":
    main()
