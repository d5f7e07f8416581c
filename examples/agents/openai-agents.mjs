// Plays a frozen lake with the OpenAI Agents SDK. The exit code says whether the goal was reached.
import { Agent, run, setTracingDisabled, user } from '@openai/agents';
import { Lake, task } from './lake.mjs';

setTracingDisabled(true);
const agent = new Agent({ name: 'Walker', instructions: task, model: 'policy' });
const lake = new Lake(Number(process.env.RAGEN_SEED ?? 1));
let history = [];
for (let turn = 0; turn < 5 && !lake.over; turn++) {
  const result = await run(agent, [...history, user(lake.message())]);
  history = result.history;
  lake.play(result.finalOutput ?? '');
}
process.exit(lake.solved ? 0 : 1);
