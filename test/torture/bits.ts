// Damaged run folders: flips a bit, truncates a file or repeats a line, at seeded positions of every file that a resume
// may read. A resume must either fail with a message that names the file, or produce the same run, bit for bit, as from
// the undamaged folder.
import { deepStrictEqual } from 'node:assert';
import { cpSync, existsSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, join, relative, sep } from 'node:path';
import { RandomStream } from '../../extension/engine/sampling/random-stream';
import { document, killAll, results } from '../support/terminal';
import { makeWorkspace } from '../support/workspace';
import { scaled, table } from './scale';
import type { TortureScale } from './scale';

const damages = ['flip', 'cut', 'repeat'] as const;
type Damage = (typeof damages)[number];

export interface BitsReport {
  /** Number of refused resumes by kind of file. */
  refused: Record<string, number>;
  equal: Record<string, number>;
}

/** Number of damages at full scale. */
const wholeCases = 300;

/** The part `bits` of `npm run torture`. */
export async function bits({ scale, seed, say }: TortureScale): Promise<void> {
  const { refused, equal } = await damagedRuns({ cases: scaled(wholeCases, { scale }), seed, say });
  const kinds = [...new Set([...Object.keys(refused), ...Object.keys(equal)])].sort();
  say(
    table(
      ['file', 'refused', 'same run'],
      kinds.map(kind => [kind, refused[kind] ?? 0, equal[kind] ?? 0]),
    ),
  );
}

/**
 * Damages copies of a run and resumes them. @throws Error naming the damage, if a resumed run differs from the
 * undamaged one or an error message does not name the file
 */
export async function damagedRuns({
  cases,
  seed,
  say,
  only = /./,
}: Pick<TortureScale, 'seed' | 'say'> & { cases: number; only?: RegExp }) {
  const workspace = makeWorkspace();
  const report: BitsReport = { refused: {}, equal: {} };
  try {
    const flags = ['--config-name', 'words', 'workbench.keep_checkpoints=9'];
    const { answer, code, stderr } = await document<{ folder: string }>(workspace.folder, ['train', ...flags]);
    if (code !== 0) throw new Error(`bits: ${stderr}`);
    const run = answer.folder;
    const expected = resultsOf(run);
    const base = join(workspace.folder, 'base');
    for (const step of [3, 4]) rmSync(join(run, `checkpoints/step-00000${step}`), { recursive: true });
    cpSync(run, base, { recursive: true });

    const random = new RandomStream(seed);
    const below = (n: number): number => Math.floor(random.uniform() * n);
    const files = new Map([...kindsOf(base)].filter(([kind]) => only.test(kind)));
    const kinds = [...files.keys()];
    for (let n = 0; n < cases; n++) {
      const kind = kinds[n % kinds.length];
      const file = files.get(kind)![below(files.get(kind)!.length)];
      const how = damages[Math.floor(n / kinds.length) % damages.length];
      rmSync(run, { recursive: true, force: true });
      cpSync(base, run, { recursive: true });
      const where = damage(join(run, file), how, below);
      const outcome = await document<{ error?: { message: string } }>(workspace.folder, ['resume', basename(run)]);
      const errorText = outcome.answer.error?.message ?? '';
      const sentence = `seed ${seed}, case ${n}: ${how} of ${file} ${where}`;
      if (outcome.code !== 0) {
        if (!errorText.includes(basename(file)))
          throw new Error(
            `bits: ${sentence}: the error message does not name the file: ${errorText || outcome.stderr}`,
          );
        if (errorText.includes('\n'))
          throw new Error(`bits: ${sentence}: the error message has several lines: ${errorText}`);
        report.refused[kind] = (report.refused[kind] ?? 0) + 1;
      } else {
        try {
          deepStrictEqual(resultsOf(run), expected);
        } catch (error) {
          throw new Error(`bits: ${sentence} produced a different run: ${(error as Error).message}`, { cause: error });
        }
        report.equal[kind] = (report.equal[kind] ?? 0) + 1;
      }
      say(`${sentence}: ${outcome.code === 0 ? 'equal run' : errorText}`);
    }
    return report;
  } finally {
    await killAll(workspace.folder);
    workspace.remove();
  }
}

/** Results of a run to compare: metrics, episodes with their index, scores and weights. */
const resultsOf = (run: string) => ({ ...results(run), scores: readFileSync(join(run, 'scores.jsonl'), 'utf8') });

/** File names by kind, excluding logs, process markers and files written by the user. */
function kindsOf(run: string): Map<string, string[]> {
  const kinds = new Map<string, string[]>();
  for (const name of readdirSync(run, { recursive: true, encoding: 'utf8' }).sort()) {
    const file = join(run, name);
    if (!statSync(file).isFile() || statSync(file).size === 0 || /^(lease|trainer\.)/.test(name)) continue;
    const path = relative(run, file).replaceAll(sep, '/');
    const kind = path
      .replace(/\d{6,}/, 'N')
      .replace(/^environments\/[^/]+/, 'environments/V')
      .replace(/sources\/.*/, 'sources');
    kinds.set(kind, [...(kinds.get(kind) ?? []), path]);
  }
  return kinds;
}

/** Damages a file and returns a description of the damage. */
function damage(file: string, how: Damage, below: (n: number) => number): string {
  if (!existsSync(file)) throw new Error(`bits: ${file} does not exist`);
  const bytes = readFileSync(file);
  const at = below(bytes.length);
  if (how === 'flip') {
    const bit = below(8);
    bytes[at] ^= 1 << bit;
    writeFileSync(file, bytes);
    return `at byte ${at}, bit ${bit}`;
  }
  if (how === 'cut') {
    writeFileSync(file, bytes.subarray(0, at));
    return `at byte ${at}`;
  }
  const from = bytes.lastIndexOf(10, at - 1) + 1;
  const next = bytes.indexOf(10, at);
  const to = next < 0 ? bytes.length : next + 1;
  writeFileSync(file, Buffer.concat([bytes.subarray(0, to), bytes.subarray(from, to), bytes.subarray(to)]));
  return `of bytes ${from} to ${to}`;
}
