"""Prints validation success over training and the best episode of a run: python read_run.py .ragen/runs/<id>"""
import json, pathlib, re, sys

run = pathlib.Path(sys.argv[1])
lines = lambda name: [json.loads(line) for line in (run / name).open(encoding="utf-8")]
for metrics in lines("metrics.jsonl"):
    success = [value for key, value in metrics.items() if re.fullmatch("val-env/[^/]+/success", key)]
    if success: print(f"step {metrics['step']}: {success[0]:.1%}")
episodes = [episode for path in run.glob("episodes/step-*.jsonl") for episode in lines(path.relative_to(run))]
best = max(episodes, key=lambda episode: (episode["score"], episode["id"]))
print(best["id"], best["score"], *(turn["thought"] for turn in best["turns"]), sep="\n")
