// What a command on runs is, and how commands are registered: an error becomes one notification. Commands reach the
// trainer through its link and start runs through the CLI. Their effects need no extra update, since all views read the
// run folder.
import * as vscode from 'vscode';
import { UserError } from '../common/user-error';
import type { Host } from './host-services';
import { notifyError } from './notifications';
import type { RunArgument } from './runs/run-picker';

/** A command on runs. `argument` is the run it was called on, `all` are the runs selected with it. */
export type Command = (host: Host) => (argument: RunArgument, all: RunArgument[]) => Promise<void>;

/** Registers commands of package.json by id. */
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
      // Key bindings of the tree pass `selection`, since VS Code passes nodes only to menus.
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

/** Shows an error as one notification. Errors that are not the user's are logged with their stack. */
export async function report({ log }: Pick<Host, 'log'>, error: unknown): Promise<void> {
  if (!(error instanceof UserError)) log.error(error instanceof Error ? error : String(error));
  void notifyError(messageOf(error));
}

/** The message of anything thrown. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** VS Code passes a view's commands its nodes, and other commands nothing or unrelated values. */
function isRunArgument(argument: unknown): argument is RunArgument {
  return typeof argument === 'string' || (typeof argument === 'object' && argument !== null && 'folder' in argument);
}
