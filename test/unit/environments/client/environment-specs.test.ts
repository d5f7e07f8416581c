// The specification of a tag that runs a program: its folder is relative to the workspace.
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { environmentSpecs } from '../../../../extension/environments/client/environment-specs';

const builtIn = resolve(__dirname, '../../../../envs');
const configOf = (env_type: string, env_config: Record<string, unknown> | null) =>
  environmentSpecs(['Tag'], { Tag: { env_type, env_config } }, builtIn, '/work/space')[0].config;

test('the folder of a program is relative to the workspace', () => {
  expect(configOf('program', { command: ['node'] }).folder).toBe(resolve('/work/space'));
  expect(configOf('program', { folder: 'agent' }).folder).toBe(resolve('/work/space/agent'));
  expect(configOf('program', { folder: resolve('/else/where') }).folder).toBe(resolve('/else/where'));
  expect(configOf('program', { folder: 7 }).folder).toBe(7); // refused by the environment's schema
  expect(configOf('program', null).folder).toBe(resolve('/work/space'));
});

test('other configurations stay as they are', () => {
  expect(configOf('sokoban', { folder: 'agent' })).toEqual({ folder: 'agent' });
});
