// Fuzz targets for the output of models and model services: turns, reasoning, actions, API responses.
import { actionOutcomes } from '../../extension/run-data/action-outcomes';
import { actionsIn } from '../../extension/environments/server/gym-service';
import type { Session } from '../../extension/environments/server/sessions';
import { ApiClient } from '../../extension/trainer/evaluation/api-client';
import { apiService } from '../../extension/trainer/evaluation/api-service';
import type { ApiModel } from '../../extension/trainer/config/schema-evaluation';
import { givenTokens } from '../../extension/trainer/inspection/given-answer';
import { parseResponse, reasoningText } from '../../extension/trainer/rollout/turn-protocol';
import { holds } from './fuzz-target';
import type { FuzzTarget } from './fuzz-target';
import { partial } from '../support/partial';

const answers = [
  '<think>The lake is frozen.</think> <answer>Right || Down</answer>',
  '<think>a</think>b<think>c</think>\n\n<answer>Left</answer><|im_end|>',
  '<answer>search[hand painted <pillow> cover]</answer>',
  '<think><answer>Up</answer></think><answer>||  || Down||</answer> more text </answer>',
  'no tags at all, only <thin and <answer> of it',
  '<think>\u202e\u2028</think><answer>place 3 at row 4 col 1 || 4,1,3</answer>',
];
const protocol = { action_sep: '||', max_actions_per_turn: 5 };
const session = (whole_answer: boolean): Session =>
  partial<Session>({ environment: { whole_answer, actions: { 0: 'Left', 1: 'Right' } } });

/** A byte-level tokenizer. */
const letters = {
  encode: (text: string): number[] => [...Buffer.from(text)],
  decode: (ids: readonly number[]): string => Buffer.from(ids).toString('utf8'),
  stopTokenIds: [10],
};

const completion = JSON.stringify({
  choices: [{ index: 0, message: { role: 'assistant', content: '<answer>Left</answer>' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 12, completion_tokens: 5 },
});
const message = JSON.stringify({
  content: [{ type: 'text', text: 'Left' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 3, output_tokens: 2, cache_creation_input_tokens: null },
});
const refusal = JSON.stringify({
  error: { message: 'too long', type: 'invalid_request_error', code: 'context_length_exceeded' },
});

/** Replaces `fetch` by a function that returns this response. */
export function answering(response: () => Response): void {
  globalThis.fetch = (_, init) => {
    if (init?.signal?.aborted) return Promise.reject(init.signal.reason as Error);
    return Promise.resolve(response());
  };
}

/** Builds a response from an input, whose first line is JSON (status and headers) and whose remainder is the body. */
export function responseOf(input: Buffer): Response {
  const end = input.indexOf(0x0a);
  let [status, headers] = [200, {} as Record<string, string>];
  try {
    const head = JSON.parse(input.subarray(0, end).toString('utf8')) as {
      status: number;
      headers: Record<string, string>;
    };
    new Response('', { status: head.status, headers: head.headers });
    [status, headers] = [head.status, head.headers];
  } catch {
    // a socket could not deliver such a status or headers
  }
  const empty = [101, 204, 205, 304].includes(status);
  return new Response(empty ? null : new Uint8Array(input.subarray(end + 1)), { status, headers });
}

const head = (status: number, headers: Record<string, string> = {}): string =>
  `${JSON.stringify({ status, headers })}\n`;

export const answerTargets: readonly FuzzTarget[] = [
  {
    name: 'model answer',
    form: 'text',
    corpus: answers,
    weight: 40,
    run(input) {
      const raw = input.toString('utf8');
      const results = [true, false].flatMap(enable_think =>
        [true, false].map(whole => parseResponse(raw, { ...protocol, enable_think }, whole)),
      );
      for (const { actions } of results)
        holds(actions.length <= protocol.max_actions_per_turn, 'there are too many actions');
      return [...results, reasoningText(raw)];
    },
  },
  {
    name: 'actions of an answer',
    form: 'text',
    corpus: answers,
    weight: 20,
    run(input) {
      const raw = input.toString('utf8');
      const { actions: parsed } = parseResponse(raw, { ...protocol, enable_think: true });
      const turn = { raw, parsed, executed: parsed.slice(0, 1), actions_left: 3 };
      return [
        actionsIn(raw, session(false), { 0: 'Left', 1: 'Right' }),
        actionsIn(raw, session(true), undefined),
        actionOutcomes(turn as never, true),
        givenTokens(letters, '<think>', { answer: 'Up' }, { raw, ids: [...Buffer.from(raw)] }),
      ];
    },
  },
  {
    name: 'reply of an API',
    form: 'text',
    corpus: [completion, message, refusal].flatMap((body, i) => [
      head([200, 200, 400][i]) + body,
      head(429, { 'retry-after': '1' }) + body,
    ]),
    weight: 6,
    lawful: ['UserError', 'RequestRefused'],
    async run(input) {
      answering(() => responseOf(input));
      const reported: unknown[] = [];
      for (const provider_name of ['openai', 'anthropic'] as const) {
        const model = partial<ApiModel>({ provider_name, model_name: 'm', base_url: null, generation_kwargs: {} });
        const service = apiService('m', model, 10, { OPENAI_API_KEY: 'sk-key', ANTHROPIC_API_KEY: 'sk-key' });
        const client = new ApiClient(service, { timeoutMs: 1000, maxRetries: 0, signal: new AbortController().signal });
        reported.push(await client.ask([{ role: 'user', content: 'x' }]));
      }
      return reported;
    },
  },
];
