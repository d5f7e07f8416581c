// A resolved configuration as YAML, with its keys sorted, so that two of them differ only where they differ.
import { stringify } from 'yaml';

/** The text of a configuration; `comments` stand above it. */
export function yamlOf(config: Readonly<Record<string, unknown>>, comments: readonly string[] = []): string {
  const form = { lineWidth: 120, aliasDuplicateObjects: false, flowCollectionPadding: false, sortMapEntries: true };
  return [...comments.map(line => `# ${line}\n`), stringify(config, form)].join('');
}
