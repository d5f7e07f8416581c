// Schema of the part of `ragen doctor --json` that the editor displays.
import { z } from 'zod';

export const machineReportSchema = z.object({
  node: z.object({ version: z.string(), required: z.string(), fits: z.boolean() }),
  platform: z.string(),
  cpu: z.object({ model: z.string(), cores: z.number(), usable: z.number() }),
  memory: z.object({ total: z.number(), available: z.number(), limit: z.number().nullable() }),
  onnxruntime: z.object({
    version: z.string(),
    auto: z.string(),
    providers: z.array(
      z.object({
        provider: z.string(),
        known: z.boolean().describe('whether this build of onnxruntime supports the provider'),
        installed: z.boolean().describe('whether the library of the provider is installed'),
        self_check: z.object({ about: z.string(), faster: z.boolean() }).nullable(),
      }),
    ),
  }),
  disk: z.object({ folder: z.string(), free: z.number() }),
  folders: z.array(z.object({ path: z.string(), for: z.string(), problem: z.string().nullable() })),
  optional: z.array(z.object({ name: z.string(), found: z.string().nullable(), for: z.string() })),
});
export type MachineFacts = z.infer<typeof machineReportSchema>;
