// The context memory of the workspace: its texts are checked, because they become a part of every prompt.
import type { MemoryRequest } from '../../../envs/api/plugins/memory';
import { badValue, shown, type CallablePlugin } from './checked-values';
import type { PluginSet } from './plugin-set';
import type { Remember } from '../rollout/remembered-window';

/** Maximum characters of a memory's text. */
const longestText = 1_000_000;

/** Returns the function that calls the run's memory; undefined if the run has none. */
export function memoryOf(plugins: PluginSet): Remember | undefined {
  const path = plugins.pathsOf('memory').at(0);
  return path === undefined ? undefined : request => rememberWith(plugins.plugin(path), request);
}

/** Asks a memory for its text. @throws PluginError if it fails or returns anything but a text */
export async function rememberWith(plugin: CallablePlugin, request: MemoryRequest): Promise<string> {
  const called = { path: plugin.path, function: 'remember' };
  const text = await plugin.call('remember', request);
  if (typeof text !== 'string') throw badValue(called, `returned ${shown(text)}`, 'return a text, or an empty one');
  if (text.length > longestText)
    throw badValue(called, `returned ${text.length} characters`, `return at most ${longestText}`);
  return text;
}
