// The environments that come along for tools: their solvers solve every episode through the tools, wrong answers and
// wrong states earn nothing, and mistakes of a model are results that it can read.
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import fileSystem from '../../../envs/file-system/index';
import smallWeb from '../../../envs/small-web/index';
import tableQuestions from '../../../envs/table-questions/index';
import { callAction, callsOf, type ToolCall } from '../../../envs/api/tools/call-action';
import type { ConfigSchema, EnvironmentDefinition, StepResult } from '../../../envs/api/environment';
import { declaredTools } from '../../../extension/environments/runtime/tools/declared-tools';
import { callsIn, withTools } from '../../../extension/environments/runtime/tools/tool-environment';

/** An episode of an environment, with its tools. */
async function open<Schema extends ConfigSchema>(
  definition: EnvironmentDefinition<Schema>,
  config: object,
  seed: number,
) {
  const inner = definition.create(z.parse(definition.config, config));
  const tools = declaredTools(inner.tools);
  const environment = withTools(inner, () => tools);
  const { observation } = await environment.reset({ seed, member: 0, mode: 'train' });
  const call = async (...calls: ToolCall[]): Promise<string[]> =>
    callsIn(await environment.step(callAction(calls)))!.map(({ result }) => result);
  return { environment, task: observation as string, call };
}
const args = (name: string, given: Record<string, unknown> = {}): ToolCall => ({ name, arguments: given });

/** Plays the solver's first action in each turn, as demonstrations do. */
async function solved<Schema extends ConfigSchema>(
  definition: EnvironmentDefinition<Schema>,
  config: object,
  seed: number,
) {
  const { environment } = await open(definition, config, seed);
  const turns: (number | string)[] = [];
  let step: StepResult | undefined;
  while (!step?.terminated && turns.length < 10) {
    const [action] = (await environment.solve!())!;
    turns.push(action);
    step = await environment.step(action);
    for (const { error, result } of callsIn(step) ?? []) expect([error, result]).toEqual([false, result]);
  }
  return { turns, step: step! };
}

describe.each([
  ['arithmetic', tableQuestions, { kinds: ['arithmetic'] }, [1]],
  ['lookup', tableQuestions, { kinds: ['lookup'] }, [1]],
  ['total', tableQuestions, { kinds: ['total'] }, [2, 1]],
  ['find', fileSystem, { kinds: ['find'] }, [1]],
  ['read', fileSystem, { kinds: ['read'] }, [1]],
  ['edit', fileSystem, { kinds: ['edit'] }, [1]],
  ['tidy', fileSystem, { kinds: ['tidy'], files: 6 }, [2]],
  ['question', smallWeb, { kinds: ['question'] }, [1, 1]],
  ['order', smallWeb, { kinds: ['order'] }, [1, 1, 1, 4]],
] as const)('%s', (_, definition, config, calls) => {
  it.each([0, 1, 2, 3, 4, 5, 6, 7])('is solved through tools, seed %i', async seed => {
    const { turns, step } = await solved(definition as EnvironmentDefinition, config, seed);
    expect([step.reward, step.terminated, step.info.success]).toEqual([1, true, true]);
    expect(turns.map(action => callsOf(action)?.length).filter(count => count !== undefined)).toEqual(calls);
  });

  it('pays nothing for a wrong answer', async () => {
    const { environment } = await open(definition as EnvironmentDefinition, config, 1);
    const step = await environment.step('nonsense');
    expect([step.reward, step.terminated, step.info.success]).toEqual([0, true, false]);
  });
});

describe('questions', () => {
  it('pays a little for a wrong number and compares numbers, not texts', async () => {
    const { environment, task } = await open(tableQuestions, { kinds: ['arithmetic'] }, 5);
    expect(task).toMatch(/^What is \d+ [-+*] \d+\?$/);
    expect((await environment.step('1000001')).reward).toBe(0.1);
    const again = await open(tableQuestions, { kinds: ['arithmetic'] }, 5);
    const [, answer] = (await again.environment.solve!())!;
    expect((await again.environment.step(` ${answer}.0 `)).reward).toBe(1);
  });

  it('says why a call failed', async () => {
    const { call } = await open(tableQuestions, {}, 1);
    const [text, item, column] = await call(
      args('calculate', { expression: '2 + x' }),
      args('lookup', { item: 'moon', column: 'price' }),
      args('lookup', { item: 'moon', column: 'mass' }),
    );
    expect(text).toBe('Error: cannot compute "2 + x": use numbers, + - * / and parentheses');
    expect(item).toMatch(/^Error: there is no item "moon": the items are \w+(, \w+){4}$/);
    expect(column).toMatch(/^Error: lookup was not executed: the argument column is wrong/);
  });

  it('offers only the tools that its kinds need', () => {
    const names = (...kinds: string[]) =>
      Object.keys(tableQuestions.create(tableQuestions.config.parse({ kinds })).tools!);
    expect([names('arithmetic'), names('lookup'), names('total')]).toEqual([
      ['calculate'],
      ['lookup'],
      ['calculate', 'lookup'],
    ]);
  });
});

describe('file system', () => {
  it('stays inside its root', async () => {
    const { call } = await open(fileSystem, { kinds: ['find'] }, 1);
    const [outside, root, folder] = await call(
      args('read', { path: '/../../etc/passwd' }),
      args('list', { path: '../..' }),
      args('write', { path: '/docs', text: 'x' }),
    );
    expect(outside).toBe('Error: there is no file "/../../etc/passwd"');
    expect(root).toMatch(/^(\w+\/\n)*\w+\/$/);
    expect(folder).toMatch(/^(Error: "\/docs" is a folder|done)$/);
  });

  it('does not pay for a right answer if the files were damaged', async () => {
    const { environment, call } = await open(fileSystem, { kinds: ['read'] }, 2);
    const answer = (await environment.solve!())!.at(-1)!;
    expect(await call(args('write', { path: '/new.txt', text: '' }))).toEqual(['done']);
    expect((await environment.step(answer)).info.success).toBe(false);
  });

  it('undoes a move whose target is not possible', async () => {
    const { call } = await open(fileSystem, { kinds: ['find'] }, 1);
    await call(args('write', { path: '/a', text: 'kept' }), args('write', { path: '/b', text: '' }));
    const results = await call(
      args('move', { from: '/a', to: '/b/c' }),
      args('read', { path: '/a' }),
      args('move', { from: '/a', to: '/d/e' }),
    );
    expect(results).toEqual(['Error: "/b" is a file, not a folder', 'kept', 'done']);
    expect(await call(args('list', { path: '/d' }), args('read', { path: '/a' }))).toEqual([
      'e',
      'Error: there is no file "/a"',
    ]);
  });
});

describe('small web', () => {
  it('shows pages with links and a form, and forgets a form that was left', async () => {
    const { call, task } = await open(smallWeb, { kinds: ['order'] }, 3);
    expect(task).toMatch(/\nStart \(\/\)\nWelcome\.\n\[1\] People\n\[2\] Shop$/);
    const [shop, , field, form] = await call(
      args('follow', { link: 2 }),
      args('open', { path: '/order' }),
      args('fill', { field: 'count', text: ' 3 ' }),
      args('open', { path: '/order' }),
    );
    expect(shop).toMatch(/^Shop \(\/shop\)\nAll articles\./);
    expect(field).toBe('done');
    expect(form).toContain('count: 3');
    expect(
      await call(args('submit'), args('follow', { link: 9 }), args('follow', { link: 1 }), args('submit')),
    ).toEqual([
      'Error: fill in code, city first',
      'Error: this page has the links 1 to 1',
      expect.stringMatching(/^Start/) as string,
      'Error: this page has no form',
    ]);
    expect((await call(args('open', { path: 'order' })))[0]).toContain('count: (empty)');
  });

  it('ends the episode with an order, right or wrong', async () => {
    const { environment } = await open(smallWeb, { kinds: ['order'] }, 3);
    const fill = ['code', 'count', 'city'].map(field => args('fill', { field, text: '1' }));
    await environment.step(callAction([args('open', { path: '/order' })]));
    const step = await environment.step(callAction([...fill, args('submit')]));
    expect([step.reward, step.terminated, step.info.success]).toEqual([0, true, false]);
    expect(() => environment.step(callAction([args('submit')]))).toThrow('The episode is over.');
  });
});
