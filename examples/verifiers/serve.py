"""Serves an environment of verifiers (version 0.4) to RAGEN Workbench, and writes the tasks of its taskset.

    python serve.py TASKSET [--env JSON] [--tasks FILE] [--limit N] [--val-tasks FILE] [--val N] [--address tcp://…] [--workers N]

TASKSET is the name of the package with the environment. --env has further keys of the environment's configuration, for
instance {"agent": {"harness": {"id": "null"}, "runtime": {"type": "subprocess"}}}. The last --val tasks of the first
--limit go to the file of --val-tasks. Prints a line when the server listens; Ctrl-C ends it.
"""

import argparse
import itertools
import json
import multiprocessing
import threading

from verifiers.v1.serve import env_config_data, serve_env
from verifiers.v1.utils.loaders import load_taskset, resolve_env_config


def write_lines(file: str, tasks: list) -> None:
    with open(file, "w", encoding="utf-8") as lines:
        for task in tasks:
            lines.write(json.dumps(task.data.model_dump(mode="json")) + "\n")
    print(f"{len(tasks)} tasks written to {file}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("taskset")
    parser.add_argument("--env", type=json.loads, default={})
    parser.add_argument("--tasks", default="tasks.jsonl")
    parser.add_argument("--val-tasks", default="val-tasks.jsonl")
    parser.add_argument("--limit", type=int, default=10_000)
    parser.add_argument("--val", type=int, default=0)
    parser.add_argument("--address", default="tcp://127.0.0.1:5000")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()

    taskset = {**options.env.get("taskset", {}), "id": options.taskset}
    config = resolve_env_config({**options.env, "taskset": taskset})
    tasks = list(itertools.islice(load_taskset(config.taskset), options.limit))
    split = len(tasks) - options.val
    write_lines(options.tasks, tasks[:split])
    if options.val:
        write_lines(options.val_tasks, tasks[split:])

    bound = multiprocessing.Queue()
    say = lambda: print(f"Serving {config.env_id} at {bound.get()}", flush=True)  # noqa: E731
    threading.Thread(target=say, daemon=True).start()
    serve_env(
        max_workers=options.workers,
        address=options.address,
        address_queue=bound,
        config_data=env_config_data(config),
    )


if __name__ == "__main__":
    main()
