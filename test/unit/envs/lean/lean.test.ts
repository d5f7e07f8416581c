// The Lean environment against a stand-in that speaks the protocols of the Kimina server and of the REPL (Lean itself
// does not run here): requests, rewards, observations and failures.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { StepResult } from '../../../../envs/api/environment';
import { PythonRandom } from '../../../../envs/api/random/python-random';
import lean from '../../../../envs/lean/index';
import { kiminaChecker } from '../../../../envs/lean/kimina-client';
import { verdictOf } from '../../../../envs/lean/lean-check';
import { numberedLines, partsOf, scriptOf, wrapped } from '../../../../envs/lean/proof';

interface Recorded {
  url: string;
  method: string;
  authorization?: string;
  body: { snippets: { id: string; code: string }[] };
}
const golden = JSON.parse(readFileSync(resolve(__dirname, '../../../golden/envs/lean.json'), 'utf8')) as {
  request: Recorded;
  answers: { code: string; status: string; result: { error: string | null; response: object | null } }[];
};
const theorems = readFileSync(resolve(__dirname, '../../../../media/data/lean.jsonl'), 'utf8')
  .trim()
  .split('\n')
  .map(line => JSON.parse(line) as { natural_language_statement: string; formal_statement: string; proof: string[] });
const standIn = resolve(__dirname, 'tiny-lean.mjs');

let server: ChildProcess;
let url: string;
let asked: Recorded[] = [];
beforeAll(async () => {
  server = spawn(process.execPath, [standIn, '--http'], { stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise<void>(done => {
    createInterface(server.stdout!).on('line', line => {
      if (!/^\d+$/.test(line)) return void asked.push(JSON.parse(line) as Recorded);
      url = `http://127.0.0.1:${line}`;
      done();
    });
  });
});
afterAll(() => void server.kill());
beforeEach(() => void (asked = []));

const parse = (config: Record<string, unknown>) => lean.config.parse({ server_url: url, max_retries: 1, ...config });
const repl = { repl_command: [process.execPath, standIn] };
async function begin(config: Record<string, unknown>, seed = 0) {
  const environment = lean.create(parse(config));
  const { observation } = (await environment.reset({ seed })) as { observation: string };
  const step = async (action: string) => (await environment.step(action)) as StepResult & { observation: string };
  return { environment, observation, step };
}

test("sends the same requests to the Kimina server as the project's own client, and parses the same answers", async () => {
  const kimina = kiminaChecker({ url: `${url}/`, apiKey: 'secret', timeout: 30, httpTimeout: 5, attempts: 1 });
  const statuses = [];
  for (const { code } of golden.answers) {
    const { accepted, success, timedOut } = verdictOf(
      await kimina.check({ header: code.slice(0, 15), body: code.slice(15) }),
    );
    statuses.push(timedOut ? 'timeout_error' : success ? 'valid' : accepted ? 'unfinished' : 'refused');
  }
  expect(statuses).toEqual(['unfinished', 'unfinished', 'valid', 'refused', 'refused', 'timeout_error']);
  expect(golden.answers.map(({ status }) => status)).toEqual([
    'lean_error',
    'lean_error',
    'valid',
    'sorry',
    'lean_error',
    'timeout_error',
  ]);
  const { snippets, ...rest } = asked[0].body;
  expect([asked[0].url, asked[0].method, asked[0].authorization]).toEqual(['/api/check', 'POST', 'Bearer secret']);
  const { snippets: theirs, ...others } = golden.request.body;
  expect(rest).toEqual(others);
  expect(golden.request).toMatchObject({ url: '/api/check', method: 'POST', authorization: 'Bearer secret' });
  expect(snippets).toEqual([{ id: expect.stringMatching(/^ragen-proof-\w{32}$/), code: theirs[0].code }]);
});

describe.each([
  ['the Kimina server', {}],
  ['a REPL', repl],
])('with %s', (_, where) => {
  test('each shipped theorem is proven by its proof; each tactic pays 0.9 and the last 10.9', async () => {
    for (const [theorem_idx, { proof, natural_language_statement }] of theorems.entries()) {
      const { environment, observation, step } = await begin({ ...where, theorem_idx });
      expect(observation).toContain(wrapped(natural_language_statement)[0]);
      expect(await environment.solve!()).toEqual(proof);
      for (const [i, tactic] of proof.entries()) {
        const isLast = i === proof.length - 1;
        const { reward, terminated, info } = await step(tactic);
        expect([reward, terminated, info.success, info.accepted]).toEqual([isLast ? 10.9 : 0.9, isLast, isLast, true]);
      }
      expect(await environment.solve!()).toEqual([]);
    }
  });

  test('an error of Lean is shown and leaves the proof unchanged', async () => {
    const { environment, step } = await begin({ ...where, theorem_idx: 2 });
    const wrong = await step('simp');
    expect(wrong).toMatchObject({
      terminated: false,
      truncated: false,
      info: { action_is_valid: false, action_is_effective: false },
    });
    expect(wrong.reward).toBeCloseTo(-1.1, 12);
    expect(wrong.observation).toContain('  accepted: False\n  messages:\n01. [ERROR 7:2 → 7:6] unknown tactic\n\nsimp');
    expect((await step('sorry')).reward).toBeCloseTo(-1.1, 12);
    expect((await step('')).reward).toBeCloseTo(-1.1, 12);
    const first = await step('intro hp');
    expect(first.observation).toContain('[UNSOLVED GOALS 6:');
    expect(first.observation).toContain('    6 | theorem imp_chain');
    expect(first.observation).toContain('    7 |   intro hp\n');
    expect(first.observation).toContain(
      '  01. simp [✗ rejected]\n  02. sorry [✗ rejected]\n  03.  [✗ rejected]\n  04. intro hp [✓ accepted]',
    );
    expect(await environment.solve!()).toEqual(['exact hqr (hpq hp)']);
  });

  test('a timeout is refused with an extra penalty, and the next tactic is checked again', async () => {
    const { step } = await begin({ ...where, theorem_idx: 2, request_timeout: 1 });
    const late = await step('slow');
    expect(late.reward).toBeCloseTo(-2.1, 12);
    expect([late.info.timed_out, late.terminated]).toEqual([true, false]);
    expect((await step('intro hp')).reward).toBe(0.9);
  });

  test('the last step costs its penalty unless it completes the proof', async () => {
    const { step } = await begin({ ...where, theorem_idx: 2, max_steps: 2 });
    await step('intro hp');
    const last = await step('simp');
    expect([last.truncated, last.terminated]).toEqual([true, false]);
    expect(last.reward).toBeCloseTo(-3.1, 12);
    const other = await begin({ ...where, theorem_idx: 2, max_steps: 2 });
    await other.step('intro hp');
    expect(await other.step('exact hqr (hpq hp)')).toMatchObject({ truncated: false, terminated: true, reward: 10.9 });
  });

  test('the server is checked before the first episode', async () => {
    await expect(lean.dependencies!(parse(where))).resolves.toBeUndefined();
  });
});

test("an episode's texts equal the expected transcript", async () => {
  const { observation, step } = await begin({}, 10_000);
  const text = [observation];
  for (const action of [
    'simp',
    ...theorems.find(({ formal_statement }) => observation.includes(formal_statement))!.proof,
  ]) {
    const { observation, reward, terminated, info } = await step(action);
    const { messages: _, ...otherInfo } = info;
    text.push(
      `> ${action}: reward ${reward}${terminated ? ', terminated' : ''}, ${JSON.stringify(otherInfo)}`,
      observation,
    );
  }
  const file = resolve(__dirname, '../../../golden/envs/transcripts/lean.txt');
  await expect(`${text.join('\n')}\n`).toMatchFileSnapshot(file);
});

test('the seed draws the theorem that CPython draws', async () => {
  for (const seed of [0, 1, 10_005])
    expect((await begin({}, seed)).observation).toContain(new PythonRandom(seed).choice(theorems).formal_statement);
});

describe('failures', () => {
  test('a missing or refusing server is reported', async () => {
    const closing = createServer().listen(0, '127.0.0.1');
    await once(closing, 'listening');
    const nowhere = `http://127.0.0.1:${(closing.address() as AddressInfo).port}`;
    await new Promise(done => closing.close(done));
    await expect(lean.dependencies!(parse({ server_url: nowhere }))).rejects.toMatchObject({
      message: `cannot reach a Lean server at ${nowhere}`,
      remedy: expect.stringContaining('repl_command'),
    });
    const gone = await (await begin({ server_url: nowhere })).step('simp');
    expect([gone.terminated, gone.info.accepted, gone.info.timed_out]).toEqual([false, false, false]);
    expect(gone.observation).toContain('[ERROR] The Lean server cannot be reached (');
    const refused = await (await begin({ api_key: 'wrong' })).step('simp');
    expect(refused.observation).toContain('the Lean server answered 401');
  });

  test('requests are retried as often as configured', async () => {
    const checker = kiminaChecker({ url, apiKey: 'wrong', timeout: 1, httpTimeout: 5, attempts: 3, backoffMs: 1 });
    expect(await checker.check({ header: '', body: 'x' })).toMatchObject({ timedOut: false });
    expect(asked).toHaveLength(3);
  });

  test('a REPL that cannot start, ends, or lacks an import is reported', async () => {
    await expect(lean.dependencies!(parse({ repl_command: ['/no/such/repl'] }))).rejects.toThrow(
      /cannot use the Lean REPL that "\/no\/such\/repl" starts \(The Lean REPL cannot be started/,
    );
    const { step } = await begin({ ...repl, theorem_idx: 2 });
    expect((await step('crash')).observation).toContain('The Lean REPL ended with exit code 3.');
    expect((await step('intro hp')).reward).toBe(0.9);
    const other = await begin({ ...repl, default_imports: 'import Nowhere' });
    expect((await other.step('simp')).observation).toContain('[ERROR] unknown module prefix Nowhere');
  });

  test('missing theorems are reported', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'ragen-lean-'));
    try {
      writeFileSync(join(folder, 'none.jsonl'), '{"formal_statement":" "}\n');
      await expect(lean.dependencies!(parse({ dataset_name_or_path: join(folder, 'none.jsonl') }))).rejects.toThrow(
        'its column "formal_statement" contains no text',
      );
      await expect(lean.dependencies!(parse({ dataset_name_or_path: join(folder, 'no') }))).rejects.toThrow(
        'needs a data set, but',
      );
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

test('formal statements are split and joined', () => {
  const formal = 'import Mathlib\nimport Aesop\n\nopen Real\ndef f := 1\n\ntheorem t : f = 1 := by\n\n  -- proof';
  const parts = partsOf(formal);
  expect(parts).toEqual({
    imports: 'import Mathlib\nimport Aesop',
    preamble: 'open Real',
    statement: 'def f := 1\n\ntheorem t : f = 1 := by\n\n  -- proof',
  });
  const theorem = {
    ...parts,
    imports: 'import Mathlib\nset_option maxHeartbeats 0',
    statement: 'theorem t : p := by',
    informal: '',
  };
  expect(scriptOf(theorem, ['intro h', ' ', 'exact h'])).toEqual({
    header: 'import Mathlib\n',
    body: 'set_option maxHeartbeats 0\n\nopen Real\n\ntheorem t : p := by\n  intro h\n  exact h\n',
  });
});

test('long proofs show their last lines, long texts are truncated', () => {
  const script = { header: '', body: Array.from({ length: 45 }, (_, i) => `l${i + 1}`).join('\n') };
  expect(numberedLines(script).slice(0, 2)).toEqual(['... (5 earlier lines omitted)', '  6 | l6']);
  expect(numberedLines(script)).toHaveLength(41);
  expect(wrapped('aaa bb  c dddd', 6)).toEqual(['aaa bb', 'c dddd']);
  expect(wrapped(' ')).toEqual([]);
});
