"""The trace of an episode, shared by the scripts for test/golden/envs: one line of state, reward and flags per step.
The golden files store the first ten hex digits of the trace's sha256. test/golden/envs/trace.ts builds the same trace
for our environments."""
import hashlib
import json


class Trace:
    def __init__(self, state):
        self.lines = [str(state)]

    def step(self, state, reward, terminated, truncated):
        self.lines.append(f"{state} {float(reward)!r} {int(terminated)}{int(truncated)}")

    @property
    def digest(self):
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()[:10]


def dump(sets):
    """Lists of rows as JSON, one row per line."""
    def rows(entry):
        head = json.dumps({**entry, "rows": 0})[:-2]
        return head + "[\n" + ",\n".join(json.dumps(r, separators=(",", ":"), ensure_ascii=False) for r in entry["rows"]) + "]}"
    return "[" + ",\n".join(map(rows, sets)) + "]"
