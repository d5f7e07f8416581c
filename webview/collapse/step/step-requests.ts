// Requests the files of the selected step: matrix, prompt groups and gradients. Each answer becomes an event.
import { collapseFamilyAt, gradientsAt, groupsAt } from '../../../extension/protocol/collapse-page';
import { messageOf, type Host } from '../../shared/host';
import type { CollapseEvent } from '../reducer';
import type { StepFiles, WantedFiles } from '../state';
import { StepFetcher } from './step-fetcher';

export interface StepRequests {
  /** Requests the files that are neither displayed nor already requested. */
  ask(wanted: WantedFiles): void;
  /** Allows the next `ask` to repeat failed requests. */
  retry(): void;
  /** Clears cached answers because the run's folder has changed. */
  forget(): void;
}

export function stepRequests(host: Host, dispatch: (event: CollapseEvent) => void): StepRequests {
  const unreadable =
    (part: keyof StepFiles) =>
    ({ step }: { step: number }, error: unknown): void =>
      dispatch({ type: 'unreadable', part, step, message: messageOf(error) });
  const matrix = new StepFetcher(
    (key: NonNullable<WantedFiles['matrix']>) => host.request(collapseFamilyAt, key),
    ({ step }, family) => dispatch({ type: 'matrix', step, family }),
    unreadable('matrix'),
  );
  const groups = new StepFetcher(
    (key: NonNullable<WantedFiles['groups']>) => host.request(groupsAt, key),
    ({ step }, answer) => dispatch({ type: 'groups', step, groups: answer }),
    unreadable('groups'),
  );
  const gradients = new StepFetcher(
    (key: NonNullable<WantedFiles['gradients']>) => host.request(gradientsAt, key),
    ({ step }, record) => dispatch({ type: 'gradients', step, record }),
    unreadable('gradients'),
  );
  const all = [matrix, groups, gradients];
  return {
    ask(wanted) {
      matrix.ask(wanted.matrix);
      gradients.ask(wanted.gradients);
      groups.ask(wanted.groups);
    },
    retry: () => all.forEach(fetcher => fetcher.retry()),
    forget: () => all.forEach(fetcher => fetcher.forget()),
  };
}
