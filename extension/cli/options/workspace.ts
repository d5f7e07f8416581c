// The workspace of a command, and the folders in which configurations are looked up.
import { join, resolve } from 'node:path';
import { installation } from '../../node/installation';

/** Absolute path of the workspace: the given folder, else the current directory. */
export const workspaceOf = (folder: string | undefined): string => resolve(folder ?? process.cwd());

/**
 * Folders in which configurations are looked up: first the workspace's folder, then the folder of the bundled presets.
 */
export const presetFolders = (workspace: string): string[] => [join(workspace, 'config'), installation.presets];

/**
 * Folders in which sweeps are looked up by name: first the workspace's folder, then the folder of the bundled sweeps.
 */
export const sweepFolders = (workspace: string): string[] => [join(workspace, 'config', 'sweeps'), installation.sweeps];
