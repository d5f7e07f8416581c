// Tags are found where the earlier regular expressions found them, in time linear in the text.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { between, thoughtAndAnswer, withAnswerTag } from '../../../extension/common/tagged-text';
import { parseResponse, reasoningText } from '../../../extension/trainer/rollout/turn-protocol';

const piece = fc.constantFrom(
  '<think>',
  '</think>',
  '<answer>',
  '</answer>',
  ' ',
  '\n',
  '\u2028',
  '\ufeff',
  'a',
  '<',
  '>',
);
const texts = fc.array(piece, { maxLength: 14 }).map(pieces => pieces.join(''));

it('thought and answer equal those of the regular expression', () => {
  fc.assert(
    fc.property(texts, text => {
      const groups = /<think>(?<thought>.*?)<\/think>\s*<answer>(?<answer>.*?)<\/answer>/s.exec(text)?.groups;
      expect(thoughtAndAnswer(text)).toEqual(groups ? { ...groups } : null);
    }),
    { numRuns: 20_000, seed: 3 },
  );
});

it('rewrites pairs of answer tags as the regular expression does', () => {
  fc.assert(
    fc.property(texts, text => {
      expect(withAnswerTag(text, 'ans')).toBe(text.replace(/<answer>(.*?)<\/answer>/gs, '<ans>$1</ans>'));
      expect(withAnswerTag(text)).toBe(text);
      const groups = /<think>(?<thought>.*?)<\/think>\s*<ans>(?<answer>.*?)<\/ans>/s.exec(
        text.replaceAll('answer>', 'ans>'),
      )?.groups;
      expect(thoughtAndAnswer(text.replaceAll('answer>', 'ans>'), 'ans')).toEqual(groups ? { ...groups } : null);
    }),
    { numRuns: 10_000, seed: 5 },
  );
});

it('the text between two tags equals that of the regular expression', () => {
  fc.assert(
    fc.property(texts, text => {
      expect(between(text, '<answer>', '</answer>')?.inner).toBe(/<answer>(.*?)<\/answer>/s.exec(text)?.[1]);
    }),
    { numRuns: 10_000, seed: 4 },
  );
  expect(between('<a>1</a><a>2</a>', '<a>', '</a>', 8)).toEqual({ inner: '2', end: 16 });
});

it.each([
  ['thoughts', '<think>'],
  ['thoughts that close', '<think></think>'],
  ['answers that begin', '</think><answer>'],
  ['blanks', '</think>          '],
])('a million characters of %s are parsed quickly', (_, repeated) => {
  const text = `<think>${repeated.repeat(1e6 / repeated.length)}`;
  const from = process.cpuUsage();
  parseResponse(text, { enable_think: true, action_sep: '||', max_actions_per_turn: 5 });
  reasoningText(text);
  const { user } = process.cpuUsage(from);
  expect(user / 1000).toBeLessThan(1000); // the regular expressions took minutes
});
