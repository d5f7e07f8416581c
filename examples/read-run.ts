// Prints validation success over training and the best episode of a run. Each line of a log is a JSON value;
// docs/RUN-FOLDER.md names all files.
import { readFileSync, readdirSync } from 'node:fs';
import type { Episode } from '../extension/run-data/episode';
import type { MetricsLine } from '../extension/run-data/step-lines';

const run = process.argv[2];
const lines = <T>(name: string) =>
  readFileSync(`${run}/${name}`, 'utf8')
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as T);
for (const metrics of lines<MetricsLine>('metrics.jsonl'))
  for (const [key, value] of Object.entries(metrics))
    if (/^val-env\/[^/]+\/success$/.test(key))
      console.log(`step ${metrics.step}: ${(100 * Number(value)).toFixed(1)}%`);
const files = readdirSync(`${run}/episodes`).filter(name => name.startsWith('step-'));
const episodes = files.flatMap(name => lines<Episode>(`episodes/${name}`));
const best = episodes.reduce((a, b) => (b.score > a.score || (b.score === a.score && b.id > a.id) ? b : a));
console.log([best.id, best.score, ...best.turns.map(turn => turn.thought)].join('\n'));
