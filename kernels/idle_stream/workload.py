"""Scattered pieces, moved to the device."""

from kernels.common.moves.workload import Workload as Workload
