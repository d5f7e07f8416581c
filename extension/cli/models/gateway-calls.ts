// Answers the calls of programs with a model, without training, one after the other. Conversations are stitched as in
// training (trainer/rollout/call-context.ts). The log has one line per call, with the exact ids and log-probs.
import { RequestError } from '../../../envs/api/model-server/wire';
import type { CallLine, WaitingCall } from '../../../envs/api/model-server/call-server';
import { UserError } from '../../common/user-error';
import type { GeneratedRow, GenerationRow, SamplingOptions } from '../../engine/generation-calls';
import { CallContext, type CallContextOptions, type CallPrompt } from '../../trainer/rollout/call-context';
import type { PromptTokenizer } from '../../trainer/rollout/prompt-tokenizer';
import { deriveSeed } from '../../trainer/rollout/seeds';

/** A line of the log. */
export interface CallRecord {
  /** Number of the call, from 1. */
  call: number;
  /** Number of the earlier call that it continues; null if it begins a conversation. */
  continues: number | null;
  /** The messages that the call adds to the conversation, as text. */
  added: string;
  /** Ids of the complete prompt. */
  prompt_tokens: number[];
  /** Sampled ids, and their log-probs in nats. */
  tokens: number[];
  logprobs: number[];
  /** The sampled text. */
  text: string;
  /** Tool calls that the program receives. */
  tool_calls: { name: string; arguments: string }[];
  finish: GeneratedRow['finish'];
}

/** The part of an engine that samples. */
export interface SamplingEngine {
  generate(rows: GenerationRow[], sampling: SamplingOptions): Promise<GeneratedRow[]>;
  release(rows: string[]): Promise<void>;
}

export interface GatewayOptions extends CallContextOptions {
  seed: number;
  sampling: SamplingOptions;
}

const row = 'gateway';

export class GatewayCalls {
  private readonly context: CallContext;
  private count = 0;

  constructor(
    private readonly engine: SamplingEngine,
    tokenizer: PromptTokenizer,
    private readonly options: GatewayOptions,
  ) {
    this.context = new CallContext(tokenizer, options);
  }

  /** Answers the calls of a line until `signal` aborts. `onCall` receives each answered call. */
  async serve(line: CallLine, onCall: (record: CallRecord) => void, signal: AbortSignal): Promise<void> {
    const aborted = new Promise<undefined>(resolve =>
      signal.addEventListener('abort', () => resolve(undefined), { once: true }),
    );
    for (;;) {
      const waiting = await Promise.race([line.next(), aborted]);
      if (!waiting || signal.aborted) return;
      const record = await this.answer(waiting);
      if (record) onCall(record);
    }
  }

  /** Answers one call; returns null if the call was refused. */
  private async answer(waiting: WaitingCall): Promise<CallRecord | null> {
    const prompt = this.promptOf(waiting);
    if (!prompt) return null;
    const { append, fresh, limits, continued, ids, added } = prompt;
    const call = ++this.count;
    if (fresh && call > 1) await this.engine.release([row]);
    const { seed, sampling } = this.options;
    const [generated] = await this.engine.generate([{ row, append, seed: deriveSeed('gateway', seed, call) }], {
      ...sampling,
      max_new_tokens: limits.max_new_tokens,
      stop: [...sampling.stop, ...limits.stop],
    });
    const text = this.context.accept(generated);
    const { reply } = this.context.reply;
    waiting.answer(reply);
    return {
      call,
      continues: continued === undefined ? null : continued + 1,
      added,
      prompt_tokens: [...ids],
      tokens: generated.ids,
      logprobs: generated.logprobs.map(logprob => Number(logprob.toPrecision(9))),
      text,
      tool_calls: reply.tool_calls,
      finish: generated.finish,
    };
  }

  /** Returns the prompt of a call; refuses the call if it cannot be rendered or leaves no room for a reply. */
  private promptOf(waiting: WaitingCall): CallPrompt | null {
    try {
      const prompt = this.context.prompt(waiting.call);
      if (prompt) return prompt;
      const { max_model_len, response_length } = this.options;
      const problem = `the prompt of ${this.context.refused} tokens and a reply of ${response_length} tokens exceed the context of ${max_model_len} tokens: shorten the conversation, or set max_tokens`;
      waiting.refuse(new RequestError(400, problem, 'messages'));
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      waiting.refuse(new RequestError(400, error.message, 'messages'));
    }
    return null;
  }
}
