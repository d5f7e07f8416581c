// The number of runs at a time: cores, threads and memory.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { jobsForCores, MemoryGate } from '../../../../extension/cli/sweep/capacity';
import type { SweepMember } from '../../../../extension/cli/sweep/sweep-plan';
import { partial } from '../../../support/partial';

const jobs = (cores: number, ...threads: number[]) => {
  const members = threads.map(count => partial<SweepMember>({ loaded: { config: { workbench: { threads: count } } } }));
  return jobsForCores({ members }, cores);
};

test('runs fill the cores with their threads', () => {
  expect(jobs(8, 2, 2)).toBe(4);
  expect(jobs(8, 2, 3)).toBe(2);
  expect(jobs(8, 0, 1)).toBe(1); // 0: one thread per core
  expect(jobs(2, 4)).toBe(1);
  expect(jobs(1000, 1)).toBe(64);
});

test('a run that does not fit waits for an earlier one', async () => {
  const gate = new MemoryGate(10);
  const admitted: string[] = [];
  const admit = (name: string, bytes: number) =>
    gate.admit(bytes).then(free => {
      admitted.push(name);
      return free;
    });
  const first = await admit('first', 6);
  const second = admit('second', 6);
  const third = admit('third', 1); // does not overtake
  await Promise.resolve();
  expect(admitted).toEqual(['first']);
  first();
  await Promise.all([second, third]);
  expect(admitted).toEqual(['first', 'second', 'third']);
});

test('all runs are admitted in order, together never above the budget unless one is alone', () =>
  fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 15 }), { maxLength: 12 }), async sizes => {
      const gate = new MemoryGate(10);
      const order: number[] = [];
      let [used, active] = [0, 0];
      await Promise.all(
        sizes.map(async (bytes, i) => {
          const free = await gate.admit(bytes);
          order.push(i);
          used += bytes;
          active++;
          expect(used <= 10 || active === 1).toBe(true);
          await Promise.resolve();
          used -= bytes;
          active--;
          free();
        }),
      );
      expect(order).toEqual([...sizes.keys()]);
    }),
  ));
