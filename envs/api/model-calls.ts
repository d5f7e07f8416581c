// Model calls as observations, and replies as actions. An environment with `modelCalls` runs a program that calls the
// model itself: each observation is one call (a conversation with its tools), and each action is the model's reply. Both
// are JSON texts, so calls and replies are stored, replayed and sent like all other observations and actions. The
// trainer builds the prompt of a call from its messages (extension/trainer/rollout/call-context.ts).
import { z } from 'zod';

const requestedTool = z.object({ name: z.string(), arguments: z.string() });

/** A tool call in a conversation or in a reply; `arguments` is a JSON text, as in OpenAI's API. */
export type RequestedTool = z.infer<typeof requestedTool>;

const callMessage = z.object({
  role: z.enum(['system', 'user', 'assistant', 'tool']),
  content: z.string(),
  /** Tool calls of an assistant's message. */
  tool_calls: z.array(requestedTool).optional(),
});
export type CallMessage = z.infer<typeof callMessage>;

const callTool = z.object({
  name: z.string(),
  description: z.string(),
  /** JSON schema of the arguments. */
  parameters: z.record(z.string(), z.unknown()),
});
export type CallTool = z.infer<typeof callTool>;

const modelCall = z.object({
  messages: z.array(callMessage).min(1),
  tools: z.array(callTool),
  /** Maximum tokens of the reply; the trainer's own limit applies if it is lower. Undefined for no own limit. */
  max_tokens: z.int().min(1).optional(),
  /** Texts that end the reply. */
  stop: z.array(z.string()),
});

/** One call of the model. */
export type ModelCall = z.infer<typeof modelCall>;

const modelReply = z.object({
  content: z.string(),
  tool_calls: z.array(requestedTool),
  /** Why the reply ended: by the model or a stop text, or at the maximum length. */
  finish: z.enum(['stop', 'length']),
  prompt_tokens: z.int().min(0),
  completion_tokens: z.int().min(0),
});

/** The model's reply to a call. */
export type ModelReply = z.infer<typeof modelReply>;

const [callHead, replyHead] = ['{"model_call":', '{"model_reply":'];

/** Returns the observation that asks for a reply to a call. */
export const callObservation = (call: ModelCall): string => `${callHead}${JSON.stringify(call)}}`;

/** Returns the action that consists of a reply. */
export const replyAction = (reply: ModelReply): string => `${replyHead}${JSON.stringify(reply)}}`;

/** Returns the call of an observation; undefined if the observation is not a valid call. */
export function callOf(observation: string): ModelCall | undefined {
  const found = observation.startsWith(callHead) ? jsonOf(observation) : undefined;
  return z.object({ model_call: modelCall }).safeParse(found).data?.model_call;
}

/** Returns the reply of an action; undefined if the action is not a valid reply. */
export function replyOf(action: number | string): ModelReply | undefined {
  const found = typeof action === 'string' && action.startsWith(replyHead) ? jsonOf(action) : undefined;
  return z.object({ model_reply: modelReply }).safeParse(found).data?.model_reply;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
