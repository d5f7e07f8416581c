// Inspection of real runs. Rescored tokens equal the values that training stored for the same weights. What-if episodes
// run the original's code, differ at the requested turn, and can be replayed. Also the process that serves the editor.
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { Inspections } from '../../../../extension/vscode/processes/inspection-process';
import type { Rescored } from '../../../../extension/protocol/inspection';
import { episodeSchema } from '../../../../extension/run-data/episode';
import type { Episode } from '../../../../extension/run-data/episode';
import { UserError } from '../../../../extension/common/user-error';
import { Inspector } from '../../../../extension/trainer/inspection/inspector';
import { installation } from '../../../../extension/node/installation';
import { readLines } from '../../../../extension/trainer/store/line-log';
import { document } from '../../../support/terminal';
import { keepAll, trainHere } from '../../../support/train-here';
import type { Trained } from '../../../support/train-here';
import { makeWorkspace, root, wordsEnvironment } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

let workspace: Workspace;
let inspector: Inspector;
let reported: string[];
beforeAll(() => (workspace = makeWorkspace()));
beforeEach(() => {
  reported = [];
  inspector = new Inspector(1, {
    phase: () => undefined,
    whatIfTokens: (_, turn, tokens) => reported.push(...tokens.map(({ text }) => `${turn} ${text}`)),
  });
});
afterEach(async () => {
  vi.useRealTimers();
  await inspector.close();
});
afterAll(() => {
  workspace.remove();
  rmSync(installation.cache, { recursive: true });
});

const saving = [...keepAll, 'trainer.save_freq=1', 'workbench.keep_checkpoints=9'];
const ref = (run: Trained, { mode, step, id }: Episode) => ({ folder: run.folder, mode, step, id });
const before = (step: number): string => (step === 1 ? 'initial' : `step-${String(step - 1).padStart(6, '0')}`);

/** Compares stored values with the same column of a rescored episode. */
function expectAlike(stored: readonly (number | null)[], found: readonly (number | null)[], digits = 4): void {
  expect(found.map(x => x === null)).toEqual(stored.map(x => x === null));
  stored.forEach((x, i) => x !== null && expect(found[i]).toBeCloseTo(x, digits));
}
const column = (found: Rescored, name: 'logprob' | 'entropy' | 'reference' | 'value') => found.tokens.map(t => t[name]);

describe('rescoring', () => {
  test('with the weights that sampled and trained an episode, rescoring returns the stored values', async () => {
    const critical = [
      'algorithm.adv_estimator=gae',
      'actor_rollout_ref.actor.use_ref=true',
      'actor_rollout_ref.actor.use_kl_loss=true',
    ];
    const run = await trainHere(workspace, [...saving, ...critical], 2);
    for (const step of [1, 2]) {
      const episode = run.episodes.find(each => each.step === step && each.kept)!;
      const found = await inspector.rescore({ ...ref(run, episode), checkpoint: before(step) });
      expect(found).toMatchObject({ hasReference: true, hasCritic: true, temperature: 1 });
      expect(found.checkpoint).toEqual({ name: before(step), step: step - 1 });
      const { tokens } = episode;
      expect(found.tokens.map(({ id }) => id)).toEqual(tokens.ids);
      expectAlike(tokens.logprobs, column(found, 'logprob'));
      expectAlike(tokens.entropies!, column(found, 'entropy'));
      expectAlike(tokens.ref_logprobs!, column(found, 'reference'));
      expectAlike(tokens.values!, column(found, 'value'));
      for (const { logprob, rank, top, id } of found.tokens) {
        if (logprob === null) continue;
        expect(top).toHaveLength(5);
        const index = top.findIndex(each => each.id === id);
        if (rank! <= 5) expect([index, top[index].logprob]).toEqual([rank! - 1, expect.closeTo(logprob, 4)]);
        else expect(index).toBe(-1);
      }
    }
    // Under later weights the values differ. With all tokens, prompt tokens also have values.
    const [episode] = run.episodes.filter(({ kept }) => kept);
    const later = await inspector.rescore({ ...ref(run, episode), all: true });
    expect(later.checkpoint).toEqual({ name: 'step-000002', step: 2 });
    expect(column(later, 'logprob').filter(x => x === null)).toHaveLength(1);
    const moved = episode.tokens.logprobs.map((x, i) => (x === null ? 0 : Math.abs(x - later.tokens[i].logprob!)));
    expect(Math.max(...moved)).toBeGreaterThan(1e-3);
    expect(later.tokens.map(({ text }) => text).join('')).toContain(episode.turns[0].state);
    expect(await inspector.checkpoints(run.folder)).toEqual([
      { name: 'step-000002', step: 2 },
      { name: 'step-000001', step: 1 },
      { name: 'initial', step: 0 },
    ]);
  });

  test('in windowed contexts each sample is a separate context; adapters and 8-bit bases are scored as they train', async () => {
    const windowed = ['agent_proxy.context_window_mode=limited_multi_turn', 'agent_proxy.max_context_window=1'];
    const adapted = [
      'lora.rank=2',
      'lora.alpha=4',
      'lora.target_modules=[q_proj,down_proj]',
      'workbench.base_quantization=int8',
    ];
    const run = await trainHere(workspace, [...saving, ...windowed, ...adapted], 2);
    const episode = run.episodes.find(({ step, kept, tokens }) => step === 2 && kept && tokens.starts)!;
    const found = await inspector.rescore({ ...ref(run, episode), checkpoint: 'step-000001' });
    expectAlike(episode.tokens.entropies!, column(found, 'entropy'));
    // Rollouts use float products if the trained base is 8-bit.
    expectAlike(episode.tokens.logprobs, column(found, 'logprob'), 1);
    expect(found).toMatchObject({ hasReference: false, hasCritic: false });
    const wrong = inspector.rescore({ ...ref(run, episode), checkpoint: 'step-000007' });
    await expect(wrong).rejects.toThrow('has no checkpoint step-000007: use one of step-000002, step-000001, initial');
    const gone = inspector.rescore({ ...ref(run, episode), id: 'train-000002-g009-m00' });
    await expect(gone).rejects.toThrow('has no episode train-000002-g009-m00 in episodes/step-000002.jsonl');
  });
});

describe('what if', () => {
  let run: Trained;
  let origin: Episode;
  beforeAll(async () => {
    run = await trainHere(workspace, [...saving, 'agent_proxy.max_turn=3'], 1);
    origin = run.episodes.find(({ turns }) => turns.length === 3)!;
  });
  const written = (): Episode[] =>
    readdirSync(join(run.folder, 'what-if')).flatMap(name =>
      [...readLines(join(run.folder, 'what-if', name))].map(({ text }) => episodeSchema.parse(JSON.parse(text))),
    );

  test('the policy continues after a changed answer; equal seeds yield equal episodes, different seeds different ones', async () => {
    const ask = (seed: number) =>
      inspector.whatIf({ ...ref(run, origin), turn: 2, given: { answer: 'abc' }, checkpoint: 'step-000001', seed });
    const first = await ask(5);
    const { episode } = first;
    expect(first.written).toMatchObject({ id: `${origin.id}-w1`, file: 'what-if/step-000001.jsonl' });
    expect(first.notes).toEqual([]);
    expect(episode.turns[0]).toEqual(origin.turns[0]);
    expect(episode.turns[1]).toMatchObject({
      state: origin.turns[1].state,
      raw: '<answer>abc</answer>',
      executed: ['abc'],
      reward: 1.5,
    });
    expect(episode.what_if).toMatchObject({ of: origin.id, turn: 2, given: { answer: 'abc' }, seed: 5 });
    expect(episode.what_if!.players).toEqual(['hand', 'step-000001'].slice(0, episode.turns.length - 1));
    // Tokens before the turn are the original's. Given tokens are neither sampled nor scored; later tokens are sampled.
    const { span } = origin.turns[0];
    expect(episode.tokens.ids.slice(0, span[1])).toEqual(origin.tokens.ids.slice(0, span[1]));
    expect(episode.tokens.logprobs.slice(...span)).toEqual(origin.tokens.logprobs.slice(...span));
    expect(new Set(episode.tokens.mask.slice(...episode.turns[1].span))).toEqual(new Set([0]));
    if (episode.turns[2]) {
      expect(episode.tokens.logprobs.slice(...episode.turns[2].span).every(x => x !== null)).toBe(true);
      expect(reported.map(each => each.slice(2)).join('')).toContain(episode.turns[2].raw.replace('<answer>', ''));
    }
    const again = await ask(5);
    expect({ ...again.episode, id: '' }).toEqual({ ...episode, id: '' });
    const other = await ask(6);
    expect(other.written!.id).toBe(`${origin.id}-w3`);
    expect(written().map(({ id }) => id)).toEqual([1, 2, 3].map(n => `${origin.id}-w${n}`));
    // Its tokens can be inspected like those of any other episode.
    const found = await inspector.rescore({ ...first.written!, checkpoint: 'step-000001' });
    const sampled = episode.turns[2]?.span ?? [0, 0]; // turn 1 was sampled with other weights
    expectAlike(episode.tokens.logprobs.slice(...sampled), column(found, 'logprob').slice(...sampled));
  });

  test('turns are played by the user, then by the policy; a what-if can start from a what-if', async () => {
    const first = await inspector.whatIf({ ...ref(run, origin), turn: 1, given: {}, checkpoint: null, seed: 1 });
    expect([first.written, first.episode.turns.length, first.episode.final_state]).toEqual([
      null,
      0,
      origin.turns[0].state,
    ]);
    const at = { session: first.session };
    await expect(inspector.whatIfTurn({ ...at, given: {}, checkpoint: null })).rejects.toThrow(
      'neither a response nor',
    );
    const second = await inspector.whatIf({ ...ref(run, origin), turn: 1, given: {}, checkpoint: null, seed: 1 });
    const length = origin.seed % 3 === 0 ? 4 : 6; // a word of this length does not end the episode
    const word = 'x'.repeat((length + origin.seed) % 3 === 0 ? length + 1 : length);
    const moved = await inspector.whatIfTurn({ session: second.session, given: { answer: word }, checkpoint: null });
    expect(moved.episode.turns.map(({ answer }) => answer)).toEqual([word]);
    expect(moved.episode.final_state).toBe(`heard ${word.length}`);
    const over = await inspector.whatIfTurn({ session: second.session, given: {}, checkpoint: 'initial' });
    expect(over.written).not.toBeNull();
    expect(over.episode.what_if!.players).toEqual(['hand', 'initial', 'initial'].slice(0, over.episode.turns.length));
    const further = await inspector.whatIf({ ...over.written!, turn: 2, given: {}, checkpoint: 'initial', seed: 2 });
    expect(further.episode.what_if!.of).toBe(over.written!.id);
    const given = further.episode.turns[0].span;
    expect(new Set(further.episode.tokens.mask.slice(...given))).toEqual(new Set([0]));
    const late = inspector.whatIfTurn({ session: second.session, given: { answer: 'a' }, checkpoint: null });
    await expect(late).rejects.toThrow('what if: this what-if is closed');
    const ended = await inspector.whatIf({
      ...ref(run, origin),
      turn: 1,
      given: { answer: word },
      checkpoint: null,
      seed: 1,
    });
    const kept = await inspector.whatIfEnd(ended.session, true);
    expect(kept!.episode.turns).toHaveLength(1);
    expect(kept!.written!.id).toMatch(/-w\d+$/);
  });

  test('the original code replays the episode, whatever the file contains now', async () => {
    workspace.write('environments/words.ts', wordsEnvironment('if (mode) throw new Error("edited");'));
    try {
      const { episode, notes } = await inspector.whatIf({
        ...ref(run, origin),
        turn: 2,
        given: { answer: 'abc' },
        checkpoint: 'initial',
        seed: 1,
      });
      expect([episode.error, episode.environment, notes]).toEqual([undefined, origin.environment, []]);
      rmSync(join(run.folder, 'environments', origin.environment.version), { recursive: true });
      const gone = inspector.whatIf({
        ...ref(run, origin),
        turn: 2,
        given: { answer: 'abc' },
        checkpoint: 'initial',
        seed: 1,
      });
      await expect(gone).rejects.toThrow(
        /is over before turn 2, so the environment's code has changed since the episode was played: .*edited/,
      );
    } finally {
      workspace.write('environments/words.ts', wordsEnvironment());
    }
    const { notes } = await inspector.whatIf({
      ...ref(run, origin),
      turn: 2,
      given: {},
      checkpoint: 'initial',
      seed: 1,
    });
    expect(notes).toEqual([]); // the current code equals the original code again
  });

  test('the CLI and the editor’s process give the same results', async () => {
    const id = run.folder.split('/').at(-1)!;
    const args = ['inspect', id, origin.id, '--checkpoint', 'initial'];
    const { code, answer, stderr } = await document<Rescored>(workspace.folder, args);
    expect(code, stderr).toBe(0);
    expectAlike(origin.tokens.logprobs, column(answer, 'logprob'));

    // A process started on demand, as in the extension host, which ends after some time without requests.
    const idleMs = 300;
    const starts: string[] = [];
    const node = { path: process.execPath, version: process.versions.node, electron: false };
    const inspections = new Inspections({
      cliFor: async cwd => (starts.push(cwd), { node, cli: join(root, 'dist/cli.cjs'), cwd }),
      refusal: () => refusal,
      log: () => undefined,
      idleMs,
    });
    let refusal: string | undefined = 'not trusted';
    await expect(inspections.checkpoints(run.folder)).rejects.toThrow('not trusted');
    refusal = undefined;
    const asked = { ...ref(run, origin), checkpoint: 'initial' };
    const phases: string[] = [];
    const [found, texts] = await Promise.all([
      inspections.rescore(asked, { onPhase: words => phases.push(words) }),
      inspections.pieces(run.folder, origin.tokens.ids),
    ]);
    expect(found.tokens).toEqual(answer.tokens);
    expect(texts.join('')).toContain(origin.turns[0].state);
    expect(phases).toEqual(['loading initial', `scoring ${origin.id} under initial`]);
    const wrong = inspections.rescore({ ...asked, checkpoint: 'step-000042' });
    await expect(wrong).rejects.toThrow(/^run .* has no checkpoint step-000042/);
    await expect(wrong).rejects.toBeInstanceOf(UserError);
    expect(await inspections.legalActions(asked)).toEqual([]);
    const cancelling = new AbortController();
    const cancelled = inspections.rescore({ ...asked, all: true }, { signal: cancelling.signal });
    cancelling.abort(new Error('enough'));
    await expect(cancelled).rejects.toThrow('enough');
    // A session that waits for its user's input keeps the process running.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const waiting = await inspections.whatIf({ ...ref(run, origin), turn: 1, given: {}, checkpoint: null, seed: 1 });
    vi.advanceTimersByTime(4 * idleMs);
    expect(await inspections.whatIfEnd(run.folder, { session: waiting.session, keep: false })).toBeNull();
    expect(starts).toEqual([workspace.folder]);
    vi.advanceTimersByTime(idleMs - 1);
    expect(await inspections.checkpoints(run.folder)).toHaveLength(2);
    expect(starts).toHaveLength(1);
    vi.advanceTimersByTime(idleMs);
    expect(await inspections.checkpoints(run.folder)).toHaveLength(2);
    expect(starts).toHaveLength(2);
    inspections.dispose();
  });
});
