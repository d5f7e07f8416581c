"""Manual check of an exported ONNX decoder (needs torch, transformers, onnx, onnxruntime).

python test/golden/make/check_onnx.py EXPORTED
    the checker of onnx reports no error, every operator is a standard ONNX operator, and onnxruntime's logits equal the
    logits of transformers on the same folder: for rows without padding, with padding on the left and on the right, and
    for one token.

Exits with an error if anything differs.
"""
import collections
import pathlib
import sys
import onnx
import onnxruntime
import torch
from transformers import AutoModelForCausalLM

folder = pathlib.Path(sys.argv[1])
onnx.checker.check_model(str(folder / "model.onnx"), full_check=True)
graph = onnx.load(folder / "model.onnx", load_external_data=False)
domains = {(o.domain, o.version) for o in graph.opset_import} | {(n.domain, None) for n in graph.graph.node}
print(sorted(domains, key=str), dict(collections.Counter(n.op_type for n in graph.graph.node)))
assert domains == {("", 21), ("", None)}, domains
session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
torch.manual_seed(0)
for b, t, padding in [(3, 17, None), (4, 9, "left"), (4, 9, "right"), (1, 1, None)]:
    ids = torch.randint(0, model.config.vocab_size, (b, t))
    mask = torch.ones(b, t, dtype=torch.long)
    for row in range(b):
        if padding == "left":
            mask[row, :row] = 0
        if padding == "right":
            mask[row, t - row:] = 0
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    with torch.no_grad():
        expected = model(ids, attention_mask=mask, position_ids=positions).logits
    feeds = {"input_ids": ids.numpy(), "attention_mask": mask.numpy(), "position_ids": positions.numpy()}
    (logits,) = session.run(["logits"], feeds)
    difference = (torch.from_numpy(logits) - expected).abs()[mask.bool()].max().item()
    print(f"{b} rows of {t}, padding {padding}: largest difference {difference:.2e} of logits up to {expected.abs().max().item():.1f}")
    assert difference <= 1e-4 * expected.abs().max().item()
