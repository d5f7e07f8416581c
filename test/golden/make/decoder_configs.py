"""The values that transformers reads from config.json if keys are absent, are null or have older names.

Run: python test/golden/make/decoder_configs.py  (needs transformers)
Writes test/golden/decoder-configs.json: `read` has a config.json and the attributes of its configuration object,
or null if transformers refuses the file; `others` has the config.json of other families as written by their
configuration classes, limited to the keys of a decoder.
"""
import json
import pathlib
from transformers import AutoConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

here = pathlib.Path(__file__).resolve().parents[1]
KEYS = ["vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
        "max_position_embeddings", "rms_norm_eps", "tie_word_embeddings"]
SMALL = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 50}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
YARN = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512}
CHANGES = [
    {}, SMALL, {**SMALL, "num_key_value_heads": 2}, {**SMALL, "num_key_value_heads": None}, {**SMALL, "num_key_value_heads": 2, "head_dim": 32},
    {**SMALL, "num_key_value_heads": 2, "hidden_size": 66}, {**SMALL, "num_key_value_heads": 2, "tie_word_embeddings": True},
    {**SMALL, "num_key_value_heads": 2, "attention_bias": True}, {**SMALL, "num_key_value_heads": 2, "mlp_bias": True},
    {**SMALL, "num_key_value_heads": 2, "hidden_act": "swish"}, {**SMALL, "num_key_value_heads": 2, "rope_theta": 5e5},
    {**SMALL, "num_key_value_heads": 2, "rope_theta": 5e5, "rope_scaling": None},
    {**SMALL, "num_key_value_heads": 2, "rope_theta": 5e5, "rope_scaling": LLAMA3},
    {**SMALL, "num_key_value_heads": 2, "rope_scaling": YARN},
    {**SMALL, "num_key_value_heads": 2, "rope_scaling": {"type": "linear", "factor": 2.0}},
    {**SMALL, "num_key_value_heads": 2, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}},
    {**SMALL, "num_key_value_heads": 2, "rope_parameters": {"rope_theta": 1e6}, "rope_theta": 5e5},
    {**SMALL, "num_key_value_heads": 2, "rope_parameters": {"rope_type": "linear", "factor": 2.0}, "rope_theta": 5e5},
    {**SMALL, "num_key_value_heads": 2, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}, "rope_scaling": {"type": "linear", "factor": 2.0}},
    {**SMALL, "num_key_value_heads": 2, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}, "rope_scaling": {}},
    {**SMALL, "num_key_value_heads": 2, "rope_parameters": {**LLAMA3, "rope_theta": 5e5}, "original_max_position_embeddings": 128},
    {**SMALL, "num_key_value_heads": 2, "use_sliding_window": False, "sliding_window": 16, "max_window_layers": 0},
    {**SMALL, "num_key_value_heads": 2, "use_sliding_window": True, "sliding_window": 4096, "max_position_embeddings": 4096, "max_window_layers": 0},
    {**SMALL, "num_key_value_heads": 2, "use_sliding_window": True, "sliding_window": 4096, "max_position_embeddings": 4096,
     "layer_types": ["full_attention", "sliding_attention"]},
    {**SMALL, "num_key_value_heads": 2, "use_sliding_window": True, "max_position_embeddings": 32, "sliding_window": 32, "max_window_layers": 1},
]
OTHERS = ["phi", "phi3", "gemma", "gemma2", "gemma3", "gemma3_text", "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen2_moe", "qwen3_moe", "qwen3_next",
          "gpt2", "gpt_neox", "falcon", "mamba", "mixtral", "mistral", "deepseek_v3", "smollm3", "olmo2", "opt", "bloom", "t5", "bert",
          "starcoder2", "stablelm", "cohere", "granite", "llama4"]


def read(config):
    try:
        found = AutoConfig.for_model(**{**config, "model_type": config["model_type"]})
    except Exception:
        return None
    found.standardize_rope_params()  # rotary embeddings call this when they are created
    types = getattr(found, "layer_types", None) or []
    return {
        **{key: getattr(found, key) for key in KEYS},
        "head_dim": getattr(found, "head_dim", None) or found.hidden_size // found.num_attention_heads,
        "attention_bias": getattr(found, "attention_bias", False), "mlp_bias": getattr(found, "mlp_bias", False),
        "rope_parameters": found.rope_parameters,
        "windows": sorted({found.sliding_window for kind in types if kind == "sliding_attention" and found.sliding_window}) if types else [],
    }


def main():
    rows = []
    for family in ("qwen2", "qwen3", "llama"):
        for change in CHANGES:
            config = {"model_type": family, **change}
            rows.append({"config": config, "read": read(json.loads(json.dumps(config)))})
    others = {}
    for name in OTHERS:
        if name in CONFIG_MAPPING:
            content = json.loads(CONFIG_MAPPING[name]().to_json_string(use_diff=False))
            others[name] = {key: value for key, value in content.items() if key in [*KEYS, "model_type", "hidden_act", "head_dim"]}
    text = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    more = ",\n".join(f"{json.dumps(name)}:{json.dumps(content, separators=(',', ':'))}" for name, content in others.items())
    (here / "decoder-configs.json").write_text(f'{{"read":[\n{text}\n],\n"others":{{\n{more}\n}}}}\n')
    print(len(rows), "configurations,", len(others), "families")


if __name__ == "__main__":
    main()
