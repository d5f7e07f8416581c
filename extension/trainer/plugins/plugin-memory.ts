// The context memory of the workspace: its texts are checked, because they become a part of every prompt.
import type { MemoryRequest } from '../../../envs/api/plugins/memory';
import { isRecord } from '../../common/json';
import { badValue, shown, type CallablePlugin } from './checked-values';
import type { PluginSet } from './plugin-set';
import type { Remember } from '../rollout/remembered-window';

/** Maximum characters of a memory's text. */
const longestText = 1_000_000;

/** Returns the function that calls the run's memory; undefined if the run has none. */
export function memoryOf(plugins: PluginSet): Remember | undefined {
  const path = plugins.pathsOf('memory').at(0);
  if (path === undefined) return undefined;
  return async request => {
    const plugin = plugins.plugin(path);
    return request.past.length === 0 && !remembersFirstTurn(plugin) ? '' : rememberWith(plugin, request);
  };
}

/** Whether a memory is asked about the first turn too. @throws PluginError for a value of `firstTurn` that is no boolean */
export function remembersFirstTurn({ path, description: { properties } }: CallablePlugin): boolean {
  const { firstTurn = false } = properties;
  if (typeof firstTurn === 'boolean') return firstTurn;
  throw badValue({ path, function: 'defineMemory' }, `was given firstTurn ${shown(firstTurn)}`, 'use true or false');
}

/** Asks a memory about a turn. @throws PluginError if it fails or returns an invalid value */
export async function rememberWith(plugin: CallablePlugin, request: MemoryRequest): ReturnType<Remember> {
  const called = { path: plugin.path, function: 'remember' };
  const value = await plugin.call('remember', request);
  const text = isRecord(value) ? value.message : value;
  if (typeof text !== 'string' || (text === '' && text !== value))
    throw badValue(
      called,
      `returned ${shown(value)}`,
      'return a text, which may be empty, or { message } with a text that is not empty',
    );
  if (text.length > longestText)
    throw badValue(called, `returned ${text.length} characters`, `return at most ${longestText}`);
  return typeof value === 'string' ? text : { message: text };
}
