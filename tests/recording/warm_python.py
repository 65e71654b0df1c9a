"""Runs Python programs with PyTorch already loaded, since importing it takes longer than a test's whole job.

`Server` starts a process that has imported torch. `Server.command(script, *arguments)` is a command that runs a script
in a fork of this process, with the command's environment, working directory and streams, and ends as the script ends.
If the environment asks for Tidepool's hooks, hook() loads them, as Python's start and the import of torch would have
done.
"""

import array
import atexit
import contextlib
import gc
import importlib.util
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import traceback


class Server:
    def __init__(self, within=(), modules=()):
        """
        within   a command that prepares the environment and then runs the command after it, which loads PyTorch
        modules  further modules to import
        """
        self._folder = tempfile.TemporaryDirectory()
        self._address = os.path.join(self._folder.name, "socket")
        # Hooks are for the forks: in a fork of a process that has them, they are off.
        no_hooks = ["-E"] if within else []
        command = [*within, sys.executable, *no_hooks, __file__, "serve", self._address, *modules]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE,
                                         stderr=subprocess.DEVNULL if within else None)
        if self._process.stdout.readline() != b"ready\n":
            raise RuntimeError("the process that has imported torch did not start")

    def command(self, script, *arguments):
        return [sys.executable, "-I", "-S", __file__, "run", self._address, script, *arguments]

    def stop(self):
        self._process.terminate()
        self._process.wait()
        self._process.stdout.close()
        self._folder.cleanup()


def run(address, arguments):
    """The command: passes its arguments to the server, and ends as the script ends."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        text = json.dumps([arguments, os.getcwd(), dict(os.environ)]).encode()
        descriptors = array.array("i", [0, 1, 2])
        connection.sendmsg([len(text).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
        connection.sendall(text)
        status = int(connection.makefile().read())
    if os.WIFSIGNALED(status):
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL) if os.WTERMSIG(status) != signal.SIGKILL else None
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status))


def receive(connection):
    head, ancillary, _, _ = connection.recvmsg(4, socket.CMSG_SPACE(3 * 4))
    descriptors = array.array("i")
    descriptors.frombytes(ancillary[0][2])
    left, text = int.from_bytes(head, "big"), b""
    while len(text) < left:
        text += connection.recv(left - len(text))
    return list(descriptors), *json.loads(text)


def serve(address, modules):
    """Forks for each command. Returns in the fork, with the script's path and arguments."""
    import torch
    import torch._dynamo  # the optimizers import it
    import torch.distributed  # noqa: F401

    for module in modules:
        importlib.import_module(module)
    torch.set_num_threads(1)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen()
    gc.freeze()
    print("ready", flush=True)
    while True:
        connection, _ = listening.accept()
        if os.fork() != 0:  # one process waits for each script
            connection.close()
            os.waitpid(-1, 0)
            continue
        if os.fork() == 0:
            os.setsid()
        else:
            os._exit(0)
        descriptors, arguments, folder, environment = receive(connection)
        script = os.fork()
        if script != 0:
            for descriptor in [0, 1, 2, *descriptors]:
                os.close(descriptor)
            _, status = os.waitpid(script, 0)
            connection.sendall(str(status).encode())
            os._exit(0)
        connection.close()
        listening.close()
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        return arguments


def hook():
    """Does the work of Python's start before a program (site, sitecustomize) and at its import of torch."""
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [folder for folder in folders if folder]
    for folder in folders:
        path = os.path.join(folder, "sitecustomize.py")
        if folder and os.path.exists(path):
            found = {"__name__": "sitecustomize", "__file__": path}
            with open(path, encoding="utf-8") as file, contextlib.suppress(ModuleNotFoundError):  # of the user's own one
                exec(compile(file.read(), path, "exec"), found)
            importlib.util.find_spec("no_module_of_this_name")  # the hook acts at the next search for a module
            return


def main(script):
    """Runs the script as a main program, including the functions that Python calls at its end. Leaves out the teardown
    of PyTorch, which is slow in a fork. Returns its status."""
    status = 0
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException as error:
        status, sys.last_value = 1, error
        traceback.print_exc()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return status


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(sys.argv[2], sys.argv[3:])
    sys.argv[:] = serve(sys.argv[2], sys.argv[3:])
    hook()
    os._exit(main(sys.argv[0]))
