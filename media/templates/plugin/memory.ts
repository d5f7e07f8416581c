// A context memory: the actions and rewards of the earlier turns, one line per turn, without their states. Name this file
// in the configuration, workbench.plugins.memory: plugins/my_plugin.ts, with agent_proxy.context_window_mode:
// single_turn. A saved change applies from the next step on.
import { defineMemory } from 'ragen-workbench/api/plugins/memory';

export default defineMemory({
  name: 'my_plugin',

  // Returns the text that the model sees before the current turn.
  remember({ past, shown }) {
    const lines = past
      .slice(past.length - shown)
      .map(
        ({ turn, executed, reward }) => `Turn ${turn}: ${executed.join(', ') || 'no valid action'}, reward ${reward}`,
      );
    return lines.length === 0 ? '' : `Your last turns:\n${lines.join('\n')}`;
  },
});
