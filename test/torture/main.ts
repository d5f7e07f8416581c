// `npm run torture [-- NAME …] [-- --scale 0.1] [-- --seed 7]`: exposes the product to the faults of a long run (kills,
// full disks, bad input, hostile code) and prints the results. Exits with 1 if a guarantee of docs/RELIABILITY.md or
// docs/SECURITY.md is broken. Everything runs in the processes of the built product. Each part has a file; CI runs the
// same functions at a small scale.
import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { bits } from './bits';
import { disk } from './disk';
import { environmentChannel } from './environment-channel';
import { environmentCode } from './environment-code';
import { fuzz } from './fuzz';
import { hostileFoldersPart } from './hostile-folders';
import { kills } from './kills';
import { namespaces } from './namespaces';
import { modelFolders } from './model-folders';
import { table } from './scale';
import { soak } from './soak';
import type { TorturePart } from './scale';

const parts: Record<string, TorturePart> = {
  kills,
  disk,
  bits,
  namespaces,
  'environment-code': environmentCode,
  'environment-channel': environmentChannel,
  fuzz,
  'model-folders': modelFolders,
  'hostile-folders': hostileFoldersPart,
  soak,
};

const usage = `npm run torture -- [names] [options]
  names            parts to run (all by default): ${Object.keys(parts).join(', ')}
  --scale X        number of cases relative to full scale (1)
  --seed N         seed of every random stream (1)`;

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      scale: { type: 'string', default: '1' },
      seed: { type: 'string', default: '1' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return console.log(usage);
  const scale = Number(values.scale);
  if (!(scale > 0)) throw new Error(`torture: --scale is ${values.scale}: give a number above 0`);
  if (!/^\d+$/.test(values.seed)) throw new Error(`torture: --seed is ${values.seed}: give a whole number`);
  const seed = Number(values.seed);
  const unknown = positionals.find(name => !Object.hasOwn(parts, name));
  if (unknown !== undefined) throw new Error(`torture: unknown part ${unknown}: use ${Object.keys(parts).join(', ')}`);

  const storage = mkdtempSync(join(tmpdir(), 'ragen-user-'));
  process.env.RAGEN_USER_STORAGE = storage; // inherited by child processes
  process.once('exit', () => rmSync(storage, { recursive: true, force: true }));
  const outcomes: { name: string; seconds: number; error?: Error }[] = [];
  for (const name of positionals.length > 0 ? positionals : Object.keys(parts)) {
    const from = performance.now();
    const outcome: (typeof outcomes)[number] = { name, seconds: 0 };
    try {
      await parts[name]({ scale, seed, say: line => console.log(`${name}: ${line}`) });
    } catch (error) {
      outcome.error = error as Error;
      console.log(`${name}: FAILED: ${outcome.error.stack}`);
    }
    outcome.seconds = Math.round((performance.now() - from) / 1000);
    outcomes.push(outcome);
  }
  console.log(
    `\n${cpus().length} × ${cpus()[0].model.trim()}, Node ${process.version}, ${process.platform}-${process.arch}, scale ${scale}, seed ${seed}`,
  );
  console.log(
    table(
      ['part', 'outcome', 'seconds'],
      outcomes.map(({ name, seconds, error }) => [name, error ? 'failed' : 'passed', seconds]),
    ),
  );
  if (outcomes.some(({ error }) => error)) process.exitCode = 1;
}

main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
