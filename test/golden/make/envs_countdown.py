"""Countdown by RAGEN's procedure on the built-in problems, evaluated by Python's `eval`, for
test/golden/envs/countdown.json.
python test/golden/make/envs_countdown.py > test/golden/envs/countdown.json
`episodes`: seed, observation, an answer, its reward. `values`: expressions with their value by `eval`, null for
an error."""
import itertools
import json
import random
import re
import warnings

warnings.filterwarnings("ignore")
problems = [json.loads(line) for line in open("media/data/countdown.jsonl")]


def solvable(nums, target):
    padded = nums + [0] * (4 - len(nums))
    return any(sum(s * n for s, n in zip(signs, padded)) == target for signs in itertools.product([1, -1], repeat=4))


problems = [p for p in problems[:20000] if solvable(p["nums"], p["target"])]


def value(text):
    try:
        result = eval(text, {"__builtins__": None}, {})
        return result if isinstance(result, (int, float)) and abs(result) != float("inf") else None
    except Exception:
        return None


def reward(text, nums, target):
    if sorted(int(n) for n in re.findall(r"\d+", text)) != sorted(nums):
        return 0
    try:
        return 1 if abs(eval(text, {"__builtins__": None}, {}) - target) < 1e-5 else 0.1
    except Exception:
        return 0.1


def expression(r, parts):
    """The parts in random order, joined by operators, some in parentheses."""
    while len(parts) > 1:
        a, b = parts.pop(r.randrange(len(parts))), parts.pop(r.randrange(len(parts)))
        joined = f"{a}{r.choice(['', ' '])}{r.choice(['+', '-', '+', '-', '*', '/', '//', '%'])}{r.choice(['', ' '])}{b}"
        parts.append(f"({joined})" if r.random() < 0.5 else joined)
    return parts[0]


def answer(r, nums, target):
    if r.random() < 0.3:  # a correct answer
        for signs in itertools.product([1, -1], repeat=len(nums)):
            if sum(s * n for s, n in zip(signs, nums)) == target:
                return " ".join(f"{'-' if s < 0 else '+'} {n}" for s, n in zip(signs, nums))
    parts = [str(n) for n in nums]
    if r.random() < 0.2:
        parts[r.randrange(len(parts))] = str(r.randint(0, 99))
    text = expression(r, parts)
    return text if r.random() < 0.85 else r.choice([f"{text} = {target}", f"{text} +", f"({text}", f"{text};", f"x = {text}", text.replace("-", "−"), f"{text} # so"])


episodes = []
for seed in [*range(450), *range(10000, 10100)]:
    problem = problems[seed % len(problems)]
    text = answer(random.Random(f"answer {seed}"), problem["nums"], problem["target"])
    observation = f"Target: {problem['target']}, nums: {problem['nums']}"
    episodes.append([seed, observation, text, reward(text, problem["nums"], problem["target"])])

texts = ["2 + 5 - 3", "(5 - 3) * 2", "-2 ** 2", "2 ** -1", "2 ** 3 ** 2", "(-8) ** 0.5", "7 // -2", "-7 // 2", "-7 % 3", "7 % -3", "7.5 // 2", "-7.5 % 2",
         "1 / 0", "1 // 0", "1 % 0", "0 ** 0", "0 ** -1", "0.0 ** -1", "1_000 + 1", "1__0", "035", "00", "0_0", "5.", ".5", "5.e1", "1e3", "1E-2", "1e400", "10.0 ** 400",
         "10 ** 20 % 7", "2 ** 200 // 3 ** 50", "~5", "~5.0", "--5", "+-+5", "5 -", "* 5", "()", "(5", "5)", "(5)(3)", "5 5", "5,", "a", "5 + a", "  5 + 3  ", "5 +\n3", "(5 +\n3)",
         "5 + 3 # eight", "# nothing", "", " ", "5 \t+\f3", "5²", "5 × 3", "1.5.2", "1..2", "3/2", "10 / 5", "2 ** 0.5", "9 // 4 * 4 + 9 % 4", "((((5))))", "5 - -3", "5 * -3", "2 ** ~1", "-2 ** -2", "1 - 2 - 3", "8 / 4 / 2", "8 // 3 * 3", "2 * 3 % 4", "1e5_0", "1_0.5", "0.1 + 0.2"]
r = random.Random(0)
texts += [expression(r, [r.choice(["", "-", "-", "~"]) + str(r.choice([r.randint(0, 9), r.randint(10, 99), r.randint(0, 99) / 4])) for _ in range(r.randint(2, 6))]) for _ in range(300)]
print('{"episodes": [\n' + ",\n".join(json.dumps(e) for e in episodes) + '],\n"values": [\n' + ",\n".join(json.dumps([t, v if not isinstance(v := value(t), int) else str(v)]) for t in texts) + "]}")
