// The diagnosis of collapse for stored rollouts, under a model that need not be the policy that wrote them: the prompts
// are rendered with this model's chat template, and every reasoning text is scored under every prompt. The same sampling,
// metrics and regimes as in a run's own diagnosis (loop/collapse-diagnosis.ts), at temperature 1.
import { appendAll } from '../../common/lists';
import { UserError } from '../../common/user-error';
import { counted } from '../../common/numbers';
import type { CollapseDiagnosis } from '../../run-data/diagnostics';
import type { Episode } from '../../run-data/episode';
import type { RegimeHistory } from '../../run-data/regimes';
import { RandomStream } from '../../engine/sampling/random-stream';
import type { ChatMessage } from '../../models/tokenizer/chat-template';
import type { ChatTokenizer } from '../../models/tokenizer/chat-tokenizer';
import type { MarginalSpread } from '../diagnostics/collapse-metrics';
import { firstTurnPairs, trajectoryPairs } from '../diagnostics/pair-sampling';
import type { EpisodePairs, TurnPair } from '../diagnostics/pair-sampling';
import { judgeFamily, scoreFamily, sevenDigits, type FamilyScorer } from '../loop/family-diagnosis';
import { deriveSeed } from '../rollout/seeds';
import type { StoredPictures } from './stored-pictures';

const families = [
  ['collapse_first_turn_sample', firstTurnPairs],
  ['collapse_trajectory_sample', trajectoryPairs],
] as const;

/** Base seed of the samples and bootstraps, so that a step is always diagnosed with the same texts. */
const seed = 0;

/** Chat templates know three roles; results of tools are shown as the user's messages. */
const knownRole = ({ role, content }: Episode['messages'][number]): ChatMessage => ({
  role: role === 'system' || role === 'assistant' ? role : 'user',
  content,
});

export interface StoredPairs {
  episodes: EpisodePairs[];
  /** Numbers of responses, of responses with a thought, and of thoughts that are too long for the model. */
  turns: number;
  thoughts: number;
  tooLong: number;
}

/**
 * Returns the prompts and thoughts of stored episodes as token ids of a model. A prompt consists of all messages before
 * the response, the header of the response and the literal `<think>`. Thoughts whose prompt and text together exceed
 * `longest` tokens are left out.
 * @param pictures the pictures that prompts show; if undefined, their words `[image]` stay texts
 */
export function storedPairs(
  episodes: Iterable<Episode>,
  tokenizer: Pick<ChatTokenizer, 'encode' | 'render' | 'shownPrompt'>,
  longest: number,
  pictures: StoredPictures | undefined = undefined,
): StoredPairs {
  const found: StoredPairs = { episodes: [], turns: 0, thoughts: 0, tooLong: 0 };
  for (const { id, mode, step, group_id, turns, messages, error } of episodes) {
    if (error !== undefined) continue;
    found.turns += turns.length;
    const pairs: TurnPair[] = [];
    const shown: ChatMessage[] = [];
    for (const { turn, raw, thought, pictures: names = [] } of turns) {
      const response = messages.findIndex(({ content }, i) => i >= shown.length && content === raw);
      if (response < 0) break; // not a conversation that this product has converted
      const before = messages.slice(shown.length, response).map(knownRole);
      appendAll(shown, pictures ? pictures.marked(before, { mode, step }, names) : before);
      const prefix = [...shown];
      shown.push(knownRole(messages[response]));
      const text = thought?.trim() ?? '';
      if (text === '') continue;
      found.thoughts++;
      const opens = /<think>\s*$/.test(tokenizer.render(prefix, true));
      const { ids: prompt, shows } = tokenizer.shownPrompt(prefix, opens ? '' : '<think>');
      const reasoning = tokenizer.encode(text);
      if (prompt.length + reasoning.length > longest) found.tooLong++;
      else if (reasoning.length > 0) pairs.push({ prompt, reasoning, turn, ...(shows.length > 0 && { shows }) });
    }
    const first = pairs.find(({ turn }) => turn === 1) ?? null;
    found.episodes.push({ episode: id, group: group_id, first, turns: pairs });
  }
  return found;
}

/** Scores the families of one step. Throws a UserError if the model overflows. The result has no metrics until a `StepJudge` computes them. */
export async function scoreStep(
  step: number,
  { episodes, turns, thoughts, tooLong }: StoredPairs,
  samples: number,
  scorer: FamilyScorer & { model: string },
): Promise<{ diagnosis: CollapseDiagnosis; note: string | undefined }> {
  const diagnosis: CollapseDiagnosis = { step, families: [], model: scorer.model };
  const notes: string[] = [];
  if (thoughts === 0) notes.push(`none of its ${counted(turns, 'response')} has a thought`);
  if (tooLong > 0)
    notes.push(`${tooLong} of its ${counted(thoughts, 'thought')} did not fit into the context of ${scorer.model}`);
  for (const [name, draw] of families) {
    try {
      const family = draw(episodes, samples, new RandomStream(deriveSeed(name, seed, step)));
      if (family.columns.length < 2) continue;
      const scored = await scoreFamily(scorer, family);
      const log_probs_per_token = scored.log_probs_per_token.map(row => row.map(sevenDigits));
      diagnosis.families.push({ name, ...scored, log_probs_per_token, metrics: {}, regime: '' });
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      notes.push(error.message);
    }
  }
  if (diagnosis.families.some(family => !family.log_probs_per_token.flat().every(Number.isFinite)))
    throw new UserError(
      `step ${step}: log-probs under ${scorer.model} are not finite, because its weights overflow float32: use another model`,
    );
  if (diagnosis.families.length === 0 && thoughts > 0 && notes.length === 0)
    notes.push('its thoughts have fewer than two different prompts');
  return { diagnosis, note: notes.length > 0 ? notes.join('; ') : undefined };
}

/**
 * Computes the metrics and regimes of scored steps, which are given in ascending order. They depend on the earlier steps
 * (z-scores by running deviations, thresholds of the regimes).
 */
export class StepJudge {
  private readonly spreads = new Map<string, MarginalSpread>();
  private readonly histories = new Map<string, RegimeHistory>();

  /** Returns the diagnosis with its metrics and regimes. */
  judge({ families: scored, ...rest }: CollapseDiagnosis): CollapseDiagnosis {
    const judged = scored.map(({ name, metrics: _metrics, regime: _regime, ...family }) => {
      const random = new RandomStream(deriveSeed(`${name} intervals`, seed, rest.step));
      const earlier = { spread: this.spreads.get(name) ?? null, regimes: this.histories.get(name) ?? null };
      const found = judgeFamily(family, earlier, random);
      this.spreads.set(name, found.spread);
      this.histories.set(name, found.history);
      return { name, ...found.family };
    });
    return { ...rest, families: judged };
  }
}

/** Returns the metrics of a diagnosis under their complete names. */
export const metricsOf = ({ families: each }: CollapseDiagnosis): Record<string, number> =>
  Object.fromEntries(
    each.flatMap(({ name, metrics }) =>
      Object.entries(metrics)
        .filter(([, value]) => Number.isFinite(value))
        .map(([key, value]) => [`${name}/${key}`, Number(value.toPrecision(9))]),
    ),
  );
