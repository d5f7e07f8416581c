// Decides whether a run fits into memory, from its planned peak and the memory that is available. Before a start, the
// terminal and the editor ask if it does not fit; the dashboard shows it during the run (event `memory_plan`). The
// available memory takes the limits of control groups into account (node/machine-memory.ts).
import { z } from 'zod';
import { gibibytes } from '../common/numbers';
import { UserError } from '../common/user-error';

/** Data of the event `memory_plan`; sizes in bytes. */
export const plannedMemorySchema = z.object({
  planned: z.number().describe('peak of the plan'),
  available: z.number().describe('memory that was available when the plan was made'),
  phase: z.string().describe('phase of the step with the peak'),
});
export type PlannedMemory = z.infer<typeof plannedMemorySchema>;

/** Whether a plan exceeds the available memory. */
export const exceedsMemory = ({ planned, available }: Pick<PlannedMemory, 'planned' | 'available'>): boolean =>
  planned > available;

/** States both sizes, as a clause without a full stop. */
export const formatShortage = ({ planned, available, phase }: PlannedMemory): string =>
  `the run may need ${gibibytes(planned)} in its ${phase}, but ${gibibytes(available)} is available`;

/** The start of a run was refused, because its plan exceeds the available memory. */
export class MemoryShortage extends UserError {
  constructor(readonly memory: PlannedMemory) {
    super(
      `memory: ${formatShortage(memory)}: lower es_manager.train.group_size, es_manager.train.env_groups or actor_rollout_ref.rollout.max_model_len, or start the run anyway with --yes`,
    );
  }
}
