"""Token ids of the tokenizers library for added tokens that match whole words only, or strip adjacent white space.

Run: python test/golden/make/added_tokens.py  (needs tokenizers)
Writes test/golden/chat/added-tokens.json: byte-level tokenizers without merges that differ in normaliser and added
tokens, texts that combine tokens with adjacent characters, and the ids of each text under each tokenizer.
"""
import json
import pathlib
import random
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

target = pathlib.Path(__file__).resolve().parents[1] / "chat" / "added-tokens.json"


def tokenizer(tokens, normalizer=None):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({letter: i for i, letter in enumerate(alphabet)}, []))
    if normalizer:
        made.normalizer = normalizer
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    made.decoder = decoders.ByteLevel()
    made.add_tokens(tokens)
    return made


TOKENIZERS = {
    "whole words": tokenizer([AddedToken("<x>", single_word=True, normalized=False), AddedToken("ab", single_word=True, normalized=False),
                              AddedToken("abc", normalized=False), AddedToken("ÄB", single_word=True, normalized=False)]),
    "white space": tokenizer([AddedToken("<l>", lstrip=True, normalized=False), AddedToken("<r>", rstrip=True, normalized=False),
                              AddedToken("<b>", lstrip=True, rstrip=True, normalized=False), AddedToken("<x>", normalized=False)]),
    "normalized": tokenizer([AddedToken("<L>", lstrip=True, normalized=True), AddedToken("<R>", rstrip=True, normalized=True),
                             AddedToken("AB", single_word=True, normalized=True), AddedToken("<x>", lstrip=True, rstrip=True, normalized=False),
                             AddedToken("Ä", normalized=True)],
                            normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])),
    "normalized without a normaliser": tokenizer([AddedToken("<l>", lstrip=True, normalized=True), AddedToken("<b>", rstrip=True, normalized=False),
                                                  AddedToken("l><b", normalized=True), AddedToken("ab", single_word=True, normalized=True)]),
}
PIECES = ["<x>", "<l>", "<r>", "<b>", "<L>", "<R>", "ab", "AB", "abc", "ÄB", "ä", "A\u0308", " ", "  ", "\n", "\t", "\u0085", "\ufeff", "\u00a0", "\u200b",
          "\u2028", "\u3000", "_", "-", ".", "1", "½", "²", "é", "\u0301", "中", "🙂", "\u200d", "x", "\x1c"]
dice = random.Random(3)
TEXTS = ["", *PIECES, *("".join(dice.choices(PIECES, k=dice.randint(2, 12))) for _ in range(400))]

rows = {name: [made.encode(text, add_special_tokens=False).ids for text in TEXTS] for name, made in TOKENIZERS.items()}


def line(value):
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def lines(values):
    return "[\n" + ",\n".join(line(value) for value in values) + "\n]"


made = ",\n".join(f"{line(name)}: {line(json.loads(t.to_str()))}" for name, t in TOKENIZERS.items())
ids = ",\n".join(f"{line(name)}: {lines(values)}" for name, values in rows.items())
target.write_text(f'{{"tokenizers": {{\n{made}\n}},\n"texts": {lines(TEXTS)},\n"ids": {{\n{ids}\n}}\n}}\n')
print(len(TEXTS), "texts")
