// Schema of `plugins/<version>/version.json` in a run folder: the description of a plug-in's stored code.
import { z } from 'zod';
import { keptEnvironmentSchema } from './environment-snapshot';

export const keptPluginSchema = keptEnvironmentSchema.extend({
  kind: z.string().describe('kind of the plug-in, such as estimator'),
});
export type KeptPlugin = z.infer<typeof keptPluginSchema>;
