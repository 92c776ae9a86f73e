"""Files that a study's programs write and read."""

from analysis.base.files import write_whole
from analysis.base.keys import read as read_keys
