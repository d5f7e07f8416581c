// Checks what a report of the workspace returns: a text, or a document whose blocks the renderers can write. Texts are
// limited in length. A text for the terminal loses control characters other than line breaks and tabs, because terminals
// execute them; the renderers of documents escape theirs.
import { z } from 'zod';
import type { ReportDocument, ReportedRunData } from '../../../envs/api/plugins/report';
import { badValue, shown, type CallablePlugin, type Called } from './checked-values';

/** Maximum characters of a text, and of a document as JSON. */
const longest = 1_000_000;

const index = z.int().min(0);
const blockSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('heading'), level: z.union([z.literal(2), z.literal(3)]), text: z.string() }),
  z.object({ kind: z.literal('paragraph'), text: z.string(), strong: z.boolean().optional() }),
  z.object({ kind: z.literal('list'), items: z.array(z.string()) }),
  z.object({ kind: z.literal('facts'), facts: z.array(z.tuple([z.string(), z.string()])) }),
  z
    .object({
      kind: z.literal('table'),
      heads: z.array(z.string()).min(1),
      rows: z.array(z.array(z.string())),
      numbers: z.array(index),
    })
    .refine(({ heads, rows }) => rows.every(({ length }) => length === heads.length), {
      error: 'a row has another number of cells than the head',
    })
    .refine(({ heads, numbers }) => numbers.every(column => column < heads.length), {
      error: 'numbers names a column that the head does not have',
    }),
  z.object({ kind: z.literal('charts'), charts: z.array(z.string().max(200)).max(100) }),
  z.object({ kind: z.literal('episode'), run: index, episode: index }),
]);
const documentSchema = z.object({ title: z.string().min(1).max(1000), blocks: z.array(blockSchema) });

/** Asks a report about runs. @throws PluginError if it fails or returns an invalid value */
export async function reportWith(
  plugin: CallablePlugin,
  runs: readonly ReportedRunData[],
): Promise<string | ReportDocument> {
  const called = { path: plugin.path, function: 'report' };
  const value = await plugin.call('report', runs);
  if (typeof value !== 'string') return checkedDocument(called, value, runs);
  requireLength(called, value.length);
  return value.replace(/(?![\n\t])\p{Cc}/gu, '');
}

function checkedDocument(called: Called, value: unknown, runs: readonly ReportedRunData[]): ReportDocument {
  const parsed = documentSchema.safeParse(value);
  if (!parsed.success) {
    const [{ path, message }] = parsed.error.issues;
    const what = path.length > 0 ? `a document with an invalid ${path.join('.')} (${message})` : shown(value);
    throw badValue(called, `returned ${what}`, 'return a text, or a document with a title and blocks');
  }
  requireLength(called, JSON.stringify(parsed.data).length);
  for (const block of parsed.data.blocks)
    if (block.kind === 'episode' && !runs.at(block.run)?.episodes.at(block.episode))
      throw badValue(
        called,
        `returned episode ${block.episode} of run ${block.run}, which the report does not have`,
        'return indices of the runs and of their episodes, from 0',
      );
  return parsed.data;
}

function requireLength(called: Called, length: number): void {
  if (length > longest) throw badValue(called, `returned ${length} characters`, `return at most ${longest} characters`);
}
