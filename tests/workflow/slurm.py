"""Starts a Slurm of one node: daemons, keys and files in one folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.waiting import wait_for

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun")
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/affinity
SelectType=select/cons_tres
GresTypes=gpu
ReturnToService=2
AccountingStorageType=accounting_storage/none
MpiDefault=none
NodeName={host} CPUs={cpus} RealMemory={memory} Gres=gpu:1 Feature=small,large State=UNKNOWN
PartitionName=first Nodes={host} Default=YES MaxTime=INFINITE State=UP
PartitionName=second Nodes={host} MaxTime=INFINITE State=UP
"""


def missing() -> str:
    """Return why Slurm cannot be started here, or an empty text."""
    if lacking := [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]:
        return f"{', '.join(lacking)}: not installed (Debian: apt install slurm-wlm munge)"
    return "" if os.geteuid() == 0 else "Slurm's daemons need root"


@contextmanager
def started(folder: Path) -> Iterator[Mapping[str, str]]:
    """Run a cluster on this machine; yield the environment of its users."""
    for name in ("state", "spool", "bin"):
        (folder / name).mkdir(parents=True)
    host = socket.gethostname().split(".")[0]
    sockets = [socket.create_server(("", 0)) for _ in range(2)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    memory = psutil.virtual_memory().total // 2**20 - 500
    about = {"host": host, "folder": folder, "ports": ports, "cpus": os.cpu_count()}
    (folder / "slurm.conf").write_text(CONFIGURATION.format(**about, memory=memory))
    (folder / "gres.conf").write_text("Name=gpu Count=1 File=/dev/null\n")
    (folder / "key").write_bytes(os.urandom(1024))
    (folder / "key").chmod(0o400)
    # The executor drops SLURM_CONF before it starts a step.
    srun = folder / "bin" / "srun"
    srun.write_text(f'#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {shutil.which("srun")} "$@"\n')
    srun.chmod(0o755)
    paths = {"PATH": f"{srun.parent}:{PATH}", "SLURM_CONF": str(folder / "slurm.conf")}
    environment = {**os.environ, **paths}
    options = {"socket": "munge.socket", "key-file": "key", "pid-file": "pid", "seed-file": "seed"}
    munge = [f"--{name}={folder}/{file}" for name, file in (options | {"log-file": "log"}).items()]
    commands = [["munged", "--foreground", "--force", *munge], ["slurmctld", "-D"]]
    daemons = []
    try:
        for command in [*commands, ["slurmd", "-D", "-N", host]]:
            with (folder / f"{command[0]}.out").open("w") as out:
                daemons.append(subprocess.Popen(command, env=environment, stdout=out, stderr=out))
            if command[0] == "munged":
                wait_for((folder / "munge.socket").exists)
        state = ["sinfo", "--noheader", "--format=%T"]
        wait_for(
            lambda: b"idle" in subprocess.run(state, env=environment, stdout=-1, check=False).stdout
        )
        yield environment
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
            daemon.wait()
