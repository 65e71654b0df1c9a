"""Makes fakes of CUDA libraries, so that a PyTorch for GPUs can be imported without the real ones. Each library
that this PyTorch is linked to and that its Python lacks gets a fake.

    cuda_stubs.py PYTHON

The real libraries take several GB, and no test without a GPU calls them. Each function of a fake returns
cudaErrorNoDevice.
"""

import glob
import os
import re
import subprocess
import sys
import tempfile

CUDA = re.compile(r"lib(cu|nv|nccl)(?!da\.so)")  # not the driver (libcuda.so): it is no part of PyTorch
NO_DEVICE = 100


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def needs(files, installed):
    """{library: versions of its symbols} for each missing CUDA library that the files are linked to."""
    found = {}
    for file in files:
        for name in re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", file)):
            found.setdefault(name, [])
        library = None
        for what, name in re.findall(r"(File|Name): (\S+)", output("readelf", "-V", file)):
            if what == "File":
                library = name
            elif library in found and name not in found[library]:
                found[library].append(name)
    here = {os.path.basename(file) for file in files + installed}
    return {library: versions for library, versions in found.items() if CUDA.match(library) and library not in here}


def functions(files, installed):
    """{name: version} of the functions that the files use and that no file defines."""
    used, made = {}, set()
    for file in files + installed:
        for line in output("nm", "-D", file).splitlines():
            kind, name = line.split()[-2:]
            name, _, version = name.partition("@")
            if kind == "U":
                used[name] = version
            else:
                made.add(name)
    return {name: version for name, version in used.items() if name not in made}


def make(site):
    """Makes the fakes in the folder torch/lib below `site`, a folder of Python packages. Returns
    {library: versions of its symbols}.
    """
    folder = os.path.join(site, "torch/lib")
    files = sorted(glob.glob(os.path.join(folder, "lib*.so*")))
    installed = sorted(glob.glob(os.path.join(site, "nvidia/*/lib/lib*.so*")))
    libraries, names = needs(files, installed), functions(files, installed)
    versions = {version for own in libraries.values() for version in own}
    wanted = sorted(name for name, version in names.items()
                    if version in versions or (not version and re.match(r"(cu[a-z]*[A-Z]|nccl|nvshmem)", name)))
    with tempfile.TemporaryDirectory() as work:
        source, script = os.path.join(work, "stubs.c"), os.path.join(work, "versions")
        with open(source, "w", encoding="utf-8") as file:
            file.writelines(f"long {name}(void) {{ return {NO_DEVICE}; }}\n" for name in wanted)
        for library, own in libraries.items():
            with open(script, "w", encoding="utf-8") as file:
                file.writelines(f"{version} {{ {'global: *;' if version == own[0] else ''} }};\n" for version in own)
            subprocess.run(["cc", "-shared", "-w", "-fno-builtin", f"-Wl,-soname,{library}", "-o", os.path.join(folder, library),
                            source, *([f"-Wl,--version-script={script}"] if own else [])], check=True)
    return libraries


if __name__ == "__main__":
    site = output(sys.argv[1], "-c", "import sysconfig; print(sysconfig.get_path('platlib'))").strip()
    print("fakes:", *sorted(make(site)))
