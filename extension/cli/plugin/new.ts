// `ragen plugin new KIND NAME`: writes a new plug-in from the template of its kind, and the types that an editor needs.
// Existing files are never overwritten.
import { relative } from 'node:path';
import type { Command } from 'commander';
import { UserError } from '../../common/user-error';
import { writeEnvironmentTypes } from '../../node/environment-types';
import { installation } from '../../node/installation';
import { scaffoldPlugin } from '../../node/plugin-scaffold';
import { pluginKinds, type PluginKind } from '../../protocol/plugin-link';
import { answer } from '../output/answer';
import { withCommon, type CommonFlags } from '../options/run-options';
import { workspaceOf } from '../options/workspace';

export function addPluginNew(plugin: Command): void {
  withCommon(plugin.command('new').description('write a new plug-in from a template'))
    .argument('<kind>', `kind of the plug-in: ${pluginKinds.join(', ')}`)
    .argument('<name>', 'name of lower-case letters, digits and underscores')
    .action((kind: string, name: string, flags: CommonFlags) =>
      answer(flags, async () => {
        if (!isKind(kind))
          throw new UserError(`plugin new: ${kind} is no kind of plug-in: use ${pluginKinds.join(', ')}`);
        const workspace = workspaceOf(flags.workspace);
        const files = await scaffoldPlugin(installation.root, workspace, kind, name);
        await writeEnvironmentTypes(installation.root, workspace);
        const path = `plugins/${name}.ts`;
        const lines = [
          ...files.map(file => relative(workspace, file)),
          `Check it: ragen plugin check ${path}`,
          `Use it: ${usage[kind](path)}`,
        ];
        return { document: { kind, name, files, use: usage[kind](path) }, plainText: lines.join('\n') };
      }),
    );
}

const isKind = (kind: string): kind is PluginKind => (pluginKinds as readonly string[]).includes(kind);

/** The override that uses a plug-in. */
const usage: Readonly<Record<PluginKind, (path: string) => string>> = {
  estimator: path => `algorithm.adv_estimator=${path}`,
  filter: path => `actor_rollout_ref.rollout.rollout_filter_metric=${path}`,
  metric: path => `workbench.plugins.metrics=[${path}]`,
  chart: path => `workbench.plugins.charts=[${path}]`,
  loss: path => `actor_rollout_ref.actor.policy_loss.loss_mode=${path}`,
  mask: path => `workbench.credit_mask=${path}`,
  memory: path => `workbench.plugins.memory=${path} agent_proxy.context_window_mode=single_turn`,
  report: path => `ragen report <run> --with ${path}`,
  alarm: path => `workbench.plugins.alarms=[${path}]`,
};
