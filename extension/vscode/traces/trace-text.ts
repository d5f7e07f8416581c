// Formats an episode as text and records the positions of its parts. All information that decorations show is also in
// the text, so that it can be searched, compared and read aloud. Pure functions. Invariants: an answer appears exactly
// as it was sampled, including special tokens; each sampled token's range covers its text; if an answer's ids do not
// decode to the recorded text (for example because the tokenizer is a different one), the trace contains the recorded
// text without token positions.
import { actionOutcomes } from '../../run-data/action-outcomes';
import { counted, formatSigned } from '../../common/numbers';
import type { Judgement } from '../../run-data/judgement';
import { callLine } from '../../run-data/tool-call';
import { hasTokens, successLabel, type Episode, type EpisodeTurn } from '../../run-data/episode';
import { shown, spell, type Span } from './tokens/spelling';
import type { TokenBytes } from './tokens/token-bytes';

/** A sampled token in the text. */
export interface PlacedToken extends Span {
  /** Index in the episode's `tokens`. */
  index: number;
  /** 0-based index of the token's turn. */
  turn: number;
}

/** An action that the model wrote and that was not executed. */
export interface RefusedAction extends Span {
  name: string;
  reason: string;
}

export interface TracedTurn {
  turn: EpisodeTurn;
  /** The turn's complete section, including its heading. */
  extent: Span;
  heading: Span;
  /** Sections including their headings. */
  stateSection: Span;
  answerSection: Span;
  outcomeSection: Span;
  state: Span;
  /** The generation prefix, which is the end of the prompt. `answer`, the sampled text, follows immediately. */
  prefix: Span;
  answer: Span;
  /** Text between the tags of the thought; null if the answer lacks these tags. */
  thought: Span | null;
  actions: Span | null;
  refused: RefusedAction[];
  /** Line such as `reward −0.10 · return 10.8 · advantage +1.2`. */
  rewardLine: Span;
  reward: string;
}

export interface Trace {
  text: string;
  episode: Episode;
  /** Sampled tokens in order. Excludes turns whose tokens are unknown. */
  tokens: PlacedToken[];
  header: Span;
  prompt: Span | null;
  /** The system message in the prompt; with roles, all system messages. */
  system: Span | null;
  turns: TracedTurn[];
  end: Span;
  finalState: Span;
  /** 1-based numbers of the turns whose tokens are unknown. */
  unspelled: number[];
}

/** Returns the id of an episode within its step: `g003-m05`, plus the suffix of a what-if episode. */
export const shortId = (id: string): string => /g\d+-m\d+.*$/.exec(id)?.[0] ?? id;

/**
 * Formats an episode of the run named `run`. `bytes` is the vocabulary of the run's tokenizer, or null if it is
 * unknown.
 */
export function traceOf(episode: Episode, run: string, bytes: TokenBytes | null): Trace {
  const writer = new Writer();
  const header = writer.section(() => writeHeader(writer, episode, run));
  const instructions = systemMessages(episode);
  let message: Span | null = null;
  const prompt =
    instructions.length > 0
      ? writer.section(() => {
          writer.line('');
          writer.line('## Prompt');
          message = writer.section(() => {
            for (const { name, content } of instructions) {
              if (name !== undefined) writer.line(`### ${name}`);
              writer.block(shown(content));
            }
          });
        })
      : null;
  const tokens: PlacedToken[] = [];
  const unspelled: number[] = [];
  const returns = new Map<string | undefined, number>();
  const turns = episode.turns.map((turn, i) => {
    const running = (returns.get(turn.role) ?? 0) + turn.reward;
    returns.set(turn.role, running);
    const spelled = bytes && spelledAnswer(episode, turn, bytes);
    if (!spelled) unspelled.push(turn.turn);
    const traced = writeTurn(writer, episode, i, running, spelled);
    spelled?.ranges.forEach(({ from, to }, n) =>
      tokens.push({ index: turn.span[0] + n, turn: i, from: traced.answer.from + from, to: traced.answer.from + to }),
    );
    return traced;
  });
  let finalState: Span = { from: 0, to: 0 };
  const end = writer.section(() => {
    writer.line('');
    writer.line(`## End · ${endingOf(episode)}`);
    if (episode.error !== undefined) writer.line(`error ${shown(episode.error)}`);
    if (episode.context_reason !== undefined) writer.line(`context full: ${shown(episode.context_reason)}`);
    writeComponents(writer, episode.components);
    for (const [component, judgements] of Object.entries(episode.judgements ?? {}))
      for (const judgement of judgements) writer.line(shown(judgementText(component, judgement)));
    finalState = writer.block(shown(episode.final_state));
  });
  return { text: writer.text, episode, tokens, header, prompt, system: message, turns, end, finalState, unspelled };
}

/** Returns the first system message or, with roles, the first one of each role. */
function systemMessages({ messages, roles }: Episode): Episode['messages'] {
  const found = messages.filter(({ role }) => role === 'system');
  return roles ? found.filter(({ name }, i) => found.findIndex(other => other.name === name) === i) : found.slice(0, 1);
}

/** Formats a return; with roles, it is that of a role. */
const returnText = (reward: number, role?: string): string =>
  `return${role === undefined ? '' : ` of ${role}`} ${formatSigned(reward)}`;

/** Returns the mean advantage of a turn's sampled tokens; null if the turn was not trained on. */
function turnAdvantage({ tokens }: Episode, { span: [from, to] }: EpisodeTurn): number | null {
  const advantages = tokens.advantages?.slice(from, to).filter((_, i) => tokens.mask[from + i] === 1) ?? [];
  return advantages.length === 0 ? null : advantages.reduce((sum, value) => sum + value, 0) / advantages.length;
}

/** Decodes an answer's ids; null if the result differs from the recorded text. */
function spelledAnswer(episode: Episode, turn: EpisodeTurn, bytes: TokenBytes): SpelledAnswer | null {
  const ids = episode.tokens.ids.slice(...turn.span);
  const parts = ids.map(id => bytes.of(id));
  if (parts.length === 0) return null; // a model behind an API reports no ids
  if (parts.includes(undefined)) return null;
  const { text, ranges } = spell(parts as Uint8Array[]);
  // The recorded text contains no special tokens. Some decoders also remove its leading blank.
  const plain = spell(parts.filter((_, i) => !bytes.isSpecial(ids[i])) as Uint8Array[]).text;
  const raw = shown(turn.raw);
  const recorded = [plain, plain.trimStart()].find(each => raw.endsWith(each));
  return recorded === undefined ? null : { prefix: raw.slice(0, raw.length - recorded.length), text, ranges };
}

interface SpelledAnswer {
  prefix: string;
  text: string;
  ranges: Span[];
}

function writeHeader(writer: Writer, episode: Episode, run: string): void {
  const { step, mode, group_id, member, tag, seed, environment, turns, tokens } = episode;
  const { success, score, reward, penalty, component_reward, advantage, roles } = episode;
  const sampled = tokens.mask.reduce<number>((sum, bit) => sum + bit, 0);
  const line = (...parts: string[]) => writer.line(shown(parts.join(' · ')));
  const actions = turns.reduce((sum, { executed }) => sum + executed.length, 0);
  line(`# ${episode.id}`);
  line(
    `run ${run}`,
    `step ${step}`,
    mode === 'train' ? 'training' : 'validation',
    `group ${group_id}`,
    `member ${member}`,
  );
  line(`tag ${tag}`, `seed ${seed}`, `environment ${environment.name} ${environment.version}`);
  line(
    successLabel(success),
    `score ${formatSigned(score)}`,
    ...(roles ? Object.entries(roles).map(([role, own]) => returnText(own.reward, role)) : [returnText(reward)]),
    `penalty ${formatSigned(penalty)}`,
    ...(component_reward === undefined ? [] : [`components ${formatSigned(component_reward)}`]),
    `advantage ${advantage === null ? '–' : formatSigned(advantage)}`,
    useOf(episode),
  );
  line(
    counted(turns.length, 'turn'),
    counted(actions, 'action'),
    hasTokens(episode)
      ? `${sampled} of ${counted(tokens.ids.length, 'token')} sampled`
      : 'the trainer stored no tokens',
  );
}

/**
 * Describes whether training used the episode. What-if and validation episodes are never used; the rollout filter keeps
 * or drops the other episodes.
 */
function useOf({ kept, what_if }: Episode): string {
  if (what_if) return `what-if of ${what_if.of}, from turn ${what_if.turn} on; not trained on`;
  if (kept === null) return 'not trained on';
  return kept ? 'kept by all filters' : 'dropped by a filter';
}

function writeTurn(
  writer: Writer,
  episode: Episode,
  index: number,
  running: number,
  spelled: SpelledAnswer | null,
): TracedTurn {
  const turn = episode.turns[index];
  const advantage = turnAdvantage(episode, turn);
  const reward = [
    `reward ${formatSigned(turn.reward)}`,
    ...(turn.penalty === 0 ? [] : [`penalty ${formatSigned(turn.penalty)}`]),
    ...(turn.component_reward === undefined ? [] : [`components ${formatSigned(turn.component_reward)}`]),
    returnText(running, turn.role),
    ...(advantage === null ? [] : [`advantage ${formatSigned(advantage)}`]),
  ].join(' · ');
  const raw = shown(turn.raw);
  const { prefix: prefixText, text } = spelled ?? { prefix: '', text: raw };
  let [heading, state, prefix, answer, rewardLine] = Array.from({ length: 5 }, (): Span => ({ from: 0, to: 0 }));
  let [stateSection, answerSection, outcomeSection] = [heading, heading, heading];
  writer.line('');
  const extent = writer.section(() => {
    const player = turn.role === undefined ? '' : ` · ${turn.role}`;
    heading = writer.block(`## Turn ${turn.turn}${player} · reward ${formatSigned(turn.reward)}`);
    stateSection = writer.section(() => {
      const left = turn.actions_left === null ? '' : ` · ${counted(turn.actions_left, 'action')} left`;
      writer.line(`### State${left}`);
      state = writer.block(shown(turn.state));
    });
    answerSection = writer.section(() => {
      const facts = [
        counted(turn.span[1] - turn.span[0], 'token'),
        ...(turn.finish === 'length' ? ['truncated at the length limit'] : []),
      ];
      writer.line(`### Answer · ${facts.join(' · ')}`);
      const block = writer.block(prefixText + text);
      prefix = { from: block.from, to: block.from + prefixText.length };
      answer = { from: prefix.to, to: block.to };
    });
    outcomeSection = writer.section(() => {
      writer.line('### Outcome');
      for (const call of turn.calls ?? []) writer.line(`called ${shown(callLine(call))}`);
      if (!turn.calls)
        writer.line(`executed ${turn.executed.length > 0 ? turn.executed.map(shown).join(' · ') : 'nothing'}`);
      for (const { name, reason } of refusedOf(episode, index)) writer.line(`not executed ${shown(name)}: ${reason}`);
      rewardLine = writer.block(reward);
      writeComponents(writer, turn.components);
    });
  });
  const all: Span = { from: prefix.from, to: answer.to };
  const between = (tag: string): Span | null => {
    const found = new RegExp(`<${tag}>(.*?)</${tag}>`, 's').exec(writer.text.slice(all.from, all.to));
    const from = found && all.from + found.index + tag.length + 2;
    return found && from !== null ? { from, to: from + found[1].length } : null;
  };
  const actions = between('answer');
  return {
    turn,
    extent,
    heading,
    stateSection,
    answerSection,
    outcomeSection,
    state,
    prefix,
    answer,
    rewardLine,
    reward,
    thought: between('think'),
    actions,
    refused: actions ? locatedIn(writer.text, actions, episode, index) : [],
  };
}

/** Writes a line with the values of reward components, before weights; nothing if there are none. */
function writeComponents(writer: Writer, components: Readonly<Record<string, number>> = {}): void {
  const values = Object.entries(components).map(([name, value]) => `${name} ${formatSigned(value)}`);
  if (values.length > 0) writer.line(shown(`components before weights: ${values.join(' · ')}`));
}

/** Formats a judgement in one line: component, model, score and the reply of the judge. */
const judgementText = (component: string, { model, score, text }: Judgement): string =>
  `${component} by ${model}: ${score === null ? 'no score' : formatSigned(score)} · ${text.replace(/\s+/g, ' ').trim()}`;

const outcomesOf = (episode: Episode, index: number) =>
  actionOutcomes(episode.turns[index], index === episode.turns.length - 1 && episode.terminated);

const refusedOf = (episode: Episode, index: number) =>
  outcomesOf(episode, index).flatMap(({ name, reason }) => (reason === null ? [] : [{ name, reason }]));

/**
 * Returns the positions of rejected actions in the answer's text. The recorded outcomes have the same order as the
 * actions in the text, so the search for each action starts after the previous action.
 */
function locatedIn(text: string, { from, to }: Span, episode: Episode, index: number): RefusedAction[] {
  const refused: RefusedAction[] = [];
  let at = from;
  for (const { name, reason } of outcomesOf(episode, index)) {
    const found = name === '' ? -1 : text.indexOf(shown(name), at);
    if (found < 0 || found + name.length > to) continue;
    at = found + name.length;
    if (reason !== null) refused.push({ from: found, to: at, name, reason });
  }
  return refused;
}

/** Describes the end of an episode: terminated, truncated, out of turns, or an environment error. */
function endingOf({ success, terminated, truncated, error }: Episode): string {
  const how = terminated ? 'terminated' : truncated ? 'truncated' : 'out of turns';
  return error === undefined ? `${how}, ${successLabel(success)}` : `${how} by an environment error`;
}

/** Builds a text line by line and returns the positions of its parts. */
class Writer {
  private readonly parts: string[] = [];
  private length = 0;

  get text(): string {
    return this.parts.join('');
  }

  line(text: string): void {
    this.block(text);
  }

  /** Writes a text and a line break; returns the position of the text. */
  block(text: string): Span {
    const from = this.length;
    this.parts.push(text, '\n');
    this.length += text.length + 1;
    return { from, to: from + text.length };
  }

  /** Calls `write` and returns the position of the written text, without the last line break. */
  section(write: () => void): Span {
    const from = this.length;
    write();
    return { from, to: this.length - 1 };
  }
}
