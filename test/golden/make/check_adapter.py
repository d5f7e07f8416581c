"""Manual checks of the product's output with peft and transformers (needs torch, transformers, peft, safetensors).

python test/golden/make/check_adapter.py ADAPTER BASE
    peft loads the adapter's folder over the base, and its logits equal those of the base with scale · B·A added to its
    weights manually.
python test/golden/make/check_adapter.py ADAPTER BASE EXPORTED
    also checks that transformers loads the exported folder. In f32, its logits equal the adapted model's within 1e-4 of
    the largest logit; in half precision, every weight equals the merged weight rounded to nearest even. ADAPTER may be
    `-` for no adapter.

Exits with an error if anything differs.
"""
import json
import pathlib
import sys
import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

adapter, base, *exported = sys.argv[1:]
load = lambda folder, dtype=torch.float32: AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="eager").eval()
torch.manual_seed(0)
by_hand = load(base)
ids = torch.randint(0, by_hand.config.vocab_size, (3, 17))


def compare(what, actual, expected, tolerance):
    error = ((actual - expected).abs().max() / expected.abs().max()).item()
    print(f"{what}: largest difference {error:.2e} of the largest logit")
    assert error <= tolerance, what


with torch.no_grad():
    plain = by_hand(ids).logits
    if adapter != "-":
        config = json.loads((pathlib.Path(adapter) / "adapter_config.json").read_text())
        factors = load_file(pathlib.Path(adapter) / "adapter_model.safetensors")
        scale = config["lora_alpha"] / (config["r"] ** 0.5 if config["use_rslora"] else config["r"])
        modules = {name.split(".lora_")[0] for name in factors}
        for module in modules:
            weight = by_hand.get_submodule(module.removeprefix("base_model.model.")).weight
            a, b = factors[module + ".lora_A.weight"].float(), factors[module + ".lora_B.weight"].float()
            weight += scale * (b @ a)
        peft = PeftModel.from_pretrained(load(base), adapter).eval()
        loaded = {n.replace(".default", ""): p for n, p in peft.named_parameters() if ".lora_" in n}
        assert loaded.keys() == factors.keys() and all(torch.equal(loaded[n], factors[n].float()) for n in factors), "factors"
        expected = peft(ids).logits
        compare(f"peft against weights merged by hand, {len(modules)} layers", expected, by_hand(ids).logits, 1e-5)
        print(f"the adapter moves the logits by up to {(expected - plain).abs().max().item():.3f}")
    for folder in exported:
        stored = json.loads((pathlib.Path(folder) / "config.json").read_text())
        dtype = getattr(torch, stored.get("dtype") or stored["torch_dtype"])
        compare(f"transformers on the exported folder, {dtype}", load(folder)(ids).logits, by_hand(ids).logits, 1e-4 if dtype == torch.float32 else 0.1)
        own = dict(load(folder, dtype).named_parameters())
        differing = sum((own[n] != p.to(dtype)).sum().item() for n, p in by_hand.named_parameters())
        total = sum(p.numel() for p in by_hand.parameters())
        print(f"{differing} of {total} weights differ from the merged ones rounded by PyTorch")
        # A merged weight may differ in its last single-precision bit, which changes the rounding only near a tie.
        assert differing <= (0 if adapter == "-" else total if dtype == torch.float32 else total * 1e-3), "rounding"
