import { expect, test } from 'vitest';
import { overridesProblem, splitOverrides } from '../../../../../extension/vscode/runs/start/overrides-line';

test.each([
  ['', []],
  ['  a=1   b.c=2 ', ['a=1', 'b.c=2']],
  ['a=[1, 2] b={x: 1, y: 2} c=3', ['a=[1, 2]', 'b={x: 1, y: 2}', 'c=3']],
  [`a="two words" 'b=single quoted'`, ['a=two words', 'b=single quoted']],
  [
    `es_manager.train.env_configs.tags=[Bandit,"Coord Lake"]`,
    [`es_manager.train.env_configs.tags=[Bandit,"Coord Lake"]`],
  ],
])('%s is split', (line, parts) => expect(splitOverrides(line)).toEqual(parts));

test('an invalid override is reported before anything is started', () => {
  expect(overridesProblem('')).toBeUndefined();
  expect(overridesProblem('trainer.total_training_steps=20 +a.b=1 ~c.d')).toBeUndefined();
  expect(overridesProblem('a=1 fast')).toBe(
    'fast is not an override: write key=value, such as trainer.total_training_steps=20',
  );
});
