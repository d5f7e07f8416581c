// Formats a resolved configuration as YAML with sorted keys, so that a diff shows only real differences.
import { stringify } from 'yaml';

/** Returns the YAML text of a configuration, preceded by `comments`. */
export function yamlOf(config: Readonly<Record<string, unknown>>, comments: readonly string[] = []): string {
  const form = { lineWidth: 120, aliasDuplicateObjects: false, flowCollectionPadding: false, sortMapEntries: true };
  return [...comments.map(line => `# ${line}\n`), stringify(config, form)].join('');
}
