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
PLUGIN = "snakemake_executor_plugin_slurm"

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
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    lacking = [name for name in PROGRAMS if shutil.which(name, path=path) is None]
    if lacking:
        return f"{', '.join(lacking)}: not installed (Debian: apt install slurm-wlm munge)"
    return "" if os.geteuid() == 0 else "Slurm's daemons need root"


@contextmanager
def started(folder: Path) -> Iterator[Mapping[str, str]]:
    """Run a cluster on this machine; yield the environment of its users."""
    for name in ("state", "spool", "munge"):
        (folder / name).mkdir(parents=True)
    host = socket.gethostname().split(".")[0]
    text = CONFIGURATION.format(
        host=host,
        folder=folder,
        ports=_free_ports(2),
        cpus=os.cpu_count(),
        memory=psutil.virtual_memory().total // 2**20 - 500,
    )
    (folder / "slurm.conf").write_text(text)
    (folder / "gres.conf").write_text("Name=gpu Count=1 File=/dev/null\n")
    (folder / "munge" / "key").write_bytes(os.urandom(1024))
    (folder / "munge" / "key").chmod(0o400)
    # The executor drops SLURM_CONF before it starts a step.
    srun = folder / "bin" / "srun"
    srun.parent.mkdir()
    srun.write_text(f'#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {shutil.which("srun")} "$@"\n')
    srun.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{srun.parent}:{os.environ['PATH']}:/usr/sbin:/sbin",
        "SLURM_CONF": str(folder / "slurm.conf"),
    }
    munge = folder / "munge"
    commands = [
        [
            *("munged", "--foreground", "--force", f"--socket={folder}/munge.socket"),
            *(f"--key-file={munge}/key", f"--pid-file={munge}/pid", f"--log-file={munge}/log"),
            f"--seed-file={munge}/seed",
        ],
        ["slurmctld", "-D"],
        ["slurmd", "-D", "-N", host],
    ]
    daemons = []
    try:
        for command in commands:
            with (folder / f"{command[0]}.out").open("w") as out:
                daemons.append(subprocess.Popen(command, env=environment, stdout=out, stderr=out))
            if command[0] == "munged":
                wait_for((folder / "munge.socket").exists)
        wait_for(lambda: "idle" in _output(environment, "sinfo", "--noheader", "--format=%T"))
        yield environment
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
            daemon.wait()


def _output(environment: Mapping[str, str], *command: str) -> str:
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False
    ).stdout


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
