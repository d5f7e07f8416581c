"""Writes test/golden/envs/webshop.json: thefuzz's token_set_ratio on pairs of phrases, and CPython's permutation of
goals.
Run: python test/golden/make/webshop.py   (needs thefuzz)
"""
import json
import random
from pathlib import Path

from thefuzz import fuzz

words = "navy blue black x-large xx-large 20 x inch machine wash washable long sleeve slip resistant 6 count oz (pack of 2) men's été".split()
draw = random.Random(7)
phrase = lambda: " ".join(draw.choices(words, k=draw.randint(1, 5)))
pairs = [(phrase(), phrase()) for _ in range(300)]
pairs += [(a, " ".join(draw.sample(a.split(), len(a.split())) + draw.choices(words, k=1))) for a, _ in pairs[:100]]
permutation = list(range(1600))
random.Random(42).shuffle(permutation)
golden = {"ratios": [[a, b, fuzz.token_set_ratio(a, b)] for a, b in pairs], "permutation": permutation}
Path(__file__).parent.parent.joinpath("envs/webshop.json").write_text(json.dumps(golden, ensure_ascii=False) + "\n")
