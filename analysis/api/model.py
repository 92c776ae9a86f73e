"""The model of the link and of address translation."""

from analysis.results.model.fit import CAUCHY_SCALE, FLOOR
from analysis.results.model.judge import PREDICTED
from analysis.results.model.traffic import (
    COPY_ENGINE_COMPLETION_BYTES,
    FRAMING_BYTES,
    HEADER_BYTES,
    HOST_LINE_BYTES,
    LINE_BYTES,
    LOAD_BYTES,
    SECTOR_BYTES,
    Request,
    thread_requests,
    traffic_of,
    warp_requests,
)
from analysis.results.model.translation import ENTRY_BYTES, walk_seconds
from analysis.study.calibration import is_third
