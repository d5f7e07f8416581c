// An environment with tools: executes the tool calls of an action, and passes answers to the environment's `step`. The
// results of the calls are in the order of the calls. Consecutive calls of parallel tools run at the same time; every
// other call runs alone. A failure that the model can correct is the call's result: an unreadable call, an unknown tool,
// wrong arguments, a time limit, too many calls, or a ToolError. Any other error ends the episode.
import type { Environment, StepResult } from '../../../../envs/api/environment';
import { callsOf, isReadable, type ToolCall, type WrittenCall } from '../../../../envs/api/tools/call-action';
import { appendAll } from '../../../common/lists';
import { defaultToolLimits, type ToolSettings } from '../../../protocol/tool-link';
import type { ToolCallRecord } from '../../../run-data/tool-call';
import { badValue } from '../threads/fault';
import { isNotPlain, plainValue, shown } from '../worker/returned-values';
import type { CallableTool } from './declared-tools';

// Saved when this file is loaded, because environment code may replace the globals.
const { setTimeout, clearTimeout } = globalThis;
const now = performance.now.bind(performance);

/** The settings of environments that no configuration names. */
export const defaultToolSettings: ToolSettings = { ...defaultToolLimits, servers: {} };

/** The result of a step; `calls` is present if the action consisted of tool calls. */
export interface ToolStep extends StepResult {
  calls?: ToolCallRecord[];
}

/** Steps that this file has returned. A step of environment code may have a property `calls` of its own. */
const toolSteps = new WeakSet<object>();

/** Returns the records of the tool calls of a step; undefined if the action was an answer. */
export const callsIn = (step: object): ToolCallRecord[] | undefined =>
  toolSteps.has(step) ? (step as ToolStep).calls : undefined;

/**
 * Returns an environment that executes tool calls.
 * @param toolsOfEpisode returns the tools of the episode that was reset last
 */
export function withTools(
  environment: Environment,
  toolsOfEpisode: () => ReadonlyMap<string, CallableTool>,
  settings: ToolSettings = defaultToolSettings,
): Environment {
  let used = 0;
  let over = false;
  return {
    ...(environment.render && { render: mode => environment.render!(mode) }),
    ...(environment.solve && { solve: () => environment.solve!() }),
    ...(environment.close && { close: () => environment.close!() }),
    ...(environment.state && { state: form => environment.state!(form) }),
    ...(environment.score && { score: turn => environment.score!(turn) }),
    ...(environment.scoreEpisode && { scoreEpisode: episode => environment.scoreEpisode!(episode) }),
    reset(options) {
      used = 0;
      over = false;
      return environment.reset(options);
    },
    step(action) {
      const calls = callsOf(action);
      if (!calls) return environment.step(action);
      if (over) throw new Error('The episode is over.');
      const allowed = Math.max(0, Math.min(settings.max_calls_per_turn, settings.max_calls - used));
      used += Math.min(calls.length, allowed);
      return new ToolTurn(toolsOfEpisode(), settings).run(environment, calls, allowed).then(step => {
        over = step.terminated || step.truncated;
        toolSteps.add(step);
        return step;
      });
    },
  };
}

/** The text of a call's result, and whether it reports a failure. */
type Result = Pick<ToolCallRecord, 'result' | 'error'>;

/** Executes the calls of one turn. The time limit applies to all calls of the turn together. */
class ToolTurn {
  private readonly ended = new AbortController();
  private readonly deadline: Promise<'late'>;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly tools: ReadonlyMap<string, CallableTool>,
    private readonly settings: ToolSettings,
  ) {
    this.deadline = new Promise(resolve => {
      this.timer = setTimeout(() => {
        this.ended.abort();
        resolve('late');
      }, settings.timeout_ms);
    });
  }

  /** @param allowed number of calls that the limits allow; later calls are not executed */
  async run(environment: Environment, calls: readonly WrittenCall[], allowed: number): Promise<ToolStep> {
    const records: ToolCallRecord[] = [];
    try {
      const play = async (call: WrittenCall, index: number): Promise<ToolCallRecord> =>
        index < allowed ? this.recordOf(call) : this.refused(call, tooMany(calls.length, this.settings));
      for (let first = 0; first < calls.length; first = records.length) {
        const group = calls.slice(first, this.groupEnd(calls, first));
        appendAll(records, await Promise.all(group.map((call, i) => play(call, first + i))));
      }
    } finally {
      clearTimeout(this.timer);
      this.ended.abort();
    }
    const outcome = (await environment.afterCalls?.()) ?? {};
    const done = records.filter(({ error }) => !error).length;
    return {
      observation: records.map(({ name, result }) => `${name || 'call'}: ${result}`).join('\n'),
      reward: 0,
      terminated: false,
      truncated: false,
      ...outcome,
      info: { action_is_valid: done === records.length, action_is_effective: done > 0, ...outcome.info },
      calls: records,
    };
  }

  /** Returns the end of the group of calls that run at the same time as call `first`. */
  private groupEnd(calls: readonly WrittenCall[], first: number): number {
    const isParallel = (call: WrittenCall) => !isReadable(call) || (this.tools.get(call.name)?.parallel ?? true);
    let end = first + 1;
    if (isParallel(calls[first])) while (end < calls.length && isParallel(calls[end])) end++;
    return end;
  }

  private async recordOf(call: WrittenCall): Promise<ToolCallRecord> {
    if (!isReadable(call)) return this.refused(call, call.problem);
    const tool = this.tools.get(call.name);
    if (!tool)
      return this.refused(
        call,
        `there is no tool ${shown(call.name)}: use one of ${[...this.tools.keys()].join(', ')}`,
      );
    if (!isPlain(call.arguments)) return this.refused(call, 'the arguments are nested too deep or too long');
    const checked = tool.check(call.arguments);
    if ('problem' in checked) return this.refused(call, `${call.name} was not executed: ${checked.problem}`);
    if (this.ended.signal.aborted) return this.refused(call, `${call.name} was not executed: ${this.late}`);
    const start = now();
    const result = await this.resultOf(call, tool, checked.args);
    return this.record(call, result, Math.round(now() - start));
  }

  /** Runs a call until the deadline. Rejects only with errors that are not meant for the model. */
  private async resultOf(call: ToolCall, tool: CallableTool, args: Record<string, unknown>): Promise<Result> {
    const running = (async () => tool.run(args, { signal: this.ended.signal }))();
    running.catch(() => undefined); // a call that is late may fail later
    try {
      const returned = await Promise.race([running.then(value => ({ value })), this.deadline]);
      if (returned === 'late' && tool.late) throw tool.late(this.settings.timeout_ms);
      if (returned === 'late') return { result: `Error: ${call.name} did not return: ${this.late}.`, error: true };
      return { result: textOf(call.name, returned.value), error: false };
    } catch (error) {
      if (!isToolError(error)) throw error;
      return { result: `Error: ${error.message}`, error: true };
    }
  }

  private get late(): string {
    return `the time limit of ${this.settings.timeout_ms} ms for the calls of a turn was reached`;
  }

  private refused(call: WrittenCall, problem: string): ToolCallRecord {
    return this.record(call, { result: `Error: ${problem.replace(/\.$/, '')}.`, error: true }, 0);
  }

  private record(call: WrittenCall, { result, error }: Result, ms: number): ToolCallRecord {
    const { max_result_characters: most } = this.settings;
    const given = isReadable(call) && isPlain(call.arguments) ? call.arguments : {};
    return {
      name: isReadable(call) ? call.name.slice(0, longestName) : '',
      arguments: given,
      result: result.length > most ? `${result.slice(0, most)}\n[${result.length - most} more characters]` : result,
      error,
      ms,
    };
  }
}

const longestName = 64;

const tooMany = (written: number, { max_calls_per_turn, max_calls }: ToolSettings): string =>
  written > max_calls_per_turn
    ? `a turn may have at most ${max_calls_per_turn} tool calls: call fewer tools in one turn`
    : `an episode may have at most ${max_calls} tool calls: answer without further calls`;

/** Converts what a tool returned to the text that the model sees. */
function textOf(name: string, returned: unknown): string {
  if (typeof returned === 'string') return returned;
  if (returned === undefined) return 'done';
  try {
    return JSON.stringify(plainValue(returned));
  } catch (error) {
    if (!isNotPlain(error)) throw error; // the error comes from a getter in the value
    throw badValue(`returned an invalid result from the tool ${name}: ${error.message}`, 'return a text or plain data');
  }
}

function isPlain(args: Record<string, unknown>): boolean {
  try {
    plainValue(args);
    return true;
  } catch {
    return false;
  }
}

/** Compares names instead of classes, because a bundle may contain its own copy of ToolError. */
const isToolError = (error: unknown): error is Error => error instanceof Error && error.name === 'ToolError';
