// The memory plan against complete runs whose answers reached their limit, measured by test/bench/memory-runs.mjs:
// planned-runs.json is its output (--points). A plan below nine tenths of a run's memory would promise too much.
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../../extension/trainer/config/load-config';
import { planMemory } from '../../../extension/trainer/models/memory-plan';
import { planInput } from '../../../extension/trainer/run-plan';

const root = resolve(__dirname, '../../..');
const points = JSON.parse(readFileSync(join(__dirname, 'planned-runs.json'), 'utf8')) as {
  name: string;
  config: string;
  overrides: string[];
  measured: number;
}[];

test.each(points.map(point => [point.name, point] as const))(
  '%s: the plan is within a fifth of the measured memory',
  async (_, point) => {
    const { config } = loadConfig({
      configName: point.config,
      overrides: point.overrides,
      presetFolders: [join(root, 'media/presets')],
      workspace: root,
    });
    const { peak } = planMemory(await planInput(config, join(root, 'media/models/ragen-tiny'), root));
    const ratio = peak.bytes / point.measured;
    expect(ratio).toBeGreaterThan(0.9);
    expect(ratio).toBeLessThan(1.2);
  },
);
