#!/usr/bin/env python3
"""Makes a site of all documents: the guides, the documents beside the code, and pages of every command and policy.

The last two are printed by the program itself, so they cannot be out of date. Needs mkdocs (Debian: mkdocs, or from PyPI);
links are checked strictly.

    notebooks/make_site.py --program build/tidepool -o build/site
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
GUIDE = pathlib.Path("notebooks/guide")
LINK = re.compile(r"\[([^\]\n]+)\]\((?![a-z]+:)([^)\s#]+)(#[^)\s]*)?\)")
NAVIGATION = [
    {"Tidepool": "README.md"},  # mkdocs makes it the front page
    {"Guide": f"{GUIDE}/index.md"},
    {"Tutorial": f"{GUIDE}/tutorial.md"},
    {"How to": [{"Import what you have": f"{GUIDE}/import.md"}, {"Out of memory": f"{GUIDE}/out_of_memory.md"},
                {"When recording cannot go on": f"{GUIDE}/recording.md"},
                {"Sweeps": f"{GUIDE}/sweeps.md"}, {"Place memory": f"{GUIDE}/placing.md"}, {"Write a policy": f"{GUIDE}/policy.md"},
                {"Describe a machine": f"{GUIDE}/machine.md"}]},
    {"Architecture": f"{GUIDE}/architecture.md"},
    {"Reference": [{"Commands": "commands.md"}, {"Policies": "policies.md"},
                   {"What a result says": f"{GUIDE}/results.md"}, {"Glossary": f"{GUIDE}/glossary.md"}]},
]


def printed(program, *arguments):
    return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout


def commands_page(program):
    listed = printed(program, "--help").split("Subcommands:", 1)[1]
    names = re.findall(r"^  (\S+)", listed, re.MULTILINE)
    sections = [f"## {name}\n\n```\n{printed(program, name, '--help').rstrip()}\n```\n" for name in names]
    return "# Commands\n\n" + "\n".join(sections)


def policies_page(program):
    lines = ["# Policies\n"]
    for entry in json.loads(printed(program, "policies", "--json")):
        lines += [f"## {entry['name']}\n", f"{entry['kind']}: {entry['summary']}.\n", f"From: {entry['paper']}.\n"]
        if entry["options"]:
            lines += ["| option | default | unit | meaning |", "|---|---|---|---|"]
            for option in entry["options"]:
                cells = (option["name"], option["default"], option.get("unit", ""), option["meaning"])
                lines.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |")
            lines.append("")
    return "\n".join(lines)


def without_links_to_code(text):
    """Documents link to source files and folders, which the site does not have."""
    return LINK.sub(lambda link: link[0] if link[2].endswith(".md") else link[1], text)


def gather(folder, program):
    """Writes every page below `folder`, each at its path in the repository, so that links between them hold."""
    for path in sorted(ROOT.rglob("*.md")):
        place = path.relative_to(ROOT)
        if place.parts[0].startswith((".", "build")):
            continue
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(without_links_to_code(path.read_text()))
    for picture in (ROOT / GUIDE).glob("*.png"):
        shutil.copy(picture, folder / GUIDE)
    (folder / "commands.md").write_text(commands_page(program))
    (folder / "policies.md").write_text(policies_page(program))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(ROOT / "build" / "tidepool"))
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    asked = parser.parse_args()
    mkdocs = shutil.which("mkdocs")
    if mkdocs is None:
        sys.exit("make_site.py: mkdocs is not installed; expected Debian's package mkdocs, or the one from PyPI")
    with tempfile.TemporaryDirectory() as scratch:
        place = pathlib.Path(scratch)
        gather(place / "pages", asked.program)
        settings = {"site_name": "Tidepool", "docs_dir": str(place / "pages"), "site_dir": str(asked.output.resolve()),
                    "theme": {"name": "readthedocs"}, "nav": NAVIGATION, "use_directory_urls": True}
        (place / "mkdocs.yml").write_text(json.dumps(settings))  # JSON is YAML
        built = subprocess.run([mkdocs, "build", "--strict", "-f", place / "mkdocs.yml"], capture_output=True, text=True)
    if built.returncode != 0:
        print(built.stderr, file=sys.stderr)
    return built.returncode


if __name__ == "__main__":
    sys.exit(main())
