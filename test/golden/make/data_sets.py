"""Small Parquet files in the formats of published data sets, for test/golden/data-sets (needs pyarrow).
python test/golden/make/data_sets.py test/golden/data-sets"""
import os
import sys
import pyarrow as pa
import pyarrow.parquet as pq


def write(name, rows, schema, **options):
    path = os.path.join(sys.argv[1], name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path, **options)


problem = pa.schema([("target", pa.int64()), ("nums", pa.list_(pa.int64()))])
problems = [{"target": 3 * i + 6, "nums": [i + 1, i + 2, i + 3]} for i in range(25)]
problems[7]["target"] = 1000  # no signed sum
write("countdown/data/train-00000-of-00002.parquet", problems[:15], problem, row_group_size=4)  # Snappy, several row groups
write("countdown/data/train-00001-of-00002.parquet", problems[15:], problem, compression="gzip", version="1.0")
write("countdown/data/test-00000-of-00001.parquet", [{"target": 6, "nums": [1, 2, 3]}], problem, compression="none")

school = pa.schema([("question", pa.string()), ("answer", pa.string())])
for configuration, mark in (("main", "plain"), ("socratic", "asked")):
    for split, count in (("train", 5), ("test", 2)):
        rows = [{"question": f"{mark} {split} {i}: how much is {i} + 1? ✓", "answer": f"{i} + 1 = {i + 1}\n#### {i + 1}"} for i in range(count)]
        write(f"gsm8k/{configuration}/{split}-00000-of-00001.parquet", rows, school, compression="brotli" if split == "test" else "snappy")

choice = pa.schema([("question", pa.string()), ("subject", pa.string()), ("choices", pa.list_(pa.string())), ("answer", pa.int64())])
write("mmlu/abstract_algebra/test-00000-of-00001.parquet", [{"question": "What is 1 + 1?", "subject": "abstract_algebra", "choices": ["1", "2", "3", "4"], "answer": 1}], choice)
write("mmlu/zstd.parquet", [{"question": "?", "subject": "none", "choices": ["a"], "answer": 0}], choice, compression="zstd")
