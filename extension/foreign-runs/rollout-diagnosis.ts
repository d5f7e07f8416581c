// What the rollouts of another trainer tell without a model: metrics of one training step under the names that this
// product's own trainer uses. They are computed while the rollouts are converted, from texts and rewards only. Rollouts
// that ended with an error are left out, as in own runs. Differences to own runs are in docs/METRICS.md, "Attached runs".
import { groupRewardMetrics } from '../algorithms/rollout-filter';
import { maximum, minimum } from '../common/lists';
import type { Episode, EpisodeTurn } from '../run-data/episode';
import { promptInformation, type PromptedThought } from '../trainer/diagnostics/prompt-information';
import { thoughtRepetition } from '../trainer/diagnostics/thought-repetition';

/** Maximum characters of the thoughts of a step that are held for the metrics of thoughts; the rest is left out. */
const mostThoughtCharacters = 2 ** 23;

export interface StepDiagnosis {
  /** Finite metrics by name, rounded to nine digits. */
  metrics: Record<string, number>;
  /** Whether a prompt mentions `<think>`, so that a response without a thought breaks the format. */
  asksForThoughts: boolean;
}

/** The diagnosis of a step whose rollouts were written at `written` (milliseconds since 1970). */
export type DiagnosedStep = StepDiagnosis & { step: number; written: number };

/** Collects the episodes of one step. */
export class RolloutDiagnosis {
  private readonly scores: number[] = [];
  private readonly groups: number[] = [];
  private readonly thoughts: string[] = [];
  private readonly firstThoughts: PromptedThought[] = [];
  private readonly characters: number[] = [];
  private readonly tokens: number[] = [];
  private held = 0;
  private turns = 0;
  private thinking = 0;
  private invalid = 0;
  private asksForThoughts = false;

  /** Adds an episode. `hasTexts` is false if its messages only describe texts that the trainer did not store. */
  add(episode: Episode, hasTexts: boolean): void {
    const { error, turns, score, group_id, messages, tokens } = episode;
    if (error !== undefined || turns.length === 0) return;
    this.scores.push(score);
    this.groups.push(group_id);
    if (!hasTexts) return;
    const prompts = messages.filter(({ role }) => role !== 'assistant');
    const asks = (tag: string): boolean => prompts.some(({ content }) => content.includes(tag));
    this.asksForThoughts ||= asks('<think>');
    const asksForAnswer = asks('<answer>');
    for (const turn of turns) this.addTurn(turn, asksForAnswer, group_id);
    this.characters.push(turns.reduce((sum, { raw }) => sum + raw.length, 0));
    if (tokens.ids.length > 0) this.tokens.push(tokens.mask.reduce<number>((sum, bit) => sum + bit, 0));
  }

  private addTurn(turn: EpisodeTurn, asksForAnswer: boolean, group: number): void {
    this.turns++;
    if (!hasAnswer(turn, asksForAnswer)) this.invalid++;
    const { thought } = turn;
    if (thought === null || thought.trim() === '') return;
    this.thinking++;
    this.held += thought.length;
    if (this.held > mostThoughtCharacters) return;
    this.thoughts.push(thought);
    if (turn.turn === 1) this.firstThoughts.push({ prompt: group, thought });
  }

  /** Returns the metrics of all episodes; none if there was no episode. */
  result(): StepDiagnosis {
    const { scores, groups, turns, asksForThoughts } = this;
    const found: Record<string, number> = {
      ...(scores.length > 0 && { 'critic/score/mean': mean(scores) }),
      ...groupRewardMetrics({ scores, groups }),
      ...(turns > 0 && {
        ...thoughtRepetition(this.thoughts),
        ...promptInformation(this.firstThoughts),
        'rollout/invalid_answer_rate': this.invalid / turns,
        'thoughts/rate': this.thinking / turns,
        ...this.lengths(),
      }),
    };
    const metrics: Record<string, number> = {};
    for (const [name, value] of Object.entries(found))
      if (Number.isFinite(value)) metrics[name] = Number(value.toPrecision(9)); // huge rewards overflow
    return { metrics, asksForThoughts };
  }

  /** Sampled tokens per episode if the trainer stored all token ids, else characters. */
  private lengths(): Record<string, number> {
    const { tokens, characters } = this;
    if (tokens.length < characters.length) return { 'response_length/characters': mean(characters) };
    return {
      'response_length/mean': mean(tokens),
      'response_length/max': maximum(tokens),
      'response_length/min': minimum(tokens),
    };
  }
}

/**
 * Whether a response keeps the format of an answer: it is not empty after the thought, and, if the prompt asks for
 * `<answer>`, it closes a tag other than the thought's. Calls of tools in tags of their own are answers, too.
 */
const hasAnswer = ({ answer, raw }: EpisodeTurn, asksForAnswer: boolean): boolean =>
  answer !== null && (!asksForAnswer || /<\/(?!think>)\w+>/.test(raw));

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
