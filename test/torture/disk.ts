// Injects a disk fault at every file-system call of a step's logging and checkpointing: one call at a time, with every
// kind of fault. A later resume must find the state before the step or the state after it, never a mixture. A run that
// retries after the fault must end in the state after the step. The journal (trainer/run/journal.ts), the checkpoints
// and the resume are the product's own; the step is synthetic.
import { cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, relative } from 'node:path';
import { collapseFile } from '../../extension/run-data/diagnostics';
import type { LoadedEnvironment } from '../../extension/protocol/environment-link';
import { runFiles } from '../../extension/run-data/run-file-names';
import type { Episode } from '../../extension/run-data/episode';
import type { Manifest } from '../../extension/run-data/run-manifest';
import type { RunStatus } from '../../extension/run-data/run-status-file';
import { UserError } from '../../extension/common/user-error';
import { Journal } from '../../extension/trainer/run/journal';
import type { WaitControl } from '../../extension/trainer/run/journal';
import { newestValid } from '../../extension/trainer/store/newest-checkpoint';
import { writeCheckpoint } from '../../extension/trainer/store/checkpoint-writer';
import type { CheckpointState } from '../../extension/trainer/store/checkpoint';
import { checkLogs } from '../../extension/trainer/store/log-ledger';
import { RunFolder } from '../../extension/trainer/store/run-folder';
import { table } from './scale';
import type { TortureScale } from './scale';
import { FailingDisk } from './failing-disk';
import type { Fault, FaultKind } from './failing-disk';
import { keptEnvironment, keepEnvironment } from '../../extension/trainer/store/environment-store';
import { rollBack } from '../../extension/trainer/store/rollback';

/** Results of the part `disk`. */
export interface DiskReport {
  /** Numbers of file-system calls: in a step with its checkpoint, and in a resume. */
  stepCalls: number;
  backCalls: number;
  /** Total number of faults by kind. */
  faults: Record<FaultKind, number>;
  /** How many crashes and faults without retries left the state before the step, and how many the state after it. */
  before: number;
  after: number;
}

const kinds: FaultKind[] = ['ENOSPC', 'EIO', 'EACCES', 'EROFS', 'short', 'crash'];

const about: Omit<Manifest, 'schema' | 'id' | 'created'> = {
  ...{ name: 'torture', config_name: 'torture', overrides: [], config: {}, config_hash: '' },
  ...{ seeds: {}, versions: {}, hardware: {}, model: { path: '', sha256: '', parameters: 0 }, environments: [] },
};

const status: RunStatus = {
  ...{ state: 'running', step: 0, total_steps: 9, success: null, reward: null, tokens_per_s: null, eta_s: null },
  ...{ phase: 'idle', updated: '' },
};

/** Allows `tries` retries without delay; by default all of them. */
class Waiting implements WaitControl {
  sentences: string[] = [];
  constructor(private tries = Infinity) {}
  wait(sentence: string): Promise<boolean> {
    this.sentences.push(sentence);
    return Promise.resolve(this.tries-- > 0);
  }
  resumeAfterWait(): void {
    // this test shows no message
  }
}

/** The part `disk` of `npm run torture`. */
export async function disk({ scale, say }: TortureScale): Promise<void> {
  const report = await diskFaults(Math.max(1, Math.round(1 / scale)));
  const kindsOf = Object.entries(report.faults).map(([kind, times]): [string, number] => [kind, times]);
  say(`${report.stepCalls} calls in a step and its checkpoint, ${report.backCalls} in a resume`);
  say(table(['fault', 'times'], kindsOf));
  say(
    `without retries, a resume found the state before the step ${report.before} times, the state after it ${report.after} times, and never a mixture`,
  );
}

/** A disk in memory, if available, because thousands of folders are created and compared. */
const scratch = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

/**
 * Injects a fault at each `every`-th call.
 * @throws Error naming the call and the kind of fault if a guarantee is broken
 */
export async function diskFaults(every = 1): Promise<DiskReport> {
  const clock = stopClock();
  const scratchFolder = mkdtempSync(join(scratch, 'ragen-disk-'));
  try {
    return await allFaults(scratchFolder, every);
  } finally {
    clock.restore();
    rmSync(scratchFolder, { recursive: true, force: true });
  }
}

async function allFaults(scratchFolder: string, every: number): Promise<DiskReport> {
  const begun = await RunFolder.create(scratchFolder, about, new Date());
  const run = join(scratchFolder, 'run');
  const again = (from: string): string => {
    rmSync(run, { recursive: true, force: true });
    cpSync(from, run, { recursive: true });
    return run;
  };
  const [first, second] = [join(scratchFolder, 'first'), join(scratchFolder, 'second')];
  cpSync(begun.path, first, { recursive: true });
  await step(first, 1);
  cpSync(first, second, { recursive: true });
  await step(second, 2);
  const states = { before: await resumed(again(first)), after: await resumed(again(second)) };
  const withoutCheckpoints = await resumed(again(first), 1);
  if (states.before === states.after) throw new Error('disk: the step changes no file, so the test is vacuous');

  const report: DiskReport = {
    ...{ stepCalls: 0, backCalls: 0, before: 0, after: 0 },
    faults: { ENOSPC: 0, EIO: 0, EACCES: 0, EROFS: 0, short: 0, crash: 0 },
  };
  const check = (state: string, where: string): void => {
    if (state !== states.before && state !== states.after)
      throw new Error(`disk: ${where} left a mixed state:\n${between(state, states)}`);
    report[state === states.after ? 'after' : 'before']++;
  };

  const counting: Fault = { kind: 'ENOSPC', at: Infinity, lasts: 0 };
  report.stepCalls = (await onDisk(again(first), counting, disk => step(run, 2, disk))).calls;
  report.backCalls = (await onDisk(again(second), counting, disk => goBack(run, 1, disk))).calls;
  for (let at = 1; at <= report.stepCalls; at += every)
    for (const kind of kinds) {
      const where = `${kind} at call ${at} of ${report.stepCalls}`;
      // Without retries: the run fails with an error message, or crashes.
      const { error } = await onDisk(again(first), { kind, at, lasts: Infinity }, disk => step(run, 2, disk));
      report.faults[kind]++;
      if (error && kind !== 'crash' && !(error instanceof UserError))
        throw new Error(`disk: ${where}: ${error.message}`);
      readable(run, where);
      check(await resumed(run), where);
      if (kind === 'crash') continue;
      // With retries, after one failed call or several: the result equals the result without the fault.
      for (const lasts of [1, 7]) {
        const waitControl = new Waiting();
        const outcome = await onDisk(again(first), { kind, at, lasts }, disk => step(run, 2, disk, waitControl));
        report.faults[kind]++;
        if (outcome.error)
          throw new Error(`disk: ${where} for ${lasts} calls ended a run that may retry: ${outcome.error.message}`);
        if ((await resumed(run)) !== states.after)
          throw new Error(`disk: ${where} for ${lasts} calls changed the run's files`);
        if (!keptEnvironment(RunFolder.open(run), environment(2).version))
          throw new Error(`disk: ${where} for ${lasts} calls lost an environment's code`);
        const unclear = waitControl.sentences.find(sentence => !/^store: cannot .+: .+/.test(sentence));
        if (unclear !== undefined) throw new Error(`disk: ${where} reports no reason: ${unclear}`);
      }
    }
  // A resume that was interrupted at any call can be repeated.
  for (let at = 1; at <= report.backCalls; at += every)
    for (const kind of kinds) {
      const where = `${kind} at call ${at} of ${report.backCalls} of a resume`;
      const { error } = await onDisk(again(second), { kind, at, lasts: Infinity }, disk => goBack(run, 1, disk));
      report.faults[kind]++;
      if (error && kind !== 'crash' && !(error instanceof UserError))
        throw new Error(`disk: ${where}: ${error.message}`);
      if ((await resumed(run, 1)) !== withoutCheckpoints)
        throw new Error(`disk: ${where} is not repaired by the next resume`);
    }
  return report;
}

/**
 * Writes the files of a step in the trainer's order: the logs, then the checkpoint. `begin` runs after the logs are
 * opened and enables the faults.
 */
async function step(
  path: string,
  n: number,
  begin: () => void = () => undefined,
  waitControl = new Waiting(0),
): Promise<void> {
  const folder = RunFolder.open(path);
  const journal = openJournal(folder, n - 1, waitControl);
  begin();
  try {
    journal.update({ phase: 'rollout' });
    await journal.retryUntilWritable(() => keepEnvironment(folder, environment(n)));
    await journal.diagnosis(collapseFile(n), n, { n });
    journal.groups(
      n,
      [0, 1].map(group_id => ({ step: n, group_id, tag: 'T', seed: n, scores: [n], reward_std: 0, selected: true })),
    );
    journal.scores(n, [{ tag: 'T', score: n }]);
    journal.episodes(
      'train',
      n,
      [0, 1].map(member => episode(n, member)),
    );
    journal.metrics(n, { a: n, b: n / 3 });
    await journal.settled();
    journal.update({ step: n, phase: 'checkpoint' });
    await journal.sync();
    const { offsets, logChain: log_chain } = journal;
    const state = { step: n, offsets, log_chain, streams: {}, seed_counter: n, state: { n } };
    const blobs = {
      'model.safetensors': new Float32Array(64).fill(n),
      'actor.m': new Float32Array(64).fill(-n),
    };
    await journal.retryUntilWritable(() => writeCheckpoint(folder.path, state, blobs, 1));
  } finally {
    await journal.close().catch(() => undefined);
  }
}

/** A loaded environment. Each step has its own version of the code, stored in a separate folder. */
function environment(n: number): LoadedEnvironment {
  const map = { sources: ['t.ts'], sourcesContent: [`step ${n}`] };
  const bundle = `// ${n}\n//# sourceMappingURL=data:application/json;base64,${Buffer.from(JSON.stringify(map)).toString('base64')}`;
  return {
    ...{ tag: 'T', name: 't', version: String(n).repeat(16), source: '/t/t.ts', bundle, files: [], config: {} },
    ...{ instruction: '', legend: {}, has_solver: false },
  };
}

const openJournal = (folder: RunFolder, step: number, waitControl: WaitControl): Journal =>
  new Journal(folder, { status: () => 0, appended: () => 0, event: () => 0 }, { ...status, step }, 0, waitControl);

const episode = (step: number, member: number): Episode => ({
  ...{
    id: `train-${String(step).padStart(6, '0')}-g000-m0${member}`,
    step,
    mode: 'train',
    group_id: 0,
    member,
    env_id: member,
  },
  ...{
    tag: 'T',
    environment: { name: 't', version: 'v' },
    seed: step,
    terminated: true,
    truncated: false,
    success: true,
  },
  ...{ reward: step, penalty: 0, score: step, advantage: null, kept: true, turns: [], final_state: '', metrics: {} },
  ...{ messages: [{ role: 'user', content: `step ${step}` }], tokens: { ids: [step], mask: [1], logprobs: [-step] } },
});

/** Lines of `state` that are missing from the state before the step or from the state after it. */
const between = (state: string, { before, after }: { before: string; after: string }): string =>
  state
    .split('\n')
    .filter(line => !before.split('\n').includes(line) || !after.split('\n').includes(line))
    .map(line => line.slice(0, 200))
    .join('\n');

/** The part of a resume before training. Starts from step `from`, by default from the newest checkpoint. */
async function goBack(path: string, from?: number, begin: () => void = () => undefined): Promise<void> {
  begin();
  const { checkpoint } = await newestValid(path);
  const { step, offsets, log_chain } = from === undefined ? checkpoint!.manifest : manifestOf(path, from);
  const folder = RunFolder.open(path);
  const { damages } = await checkLogs(
    path,
    { offset: offsets[runFiles.checksums], chain: log_chain },
    file => file !== runFiles.columns && file !== runFiles.episodeIndex,
  );
  if (damages.length > 0) throw new UserError(`disk: ${damages[0].file} ${damages[0].how}`);
  await rollBack(folder, step, offsets);
  await openJournal(folder, step, new Waiting(0)).close();
}

function manifestOf(path: string, step: number): Pick<CheckpointState, 'step' | 'offsets' | 'log_chain'> {
  const kept = join(
    path,
    '..',
    'first',
    runFiles.checkpoints,
    `step-${String(step).padStart(6, '0')}`,
    'checkpoint.json',
  );
  return JSON.parse(readFileSync(kept, 'utf8')) as CheckpointState;
}

/** All files that a resume reads, as text. Derived files are excluded, because they may lag behind the logs. */
async function resumed(path: string, from?: number): Promise<string> {
  await goBack(path, from);
  const { checkpoint } = await newestValid(path);
  const derived: readonly string[] = [runFiles.columns, runFiles.episodeIndex, runFiles.status];
  // Stored code versions may include one that no step has run yet, so their folder is excluded.
  const apart = [runFiles.checkpoints, runFiles.environments];
  const files = from === undefined ? filesIn(checkpoint!.folder) : [];
  const others = filesIn(path).filter(file => {
    const name = relative(path, file);
    return !apart.some(folder => name.startsWith(folder)) && !derived.includes(name);
  });
  // The checksum chain depends on the ends of derived files; goBack has already verified it.
  const text = (file: string): string => {
    const said = readFileSync(file).toString(/\.(jsonl|json)$/.test(file) ? 'utf8' : 'base64');
    if (basename(file) === runFiles.checksums)
      return said
        .split('\n')
        .filter(line => !derived.some(name => line.includes(`"file":"${name}"`)))
        .join('\n')
        .replace(/"chain":"\w+"/g, '');
    return basename(file) === 'checkpoint.json'
      ? said.replace(/"(sha256|log_chain|checksums\.jsonl)": ?("\w+"|\d+)/g, '')
      : said;
  };
  return [
    ...files.map(file => `${basename(checkpoint!.folder)} ${basename(file)} ${text(file)}`),
    ...others.map(file => `${relative(path, file)} ${text(file)}`),
  ].join('\n');
}

/** Asserts that the run is readable after its trainer died, before a resume. */
function readable(path: string, where: string): void {
  const folder = RunFolder.open(path);
  if (folder.readStatus() === null) throw new Error(`disk: ${where} lost the status`);
}

const filesIn = (folder: string): string[] =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .sort()
        .map(name => join(folder, name))
        .filter(file => statSync(file).isFile())
    : [];

/**
 * Runs `work` on a failing disk; faults start when `work` calls `begin`. Resolves to the number of calls and the error.
 */
async function onDisk(
  path: string,
  fault: Fault,
  work: (begin: () => void) => Promise<void>,
): Promise<{ calls: number; error?: Error }> {
  const disk = new FailingDisk(path);
  try {
    await work(() => disk.fail(fault));
    return { calls: disk.calls.length };
  } catch (error) {
    return { calls: disk.calls.length, error: error as Error };
  } finally {
    disk.restore();
  }
}

/** Stops the clock, so that two runs write identical lines. */
function stopClock(): { restore(): void } {
  const [RealDate, performanceNow] = [Date, performance.now];
  globalThis.Date = class extends RealDate {
    constructor(...at: [] | [number | string]) {
      if (at.length === 0) super(0);
      else super(...at);
    }
    static override now = (): number => 0;
  } as DateConstructor;
  performance.now = () => 0;
  return {
    restore() {
      globalThis.Date = RealDate;
      performance.now = performanceNow;
    },
  };
}
