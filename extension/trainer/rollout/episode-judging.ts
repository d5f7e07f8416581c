// Judges the episodes of a rollout while other episodes are still generated: an episode, and the descriptions of states
// in its answers, are sent to their judges as soon as the episode is over. The results are set on the entries when the
// rollout is otherwise complete.
import type { Judgement } from '../../run-data/judgement';
import { judgedComponents, type RolloutJudges } from '../rewards/judge-panel';
import { weightedSum } from '../rewards/reward-plan';
import type { EpisodeEntry } from './environment-state-manager';
import { answered } from './scored-turns';

/** The judgements of an episode, and those of its turns by number and component. */
interface Judging {
  episode: Promise<Record<string, Judgement[]>>;
  states: { turn: number; part: string; judgements: Promise<Judgement[]> }[];
}

export class EpisodeJudging {
  private readonly begun = new Map<EpisodeEntry, Judging>();

  /** @param judges undefined if the rollout has no judges */
  constructor(private readonly judges: RolloutJudges | undefined) {}

  /** Sends episodes that are over to their judges. Ignores failed episodes and episodes without a turn. */
  begin(over: readonly EpisodeEntry[]): void {
    const { judges } = this;
    if (!judges) return;
    for (const entry of over) {
      const { rewards, tag, error, history, environment, described = [] } = entry;
      if (this.begun.has(entry) || error || history.length === 0) continue;
      if (!rewards?.judges.length && described.length === 0) continue;
      this.begun.set(entry, {
        episode: rewards?.judges.length
          ? judges.judge(tag, { instruction: environment.instruction, episode: answered(entry) })
          : Promise.resolve({}),
        states: described.map(({ turn, state }) => ({
          ...{ turn, part: state.part },
          judgements: judges.judgeState(tag, state),
        })),
      });
    }
  }

  /** Waits for the judgements of the entries, at most `waitSeconds`, and sets them on the entries. */
  async settled(entries: readonly EpisodeEntry[]): Promise<void> {
    const { judges } = this;
    if (!judges) return;
    this.begin(entries);
    if (this.begun.size === 0) return;
    const timer = setTimeout(() => judges.end(), judges.waitSeconds * 1000);
    try {
      for (const [entry, { episode, states }] of this.begun) {
        for (const { turn, part, judgements } of states) setOnTurn(entry, turn, part, await judgements);
        if (!entry.rewards?.judges.length) continue;
        const judgements = await episode;
        entry.judgements = judgements;
        entry.components = { ...entry.components, ...judgedComponents(judgements) };
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** Ends all requests. */
  end(): void {
    this.judges?.end();
  }
}

/** Sets the judgements of a description on its turn, and adds their value to the turn's reward. */
function setOnTurn({ history, rewards }: EpisodeEntry, number: number, part: string, judgements: Judgement[]): void {
  const turn = history[number - 1];
  turn.judgements = { ...turn.judgements, [part]: judgements };
  turn.components = { ...turn.components, ...judgedComponents({ [part]: judgements }) };
  if (rewards) turn.component_reward = weightedSum(rewards, turn.components);
}
