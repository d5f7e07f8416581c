// Programs that behave in all ways: rewards from files and scorers, tasks, time limits, programs that make no call or too
// many calls, and children that outlive them.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isAlive, isZombie } from '../../../support/terminal';
import { askPolicy, ProgramPlayer } from './program-player';

let player: ProgramPlayer;
beforeAll(async () => {
  player = await ProgramPlayer.open();
});
afterAll(() => player.close());

const ask = `${askPolicy}
  import { spawn } from 'node:child_process';
  import { writeFileSync } from 'node:fs';
  const { RAGEN_REWARD_FILE: file, RAGEN_TASK: task, RAGEN_SEED: seed } = process.env;
`;
const play = (program: string, config: Record<string, unknown> = {}, script = () => 'yes') => {
  writeFileSync(join(player.folder, 'program.mjs'), ask + program);
  return player.play([process.execPath, 'program.mjs'], script, config);
};

test('a file has the reward and the success', async () => {
  const program = `await ask('a'); writeFileSync(file, JSON.stringify({ reward: 0.25, success: false }));`;
  const { episode } = await play(program, { reward: 'file' });
  expect([episode.reward, episode.success, episode.terminated]).toEqual([0.25, false, true]);
});

test('a program that succeeds without a reward file fails the episode with a remedy, and leaves no files', async () => {
  const { episode } = await play(`await ask('a'); writeFileSync('reward-file', file);`, { reward: 'file' });
  expect(episode.error?.message).toContain('RAGEN_REWARD_FILE was not written: write the reward to this file');
  expect(existsSync(dirname(readFileSync(join(player.folder, 'reward-file'), 'utf8')))).toBe(false);
});

test('a program that crashes before its reward file has the reward 0', async () => {
  const { episode } = await play(`await ask('a'); process.exit(3);`, { reward: 'file' });
  expect([episode.error, episode.reward, episode.success]).toEqual([undefined, 0, false]);
  expect(episode.final_state).toBe('The program ended with exit code 3.');
});

test('a scorer reads the output and the task', async () => {
  writeFileSync(join(player.folder, 'tasks.jsonl'), '{"answer":"no"}\n{"answer":"yes"}\n');
  writeFileSync(
    join(player.folder, 'score.mjs'),
    `import { readFileSync } from 'node:fs';
    const said = readFileSync(process.env.RAGEN_OUTPUT_FILE, 'utf8').trim();
    console.log('scored');
    console.log(Number(said === JSON.parse(process.env.RAGEN_TASK).answer));`,
  );
  const config = { reward: 'scorer', scorer: [process.execPath, 'score.mjs'], tasks: 'tasks.jsonl' };
  const { episode } = await play(`console.log(await ask(task));`, config);
  expect(episode.turns[0].state).toBe('user: {"answer":"yes"}'); // seed 3, two tasks
  expect([episode.reward, episode.success]).toEqual([1, true]);
});

test('a program that runs too long is ended with its children', async () => {
  const program = `
    await ask('a');
    const child = spawn(process.execPath, ['-e', 'setInterval(() => 0, 1000)']);
    writeFileSync('child.pid', String(child.pid));
    await new Promise(() => setInterval(() => 0, 1000));`;
  const { episode } = await play(program, { time_limit: 3 });
  expect([episode.reward, episode.truncated, episode.success]).toEqual([0, true, false]);
  expect(episode.final_state).toBe('The program was ended, because it ran longer than 3 s.');
  const child = Number(readFileSync(join(player.folder, 'child.pid'), 'utf8'));
  expect(isAlive(child) && !isZombie(child)).toBe(false);
});

test('a program without calls fails its episode, with the end of its errors', async () => {
  const { episode } = await play(`console.error('no key'); process.exit(2);`);
  expect(episode.error?.message).toContain('No call, and it ended with exit code 2: no key');
});

test('a program that asks for more than max_turn calls is ended', async () => {
  const program = `
    for (let i = 0; i < 20; i++) await ask(String(i));
    writeFileSync('finished', '');`;
  const { episode } = await play(program);
  expect([episode.turns.length, episode.reward]).toEqual([6, 0]);
  expect(existsSync(join(player.folder, 'finished'))).toBe(false);
});

test('a changed program takes effect with the next episode, and its version is recorded', async () => {
  const one = await play(`await ask('one');`, { files: ['program.mjs'] });
  const two = await play(`await ask('two');`, { files: ['program.mjs'] });
  expect([one, two].map(({ episode }) => episode.turns[0].state)).toEqual(['user: one', 'user: two']);
  const versions = [one, two].map(({ episode }) => String(episode.turns[0].info.program));
  expect(versions.every(version => /^[0-9a-f]{16}$/.test(version))).toBe(true);
  expect(versions[0]).not.toBe(versions[1]);
});
