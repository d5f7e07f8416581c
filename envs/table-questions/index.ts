// Questions that need a calculator and a table: the model calls tools, reads their results, and answers with a number.
// The reward is 1 for the right number, 0.1 for a wrong number, and 0 for anything else. The table cannot be seen except
// through its tool.
import { z } from 'zod';
import { defineEnvironment } from '../api/environment';
import { Pcg64 } from '../api/random/pcg64';
import { callAction } from '../api/tools/call-action';
import { defineTool, ToolError } from '../api/tools/tool';
import { evaluate } from '../countdown/expression';
import { columns, drawQuestion, drawTable, kinds, type Question, type Row } from './table';

const config = z.strictObject({
  kinds: z
    .array(z.enum(kinds))
    .min(1)
    .default([...kinds])
    .describe('kinds of questions: arithmetic needs the calculator, lookup the table, total both'),
  rows: z.int().min(2).max(12).default(5).describe('rows of the table'),
  highest: z.int().min(2).max(10_000).default(99).describe('highest number in tables and questions'),
  wrong_score: z.number().default(0.1).describe('reward for a wrong number'),
});

export default defineEnvironment({
  name: 'table_questions',
  config,
  instruction: ({ kinds: asked }) =>
    asked.every(kind => kind === 'arithmetic')
      ? 'Answer the question with a number. Compute it with the tool.'
      : 'Answer the question with a number. The table of goods has a price and a stock per item; look them up with a tool.',

  create({ kinds: asked, rows, highest, wrong_score }) {
    let table: Row[] = [];
    let question: Question;
    let observation = '';
    /** Whether each cell that the question needs was looked up. */
    let found: boolean[] = [];
    let computed = false;
    let over = false;
    const uses = (kind: (typeof kinds)[number]) => asked.some(each => each === kind || each === 'total');

    const calculate = defineTool({
      description: 'Computes an arithmetic expression.',
      parameters: z.strictObject({ expression: z.string() }),
      parallel: true,
      run({ expression: text }) {
        const value = evaluate(text);
        if (value === undefined)
          throw new ToolError(
            `cannot compute ${JSON.stringify(text.slice(0, 80))}: use numbers, + - * / and parentheses`,
          );
        computed ||= Number(value) === question.answer;
        return String(value);
      },
    });

    const lookup = defineTool({
      description: 'Returns a cell of the table.',
      parameters: z.strictObject({ item: z.string(), column: z.enum(columns) }),
      parallel: true,
      run({ item, column }) {
        const row = table.find(each => each.item === item.trim().toLowerCase());
        if (!row)
          throw new ToolError(
            `there is no item ${JSON.stringify(item.slice(0, 80))}: the items are ${table.map(each => each.item).join(', ')}`,
          );
        const at = question.cells.findIndex(cell => cell.item === row.item && cell.column === column);
        if (at >= 0) found[at] = true;
        return String(row[column]);
      },
    });

    return {
      tools: { ...(uses('arithmetic') && { calculate }), ...(uses('lookup') && { lookup }) },

      reset({ seed }) {
        const random = new Pcg64(seed);
        table = drawTable(random, rows, highest);
        question = drawQuestion(random, asked[random.integers(0, asked.length)], table, highest);
        found = question.cells.map(() => false);
        observation = question.text;
        computed = over = false;
        return { observation };
      },

      step(action) {
        if (over) throw new Error('The episode is over.');
        over = true;
        const text = String(action).trim();
        const number = text === '' ? NaN : Number(text.replaceAll(',', ''));
        const valid = Number.isFinite(number);
        const success = valid && Math.abs(number - question.answer) < 1e-6;
        observation = success ? 'Right.' : `Wrong: the answer is ${question.answer}.`;
        return {
          observation,
          reward: success ? 1 : valid ? wrong_score : 0,
          terminated: true,
          truncated: false,
          info: { action_is_valid: valid, action_is_effective: valid, success },
        };
      },

      render: () => observation,

      solve() {
        if (over) return [];
        const answer = String(question.answer);
        const missing = question.cells.filter((_, i) => !found[i]);
        const looks = missing.map(cell => ({ name: 'lookup', arguments: { item: cell.item, column: cell.column } }));
        const plan = looks.length > 0 ? [callAction(looks)] : [];
        if (!question.expression || computed) return [...plan, answer];
        const cellValue = ({ item, column }: Question['cells'][number]) =>
          table.find(row => row.item === item)![column];
        const text = question.expression(question.cells.map(cellValue));
        return [...plan, callAction([{ name: 'calculate', arguments: { expression: text } }]), answer];
      },
    };
  },
});
