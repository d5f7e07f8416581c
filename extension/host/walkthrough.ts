// Ticks the walkthrough's steps by what the reader has really opened, in whatever way: a click in the Runs view is no command to the
// editor, and one that came before the walkthrough was ever shown went unheard. What was seen is remembered for all windows.
// The editor ticks a step when a context key of it *becomes* true; a key that is true as the walkthrough is first shown never ticks in that
// window. So keys are true for a moment only, each time that somebody may listen.
import * as vscode from 'vscode';
import type { RunStore } from './run-store';
import { traceScheme } from './traces/trace-uri';

/** Steps of package.json that are ticked by context keys, `ragen.seen.<step>`. */
const steps = ['machine', 'start', 'dashboard', 'traces', 'collapse'] as const;
type Step = (typeof steps)[number];

const memoryKey = 'ragen.walkthrough.seen';
/** Milliseconds after which a walkthrough that was just opened listens. */
const openingMs = 1000;

export class Walkthrough implements vscode.Disposable {
  private readonly subscriptions: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;

  /** `memory` is that of all windows. */
  constructor(
    private readonly store: RunStore,
    private readonly memory: vscode.Memento,
  ) {
    this.subscriptions = [
      store.onDidChange(() => this.store.runs.length > 0 && this.see('start')),
      vscode.window.tabGroups.onDidChangeTabs(({ opened, changed }) => {
        for (const { input } of opened) this.see(stepOf(input));
        if ([...opened, ...changed].some(isOfTheEditor)) this.tickSoon();
      }),
    ];
    for (const { input } of vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs)) this.see(stepOf(input));
    this.tickSoon();
  }

  dispose(): void {
    clearTimeout(this.timer);
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  private get seen(): readonly Step[] {
    const kept = this.memory.get<string[]>(memoryKey, []);
    return steps.filter(step => kept.includes(step));
  }

  private see(step: Step | undefined): void {
    const { seen } = this;
    if (step === undefined || seen.includes(step)) return;
    void this.memory.update(memoryKey, [...seen, step]);
    void tick(step);
  }

  private tickSoon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.seen.forEach(step => void tick(step)), openingMs);
  }
}

async function tick(step: Step): Promise<void> {
  for (const value of [true, false]) await vscode.commands.executeCommand('setContext', `ragen.seen.${step}`, value);
}

/** What a tab shows of the walkthrough's steps. The editor gives a page's kind a prefix of its own. */
function stepOf(input: unknown): Step | undefined {
  if (input instanceof vscode.TabInputText)
    return input.uri.scheme === traceScheme ? 'traces' : input.uri.scheme === 'ragen-doctor' ? 'machine' : undefined;
  if (!(input instanceof vscode.TabInputWebview)) return undefined;
  return (['dashboard', 'collapse'] as const).find(step => input.viewType.endsWith(`ragen.${step}`));
}

/** Pages of the editor's own, such as a walkthrough, tell nothing of themselves. */
const isOfTheEditor = ({ input }: vscode.Tab): boolean => input === undefined;
