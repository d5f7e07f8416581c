// Compares the memory plan with complete runs near the plan's worst case, measured by test/bench/memory-runs.mjs. Its
// output (--points) is planned-runs.json; in newer entries, `plan` is the commit of the plan that predicted the run.
// planned-models.json has the config.json of the generated models. The plan's constants are fitted to some of these
// runs and to the engine alone; all runs must stay within the same bounds.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../../../extension/trainer/config/load-config';
import { planMemory } from '../../../../extension/models/memory/memory-plan';
import { planInput } from '../../../../extension/trainer/plan/memory-input';
import { temporaryFolder } from '../../../support/temporary-folder';

const root = resolve(__dirname, '../../../..');
const folder = temporaryFolder();
const jsonOf = (name: string): unknown => JSON.parse(readFileSync(join(__dirname, name), 'utf8'));
const made = jsonOf('planned-models.json') as Record<string, unknown>;
const points = jsonOf('planned-runs.json') as {
  name: string;
  model: string;
  config: string;
  overrides: string[];
  measured: number;
}[];

/**
 * The folder of the bundled model, or a folder with only the config.json of a generated model, because a plan reads no
 * other file.
 */
function modelFolder(name: string): string {
  if (!Object.hasOwn(made, name)) return join(root, 'media/models', name);
  const path = join(folder(), name);
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, 'config.json'), JSON.stringify(made[name]));
  return path;
}

test.each(points.map(point => [point.name, point] as const))(
  '%s: the plan is within a fifth of the measured memory',
  async (_, point) => {
    const path = modelFolder(point.model);
    const { config } = loadConfig({
      configName: point.config,
      overrides: [`model_path=${path}`, ...point.overrides],
      presetFolders: [join(root, 'media/presets')],
      workspace: root,
    });
    const { peak } = planMemory(await planInput(config, path, root));
    const ratio = peak.bytes / point.measured;
    expect(ratio).toBeGreaterThan(0.8);
    expect(ratio).toBeLessThan(1.2);
  },
);
