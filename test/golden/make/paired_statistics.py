"""Paired differences and clustered rank correlations (SciPy) as test/golden/paired-statistics.json. Needs numpy 2 and
scipy 1.17: python paired_statistics.py > FILE"""
import json

import numpy as np
from scipy.stats import bootstrap, spearmanr, ttest_rel

rng = np.random.default_rng(7)


def interval(low, high):
    return {"low": float(low), "high": float(high)}


def paired(a, b):
    a, b = np.array(a), np.array(b)
    difference = b - a
    student = ttest_rel(b, a).confidence_interval(0.95)
    drawn = bootstrap((difference,), np.mean, n_resamples=200_000, method="percentile", rng=np.random.default_rng(1))
    return {
        "a": a.tolist(),
        "b": b.tolist(),
        "mean": float(difference.mean()),
        "effectSize": float(difference.mean() / difference.std(ddof=1)),
        "student": interval(*student),
        "bootstrap": interval(*drawn.confidence_interval),
    }


def clustered(clusters, draws=20_000):
    together = lambda chosen, key: np.concatenate([clusters[i][key] for i in chosen])
    rho = lambda chosen: spearmanr(together(chosen, "x"), together(chosen, "y")).statistic
    random = np.random.default_rng(2)
    drawn = [rho(random.integers(len(clusters), size=len(clusters))) for _ in range(draws)]
    return {
        "clusters": clusters,
        "rho": float(rho(range(len(clusters)))),
        "interval": interval(*np.quantile(drawn, [0.025, 0.975])),
    }


def arms(n, shift):
    level = rng.normal(0.5, 0.1, n)
    return [np.round(level + rng.normal(by, 0.05, n), 4).tolist() for by in (0, shift)]


runs = []
for _ in range(8):
    x = np.round(rng.normal(rng.normal(0, 1), 1, 12), 3)
    runs.append({"x": x.tolist(), "y": np.round(0.5 * x + rng.normal(0, 1, 12), 1).tolist()})
print(
    json.dumps(
        {
            "paired": [paired(*arms(n, shift)) for n, shift in ((3, 0.1), (5, 0.05), (10, 0), (40, -0.02))],
            "clustered": clustered(runs),
        },
        indent=1,
    )
)
