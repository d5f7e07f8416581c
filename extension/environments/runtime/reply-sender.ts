// Sends replies and printed text from the environment process. Replies are checked against the protocol's bounds and
// split into frames of limited size. Printed text is batched, because environments print line by line. If a state is
// too large for a frame, only the episode to which the state belongs fails.
import { stateProblem } from '../../protocol/environment-message-bounds';
import type { EnvironmentNotice, EnvironmentReply, EpisodeStep } from '../../protocol/environment-link';
import { FrameError } from '../../node/frames';
import { OutputBudget } from '../../node/output-budget';

/** Milliseconds for which printed text is collected before it is sent. */
const gatherMs = 50;
/**
 * Maximum characters of printed text forwarded per second, for all environments together; the trainer accepts the same
 * rate.
 */
const printedPerSecond = 131_072;
/** Approximate maximum size of the states in one frame, as a sum of characters and bytes. */
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

  /** Sends a reply. Text that was printed earlier is sent first. */
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
      const why = `returned more data in one step than a message can contain (${error.message})`;
      this.send({ ...reply, episodes: (reply.episodes as EpisodeStep[]).map(state => failed(state, why)) }, sent);
    }
  }
}

/**
 * Returns the state itself, or a failure of its episode if the state exceeds the protocol's bounds. The worker already
 * checks these bounds, so only messages that environment code forged can exceed them.
 */
function withinBounds(state: EpisodeStep): EpisodeStep {
  const problem = stateProblem(state);
  return problem === undefined ? state : failed(state, `sent a state that ${problem}`);
}

const failed = ({ episode, version }: EpisodeStep, why: string): EpisodeStep => ({
  episode,
  observation: '',
  outcomes: [],
  version,
  error: {
    kind: 'bad_value',
    message: `environment of episode ${episode} ${why}: return smaller values, and do not post messages`,
  },
});

/** Returns the approximate size of a state with its outcomes, as a sum of characters and bytes. */
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
