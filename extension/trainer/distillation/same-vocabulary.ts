// Checks that two models have the same vocabulary, because a teacher scores the policy's token ids. Compares the tokens
// of the two tokenizer.json; the teacher may have further ones.
import { join } from 'node:path';
import { isRecord } from '../../common/json';
import { UserError } from '../../common/user-error';
import { readRegularSync } from '../../node/regular-file';

/**
 * Throws a UserError with the first token of the policy's model that has another id, or none, in the teacher's model.
 */
export function requireSameVocabulary(policyFolder: string, teacherFolder: string): void {
  const [policy, teacher] = [policyFolder, teacherFolder].map(idsOf);
  for (const [token, id] of policy) {
    const other = teacher.get(token);
    if (other === id) continue;
    const found = other === undefined ? 'has no such token' : `has it as token ${other}`;
    throw new UserError(
      `config: workbench.distillation.teacher is ${teacherFolder}, whose vocabulary differs from that of the policy's model: ${JSON.stringify(token)} is token ${id} of the policy, but the teacher ${found}: use a teacher with the same tokenizer, such as a larger model of the same family`,
    );
  }
}

/** Ids of all tokens of a model folder, by token. */
function idsOf(folder: string): Map<string, number> {
  const json: unknown = JSON.parse(readRegularSync(join(folder, 'tokenizer.json')).toString('utf8'));
  const { model, added_tokens: added } = isRecord(json) ? json : {};
  const vocab = isRecord(model) ? model.vocab : undefined;
  const ids = new Map<string, number>();
  if (Array.isArray(vocab))
    vocab.forEach((entry: unknown, id) => Array.isArray(entry) && ids.set(String(entry[0]), id));
  else if (isRecord(vocab))
    for (const [token, id] of Object.entries(vocab)) if (typeof id === 'number') ids.set(token, id);
  for (const token of Array.isArray(added) ? added : [])
    if (isRecord(token) && typeof token.id === 'number') ids.set(String(token.content), token.id);
  return ids;
}
