"""A dry recording of a step without the buffers that only a device has. It helps to find why two recordings differ."""

import json
import subprocess
import sys

LIMIT_S = 600  # of one command


def records_of(program, trace, folder):
    path = f"{folder}/like_cpu.jsonl"
    subprocess.run([program, "export", trace, "--to", "jsonl", "-o", path], check=True, capture_output=True, timeout=LIMIT_S)
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def buffer_of(record):
    """The key of a record that begins or ends a buffer, or None."""
    return next((key for key in ("buffer", "alloc", "free") if key in record), None)


def names_of(records):
    """A key for each buffer: its size, kind and name, the numbers of ops before its begin and before its end, and a number
    that differs for buffers which are equal in all of these."""
    begins, ends, ops = {}, {}, 0
    for record in records:
        key = buffer_of(record)
        if key == "free":
            ends[record[key]] = ops
        elif key:
            begins[record[key]] = (record["size_bytes"], record.get("kind"), record.get("name"), -1 if key == "buffer" else ops)
        elif "run" in record:
            ops += 1
    names, seen = {}, {}
    for buffer, begin in begins.items():
        name = (*begin, ends.get(buffer))
        seen[name] = seen.get(name, 0) + 1
        names[buffer] = (*name, seen[name])
    return names


def like_cpu(cpu, dry):
    """The records of `dry` without the buffers that `cpu` lacks, and with the uses of each op in the order of `cpu`.
    Both are one step with the same ops, though names of operators may differ. Exits if one has more ops.

    >>> begin = [{"buffer": 0, "size_bytes": 8}, {"buffer": 1, "size_bytes": 4}]
    >>> cpu = [*begin, {"run": "aten::add", "uses": [[0, "read", "schema"], [1, "read_write", "schema"]]}]
    >>> more = [{"alloc": 2, "size_bytes": 9, "kind": "workspace"}, {"alloc": 3, "size_bytes": 2}]
    >>> dry = [*begin, *more, {"run": "aten::cudnn_add", "uses": [[2, "write", "schema"], [1, "read_write", "schema"],
    ...        [0, "read", "schema"]]}, {"free": 2}, {"free": 3}]
    >>> like_cpu(cpu, dry)[2:]
    [{'run': 'aten::cudnn_add', 'uses': [[0, 'read', 'schema'], [1, 'read_write', 'schema']]}]
    >>> like_cpu(cpu, dry + dry[4:5])
    Traceback (most recent call last):
    SystemExit: the recording on the CPU has 1 ops, the dry one 2; expected equally many
    >>> like_cpu(cpu, begin)
    Traceback (most recent call last):
    SystemExit: the recording on the CPU has 1 ops, the dry one 0; expected equally many
    """
    counts = [sum("run" in record for record in records) for records in (cpu, dry)]
    if counts[0] != counts[1]:
        sys.exit("the recording on the CPU has {} ops, the dry one {}; expected equally many".format(*counts))
    cpu_names, dry_names = names_of(cpu), names_of(dry)
    kept = set(dry_names.values()) & set(cpu_names.values())
    numbers = {buffer: number for number, buffer in enumerate(b for b, name in dry_names.items() if name in kept)}
    cpu_ops = iter([record["uses"] for record in cpu if "run" in record])
    records = []
    for record in dry:
        key = buffer_of(record)
        if key and record[key] not in numbers:
            continue
        record = dict(record)
        if key:
            record[key] = numbers[record[key]]
        if "run" in record:
            place = {(cpu_names[use[0]], use[1]): index for index, use in reversed(list(enumerate(next(cpu_ops))))}
            uses = sorted((use for use in record["uses"] if use[0] in numbers),
                          key=lambda use: place.get((dry_names[use[0]], use[1]), len(place)))
            record["uses"] = [[numbers[use[0]], *use[1:]] for use in uses]
        records.append(record)
    return records


def write_like_cpu(program, cpu, dry, folder):
    """Writes the trace of like_cpu(). Returns its path."""
    records = like_cpu(records_of(program, cpu, folder), records_of(program, dry, folder))
    path = f"{folder}/like_cpu.jsonl"
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)
    trace = dry.removesuffix(".tide") + ".like_cpu.tide"
    subprocess.run([program, "import", path, "-o", trace], check=True, capture_output=True, timeout=LIMIT_S)
    return trace
