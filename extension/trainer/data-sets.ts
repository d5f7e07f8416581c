// Data sets of the hub that environments are configured with: each value `hf://datasets/organisation/name` of an env_config is fetched
// by the trainer, before the environment is loaded, and becomes the path of its folder. Environments read files alone.
// RAGEN's `dataset_path` and `dataset_name_or_path` name data sets without the scheme; that is understood where no file or folder has that name.
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { EnvironmentSpec } from '../protocol/environment-link';
import { fetchHubDataSet, hubDataSet, type HubDataSet } from './store/hub-data-set';
import type { FetchOptions } from './store/hub-model';

/** Keys of RAGEN's whose values name data sets without the scheme. */
const namesOfDataSets = new Set(['dataset_path', 'dataset_name_or_path']);
const plainName = /^[\w-][\w.-]*\/[\w-][\w.-]*(@[\w./-]+)?$/;

/** The data set that a value of an env_config stands for; undefined where it stands for none. */
export function dataSetOf(key: string, value: unknown, workspace: string): HubDataSet | undefined {
  if (typeof value !== 'string') return undefined;
  const plain = namesOfDataSets.has(key) && plainName.test(value) && !existsSync(resolve(workspace, value));
  return hubDataSet(plain ? `hf://datasets/${value}` : value);
}

/**
 * The specifications with folders in place of data sets of the hub, which are fetched where need be.
 * @param tell a line for each data set that has to be fetched
 * @throws UserError where one cannot be had
 */
export async function withDataSets(
  specs: readonly EnvironmentSpec[],
  workspace: string,
  tell: (line: string) => void,
  options: Pick<FetchOptions, 'client' | 'signal'> = {},
): Promise<EnvironmentSpec[]> {
  const found: EnvironmentSpec[] = [];
  for (const spec of specs) {
    const config = { ...spec.config };
    for (const [key, value] of Object.entries(config)) {
      const set = dataSetOf(key, value, workspace);
      if (!set) continue;
      let told = false;
      config[key] = await fetchHubDataSet(set, {
        ...options,
        onProgress: ({ total }) => {
          if (!told) tell(`fetching the data set ${set.repo} (${Math.ceil(total / 1e6)} MB) for ${spec.tag}`);
          told = true;
        },
      });
    }
    found.push({ ...spec, config });
  }
  return found;
}
