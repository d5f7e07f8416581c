// Records what each episode of a rollout does and waits for. A turn has five parts: building the prompt, sampling,
// waiting until the slowest row of the same call has stopped, the environment's step, and waiting until the wave is
// complete. Each part becomes a span. The span of a wait also names the episode that ended the wait.
import type { GeneratedRow, GenerationRow } from '../../engine/generation-calls';
import { episodeSpans } from '../../run-data/timeline';
import type { StepSpans } from './step-spans';

/** Milliseconds below which waiting is not recorded. */
const leastWaitMs = 0.05;

/** An episode in progress. */
interface Playing {
  spans: StepSpans;
  /** Number of turns whose sampling has begun. */
  turn: number;
  /** Time at which the episode's newest span ended. */
  since: number;
  /** End of sampling, if the engine has reported it for the current call; 0 otherwise. */
  sampled: number;
}

export class EpisodeSpans {
  private readonly playing = new Map<string, Playing>();

  constructor(
    private readonly now: () => number,
    private readonly spansOf: (episode: string) => StepSpans,
  ) {}

  /** Called when a rollout with these episodes begins. */
  begun(ids: readonly string[]): void {
    const now = this.now();
    for (const id of ids) this.playing.set(id, { spans: this.spansOf(id), turn: 0, since: now, sampled: 0 });
  }

  /** Called when a wave is complete, that is, the environments of all its episodes have answered. */
  ready(ids: readonly string[]): void {
    const now = this.now();
    const last = this.latest(ids, ({ since }) => since);
    for (const id of ids) {
      const episode = this.playing.get(id);
      if (!episode) continue;
      this.wait(id, episode, episodeSpans.waveWait, now, last);
      episode.since = now;
    }
  }

  /** Called when the prompts of these episodes have been built. */
  asked(ids: readonly string[]): void {
    const now = this.now();
    for (const id of ids) {
      const episode = this.playing.get(id);
      if (!episode) continue;
      const { spans, since, turn } = episode;
      spans.add({ lane: 'episodes', name: episodeSpans.prompt, from: since, to: now, episode: id, turn: turn + 1 });
      episode.since = now;
    }
  }

  /**
   * Runs a call of the generator and records its spans. Before the call, `before` is called with the step to which the
   * rows belong.
   */
  async sampling(
    rows: readonly GenerationRow[],
    before: (step: number) => void,
    generate: () => Promise<GeneratedRow[]>,
  ): Promise<GeneratedRow[]> {
    if (rows.length === 0) return generate();
    const spans = this.spansOf(rows[0].row);
    before(spans.step);
    const from = this.now();
    for (const { row } of rows) {
      const episode = this.playing.get(row);
      if (!episode) continue;
      episode.turn++;
      episode.since = from;
      episode.sampled = 0;
    }
    const span = spans.begin({ lane: 'sampling', name: 'generate', from, rows: rows.length });
    let tokens = 0;
    try {
      const generated = await generate();
      this.finishRows(generated, from);
      tokens = generated.reduce((sum, { ids }) => sum + ids.length, 0);
      return generated;
    } finally {
      spans.end(span, this.now(), { tokens });
    }
  }

  /** Called when the engine has sampled the last token of these rows. */
  rowsFinished(rows: readonly string[]): void {
    const now = this.now();
    for (const row of rows) {
      const episode = this.playing.get(row);
      if (episode) episode.sampled = now;
    }
  }

  private finishRows(generated: readonly GeneratedRow[], from: number): void {
    const now = this.now();
    const last = this.latest(
      generated.map(({ row }) => row),
      ({ sampled }) => sampled,
    );
    for (const { row, ids } of generated) {
      const episode = this.playing.get(row);
      if (!episode) continue;
      const { spans, turn, sampled } = episode;
      const to = sampled > 0 ? sampled : now;
      const tokens = ids.length;
      spans.add({ lane: 'episodes', name: episodeSpans.sampling, from, to, episode: row, turn, tokens });
      episode.since = to;
      this.wait(row, episode, episodeSpans.batchWait, now, last);
      episode.since = now;
    }
  }

  /**
   * Runs the request `ask` to the environments and records its spans. All states that the environments report are
   * passed on to `take`.
   */
  async environment<State extends { episode: string }>(
    kind: 'reset' | 'environment',
    episodes: readonly { episode: string }[],
    take: (ready: State[]) => void,
    ask: (report: (ready: State[]) => void) => Promise<State[]>,
  ): Promise<State[]> {
    if (episodes.length === 0) return ask(take);
    const from = this.now();
    const spans = this.spansOf(episodes[0].episode);
    const span = spans.begin({
      lane: 'environments',
      name: kind === 'reset' ? 'reset' : 'step',
      from,
      rows: episodes.length,
    });
    const left = new Set(episodes.map(({ episode }) => episode));
    const end = (ids: readonly string[]): void => {
      const to = this.now();
      for (const id of ids) {
        const episode = this.playing.get(id);
        if (!left.delete(id) || !episode) continue;
        episode.spans.add({ lane: 'episodes', name: episodeSpans[kind], from, to, episode: id, turn: episode.turn });
        episode.since = to;
      }
    };
    try {
      return await ask(ready => {
        end(ready.map(({ episode }) => episode));
        take(ready);
      });
    } finally {
      end([...left]);
      spans.end(span, this.now());
    }
  }

  /** Forgets the episodes of a step; called after the step's spans were written. */
  forget(spans: StepSpans): void {
    for (const [id, episode] of this.playing) if (episode.spans === spans) this.playing.delete(id);
  }

  private wait(id: string, { spans, since, turn }: Playing, name: string, to: number, cause: string | undefined): void {
    if (to - since < leastWaitMs || cause === id) return;
    spans.add({ lane: 'episodes', name, from: since, to, episode: id, turn, cause });
  }

  /** Returns the episode whose `timeOf` is the latest. */
  private latest(ids: readonly string[], timeOf: (episode: Playing) => number): string | undefined {
    let [last, latest] = [undefined as string | undefined, -Infinity];
    for (const id of ids) {
      const episode = this.playing.get(id);
      if (episode && timeOf(episode) > latest) [last, latest] = [id, timeOf(episode)];
    }
    return last;
  }
}
