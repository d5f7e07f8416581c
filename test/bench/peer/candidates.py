"""The peer's candidates: for each kind of benchmark, a list of keyword arguments, the fastest known first. With
`--tune`, all are tried and the fastest is used; otherwise the first is used. The fastest candidate depends on
the sizes of the model and the batch, so a benchmark may have its own list."""

WAYS = {
    "training": [
        dict(micro=8),
        dict(micro=16),
        dict(micro=32),
        dict(micro=8, compiled=True),
        dict(micro=16, compiled=True),
    ],
    "rollout": [dict(packed=True), dict(packed=False), dict(packed=True, compiled=True)],
    "iteration": [
        dict(sampler=dict(packed=True), step=dict(micro=8)),
        dict(sampler=dict(packed=True), step=dict(micro=16)),
        dict(sampler=dict(packed=True), step=dict(micro=32)),
        dict(sampler=dict(packed=True, compiled=True), step=dict(micro=8, compiled=True)),
    ],
    "memory": [dict(micro=8, checkpointing=True)],
}
GENERATE = [dict(cache="dynamic"), dict(cache="static")]
OWN = {
    "training, 0.5B LoRA r16": [dict(micro=4), dict(micro=8), dict(micro=2), dict(micro=4, compiled=True)],
    "training peak memory, 0.5B LoRA, head in parts": [dict(micro=8, checkpointing=True, chunk=256)],
}


ON_GPU = {
    "training": [dict(micro=32), dict(micro=16), dict(micro=32, compiled=True)],
    "rollout": [dict(packed=False), dict(packed=False, compiled=True)],
}


def ways(kind, name, settings):
    if settings.get("device", "cpu") != "cpu":
        return ON_GPU[kind]
    if kind == "pictured-iteration":
        return [dict(features=settings["peer_features"], micro=8)]
    if settings.get("peer") == "transformers":
        return GENERATE if kind == "rollout" else [dict(sampler=how, step=dict(micro=8)) for how in GENERATE]
    return OWN.get(name) or WAYS.get(kind) or [{}]
