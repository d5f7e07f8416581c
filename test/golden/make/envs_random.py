"""Numbers drawn from the original generators, for test/golden/envs/random.json. Needs numpy.
python test/golden/make/envs_random.py > test/golden/envs/random.json"""
import json
import random
import numpy as np

seeds = [0, 1, 7, 123, 10000, 2**31, 2**32 - 1, 2**32, 2**40 + 5, 2**53 - 1]
out = {"python": [], "legacy": [], "pcg64": []}
for seed in seeds:
    r = random.Random(seed)
    items = list(range(10))
    row = {"seed": seed, "random": [r.random() for _ in range(4)], "bits": [r.getrandbits(k) for k in (1, 7, 31, 32, 33, 53)]}
    row["below"] = [r.randrange(n) for n in (1, 2, 3, 4, 5, 100, 2**31, 2**32, 2**40)]
    row["randint"] = [r.randint(1, 5) for _ in range(8)]
    row["choice"] = [r.choice("abcd") for _ in range(8)]
    row["sample1"] = [r.sample("abcde", 1)[0] for _ in range(4)]
    r.shuffle(items)
    row["shuffle"] = items
    for _ in range(1300):
        r.random()
    row["later"] = r.random()
    out["python"].append(row)
    if seed < 2**32:
        n = np.random.RandomState(seed)
        row = {"seed": seed, "random": n.random_sample(4).tolist()}
        row["randint"] = [int(n.randint(high)) for high in (1, 2, 3, 5, 16, 17, 1000, 2**31 + 3, 2**32)]
        row["choice"] = [int(n.choice(7)) for _ in range(6)]
        row["weighted"] = [int(n.choice(3, p=[0.2, 0.5, 0.3])) for _ in range(12)]
        out["legacy"].append(row)
    for key in ((), (0,), (5,), (2, 2**33)):
        g = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
        row = {"seed": seed, "key": list(key), "random": g.random(3).tolist()}
        row["integers"] = [int(g.integers(high)) for high in (1, 2, 3, 4, 5, 100, 3 * 2**30, 2**32 - 1, 2**32)]
        row["between"] = int(g.random())  # drawing a double does not use the half left over from a 32-bit draw
        row["pairs"] = [g.integers(4, size=2).tolist() for _ in range(3)]
        row["holes"] = [int(i) for i in g.choice(2, 12, p=[0.8, 1 - 0.8])]
        row["weighted"] = [int(g.choice(4, p=[0.1, 0.2, 0.3, 0.4])) for _ in range(8)]
        row["last"] = g.random()
        out["pcg64"].append(row)
print("{" + ",\n".join(f'"{k}": [\n' + ",\n".join(json.dumps(r) for r in rows) + "]" for k, rows in out.items()) + "}")
