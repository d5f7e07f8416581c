"""Prints the rows of a Parquet file as JSON lines, as pyarrow reads them."""

import json
import sys

import pyarrow.parquet

for row in pyarrow.parquet.read_table(sys.argv[1]).to_pylist():
    print(json.dumps(row))
