// `ragen diagnose --engine` on a real server: SkyRL's JAX backend scores stored rollouts under its base model, with the
// numbers of the same model on this machine. Prepared by test/tinker/install.mjs.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { collapseDiagnosisSchema } from '../../extension/run-data/diagnostics';
import { attachOnce } from '../support/attached';
import { temporaryFolder } from '../support/temporary-folder';
import { ragen } from '../support/terminal';
import { installed, RealServer } from './real-server';

const thought = (text: string): string => `<think>${text}</think><answer>up</answer>`;

/** Eight rollouts of four prompts, some with the same thought. */
const rollouts = Array.from({ length: 8 }, (_, i) => ({
  ...{ step: 1, group_id: i % 4, reward: i % 3 },
  messages: [
    { role: 'user', content: `You are in state ${i % 4}. The goal is ${4 - (i % 4)} to the right.` },
    {
      role: 'assistant',
      content: thought(i < 4 ? `I walk ${i} steps to the right.` : 'Walk on and keep out of holes.'),
    },
  ],
}));

describe.skipIf(!installed)(`a real Tinker server${installed ? '' : ' (not installed: needs Python 3.12)'}`, () => {
  const workspace = temporaryFolder();
  const server = new RealServer();
  beforeAll(() => server.start());
  afterAll(() => server.remove());

  test('it scores stored rollouts as this machine does', async () => {
    const source = join(workspace(), 'rollouts');
    mkdirSync(source);
    writeFileSync(join(source, '1.jsonl'), rollouts.map(each => `${JSON.stringify(each)}\n`).join(''));
    const { folder } = await attachOnce(workspace(), source);
    const diagnose = async (...flags: string[]) => {
      const said = await ragen(workspace(), ['diagnose', folder.id, '--model', server.model, ...flags]);
      expect(said.code, said.stderr).toBe(0);
      const stored = readFileSync(folder.file('diagnostics/collapse-000001.json'), 'utf8');
      return { ...said, families: collapseDiagnosisSchema.parse(JSON.parse(stored)).families };
    };

    const here = await diagnose();
    const there = await diagnose('--engine', server.url, '--no-key', '--replace');
    expect(there.stderr).toContain(`on ${server.url}`);
    expect(there.families).toHaveLength(here.families.length);
    for (const [i, { samples, log_probs_per_token, metrics }] of here.families.entries()) {
      const other = there.families[i];
      expect(other.samples).toEqual(samples);
      expect(log_probs_per_token).toHaveLength(8);
      log_probs_per_token.forEach((row, j) =>
        row.forEach((value, k) => expect(other.log_probs_per_token[j][k]).toBeCloseTo(value, 4)),
      );
      for (const key of ['mi_estimate', 'conditional_entropy_est'])
        expect(other.metrics[key], key).toBeCloseTo(metrics[key], 4);
    }
    // The matrix is that of a model that reads the prompt: its rows are not constant.
    const [row] = here.families[0].log_probs_per_token;
    expect(Math.max(...row) - Math.min(...row)).toBeGreaterThan(1e-3);
  });
});
