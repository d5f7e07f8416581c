// Hub data sets in environment configurations. If a value of an env_config is `hf://datasets/organisation/name`, the
// trainer downloads this data set before it loads the environment. The trainer then replaces the value with the path of
// the downloaded folder, so environments only read files. RAGEN's keys `dataset_path` and `dataset_name_or_path`
// contain names of data sets without `hf://datasets/`. Such a name is accepted if no file or folder has the same name.
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { EnvironmentSpec } from '../protocol/environment-link';
import { fetchHubDataSet, hubDataSet, type HubDataSet } from './hub-data-set';
import type { FetchOptions } from './hub-model';

/** RAGEN's keys whose values are data set names without `hf://datasets/`. */
const namesOfDataSets = new Set(['dataset_path', 'dataset_name_or_path']);
const plainName = /^[\w-][\w.-]*\/[\w-][\w.-]*(@[\w./-]+)?$/;

/** Returns the data set that the value of an env_config key names; undefined if the value names no data set. */
export function dataSetOf(key: string, value: unknown, workspace: string): HubDataSet | undefined {
  if (typeof value !== 'string') return undefined;
  const plain = namesOfDataSets.has(key) && plainName.test(value) && !existsSync(resolve(workspace, value));
  return hubDataSet(plain ? `hf://datasets/${value}` : value);
}

/**
 * Downloads missing data sets. Returns the specifications with the path of a local folder in place of each hub data
 * set.
 * @param report receives one line for each data set that must be downloaded
 * @throws UserError if a data set cannot be downloaded
 */
export async function withDataSets(
  specs: readonly EnvironmentSpec[],
  workspace: string,
  report: (line: string) => void,
  options: Pick<FetchOptions, 'client' | 'signal'> = {},
): Promise<EnvironmentSpec[]> {
  const found: EnvironmentSpec[] = [];
  for (const spec of specs) {
    const config = { ...spec.config };
    for (const [key, value] of Object.entries(config)) {
      const set = dataSetOf(key, value, workspace);
      if (!set) continue;
      let reported = false;
      config[key] = await fetchHubDataSet(set, {
        ...options,
        onProgress: ({ total }) => {
          if (!reported) report(`fetching the data set ${set.repo} (${Math.ceil(total / 1e6)} MB) for ${spec.tag}`);
          reported = true;
        },
      });
    }
    found.push({ ...spec, config });
  }
  return found;
}
