// A hostile environment process and its trainer. In the first test, a substitute for the process sends invalid data,
// stops, spins and floods at seeded moments while episodes use it. In the second test, environment code attacks its own
// process in the same ways during a training run. Each episode must end with the expected result or with an error
// message, the run must equal a run without attacks, and no process or file may be left behind.
import { build } from 'esbuild';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { EnvironmentProcess } from '../../extension/environments/client/environment-process';
import { isAlive, leaseOf, readRun, results, startDetached, statusOf } from '../support/terminal';
import { makeWorkspace, root, wordsEnvironment } from '../support/workspace';
import { scaled, table } from './scale';
import type { TortureScale } from './scale';

const wholeRounds = 150;
const wholeActs = 40;

export interface PeerReport {
  rounds: number;
  /** Number of processes started: one, plus one for each that died. */
  starts: number;
  /** Number of episodes that failed with an error message. */
  failed: number;
}

/**
 * Plays rounds of four episodes with a misbehaving process.
 * @throws if an episode ends neither with the expected result nor with an error message
 */
export async function playWithHostilePeer(rounds: number, seed: number): Promise<PeerReport> {
  const folder = mkdtempSync(join(tmpdir(), 'ragen-hostile-'));
  const [entry, starts] = [join(folder, 'peer.cjs'), mkdtempSync(join(folder, 'starts-'))];
  const source = join(root, 'test/torture/hostile-peer.ts');
  await build({ entryPoints: [source], outfile: entry, bundle: true, platform: 'node', logLevel: 'warning' });
  process.env.RAGEN_HOSTILE_FOLDER = starts;
  process.env.RAGEN_HOSTILE_SEED = String(seed);
  const running = await EnvironmentProcess.start({
    entry,
    variables: process.env,
    stepTimeoutMs: 1000,
    watch: { silentMs: 3000, stoppedMs: 500 },
    onNotice: () => undefined,
  });
  let failed = 0;
  try {
    const { error } = await running.load([{ tag: 'T', env_type: 'T', source: '/t.ts', config: {} }]);
    if (error) throw new Error(error.message);
    const names = ['a', 'b', 'c', 'd'];
    for (let round = 0; round < rounds; round++) {
      const alive = new Set(names);
      for (let step = 0; step < 4; step++) {
        const left = [...alive];
        const states =
          step === 0
            ? await running.reset(
                left.map((episode, member) => ({ episode, tag: 'T', seed: round, member, mode: 'train' })),
              )
            : await running.step(left.map(episode => ({ episode, actions: [step] })));
        if (states.map(({ episode }) => episode).join() !== left.join())
          throw new Error(`seed ${seed}, round ${round}: replies for ${states.length} of ${left.length} episodes`);
        for (const { episode, observation, error: failure } of states) {
          if (failure ? failure.message.length < 20 : observation !== `count ${step}`)
            throw new Error(
              `seed ${seed}, round ${round}: ${episode} has the observation ${JSON.stringify(observation)} at step ${step}`,
            );
          if (failure && alive.delete(episode)) failed++;
        }
      }
      await running.closeEpisodes(names);
    }
    return { rounds, starts: readdirSync(starts).length, failed };
  } finally {
    await running.stop();
    delete process.env.RAGEN_HOSTILE_FOLDER;
    delete process.env.RAGEN_HOSTILE_SEED;
    const left = processesOf(entry);
    rmSync(folder, { recursive: true, force: true });
    if (left.length > 0) throw new Error(`${left.length} processes still run after the stop: ${left.join(', ')}`);
  }
}

/**
 * Attacks of environment code on its own process. Each attack happens once and does not recur on replay, so that no
 * environment is recorded as the cause.
 */
const acts = [
  `writeSync(3, Buffer.alloc(16, 7));`,
  `writeSync(3, Buffer.from('5241474e00000000ffffffff00000000', 'hex'));`,
  `process.kill(process.pid, 'SIGSTOP');`,
  `closeSync(3);`,
  `const before = Buffer.from('5241474e', 'hex'); for (let i = 0; i < 1000; i++) try { writeSync(3, before); } catch { break; }`,
  `spawn('sh', ['-c', 'kill -STOP ' + process.pid + '; sleep 1; kill -CONT ' + process.pid], { stdio: 'ignore' }); for (let end = Date.now() + 200; Date.now() < end;);`,
  `process.kill(process.pid, 'SIGKILL');`,
];

/**
 * Trains once with this number of attacks and once without; the two runs must be equal. Returns the number of steps and
 * the duration of both runs in seconds.
 */
export async function trainWithHostileCode(count: number): Promise<{ steps: number; seconds: number }> {
  const workspace = makeWorkspace();
  const done = join(workspace.folder, 'done');
  const code = `
        const fs = require('node:fs'), { spawn } = require('node:child_process'), { writeSync, closeSync } = fs;
        void [spawn, writeSync, closeSync];
        if (fs.existsSync(${JSON.stringify(done)}) && mode === 'train' && member === 3) {
          const n = fs.readdirSync(${JSON.stringify(done)}).length;
          const mark = ${JSON.stringify(done)} + '/' + seed;
          if (n < ${count} && !fs.existsSync(mark)) {
            fs.writeFileSync(mark, '');
            [${acts.map(act => `() => { ${act} }`).join(',\n')}][n % ${acts.length}]();
            for (let end = Date.now() + 300; Date.now() < end;);
          }
        }`;
  const steps = Math.max(2, Math.ceil(count / 2));
  const pids: number[] = [];
  try {
    workspace.write('environments/words.ts', wordsEnvironment(code));
    const settings = [
      `trainer.total_training_steps=${steps}`,
      'trainer.test_freq=-1',
      'workbench.step_timeout_ms=20000',
      'workbench.early_stops=[]',
      'actor_rollout_ref.rollout.rollout_filter_empty_stop_steps=0',
    ];
    const train = async (): Promise<string> => {
      const run = await startDetached(workspace.folder, settings);
      pids.push(leaseOf(run)!.pid);
      for (; ['starting', 'running'].includes(statusOf(run)?.state ?? ''); await sleep(50));
      return run;
    };
    const from = performance.now();
    const alone = await train();
    workspace.write('done/.keep', '');
    rmSync(join(done, '.keep'));
    const disturbed = await train();
    const acted = readdirSync(done).length;
    const { status, events } = readRun(disturbed);
    if (status?.state !== 'finished')
      throw new Error(`the run is ${status?.state} at step ${status?.step}: ${status?.error}`);
    if (acted < Math.min(count, steps)) throw new Error(`only ${acted} of ${count} attacks occurred`);
    const failures = events.filter(({ kind }) => kind === 'environment_error');
    if (failures.length > 0) throw new Error(`episodes failed: ${failures[0].message}`);
    if (JSON.stringify(results(disturbed)) !== JSON.stringify(results(alone)))
      throw new Error('the run differs from the run without attacks');
    await gone(pids);
    return { steps, seconds: Math.round((performance.now() - from) / 1000) };
  } finally {
    for (const pid of pids) if (isAlive(pid)) process.kill(pid, 'SIGKILL');
    workspace.remove();
  }
}

/** Waits until the given trainer processes have exited. */
async function gone(pids: readonly number[]): Promise<void> {
  for (let tries = 0; pids.some(isAlive); tries++, await sleep(50))
    if (tries > 200) throw new Error('a trainer process did not exit after its run');
}

/** Ids of processes with this command-line argument; empty if /proc does not exist. */
function processesOf(argument: string): number[] {
  if (!existsSync('/proc')) return [];
  return readdirSync('/proc')
    .map(Number)
    .filter(pid => {
      try {
        return (
          pid > 0 &&
          pid !== process.pid &&
          readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0').includes(argument)
        );
      } catch {
        return false;
      }
    });
}

/** The part `environment-channel` of `npm run torture`. @throws with the guarantee that was broken */
export async function environmentChannel(scale: TortureScale): Promise<void> {
  const peer = await playWithHostilePeer(scaled(wholeRounds, scale), scale.seed);
  scale.say(`${peer.rounds} rounds of four episodes with a hostile process: ${peer.starts} starts`);
  const count = scaled(wholeActs, scale);
  const { steps, seconds } = await trainWithHostileCode(count);
  console.log(
    table(
      ['environment channel', 'count'],
      [
        ['rounds with a hostile process', peer.rounds],
        ['processes that died', peer.starts - 1],
        ['episodes that failed with an error message', peer.failed],
        ['attacks in a training run', count],
        ['steps of that run', steps],
        ['seconds of both runs', seconds],
      ],
    ),
  );
}
