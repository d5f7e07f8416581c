// Reports, for `ragen doctor`, how this system can enforce the memory limits of environments. Creates a control group
// to test whether this user may create one.
import { platform } from 'node:os';
import { ControlGroup } from '../../../node/control-group';

export interface EnvironmentLimits {
  /**
   * Version of the control groups that can be created for environments; null if this user cannot create control groups.
   */
  control_group: 1 | 2 | null;
  /** Whether the memory of a process's children is measured. */
  children_measured: boolean;
  /** Whether all processes that an environment started can be found, including detached processes. */
  all_processes_found: boolean;
}

/** Tests control groups by creating one and removing it. */
export function environmentLimits(): EnvironmentLimits {
  const group = ControlGroup.create(2 ** 30);
  group?.remove();
  return {
    control_group: group?.version ?? null,
    children_measured: platform() !== 'win32',
    all_processes_found: group !== undefined,
  };
}

/** Formats the limits as rows [name, value] of the table that `ragen doctor` prints. */
export function environmentLimitRows({ control_group, children_measured }: EnvironmentLimits): [string, string][] {
  const means =
    control_group !== null
      ? `a control group (version ${control_group}) and a process monitor limit memory; child processes end with the environment`
      : children_measured
        ? 'a process monitor limits memory; detached child processes may survive, because no control group can be created'
        : 'the memory limit excludes child processes, because their memory cannot be measured on this system';
  return [['Environments', means]];
}
