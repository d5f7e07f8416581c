// A small tokenizer trained by the product on corpus.txt, with the pre-tokenizer and added tokens of the bundled tiny
// model. own.json in this folder is its tokenizer.json: trainBpe must reproduce own.json byte for byte, and the Python
// library reads it (make/tokenizer.py).
import { readFileSync } from 'node:fs';
import { trainBpe } from '../../../extension/trainer/sft/bpe';

export const corpus = readFileSync('test/golden/tokenizer/corpus.txt', 'utf8').split('\n');

const added = (special: boolean, ...contents: string[]) => contents.map(content => ({ content, special }));

export const ownTokenizer = (): object =>
  trainBpe(corpus, {
    vocabSize: 380,
    isolate: String.raw`\d|[_#√]|[OPGXS](?=[_#√OPGXS\n])| \|\| `,
    added: [
      ...added(true, '<|endoftext|>', '<|im_start|>', '<|im_end|>'),
      ...added(false, '<think>', '</think>', '<answer>', '</answer>'),
    ],
    minFrequency: 2,
  });

/** ChatML as in Qwen's templates, with a default system message. */
export const chatMl =
  "{% if messages[0].role != 'system' %}{{ '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}{% endif %}" +
  "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
