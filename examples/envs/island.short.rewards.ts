// Scores the answers of an episode on the island: short thoughts, and a walk without detours. A rewards file declares
// its components with default weights. If the file is saved during training, the next episodes use the new code.
import { defineRewards } from 'ragen-workbench/api/rewards';

export default defineRewards({
  // The values of all turns are summed, so a turn component is best a penalty: a bonus would reward long episodes.
  components: { wordiness: -0.02, directness: 0.5 },

  /** Called after each turn. `thought` is null if the answer does not follow the format. */
  score({ thought }) {
    return thought === null ? {} : { wordiness: thought.split(/\s+/).length / 10 };
  },

  /** Called once, when the episode is over. An unsolved episode has no value for this component. */
  scoreEpisode({ turns, success }) {
    const actions = turns.flatMap(({ executed }) => executed);
    return success ? { directness: 1 / actions.length } : {};
  },
});
