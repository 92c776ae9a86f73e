"""Files that a study's programs write and read: JSON with typed keys, and CSV."""

from analysis.base.files import write_whole
from analysis.base.keys import Boolean, Count, Keys, Natural, Sentence, Text, adapter, key
from analysis.base.keys import read as read_keys
from analysis.base.records import write_records
from analysis.base.schema import read_json
