"""Files that a study's programs write and read."""

from analysis.base.files import write_whole
from analysis.base.keys import read as read_keys
from analysis.base.reading import read_json
from analysis.results.store.keys import Count, Keys, Positive
