// A stand-in for a large Tinker server: it computes nothing, but takes the time that a server with given rates takes.
//   node test/bench/remote/simulated-server.mjs SETTINGS.json      prints {"url": …}, serves until its input closes
// Requests form one queue. Each takes its tokens divided by the rate, and no result is ready before the latency has
// passed. GET /stats returns the work done and when; the busy share of a phase is its work divided by its length.
// Replies are prepared texts, and requests are scanned instead of parsed, so that the process takes little CPU time.
// Small scoring requests, which only a client's probe sends, return other log-probs after each optimizer step. Samples do
// not depend on the step: the server is one that keeps published versions, so that runs may sample while they train.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { argv, cpuUsage, stdin, stdout } from 'node:process';

/**
 * Settings: rates in tokens per second (`sampled`, `scored`, `trained`), `latency_ms`, and `replies`: lists of token ids.
 * A request with seed s is answered by reply s modulo their number, cut to its max_tokens.
 */
const settings = JSON.parse(readFileSync(argv[2], 'utf8'));
const { replies, latency_ms: latency } = settings;
const archive = Buffer.from(settings.archive ?? '', 'base64');
/** Tokens per millisecond. */
const rates = Object.fromEntries(['sampled', 'scored', 'trained'].map(kind => [kind, settings[kind] / 1000]));

/** Log-probs as JSON, all of one width, so that a text with n of them is a prefix. */
const width = 18;
const manyLogprobs = Buffer.from(
  Array.from({ length: 4096 }, (_, i) => `-${((((i * 2654435761) % 4093) + 1) / 4096).toFixed(15).slice(0, 16)}`).join(
    ',',
  ) + ',',
);
const logprobs = (count, step = 0) => {
  if (step > 0)
    return Array(count)
      .fill(`-${(step % 97).toFixed(width - 5).slice(0, width - 2)}`)
      .join(',');
  const parts = [];
  for (let left = count; left > 0; left -= 4096) parts.push(manyLogprobs.subarray(0, Math.min(left, 4096) * width));
  return Buffer.concat(parts)
    .subarray(0, Math.max(0, count * width - 1))
    .toString('latin1');
};

/** Milliseconds since 1970, as in other processes. */
const now = () => performance.timeOrigin + performance.now();
/** Time at which the queue is empty. */
let freeAt = 0;
/** Results by request id: the time at which they are ready, their text, and the connection that waits. */
const results = new Map();
/** Ids in the order in which they become ready; ids before `next` are delivered. */
let queue = [];
let next = 0;
let count = 0;
const stats = {
  rows: 0,
  sampled: 0,
  scored: 0,
  trained: 0,
  sent_bytes: 0,
  received_bytes: 0,
  requests: 0,
  most_queued: 0,
};
/** Steps: for each publication, the busy milliseconds and the span of sampling, and of everything until the next. */
const steps = [];

function enqueue(kind, tokens, text) {
  const arrived = now();
  const work = kind === null ? 0 : tokens / rates[kind];
  freeAt = Math.max(arrived, freeAt) + work;
  const ready = Math.max(freeAt, arrived + latency);
  const id = String(++count);
  results.set(id, { ready, text });
  queue.push(id);
  stats.most_queued = Math.max(stats.most_queued, queue.length - next);
  const step = steps.at(-1);
  if (kind !== null) stats[kind] += tokens;
  if (step && kind === 'sampled') {
    stats.rows++;
    step.first ??= arrived;
    step.cpu_before ??= cpu();
    step.cpu_after = cpu();
    step.last = ready;
    step.sampling_ms += work;
  } else if (step) step.training_ms += work;
  return `{"future_id":"${id}","status":"pending","request_id":"${id}"${kind === null && text.model ? `,"model_id":"${text.model}"` : ''}}`;
}

setInterval(() => {
  const time = now();
  while (next < queue.length) {
    const result = results.get(queue[next]);
    if (result.ready > time) break;
    result.done = true;
    if (result.socket) deliver(queue[next], result);
    next++;
  }
  if (next > 8192) {
    queue = queue.slice(next);
    next = 0;
  }
}, 2);

function deliver(id, { socket, text }) {
  results.delete(id);
  send(socket, 200, typeof text === 'string' ? text : text.body);
}

/** `content` is ASCII text or a buffer. */
function send(socket, status, content) {
  stats.sent_bytes += content.length;
  const head = `HTTP/1.1 ${status} OK\r\ncontent-type: application/json\r\ncontent-length: ${content.length}\r\n\r\n`;
  if (typeof content === 'string') return socket.write(head + content, 'latin1');
  socket.write(head, 'latin1');
  socket.write(content);
}

const prepared = replies.map(tokens => ({ tokens, sequences: new Map() }));
function sequence(reply, most) {
  const { tokens, sequences } = prepared[reply];
  let text = sequences.get(most);
  if (text === undefined) {
    const ids = tokens.slice(0, most);
    const reason = ids.length < tokens.length ? 'length' : 'stop';
    text = `{"sequences":[{"stop_reason":"${reason}","tokens":[${ids.join(',')}],"logprobs":[${logprobs(ids.length)}]}],"prompt_logprobs":null}`;
    sequences.set(most, text);
  }
  return { text, tokens: Math.min(most, tokens.length) };
}

const numberAfter = (body, name, from = 0) => {
  const at = body.indexOf(name, from);
  return at < 0 ? NaN : Number.parseInt(body.toString('latin1', at + name.length, at + name.length + 16), 10);
};

/** Number of targets of each datum. Each has four tensors of that length. */
function lengths(body) {
  const found = [];
  for (let at = body.indexOf('"shape":['), k = 0; at >= 0; at = body.indexOf('"shape":[', at + 9), k++)
    if (k % 4 === 0) found.push(Number.parseInt(body.toString('latin1', at + 9, at + 20), 10));
  if (found.length > 0) return found;
  for (let at = body.indexOf('"shape": ['), k = 0; at >= 0; at = body.indexOf('"shape": [', at + 10), k++)
    if (k % 4 === 0) found.push(Number.parseInt(body.toString('latin1', at + 10, at + 21), 10));
  return found;
}

const outputs = body => {
  const counts = lengths(body);
  const step = body.length > probed ? 0 : optimizerSteps;
  const parts = counts.map(n => `{"logprobs":{"data":[${logprobs(n, step)}],"dtype":"float32","shape":[${n}]}}`);
  return {
    text: `{"loss_fn_output_type":"scalar","loss_fn_outputs":[${parts.join(',')}],"metrics":{}}`,
    tokens: counts.reduce((sum, n) => sum + n, 0),
  };
};

/** Gradient norm since the last optimizer step: Σ weights · advantages, for the small requests of a client's probe. */
let norm = 0;
const probed = 100_000;
let optimizerSteps = 0;

function answer(path, body, socket) {
  const reply = text => send(socket, 200, text);
  switch (path) {
    case 'healthz':
      return reply('{"status":"ok"}');
    case 'stats':
      return reply(JSON.stringify({ ...stats, cpu_ms: cpu(), open: results.size, steps }));
    case 'get_server_capabilities':
      return reply('{"supported_models":[{"model_name":"simulated"}]}');
    case 'create_session':
      return reply('{"type":"create_session","session_id":"session_1"}');
    case 'create_sampling_session':
      return reply('{"type":"create_sampling_session","sampling_session_id":"sampling_0"}');
    case 'client/config':
      return reply('{}');
    case 'telemetry':
      return reply('{"status":"accepted"}');
    case 'session_heartbeat':
      return reply('{"type":"session_heartbeat"}');
    case 'retrieve_future': {
      const id = /"request_id":\s*"(\d+)"/.exec(body.toString('latin1'))?.[1];
      const result = results.get(id);
      if (!result) return send(socket, 404, '{"detail":"Future not found"}');
      if (result.done) deliver(id, { socket, text: result.text });
      else result.socket = socket;
      return;
    }
    case 'asample': {
      const from = Math.max(0, body.indexOf('"sampling_params"'));
      const most = numberAfter(body, '"max_tokens":', from);
      const seed = numberAfter(body, '"seed":', from);
      const { text, tokens } = sequence((Number.isNaN(seed) ? count : seed) % replies.length, most);
      return reply(enqueue('sampled', tokens, text));
    }
    case 'forward': {
      const { text, tokens } = outputs(body);
      return reply(enqueue('scored', tokens, text));
    }
    case 'forward_backward': {
      const { text, tokens } = outputs(body);
      norm += body.length > probed ? 1 : gradient(JSON.parse(body.toString()));
      return reply(enqueue('trained', tokens, text));
    }
    case 'optim_step': {
      const text = JSON.stringify({ metrics: { 'skyrl.ai/grad_norm': Math.abs(norm) || 1 } });
      norm = 0;
      optimizerSteps++;
      return reply(enqueue(null, 0, text));
    }
    case 'create_model': {
      const model = `model_${++count}`;
      const created = { model_id: model, lora_config: { rank: 8, alpha: 32 }, type: 'create_model' };
      return reply(enqueue(null, 0, { model, body: JSON.stringify(created) }));
    }
    case 'save_weights_for_sampler':
      steps.push({ published: now(), sampling_ms: 0, training_ms: 0 });
      return reply(
        enqueue(
          null,
          0,
          `{"path":"tinker://model/v${steps.length}","type":"save_weights_for_sampler","sampling_session_id":"sampling_${steps.length}"}`,
        ),
      );
    case 'save_weights':
      return reply(enqueue(null, 0, `{"path":"tinker://model/weights/${++count}","type":"save_weights"}`));
    case 'unload_model':
    case 'load_weights':
      return reply(enqueue(null, 0, `{"type":"${path}"}`));
  }
  if (/^training_runs\/.*\/archive$/.test(path)) return send(socket, 200, archive);
  send(socket, 404, JSON.stringify({ detail: `no such request: ${path}` }));
}

const gradient = ({ forward_backward_input: { data } }) =>
  data.reduce(
    (sum, { loss_fn_inputs: { weights, advantages } }) =>
      sum + weights.data.reduce((all, w, t) => all + w * advantages.data[t], 0),
    0,
  );

function cpu() {
  const { user, system } = cpuUsage();
  return (user + system) / 1000;
}

const server = createServer(socket => {
  socket.setNoDelay(true);
  socket.on('error', () => undefined);
  let parts = [];
  let held = 0;
  /** Bytes of the request that is being received; Infinity until its head is complete. */
  let wanted = Infinity;
  socket.on('data', chunk => {
    parts.push(chunk);
    held += chunk.length;
    if (held < wanted && wanted < Infinity) return;
    let all = parts.length === 1 ? parts[0] : Buffer.concat(parts);
    for (;;) {
      const end = all.indexOf('\r\n\r\n');
      if (end < 0) {
        wanted = Infinity;
        break;
      }
      const head = all.toString('latin1', 0, end);
      const length = Number(/\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
      wanted = end + 4 + length;
      if (all.length < wanted) break;
      stats.requests++;
      stats.received_bytes += wanted;
      const path = head.slice(head.indexOf(' ') + 1, head.indexOf(' HTTP')).replace(/^\/(api\/v1\/)?/, '');
      answer(path, all.subarray(end + 4, wanted), socket);
      all = all.subarray(wanted);
      wanted = Infinity;
      if (all.length === 0) break;
    }
    parts = all.length > 0 ? [all] : [];
    held = all.length;
  });
});
server.listen(settings.port ?? 0, '127.0.0.1', () =>
  stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${server.address().port}` })}\n`),
);
stdin.resume();
stdin.on('end', () => process.exit(0));
