"""The physical link model: what a variant's reads of host memory must cost, and what they do cost.

`access` reads how a variant reads (study.yaml), `traffic` counts what that puts on the link,
`terms` turns it into seconds, `fit` finds a machine's parameters, `judge` says what counts.
"""

from typing import Final

METRIC: Final = "gpu_time"
"""What is predicted: seconds on the device, the copy's own."""
