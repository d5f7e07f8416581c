"""Welch's 95 % intervals of the difference of two means by SciPy, for test/golden/version-effect.json (needs numpy and
scipy):
python test/golden/make/version_effect.py > test/golden/version-effect.json"""
import json

import numpy as np
from scipy import stats

rng = np.random.default_rng(7)
cases = []
for sizes in [(2, 2), (2, 5), (3, 40), (8, 8), (30, 12), (80, 80)]:
    for scale in (0.1, 1, 30):
        x = rng.normal(1, 1, sizes[0]).round(6)
        y = rng.normal(1.5, scale, sizes[1]).round(6)
        found = stats.ttest_ind(y, x, equal_var=False).confidence_interval(0.95)
        cases.append({"x": x.tolist(), "y": y.tolist(), "low": found.low, "high": found.high})
print(json.dumps(cases))
