"""The page with the results of nightly runs: a row for the last run of each part, and the open findings."""

import re

HEAD = """# Tests that run for hours

Tests that take too long for every commit are run by one command, which writes this page:

<!-- not run: takes hours -->
```sh
tests/nightly.sh                                    # every part, 20 minutes for each fuzz target
tests/nightly.sh kills faults fuzz --minutes 1      # these parts, in this order, shorter
```

Each row is the last run of its part: its commit (`+`: with uncommitted changes), its wall time with building, and its
number of runs. `runs` are inputs of a fuzz target, calls that failed, kills, steps, plans, tests or commands. A part without a
row has not run yet. All parts are `fuzz:NAME`, `faults:COMMAND`, `kills`, `steps`, `samples`, `live`, `verdicts`, `wheel`, `asan`,
`tsan`, `giants`.

| part | what holds | commit | minutes | runs | findings | |
|---|---|---|---|---|---|---|
"""
OPEN = "\n## Open findings\n\n"
ROW = re.compile(r"^\| (\S+) \|.*\|$")
FINDING = re.compile(r"^- (\S+): ")


def row_text(row):
    cells = (row["part"], row["what"], row["commit"], f"{row['minutes']:.1f}", f"{row['runs']:,}", len(row["findings"]), row["said"])
    return f"| {' | '.join(map(str, cells))} |"


def put(path, row):
    """Replaces the row of a part and its findings, or adds them; leaves those of the other parts."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows = {found[1]: line for line in lines if (found := ROW.match(line)) and found[1] != "part"}
    findings = [line for line in lines if (found := FINDING.match(line)) and found[1] != row["part"]]
    rows[row["part"]] = row_text(row)
    findings += [f"- {row['part']}: {finding}" for finding in row["findings"]]
    path.write_text(HEAD + "\n".join(rows[name] for name in sorted(rows)) + "\n" + OPEN + ("\n".join(findings) or "None.") + "\n")
