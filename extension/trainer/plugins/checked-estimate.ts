// Calls an estimator of the workspace and checks what it returns. The result has the form of a built-in estimator's result, with one
// finite number per sample, per turn or per token.
import type { Estimate, EstimatorBatch, EstimatorSettings } from '../../../envs/api/plugins/estimator';
import { badValue, checkedList, checkedNumbers, checkedRecord } from './checked-values';
import type { CallablePlugin, Called } from './checked-values';

const forms = 'return { samples }, { turns } or { tokens }';

/** Computes the advantages of a batch. @throws PluginError if the estimator fails or returns an invalid value */
export async function estimateWith(
  plugin: CallablePlugin,
  { scores, groups, episodes, masks, sequences }: EstimatorBatch,
  settings: EstimatorSettings,
): Promise<Estimate> {
  const batch = { scores, groups, episodes, masks, sequences };
  const value = await plugin.call('estimate', batch, settings);
  return checkedEstimate({ path: plugin.path, function: 'estimate' }, value, batch);
}

/** @throws PluginError that names the first invalid value */
export function checkedEstimate(
  called: Called,
  value: unknown,
  { scores, sequences }: Pick<EstimatorBatch, 'scores' | 'sequences'>,
): Estimate {
  const estimate = checkedRecord(called, value, forms);
  const given = ['samples', 'turns', 'tokens'].filter(form => form in estimate);
  if (given.length !== 1)
    throw badValue(called, `returned ${given.length === 0 ? 'no advantages' : given.join(' and ')}`, forms);
  if ('returns' in estimate)
    throw badValue(called, 'returned targets of a critic', 'leave out returns, because only gae trains a critic');
  const { samples, turns, tokens } = estimate;
  if (samples !== undefined) {
    const row = new Float64Array(scores.length);
    return { samples: checkedNumbers(called, samples, row, 'advantages', sample => `sample ${sample}`) };
  }
  if (turns !== undefined)
    return {
      turns: checkedList(called, turns, sequences.length, 'lists of advantages').map((row, i) =>
        checkedNumbers(
          called,
          row,
          new Float64Array(sequences[i].turnEnds.length),
          'advantages',
          turn => `turn ${turn} of sequence ${i}`,
        ),
      ),
    };
  return {
    tokens: checkedList(called, tokens, sequences.length, 'lists of advantages').map((row, i) =>
      checkedNumbers(
        called,
        row,
        new Float32Array(sequences[i].mask.length),
        'advantages',
        token => `token ${token} of sequence ${i}`,
      ),
    ),
  };
}
