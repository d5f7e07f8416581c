// Creates the context of an episode. The configuration determines which turns the model sees and on which tokens the
// model is trained.
import { contextMask } from '../../algorithms/context-mask';
import { UserError } from '../../common/user-error';
import { pythonTag } from '../../models/tokenizer/tool-syntax';
import { EpisodeContext } from './context-manager';
import type { PromptTokenizer } from './prompt-tokenizer';
import { ChatWindow, MemoryWindow, windowTurns, withoutOldestMessages, withoutOldestTurn } from './context-window';
import { builtInMemories } from './memories';
import { RememberedWindow } from './remembered-window';
import { maskRule } from './response-mask';
import { responsePrefix, type EpisodeTools } from './tool-protocol';
import { ToolWindow } from './tool-window';
import type { ContextSettings } from './rollout-request';

/**
 * Returns a context for `agent_proxy.context_window_mode`.
 * @param environment name of the environment; alfworld has a separate memory format in mode `single_turn`
 * @param tools the tools of the episode; undefined if the environment has none
 * @throws UserError if an environment with tools is to be played in mode `single_turn`
 */
export function episodeContext(
  tokenizer: PromptTokenizer,
  { agent_proxy, rollout, enable_response_mask, ragen, remember }: ContextSettings,
  system: string,
  environment: string,
  tools?: EpisodeTools,
): EpisodeContext {
  const { context_window_mode: mode, max_context_window } = agent_proxy;
  const prefix = responsePrefix(agent_proxy, { tools: tools?.tools });
  const turns = mode === 'full' ? Infinity : windowTurns(max_context_window);
  const shown = { system, prefix, protocol: agent_proxy, turns };
  if (tools && mode === 'single_turn')
    throw new UserError(
      `config: agent_proxy.context_window_mode is single_turn, but environment ${environment} has tools, and their results are messages of a chat: set it to full or limited_multi_turn`,
    );
  const memory = builtInMemories[environment === 'alfworld' ? 'alfworld' : 'simple'];
  const window = tools
    ? new ToolWindow(tokenizer, shown, tools)
    : mode === 'single_turn'
      ? remember
        ? new RememberedWindow(tokenizer, shown, environment, remember)
        : new MemoryWindow(tokenizer, shown, environment, memory)
      : new ChatWindow(tokenizer, shown, ragen ? withoutOldestMessages : withoutOldestTurn);
  return new EpisodeContext(tokenizer, window, {
    system,
    prefix,
    max_model_len: rollout.max_model_len,
    response_length: rollout.response_length,
    samplePerTurn: mode !== 'full',
    contextMask: contextMask(agent_proxy.context_mask ?? 'none'),
    mask: maskRule({ mode, enable_response_mask, ragen: ragen && !tools }, tokenizer.turnMarker),
    ...(tools?.syntax.calls === 'llama3' && { keep: [pythonTag] }),
  });
}
