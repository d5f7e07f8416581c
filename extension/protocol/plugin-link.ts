// Messages between the trainer and a plug-in process. A message is a structured clone, so typed arrays keep their type
// and their bits. The process answers one request at a time. The trainer does not trust replies: it checks their form
// here, and the values of a plug-in where they are used (trainer/plugins).
import { isRecord } from '../common/json';
import type { SourceProblem } from './environment-link';

/** Kinds of plug-ins; a definition's `kind` is one of them. */
export const pluginKinds = [
  'estimator',
  'filter',
  'metric',
  'chart',
  'alarm',
  'loss',
  'mask',
  'memory',
  'report',
] as const;
export type PluginKind = (typeof pluginKinds)[number];

/** The functions that a definition of each kind must have. */
export const requiredFunctions: Readonly<Record<PluginKind, readonly string[]>> = {
  estimator: ['estimate'],
  filter: ['score'],
  metric: ['measure'],
  chart: [], // `lines`, or a list of keys (trainer/plugins/checked-chart.ts)
  alarm: ['bound'],
  loss: ['loss'],
  mask: ['weigh'],
  memory: ['remember'],
  report: ['report'],
};

/** The built code of a plug-in. */
export interface PluginCode {
  /** Absolute path of the plug-in's file. */
  source: string;
  /** First 16 hex digits of the SHA-256 of the bundled code. */
  version: string;
  /** Bundled code with its source map. */
  bundle: string;
  /** Path under which the bundle is compiled; no such file exists. */
  filename: string;
  /** The source map as JSON. */
  map: string;
  /** Absolute paths of all source files in the bundle. */
  files: string[];
}

/** What a plug-in's definition declares, without its functions. */
export interface PluginDescription {
  kind: PluginKind;
  name: string;
  /** Names of the functions of the definition. */
  functions: string[];
  /** All other properties of the definition, as plain data. */
  properties: Record<string, unknown>;
}

/** Why a request failed. The text of an error is `<file:line> <what>: <remedy>`. */
export interface PluginFault {
  what: string;
  remedy: string;
  /** `file:line` in the source; undefined if unknown. */
  at?: string;
}

export type PluginRequest =
  /** Bundles a file and, if asked, checks its types. */
  | { method: 'build'; source: string; checkTypes: boolean }
  /** Evaluates a bundle. Its functions can then be called by its version. */
  | { method: 'load'; code: PluginCode }
  | { method: 'call'; version: string; function: string; args: readonly unknown[] };

export type PluginReply =
  | { built: PluginCode; problems: SourceProblem[]; files: string[]; unchecked?: string }
  | { problems: SourceProblem[]; files: string[] }
  | { loaded: PluginDescription }
  | { value: unknown }
  | { fault: PluginFault };

/** Whether a message of the process is a reply. */
export function isPluginReply(message: unknown): message is PluginReply {
  if (!isRecord(message)) return false;
  const { fault, loaded, problems } = message;
  if ('value' in message) return true;
  if (isRecord(fault)) return typeof fault.what === 'string' && typeof fault.remedy === 'string';
  if (isRecord(loaded)) return typeof loaded.kind === 'string' && typeof loaded.name === 'string';
  return Array.isArray(problems);
}
