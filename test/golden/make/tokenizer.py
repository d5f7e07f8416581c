"""Token ids by the Python `tokenizers` library, for the product's own tokenizer and for one in the format of Qwen's
models.

Run: python test/golden/make/tokenizer.py  (needs tokenizers)
Reads test/golden/tokenizer/own.json (written by `npx vitest run test/unit/trainer/sft -u`), trains qwen.json on
corpus.txt with Qwen2's normaliser and pre-tokenizer, and writes ids.json: for each tokenizer, texts with their ids
and the decoded text with and without special tokens.
"""
import json
import pathlib
import random
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

here = pathlib.Path(__file__).resolve().parents[1] / "tokenizer"
corpus = (here / "corpus.txt").read_text(encoding="utf8").split("\n")

qwen = Tokenizer(models.BPE(byte_fallback=False))
qwen.normalizer = normalizers.NFC()
words = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
qwen.pre_tokenizer = pre_tokenizers.Sequence([
    pre_tokenizers.Split(Regex(words), behavior="isolated"),
    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
qwen.decoder = decoders.ByteLevel()
qwen.train_from_iterator(corpus, trainers.BpeTrainer(
    vocab_size=420, min_frequency=2, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
qwen.add_special_tokens([AddedToken(token, normalized=False, special=True)
                         for token in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")])
qwen.add_tokens([AddedToken(token, normalized=False, special=False) for token in ("<think>", "</think>")])
qwen.save(str(here / "qwen.json"))

texts = [
    "", " ", "  ", "a", "\n", "\n\n", " \n ", "\t", "\t\tx", "\r\n", "x\r\ny\r\n", "   leading", "trailing   ", "in   between",
    "\u00a0no\u00a0break", "\u2003em\u2003space", "\u200bzero\u200bwidth", "\u0000", "a\u0000b", "\u007f", "\u0001answer\u0001",
    "You are on a frozen lake.", "You are on a frozen lake. Walk to the goal", "######\n#_P__#\n#_X__#\n#__O_#\n######",
    "P___\n_O_G\n√OO_", "OPGXS_", "OPGXS", "O\nP\n", "PLAYER GOAL", "√√√", "Right || Up", "Right||Up", "Right ||  Up", " || || ",
    "Down || Left || Down || Right", "0123456789", "3.14159", "2,718", "-0.1", "1e-5", "100%", "v1.2.3-rc4", "(2, 3), (0, 1)",
    "I'm, you're, he's, we've, they'll, I'd, don't", "I'M, YOU'RE, HE'S, WE'VE, THEY'LL, I'D, DON'T", "'s't'", "rock 'n' roll",
    "camelCaseWords and_snake_case", "e-mail@example.org", "a/b\\c", "<>[]{}()|", "!!! ??? ...", "\"quoted\" “curly”", "x = y+z;",
    "Naïve café", "Nai\u0308ve cafe\u0301", "ﬁ ligature", "Ǆ ǅ ǆ", "İstanbul", "ẞ ß", "Ω Ω", "한국어", "한국어",
    "的确是这样的，的确是这样的。", "日本語テスト", "العربية", "עברית", "ไทย", "हिन्दी", "Привет, мир", "Ελληνικά",
    "🙂", "👩‍👩‍👧‍👦", "🇩🇪🇫🇷", "👍🏽", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢", "𐍈", "\U0010ffff", "e\u0301\u0302\u0303", "\u202eright to left",
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "</think>", "<answer>", "</answer>", "<|im_start|>user\nhi<|im_end|>\n",
    "<think>x</think>", "<think></think><answer>Right</answer>", " <think> ", "\n<think>\n", "a<|im_end|>b", "<|im_end|><|im_end|>",
    "<|im_start", "|im_start|>", "<|IM_START|>", "<think", "think>", "<<think>>", "</ think>", "<|im_start|", "<|<|im_end|>|>",
    "the " * 30, "#" * 100, "_" * 33, " " * 33, "\n" * 9, "ab" * 40, "1" * 40, "State:\n", "Turn 2:\nState:\n",
]
dice = random.Random(7)
pieces = list("abc XYZ\n\t #_OPGXS√0123456789.,'’é的🙂\u0301\u00ad") + [
    "<think>", "</think>", "<answer>", "<|im_end|>", " || ", "the ", "You are ", "\n\n", "  ", "'ll", "<|", "|>"]
texts += ["".join(dice.choices(pieces, k=dice.randint(1, 25))) for _ in range(80)]

golden = {}
for name in ("own", "qwen"):
    tokenizer = Tokenizer.from_file(str(here / f"{name}.json"))
    golden[name] = []
    for text in texts:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        golden[name].append({"text": text, "ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False),
                             "visible": tokenizer.decode(ids, skip_special_tokens=True)})
lines = {name: ",\n".join(json.dumps(row, ensure_ascii=True) for row in rows) for name, rows in golden.items()}
(here / "ids.json").write_text("{\n" + ",\n".join(f'"{name}": [\n{rows}\n]' for name, rows in lines.items()) + "\n}\n")
print({name: len(rows) for name, rows in golden.items()})
