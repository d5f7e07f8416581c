// A Jupyter notebook (nbformat 4.5) that reads one run with pandas. It needs pandas and matplotlib, and nothing of this
// product: it reads the run folder's JSON lines, leaving out an incomplete last line. Cells have fixed ids, so the same
// run gives the same bytes.
import { runFiles } from './run-file-names';

/** What the notebook says about its run. */
export interface NotebookRun {
  id: string;
  name: string;
  /** Path of the run folder, as the notebook's kernel sees it. */
  folder: string;
}

interface Cell {
  id: string;
  cell_type: 'markdown' | 'code';
  metadata: Record<string, never>;
  source: string[];
  execution_count?: null;
  outputs?: [];
}

/** A JSON string is also a string literal of Python, with the same value. */
const python = (text: string): string => JSON.stringify(text);

/** Markdown of a text from a run folder: one line, without characters that Markdown interprets. */
const plain = (text: string): string => text.replace(/\s+/g, ' ').replace(/[\\`*_{}[\]()#+\-.!|<>&~$]/g, '\\$&');

/** Returns the text of the notebook's file. */
export function notebookText(run: NotebookRun): string {
  const sources: [id: string, type: Cell['cell_type'], text: string][] = [
    [
      'title',
      'markdown',
      `# ${plain(run.name)}\n\nRun \`${run.id.replaceAll('`', '')}\`. Needs pandas and matplotlib.`,
    ],
    [
      'run',
      'code',
      `import json
from pathlib import Path

import pandas as pd

run = Path(${python(run.folder)})

def lines(name):
    """The values of a file of JSON lines, without an incomplete last line."""
    path = run / name
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.endswith("\\n")]`,
    ],
    ['metrics-title', 'markdown', '## Metrics\n\nOne row per step, one column per metric (docs/METRICS.md).'],
    [
      'metrics',
      'code',
      `metrics = pd.DataFrame(lines(${python(runFiles.metrics)})).set_index("step")
success = metrics.filter(regex=r"^val-env/(?!.*non-zero).*/success$").dropna()
success`,
    ],
    [
      'plot',
      'code',
      `if not success.empty:
    success.plot(marker="o", ylabel="validation success", ylim=(0, 1), grid=True)`,
    ],
    ['episodes-title', 'markdown', '## Episodes\n\nOne row per episode; `turns` has one row per turn.'],
    [
      'episodes',
      'code',
      `def read_episodes():
    for path in sorted((run / ${python(runFiles.episodes)}).glob("*-*.jsonl")):
        for episode in lines(path.relative_to(run)):
            episode["tokens"] = len(episode["tokens"]["ids"])
            episode.pop("messages")
            yield episode

stored = list(read_episodes())
episodes = pd.DataFrame([{**episode, "turns": len(episode["turns"])} for episode in stored])
turns = pd.DataFrame([{"episode": e["id"], "step": e["step"], "mode": e["mode"], **t} for e in stored for t in e["turns"]])
len(episodes), len(turns)`,
    ],
    [
      'by-step',
      'code',
      `if not episodes.empty:
    display(episodes.groupby(["mode", "step"]).agg(episodes=("id", "size"), success=("success", "mean"), score=("score", "mean"), turns=("turns", "mean")))`,
    ],
    [
      'best',
      'code',
      `if not episodes.empty:
    best = episodes.loc[episodes["score"].idxmax()]
    display(turns[turns["episode"] == best["id"]][["turn", "thought", "executed", "reward"]])`,
    ],
    ['events-title', 'markdown', '## Events and configuration'],
    ['events', 'code', `pd.DataFrame(lines(${python(runFiles.events)}), columns=["step", "kind", "message"])`],
    [
      'configuration',
      'code',
      `config = json.loads((run / ${python(runFiles.manifest)}).read_text(encoding="utf-8"))["config"]
pd.json_normalize(config).T.rename(columns={0: "value"})`,
    ],
  ];
  const cells = sources.map(([id, cell_type, text]): Cell => {
    const all = text.split('\n');
    const source = all.map((line, i) => (i < all.length - 1 ? `${line}\n` : line));
    const cell: Cell = { id, cell_type, metadata: {}, source };
    return cell_type === 'code' ? { ...cell, execution_count: null, outputs: [] } : cell;
  });
  const kernelspec = { display_name: 'Python 3', language: 'python', name: 'python3' };
  const metadata = { kernelspec, language_info: { name: 'python' } };
  return `${JSON.stringify({ cells, metadata, nbformat: 4, nbformat_minor: 5 }, null, 1)}\n`;
}
