"""Operations that are measured, and their input."""

from analysis.base.processes import end_with_parent
from analysis.measure.cell import Launcher, Operation, PythonLauncher, PythonOperation, Skip
from analysis.measure.cores import cores, threads
from analysis.measure.cpu_cache import flush, flush_rows
from analysis.measure.tracing import copy_seconds
