// Entry point of a plug-in process, which the trainer starts. It builds plug-ins, loads their code and calls their
// functions, one request at a time. An endless loop, an exhausted memory or an exit ends only this process; the trainer
// starts another one. When the trainer exits, the channel closes and this process ends.
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { endAll } from '../../environments/runtime/end-all';
import { sourceLocation } from '../../environments/runtime/source-location';
import { faultOf } from '../../environments/runtime/threads/fault';
import type { PluginCode, PluginFault, PluginReply, PluginRequest } from '../../protocol/plugin-link';
import { PluginBuilder } from './plugin-builder';
import { loadPlugin, type Definition } from './plugin-definition';

const bundles = dirname(fileURLToPath(import.meta.url));
const builder = new PluginBuilder(join(bundles, 'type-check-worker.cjs'));
const loaded = new Map<string, { definition: Definition; code: PluginCode }>();
const send = process.send!.bind(process);

process.on('message', message => void answer(message as PluginRequest));
process.on('disconnect', () => endAll(0));
// A stray error ends the process like an error that nothing catches; the trainer reports its last line of output.
process.on('unhandledRejection', error => {
  throw error;
});

async function answer(request: PluginRequest): Promise<void> {
  const reply = await replyTo(request);
  try {
    send(reply);
  } catch (error) {
    // for example a function or a proxy in the returned value, which cannot be copied
    const { message } = error as Error;
    send({
      fault: { what: `returned a value that cannot be copied (${message})`, remedy: 'return plain data' },
    } satisfies PluginReply);
  }
}

async function replyTo(request: PluginRequest): Promise<PluginReply> {
  switch (request.method) {
    case 'build':
      return builder.build(request.source, request.checkTypes);
    case 'load':
      return load(request.code);
    case 'call': {
      const { definition, code } = loaded.get(request.version)!;
      const run = definition[request.function] as (...args: readonly unknown[]) => unknown;
      try {
        return { value: await run.call(definition, ...request.args) };
      } catch (error) {
        return { fault: located(error, code) };
      }
    }
  }
}

function load(code: PluginCode): PluginReply {
  try {
    const { definition, description } = loadPlugin(code);
    loaded.set(code.version, { definition, code });
    return { loaded: description };
  } catch (error) {
    return { fault: located(error, code) };
  }
}

/** Converts a thrown value into a fault with the location in the user's source. */
function located(error: unknown, code: PluginCode): PluginFault {
  const { what, remedy, stack } = faultOf(error);
  const at = sourceLocation(stack, code);
  return { what, remedy, ...(at !== undefined && { at }) };
}
