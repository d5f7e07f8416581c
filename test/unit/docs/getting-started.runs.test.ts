// The environment of the guide to getting started: file, configuration and command exactly as printed. The environment keeps the contract, and
// the bundled model learns it.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ContractReport } from '../../../extension/protocol/environment-tools';
import { document, killAll } from '../../support/terminal';
import { root } from '../../support/workspace';

const text = readFileSync(join(root, 'docs/GETTING-STARTED.md'), 'utf8').replace(/[^]*^## Your own environment$/m, '');
const block = (language: string): string => new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\``, 'm').exec(text)![1];

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ragen-readme-'));
  const write = (name: string, content: string): void => {
    expect(text).toContain(`\`${name}\``);
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  };
  write('envs/corridor.ts', block('ts'));
  write('config/corridor.yaml', block('yaml'));
});
afterAll(async () => {
  await killAll(folder);
  rmSync(folder, { recursive: true });
});

test("the guide's environment keeps the contract", async () => {
  const { answer } = await document<ContractReport>(folder, ['env', 'check', 'envs/corridor.ts']);
  expect(answer.checks.filter(({ state }) => state === 'failed')).toEqual([]);
}, 120_000);

test("the guide's command trains a policy that learns the environment", async () => {
  const [program, name, ...args] = block('bash').trim().split(' ');
  expect([program, name]).toEqual(['npx', 'ragen']);
  const { answer, code, stderr } = await document<{ validation: { success: number }[] }>(folder, [
    ...args,
    'workbench.threads=2',
  ]);
  expect(code, stderr).toBe(0);
  const [before, after] = answer.validation.map(({ success }) => success);
  expect(before).toBeLessThan(0.5);
  expect(after).toBeGreaterThan(0.75);
}, 300_000);
