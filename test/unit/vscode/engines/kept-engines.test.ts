// Kept servers: the setting's form, the variables of typed keys, and the arguments of a probe. A key is never part of any
// of them.
import { expect, it } from 'vitest';
import {
  engineKeys,
  engineLine,
  engineNameProblem,
  enginesIn,
  factsOf,
  freeEngineName,
  keyVariableFor,
  probeArguments,
  planRates,
} from '../../../../extension/vscode/engines/kept-engines';
import { engineReportSchema, type EngineReport } from '../../../../extension/protocol/engine-report';
import { engineText } from '../../../../extension/protocol/engine-report-text';
import { secretNameProblem } from '../../../../extension/vscode/secrets/secret-store';

const report: EngineReport = engineReportSchema.parse({
  ...{ url: 'https://gpu:8000', encrypted: true, server: { name: 'SkyRL', version: '0.3.0' }, key: 'accepted' },
  models: [{ name: 'Qwen/Qwen3-0.6B', max_context_length: 4096 }],
  ...{ round_trip_ms: 3.14159, clock_difference_s: -130, not_measured: null },
  measured: {
    model: 'Qwen/Qwen3-0.6B',
    lora: { rank: 8, alpha: 32 },
    reduction: { samples: 'mean', tokens: 'sum' },
    keeps_versions: false,
    critic: { offered: false, reason: 'no such role' },
    sampling: { rows: 8, tokens: 256, seconds: 0.5, tokens_per_s: 512 },
  },
  limits: [{ key: 'lora.rank', supported: 'above 0', reason: 'The server trains only adapters' }],
  ignored: [{ key: 'workbench.device', reason: 'The server has its own devices' }],
});

it('the setting is read entry by entry; invalid entries and facts are left out', () => {
  const facts = factsOf(report, new Date(0));
  const engines = enginesIn({
    gpu: { url: 'https://gpu:8000/', keyEnv: 'GPU_KEY', facts },
    plain: { url: 'http://localhost:8000', model: 'a/b', facts: { at: 1 } },
    password: { url: 'https://user:pass@gpu' },
    key: { url: 'https://gpu', keyEnv: 'tml-8hUj2kLs9dQ' },
    text: 'https://gpu',
  });
  expect(engines).toEqual([
    { name: 'gpu', url: 'https://gpu:8000', model: null, keyEnv: 'GPU_KEY', facts },
    { name: 'plain', url: 'http://localhost:8000', model: 'a/b', keyEnv: null, facts: null },
  ]);
  for (const nothing of [undefined, null, [], 'x']) expect(enginesIn(nothing)).toEqual([]);
});

it('a run gets the names of variables, and null where no key is sent', () => {
  const entry = { url: 'https://gpu:8000', model: null, keyEnv: null, facts: null };
  expect(engineKeys(entry)).toEqual({
    'workbench.engine': 'tinker',
    'workbench.engine_url': 'https://gpu:8000',
    'workbench.engine_model': null,
    'workbench.engine_api_key_env': null,
  });
  expect(probeArguments(entry, ['--quick'])).toEqual(['engine', 'probe', 'https://gpu:8000', '--no-key', '--quick']);
  expect(probeArguments({ ...entry, keyEnv: 'A_KEY', model: 'a/b' }, [])).toEqual([
    ...['engine', 'probe', 'https://gpu:8000', '--key-env', 'A_KEY', '--model', 'a/b'],
  ]);
});

it.each([
  ['https://gpu-host.example.org:8000', 'ENGINE_GPU_HOST_EXAMPLE_ORG_8000_API_KEY'],
  ['http://[::1]:8000', 'ENGINE_1_8000_API_KEY'],
  [`http://${'long-'.repeat(12)}host`, `ENGINE_${'LONG_'.repeat(12).slice(0, 48)}_API_KEY`],
])('the key typed for %s is stored under a valid name', (url, name) => {
  expect(keyVariableFor(url)).toBe(name);
  expect(secretNameProblem(name)).toBeUndefined();
});

it('names are not empty, not used twice, and suggested by host', () => {
  expect(engineNameProblem(' ', [], undefined)).toContain('empty');
  expect(engineNameProblem('a', ['a'], undefined)).toBe('a is in use: choose another name.');
  expect(engineNameProblem('a', ['a'], 'a')).toBeUndefined();
  expect(engineNameProblem('x'.repeat(61), [], undefined)).toContain('60');
  expect(freeEngineName('http://gpu:8000', [])).toBe('gpu');
  expect(freeEngineName('http://gpu:8000', ['gpu', 'gpu 2'])).toBe('gpu 3');
});

it('the line of a kept engine has its model, rates and the day of the test', () => {
  const entry = { url: '', model: 'a/b', keyEnv: null, facts: factsOf(report, new Date('2026-01-02T03:04:05Z')) };
  expect(engineLine(entry)).toBe('a/b · 512 tokens/s · round trip 3.14 ms · tested 2026-01-02');
  expect(engineLine({ ...entry, model: null, facts: null })).toBe('not tested');
});

it('the text of a report has the facts, the limits and the ignored settings', () => {
  const text = engineText(report);
  expect(text).toContain('Address     https://gpu:8000, encrypted (TLS), certificate valid\n');
  expect(text).toContain('Server      SkyRL 0.3.0\n');
  expect(text).toContain('Models      Qwen/Qwen3-0.6B (context of 4096 tokens)\n');
  expect(text).toContain('Clock       130 s behind this machine’s\n');
  expect(text).toContain('Losses      mean over samples, sum over tokens\n');
  expect(text).toContain('Versions    a published version changes with training\n');
  expect(text).toContain('Critic      not offered (no such role)\n');
  expect(text).toContain('Sampling    512 tokens/s (256 tokens of 8 concurrent rows in 500 ms)\n');
  expect(text).toContain('  lora.rank  above 0 (the server trains only adapters)\n');
  expect(text).toContain('  workbench.device  the server has its own devices');
  const bare = { ...report, measured: null, not_measured: 'not asked for', server: null, models: [] };
  expect(engineText(bare)).toMatch(
    /Server +gives no name\n[^]*Models +gives no list\n[^]*Measured +nothing: not asked for/,
  );
});

it('a plan gets the rates that were measured, and no others', () => {
  const facts = factsOf(report, new Date(0));
  expect(planRates({ facts })).toEqual({ round_trip_s: 0.00314159, sampled_per_s: 512 });
  expect(planRates({ facts: { ...facts, tokensPerSecond: null } })).toEqual({ round_trip_s: 0.00314159 });
  expect(planRates({ facts: null })).toEqual({});
});
