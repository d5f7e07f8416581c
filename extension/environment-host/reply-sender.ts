// What leaves the environment process: replies within the bounds of the protocol, in frames that are not too large, and what environments
// print, gathered for a moment, since they print line by line. A state that no frame can carry fails its own episode.
import { stateProblem } from '../protocol/environment-bounds';
import type { EnvironmentNotice, EnvironmentReply, EpisodeStep } from '../protocol/environment-link';
import { FrameError } from '../protocol/frames';
import { OutputBudget } from '../protocol/output-budget';

/** Milliseconds for which printed text is gathered. */
const gatherMs = 50;
/** Characters of printed text, from all environments, that are passed on in a second: as many as the trainer takes. */
const printedPerSecond = 131_072;
/** States of a reply that are sent in one frame where they might be large. */
const characters = 2 ** 22;

type States = Extract<EnvironmentReply, { method: 'reset' | 'step' }>;

export class ReplySender {
  private readonly printed = new Map<string, EnvironmentNotice>();
  private readonly budget = new OutputBudget(printedPerSecond);
  private gathering: NodeJS.Timeout | undefined;

  constructor(private readonly send: (message: EnvironmentReply | EnvironmentNotice, sent?: () => void) => void) {}

  notice({ tag, stream, text }: EnvironmentNotice): void {
    const passed = this.budget.take(text);
    if (passed === '') return;
    const key = `${stream} ${tag}`;
    const before = this.printed.get(key)?.text ?? '';
    this.printed.set(key, { method: 'log', tag, stream, text: before + passed });
    this.gathering ??= setTimeout(() => this.flush(), gatherMs).unref();
  }

  /** Sends a reply behind what was printed before it. */
  reply(reply: EnvironmentReply, sent?: () => void): void {
    this.flush();
    if (reply.method === 'reset' || reply.method === 'step') this.states(reply, sent);
    else this.send(reply, sent);
  }

  private flush(): void {
    clearTimeout(this.gathering);
    this.gathering = undefined;
    for (const notice of this.printed.values()) this.send(notice);
    this.printed.clear();
  }

  private states(reply: States, sent?: () => void): void {
    const states = (reply.episodes as EpisodeStep[]).map(withinBounds);
    let [part, room]: [EpisodeStep[], number] = [[], characters];
    for (const state of states) {
      const size = sizeOf(state);
      if (part.length > 0 && size > room) {
        this.sendStates({ ...reply, episodes: part, more: true });
        [part, room] = [[], characters];
      }
      part.push(state);
      room -= size;
    }
    this.sendStates({ ...reply, episodes: part }, sent);
  }

  private sendStates(reply: States, sent?: () => void): void {
    try {
      this.send(reply, sent);
    } catch (error) {
      if (!(error instanceof FrameError) || reply.episodes.every(({ error: failure }) => failure)) throw error;
      const why = `gave more in one step than a message may hold (${error.message})`;
      this.send({ ...reply, episodes: (reply.episodes as EpisodeStep[]).map(state => failed(state, why)) }, sent);
    }
  }
}

/** A state, or the failure of its episode where a thread has sent what no runner of ours sends. */
function withinBounds(state: EpisodeStep): EpisodeStep {
  const problem = stateProblem(state);
  return problem === undefined ? state : failed(state, `sent a state that ${problem}`);
}

const failed = ({ episode, version }: EpisodeStep, why: string): EpisodeStep => ({
  episode,
  observation: '',
  outcomes: [],
  version,
  error: { kind: 'bad_value', message: `environment of episode ${episode} ${why}: return less, and post no messages` },
});

/** Characters and bytes of a state, and of its outcomes as if each had a good many. */
function sizeOf({ observation, images = [], outcomes, info }: EpisodeStep): number {
  const pictures = images.reduce((sum, { length }) => sum + length, 0);
  const infos = [info, ...outcomes.map(outcome => outcome.info)];
  return observation.length + pictures + infos.reduce<number>((sum, item) => sum + charactersOf(item, 0), 0);
}

function charactersOf(value: unknown, depth: number): number {
  if (typeof value === 'string') return 1 + value.length;
  if (value instanceof Uint8Array) return value.length;
  if (typeof value !== 'object' || value === null || depth > 16) return 4;
  return Object.entries(value).reduce((sum, [key, item]) => sum + key.length + charactersOf(item, depth + 1), 4);
}
