// `ragen score` and `ragen generate` in the CLI: values equal transformers', output is in input order, a row's tokens
// do not depend on other rows, and every error is one sentence and exit code 1.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { writeSafetensors } from '../../../../extension/models/weights/safetensors-writer';
import { tensorsOf } from '../../../golden/tensors';
import { document, ragen } from '../../../support/terminal';
import { makeWorkspace, root, writeModel } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

interface Scored {
  tokens: number[];
  logprobs: (number | null)[];
}
interface Continued extends Omit<Scored, 'logprobs'> {
  prompt_tokens: number[];
  logprobs: number[];
  text: string | null;
  finish: string;
}
interface Refusal {
  error: { message: string };
}

let workspace: Workspace;
beforeAll(() => (workspace = makeWorkspace()));
afterAll(() => workspace.remove());

const random = 'models/random';
const golden = (family: string): string => resolve(root, 'test/golden', family);
const input = (rows: unknown, name = 'rows.json'): string => workspace.write(name, JSON.stringify(rows));
const score = (model: string, file: string, ...more: string[]) =>
  document<Scored[]>(workspace.folder, ['score', '--model', model, '--input', file, ...more]);
const generate = (model: string, file: string, ...more: string[]) =>
  document<Continued[]>(workspace.folder, ['generate', '--model', model, '--input', file, ...more]);

/** The single error sentence of a command, on standard error and in its document. */
async function refused(args: string[]): Promise<string> {
  const { code, stderr, answer } = await document<Refusal>(workspace.folder, args);
  const { message } = answer.error;
  expect(stderr).toBe(`${message}\n`);
  expect(message, 'one line').not.toContain('\n');
  expect(message, 'place: remedy').toMatch(/: \S/);
  expect(code).toBe(1);
  return message;
}

describe('score', () => {
  test.each(['qwen2', 'llama'])('gives the log-probs of transformers: %s', async family => {
    const tensors = tensorsOf(join(golden(family), 'golden.safetensors'));
    const { dims, data: ids } = tensors.get('ids')!;
    const { data: logits, dims: shape } = tensors.get('logits')!;
    const [b, t] = dims;
    const vocab = shape[2];
    const rows = Array.from({ length: b }, (_, r) => Array.from(ids.subarray(r * t, (r + 1) * t)));
    // plus prefixes, which are batched by length and returned in the input's order
    const all = [rows[0].slice(0, 1), rows[1], rows[2].slice(0, 5), rows[0], rows[2], rows[0].slice(0, 2)];
    const { code, stderr, answer } = await score(golden(family), input(all.map(tokens => ({ tokens }))));
    expect(code, stderr).toBe(0);
    expect(answer.map(({ tokens }) => tokens)).toEqual(all);
    const logprob = (r: number, position: number): number => {
      const row = logits.subarray((r * t + position - 1) * vocab, (r * t + position) * vocab);
      const top = Math.max(...row);
      const lse = top + Math.log(row.reduce((sum, x) => sum + Math.exp(x - top), 0));
      return row[rows[r][position]] - lse;
    };
    for (const [i, r] of [0, 1, 2, 0, 2, 0].entries()) {
      const { logprobs } = answer[i];
      expect(logprobs.length).toBe(all[i].length);
      expect(logprobs[0]).toBeNull();
      logprobs.slice(1).forEach((x, k) => expect(Math.abs(x! - logprob(r, k + 1))).toBeLessThan(1e-4));
    }
  });

  test('renders messages without a generation prompt; reads lines and standard input alike', async () => {
    const messages = [
      { role: 'user', content: 'Where?' },
      { role: 'assistant', content: 'There.' },
    ];
    const { answer } = await score(random, input([{ messages }]));
    const again = await score(
      random,
      workspace.write('rows.jsonl', `${JSON.stringify({ tokens: answer[0].tokens })}\n`),
    );
    expect(again.answer).toEqual(answer);
    const piped = await document<Scored[]>(
      workspace.folder,
      ['score', '--model', random, '--input', '-'],
      'exec < rows.json',
    );
    expect(piped.answer).toEqual(answer);
    const { answer: prompted } = await generate(random, 'rows.json', '--seed', '1', '--max-new-tokens', '1');
    expect(prompted[0].prompt_tokens.slice(0, answer[0].tokens.length)).toEqual(answer[0].tokens);
    expect(prompted[0].prompt_tokens.length).toBeGreaterThan(answer[0].tokens.length);
  });

  test('returns an empty list for an empty array; prints a table without --json', async () => {
    expect((await score(random, input([]))).answer).toEqual([]);
    const { stdout } = await ragen(workspace.folder, [
      ...['score', '--model', random, '--input', input([{ tokens: [1, 2, 3] }, { tokens: [4] }])],
    ]);
    expect(stdout.split('\n').length).toBe(4);
    expect(stdout).toMatch(/^ {4}0 +3 +-\d+\.\d{4} +-\d+\.\d{4}$/m);
  });
});

describe('generate', () => {
  const prompts = Array.from({ length: 40 }, (_, i) => ({ tokens: [i + 1, 2 * i + 1, 7].slice(i % 3) }));

  test('gives a row the same tokens whatever is beside it, and other tokens for another seed', async () => {
    const flags = ['--seed', '5', '--max-new-tokens', '12'];
    const { answer: all, code, stderr } = await generate(random, input(prompts), ...flags);
    expect(code, stderr).toBe(0);
    expect(all.map(row => row.prompt_tokens)).toEqual(prompts.map(({ tokens }) => tokens));
    const { answer: few } = await generate(random, input(prompts.slice(0, 3)), ...flags, '--threads', '1');
    expect(few.map(({ tokens }) => tokens)).toEqual(all.slice(0, 3).map(({ tokens }) => tokens));
    const { answer: others } = await generate(random, 'rows.json', '--seed', '6', '--max-new-tokens', '12');
    expect(others.map(({ tokens }) => tokens)).not.toEqual(few.map(({ tokens }) => tokens));
    for (const { tokens, logprobs, text, finish } of all) {
      expect(logprobs.length).toBe(tokens.length);
      expect(typeof text).toBe('string');
      expect(finish).toMatch(/^(stop|length)$/);
      expect(tokens.length).toBeLessThanOrEqual(12);
      if (finish === 'length') expect(tokens.length).toBe(12);
    }
    expect(new Set(all.map(({ finish }) => finish)).size, 'both ends are met').toBe(2);
  });

  test('returns the log-probs of score', async () => {
    const { answer } = await generate(random, input(prompts.slice(0, 4)), '--seed', '1', '--max-new-tokens', '8');
    const whole = answer.map(({ prompt_tokens, tokens }) => ({ tokens: [...prompt_tokens, ...tokens] }));
    const { answer: scored } = await score(random, input(whole, 'whole.json'));
    answer.forEach(({ prompt_tokens, logprobs }, r) =>
      logprobs.forEach((x, t) => expect(x).toBeCloseTo(scored[r].logprobs[prompt_tokens.length + t]!, 4)),
    );
  });

  test('is the same for every seed in greedy mode; top-k 1 is greedy', async () => {
    const file = input(prompts.slice(0, 3));
    const tokensOf = async (...flags: string[]): Promise<number[][]> =>
      (await generate(random, file, '--max-new-tokens', '6', ...flags)).answer.map(({ tokens }) => tokens);
    const greedy = await tokensOf('--seed', '1', '--greedy');
    expect(await tokensOf('--seed', '2', '--greedy')).toEqual(greedy);
    expect(await tokensOf('--seed', '3', '--top-k', '1')).toEqual(greedy);
    expect(await tokensOf('--seed', '4', '--temperature', '0.001')).toEqual(greedy);
  });

  test('continues ids with a model without a tokenizer, with text null', async () => {
    const { answer } = await generate(
      golden('llama'),
      input([{ tokens: [5, 9] }]),
      '--seed',
      '1',
      '--max-new-tokens',
      '3',
    );
    expect(answer[0].text).toBeNull();
    expect(answer[0].tokens.length).toBeGreaterThan(0);
  });

  test('ends a row at the end of the context', async () => {
    const tokens = Array.from({ length: 62 }, (_, i) => 3 + (i % 50));
    const { answer } = await generate(golden('llama'), input([{ tokens }]), '--seed', '11', '--max-new-tokens', '99');
    expect(answer[0].tokens.length).toBeLessThanOrEqual(2);
  });
});

describe('options', () => {
  const given = (...more: string[]): string[] => ['generate', '--model', random, '--input', 'rows.json', ...more];
  beforeAll(() => void input([{ tokens: [1] }]));

  test.each([
    [['--seed', 'x'], '--seed is "x": give a whole number from 0'],
    [['--seed', '-1'], '--seed is "-1": give a whole number from 0'],
    [['--seed', '1', '--temperature', '0'], '--temperature is "0": give a number above 0'],
    [['--seed', '1', '--top-p', '1.5'], '--top-p is "1.5": give a number above 0 and up to 1'],
    [['--seed', '1', '--top-k', '2.5'], '--top-k is "2.5": give a whole number from 0'],
    [['--seed', '1', '--min-p', '1'], '--min-p is "1": give a number from 0 to below 1'],
    [['--seed', '1', '--repetition-penalty', 'NaN'], '--repetition-penalty is "NaN": give a number above 0'],
    [['--seed', '1', '--max-new-tokens', '0'], '--max-new-tokens is "0": give a whole number from 1'],
    [['--seed', '1', '--threads', '-2'], '--threads is "-2": give a whole number from 0 to 1024'],
    [['--seed', '1', '--device', 'tpu'], '--device is "tpu": use one of auto, cpu, webgpu, cuda'],
  ])('%j is refused', async (flags, sentence) => expect(await refused(given(...flags))).toBe(sentence));

  test('a missing option is named', async () => {
    const { code, answer } = await document<Refusal>(workspace.folder, ['score', '--model', random]);
    expect(code).toBe(1);
    expect(answer.error.message).toContain("required option '--input <file>' not specified");
  });
});

describe('input', () => {
  const scoring = (file: string, model = random): string[] => ['score', '--model', model, '--input', file];

  test.each([
    ['none.json', /^none\.json cannot be read \(ENOENT\): give the path of an existing file to --input$/],
    ['models', /^models cannot be read \(EISDIR\): give a JSON file to --input, not a folder$/],
  ])('is refused: %s', async (file, sentence) => expect(await refused(scoring(file))).toMatch(sentence));

  test('that is malformed is refused with its line', async () => {
    workspace.write('bad.json', '[{"tokens": [1]},\n {"tokens": [1, 0.5]}]');
    expect(await refused(scoring('bad.json'))).toBe('bad.json:2: [1].tokens[1] is 0.5: use a whole number from 0 on');
  });

  test('with a token outside the vocabulary is refused', async () => {
    const file = input([{ tokens: [1] }, { tokens: [60, 61] }], 'vocabulary.json');
    expect(await refused(scoring(file, golden('qwen2')))).toMatch(
      /vocabulary\.json:1: \[1\]\.tokens\[1\] is 61, but the model's token ids are 0 to 60: use ids of this model's tokenizer$/,
    );
  });

  test('longer than the context is refused; a prompt must leave room for a token', async () => {
    const exact = input([{ tokens: Array<number>(64).fill(1) }], 'exact.json');
    const over = input([{ tokens: Array<number>(65).fill(1) }], 'over.json');
    expect((await score(golden('qwen2'), exact)).code).toBe(0);
    expect(await refused(scoring(over, golden('qwen2')))).toMatch(
      /over\.json:1: \[0\] has 65 tokens, but the model's context has only 64: shorten the row to 64 tokens$/,
    );
    expect(await refused(['generate', '--model', golden('qwen2'), '--input', exact, '--seed', '1'])).toMatch(
      /exact\.json:1: \[0\] has 64 tokens, but the model's context has only 64, and the answer needs at least one token: shorten the row to 63 tokens$/,
    );
  });

  test('of messages is refused for a model without a tokenizer', async () => {
    const file = input([{ messages: [{ role: 'user', content: 'x' }] }], 'messages.json');
    expect(await refused(scoring(file, golden('qwen2')))).toMatch(/qwen2: cannot read tokenizer\.json \(ENOENT\): /);
  });
});

describe('model', () => {
  const folderOf = (name: string): string => join(workspace.folder, 'models', name);
  const broken = async (name: string, change: (folder: string) => unknown): Promise<string> => {
    writeModel(folderOf(name));
    await change(folderOf(name));
    return refused(['score', '--model', `models/${name}`, '--input', input([{ tokens: [1, 2] }])]);
  };
  const weights = (folder: string): string => join(folder, 'model.safetensors');
  const config = (folder: string, change: object): void => {
    const file = join(folder, 'config.json');
    writeFileSync(file, JSON.stringify({ ...(JSON.parse(readFileSync(file, 'utf8')) as object), ...change }));
  };
  /** Rewrites the weights as two shards with an index. */
  const shard = async (folder: string): Promise<string[]> => {
    const tensors = [...tensorsOf(weights(folder))].map(([name, { dims, data }]) => ({ name, shape: dims, data }));
    rmSync(weights(folder));
    const names = ['model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors'];
    const parts = [tensors.slice(0, 3), tensors.slice(3)];
    for (const [i, part] of parts.entries()) await writeSafetensors(join(folder, names[i]), part);
    const weight_map = Object.fromEntries(parts.flatMap((part, i) => part.map(({ name }) => [name, names[i]])));
    writeFileSync(join(folder, 'model.safetensors.index.json'), JSON.stringify({ weight_map }));
    return names;
  };

  test('that does not exist is refused', async () => {
    expect(await refused(['score', '--model', 'nowhere', '--input', input([{ tokens: [1] }])])).toMatch(
      /^--model is "nowhere", but there is no config\.json in .*: give a folder \(with config\.json/,
    );
  });

  test('without config.json is refused', async () => {
    expect(await broken('no-config', folder => rmSync(join(folder, 'config.json')))).toMatch(
      /^--model is "models\/no-config", but there is no config\.json in .*: give a folder/,
    );
  });

  test('without weights is refused', async () => {
    expect(await broken('no-weights', folder => rmSync(weights(folder)))).toMatch(
      /^weights: .*no-weights has neither model\.safetensors nor model\.safetensors\.index\.json: choose a folder/,
    );
  });

  test('without a shard is refused', async () => {
    expect(await broken('no-shard', async folder => rmSync(join(folder, (await shard(folder))[1])))).toMatch(
      /index\.json names the shard model-00002-of-00002\.safetensors, which is not in the same folder: download or convert the file again/,
    );
  });

  test('with a dtype that is not a float is refused', async () => {
    const change = (folder: string): void => {
      const bytes = readFileSync(weights(folder));
      const header = bytes.subarray(8, 8 + Number(bytes.readBigUInt64LE(0)));
      header.write(header.toString().replace('"dtype":"F32"', '"dtype":"I32"'));
      writeFileSync(weights(folder), bytes);
    };
    expect(await broken('dtype', change)).toMatch(/dtype.*tensor model\.\S+ in I32.*: convert it to F32, F16 or BF16/);
  });

  test('with a tensor of another shape is refused', async () => {
    expect(await broken('shape', folder => config(folder, { intermediate_size: 25 }))).toMatch(
      /tensor model\.layers\.0\.mlp\.gate_proj\.weight has the shape \[24, 16\], but config\.json requires \[25, 16\]: /,
    );
  });

  test('of an unknown architecture is refused', async () => {
    expect(await broken('mamba', folder => config(folder, { model_type: 'mamba' }))).toMatch(
      /mamba.config\.json: model_type is "mamba", which is not supported: use a model of type qwen2/,
    );
  });

  test('with a non-finite weight is refused', async () => {
    const change = (folder: string): void => {
      const bytes = readFileSync(weights(folder));
      bytes.writeFloatLE(NaN, bytes.length - 4);
      writeFileSync(weights(folder), bytes);
    };
    expect(await broken('nan', change)).toMatch(
      /tensor \S+ is damaged \(element \d+ is NaN\): download the weights again/,
    );
  });

  test('whose weights overflow reports it and returns no number', async () => {
    const change = async (folder: string): Promise<void> => {
      const tensors = [...tensorsOf(weights(folder))].map(([name, { dims, data }]) => ({ name, shape: dims, data }));
      tensors.find(({ name }) => name === 'lm_head.weight')!.data.fill(3e38);
      await writeSafetensors(weights(folder), tensors);
    };
    expect(await broken('overflow', change)).toMatch(
      /rows\.json:1: \[0\]: the log-probability of token 1 is (NaN|-Infinity|Infinity), because the weights of/,
    );
  });
});
