// Commands that clients send to a trainer, over its socket (trainer-server.ts) or through files (file-requests.ts).
import type { RunStatus } from '../../run-data/run-status-file';
import type { RunControl } from '../run/run-control';
import type { RequestedChange } from './pending-settings';

/** The run that a trainer serves. */
export interface ServedRun {
  id: string;
  token: string;
  control: RunControl;
  status(): RunStatus;
}

export interface RunCommands {
  pause(): RunStatus;
  resume(): RunStatus;
  stop(): RunStatus;
  checkpoint(): Promise<{ folder: string }>;
  /** @throws UserError if a change is not allowed */
  change(request: { values: Readonly<Record<string, unknown>>; checkOnly?: boolean }): RequestedChange;
}

/** Returns the commands of a run. Each command returns the reply to the client. */
export function runCommands({ control, status }: Pick<ServedRun, 'control' | 'status'>): RunCommands {
  const afterwards = (command: () => void) => (): RunStatus => {
    command();
    return status();
  };
  return {
    pause: afterwards(() => control.pause()),
    resume: afterwards(() => control.resume()),
    stop: afterwards(() => control.stop()),
    checkpoint: async () => ({ folder: await control.checkpoint() }),
    change: ({ values, checkOnly }) => control.change(values, checkOnly === true),
  };
}
