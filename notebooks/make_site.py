#!/usr/bin/env python3
"""Makes a site of all documents: the guides, the documents beside the code, and pages of every command and policy.

The program itself prints the pages of commands and policies, so they cannot be out of date. The figures are those of
the executed notebooks. The site needs no server and no network: its pages can be opened as files, search included.
Needs mkdocs and Pygments (Debian: mkdocs, python3-pygments; or from PyPI); links are checked strictly.

    notebooks/make_site.py --program build/tidepool -o build/site
"""
import argparse
import base64
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

try:
    from pygments.formatters import HtmlFormatter
except ImportError:
    sys.exit("make_site.py: Pygments is not installed; expected Debian's package python3-pygments, or the one from PyPI")

LIMIT_S = 600  # of one command
ROOT = pathlib.Path(__file__).resolve().parents[1]
GUIDE = pathlib.Path("notebooks/guide")
SITE = ROOT / "notebooks" / "site"
LINK = re.compile(r"(?<!!)\[([^\]\n]+)\]\((?![a-z]+:)([^)\s#]+)(#[^)\s]*)?\)")
NAVIGATION = [
    {"Tidepool": "README.md"},  # mkdocs makes it the front page
    {"Guide": f"{GUIDE}/index.md"},
    {"Tutorial": f"{GUIDE}/tutorial.md"},
    {"More commands": f"{GUIDE}/tour.md"},
    {"Figures": "figures.md"},
    {"How to": [{"See whether it fits": f"{GUIDE}/fit.md"}, {"Choose what to checkpoint": f"{GUIDE}/advise.md"},
                {"Out of memory": f"{GUIDE}/out_of_memory.md"}, {"Import what you have": f"{GUIDE}/import.md"},
                {"When recording cannot go on": f"{GUIDE}/recording.md"}, {"Sweeps": f"{GUIDE}/sweeps.md"},
                {"One job, three recordings": f"{GUIDE}/one_story.md"},
                {"Several GPUs": f"{GUIDE}/ranks.md"}, {"Several GPUs without one": f"{GUIDE}/dry_ranks.md"},
                {"A lower memory budget": f"{GUIDE}/memory_budget.md"},
                {"Place memory": f"{GUIDE}/placing.md"}, {"Reorder ops": f"{GUIDE}/order.md"},
                {"Which lever first": f"{GUIDE}/levers.md"},
                {"Write a policy": f"{GUIDE}/policy.md"}, {"Describe a machine": f"{GUIDE}/machine.md"},
                {"Use Python": "notebooks/README.md"}]},
    {"Reference": [{"Architecture": f"{GUIDE}/architecture.md"}, {"Commands": "commands.md"},
                   {"Policies": "policies.md"}, {"Published systems": f"{GUIDE}/systems.md"},
                   {"What a result says": f"{GUIDE}/results.md"},
                   {"How large a step can be": f"{GUIDE}/sizes.md"},
                   {"Glossary": f"{GUIDE}/glossary.md"}]},
    {"Project": [{"Contribute": "CONTRIBUTING.md"}, {"Tests that run for hours": f"{GUIDE}/nightly.md"},
                 {"Changes": "CHANGELOG.md"}]},
]


def printed(program, *arguments):
    return subprocess.run([program, *arguments], check=True, capture_output=True, text=True, timeout=LIMIT_S).stdout


def commands_page(program):
    names = re.findall(r"^  (\w\S*)", printed(program, "--help"), re.MULTILINE)
    sections = [f"## {name}\n\n```\n{printed(program, name, '--help-all').rstrip()}\n```\n" for name in names]
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


def figures_page(folder):
    """A page with the figures of the executed notebooks. Also writes the figures to `folder`."""
    lines = ["# Figures\n", "Each notebook runs from its first cell to its last and is committed with what it printed.\n"]
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text())["cells"]
        title = "".join(cells[0]["source"]).splitlines()[0].removeprefix("# ")
        lines += [f"## {title}\n", f"From `notebooks/{path.name}`.\n"]
        pictures = [output["data"]["image/png"] for cell in cells for output in cell.get("outputs", [])
                    if "image/png" in output.get("data", {})]
        for number, picture in enumerate(pictures, 1):
            name = f"{path.stem}_{number}.png"
            (folder / name).write_bytes(base64.b64decode(picture))
            lines.append(f"![{title}, figure {number}]({name})\n")
    lines += ["## A report\n", "From `tidepool report`.\n", f"![A report of a sweep and three runs]({GUIDE}/report.png)\n"]
    return "\n".join(lines)


def without_links_to_code(text):
    """Replaces links to source files and folders, which the site does not have, by their texts."""
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
    (folder / "figures.md").write_text(figures_page(folder))
    (folder / "code.css").write_text(HtmlFormatter(style="friendly").get_style_defs(".codehilite"))
    (folder / "commands.md").write_text(commands_page(program))
    (folder / "policies.md").write_text(policies_page(program))


def index_as_script(site):
    """Writes the search index as a script. A page that is opened as a file may load scripts, but not mkdocs' JSON."""
    index = site / "search" / "search_index.json"
    (site / "search" / "pages.js").write_text(f"const searchPages = {index.read_text()};\n")


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
                    "theme": {"name": None, "custom_dir": str(SITE), "static_templates": ["404.html", "search.html"]},
                    "nav": NAVIGATION, "use_directory_urls": False, "plugins": ["search"],
                    "markdown_extensions": [{"codehilite": {"guess_lang": False}}]}
        (place / "mkdocs.yml").write_text(json.dumps(settings))  # JSON is YAML
        built = subprocess.run([mkdocs, "build", "--strict", "-f", place / "mkdocs.yml"], capture_output=True, text=True,
                               timeout=LIMIT_S)
    if built.returncode != 0:
        print(built.stderr, file=sys.stderr)
        return built.returncode
    index_as_script(asked.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
