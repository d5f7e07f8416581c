"""Conversations with tools, rendered and tokenised by transformers' apply_chat_template.

Run: python test/golden/make/chat_tools.py [--check FAMILY=TEMPLATE.jinja ...]  (needs transformers, jinja2)
Reads the tokenizer folders in test/golden/chat and writes tools.json next to them: the tools, and for each family the
conversations as text and ids. With --check it writes nothing: it renders the conversations with a published template,
which is not stored in this repository, and prints the goldens to standard output. Answers have the form in which the
template renders an earlier answer, so that the ids of a conversation are the ids of its parts.
"""
import json
import pathlib
import sys
from transformers import AutoTokenizer

here = pathlib.Path(__file__).resolve().parents[1] / "chat"

TOOLS = [
    {"type": "function", "function": {"name": "lookup", "description": "Returns a cell, such as “α → ß” <b>&amp;</b>.", "parameters": {
        "type": "object", "properties": {"item": {"type": "string", "description": "the row's name"},
                                         "column": {"type": "string", "enum": ["price", "stock"]}},
        "required": ["item", "column"], "additionalProperties": False}}},
    {"type": "function", "function": {"name": "calculate", "description": "Computes 'an' \"expression\"\\n.", "parameters": {
        "type": "object", "properties": {"expression": {"type": "string"}, "digits": {"type": "integer", "minimum": 0, "default": 3},
                                         "scale": {"type": "number", "exclusiveMinimum": 1.5}, "flags": {"type": "array", "items": {"type": "boolean"}}},
        "required": ["expression"]}}},
]


def thinking(family, text):
    return f"<think>\nI look.\n</think>\n\n{text}" if family == "qwen3" else text


def call(family, name, arguments):
    if family == "llama3":
        return json.dumps({"name": name, "parameters": arguments})
    return "<tool_call>\n" + json.dumps({"name": name, "arguments": arguments}) + "\n</tool_call>"


def conversations(family):
    system, user = {"role": "system", "content": "Answer with a number."}, {"role": "user", "content": "What do 2 drums cost?"}
    first = {"role": "assistant", "content": thinking(family, call(family, "lookup", {"item": "drum", "column": "price"}))}
    two = {"role": "assistant", "content": thinking(family, "\n".join(call(family, "calculate", {"expression": e}) for e in ("2 * 31", "1 + 1")))}
    result = lambda text: {"role": "tool", "content": text}
    yield [system, user]
    yield [user]
    yield [system, user, first, result("31")]
    yield [system, user, first, result("31"), two, result("62"), result("Error: no “§”\n<tool_response> here.")]
    yield [system, user, two, result("62"), result('{"value": [2, null]}'), first, result("")]


def goldens(family, template=None):
    tokenizer = AutoTokenizer.from_pretrained(here / family)
    rows = []
    for messages in conversations(family):
        options = {"tools": TOOLS, "add_generation_prompt": True, "date_string": "26 Jul 2024", "chat_template": template}
        text = tokenizer.apply_chat_template(messages, tokenize=False, **options)
        ids = tokenizer.apply_chat_template(messages, tokenize=True, return_dict=False, **options)
        rows.append({"messages": messages, "text": text, "ids": ids})
    return rows


if __name__ == "__main__":
    if "--check" in sys.argv:
        pairs = [pair.split("=", 1) for pair in sys.argv[sys.argv.index("--check") + 1:]]
        found = {family: goldens(family, pathlib.Path(file).read_text()) for family, file in pairs}
        json.dump({"tools": TOOLS, "rendered": found}, sys.stdout)
    else:
        found = {family: goldens(family) for family in ("qwen2.5", "qwen3", "llama3")}
        (here / "tools.json").write_text(json.dumps({"tools": TOOLS, "rendered": found}, separators=(",", ":")) + "\n")
