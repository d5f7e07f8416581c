// The vocabularies of a policy and its teacher.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { requireSameVocabulary } from '../../../../extension/trainer/distillation/same-vocabulary';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ragen-vocabulary-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function model(name: string, vocab: unknown, added: unknown[] = []): string {
  const path = join(folder, name);
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, 'tokenizer.json'), JSON.stringify({ model: { vocab }, added_tokens: added }));
  return path;
}

test('equal vocabularies, and a teacher with further tokens, are accepted', () => {
  const policy = model('policy', { a: 0, b: 1 }, [{ id: 2, content: '<end>' }]);
  const teacher = model('teacher', { b: 1, a: 0, c: 3 }, [{ id: 2, content: '<end>' }]);
  requireSameVocabulary(policy, policy);
  requireSameVocabulary(policy, teacher);
  requireSameVocabulary(
    model('pieces', [
      ['a', -1],
      ['b', -2],
    ]),
    teacher,
  ); // a list of pieces with scores
});

test.each([
  ['another id', { a: 0, b: 2 }, '"b" is token 1 of the policy, but the teacher has it as token 2'],
  ['a missing token', { a: 0 }, '"b" is token 1 of the policy, but the teacher has no such token'],
])('%s is refused with the token, both ids and a remedy', (_, vocab, sentence) => {
  const [policy, teacher] = [model('own', { a: 0, b: 1 }), model('other', vocab)];
  expect(() => requireSameVocabulary(policy, teacher)).toThrow(
    `config: workbench.distillation.teacher is ${teacher}, whose vocabulary differs`,
  );
  expect(() => requireSameVocabulary(policy, teacher)).toThrow(sentence);
  expect(() => requireSameVocabulary(policy, teacher)).toThrow('use a teacher with the same tokenizer');
});
