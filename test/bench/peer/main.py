"""The benchmarks' peer: the same work in PyTorch, Gymnasium and gym-sokoban. Started by python-peer.ts;
reads one JSON line and prints one JSON line per run. With --memory it runs the single request of its input once and prints its peak
resident memory."""
import json
import re
import sys
import time

from candidates import ways


def about(threads):
    import platform

    said = [f"Python {platform.python_version()}"]
    try:
        import torch

        torch.set_num_threads(threads)
        card = f", {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
        said.append(f"PyTorch {torch.__version__}, {threads} threads{card}")
    except ImportError:
        pass
    try:
        import gymnasium

        said.append(f"Gymnasium {gymnasium.__version__}")
    except ImportError:
        pass
    return ", ".join(said)


def implementation(kind, settings):
    if kind == "rollout" and settings["peer"] == "transformers":
        from generate import generate as work
    elif kind in ("training", "memory"):
        from training import training as work
    elif kind == "rollout":
        from rollout import rollout as work
    elif kind == "iteration":
        from iteration import iteration as work
    elif kind == "product":
        from product import product as work
    elif kind == "frozen-lake":
        from environments import frozen_lake as work
    elif kind == "encoding":
        from pictured import encoding as work
    elif kind == "first-token":
        from pictured import first_token as work
    elif kind == "pictured-iteration":
        from pictured import pictured_iteration as work
    elif kind == "sokoban":
        from environments import sokoban as work
    else:
        raise ImportError(f"{kind} is measured on our side only")
    return work


def rates(run):
    """Units per second, and per second of processor time of all threads."""
    start, before = time.perf_counter(), time.process_time()
    units = run()
    if "torch" in sys.modules and sys.modules["torch"].cuda.is_initialized():
        sys.modules["torch"].cuda.synchronize()
    return units / (time.perf_counter() - start), units / max(time.process_time() - before, 1e-9)


def place(settings):
    """Makes the device of the settings the default of new tensors."""
    if settings.get("device", "cpu") == "cpu":
        return
    import torch

    if not torch.cuda.is_available():
        raise ImportError("this PyTorch finds no CUDA device")
    torch.set_default_device("cuda")


def ready(question):
    """The workload with one candidate: with `tune` the fastest, otherwise the first."""
    place(question["settings"])
    work = implementation(question["kind"], question["settings"])
    known = ways(question["kind"], question["name"], question["settings"])
    if not question["tune"] or len(known) == 1:
        return work(question["settings"], known[0]), known[0]
    best = None
    for how in known:
        try:
            run = work(question["settings"], how)
            run()
            reached = max(rates(run)[0] for _ in range(2))
        except Exception as error:  # this version of PyTorch does not support the candidate
            print(f"peer: {question['name']} {how}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
            continue
        print(f"peer: {question['name']} {how}: {reached:.4g}", file=sys.stderr)
        if not best or reached > best[0]:
            best = (reached, run, how)
        del run
    return best[1], best[2]


def peak_mib():
    with open("/proc/self/status") as file:
        return int(re.search(r"VmHWM:\s+(\d+) kB", file.read()).group(1)) / 1024


def memory():
    question = json.load(sys.stdin)
    about(question["threads"])
    start = peak_mib()
    ready(question)[0]()
    print(json.dumps(dict(peak_mib=peak_mib(), start_mib=start)))


def answer(question, opened):
    if question.get("about"):
        return dict(about=about(question["threads"]))
    if "forget" in question:
        opened.pop(question["forget"], None)
        return dict(forgotten=True)
    name = question["name"]
    try:
        if name not in opened:
            opened[name] = ready(question)
    except ImportError as error:
        return dict(missing=str(error))
    run, how = opened[name]
    if question.get("evidence"):
        return dict(evidence=run.evidence() if hasattr(run, "evidence") else None)
    rate, of_processor = rates(run)
    return dict(rate=rate, of_processor=of_processor, how=", ".join(f"{key} {value}" for key, value in how.items()))


def serve():
    opened = {}
    for line in sys.stdin:
        try:
            said = answer(json.loads(line), opened)
        except Exception as error:
            said = dict(error=f"{type(error).__name__}: {error}")
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    memory() if "--memory" in sys.argv else serve()
