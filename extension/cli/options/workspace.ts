// The workspace of a command, and the folders in which configurations are looked up.
import { join, resolve } from 'node:path';
import { installation } from '../../node/installation';

/** Returns the absolute path of the workspace: the given folder, or else the current directory. */
export const workspaceOf = (folder: string | undefined): string => resolve(folder ?? process.cwd());

/**
 * Returns the folders in which configurations are looked up: first the workspace's folder, then the folder of the
 * bundled presets.
 */
export const presetFolders = (workspace: string): string[] => [join(workspace, 'config'), installation.presets];

/**
 * Returns the folders in which sweeps are looked up by name: first the workspace's folder, then the folder of the
 * bundled sweeps.
 */
export const sweepFolders = (workspace: string): string[] => [join(workspace, 'config', 'sweeps'), installation.sweeps];
