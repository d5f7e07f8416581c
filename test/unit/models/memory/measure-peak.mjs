// A separate process that performs the steps of a run on the built engine worker and reports the peak memory up to the
// end of each phase: node measure-peak.mjs <engine-worker.cjs> <JSON of what to do>. The last line of its output is
// JSON.
import { createBirpc } from 'birpc';
import { Worker } from 'node:worker_threads';

const [workerFile, json] = process.argv.slice(2);
const {
  load,
  vocab,
  rollouts,
  prompt,
  length,
  updates,
  passTokens,
  scoreTokens,
  critic,
  kl,
  diagnosisTokens,
  lossMode,
  pictures,
} = JSON.parse(json);
const worker = new Worker(workerFile, { env: { ...process.env, ORT_DISABLE_TELEMETRY: '1' } });
const { $call: call } = createBirpc(
  {},
  { post: message => worker.postMessage(message), on: receive => void worker.on('message', receive), timeout: -1 },
);
worker.once('error', error => {
  throw error;
});

let state = 1;
const token = () => (state = (state * 48271) % 2147483647) % vocab;
/** Random ids; with pictures, `pictures.tokens` image tokens follow the first id. */
const ids = n => {
  const all = Array.from({ length: n }, token);
  return pictures ? all.fill(pictures.imageToken, 1, 1 + pictures.tokens) : all;
};
const shows = i => (pictures ? [{ at: 1, picture: pictures.names[i % pictures.names.length] }] : []);
const floats = value => new Float32Array(length).fill(value);
const samples = Array.from({ length: updates }, (_, i) => ({
  shows: shows(i),
  ids: Int32Array.from(ids(length)),
  mask: new Uint8Array(length).fill(1, 1),
  old_logprobs: floats(-Math.log(vocab)),
  ref_logprobs: floats(-Math.log(vocab)),
  advantages: floats(0.5),
  weights: floats(1 / (updates * length)),
}));
const budget = tokens => ({ maxTokens: tokens, maxRows: updates });
const peaks = {};
const peak = phase => (peaks[phase] = process.resourceUsage().maxRSS * 1024);

await call('load', load);
peak('loading');
const rows = Array.from({ length: rollouts }, (_, i) => ({
  row: String(i),
  append: ids(prompt),
  seed: i,
  shows: shows(i),
}));
const sampling = {
  ...{ temperature: 1, top_p: 1, top_k: 0, min_p: 0, repetition_penalty: 1, do_sample: true },
  ...{ max_new_tokens: length - prompt, stop_token_ids: [], stop: [], max_model_len: length },
};
await call('generate', rows, sampling);
peak('rollout');
if (diagnosisTokens > 0) {
  const many = n => Array.from({ length: diagnosisTokens / length }, () => Int32Array.from(ids(n)));
  const shown = many(length).map((_, i) => shows(i));
  await call('crossScore', many(length), many(length), { maxTokens: diagnosisTokens, maxRows: 64 }, 1, shown);
  peak('diagnosis');
}
await call('score', 'actor', samples, budget(scoreTokens), 1);
if (load.referenceFolder !== null) await call('score', 'reference', samples, budget(scoreTokens), 1);
if (critic) await call('values', samples, budget(passTokens));
peak('log-probs');
const optimizer = { lr: 1e-5, betas: [0.9, 0.999], eps: 1e-8, weight_decay: 0, grad_clip: 1 };
const loss = {
  ...{ clip_ratio_low: 0.2, clip_ratio_high: 0.28, clip_ratio_c: 3, entropy_coeff: 0.01, use_kl_loss: kl },
  policy_loss: { loss_mode: lossMode },
  ...{ kl_loss_coef: 0.01, kl_loss_type: 'k3', loss_agg_mode: 'token-mean', temperature: 1 },
};
if (critic) {
  const values = samples.map(sample => ({ ...sample, old_values: floats(0), returns: floats(1) }));
  await call(
    'updateCritic',
    values,
    budget(passTokens),
    { cliprange_value: 0.2, loss_agg_mode: 'token-mean' },
    optimizer,
  );
  peak('critic update');
}
for (let i = 0; i < 2; i++) await call('update', samples, budget(passTokens), loss, optimizer, i);
peak('policy update');
await worker.terminate();
console.log(JSON.stringify(peaks));
