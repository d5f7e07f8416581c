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
    return request.past.length === 0 && plugin.description.properties.firstTurn !== true
      ? ''
      : rememberWith(plugin, request);
  };
}

/** Asks a memory about a turn. @throws PluginError if it fails or returns an invalid value */
export async function rememberWith(plugin: CallablePlugin, request: MemoryRequest): ReturnType<Remember> {
  const called = { path: plugin.path, function: 'remember' };
  const value = await plugin.call('remember', request);
  const text = isRecord(value) ? value.message : value;
  if (typeof text !== 'string' || (text === '' && text !== value))
    throw badValue(called, `returned ${shown(value)}`, 'return a text, or an empty one, or { message } with a text');
  if (text.length > longestText)
    throw badValue(called, `returned ${text.length} characters`, `return at most ${longestText}`);
  return typeof value === 'string' ? text : { message: text };
}
