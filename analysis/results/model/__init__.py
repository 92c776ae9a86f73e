"""The physical link model: the minimum cost of a variant's reads of host memory.

How a variant reads is `analysis.study.access`; `traffic` computes the traffic on the link, `terms`
converts it to seconds, `fit` fits a machine's parameters, and `judge` selects the cases that are
held back from the fit and the predictions that are judged.
"""

from typing import Final

METRIC: Final = "gpu_time"
"""The predicted metric: the operation's time on the device, in seconds."""
