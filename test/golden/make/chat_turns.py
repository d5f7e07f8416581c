"""Chat templates with other newlines than \\n, and conversations that continue after an answer, by transformers.

Run: python test/golden/make/chat_turns.py  (needs transformers, jinja2)
Reads the tokenizer folders in test/golden/chat and writes turns.json next to them: `newlines` has templates,
stored in chat_template.jinja or in tokenizer_config.json, with the result of apply_chat_template; `continued` has
conversations of several turns as text and ids, by folder.
"""
import json
import pathlib
import shutil
import tempfile
from transformers import AutoTokenizer

here = pathlib.Path(__file__).resolve().parents[1] / "chat"
MESSAGES = [{"role": "user", "content": "one\r\ntwo\rthree"}, {"role": "assistant", "content": "yes"}, {"role": "user", "content": "on"}]
BODY = ("{# ChatML #}\n{% for m in messages %}\n<|im_start|>{{ m.role }}\n{{ m.content + 'raw\nliteral' + '\\r\\n' }}<|im_end|>\n"
        "{%- endfor %}\n{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}\n")
ANSWERS = ["<answer>Right</answer>", "Down.", "<think>free</think><answer>Up || Up</answer>"]


def newlines():
    rows = []
    for place in ("chat_template.jinja", "tokenizer_config.json"):
        for newline in ("\n", "\r\n", "\r", "\n\r"):
            template = BODY.replace("\n", newline)
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                shutil.copy(here / "qwen2.5" / "tokenizer.json", folder)
                config = json.loads((here / "qwen2.5" / "tokenizer_config.json").read_text())
                if place == "tokenizer_config.json":
                    config["chat_template"] = template
                else:
                    (folder / place).write_bytes(template.encode())
                (folder / "tokenizer_config.json").write_text(json.dumps(config))
                tokenizer = AutoTokenizer.from_pretrained(folder)
                text = tokenizer.apply_chat_template(MESSAGES, tokenize=False, add_generation_prompt=True)
            rows.append({"place": place, "template": template, "text": text})
    return rows


def continued():
    found = {}
    for family in ("qwen2.5", "llama3"):
        tokenizer = AutoTokenizer.from_pretrained(here / family)
        rows = found[family] = []
        for turns in (1, 2, 3):
            messages = [{"role": "user", "content": "State:\nP_G"}]
            for turn in range(turns):
                messages += [{"role": "assistant", "content": ANSWERS[turn]}, {"role": "user", "content": f"Reward:\n{turn}.0\n\nState:\n_PG"}]
            options = {"add_generation_prompt": True, "date_string": "26 Jul 2024"}
            text = tokenizer.apply_chat_template(messages, tokenize=False, **options)
            ids = tokenizer.apply_chat_template(messages, tokenize=True, return_dict=False, **options)
            rows.append({"messages": messages, "text": text, "ids": ids})
    return found


if __name__ == "__main__":
    found = {"messages": MESSAGES, "newlines": newlines(), "continued": continued()}
    (here / "turns.json").write_text(json.dumps(found, separators=(",", ":")) + "\n")
