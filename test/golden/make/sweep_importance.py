"""Rank correlations (SciPy) and out-of-bag permutation importances (scikit-learn) of two sweeps, as
test/golden/sweep-importance.json. Needs scikit-learn 1.9.1 and scipy 1.17.1: python sweep_importance.py > FILE"""
import json

import numpy as np
from scipy.stats import spearmanr
from sklearn.ensemble import RandomForestRegressor


def measure(columns, results, trees=4000):
    x, y = np.array(list(columns.values()), dtype=float).T, np.array(results)
    forest = RandomForestRegressor(trees, max_depth=6, bootstrap=True, oob_score=True, random_state=1).fit(x, y)
    random = np.random.default_rng(2)
    increases, tested = np.zeros(x.shape[1]), 0
    for tree, sample in zip(forest.estimators_, forest.estimators_samples_):
        rest = np.setdiff1d(np.arange(len(y)), sample)
        error = (tree.predict(x[rest]) - y[rest]) ** 2
        tested += len(rest)
        for key in range(x.shape[1]):
            permuted = x[rest].copy()
            permuted[:, key] = random.permutation(permuted[:, key])
            increases[key] += ((tree.predict(permuted) - y[rest]) ** 2 - error).sum()
    importances = np.maximum(0, increases / tested / y.var())
    return {
        "columns": columns,
        "results": results,
        "spearman": [float(spearmanr(values, results).statistic) for values in columns.values()],
        "importances": [round(float(value), 4) for value in importances],
        "explained": round(float(forest.oob_score_), 4),
    }


rng = np.random.default_rng(0)
grid = [(lr, size, gae) for lr in (0.0001, 0.0003, 0.001, 0.003) for size in (4, 8, 16) for gae in (0, 1)]
sweeps = {}
columns = {name: [row[i] for row in grid] for i, name in enumerate(("lr", "size", "gae"))}
noise = rng.normal(0, 0.02, len(grid))
sweeps["grid"] = measure(columns, [round(0.2 - 0.2 * np.log10(lr) - 0.1 * gae + e, 4) for (lr, _, gae), e in zip(grid, noise)])
n = 60
columns = {
    "peak": [round(float(v), 3) for v in rng.uniform(-1, 1, n)],
    "switch": [int(v) for v in rng.integers(0, 2, n)],
    "noise": [round(float(v), 3) for v in rng.uniform(0, 1, n)],
    "step": [int(v) for v in rng.integers(1, 5, n)],
}
rows = list(zip(*columns.values()))
sweeps["random"] = measure(columns, [round(1 - p * p + 0.3 * s * (t > 2) + e, 4) for (p, s, _, t), e in zip(rows, rng.normal(0, 0.05, n))])
print(json.dumps(sweeps))
