// Completes a step of the walkthrough when the user opens the view to which the step belongs. VS Code's own completion
// events do not suffice, because they do not fire for clicks in the Runs view or before the walkthrough has been shown
// for the first time. Completed steps are stored for all windows. VS Code completes a step only if the step's context
// key changes to true while the walkthrough is open; a key that is already true has no effect. Each time a walkthrough
// may have been opened, the keys are therefore set to true for a short time only.
import * as vscode from 'vscode';
import type { Host } from './host-services';
import type { RunStore } from './runs/run-store';
import { traceScheme } from './traces/trace-uri';

/** Steps in package.json that are completed by context keys `ragen.seen.<step>`. */
const steps = ['machine', 'start', 'dashboard', 'traces', 'collapse'] as const;
type Step = (typeof steps)[number];

const memoryKey = 'ragen.walkthrough.seen';
/** Milliseconds until a newly opened walkthrough observes context keys. */
const openingMs = 1000;

/** Registers the listeners that complete the steps. */
export function registerWalkthrough(context: vscode.ExtensionContext, host: Host): void {
  context.subscriptions.push(new Walkthrough(host.store, context.globalState));
}

class Walkthrough implements vscode.Disposable {
  private readonly subscriptions: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;

  /** `memory` is the global state of all windows. */
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

/** Returns the walkthrough step that a tab completes. VS Code adds a prefix to a webview's view type. */
function stepOf(input: unknown): Step | undefined {
  if (input instanceof vscode.TabInputText)
    return input.uri.scheme === traceScheme ? 'traces' : input.uri.scheme === 'ragen-doctor' ? 'machine' : undefined;
  if (!(input instanceof vscode.TabInputWebview)) return undefined;
  return (['dashboard', 'collapse'] as const).find(step => input.viewType.endsWith(`ragen.${step}`));
}

/** Whether a tab shows one of VS Code's own pages, such as a walkthrough. Such a tab has no input. */
const isOfTheEditor = ({ input }: vscode.Tab): boolean => input === undefined;
