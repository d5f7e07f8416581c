// `diagnostics/model.json` of the run folder of another trainer's run: the model under which its stored rollouts were
// scored, and the collapse metrics of each scored step. All diagnoses of a run are made with one model and one number of
// samples, because metrics of different models cannot be compared.
import { z } from 'zod';
import { runFiles } from './run-file-names';

export const modelScoringFile = `${runFiles.diagnostics}/model.json`;

export const modelScoringSchema = z.object({
  schema: z.literal(1),
  model: z.string().describe('name of the model that marks the diagnoses'),
  source: z.string().describe('absolute path of the model’s folder, or name of a hub model or bundled model'),
  samples: z.number().int().describe('maximum number of reasoning texts per family'),
  steps: z.record(
    z.string(),
    z.object({
      metrics: z.record(z.string(), z.number()).describe('metrics by their complete name'),
      note: z.string().optional().describe('why a family is missing, in one sentence'),
    }),
  ),
});
export type ModelScoring = z.infer<typeof modelScoringSchema>;
