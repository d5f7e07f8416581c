// Data sets in each published form: files and folders, configurations and splits, and the errors when nothing is found.
import { afterAll, describe, expect, test } from 'vitest';
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import * as zlib from 'node:zlib';
import { openDataSet, type DataSet } from '../../../../envs/api/data-set';
import { MissingDependency } from '../../../../envs/api/environment';
import { rowExtents } from '../../../../envs/api/row-extents';
import countdown from '../../../../envs/countdown/index';
import metamathqa from '../../../../envs/metamathqa/index';
import staticQuestions from '../../../../envs/static/index';

const golden = join(__dirname, '../../../golden/data-sets');
const folder = mkdtempSync(join(tmpdir(), 'ragen-data-set-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const write = (name: string, text: string | Uint8Array) => {
  const file = join(folder, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
};
const remedy = 'get it';
const all = async (data: DataSet) => Promise.all(Array.from({ length: data.length }, (_, i) => data.row(i)));
const open = async (path: string, options = {}) => all(await openDataSet(path, { remedy, ...options }));

describe('Parquet', () => {
  const problem = (i: number) => ({ target: i === 7 ? 1000 : 3 * i + 6, nums: [i + 1, i + 2, i + 3] });
  test('reads a folder of several files and row groups, in any order', async () => {
    const data = await openDataSet(join(golden, 'countdown'), { split: 'train', remedy });
    expect(data.length).toBe(25);
    for (const i of [24, 0, 14, 15, 3, 4, 7]) expect(await data.row(i)).toEqual(problem(i));
  });
  test('reads another split, without compression', async () => {
    expect(await open(join(golden, 'countdown'), { split: 'test' })).toEqual([{ target: 6, nums: [1, 2, 3] }]);
    const none = openDataSet(join(golden, 'countdown'), { split: 'dev', remedy });
    await expect(none).rejects.toThrow(
      `needs a data set, but ${join(golden, 'countdown')} has no rows of the split "dev"`,
    );
  });
  test('reads one configuration of several', async () => {
    const rows = await open(join(golden, 'gsm8k'), { configuration: 'main', split: 'test' });
    expect(rows.map(({ question }) => question)).toEqual([0, 1].map(i => `plain test ${i}: how much is ${i} + 1? ✓`));
    expect(await open(join(golden, 'gsm8k'), { configuration: 'socratic', split: 'train' })).toHaveLength(5);
    expect(await open(join(golden, 'gsm8k'))).toHaveLength(14);
  });
  test('reads Zstandard where Node supports it', async () => {
    const rows = open(join(golden, 'mmlu/zstd.parquet'));
    if ('zstdDecompressSync' in zlib) expect(await rows).toHaveLength(1);
    else await expect(rows).rejects.toThrow(/ZSTD/);
  });
  test('refuses a file that is not Parquet', async () => {
    const file = write('bad.parquet', 'no parquet at all, but long enough to have a footer');
    await expect(open(file)).rejects.toThrow(`cannot read the data of ${file} (`);
  });
});

describe('JSON', () => {
  const rows = [{ a: 1 }, { a: 'x}{"\\"][', b: { c: [{}] } }, { a: 'é✓\n' }];
  test('reads lines, with and without a final line break, with blank lines', async () => {
    const text = rows.map(row => JSON.stringify(row)).join('\n');
    expect(await open(write('lines.jsonl', text))).toEqual(rows);
    expect(await open(write('lines.json', `\n${text.replaceAll('\n', '\r\n\n')}  \n\n`))).toEqual(rows);
  });
  test('reads an array, on one or many lines, longer than one read buffer', async () => {
    expect(await open(write('array.json', JSON.stringify(rows)))).toEqual(rows);
    expect(await open(write('wide.json', ` ${JSON.stringify(rows, null, 2)}\n`))).toEqual(rows);
    const many = Array.from({ length: 3000 }, (_, i) => ({ i, text: `"${'\\{✓'.repeat(i % 300)}` }));
    expect(await open(write('long.json', JSON.stringify(many)))).toEqual(many);
  });
  test('refuses a file without rows', async () => {
    expect(() => rowExtents(write('text.json', 'hello'))).toThrow('the file contains no JSON objects');
    expect(() => rowExtents(write('torn.json', '[{"a": 1}, {"b":'))).toThrow('the file ends in the middle of a row');
    await expect(open(write('empty.jsonl', ''))).rejects.toThrow('has no rows');
  });
  test('reads the best format in a folder and skips metadata files', async () => {
    write('mixed/a.jsonl', '{"from": "a"}');
    write('mixed/b.jsonl', '{"from": "b"}');
    write('mixed/c.json', '[{"from": "c"}]');
    write('mixed/dataset_infos.json', '{}');
    expect(await open(join(folder, 'mixed'), { split: 'train' })).toEqual([{ from: 'a' }, { from: 'b' }]);
  });
});

test('a missing data set is reported with a remedy, and a file that appears later is found', async () => {
  const path = join(folder, 'later.jsonl');
  const missing = await openDataSet(path, { remedy }).catch((error: unknown) => error);
  expect(missing).toBeInstanceOf(MissingDependency);
  expect(missing).toMatchObject({ message: `needs a data set, but ${path} does not exist`, remedy });
  write('later.jsonl', '{"a":1}');
  expect(await open(path)).toEqual([{ a: 1 }]);
  await expect(open(write('table.csv', 'a,b'))).rejects.toThrow(
    'table.csv, whose format is not one of .parquet, .jsonl, .json',
  );
});

describe("environments over the user's data", () => {
  test('countdown keeps the solvable problems of the first rows', async () => {
    const path = join(golden, 'countdown');
    const texts = async (config: object, seeds: number[]) => {
      const environment = countdown.create(countdown.config.parse({ train_path: path, ...config }));
      const begun = [];
      for (const seed of seeds) begun.push((await environment.reset({ seed })).observation);
      return begun;
    };
    const text = (i: number) => `Target: ${3 * i + 6}, nums: [${i + 1}, ${i + 2}, ${i + 3}]`;
    expect(await texts({}, [0, 6, 7, 23, 24])).toEqual([text(0), text(6), text(8), text(24), text(0)]);
    expect(await texts({ solvable_filter: false }, [7, 25])).toEqual(['Target: 1000, nums: [8, 9, 10]', text(0)]);
    expect(await texts({ max_instances: 3 }, [3])).toEqual([text(0)]);
    const val_path = write('val.jsonl', '{"target": 3, "nums": [1, 2]}');
    const validated = countdown.create(countdown.config.parse({ train_path: path, val_path }));
    expect(await validated.reset({ seed: 3, mode: 'val' })).toEqual({ observation: 'Target: 3, nums: [1, 2]' });
    expect(await validated.reset({ seed: 3, mode: 'train' })).toEqual({ observation: text(3) });
    const wrong = write('wrong.jsonl', '{"target": "5", "nums": [5]}');
    await expect(texts({ train_path: wrong }, [0])).rejects.toThrow(
      `cannot use row 0 of ${wrong}, whose columns "target" and "nums" must contain integers`,
    );
  });
  test('static and metamathqa read the published columns', async () => {
    const config = { dataset_name: 'gsm8k', dataset_path: join(golden, 'gsm8k'), split: 'test' };
    const school = staticQuestions.create(staticQuestions.config.parse(config));
    const { observation } = await school.reset({ seed: 1 });
    expect(observation).toMatch(/^plain test [01]:/);
    expect(await school.solve!()).toEqual([`${Number(/test (\d)/.exec(String(observation))![1]) + 1}`]);
    const algebra = staticQuestions.config.parse({
      dataset_name: 'mmlu',
      dataset_path: join(golden, 'mmlu/abstract_algebra'),
    });
    expect(await staticQuestions.create(algebra).reset({ seed: 0 })).toEqual({
      observation: 'What is 1 + 1?\nA. 1\nB. 2\nC. 3\nD. 4',
    });
    const solved = write(
      'MetaMathQA-395K.json',
      JSON.stringify([{ query: 'q', response: 'The answer is: The answer is: 2\n' }]),
    );
    const mathematics = metamathqa.create(metamathqa.config.parse({ dataset_path: solved }));
    expect(await mathematics.reset({ seed: 5 })).toEqual({ observation: 'q' });
    expect(await mathematics.solve!()).toEqual(['The answer is: 2']);
    const wrong = metamathqa.create(metamathqa.config.parse({ dataset_path: join(golden, 'gsm8k') }));
    await expect(wrong.reset({ seed: 0 })).rejects.toThrow(
      'cannot use a row whose columns "query" and "response" do not contain text',
    );
  });
  test('loading checks the columns of a small data set, and only the presence of a large one', async () => {
    const wrong = write('other.jsonl', '{"question": 1}');
    const load = (environment: typeof metamathqa, dataset_path: string) =>
      environment.dependencies!(environment.config.parse({ dataset_path }));
    await expect(load(metamathqa, wrong)).rejects.toThrow(
      'cannot use a row whose columns "query" and "response" do not contain text',
    );
    await expect(staticQuestions.dependencies!(staticQuestions.config.parse({ dataset_path: wrong }))).rejects.toThrow(
      'cannot use a row that lacks the columns of metamathqa',
    );
    const large = write('large.jsonl', '{"question": 1}\n');
    truncateSync(large, (1 << 26) + 1);
    await load(metamathqa, large);
    rmSync(large);
  });
  test('the check on load passes for the shipped data and fails for a path to nothing', async () => {
    for (const { dependencies, config } of [countdown, metamathqa, staticQuestions] as const) {
      await dependencies!(config.parse({}) as never);
      const key = 'train_path' in config.shape ? 'train_path' : 'dataset_path';
      await expect(dependencies!(config.parse({ [key]: 'nowhere' }) as never)).rejects.toThrow('needs a data set, but');
    }
  });
});
