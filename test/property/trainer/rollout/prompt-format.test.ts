// Properties of the prompt formats for any answer: parsing never throws, reads back what follows a format, and takes
// time that grows linearly.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { describedParts, parseFormatted, promptFormats } from '../../../../extension/trainer/rollout/prompt-format';

const format = fc.constantFrom(...promptFormats);
const names = ['think', 'observation', 'reasoning', 'prediction', 'answer'];
const tags = names.flatMap(name => [`<${name}>`, `</${name}>`]);
const text = fc
  .array(fc.oneof(fc.constantFrom('a', ' ', '\n', '<', '>', '{"player":', '#_P', '1'), fc.string({ maxLength: 5 })))
  .map(parts => parts.join(''))
  .filter(parts => !tags.some(tag => parts.includes(tag)) && !parts.includes('<|im_'));
const space = fc.constantFrom('', ' ', '\n', ' \n\t');

describe('prompt formats', () => {
  it('read back each text of an answer that follows the format, trimmed', () => {
    fc.assert(
      fc.property(format, fc.array(text, { minLength: 4, maxLength: 4 }), space, (format, texts, gap) => {
        const [observation, reasoning, prediction, answer] = texts;
        const parts = describedParts(format);
        const inner = [
          ...(parts.includes('observation') ? [`<observation>${observation}</observation>`] : []),
          `<reasoning>${reasoning}</reasoning>`,
          ...(parts.includes('prediction') ? [`<prediction>${prediction}</prediction>`] : []),
        ].join(gap);
        const thought = parts.length > 0 ? inner : reasoning;
        const begin = format === 'no_think' ? '' : `<think>${thought}</think>${gap}`;
        expect(parseFormatted(`${gap}${begin}<answer>${answer}</answer>${gap}`, format)).toEqual({
          thought: format === 'no_think' ? null : thought.trim(),
          ...(parts.includes('observation') && { observation: observation.trim() }),
          ...(parts.includes('prediction') && { prediction: prediction.trim() }),
          answer: answer.trim(),
        });
      }),
    );
  });

  it('accept an answer in at most one of the formats of each form', () => {
    const any = fc.array(fc.oneof(fc.constantFrom(...tags), fc.constantFrom('a', ' '))).map(parts => parts.join(''));
    const sentences = promptFormats.slice(2, 5);
    fc.assert(
      fc.property(any, raw => {
        expect(sentences.filter(format => parseFormatted(raw, format)).length).toBeLessThanOrEqual(1);
      }),
      { numRuns: 300 },
    );
  });

  it('take linear time for an answer that repeats a tag', () => {
    const seconds = (repeats: number) => {
      const raw = '<think><observation>'.repeat(repeats) + '</observation>'.repeat(repeats);
      const start = performance.now();
      for (const each of promptFormats) parseFormatted(raw, each);
      return performance.now() - start;
    };
    seconds(1000);
    expect(seconds(100_000)).toBeLessThan(2000);
  });
});
