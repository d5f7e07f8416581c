"""Prints the history of the only offline run of Weights & Biases below a folder, one JSON line per step.

wandb 0.31 has no public reader of its transaction log, so the framing is read here: a header of 7 bytes, then blocks of
32 KiB with records of CRC (4 bytes), length (2), kind (1; 1 complete, 2 first, 3 middle, 4 last), and data. The records
are parsed by wandb.
"""

import json
import sys
from pathlib import Path

from wandb.proto.wandb_internal_pb2 import Record

BLOCK, HEAD = 32768, 7


def records(data):
    """Yields the records of a transaction log."""
    at, parts = HEAD, b""
    while at + HEAD <= len(data):
        left = BLOCK - at % BLOCK
        if left < HEAD:
            at += left
            continue
        length, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        parts += data[at + HEAD : at + HEAD + length]
        at += HEAD + length
        if kind in (1, 4):
            yield parts
            parts = b""


(path,) = Path(sys.argv[1]).glob("wandb/offline-run-*/*.wandb")
for payload in records(path.read_bytes()):
    record = Record()
    record.ParseFromString(payload)
    if record.WhichOneof("record_type") == "history":
        items = record.history.item
        print(json.dumps({item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}))
