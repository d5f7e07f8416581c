// Type and registration of commands on runs. If a command fails, its error is shown as one notification. Commands send
// requests to the trainer over its socket, and start runs with the CLI. Commands do not update views, because all views
// read the run folder.
import * as vscode from 'vscode';
import { UserError } from '../common/user-error';
import type { Host } from './host-services';
import { notifyError } from './notifications';
import type { RunArgument } from './runs/run-picker';

/** A command on runs. `argument` is the run on which the user called the command; `all` contains all selected runs. */
export type Command = (host: Host) => (argument: RunArgument, all: RunArgument[]) => Promise<void>;

/** Registers commands on runs by their ids in package.json. */
export function registerCommands(host: Host, commands: Readonly<Record<string, Command>>): vscode.Disposable {
  const registered = Object.entries(commands).map(([id, command]) =>
    vscode.commands.registerCommand(id, guarded(host, command)),
  );
  return vscode.Disposable.from(...registered);
}

/** Wraps a command for registration: an error becomes one notification. */
export function guarded(host: Host, command: Command): (argument: unknown, nodes?: unknown) => Promise<void> {
  const run = command(host);
  return async (argument, nodes) => {
    try {
      // VS Code passes the tree's selected nodes to a command called from a menu, but not to a command called with a
      // key. The tree's key bindings in package.json therefore pass the text `selection`.
      const selected: unknown[] = argument === 'selection' ? host.tree.selected : Array.isArray(nodes) ? nodes : [];
      const all = selected.filter(isRunArgument);
      await run(argument !== 'selection' && isRunArgument(argument) ? argument : all[0], all);
    } catch (error) {
      await report(host, error);
    }
  };
}

/** Registers commands whose arguments are not runs, by id. */
export function registerActions(
  host: Pick<Host, 'log'>,
  actions: Readonly<Record<string, (argument: unknown, other?: unknown) => Promise<void>>>,
): vscode.Disposable {
  const registered = Object.entries(actions).map(([id, action]) =>
    vscode.commands.registerCommand(id, async (argument: unknown, other: unknown) => {
      try {
        await action(argument, other);
      } catch (error) {
        await report(host, error);
      }
    }),
  );
  return vscode.Disposable.from(...registered);
}

/** Shows an error as one notification. Errors other than UserError are also logged with their stack. */
export async function report({ log }: Pick<Host, 'log'>, error: unknown): Promise<void> {
  if (!(error instanceof UserError)) log.error(error instanceof Error ? error : String(error));
  void notifyError(messageOf(error));
}

/** Returns the message of a thrown value. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/**
 * Whether a command's argument identifies a run. VS Code passes a tree node to a command called from a view, and
 * undefined or an unrelated value to a command called from elsewhere.
 */
function isRunArgument(argument: unknown): argument is RunArgument {
  return typeof argument === 'string' || (typeof argument === 'object' && argument !== null && 'folder' in argument);
}
