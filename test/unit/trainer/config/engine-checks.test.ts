// Rules of engines: what the engine on this machine cannot do is refused by key, value and remedy.
import { expect, test } from 'vitest';
import { load } from './presets';

test('max_staleness above 0 needs an engine that samples while it trains', () => {
  expect(() => load('base', 'workbench.max_staleness=2')).toThrow(
    'config: workbench.max_staleness is 2, but workbench.engine is local, which does not sample while it trains: set it to 0, or use a server (workbench.engine=tinker)',
  );
  expect(load('base', 'workbench.max_staleness=0').config.workbench.max_staleness).toBe(0);
  expect(() => load('base', 'workbench.max_staleness=-1')).toThrow('workbench.max_staleness is -1');
});
