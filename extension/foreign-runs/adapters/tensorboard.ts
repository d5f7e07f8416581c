// Runs of which only TensorBoard event files are known: the curves of one folder of event files.
import { counted } from '../../common/numbers';
import type { Adapter } from '../adapter';
import { eventFolders, eventSource } from '../event-files';
import { onlyRun, stem } from '../peek';

export const tensorboard: Adapter = {
  id: 'tensorboard',
  find(source, { metrics = {} }) {
    const folders = [...eventFolders(source).keys()];
    const folder = onlyRun(source, 'TensorBoard', folders);
    if (folder === undefined) return Promise.resolve(null);
    return Promise.resolve({
      trainer: { name: 'TensorBoard' },
      name: stem(folder === '' ? source.root : folder),
      config: {},
      totalSteps: 0,
      found: [`metrics: ${counted(eventFolders(source).get(folder)!.length, 'event file')}`],
      missing: ['rollouts: TensorBoard files contain none'],
      rename: name => metrics[name] ?? name,
      metrics: [eventSource(source, folder, each => each === folder)],
      rollouts: () => Promise.resolve({ units: [] }),
    });
  },
};
