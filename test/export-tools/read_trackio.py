"""Prints the rows of a run of a trackio project as JSON lines."""

import json
import sys

from trackio.sqlite_storage import SQLiteStorage

project, run = sys.argv[1:]
for row in SQLiteStorage.get_logs(project, run):
    print(json.dumps(row))
