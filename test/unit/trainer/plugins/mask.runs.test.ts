// Credit masks of the workspace in runs: a mask that re-implements a built-in one gives the same run to the bit, a mask by the
// texts of tokens trains only the tokens that it names, and an invalid weight ends the run with a sentence.
import { rmSync } from 'node:fs';
import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest';
import { installation } from '../../../../extension/node/installation';
import { results } from '../../../support/terminal';
import { trainHere } from '../../../support/train-here';
import { makeWorkspace } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

let workspace: Workspace;
beforeEach(() => (workspace = makeWorkspace()));
afterEach(() => workspace.remove());
afterAll(() => rmSync(installation.cache, { recursive: true, force: true }));

const path = 'plugins/own.ts';
const masked = [`workbench.credit_mask=${path}`];

/** Writes a mask that weighs a turn by an expression in `logprobs` and `texts`. */
const write = (weights: string): string =>
  workspace.write(
    path,
    `import { defineMask } from 'ragen-workbench/api/plugins/mask';
export default defineMask({
  name: 'own',
  weigh: samples => samples.map(({ turns }) => turns.map(({ logprobs, texts }) => ${weights})),
});
`,
  );

test('a mask that re-implements a built-in one gives the same run to the bit', async () => {
  write('texts.map(() => Math.exp(logprobs.reduce((sum, x) => sum + x, 0) / logprobs.length))');
  const own = await trainHere(workspace, masked, 2);
  const builtIn = await trainHere(workspace, ['workbench.credit_mask=confident_turns'], 2);
  const none = await trainHere(workspace, [], 2);
  expect(results(own.folder)).toEqual(results(builtIn.folder));
  expect(results(own.folder)).not.toEqual(results(none.folder));
}, 120_000);

test('a mask sees the text of each token, and tokens of weight 0 are not trained', async () => {
  write("texts.map(text => Number(text !== '</answer>'))");
  const { episodes } = await trainHere(workspace, masked, 1);
  const trained = episodes.flatMap(({ tokens, turns }) =>
    turns.map(({ raw, span: [from, to] }) => ({ raw, advantages: tokens.advantages?.slice(from, to) ?? [] })),
  );
  const weighed = trained.filter(({ advantages }) => advantages.some(x => x !== 0));
  expect(weighed.some(({ raw }) => raw.includes('</answer>'))).toBe(true);
  for (const { raw, advantages } of weighed)
    expect(advantages.filter(x => x === 0)).toHaveLength(raw.split('</answer>').length - 1);
}, 120_000);

test('a negative weight ends the run with one sentence', async () => {
  write('texts.map(() => -1)');
  await expect(trainHere(workspace, masked, 1)).rejects.toThrow(
    `plug-in ${path} returned -1 for token 0 of turn 1 of sample 0 in weigh(): return weights of at least 0`,
  );
}, 120_000);
