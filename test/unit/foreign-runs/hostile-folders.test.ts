// Folders that somebody made to harm the reader: links and paths out of the folder, markup, extreme numbers and steps,
// deep values, pipes, lines of many megabytes, invalid texts, texts on which regular expressions take long, and many
// files. Each is read in little time or refused with a sentence, and what is good in it is shown.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { statusSchema } from '../../../extension/run-data/run-status-file';
import { attachOnce, type Attached } from '../../support/attached';
import { temporaryFolder } from '../../support/temporary-folder';

const workspace = temporaryFolder();
const inRun = (name: string): string => join(workspace(), 'run', name);

/** Writes a file that could no longer be being written. */
function write(name: string, content: string | Buffer): string {
  const file = inRun(name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  const old = new Date(Date.now() - 60_000);
  utimesSync(file, old, old);
  return file;
}

const lines = (...values: unknown[]): string => values.map(value => `${JSON.stringify(value)}\n`).join('');
const rollout = (changes: object = {}): string => lines({ input: 'a', output: 'b', score: 1, ...changes });
const row = (step: unknown, data: object = { a: 1 }): string => lines({ step, data });
const attach = (): Promise<Attached> => attachOnce(workspace(), join(workspace(), 'run'));
const leftOutOf = ({ folder }: Attached): string[] =>
  statusSchema.parse(JSON.parse(readFileSync(folder.file('status.json'), 'utf8'))).left_out ?? [];

/** All text of a run folder. */
const contents = ({ folder }: Attached): string =>
  readdirSync(folder.path, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    .join('\n');

it('links out of the folder and around in it', async () => {
  const secret = join(workspace(), 'secret');
  mkdirSync(secret);
  writeFileSync(join(secret, '2.jsonl'), rollout({ input: 'SECRET' }));
  write('rollouts/1.jsonl', rollout());
  symlinkSync(secret, inRun('validation'));
  symlinkSync(join(secret, '2.jsonl'), inRun('rollouts/2.jsonl'));
  symlinkSync(join(workspace(), 'run'), inRun('rollouts/loop'));
  const run = await attach();
  expect(Object.keys(run.episodes)).toEqual(['step-000001']);
  expect(contents(run)).not.toContain('SECRET');
});

it('paths out of the folder in a record', async () => {
  const secret = join(workspace(), 'secret.png');
  writeFileSync(secret, Buffer.from('89504e470d0a1a0a', 'hex'));
  const rollouts = 'tag_lake/FrozenLake_seed_0';
  const image = (url: string) => ({ type: 'image_url', image_url: { url } });
  write(
    `${rollouts}/metrics.json`,
    lines({ cumulative_reward: 1, env_name: '../../../../x', image_paths: [secret, '../../secret.png'] }),
  );
  write(
    `${rollouts}/messages.json`,
    lines([
      { role: 'user', content: [image(`file://${secret}`), image('../../../secret.png')] },
      { role: 'assistant', content: 'up' },
    ]),
  );
  const { folder, episodes } = await attach();
  const [episode] = episodes['val-000000'];
  expect([episode.tag, episode.turns[0].state]).toEqual(['../../../../x', '[image]\n[image]']);
  expect(episode.turns[0].pictures?.filter(picture => picture !== null) ?? []).toEqual([]);
  const names = readdirSync(folder.path, { recursive: true, encoding: 'utf8' });
  expect(names.filter(name => /\.\.|png/.test(name))).toEqual([]);
});

it('markup, escape sequences, and names that objects have', async () => {
  const markup = '<img src=x onerror=alert(1)>\u202e\u001b[31m';
  write('log.jsonl', `{"step":1,"data":{${JSON.stringify(markup)}:1,"__proto__":2,"constructor":3,"toString":4}}\n`);
  write('rollouts/1.jsonl', rollout({ output: markup, data_source: markup }));
  const { metrics, episodes } = await attach();
  expect(metrics[0][markup]).toBe(1);
  expect([metrics[0]['constructor'], metrics[0]['toString']]).toEqual([3, 4]);
  expect(episodes['step-000001'][0]).toMatchObject({ tag: markup, turns: [{ raw: markup }] });
});

it('numbers at the limits, and words in place of numbers', async () => {
  const values = ['1e308', '-1e308', 'NaN', 'Infinity', '1e999', '5e-324', 'null', '"1"', '[1]'];
  write('log.jsonl', values.map((value, i) => `{"step":${i},"data":{"ok":1,"a":${value}}}\n`).join(''));
  write('rollouts/1.jsonl', values.map(value => `{"input":"a","output":"b","score":${value}}\n`).join(''));
  const run = await attach();
  expect(run.metrics.map(line => line['a'])).toEqual(
    [1e308, -1e308, undefined, undefined, undefined, 5e-324, undefined, undefined, undefined], // prettier-ignore
  );
  expect(run.episodes['step-000001'].map(({ reward }) => reward)).toEqual([1e308, -1e308, 5e-324]);
  expect(leftOutOf(run)).toEqual([expect.stringContaining('6 lines of the rollouts could not be read')]);
});

it('negative, broken and enormous steps', async () => {
  const steps = ['1', '-1', '0.5', '1e300', '9007199254740993', '"7"', '99999999999999999999', '999999999999'];
  write('log.jsonl', steps.map(step => `{"step":${step},"data":{"a":1}}\n`).join(''));
  write('rollouts/999999999999.jsonl', rollout());
  write('rollouts/-1.jsonl', rollout());
  const { metrics, episodes, folder } = await attach();
  expect(metrics.map(({ step }) => step)).toEqual([1, 7, 999_999_999_999]);
  expect(Object.keys(episodes)).toEqual(['step-999999999999']);
  expect(folder.readStatus()).toMatchObject({ step: 999_999_999_999 });
});

it('values that are nested without end', async () => {
  const deep = `${'['.repeat(1e5)}1${']'.repeat(1e5)}`;
  write('log.jsonl', `${row(1)}{"step":2,"data":{"a":${deep}}}\n${row(3)}`);
  write('rollouts/1.jsonl', `${rollout()}{"input":"a","output":"b","score":1,"x":${deep}}\n`);
  const rollouts = lines({ step: 1, messages: [{ role: 'assistant', content: 'b' }], reward: 1 });
  write('other/own.jsonl', `${rollouts}{"step":1,"messages":${deep},"reward":1}\n`);
  const bomb = 'abcdefgh'.split('').map((key, i, all) => `${key}: &${key} [${Array(9).fill(i ? `*${all[i - 1]}` : 'x').join()}]\n`); // prettier-ignore
  write('.hydra/config.yaml', `${bomb.join('')}actor_rollout_ref: {x: *h}\n`);
  const run = await attach();
  expect(run.metrics.map(({ step }) => step)).toEqual([1, 3]);
  expect(run.episodes['step-000001']).toHaveLength(1);
  expect(leftOutOf(run)).toHaveLength(1);
  const own = await attachOnce(workspace(), inRun('other'));
  expect(own.episodes['step-000001']).toHaveLength(1);
  writeFileSync(inRun('other/own.jsonl'), `{"step":1,"a":${'{"a":'.repeat(1e5)}1${'}'.repeat(1e5)}}\n`);
  await expect(attachOnce(workspace(), inRun('other'))).rejects.toThrow('contains no files of a known trainer');
});

it.skipIf(process.platform === 'win32')('pipes in place of files', async () => {
  write('rollouts/1.jsonl', rollout());
  for (const name of ['log.jsonl', 'rollouts/2.jsonl', 'events.out.tfevents.1.host'])
    execFileSync('mkfifo', [inRun(name)]);
  const { metrics, episodes } = await attach();
  expect([metrics.length, Object.keys(episodes)]).toEqual([1, ['step-000001']]);
});

it('lines of 70 MB', async () => {
  const long = Buffer.alloc(70_000_000, 'x');
  const log = write('log.jsonl', Buffer.concat([Buffer.from(`${row(1)}{"x":"`), long, Buffer.from(`"}\n${row(2)}`)]));
  write(
    'rollouts/1.jsonl',
    Buffer.concat([Buffer.from(`${rollout()}{"input":"`), long, Buffer.from(`"}\n${rollout()}`)]),
  );
  const run = await attach();
  expect(run.metrics.map(({ step }) => step)).toEqual([1, 2]);
  expect(run.episodes['step-000001']).toHaveLength(2);
  expect(leftOutOf(run)).toEqual([
    expect.stringContaining(`${log} has 1 line of more than 67108864 bytes`),
    expect.stringContaining('1 line of the rollouts could not be read'),
  ]);
  const begun = write('../long/1.jsonl', Buffer.concat([Buffer.from('{"input":"'), long]));
  await expect(attachOnce(workspace(), dirname(begun))).rejects.toThrow('the first line of 1.jsonl has more than');
});

it('texts that are no UTF-8', async () => {
  write(
    'log.jsonl',
    Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(row(1)), Buffer.from([0xff, 0xfe, 0x0a])]),
  );
  write('rollouts/1.jsonl', Buffer.from('{"input":"\xed\xa0\x80\xff","output":"\\ud800 b","score":1}\n', 'latin1'));
  mkdirSync(Buffer.concat([Buffer.from(inRun('bad')), Buffer.from([0xff, 0xfe])]));
  const { metrics, episodes } = await attach();
  expect([metrics.length, episodes['step-000001'][0].reward]).toEqual([1, 1]);
});

it('texts on which regular expressions take long', async () => {
  write('log.jsonl', `${row(1)}NaN${'"\\'.repeat(1e6)}\n{"step":2,"data":{"a":NaN,"b":"${'\\"NaN'.repeat(2e5)}"}}\n`);
  const texts = ['<think>', '</think>', '<answer>', '<|im_start|>', '\nassistant\n', '\n', ' '].map(part =>
    part.repeat(1e5),
  );
  write('rollouts/1.jsonl', texts.map(text => rollout({ input: text, output: text })).join(''));
  const began = performance.now();
  const { metrics, episodes } = await attach();
  expect(metrics.map(({ step }) => step)).toEqual([1, 2]);
  expect(episodes['step-000001']).toHaveLength(texts.length);
  expect(performance.now() - began).toBeLessThan(20_000);
});

it('50,000 files', async () => {
  mkdirSync(inRun('.'), { recursive: true });
  for (let i = 0; i < 50_000; i++) writeFileSync(inRun(`events.out.tfevents.${i}.host`), '');
  const began = performance.now();
  const { adapter } = await attach();
  expect(adapter).toBe('tensorboard');
  expect(performance.now() - began).toBeLessThan(20_000);
});

it('more files of JSON lines than are read', async () => {
  for (let i = 1; i <= 1010; i++) write(`try-${i}.jsonl`, lines({ prompt: 'a', completion: 'b', reward: 1 }));
  const { missing, episodes } = await attach();
  expect(Object.keys(episodes)).toHaveLength(1000);
  expect(missing).toContain('the last 10 of 1010 files: join them, 1000 are read');
});
