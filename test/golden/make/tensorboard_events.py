"""Writes the event file of TensorBoard's own writer for a few scalars to test/golden/tensorboard/.

Run: python test/golden/make/tensorboard_events.py  (needs tensorboard)
Writes `scalars.json` (the time, the step at which the run was resumed, and the scalars by step) and
`events.out.tfevents.golden` (the same scalars, written by TensorBoard's protocol buffers and record writer). Checks the
event file with TensorBoard's event accumulator.
"""
import json
import pathlib
import struct
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

folder = pathlib.Path(__file__).resolve().parents[1] / "tensorboard"
folder.mkdir(exist_ok=True)
file = folder / "events.out.tfevents.golden"
cases = {
    "seconds": 1767225600.25,
    "resumed_at": 127,
    "scalars": {
        "0": {"val-env/FrozenLake/success": 0.125},
        "128": {"actor/pg_loss": -1.5e-7, "critic/score/mean": 3.1415926535, "näm/ß": 1e30},
        "100000": {f"group/{i}": i / 7 for i in range(60)},
    },
}
(folder / "scalars.json").write_text(json.dumps(cases, ensure_ascii=False, indent=1) + "\n")
seconds = cases["seconds"]
with open(file, "wb") as out:
    writer = RecordWriter(out)
    put = lambda event: writer.write(event.SerializeToString(deterministic=True))
    put(Event(wall_time=seconds, file_version="brain.Event:2"))
    put(Event(wall_time=seconds, step=cases["resumed_at"] + 1, session_log=SessionLog(status=SessionLog.START)))
    for step, values in cases["scalars"].items():
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()])
        put(Event(wall_time=seconds, step=int(step), summary=summary))
read = EventAccumulator(str(file)).Reload()
for step, values in cases["scalars"].items():
    for tag, value in values.items():
        [scalar] = [scalar for scalar in read.Scalars(tag) if scalar.step == int(step)]
        assert scalar.value == struct.unpack("f", struct.pack("f", value))[0], (tag, scalar)
