// In-memory host for the Log page, from generated lines that are parsed as the extension host parses a run's files.
import { logReady, type LogSnapshot } from '../../../extension/protocol/log-page';
import {
  eventLine,
  markedEntries,
  mergeEntries,
  stepEntry,
  trainerEntry,
} from '../../../extension/run-data/log-entries';
import { hostileTexts, metricLines, runAt, runEvents } from './data';
import type { MemoryHost } from './memory-host';

/** `large`: 100,000 lines of output. */
export type LogScenario = 'running' | 'large' | 'empty' | 'hostile';

export function logHost(scenario: LogScenario): MemoryHost {
  const run = { ...runAt(140, 200), live: scenario !== 'large' };
  return {
    answer(method): LogSnapshot {
      if (method !== logReady.method) throw new Error(`preview: no answer to ${method}`);
      return { run, entries: entriesOf(scenario), cut: scenario === 'large' ? ['trainer.log'] : [] };
    },
  };
}

function entriesOf(scenario: LogScenario): LogSnapshot['entries'] {
  if (scenario === 'empty') return [];
  const lines = metricLines(140);
  const events = runEvents(140).map((event, i) => ({
    ...event,
    message: scenario === 'hostile' ? hostileTexts[i % hostileTexts.length] : event.message,
  }));
  const last = events.at(-1)!;
  const failure = {
    ...last,
    kind: 'environment_error',
    message: 'CoordSokoban: step threw “grid[row] is undefined” in episode train-000140-g003-m05',
    data: { tag: 'CoordSokoban', seed: 10144, kind: 'threw', at: 'envs/sokoban/environment.ts:41' },
  };
  const output =
    scenario === 'large'
      ? Array.from({ length: 100_000 }, (_, i) => `CoordSokoban: reset ${i}`)
      : [
          'onnxruntime: loaded model.onnx',
          JSON.stringify({ level: 40, time: last.time, msg: 'a write took 1.4 s', step: 140 }),
        ];
  const text = (of: object): string => JSON.stringify(of);
  return mergeEntries([
    markedEntries([...events, ...(scenario === 'hostile' ? [] : [failure])].map(event => eventLine(text(event)))),
    output.map(trainerEntry),
    lines.flatMap(line => stepEntry(text(line)) ?? []),
  ]);
}
