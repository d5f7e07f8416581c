"""Questions, verdicts and rewards of RAGEN's metamathqa and static by their procedure on the built-in questions,
with CPython's generator and regular expressions, for test/golden/envs/questions.json.
python test/golden/make/envs_questions.py > test/golden/envs/questions.json
Row: seed, the question's index, its correct answer, successive answers, the reward of each answer (prefixed with
"-" if the answer has an invalid format)."""
import json
import random
import re
import string

read = lambda name: [json.loads(line) for line in open(f"media/data/{name}.jsonl")]


def plain(text):
    return re.sub(r"\s+", "", text.lower())


def bare(text):
    return plain(text).translate(str.maketrans("", "", string.punctuation))


def result(text):
    for form in (r"The answer is:?\s*(.*?)(?:\n|$)", r"Answer:?\s*(.*?)(?:\n|$)", r"Final answer:?\s*(.*?)(?:\n|$)", r"Therefore,\s*(.*?)(?:\n|$)", r"Thus,\s*(.*?)(?:\n|$)"):
        found = re.search(form, text, re.DOTALL)
        if found:
            return found.group(1).strip()
    return text.strip().split("\n")[-1].strip()


def by_plain(given, right):
    return plain(given.strip()) == plain(right), plain(given.strip()) != ""


def by_text(given, right):
    return bare(given) == bare(right), len(bare(given)) > 0


def by_number(given, right):
    found = [re.search(r"(\d+(?:\.\d+)?)", text) for text in (given, right)]
    equal = all(found) and float(found[0].group(0)) == float(found[1].group(0))
    return equal or bare(given) == bare(right), found[0] is not None


def by_letter(given, right):
    found = [re.search(r"([A-D])", text.upper()) for text in (given, right)]
    equal = found[0].group(0) == found[1].group(0) if all(found) else bare(given) == bare(right)
    return equal, found[0] is not None


kinds = {
    "metamathqa": ("metamathqa", lambda row: re.search(r"The answer is: (.*?)$", row["response"], re.DOTALL).group(1).strip(), by_plain, [*range(400), *range(10000, 10120)]),
    "static metamathqa": ("metamathqa", lambda row: result(row["response"]), by_text, range(200)),
    "static gsm8k": ("gsm8k", lambda row: row["answer"].split("####")[1].strip().lower(), by_number, range(200)),
    "static mmlu": ("abstract-algebra", lambda row: chr(65 + row["answer"]), by_letter, range(200)),
}


def rows(name, answer, judge, seeds):
    data = read(name)
    for seed in seeds:
        random.seed(seed)
        index = random.randint(0, len(data) - 1)
        right = answer(data[index])
        r = random.Random(f"answers {seed}")
        forms = [right, f" {right} ", right.lower(), f"{right}.", f"The answer is {right}", f"${right}$", "", "?", "none", str(r.randint(0, 99)), r.choice("ABCD"), f"({r.choice('abcd')})", f"{right}.0", "\n".join(right)]
        given, rewards = [], []
        for step in range(3):
            given.append(r.choice(forms))
            correct, valid = judge(given[-1], right)
            rewards.append(("" if valid else "-") + str(1 / 2**step if correct else 0))
            if correct:
                break
        yield [seed, index, right, given, " ".join(rewards)]


texts = ["A.\nTherefore, it is 5.\nThus, 6", "So\nAnswer 12\nmore", "The answer is 3\n4", "The answer is:\n\n 7", "Final answer: 1/2", "one\ntwo\n", "Thus,8", "", "the answer is: 5"]
out = {name: list(rows(*kind)) for name, kind in kinds.items()}
print("{" + ",\n".join(f'"{name}": [\n' + ",\n".join(json.dumps(r) for r in rs) + "]" for name, rs in out.items()) + ',\n"results": ' + json.dumps([[t, result(t)] for t in texts]) + "}")
