#!/usr/bin/env python3
"""What the walk has in place of `systemctl --user`: it runs the services of the units
that lie in the person's folder, by nothing but what the unit says."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

UNITS = Path.home() / ".config/systemd/user"
RUNNING = Path.home() / ".running"


def entries(unit, key):
    """What a key of a unit says, its specifiers read."""
    for line in (UNITS / unit).read_text().splitlines():
        name, _, value = line.partition("=")
        if name == key:
            yield value.replace("%%", "%")


def process(unit):
    """The process of a service that runs."""
    try:
        pid = int((RUNNING / unit).read_text())
        # One that has ended and that nobody waited for is no more.
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0]
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state in "ZX" else pid


def start(unit):
    if process(unit):
        return
    (command,) = entries(unit, "ExecStart")
    # A service has little of the person's environment.
    environment = {"HOME": str(Path.home())}
    for variables in entries(unit, "Environment"):
        environment |= dict(word.split("=", 1) for word in shlex.split(variables))
    (log,) = entries(unit, "StandardError")
    words = [word.replace("$$", "$") for word in shlex.split(command)]
    with open(log.removeprefix("append:"), "ab") as out:
        service = subprocess.Popen(
            words, env=environment, cwd=Path.home(), stdin=subprocess.DEVNULL,
            stdout=out, stderr=out, start_new_session=True,
        )
    RUNNING.mkdir(exist_ok=True)
    (RUNNING / unit).write_text(str(service.pid))


def stop(unit):
    pid = process(unit)
    if pid:
        os.kill(pid, signal.SIGTERM)
    while process(unit):
        time.sleep(0.05)


match sys.argv[1:]:
    case ["--user", "daemon-reload"]:
        pass
    case ["--user", "enable", "--now", unit]:
        start(unit)
    case ["--user", "disable", "--now", unit]:
        stop(unit)
    case ["--user", "is-active", "--quiet", unit]:
        sys.exit(0 if process(unit) else 3)
    case other:
        sys.exit(f"systemctl: {other} is not what a component runs")
