// Identity of a configuration: sha256 over JSON with sorted keys and no spaces. Only the values affect the hash; the
// source files, the order of keys and the notation of values do not affect it.
import { createHash } from 'node:crypto';

/** Returns JSON with keys sorted by code unit and without white space; members with the value undefined are omitted. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value ?? null);
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  members.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member)}`).join(',')}}`;
}

/** Returns the sha256 (hex) of the configuration in canonical JSON. */
export function configHash(config: unknown): string {
  return createHash('sha256').update(canonicalJson(config)).digest('hex');
}
