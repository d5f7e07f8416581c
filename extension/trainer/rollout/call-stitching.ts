// Stitches the calls of a program into training samples. Pure; all data is of one episode.
// A call continues an earlier call if its conversation begins with the earlier conversation and the reply to it. Its
// prompt then begins with exactly the ids that the engine saw and sampled, and the call is added to the sample of the
// earlier call. If another call was added there first (a branch), or if no earlier call is continued (a sub-agent, a
// shortened history), a new sample begins. Invariants: each call is in one sample, so each sampled token is trained
// once; the ids before the span of a call are the ids of its prompt.
import type { CallMessage, CallTool } from '../../../envs/api/model-calls';
import { jsonOrNothing } from '../../common/json';
import { appendAll } from '../../common/lists';
import type { RolloutSample } from './rollout-sample';

/** A conversation in a form in which equal messages are equal texts. */
export interface ConversationKey {
  messages: readonly string[];
  tools: string;
}

/**
 * Returns the key of a message. Programs and SDKs trim texts and write arguments anew, so white space around a text and
 * within JSON arguments makes no difference.
 */
export function messageKey({ role, content, tool_calls = [] }: CallMessage): string {
  const calls = tool_calls.map(call => [call.name, jsonOrNothing(call.arguments) ?? call.arguments]);
  return JSON.stringify([role, content.trim(), calls]);
}

export const conversationKey = (messages: readonly CallMessage[], tools: readonly CallTool[]): ConversationKey => ({
  messages: messages.map(messageKey),
  tools: JSON.stringify(tools),
});

/**
 * Returns the indices of the answered conversations that a call continues: the longest first and, of equally long ones,
 * the newest first. A continued conversation includes its reply and is a proper part of the call's conversation.
 */
export function continuedBy(answered: readonly ConversationKey[], call: ConversationKey): number[] {
  const isBegun = ({ messages, tools }: ConversationKey): boolean =>
    tools === call.tools &&
    messages.length <= call.messages.length &&
    messages.every((key, index) => key === call.messages[index]);
  return Array.from(answered.keys())
    .filter(index => isBegun(answered[index]))
    .sort((a, b) => answered[b].messages.length - answered[a].messages.length || b - a);
}

/**
 * Whether a chat template keeps a reply in its history: the next prompt begins with the prompt of the reply, followed by
 * its text. White space makes no difference, because templates trim and separate texts. Tool calls are not compared:
 * templates write them from their data.
 * @param prompt the text of the prompt to which the reply was sampled
 * @param content the reply's text, as the program sent it back
 * @param next the text of the next prompt
 */
export const keepsReply = (prompt: string, content: string, next: string): boolean =>
  next.startsWith(prompt) && withoutSpace(next.slice(prompt.length)).startsWith(withoutSpace(content));

const withoutSpace = (text: string): string => text.replace(/\s+/g, '');

/** A sample to which later calls may be added. */
interface GrowingSample {
  ids: number[];
  logprobs: number[];
  turns: RolloutSample['turns'];
}

/** The calls of an episode so far, in order, and their samples. */
export class StitchedCalls {
  readonly samples: GrowingSample[] = [];
  /** For each call, its sample and the number of ids of the sample up to the call's last sampled token. */
  private readonly calls: { sample: number; end: number }[] = [];

  /** Returns the ids that the engine saw and sampled up to the end of a call. */
  idsOf(call: number): number[] {
    const { sample, end } = this.calls[call];
    return this.samples[sample].ids.slice(0, end);
  }

  /** Returns the sampled ids of a call. */
  sampledBy(call: number): number[] {
    const { sample, end } = this.calls[call];
    const { ids, turns } = this.samples[sample];
    const { span } = turns.find(({ turn }) => turn === call + 1)!;
    return ids.slice(span[0], end);
  }

  /**
   * Adds a call.
   * @param prompt the complete ids of its prompt; with `continued`, they begin with `idsOf(continued)`
   * @param continued the call that it continues
   */
  add(
    prompt: readonly number[],
    sampled: { ids: readonly number[]; logprobs: readonly number[] },
    continued?: number,
  ): void {
    const before = continued === undefined ? undefined : this.calls[continued];
    const isLast = before !== undefined && before.end === this.samples[before.sample].ids.length;
    const index = isLast ? before.sample : this.samples.length;
    if (!isLast) this.samples.push({ ids: [], logprobs: [], turns: [] });
    const sample = this.samples[index];
    appendAll(sample.ids, prompt.slice(sample.ids.length));
    while (sample.logprobs.length < prompt.length) sample.logprobs.push(0);
    appendAll(sample.ids, sampled.ids);
    appendAll(sample.logprobs, sampled.logprobs);
    sample.turns.push({ turn: this.calls.length + 1, span: [prompt.length, sample.ids.length] });
    this.calls.push({ sample: index, end: sample.ids.length });
  }
}
