"""Imports a tool once, then runs it anew, in a fork, for each command line that comes in.

    TOOL_PYTHON preload.py MODULE IMPORT...

Runs in the tool's own environment. Why: two of the tools import for ten seconds, which would be
most of a benchmark's time; the fork runs the module as `python -m MODULE` would. Commands and
answers are JSON lines: {"argv", "env", "log", "folder"} -> {"pid"} and then {"ended"}; any line,
because an ended process tells its CPU time until it is reaped -> {"status"}.
"""

import contextlib
import importlib
import json
import os
import runpy
import sys


def run(module: str, command: dict) -> None:
    """Becomes the tool. Only ever called in a fork."""
    os.setsid()
    log = os.open(command["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(command["folder"])
    os.environ.update(command["env"])
    sys.argv = [module, *command["argv"]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    sys.exit(0)


def main() -> None:
    module, *names = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")

    def say(**what: int) -> None:
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(what), file=answers, flush=True)

    os.dup2(2, 1)  # what an import prints is no answer
    for name in names:
        importlib.import_module(name)
    say(ready=True)
    while line := sys.stdin.readline():
        child = os.fork()
        if child == 0:
            return run(module, json.loads(line))
        say(pid=child)
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        say(ended=child)
        sys.stdin.readline()
        say(status=os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


if __name__ == "__main__":
    main()
