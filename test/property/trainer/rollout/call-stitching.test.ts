// Stitching of arbitrary trees of calls: every sampled token is trained exactly once, the ids before a reply are the ids
// that the model saw, and the number of samples is the number of calls that do not extend the newest call of a sample.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { CallMessage, ModelCall } from '../../../../envs/api/model-calls';
import { plainSyntax } from '../../../../extension/models/tokenizer/tool-syntax';
import { CallContext } from '../../../../extension/trainer/rollout/call-context';
import { characterTokenizer, encodeText, turnEnd } from '../../../unit/trainer/rollout/scripted-rollout';

/** A step of a program: it continues an earlier call (by its index, modulo their number) or begins a conversation. */
const step = fc.record({
  continues: fc.option(fc.nat(), { nil: undefined }),
  text: fc.stringMatching(/^[a-z]{0,5}$/),
  reply: fc.stringMatching(/^ ?[a-z]{1,6} ?$/),
  trims: fc.boolean(),
  isCut: fc.boolean(),
});

interface Played {
  conversation: CallMessage[];
  continued: number | undefined;
  seen: number[];
  sampled: number[];
}

/** Plays the steps as a program does that keeps its own conversations. */
function play(steps: readonly (typeof step extends fc.Arbitrary<infer Value> ? Value : never)[]) {
  const context = new CallContext(characterTokenizer, {
    max_model_len: 100_000,
    response_length: 100,
    syntax: plainSyntax,
  });
  const played: Played[] = [];
  let row: number[] = [];
  steps.forEach(({ continues, text, reply, trims, isCut }, index) => {
    const continued = continues === undefined || index === 0 ? undefined : continues % index;
    const before = continued === undefined ? [] : played[continued].conversation;
    // The number makes each conversation new, because equal conversations are continuations of each other.
    const messages: CallMessage[] = [...before, { role: 'user', content: `${index} ${text}` }];
    const call: ModelCall = { messages, tools: [], stop: [] };
    const { append, fresh } = context.prompt(call)!;
    row = fresh ? append : [...row, ...append];
    const sampled = isCut ? encodeText(reply) : [...encodeText(reply), turnEnd];
    const logprobs = sampled.map((_, i) => -1 - index - i / 100);
    const seen = [...row];
    row = [...row, ...sampled];
    context.accept({ ids: sampled, logprobs, finish: isCut ? 'length' : 'stop' });
    const content = trims ? reply.trim() : reply;
    played.push({ conversation: [...messages, { role: 'assistant', content }], continued, seen, sampled });
  });
  return { samples: context.samples(), played };
}

it('trains each sampled token once, in the context in which it was sampled', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 12 }), steps => {
      const { samples, played } = play(steps);
      const turns = samples.flatMap(({ turns }, sample) => turns.map(turn => ({ ...turn, sample })));
      expect(turns.map(({ turn }) => turn).toSorted((a, b) => a - b)).toEqual(played.map((_, i) => i + 1));
      for (const { turn, span, sample } of turns) {
        const { seen, sampled } = played[turn - 1];
        const ids = Array.from(samples[sample].ids);
        expect(ids.slice(0, span[0])).toEqual(seen);
        expect(ids.slice(...span)).toEqual(sampled);
        expect(Array.from(samples[sample].logprobs.slice(...span))).toEqual(
          Array.from(Float32Array.from(sampled.map((_, i) => -turn - i / 100))),
        );
      }
      const trained = samples.reduce((sum, { mask }) => sum + mask.reduce((count, bit) => count + bit, 0), 0);
      expect(trained).toBe(played.reduce((sum, { sampled }) => sum + sampled.length, 0));
    }),
  );
});

it('begins a sample for each first call, and for each call after the first that continues the same call', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 12 }), steps => {
      const { samples, played } = play(steps);
      const extended = new Set<number>();
      let expected = 0;
      for (const { continued } of played) {
        if (continued === undefined || extended.has(continued)) expected++;
        if (continued !== undefined) extended.add(continued);
      }
      expect(samples).toHaveLength(expected);
    }),
  );
});

it('reuses the sampled ids of a reply that the program sends back', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 2, maxLength: 12 }), steps => {
      const { played } = play(steps);
      for (const { continued, seen } of played) {
        if (continued === undefined) continue;
        const before = [...played[continued].seen, ...played[continued].sampled];
        expect(seen.slice(0, before.length)).toEqual(before);
      }
    }),
  );
});
