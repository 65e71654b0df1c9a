"""Prints tables of the results that the calls of tests/gpu/gpu_day.sh left in their work folder.

    tables.py FOLDER [plans | overhead | losses | events | offload | published]

Without a name it prints all tables that have data.

Exit status 1: losses or events that must be equal differ.
"""

import json
import pathlib
import re
import statistics
import sys

ITERATION = re.compile(r"iteration (\d+): loss \S+ (\S+), (\S+) ms")


def iterations(path):
    """Reads a job's output: {iteration: (loss in hexadecimal, ms)}."""
    found = ITERATION.findall(path.read_text(errors="replace"))
    return {int(number): (loss, float(ms)) for number, loss, ms in found}


def last_json(path):
    lines = [line for line in path.read_text(errors="replace").splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {}


def plans(folder):
    path = folder / "plans.jsonl"
    if not path.exists():
        return
    errors = {"": [], "--graph": []}
    print(f"{'plan':36}{'how':>9}{'outcome':>15}{'predicted ms':>14}{'measured ms':>13}{'error':>9}{'copies':>9}")
    for line in path.read_text().splitlines():
        row = json.loads(line)
        result = row["result"]
        if "measured_ns" not in result:
            print(f"{row['run']:36}{row['options']:>9}{result['outcome']:>15}  {result.get('message', '')}")
            continue
        errors.setdefault(row["options"], []).append(abs(result["error"]))
        copies = f"{result['copy_error'] * 100:.1f} %" if "copy_error" in result else "-"
        print(f"{row['run']:36}{row['options']:>9}{result['outcome']:>15}{result['predicted_ns'] / 1e6:14.2f}"
              f"{result['measured_ns'] / 1e6:13.2f}{result['error'] * 100:+8.2f} %{copies:>8}")
    for options, values in errors.items():
        if values:
            print(f"{len(values)} plans {options or 'by streams'}: {statistics.median(values) * 100:.2f} % from their prediction "
                  f"in the median, {max(values) * 100:.2f} % at most")


def overhead(folder):
    for path in sorted(folder.glob("alone-*.log")):
        model = path.stem.removeprefix("alone-")
        recorded = folder / f"capture-{model}.log"
        alone = iterations(path)
        with_recorder = iterations(recorded) if recorded.exists() else {}
        if not alone or not with_recorder:
            continue
        first = min(2, max(alone))
        usual = statistics.median(ms for number, (_, ms) in alone.items() if number >= first)
        times = ", ".join(f"{ms:.0f}" for _, ms in with_recorder.values())
        slowest = max(ms for number, (_, ms) in with_recorder.items() if number >= first)
        print(f"{model}: {usual:.1f} ms alone; recorded, iteration by iteration: {times} ms; at most {slowest / usual:.2f}x")


def losses(folder):
    alone = folder / "losses-alone.txt"
    expected = iterations(alone) if alone.exists() else {}
    code = 0
    for live in sorted(folder.glob("losses-live*.txt")) if expected else ():
        name, seen = live.stem.removeprefix("losses-"), iterations(live)
        different = [number for number in expected if seen.get(number, ("none",))[0] != expected[number][0]]
        if different:
            number = different[0]
            print(f"{name}: losses under the plan differ from iteration {number} on: {seen.get(number, ('none',))[0]}, "
                  f"expected {expected[number][0]}")
            code = 1
            continue
        print(f"{name}: {len(expected)} losses under the plan are those without, to the bit")
        report = last_json(folder / f"{name}.json")
        if "measured_ns" in report:
            time, peak = (report[f"measured_{what}"] / report[f"predicted_{what}"] - 1 for what in ("ns", "peak_bytes"))
            print(f"    step: predicted {report['predicted_ns'] / 1e6:.1f} ms, measured {report['measured_ns'] / 1e6:.1f} ms "
                  f"({time * 100:+.1f} %); peak: predicted {report['predicted_peak_bytes'] / 1e9:.2f} GB, "
                  f"measured {report['measured_peak_bytes'] / 1e9:.2f} GB ({peak * 100:+.1f} %)")
        print(f"    PyTorch alone {json.dumps(last_json(alone))}")
        print(f"    with the plan {json.dumps(last_json(live))}")
    return code


def events(folder):
    real, dry = folder / "events-real.json", folder / "events-dry.json"
    if not real.exists() or not dry.exists():
        return
    expected, seen = json.loads(real.read_text()), json.loads(dry.read_text())
    for key in ("allocated_peak_bytes", "reserved_peak_bytes"):
        print(f"{key}: real {expected.get(key)}, dry {seen.get(key)}")
    print(f"segments: real {len(expected['segments'])} of {sum(expected['segments'])} bytes, "
          f"dry {len(seen['segments'])} of {sum(seen['segments'])} bytes")
    pairs = list(zip(expected["events"], seen["events"]))
    same = next((i for i, (a, b) in enumerate(pairs) if a != b), len(pairs))
    print(f"events: real {len(expected['events'])}, dry {len(seen['events'])}; the first {same} are the same")
    if same < len(pairs):
        print(f"event {same}: real {pairs[same][0]}, dry {pairs[same][1]}")
    return int(expected["events"] != seen["events"] or expected["segments"] != seen["segments"])


def offload(folder, name="offload", what="PyTorch"):
    for way in ("", "--offload"):
        paths = (folder / f"{name}{way}{end}" for end in ("-dry.txt", "-predicted.json", ".txt"))
        expected, predicted, seen = (last_json(path) if path.exists() else {} for path in paths)
        if not expected or not predicted or "allocated_peak_bytes" not in seen:
            continue
        print(f"{what}, {'with' if way else 'without'} offloading: predicted {expected['allocated_peak_bytes'] / 1e6:.0f} MB, "
              f"{predicted['makespan_ns'] / 1e6:.1f} ms; measured {seen['allocated_peak_bytes'] / 1e6:.0f} MB, "
              f"{seen['median_ms']:.1f} ms")


def published(folder):
    offload(folder, "published", "PyTorch's compiler")


PARTS = {part.__name__: part for part in (plans, overhead, losses, events, offload, published)}


def main():
    folder, wanted = pathlib.Path(sys.argv[1]), sys.argv[2:] or list(PARTS)
    return max(PARTS[name](folder) or 0 for name in wanted)


if __name__ == "__main__":
    sys.exit(main())
