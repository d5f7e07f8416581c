// Options that the commands on runs share.
import type { Command } from 'commander';
import { withPlace, type PlaceFlags } from '../jobs/job-options';
import { trustFlag } from '../../trainer/run/trusted-run';

export interface CommonFlags {
  json?: boolean;
  workspace?: string;
}

/**
 * Value of --trust-code: the SHA-256 of an unsigned manifest. With this option, the user allows the command to execute
 * the code that the manifest names.
 */
export interface TrustFlags {
  trustCode?: string;
}

export interface StartFlags extends CommonFlags, TrustFlags, PlaceFlags {
  configName?: string;
  config?: string;
  detach?: boolean;
  yes?: boolean;
}

export interface ResumeFlags extends CommonFlags, TrustFlags, PlaceFlags {
  checkpoint?: string;
  /** Same as `checkpoint`. */
  from?: string;
  fork?: boolean;
  discard?: boolean;
  acceptDamagedLogs?: boolean;
  detach?: boolean;
  yes?: boolean;
}

/** The option --yes, for commands that start a new run. */
export const yesOption = ['--yes', 'start the run although its plan exceeds the available memory'] as const;

/** Adds --workspace and --json. */
export const withCommon = (command: Command): Command =>
  command
    .option('--workspace <folder>', 'folder whose .ragen/runs contains the runs (default: the current folder)')
    .option('--json', 'print one JSON document on standard output, logs on standard error');

/** Adds --trust-code, for commands that execute the code named in an existing run's manifest. */
export const withTrust = (command: Command): Command =>
  command.option(
    `${trustFlag} <sha256>`,
    'SHA-256 of a manifest.json that your trainer did not sign; allows this command to execute the code that this manifest names',
  );

/**
 * Adds the options of `withCommon` and `withPlace`, the configuration overrides (`key=value` arguments), and `--config-name`,
 * `--config` and `--detach`.
 */
export const withConfig = (command: Command): Command =>
  withPlace(withCommon(command))
    .argument('[overrides...]', 'key=value, such as trainer.total_training_steps=20')
    .option('--config-name <name>', 'name of a configuration (see ragen presets)')
    .option('--config <file>', 'configuration file')
    .option(...yesOption)
    .option('--detach', 'exit as soon as the trainer is running, instead of following the run');
