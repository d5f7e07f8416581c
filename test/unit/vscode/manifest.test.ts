// Consistency of package.json: every page is restored after a reload, every text key has a translation, every named
// file exists.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { contextOf } from '../../../extension/vscode/runs/run-format';
import type { RunSummary } from '../../../extension/protocol/page-state';
import type { RunStatus } from '../../../extension/run-data/run-status-file';

const text = readFileSync('package.json', 'utf8');
const { activationEvents, contributes } = JSON.parse(text) as {
  activationEvents: string[];
  contributes: {
    menus: Record<string, { command: string; when: string }[]>;
    walkthroughs: { steps: { media: { markdown: string }; description: string }[] }[];
    commands: { command: string }[];
  };
};
const words = JSON.parse(readFileSync('package.nls.json', 'utf8')) as Record<string, string>;
const sources = readdirSync('extension/vscode', { recursive: true, encoding: 'utf8' })
  .filter(name => name.endsWith('.ts'))
  .map(name => readFileSync(join('extension/vscode', name), 'utf8'));

it('each kind of page activates the extension when restored', () => {
  const kinds = sources.flatMap(source =>
    [...source.matchAll(/viewType(?: = |: )'([\w.]+)'/g)].map(([, kind]) => kind),
  );
  expect(kinds.length).toBeGreaterThan(5);
  expect(kinds.filter(kind => !activationEvents.includes(`onWebviewPanel:${kind}`))).toEqual([]);
});

it('each text key has a text, and no text is unused', () => {
  const used = [...text.matchAll(/"%([\w.]+)%"/g)].map(([, key]) => key);
  expect(used.filter(key => !(key in words))).toEqual([]);
  expect(Object.keys(words).filter(key => !used.includes(key))).toEqual([]);
});

it('each context key that completes a walkthrough step is set by the extension', () => {
  const declared = /const steps = \[(.*)\] as const/.exec(sources.find(source => source.includes('ragen.seen.')) ?? '');
  const steps = [...(declared?.[1] ?? '').matchAll(/'(\w+)'/g)].map(([, step]) => step);
  expect([...text.matchAll(/"onContext:ragen\.seen\.(\w+)"/g)].map(([, step]) => step)).toEqual(steps);
});

it('a row of the Runs view offers the commands that its run supports', () => {
  type More = Pick<RunSummary, 'archived' | 'trainer'> & Pick<RunStatus, 'episodes'>;
  const offered = (state: RunStatus['state'], more: More = {}) => {
    const { episodes, archived, trainer } = more;
    const context = contextOf({
      status: { state, episodes } as RunStatus,
      live: ['paused', 'running'].includes(state),
      archived,
      trainer,
    });
    const fits = ({ when }: { when: string }) => new RegExp(/viewItem =~ \/(.*)\//.exec(when)![1]).test(context);
    return new Set(contributes.menus['view/item/context'].filter(fits).map(({ command }) => command.slice(6)));
  };
  const episodes = { done: 1, of: 8 };
  expect(offered('paused')).not.toContain('archiveRuns'); // archiving would only hide it once it has ended
  expect(offered('stopped')).toContain('archiveRuns');
  expect(offered('stopped', { archived: true })).not.toContain('archiveRuns');
  expect(offered('stopped', { archived: true, episodes })).toContain('unarchiveRuns');
  expect(offered('finished')).toContain('resumeFromCheckpoint');
  expect(offered('finished', { episodes })).not.toContain('resumeFromCheckpoint');
  expect(offered('paused')).toContain('changeSettings');
  expect(offered('paused', { episodes })).not.toContain('changeSettings');
  expect(offered('paused', { episodes })).toContain('stop');
  const trainer = { name: 'verl', adapter: 'verl', source: '/runs/lake' };
  expect([...offered('stopped', { trainer })].sort()).toEqual(
    [...offered('finished', { trainer })].sort(), // nothing depends on a trainer of this product
  );
  for (const shown of ['followRun', 'openEpisodes', 'compareRuns', 'exportRun', 'deleteRuns', 'archiveRuns'])
    expect(offered('finished', { trainer })).toContain(shown);
  for (const hidden of ['pause', 'resume', 'stop', 'forkRun', 'evaluateRun', 'duplicateRun', 'changeSettings'])
    expect(offered('running', { trainer })).not.toContain(hidden);
  expect(offered('running', { trainer })).toContain('unfollowRun');
  expect(offered('stopped')).not.toContain('followRun');
});

it('each referenced command and each page of the walkthrough exists', () => {
  const commands = new Set(contributes.commands.map(({ command }) => command));
  const named = [...`${text}${JSON.stringify(words)}`.matchAll(/"?(?:command:|onCommand:)(ragen\.\w+)/g)].map(
    ([, id]) => id,
  );
  expect(named.filter(id => !commands.has(id))).toEqual([]);
  for (const { media } of contributes.walkthroughs.flatMap(({ steps }) => steps))
    expect(existsSync(media.markdown), media.markdown).toBe(true);
  for (const page of readdirSync('media/walkthrough').filter(name => name.endsWith('.md')))
    for (const [, picture] of readFileSync(join('media/walkthrough', page), 'utf8').matchAll(/!\[[^\]]+\]\(([^)]+)\)/g))
      expect(existsSync(join('media/walkthrough', picture)), picture).toBe(true);
});

/** Commands that the palette offers before the workspace has a run; every other command needs a run or a trace. */
const withoutRuns = [
  ...[
    'startQuickstart',
    'newRun',
    'startRun',
    'runSweep',
    'connectEngine',
    'engines',
    'doctor',
    'copyDoctorReport',
    'keepSecret',
  ],
  'attachRun',
  ...['newEnvironment', 'playEnvironment', 'checkEnvironment'],
  ...['startConfiguration', 'checkConfiguration', 'showResolvedConfiguration'],
];

it('the palette hides each command that needs a run until there is one', () => {
  const when = new Map(contributes.menus.commandPalette.map(entry => [entry.command.slice(6), entry.when]));
  const hidden = contributes.commands
    .map(({ command }) => command.slice(6))
    .filter(name => /ragen\.hasRuns|resourceScheme == ragen-trace/.test(when.get(name) ?? ''));
  const all = contributes.commands.map(({ command }) => command.slice(6)).sort();
  expect([...hidden, ...withoutRuns].sort()).toEqual(all);
});

it('the first view and the first step have one button, which starts the quickstart', () => {
  const buttons = (key: string) => [...words[key].matchAll(/^\[[^\]]*\]\(command:([^)]*)\)$/gm)].map(([, id]) => id);
  expect(buttons('welcome.start')).toEqual(['ragen.startQuickstart']);
  expect(buttons('walkthrough.start.description')).toEqual(['ragen.startQuickstart']);
});

it('the titles of the walkthrough fit into its list', () => {
  const titles = Object.entries(words).filter(([key]) => /^walkthrough\.(\w+\.)?title$/.test(key));
  expect(titles.length).toBeGreaterThan(5);
  expect(titles.filter(([, title]) => title.length > 24)).toEqual([]);
});
