"""Operations that are measured, and their input."""

from analysis.base.processes import end_with_parent
from analysis.measure.cell import Launcher, Operation, PythonLauncher, PythonOperation, Skip
from analysis.measure.cpu import cores, flush, flush_rows, threads
from analysis.measure.tracing import copy_seconds
