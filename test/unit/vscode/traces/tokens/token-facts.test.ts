import { describe, expect, it } from 'vitest';
import {
  overlayKinds,
  overlays,
  paint,
  formatRange,
} from '../../../../../extension/vscode/traces/tokens/token-overlays';
import { code, tokenCard } from '../../../../../extension/vscode/traces/tokens/token-card';
import {
  clipRange,
  isClipped,
  tokenFacts,
  type TokenFacts,
} from '../../../../../extension/vscode/traces/tokens/token-facts';
import type { Rescored, RescoredToken } from '../../../../../extension/protocol/inspection';
import type { Episode } from '../../../../../extension/run-data/episode';
import { markupCorpus } from '../../../../e2e/fixtures/markup-corpus.mjs';
import { lakeEpisode } from '../lake-episode';

const clip = { low: 0.2, high: 0.28, validationDiffers: true };
const scored = (id: number, change: Partial<RescoredToken> = {}): RescoredToken => ({
  id,
  text: 'go',
  sampled: true,
  logprob: Math.log(0.5),
  entropy: 1.2,
  rank: 1,
  top: [
    { id, text: 'go', logprob: Math.log(0.5) },
    { id: 99, text: ' |`\n', logprob: Math.log(0.25) },
  ],
  reference: Math.log(0.25),
  value: 0.4,
  ...change,
});
const rescored = (episode: Episode, change: Partial<RescoredToken> = {}): Rescored => ({
  checkpoint: { name: 'step-000020', step: 20 },
  temperature: 1,
  hasReference: true,
  hasCritic: true,
  tokens: episode.tokens.ids.map(id => scored(id, change)),
});

describe('token facts', () => {
  it('come from the recording before a checkpoint is scored', () => {
    const episode = lakeEpisode();
    const facts = tokenFacts(episode, 3, undefined, clip);
    expect(facts).toMatchObject({ id: 1, trained: true, then: -0.4, advantage: 0.5, now: null, ratio: null, kl: null });
    episode.tokens.entropies = episode.tokens.ids.map(() => 0.7);
    episode.tokens.ref_logprobs = episode.tokens.ids.map(() => -0.5);
    episode.tokens.values = episode.tokens.ids.map(() => 0.1);
    episode.tokens.teacher_logprobs = episode.tokens.ids.map(() => -0.2);
    const more = tokenFacts(episode, 3, undefined, clip);
    expect([more.entropy, more.kl, more.teacher, more.value]).toEqual([0.7, expect.closeTo(0.1), -0.2, 0.1]);
  });

  it('take ratio, clipping and divergence from the checkpoint', () => {
    const episode = lakeEpisode();
    const facts = tokenFacts(episode, 3, rescored(episode), clip);
    expect(facts.ratio).toBeCloseTo(0.5 / Math.exp(-0.4));
    expect(facts.clipped).toBe(false); // a token with positive advantage that became less likely is not clipped
    expect(facts.kl).toBeCloseTo(Math.log(2));
    expect(tokenFacts(episode, 3, rescored(episode, { logprob: -0.01 }), clip).clipped).toBe(true);
    expect(tokenFacts(episode, 3, rescored(episode), null).clipped).toBeNull();
  });

  it('give no ratio when validation samples at another temperature', () => {
    const episode: Episode = { ...lakeEpisode(), mode: 'val' };
    expect(tokenFacts(episode, 3, rescored(episode), clip).ratio).toBeNull();
    expect(tokenFacts(episode, 3, rescored(episode), { ...clip, validationDiffers: false }).ratio).not.toBeNull();
  });

  it('mark clipping only on the side of the advantage', () => {
    expect([1.3, 1.27, 0.7].map(ratio => isClipped(ratio, 1, clip))).toEqual([true, false, false]);
    expect([1.3, 0.81, 0.79].map(ratio => isClipped(ratio, -1, clip))).toEqual([false, false, true]);
    expect(isClipped(9, 0, clip)).toBe(false);
  });

  it('read the clip range from the run’s configuration', () => {
    const actor = { clip_ratio_low: 0.2, clip_ratio_high: 0.28 };
    const rollout = { temperature: 1, val_kwargs: { temperature: 0.5 } };
    expect(clipRange({ config: { actor_rollout_ref: { actor, rollout } } })).toEqual(clip);
    expect(clipRange({ config: {} })).toBeNull();
  });
});

describe('overlays', () => {
  const facts = (change: Partial<TokenFacts>): TokenFacts => ({
    ...tokenFacts(lakeEpisode(), 3, undefined, null),
    ...change,
  });

  it('shade surprise by its magnitude', () => {
    const thens = [-0.05, -0.1, -0.6, -1.5, -3, -8, null];
    const { shades, range } = paint(
      'logprob',
      thens.map(then => facts({ then })),
    );
    expect(shades).toEqual([0, 1, 2, 3, 4, 5, 0]);
    expect(range).toEqual([-8, -0.05]);
    expect(formatRange('logprob', range!)).toBe('−8 … −0.0500');
  });

  it('shade signed values on both sides of zero, relative to the largest', () => {
    const advantages = [-1.2, -0.5, 0, 0.01, 0.5, 1.2];
    expect(
      paint(
        'advantage',
        advantages.map(advantage => facts({ advantage })),
      ).shades,
    ).toEqual([-3, -2, 0, 0, 2, 3]);
    expect(paint('advantage', [facts({ advantage: 0 })]).shades).toEqual([0]);
    const ratios = [0.5, 1, 1.05, 1.3].map(ratio => facts({ ratio }));
    const painted = paint('ratio', ratios);
    expect(painted.shades).toEqual([-3, 0, 1, 3]);
    expect(formatRange('ratio', painted.range!)).toBe('0.500 … 1.30');
  });

  it('shade the trained tokens', () => {
    expect(paint('mask', [facts({ trained: true }), facts({ trained: false })]).shades).toEqual([2, 0]);
  });

  it('shade the divergence from the teacher on both sides of zero', () => {
    const teachers = [-0.4, -0.75, -1.4, -4.4, 0, null];
    const { shades, range } = paint(
      'teacher',
      teachers.map(teacher => facts({ then: -0.4, teacher })),
    );
    expect(shades).toEqual([0, 1, 2, 3, -1, 0]);
    expect(formatRange('teacher', range!)).toBe('−0.400 … +4');
  });

  it('are empty without data', () => {
    for (const kind of overlayKinds.filter(each => each !== 'none' && overlays[each].needsModel))
      expect(paint(kind, [facts({})])).toEqual({ shades: [0], range: null });
    expect(paint('none', [facts({ then: -9 })])).toEqual({ shades: [0], range: null });
  });
});

describe('a token’s card', () => {
  it('is one table, with the alternatives below it', () => {
    const episode = lakeEpisode();
    episode.tokens.teacher_logprobs = episode.tokens.ids.map(() => -0.2);
    const facts = tokenFacts(episode, 3, rescored(episode), clip);
    const card = tokenCard({ facts, text: 'go', location: [1, 9] }, { checkpoint: 'step-000020', step: 18, clip });
    expect(card).toBe(
      [
        '`go` · id 1 · token 1 of 9',
        '',
        '| | |',
        '|:--|--:|',
        '| log-prob at sampling | −0.400 (p 67.0 %) |',
        '| log-prob at checkpoint | −0.693 (p 50 %) |',
        '| rank | 1 |',
        '| entropy | 1.20 nats |',
        '| advantage | +0.500 |',
        '| ratio | 0.746, not clipped (0.800 … 1.28) |',
        '| KL to reference | +0.693 |',
        '| log-prob under teacher | −0.200 (p 81.9 %) |',
        '| value | 0.400 |',
        '| loss mask | 1, trained on |',
        '',
        '| top tokens | p |',
        '|:--|--:|',
        '| `go` ◂ | 50 % |',
        '| `␣¦ˋ↵` | 25 % |',
        '',
        'sampled at step 18 · checkpoint `step-000020`',
      ].join('\n'),
    );
  });

  it('shows hostile text as plain text', () => {
    expect(code('[x](command:evil) `<img>`')).toBe('`[x](command:evil)␣ˋ<img>ˋ`');
    expect(code('')).toBe('`(nothing)`');
    for (const text of markupCorpus) expect(code(text), JSON.stringify(text)).toMatch(/^`[^`|\p{Cc}\p{Zl}\p{Zp}]+`$/u);
  });
});
