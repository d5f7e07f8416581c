// A chart of metrics that the run logs anyway: how much signal an update has. If the scores within groups no longer
// differ, or most groups are without variance, the policy learns nothing, even if its success is high.
import { defineChart } from 'ragen-workbench/api/plugins/chart';

export default defineChart({
  name: 'learning_signal',
  title: 'Learning signal',
  unit: 'share',
  explanation:
    'Shares of the groups that the filter kept, of groups without variance, and of tokens with a clipped ratio.',
  keys: ['rollout/filter_kept_ratio', 'rollout/zero_variance_ratio', 'actor/pg_clipfrac'],
});
