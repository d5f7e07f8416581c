"""What the scripts for test/golden/envs share: the trace of an episode, a line of state, reward and flags for each step, of which the
first ten hex digits of the sha256 are kept. test/golden/envs/trace.ts makes the same of ours."""
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
    """Sets of rows as JSON, a row a line."""
    def rows(entry):
        head = json.dumps({**entry, "rows": 0})[:-2]
        return head + "[\n" + ",\n".join(json.dumps(r, separators=(",", ":"), ensure_ascii=False) for r in entry["rows"]) + "]}"
    return "[" + ",\n".join(map(rows, sets)) + "]"
