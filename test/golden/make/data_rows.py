"""Makes test/golden/data-rows/questions.parquet as data sets are published: Snappy, a list column, several row groups.

Run: python test/golden/make/data_rows.py   (needs pyarrow)
"""
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

rows = [{"id": i, "question": f"What is {i} times {i}?", "ground_truth": [str(i * i), f"{i * i}.0"]} for i in range(40)]
folder = Path(__file__).parent.parent / "data-rows"
pq.write_table(pa.Table.from_pylist(rows), folder / "questions.parquet", row_group_size=16)
