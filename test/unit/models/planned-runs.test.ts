// The plan against whole runs whose answers grew to their limit, as test/bench/memory-runs.mjs measured them: planned-runs.json is what it
// wrote (--points), planned-models.json holds config.json of the models that it made. The plan's constants were measured on some of these
// runs and on the engine alone; the others are held to the same bounds.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../../extension/trainer/config/load-config';
import { planMemory } from '../../../extension/trainer/models/memory-plan';
import { planInput } from '../../../extension/trainer/run-plan';
import { temporaryFolder } from '../store/folder';

const root = resolve(__dirname, '../../..');
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

/** The bundled model's folder, or one that holds a made model's config.json alone, which is all that a plan reads. */
function modelFolder(name: string): string {
  if (!Object.hasOwn(made, name)) return join(root, 'media/models', name);
  const path = join(folder(), name);
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, 'config.json'), JSON.stringify(made[name]));
  return path;
}

test.each(points.map(point => [point.name, point] as const))('%s: within a fifth of what it held', async (_, point) => {
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
});
