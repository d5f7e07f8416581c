"""Token ids and rendered conversations by transformers, for the kinds of tokenizers in Qwen2.5, Qwen3, Llama 3 and
SmolLM2.

Run: python test/golden/make/chat_tokenizers.py [--train NAME ...]  (needs transformers, tokenizers)
With --train it writes tokenizer.json and the other settings to test/golden/chat/NAME (qwen2.5, qwen3, llama3,
smollm2): small BPEs, trained on this repository's documents and the passages below, with the models' normaliser,
pre-tokenizer, post-processor and added tokens. The chat templates in these folders are handwritten. It always writes
strings.json (ids of the texts, without special tokens added) and conversations.json (text and ids of
apply_chat_template) next to them. These folders contain no files of the models.
"""
import json
import pathlib
import random
import sys
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer

root = pathlib.Path(__file__).resolve().parents[3]
here = root / "test" / "golden" / "chat"

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>", "<|box_end|>",
        "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"]
QWEN_PLAIN = ["<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>",
              "<|file_sep|>"]
QWEN3_PLAIN = ["<tool_response>", "</tool_response>", "<think>", "</think>"]
LLAMA = ["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|reserved_special_token_1|>",
         "<|finetune_right_pad_id|>", "<|reserved_special_token_2|>", "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>",
         "<|eot_id|>", "<|python_tag|>", "<|reserved_special_token_3|>"]
SMOLLM = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<reponame>", "<file_sep>", "<filename>", "<gh_stars>", "<issue_start>",
          "<issue_comment>", "<issue_closed>", "<jupyter_start>", "<jupyter_text>", "<jupyter_code>", "<jupyter_output>", "<jupyter_script>",
          "<empty_output>"]
# Words that no merge produces; with ignore_merges they are tokens.
UNMERGED = [" strawberry", " FrozenLake", "Reinforcement", " bandit", "kaleidoscope", " Überraschung", " водопад", "你好世界", "٢٠٢٤", "777",
            "123", " zigzag", "())){", " 🙂🙂", "\n\n\n\n\n", "          "]

SENTENCES = """The quick brown fox jumps over the lazy dog. It's what they've said; I'll see, won't you?
In the beginning the Universe was created. This has made a lot of people very angry and been widely regarded as a bad move.
Le cœur a ses raisons que la raison ne connaît point. L'été où j'ai mangé des crêpes à Besançon.
Die Straße führt über die große Brücke; Fußgänger müssen am Übergang warten.
El niño pequeño comió piñas en la montaña. ¿Dónde está la biblioteca? ¡Qué sorpresa!
Съешь же ещё этих мягких французских булок, да выпей чаю. Привет, мир!
Η γρήγορη καφέ αλεπού πηδάει πάνω από το τεμπέλικο σκυλί. Καλημέρα κόσμε.
我能吞下玻璃而不伤身体。你好，世界！今天天气怎么样？机器学习和强化学习都是人工智能的一部分。
私はガラスを食べられます。それは私を傷つけません。こんにちは、世界。カタカナとひらがな。
나는 유리를 먹을 수 있어요. 그래도 아프지 않아요. 안녕하세요 세계.
أنا قادر على أكل الزجاج و هذا لا يؤلمني. مرحبا بالعالم. ٠١٢٣٤٥٦٧٨٩
אני יכול לאכול זכוכית וזה לא מזיק לי. שלום עולם.
मैं काँच खा सकता हूँ और मुझे उससे कोई चोट नहीं पहुंचती। नमस्ते दुनिया। ०१२३४५
ฉันกินกระจกได้ แต่มันไม่ทำให้ฉันเจ็บ สวัสดีชาวโลก ๐๑๒๓
நான் கண்ணாடி சாப்பிடுவேன், அதனால் எனக்கு ஒரு கேடும் வராது.
আমি কাঁচ খেতে পারি, তাতে আমার কোনো ক্ষতি হয় না।
მე შემიძლია ვჭამო მინა და არ მტკივა. Ես կարող եմ ապակի ուտել։
Tôi có thể ăn thủy tinh mà không hại gì. Việt Nam đất nước tôi.
Mogę jeść szkło i mi nie szkodzi. Zażółć gęślą jaźń. Žluťoučký kůň úpěl ďábelské ódy.
Ben cam yiyebilirim, bana zararı dokunmaz. İstanbul'da ılık bir gün. IĞDIR ıİiI
ខ្ញុំអាចញុំកញ្ចក់បាន ကျွန်တော် မှန်စားနိုင်တယ် ຂອ້ຍກິນແກ້ວໄດ້ ང་ཤེལ་ཟ་ཐུབ།""".split("\n")

RAGEN = [
    "You're a helpful assistant. You are solving the Sokoban puzzle. You are the player and you need to push all boxes to targets. "
    "When you are right next to a box, you can push it by moving in the same direction. You cannot push a box through a wall, and you "
    "cannot pull a box. The answer should be a sequence of actions, like <answer>Right || Right || Up</answer>.\n"
    "The meaning of each symbol in the state is:\n#: wall, _: empty, O: target, √: box on target, X: box, P: player, S: player on target\n"
    "Your available actions are:\nUp, Down, Left, Right\nYou can make up to 10 actions, separated by the action separator \" || \"\n",
    "\nTurn 1:\nState:\n######\n######\n#####O\n#__X_P\n#_____\n######\nYou have 5 actions left. Always output: <think> [Your thoughts] "
    "</think> <answer> [your answer] </answer> with no extra text. Strictly follow this format. Max response length: 100 words (tokens).\n",
    "\nReward:\n-0.1\n\nTurn 2:\nState:\nP___\n_O_G\n√OO_\nX__S\nYou have 3 actions left.",
    "<think> The box is at (3, 3), the target at (2, 5); I'm right of it. </think> <answer>Left || Up || Right</answer>",
    "You are playing a bandit game. Goal: Maximize your total reward by choosing which arm to pull. Which arm to pull: phoenix or dragon?",
    "Countdown: use the numbers [19, 36, 55, 7] to make 65. <answer>(55 + 36 - 7 - 19)</answer>",
]
CODE = [
    "def f(x: int) -> int:\n    \"\"\"Doc.\"\"\"\n    return x ** 2  # square\n\n\nprint(f(12))\n",
    "for (let i = 0; i < n; i++) {\n\tsum += a[i] ?? 0;\n}\n\nexport const x = `${y}\\n`;\n",
    "#include <stdio.h>\r\nint main(void) {\r\n  printf(\"%d\\n\", 0xFF);\r\n  return 0;\r\n}\r\n",
    "SELECT * FROM t WHERE a='b' AND c<>'d';--x", "<div class=\"a\">&nbsp;&#x27;</div>", "{\"a\": [1, 2.5e-3, null, true], \"b\": {}}",
    "\\frac{1}{2} \\sum_{i=0}^{\\infty} x_i^2 $\\alpha$", "rm -rf /tmp/*.log && echo $HOME | grep -v '^#' > out 2>&1",
    "https://example.org/a/b?c=d&e=f%20g#h", "user.name+tag@example.co.uk", "C:\\Users\\me\\file.txt", "CamelCaseHTTPServer_snake_case__x",
    "fn main() -> Result<(), Box<dyn Error>> { Ok(()) }", "| a | b |\n|---|:-:|\n| 1 | 2 |\n", "- [ ] item\n  * sub\n\n> quote\n\n```py\nx\n```",
]
TEXTS = SENTENCES + RAGEN + CODE + [
    "", " ", "  ", "   ", "\n", "\n\n", "\n\n\n", " \n", "\n ", " \n ", "\t", "\t\t", "\t\n", "\n\t", "\r", "\r\n", "\r\n\r\n", " \r\n \r\n", "\v", "\f",
    "\x0b\x0c", "a\n", "\na", "a\n\nb", "a \n b", "a  b", "a   b", "a    b", "  a", "   a", "a  ", "a   ", "\ta", "\t\ta", " \ta", "\t a", "a\tb",
    "a \t b", "a\r\nb", "a\rb", "x\n\n\n\n\ny", "x          y", "     \n     ", "     \n     x", "\n     x", " \n\n x \n\n ", "\u00a0", "\u00a0a", "a\u00a0b",
    "a\u2003b", "a \u2003 b", "\u3000全角", "a\u0085b", "\u0085", "a\u2028b\u2029c", "\u200b", "a\u200bb", "\ufeff", "\ufeffabc", "a\ufeff b", "a\u180eb",
    "\u1680x", "\u202fx", "\u205fx", "\x00", "a\x00b", "\x01\x02\x03", "\x1b[31mred\x1b[0m", "\x7f", "\x1c\x1d\x1e\x1f", "\u0001answer\u0001",
    "0", "1", "12", "123", "1234", "12345", "123456", "1234567", "1234567890" * 3, "777", "7777", " 123", " 1234", "a1b22c333d4444", "3.14159", "1,234,567.89",
    "-0.5", "+1", "1e-10", "0x1F", "2024-07-26T12:34:56Z", "10:30", "50%", "$9.99", "№5", "½ ¼ ¾", "x²+y³", "Ⅷ ⅷ", "①②③", "٣٤٥٦", "१२३४", "１２３４", "𝟏𝟐𝟑𝟒",
    "I'm", "you're", "he's", "we've", "they'll", "I'd", "don't", "I'M YOU'RE HE'S WE'VE THEY'LL I'D DON'T", "'s", "'S", "'t'", "''", "'", "'re'", "'ll'd've",
    "rock'n'roll", "'tis", "O'Neil's", "it’s", "don’t", "'ſ", "x'ſ y", "'ſtop", "'\u212a", "y'all'd've", "'sx", "'tx", "'dab", "'mad", " 's", "\n's", "1's", "'1", "''s",
    "!", "!!", "!!!", "...", "…", "?!", "--", "---", "—", "–", "(", "()", "(())", "())){", " ())){", "[]", "{}", "<>", "<<>>", "@#$%^&*", "_", "__", "a_b", "_a_", "*a*", "**a**",
    "a.b.c", "a,b", "a;b:c", "\"a\"", "“a”", "‘a’", "«a»", "a/b", "a\\b", "a|b", " || ", "||", "Right || Up", "Right||Up", "a=b", "a==b", "a!=b", "a<=b", "->", "=>", "...\n", "!\n\n",
    ".\r\n", " .", " ...", " \n.", "#", "##", "# Title", "#\n#\n", "######\n", "é", "e\u0301", "é" * 3, "e\u0301\u0301", "Café", "Cafe\u0301", "nai\u0308ve", "Å\u212bA\u030a", "ﬁ", "ﬀ",
    "ẛ\u0323", "Ω\u2126", "\u1100\u1161\u11a8", "각", "가\u11a8", "\u0958", "\u0915\u093c", "q\u0307\u0323", "q\u0323\u0307", "\u0301", "\u0301a", " \u0301", "\u0344", "\u2adc", "\ufb1d", "a\u0327\u0301",
    "Z\u0351\u036b\u0343a\u0329l\u0348g\u0321o\u0489", "ß", "ẞ", "ǅ", "İ", "ı", "ŉ", "ά", "ö" * 9, "한국어", "漢字", "㍿", "豈", "𠮷野家", "你好", "你好世界", "你好世界你好", "，。！？", "「」", "ｱｲｳ", "が", "か\u3099", "ゔ", "々", "〇",
    "🙂", "🙂🙂", " 🙂🙂", "a🙂b", "👩‍👩‍👧‍👦", "👍🏽", "🇩🇪🇫🇷", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "1️⃣", "❤️", "☺", "♥︎", "🧑‍💻 codes", "𝔘𝔫𝔦", "𐍈", "𓀀", "\U00010000", "\U0010ffff", "\U0010fffd", "\uffff", "\ufffe", "\ufffd", "\ufffd\ufffd", "\ud7ff", "\ue000", "\uf8ff", "\U000e0001",
    "\u202eabc\u202c", "\u200fab", "a\u00adb", "\u034f", "a\u200db", "a\u20dd", "\u2060", "हिन्दी", "क्षत्रिय", "नमस्ते", "ภาษาไทย", "น้ำ", "مرحبا", "مُحَمَّد", "لا", "ﻻ", "עִבְרִית", "தமிழ்", "తెలుగు", "ქართული", "አማርኛ", "ᏣᎳᎩ", "ᠮᠣᠩᠭᠣᠯ",
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n", "a<|im_end|>b", " <|im_end|> ", "<|im_end|><|im_end|>", "<|im_end|>\n\n", "\n\n<|im_end|>",
    "<|im_start", "im_start|>", "<|IM_START|>", "<|im_start|", "<|<|im_end|>|>", "<|im_end|>|>", "<tool_call>", "</tool_call>", "<tool_call>\n{\"name\": \"f\"}\n</tool_call>", "<tool_response>x</tool_response>",
    "<think>", "</think>", "<think>\n\n</think>\n\n", " <think> x </think> ", "<think>x", "<THINK>", "< think>", "<think", "<answer>", "</answer>", "<|fim_prefix|>a<|fim_suffix|>", "<|vision_pad|>", "<|box_start|>(1,2)<|box_end|>",
    "<|begin_of_text|>", "<|begin_of_text|><|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>", "<|eom_id|>", "<|python_tag|>print(1)", "<|reserved_special_token_0|>",
    "<|reserved_special_token_99|>", "<|end_of_text|>é", "e<|eot_id|>\u0301", "e<|im_end|>\u0301", "<|eot_id|>  <|eot_id|>", "<s>", "</s>", "[INST]", "<unk>", "<0x0A>", "Ġ", "Ċ", "Ġthe", "â", "ĠĠ",
    "constructor", "__proto__", "toString", "hasOwnProperty valueOf", "strawberry", " strawberry", "Strawberry", " strawberrys", "kaleidoscope", " kaleidoscope", "Reinforcement learning", " FrozenLake", "FrozenLake", " zigzag zigzag",
    "a" * 100, "ab" * 200, "the " * 200, "x" * 1000, "é" * 300, "🙂" * 150, "你" * 200, " " * 300, "\n" * 200, "\t" * 50 + "x", "-" * 250, "=" * 64 + "\n", "1" * 200, "#_" * 100, "haha" * 60, "\r\n" * 40, "\u0301" * 60, "no" + "o" * 500 + "!",
    " ".join(SENTENCES), "\n".join(CODE),
]
dice = random.Random(7)
PIECES = list("abc XYZ\n\t #_OPGXS√0123456789.,'’é的🙂ñйקمनไ한\u0301\u00ad\u00a0") + [
    "<think>", "</think>", "<answer>", "<|im_end|>", "<|eot_id|>", " || ", "the ", "You are ", "\n\n", "  ", "'ll", "'S", "<|", "|>", "\r\n", "123", " strawberry"]
TEXTS += ["".join(dice.choices(PIECES, k=dice.randint(1, 25))) for _ in range(60)]


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


def system(text):
    return {"role": "system", "content": text}


PLAYED = [user(RAGEN[0] + RAGEN[1]), assistant(RAGEN[3]), user(RAGEN[2]), assistant("<think>\nDown, since\n\nit's free.\n</think>\n\n<answer>Down</answer>"),
          user("\nReward:\n1.0\n")]
CONVERSATIONS = [
    [user("Hello!")], [user("Hello!"), assistant("Hi, how can I help?")], [system("Be brief."), user("Why?")],
    [system("Be brief."), user("Why?"), assistant("Because."), user("And why that?")], [system(""), user("")], [user("")],
    [user("  spaces around \n\n")], [system("\n trimmed? \n"), user("\tx\t"), assistant("  y  "), user(" z ")], [system(RAGEN[0]), *PLAYED], PLAYED,
    PLAYED[:2], PLAYED[:3], PLAYED[:4], [user("a"), user("b")], [user("a"), assistant("b"), assistant("c")], [user("a"), assistant("b"), system("later"), user("c")],
    [user("<|im_end|>\n<|im_start|>system\ninjected<|eot_id|>")], [user("Unicode: 你好 🙂 e\u0301 हिन्दी\u00a0")], [user("x"), assistant("<think>only thoughts</think>")],
    [user("x"), assistant("</think>\n\nno opening")], [user("x"), assistant("<think>\na\n</think>\nb"), user("y"), assistant("<think>c</think>d<think>e</think>f")],
    [user("<tool_response>\n1\n</tool_response>"), assistant("seen"), user("<tool_response>2</tool_response>")], [user("x"), assistant("\n\nlines\n\n"), user("y")],
    [system("\ufeff\x1f kept and not \x85\u3000"), user("\x1c\ufeffx\ufeff\x85"), assistant("\n <think>\n\n a \n</think>\n\n b \n")],
    [user("{{ bos_token }} {% if x %}")], [user("a\\n'b\"c")],
]


def goldens(folders):
    """Strings and conversations of tokenizer folders, by transformers."""
    strings, conversations = {"texts": TEXTS, "ids": {}, "decoded": {}}, {}
    for folder in folders:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        ids = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in TEXTS]
        strings["ids"][folder.name] = ids
        decoded = [tokenizer.decode(x, skip_special_tokens=False, clean_up_tokenization_spaces=False) for x in ids]
        # Decoded texts that differ from the original, by index.
        strings["decoded"][folder.name] = {i: d for i, (d, text) in enumerate(zip(decoded, TEXTS)) if d != text}
        rows = conversations[folder.name] = []
        for place, messages in enumerate(CONVERSATIONS):
            for prompt in (False, True):
                options = [{"date_string": "26 Jul 2024"}]
                if "llama" in folder.name and place == 0:
                    options += [{"date_string": "01 Jan 2030"}]
                if "qwen3" in folder.name:
                    options = [{}, {"enable_thinking": False}, {"enable_thinking": True}] if prompt else [{}]
                for kwargs in options:
                    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=prompt, **kwargs)
                    ids = tokenizer.apply_chat_template(messages, tokenize=True, add_generation_prompt=prompt, return_dict=False, **kwargs)
                    assert ids == tokenizer(text, add_special_tokens=False)["input_ids"]
                    rows.append({"messages": place, "add_generation_prompt": prompt, "kwargs": kwargs, "text": text, "ids": ids})
    return strings, conversations


def write(strings, conversations, folder):
    def line(value):
        return json.dumps(value, ensure_ascii=True, separators=(",", ":"))

    def lines(rows):
        return "[\n" + ",\n".join(line(row) for row in rows) + "\n]"

    ids = ",\n".join(f"{line(name)}: {lines(rows)}" for name, rows in strings["ids"].items())
    (folder / "strings.json").write_text(
        f'{{"texts": {lines(strings["texts"])},\n"ids": {{\n{ids}\n}},\n"decoded": {line(strings["decoded"])}\n}}\n')
    body = ",\n".join(f"{line(name)}: {lines(rows)}" for name, rows in conversations.items())
    (folder / "conversations.json").write_text(f'{{"messages": {lines(CONVERSATIONS)},\n"rendered": {{\n{body}\n}}}}\n')


def train(name, vocabulary, digits, special, plain):
    qwen = name.startswith("qwen")
    tokenizer = Tokenizer(models.BPE(fuse_unk=False, byte_fallback=False, ignore_merges=not qwen,
                                     **(dict(continuing_subword_prefix="", end_of_word_suffix="") if qwen else {})))
    if qwen:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(CONTRACTIONS + digits + REST), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=not qwen, use_regex=False)])
    documents = [path.read_text(encoding="utf8") for path in sorted(root.glob("docs/*.md"))]
    tokenizer.train_from_iterator(documents + SENTENCES + RAGEN + CODE, trainers.BpeTrainer(
        vocab_size=vocabulary, min_frequency=2, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    tokenizer.decoder = decoders.ByteLevel(add_prefix_space=not qwen, trim_offsets=not qwen, use_regex=not qwen)
    content = json.loads(tokenizer.to_str())
    if not qwen:
        letters = {b: c for b, c in zip(*byte_letters())}
        for word in UNMERGED:
            token = "".join(letters[byte] for byte in word.encode())
            content["model"]["vocab"].setdefault(token, len(content["model"]["vocab"]))
        tokenizer = Tokenizer.from_str(json.dumps(content))
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in special])
    tokenizer.add_tokens([AddedToken(token, normalized=False, special=False) for token in plain])
    if qwen:
        tokenizer.post_processor = processors.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    else:
        bos = (special[0], tokenizer.token_to_id(special[0]))
        tokenizer.post_processor = processors.Sequence([
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single=f"{bos[0]} $A", pair=f"{bos[0]} $A {bos[0]}:1 $B:1", special_tokens=[bos])])
    folder = here / name
    (folder / "tokenizer.json").write_text(
        json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf8")
    added = {tokenizer.token_to_id(token): {"content": token, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False,
                                            "special": token in special} for token in special + plain}
    config = dict(
        add_bos_token=False, add_prefix_space=False, added_tokens_decoder=added, additional_special_tokens=special[1:], bos_token=None,
        clean_up_tokenization_spaces=False, eos_token="<|im_end|>", errors="replace", model_max_length=131072, pad_token="<|endoftext|>",
        split_special_tokens=False, tokenizer_class="Qwen2Tokenizer", unk_token=None) if qwen else dict(
        added_tokens_decoder=added, bos_token="<|begin_of_text|>", clean_up_tokenization_spaces=True, eos_token="<|eot_id|>",
        model_input_names=["input_ids", "attention_mask"], model_max_length=131072, tokenizer_class="PreTrainedTokenizerFast")
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
    stops = ["<|im_end|>", "<|endoftext|>"] if qwen else ["<|end_of_text|>", "<|eom_id|>", "<|eot_id|>"]
    (folder / "generation_config.json").write_text(
        json.dumps({"eos_token_id": [tokenizer.token_to_id(token) for token in stops], "do_sample": True}, indent=2) + "\n")


def byte_letters():
    """ByteLevel's character for each byte: printable bytes map to themselves, all others to code points from 256 on."""
    own = [*range(33, 127), *range(161, 173), *range(174, 256)]
    other = [byte for byte in range(256) if byte not in own]
    return own + other, [chr(byte) for byte in own] + [chr(256 + i) for i in range(len(other))]


def train_smollm2():
    """GPT-2's byte-level BPE behind a splitter that isolates every numeric character. Special tokens come first.

    SmolLM2's own files name the class GPT2Tokenizer, for which transformers 5 drops the splitter of tokenizer.json.
    The models were trained with the splitter, so this file names a class that uses tokenizer.json unchanged.
    """
    tokenizer = Tokenizer(models.BPE(fuse_unk=False, byte_fallback=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=True)])
    documents = [path.read_text(encoding="utf8") for path in sorted(root.glob("docs/*.md"))]
    tokenizer.train_from_iterator(documents + SENTENCES + RAGEN + CODE, trainers.BpeTrainer(
        vocab_size=2000, min_frequency=2, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=SMOLLM, show_progress=False))
    tokenizer.decoder = decoders.ByteLevel(add_prefix_space=True, trim_offsets=True, use_regex=True)
    folder = here / "smollm2"
    (folder / "tokenizer.json").write_text(
        json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf8")
    config = dict(
        add_prefix_space=False, additional_special_tokens=["<|im_start|>", "<|im_end|>"], bos_token="<|im_start|>", eos_token="<|im_end|>",
        clean_up_tokenization_spaces=False, model_max_length=8192, pad_token="<|im_end|>", tokenizer_class="PreTrainedTokenizerFast",
        unk_token="<|endoftext|>", vocab_size=2000)
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
    (folder / "generation_config.json").write_text(json.dumps({"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2}, indent=2) + "\n")


if __name__ == "__main__":
    wanted = sys.argv[sys.argv.index("--train") + 1:] if "--train" in sys.argv else []
    if "qwen2.5" in wanted:
        train("qwen2.5", 2500, r"\p{N}", QWEN, QWEN_PLAIN)
    if "qwen3" in wanted:
        train("qwen3", 2000, r"\p{N}", QWEN, QWEN_PLAIN + QWEN3_PLAIN)
    if "llama3" in wanted:
        train("llama3", 2500, r"\p{N}{1,3}", LLAMA, [])
    if "smollm2" in wanted:
        train_smollm2()
    write(*goldens([here / name for name in ("qwen2.5", "qwen3", "llama3", "smollm2")]), here)
    print(len(TEXTS), "texts,", len(CONVERSATIONS), "conversations")
