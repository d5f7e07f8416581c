// Plays a frozen lake with the Vercel AI SDK, as one conversation. The exit code says whether the goal was reached.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText } from 'ai';
import { Lake, task } from './lake.mjs';

const { OPENAI_BASE_URL: baseURL, OPENAI_API_KEY: apiKey, RAGEN_SEED: seed = '1' } = process.env;
const model = createOpenAICompatible({ name: 'local', baseURL, apiKey })('policy');
const lake = new Lake(Number(seed));
const messages = [];
for (let turn = 0; turn < 5 && !lake.over; turn++) {
  messages.push({ role: 'user', content: lake.message() });
  const { text, response } = await generateText({ model, system: task, messages });
  messages.push(...response.messages);
  lake.play(text);
}
process.exit(lake.solved ? 0 : 1);
