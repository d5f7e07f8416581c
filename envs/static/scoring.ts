// Parses rows of the three data sets of RAGEN's static environment, and judges answers. Depending on the data set, a
// judge compares the answer's text, its first number or its first letter from A to D. As in RAGEN, the judges can be
// misled: in "ANSWER: B", the first letter from A to D is the A of "ANSWER".
import type { Row } from '../api/data-set';
import type { Question, Verdict } from '../metamathqa/question-episode';

export interface Scoring {
  /** Undefined if the row lacks a required column. */
  question(row: Row): Question | undefined;
  judge(given: string, answer: string): Verdict;
}

const punctuation = /[!-/:-@[-`{-~]/g;
const normalized = (text: string) => text.toLowerCase().replace(/\s+/g, '').replace(punctuation, '');

/**
 * Patterns that find the result in a solution, tried in this order. If no pattern matches, the last line is the result.
 */
const results = [
  /The answer is:?\s*([\s\S]*?)(?:\n|$)/,
  /Answer:?\s*([\s\S]*?)(?:\n|$)/,
  /Final answer:?\s*([\s\S]*?)(?:\n|$)/,
  /Therefore,\s*([\s\S]*?)(?:\n|$)/,
  /Thus,\s*([\s\S]*?)(?:\n|$)/,
];

export function resultOf(solution: string): string {
  const found = results.map(form => form.exec(solution)).find(match => match !== null);
  return (found ? found[1] : solution.trim().split('\n').at(-1)!).trim();
}

export function judgeText(given: string, answer: string): Verdict {
  const plain = normalized(given);
  return { right: plain === normalized(answer), valid: plain !== '' };
}

export function judgeNumber(given: string, answer: string): Verdict {
  const [said, right] = [given, answer].map(text => /\d+(?:\.\d+)?/.exec(text)?.[0]);
  const equal = said !== undefined && right !== undefined && Number(said) === Number(right);
  return { right: equal || normalized(given) === normalized(answer), valid: said !== undefined };
}

export function judgeLetter(given: string, answer: string): Verdict {
  const [said, right] = [given, answer].map(text => /[A-D]/.exec(text.toUpperCase())?.[0]);
  const equal = said !== undefined && right !== undefined ? said === right : normalized(given) === normalized(answer);
  return { right: equal, valid: said !== undefined };
}

const letter = (index: number) => String.fromCharCode(65 + index);

export const scorings: Readonly<Record<'metamathqa' | 'gsm8k' | 'mmlu', Scoring>> = {
  metamathqa: {
    question: ({ query, response }) =>
      typeof query === 'string' && typeof response === 'string'
        ? { text: query, answer: resultOf(response) }
        : undefined,
    judge: judgeText,
  },
  gsm8k: {
    question: ({ question, answer }) =>
      typeof question === 'string' && typeof answer === 'string' && answer.includes('####')
        ? { text: question, answer: answer.split('####')[1].trim().toLowerCase() }
        : undefined,
    judge: judgeNumber,
  },
  mmlu: {
    question: ({ question, choices, answer }) =>
      typeof question === 'string' && Array.isArray(choices) && Number.isInteger(answer)
        ? {
            text: [question, ...choices.map((choice, i) => `${letter(i)}. ${choice}`)].join('\n'),
            answer: letter(answer as number),
          }
        : undefined,
    judge: judgeLetter,
  },
};
