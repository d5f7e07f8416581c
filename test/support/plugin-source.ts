// The source of a plug-in that a test writes into its workspace.
import type { PluginKind } from '../../extension/protocol/plugin-link';

/** Returns the text of a plug-in's file. @param properties the properties of its definition besides the name, as code */
export function pluginSource(kind: PluginKind, name: string, properties: string): string {
  const define = `define${kind[0].toUpperCase()}${kind.slice(1)}`;
  return `import { ${define} } from 'ragen-workbench/api/plugins/${kind}';
export default ${define}({ name: '${name}', ${properties} });
`;
}
