// Judges the episodes of a rollout while other episodes are still generated: an episode is sent to its judges as soon as
// it is over. The results are set on the entries when the rollout is otherwise complete.
import type { Judgement } from '../../run-data/judgement';
import { judgedComponents, type RolloutJudges } from '../rewards/judge-panel';
import type { EpisodeEntry } from './environment-state-manager';
import { answered } from './scored-turns';

export class EpisodeJudging {
  private readonly begun = new Map<EpisodeEntry, Promise<Record<string, Judgement[]>>>();

  /** @param judges undefined if the rollout has no judges */
  constructor(private readonly judges: RolloutJudges | undefined) {}

  /** Sends episodes that are over to their judges. Ignores failed episodes and episodes without a turn. */
  begin(over: readonly EpisodeEntry[]): void {
    if (!this.judges) return;
    for (const entry of over) {
      const { rewards, tag, error, history, environment } = entry;
      if (this.begun.has(entry) || error || history.length === 0 || !rewards?.judges.length) continue;
      this.begun.set(entry, this.judges.judge(tag, { instruction: environment.instruction, episode: answered(entry) }));
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
      for (const [entry, judging] of this.begun) {
        const judgements = await judging;
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
