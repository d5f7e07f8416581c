// The report of `ragen engine probe --json`: what a server of the Tinker API is, what it can do, and how fast it
// answers. When the user saves a server as an engine, the editor stores facts from the report with the engine's name.
import { z } from 'zod';

/** How a server reduces losses over the samples and over the tokens of a step. */
const reductionSchema = z.object({ samples: z.enum(['sum', 'mean']), tokens: z.enum(['sum', 'mean']) });

/** Results of the measurements. For these measurements, the server creates a model, which is unloaded afterwards. */
export const measuredSchema = z.object({
  model: z.string(),
  lora: z.object({ rank: z.int(), alpha: z.number() }),
  reduction: reductionSchema,
  keeps_versions: z.boolean().describe('whether a published version is not changed by later optimizer steps'),
  critic: z
    .object({ offered: z.boolean(), reason: z.string().nullable() })
    .nullable()
    .describe('whether a critic can be trained, or why not; null if this was not tried'),
  sampling: z.object({
    rows: z.int(),
    tokens: z.int(),
    seconds: z.number(),
    tokens_per_s: z.number(),
  }),
});

export const engineReportSchema = z.object({
  url: z.string(),
  encrypted: z.boolean().describe('whether the connection uses TLS; if true, the server’s certificate is valid'),
  server: z.object({ name: z.string(), version: z.string() }).nullable().describe('what the server calls itself'),
  key: z
    .enum(['accepted', 'not checked', 'none'])
    .describe(
      'accepted: the server accepted the key; not checked: a key was sent, but the server answers without a key too; none: no key was sent',
    ),
  models: z.array(z.object({ name: z.string(), max_context_length: z.int().nullable() })),
  round_trip_ms: z.number().describe('median of five requests'),
  clock_difference_s: z.number().nullable().describe("the server's clock minus this machine's; null if not known"),
  measured: measuredSchema.nullable().describe('null if nothing was measured'),
  not_measured: z.string().nullable().describe('why nothing was measured'),
  limits: z.array(z.object({ key: z.string(), supported: z.string(), reason: z.string() })),
  ignored: z.array(z.object({ key: z.string(), reason: z.string() })),
});
export type EngineReport = z.infer<typeof engineReportSchema>;
export type MeasuredEngine = z.infer<typeof measuredSchema>;
