// What a trainer and an environment process exchange about tools: the limits of calls, the servers that provide tools,
// and the tools that the model may call. The records of calls are in run-data/tool-call.ts.
import { maximum } from '../common/lists';
import { isRecord } from '../common/json';
import { isInfo, isText, longestText } from './environment-message-bounds';

/** A server of the Model Context Protocol: a program that is started, or a URL. */
export type ToolServer = {
  /** Whether the server is started once, or again for each episode. */
  per: 'run' | 'episode';
  /** Time limit of starting the server and of listing its tools, in milliseconds. */
  start_timeout_ms: number;
} & (
  | {
      command: string;
      args: string[];
      env: Record<string, string>;
      /** Names of variables that the program receives in addition to general variables, such as PATH. */
      pass_env: string[];
      url?: undefined;
    }
  | {
      url: string;
      headers: Record<string, string>;
      /** Names of the variables that contain the values of headers. */
      headers_env: Record<string, string>;
      command?: undefined;
    }
);

/** The limits of tool calls (`workbench.tools`), and the servers of a tag by name. */
export interface ToolSettings {
  max_calls_per_turn: number;
  max_calls: number;
  /** Time limit of the calls of one turn together, in milliseconds. */
  timeout_ms: number;
  max_result_characters: number;
  servers: Record<string, ToolServer>;
}

/** The limits that apply if no configuration sets others, as in play and checks. */
export const defaultToolLimits: Omit<ToolSettings, 'servers'> = {
  max_calls_per_turn: 8,
  max_calls: 64,
  timeout_ms: 10_000,
  max_result_characters: 4000,
};

/** Returns the time limit in milliseconds of a turn with tool calls, and of a reset that starts servers. */
export const longestTurnMs = ({ timeout_ms, servers }: ToolSettings): number =>
  maximum(
    Object.values(servers).map(({ start_timeout_ms }) => start_timeout_ms),
    timeout_ms,
  ) + 1000;

/** A tool, as the chat template shows it to the model. */
export interface ToolDescription {
  name: string;
  description: string;
  /** JSON schema of the arguments. */
  parameters: Record<string, unknown>;
}

/** Maximum number of tools of an environment. */
export const mostTools = 256;

/** Whether a value is a list of tools within bounds. */
export function areTools(tools: unknown): tools is ToolDescription[] {
  if (!Array.isArray(tools) || tools.length > mostTools) return false;
  return tools.every(
    tool => isRecord(tool) && isText(tool.name, 64) && isText(tool.description, longestText) && isInfo(tool.parameters),
  );
}
