// The preview's screenshots: page, theme, scenario and width, and the actions on the page before the screenshot.
import { atRest } from '../at-rest.mjs';

const charts = '.chart canvas';
/** CPU time of the page's main thread in ms, which does not depend on other load of the machine. */
const worked = async session =>
  (await session.send('Performance.getMetrics')).metrics.find(({ name }) => name === 'TaskDuration').value * 1000;

/** Opens a run of 100,000 steps again, then streams 20 lines per second for ten seconds. */
const large = async (tab, complain) => {
  const session = await tab.context().newCDPSession(tab);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  const before = await worked(session);
  await tab.reload();
  await tab.waitForFunction(() => performance.getEntriesByName('ragen.charts-drawn').length > 0);
  const opening = (await worked(session)) - before;
  await atRest(tab, { quietMs: 1000 }); // complete columns load after the overviews
  const rested = await worked(session);
  await tab.evaluate(async () => {
    const status = {
      state: 'running',
      total_steps: 200000,
      success: null,
      reward: null,
      tokens_per_s: null,
      eta_s: null,
    };
    const about = { id: 'r', name: 'r', folder: '/r', config_name: 'c', created: '', live: true };
    for (let step = 100001; step <= 100200; step++) {
      const line = { step, wall_s: step * 0.7 };
      for (const key of ['actor/entropy', 'critic/score/mean', 'actor/ppo_kl', 'actor/lr']) line[key] = Math.random();
      const run = { ...about, status: { ...status, step, phase: 'update', updated: '' } };
      window.previewSend('dashboard/lines', { run, lines: [line], events: [] });
      // eslint-disable-next-line no-restricted-syntax -- 20 lines a second are what is measured
      await new Promise(resolve => setTimeout(resolve, 50));
    }
  });
  const streaming = (await worked(session)) - rested;
  console.log(
    `100,000 steps of 60 metrics, main thread: opened in ${opening.toFixed(0)} ms, ${(streaming / 10).toFixed(0)} ms per second while 20 lines per second arrive`,
  );
  if (opening > 3000 || streaming > 8000)
    complain(`100,000 steps: ${opening.toFixed(0)} and ${streaming.toFixed(0)} ms`);
};
const hover = async tab => {
  const plot = tab.locator('.chart-plot').nth(1);
  await plot.hover({ position: { x: 160, y: 60 } });
};

/** Complains unless an element is completely on screen. */
const onScreen = async (tab, complain, locator, what) => {
  const box = await locator.boundingBox();
  const { width, height } = tab.viewportSize();
  if (!box || box.x < 0 || box.y < 0 || box.x + box.width > width || box.y + box.height > height)
    complain(`${what} is not completely on screen: ${JSON.stringify(box)}`);
};
const verdictInView = (tab, complain) => onScreen(tab, complain, tab.locator('.headline'), 'the verdict');
const linksInView = (tab, complain) =>
  onScreen(tab, complain, tab.locator('.compare-table .link').first(), 'the link to a dashboard');
const firstMember = async (tab, complain) => {
  await openFirst(tab);
  await tab.keyboard.press('g');
  await tab.waitForSelector('.grid');
  await onScreen(tab, complain, tab.locator('.grid-head').first(), 'the first member of the group');
};

const openFirst = async tab => {
  await tab.locator('.episode-row').nth(2).click();
  await tab.waitForSelector('.turn');
};
const groupView = async tab => {
  await openFirst(tab);
  await tab.keyboard.press('g');
  await tab.waitForSelector('.grid');
};
const training = async tab => {
  await tab.locator('.filter input').fill('mode:val step:140 tag:lake');
  await tab.locator('.episode-row').nth(1).click();
  await tab.keyboard.press('t');
  await tab.waitForSelector('.grid');
};
/** Shows the pictures of the group, and scrolls through all strips for three seconds. */
const film = async (tab, complain) => {
  await tab.locator('.episode-row').first().click();
  await tab.keyboard.press('f');
  await tab.waitForSelector('.film-strip img', { timeout: 240_000 }); // the host encodes up to 1100 pictures
  await atRest(tab);
  const { frames, images, strips } = await tab.evaluate(async () => {
    let pane = document.querySelector('.film');
    while (pane && !(pane.scrollHeight > pane.clientHeight && /auto|scroll/.test(getComputedStyle(pane).overflowY)))
      pane = pane.parentElement;
    const frames = [];
    let images = 0;
    const until = performance.now() + 3000;
    let before = await new Promise(requestAnimationFrame);
    for (let now = before; now < until; before = now) {
      pane.scrollTop += 40;
      now = await new Promise(requestAnimationFrame);
      frames.push(now - before);
      images = Math.max(images, document.querySelectorAll('img').length);
    }
    pane.scrollTop = 0;
    return { frames: frames.sort((a, b) => a - b), images, strips: document.querySelectorAll('.film-strip').length };
  });
  const at = share => frames[Math.floor(share * (frames.length - 1))].toFixed(1);
  console.log(
    `${strips} strips: ${frames.length} frames in 3 s; ${at(0.5)} ms median, ${at(0.95)} ms p95, ${at(1)} ms longest; at most ${images} pictures in the page`,
  );
  if (images > 150) complain(`${images} pictures are in the page at a time`);
  await tab.locator('.film-frame').first().focus();
  for (const key of ['ArrowRight', 'ArrowDown', 'ArrowRight']) await tab.keyboard.press(key);
  const label = await tab.evaluate(() => document.activeElement.getAttribute('aria-label'));
  if (label !== 'member 1, turn 3') complain(`arrow keys moved to ${label}`);
};
/** Exports an episode with pictures as a GIF. */
const picturedGif = async (tab, complain) => {
  await tab.locator('.episode-row').first().click();
  await tab.keyboard.press('p');
  await tab.locator('.player-stage img').waitFor();
  await tab.getByRole('button', { name: 'Export' }).click();
  await tab.getByRole('menuitem', { name: 'GIF' }).click();
  const sizes = () =>
    tab.evaluate(() =>
      window.previewAsked.filter(({ method }) => method === 'episodes/export').map(({ params }) => params.bytes.length),
    );
  for (let waited = 0; (await sizes()).length === 0 && waited < 600; waited++) await atRest(tab);
  const [size = 0] = await sizes();
  console.log(`GIF of an episode with pictures: ${size} bytes`);
  if (size < 10_000) complain('the GIF of an episode with pictures is empty');
};
/** Shows the heat maps of an episode whose first thought names places, and moves over the cells of its first picture by keys. */
const heat = async (tab, complain) => {
  await tab.locator('.episode-row').nth(1).click();
  await tab.keyboard.press('h');
  await tab.locator('.heat-frame').first().waitFor();
  await tab.locator('.heat-frame').first().focus();
  for (const key of ['Home', 'ArrowLeft']) await tab.keyboard.press(key);
  const readout = await tab.locator('.heat-readout').first().textContent();
  if (!/^row \d, column \d: .* nats$/.test(readout)) complain(`the keys name ${readout}`);
};
const heatFilm = async tab => {
  await tab.locator('.episode-row').first().click();
  await tab.keyboard.press('f');
  await tab.keyboard.press('h');
  await tab.locator('.heat-frame').first().waitFor();
};
const largeHeat = async (tab, complain) => {
  await tab.keyboard.press('z');
  await heat(tab, complain);
};
const lake = async tab => {
  await tab.locator('.filter input').fill('tag:lake success:true');
  await tab.locator('.episode-row').first().click();
  await tab.waitForSelector('.turn');
};

/** Selects the newest error of the Log page. */
const openError = async tab => {
  await tab.getByRole('button', { name: 'Errors first' }).click();
  await tab.locator('.entry').first().click();
  await tab.waitForSelector('.details pre');
};
/** Lists the validation episodes. */
const validation = async tab => {
  await tab.locator('.filter input').fill('mode:val');
  await tab.locator('.list-facts', { hasText: ' of ' }).waitFor();
};
/** Every page at the widths of a split editor, as high as a laptop's window shows it. */
const narrow = [350, 480, 600].flatMap(width =>
  [
    { page: 'collapse', name: 'collapse', scenario: 'collapsing-run', ready: '.matrix canvas', act: verdictInView },
    { page: 'compare', name: 'compare', scenario: '1-filter.csv', ready: charts, act: linksInView },
    { page: 'episodes', name: 'episodes', scenario: 'running', ready: '.episode-row', act: validation },
    { page: 'group', name: 'episodes', scenario: 'running', ready: '.episode-row', act: firstMember },
    { page: 'dashboard', name: 'dashboard', scenario: 'running', ready: charts },
    { page: 'timeline', name: 'timeline', scenario: 'timeline finished', ready: '.timeline' },
    { page: 'log', name: 'log', scenario: 'log running', ready: '.entry', act: openError },
    { page: 'live', name: 'live', scenario: 'live lake', ready: '#app > *' },
    { page: 'new-run', name: 'new-run', scenario: 'running', ready: '#app > *' },
  ].map(({ page, ...shot }) => ({
    ...shot,
    file: `narrow-${page}-${width}`,
    theme: width === 480 ? 'dark' : 'light',
    width,
    height: 800,
  })),
);
/** Plays an episode, and exports it: two GIFs with equal bytes, and a video. */
const player = async (tab, complain) => {
  await lake(tab);
  await tab.keyboard.press('p');
  await tab.locator('.player-stage').waitFor();
  await tab.keyboard.press('Home');
  await tab.keyboard.press('ArrowRight');
  const movies = () =>
    tab.evaluate(() =>
      window.previewAsked.filter(({ method }) => method === 'episodes/export').map(({ params }) => [...params.bytes]),
    );
  const choose = async (label, count) => {
    await tab.getByRole('button', { name: 'Export' }).click();
    await tab.getByRole('menuitem', { name: label }).click();
    for (let waited = 0; (await movies()).length < count && waited < 600; waited++) await atRest(tab);
    await tab.locator('.player-status').waitFor({ state: 'detached' });
  };
  await choose('GIF', 1);
  await choose('GIF', 2);
  await tab.keyboard.press('+');
  await tab.keyboard.press('+');
  await choose('WebM', 3);
  const [first, second, video] = await movies();
  if (JSON.stringify(first) !== JSON.stringify(second)) complain('two GIFs of one episode differ');
  console.log(`GIF ${first.length} bytes, WebM ${video?.length} bytes`);
};

/** Presses a button of the Timeline page. */
const press = name => async tab => {
  await tab.getByRole('button', { name, exact: true }).click();
};
/** Opens the list of the page's keys. */
const openKeys = async tab => {
  await tab.keyboard.press('?');
  await tab.waitForSelector('dialog.key-help[open]');
};
/** Opens the newest step, and selects a waiting span of an episode by a search. */
const openStep = async tab => {
  await tab.locator('step-bars canvas').focus();
  await tab.keyboard.press('End');
  await tab.keyboard.press('Enter');
  await tab.waitForSelector('step-canvas canvas');
  await tab.locator('.search input').fill('g001-m03 wait batch');
  await tab.keyboard.press('Enter');
  await tab.keyboard.press('Escape');
};
const selectCall = async tab => {
  await openStep(tab);
  await tab.locator('.search input').fill('sample generate');
  await tab.keyboard.press('Enter');
  await tab.keyboard.press('Escape');
};
const searchStep = async tab => {
  await openStep(tab);
  await tab.locator('.search input').fill('g002');
  await tab.keyboard.press('Enter');
};
const tableOfStep = async tab => {
  await openStep(tab);
  await press('Table view')(tab);
};
/** Opens a step of 25,000 spans, zooms and moves; each frame must be drawn in time. */
const openLargeStep = async (tab, complain) => {
  await openStep(tab);
  const session = await tab.context().newCDPSession(tab);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  await tab.locator('step-canvas canvas').focus();
  const before = await worked(session);
  for (let i = 0; i < 20; i++) await tab.keyboard.press(i % 2 ? 'd' : 'w');
  const took = ((await worked(session)) - before) / 20;
  console.log(`1024 episodes of a step, main thread: ${took.toFixed(0)} ms per zoom or move`);
  if (took > 100) complain(`a zoom or move took ${took.toFixed(0)} ms`);
};

/** The Collapse page of a stored run. */
const collapse = (file, theme, scenario, width, more = {}) => ({
  file: `collapse-${file}`,
  name: 'collapse',
  theme,
  scenario,
  width,
  height: 2300,
  ready: '.matrix canvas',
  ...more,
});
const follow =
  (...selectors) =>
  async tab => {
    for (const selector of selectors) await tab.locator(selector).first().click();
  };

/** The New Run page with a kept engine chosen, and what the engine does not support. */
const onEngine = async tab => {
  const engine = tab.locator('[aria-label="Engine (workbench.engine)"]');
  await engine.click();
  await engine.locator('vscode-option', { hasText: 'cluster' }).click();
  await tab.locator('.estimate', { hasText: 'the server plans its own memory' }).waitFor();
};
const newRun = (file, theme, width, act) => ({
  file: `new-run-${file}`,
  name: 'new-run',
  theme,
  scenario: 'running',
  width,
  height: 1350,
  ready: '.estimate-row',
  act,
});

/** The comparison of an experiment's runs. */
const compare = (file, theme, width, more = {}) => ({
  file: `compare-${file}`,
  name: 'compare',
  theme,
  scenario: '1-filter.csv',
  width,
  ready: '.chart canvas[aria-label]',
  ...more,
});

/** Twenty runs of a sweep, with a marked range and a highlighted run. */
const sweep = (file, theme, width, more = {}) =>
  compare(`sweep-${file}`, theme, width, {
    scenario: 'sweep 20',
    height: 1300,
    ready: '.parallel-line',
    act: async tab => {
      await tab.locator('.parallel-axis').first().focus();
      await tab.keyboard.press('ArrowUp');
      await tab.keyboard.press('Shift+ArrowUp');
      await tab.locator('.parallel-scroll').focus();
      await tab.keyboard.press('ArrowLeft');
    },
    ...more,
  });

/** The run table. */
const runTable = (file, theme, width, more = {}) => ({
  file: `run-table-${file}`,
  name: 'run-table',
  theme,
  scenario: 'runs 40',
  width,
  height: 700,
  ready: '.run-table td.number',
  ...more,
});
const groupTable = async tab => {
  await press('Columns')(tab);
  await tab.getByRole('button', { name: 'actor_rollout_ref.actor.optim.lr' }).click();
  await tab.keyboard.press('Escape');
  await tab.locator('thead th', { hasText: 'optim' }).hover();
  await tab.getByRole('button', { name: 'Column lr' }).click();
  await tab.getByRole('menuitem', { name: 'Group by this column' }).click();
};

/** Moves the crosshair over a chart; the heads of all charts must keep their height. */
const headsOf = tab => tab.locator('.chart-head').evaluateAll(heads => heads.map(head => head.clientHeight));
const steadyHeads = async (tab, complain) => {
  for (const fold of await tab.locator('.fold').all()) await fold.dispatchEvent('click');
  await atRest(tab);
  const before = await headsOf(tab);
  await hover(tab);
  const heights = new Set([...before, ...(await headsOf(tab))]);
  if (heights.size !== 1) complain(`chart heads are ${[...heights].join(', ')} px high`);
};

/** Adds charts of the user to the dashboard: two lines, and values against an expression. */
const ownCharts = async tab => {
  for (const [y, x] of [
    ['actor/entropy; actor/entropy * 2', ''],
    ['critic/score/mean', 'actor/entropy'],
  ]) {
    await tab.getByRole('button', { name: 'New chart…' }).click();
    await tab.locator('dialog [name=y]').fill(y);
    await tab.locator('dialog [name=x]').fill(x);
    await tab.keyboard.press('Enter');
    await tab.locator('dialog').waitFor({ state: 'detached' });
  }
};
const problemInForm = async tab => {
  await ownCharts(tab);
  await tab.getByRole('button', { name: 'New chart…' }).click();
  await tab.locator('dialog [name=y]').fill('actor/entropi');
  await tab.keyboard.press('Enter');
  await tab.locator('dialog .problem').waitFor();
};
const fullPage = async tab => {
  await ownCharts(tab);
  await tab.locator('[data-chart="panel 2"] .chart-plot').press('f');
};
const sweepOfKeys = async tab => {
  const sweep = tab.locator('[data-key="sweep"]');
  const keys = sweep.locator('[aria-label="Add a key to the sweep"]');
  await keys.click();
  await keys.locator('vscode-option', { hasText: 'Temperature' }).click();
  await sweep.getByLabel('Values of Temperature').locator('input').fill('0.7, 1, 1.3');
  await sweep.getByLabel('Seeds of the sweep').locator('input').fill('2');
  await sweep.scrollIntoViewIfNeeded();
};
const own = (file, theme, width, act) => ({
  ...{ file: `dashboard-own-${file}`, name: 'dashboard', theme, scenario: 'running', width, ready: charts, act },
});

export const shots = [
  own('light', 'light', 1280, ownCharts),
  own('dark-form', 'dark', 1280, problemInForm),
  own('dark-full', 'dark', 1000, fullPage),
  own('contrast', 'high-contrast', 1000, ownCharts),
  own('600', 'light', 600, ownCharts),
  newRun('sweep-light', 'light', 1200, sweepOfKeys),
  newRun('sweep-600', 'dark', 600, sweepOfKeys),
  ...narrow,
  runTable('light', 'light', 1200, {
    act: async tab => {
      for (const at of [1, 2, 5]) await tab.locator('tbody input[type=checkbox]').nth(at).click();
    },
  }),
  runTable('dark', 'dark', 1200, { act: groupTable }),
  runTable('columns', 'dark', 1000, { act: press('Columns') }),
  runTable('contrast', 'high-contrast', 1000, {
    act: tab =>
      tab
        .getByRole('button', { name: /^Edit notes/ })
        .nth(1)
        .click(),
  }),
  runTable('600', 'light', 600),
  runTable('320', 'dark', 320),
  runTable('500', 'light', 1000, {
    scenario: 'runs 500',
    act: tab => tab.locator('.table-scroll').evaluate(area => (area.scrollTop = 28 * 250)),
  }),
  ...['light', 'dark', 'high-contrast'].flatMap(theme => [
    { file: `log-${theme}`, name: 'log', theme, scenario: 'log running', width: 1100, ready: '.entry' },
    {
      file: `log-${theme}-error`,
      name: 'log',
      theme,
      scenario: 'log running',
      width: 1100,
      ready: '.entry',
      act: openError,
    },
  ]),
  { file: 'log-large', name: 'log', theme: 'dark', scenario: 'log large', width: 900, ready: '.entry' },
  { file: 'log-empty', name: 'log', theme: 'light', scenario: 'log empty', width: 900, ready: '.notice' },
  { file: 'log-hostile', name: 'log', theme: 'light', scenario: 'log hostile', width: 900, ready: '.entry' },
  newRun('light', 'light', 1200, onEngine),
  newRun('dark', 'dark', 1200, onEngine),
  newRun('contrast', 'high-contrast', 1000, onEngine),
  newRun('600', 'light', 600, onEngine),
  newRun('local', 'dark', 1200),
  newRun('320', 'dark', 320, onEngine),
  compare('light', 'light', 1200),
  compare('dark', 'dark', 1200, {
    act: tab =>
      tab
        .locator('.chart-plot')
        .first()
        .hover({ position: { x: 160, y: 60 } }),
  }),
  compare('contrast', 'high-contrast', 1000),
  compare('320', 'dark', 320),
  sweep('light', 'light', 1280, { act: undefined }),
  sweep('dark', 'dark', 1280),
  sweep('contrast', 'high-contrast', 1000),
  sweep('600', 'light', 600),
  { file: 'dashboard-light-wide', name: 'dashboard', theme: 'light', scenario: 'running', width: 1280, ready: charts },
  {
    file: 'dashboard-dark-wide',
    name: 'dashboard',
    theme: 'dark',
    scenario: 'running',
    width: 1280,
    ready: charts,
    act: hover,
  },
  {
    file: 'dashboard-dark-smooth',
    name: 'dashboard',
    theme: 'dark',
    scenario: 'running',
    width: 900,
    ready: charts,
    act: async tab => {
      await tab.locator('.smoothing input').fill('0.8');
      await tab.locator('.chart-title').nth(1).click();
    },
  },
  {
    file: 'dashboard-light-table',
    name: 'dashboard',
    theme: 'light',
    scenario: 'running',
    width: 1100,
    ready: charts,
    act: tab => tab.keyboard.press('t'),
  },
  {
    file: 'dashboard-dark-chart-table',
    name: 'dashboard',
    theme: 'dark',
    scenario: 'running',
    width: 900,
    ready: charts,
    act: async tab => {
      await tab.locator('.chart').nth(1).hover();
      await tab
        .locator('.chart')
        .nth(1)
        .getByTitle(/^Table of /)
        .click();
      await tab.locator('.fold').last().click();
      await tab.locator('.event-table').scrollIntoViewIfNeeded();
    },
  },
  {
    file: 'dashboard-dark-600-open',
    ...{
      name: 'dashboard',
      theme: 'dark',
      scenario: 'running',
      width: 600,
      height: 1400,
      ready: charts,
      act: steadyHeads,
    },
  },
  ...[
    ['dark', 1000],
    ['light', 1000],
    ['light', 350],
  ].map(([theme, width]) => ({
    file: `keys-${theme}-${width}`,
    ...{ name: 'dashboard', theme, scenario: 'running', width, height: 760, ready: charts, act: openKeys },
  })),
  { file: 'dashboard-light-320', name: 'dashboard', theme: 'light', scenario: 'running', width: 320, ready: charts },
  { file: 'dashboard-dark-320', name: 'dashboard', theme: 'dark', scenario: 'running', width: 320, ready: charts },
  {
    file: 'dashboard-light-zoom',
    name: 'dashboard',
    theme: 'light',
    scenario: 'running',
    width: 1280,
    zoom: 2,
    ready: charts,
  },
  {
    file: 'dashboard-contrast',
    name: 'dashboard',
    theme: 'high-contrast',
    scenario: 'running',
    width: 1000,
    ready: charts,
  },
  {
    file: 'dashboard-contrast-light',
    name: 'dashboard',
    theme: 'high-contrast-light',
    scenario: 'running',
    width: 1000,
    ready: charts,
  },
  { file: 'dashboard-light-empty', name: 'dashboard', theme: 'light', scenario: 'empty', width: 900 },
  { file: 'dashboard-dark-failed', name: 'dashboard', theme: 'dark', scenario: 'failed', width: 900, ready: charts },
  { file: 'dashboard-dark-early', name: 'dashboard', theme: 'dark', scenario: 'early', width: 900, ready: charts },
  {
    file: 'dashboard-dark-large',
    name: 'dashboard',
    theme: 'dark',
    scenario: 'large',
    width: 1280,
    ready: charts,
    act: large,
  },
  { file: 'dashboard-hostile', name: 'dashboard', theme: 'light', scenario: 'hostile', width: 900, ready: charts },
  ...['light', 'dark'].flatMap(theme => [
    {
      file: `episodes-${theme}-wide`,
      name: 'episodes',
      theme,
      scenario: 'running',
      width: 1280,
      ready: '.episode-row',
      act: openFirst,
    },
    {
      file: `episodes-${theme}-320-list`,
      name: 'episodes',
      theme,
      scenario: 'running',
      width: 320,
      ready: '.episode-row',
    },
    {
      file: `episodes-${theme}-320`,
      name: 'episodes',
      theme,
      scenario: 'running',
      width: 320,
      ready: '.episode-row',
      act: openFirst,
    },
  ]),
  ...[
    ['dark', 1280],
    ['light', 600],
  ].map(([theme, width]) => ({
    file: `episodes-${theme}-scored`,
    name: 'episodes',
    ...{ theme, width },
    scenario: 'scored',
    ready: '.episode-row',
    act: async tab => {
      await openFirst(tab);
      await tab.locator('.judgement summary').first().click();
    },
  })),
  {
    file: 'episodes-dark-lake',
    name: 'episodes',
    theme: 'dark',
    scenario: 'running',
    width: 1280,
    ready: '.episode-row',
    act: lake,
  },
  {
    file: 'episodes-light-raw',
    name: 'episodes',
    theme: 'light',
    scenario: 'running',
    width: 1000,
    ready: '.episode-row',
    act: async tab => {
      await openFirst(tab);
      await tab.keyboard.press('r');
      await tab.keyboard.press('x');
    },
  },
  {
    file: 'episodes-light-filter',
    name: 'episodes',
    theme: 'light',
    scenario: 'running',
    width: 1000,
    ready: '.episode-row',
    act: async tab => {
      await tab.locator('.filter input').fill('success:false step:130..140 text:stuck sucess:1');
      await tab.locator('.list-facts', { hasNotText: 'searched' }).waitFor();
    },
  },
  ...['light', 'dark', 'high-contrast'].flatMap(theme => [
    {
      file: `episodes-${theme}-player`,
      name: 'episodes',
      theme,
      scenario: 'running',
      width: theme === 'dark' ? 1200 : 600,
      ready: '.episode-row',
      act: player,
    },
    {
      file: `episodes-${theme}-group`,
      name: 'episodes',
      theme,
      scenario: 'running',
      width: 1280,
      ready: '.episode-row',
      act: groupView,
    },
    {
      file: `episodes-${theme}-training`,
      name: 'episodes',
      theme,
      scenario: 'running',
      width: 1280,
      ready: '.episode-row',
      act: training,
    },
  ]),
  ...['light', 'dark', 'high-contrast'].flatMap((theme, i) =>
    [
      { file: `heat-${theme}`, width: i === 2 ? 600 : 1280, act: heat },
      ...(i === 0 ? [{ file: 'heat-light-600', width: 600, act: heat }] : []),
      ...(i === 1
        ? [
            { file: 'heat-dark-large', width: 1280, act: largeHeat },
            { file: 'heat-dark-film', width: 1280, act: heatFilm },
          ]
        : []),
    ].map(shot => ({ ...shot, name: 'episodes', theme, scenario: 'visual-run', ready: '.episode-row' })),
  ),
  ...['light', 'dark', 'high-contrast'].flatMap((theme, i) =>
    [
      { file: `film-${theme}`, scenario: `pictures ${i === 1 ? 100 : 6}`, act: film },
      { file: `film-${theme}-turns`, scenario: 'pictures 6', act: openFirst },
      { file: `film-${theme}-group`, scenario: 'pictures 6', act: groupView },
      ...(i === 0 ? [{ file: 'film-light-player', scenario: 'pictures 6', act: picturedGif }] : []),
    ].map(shot => ({ ...shot, name: 'episodes', theme, width: i === 1 ? 1280 : 600, ready: '.episode-row' })),
  ),
  {
    file: 'episodes-dark-320-group',
    name: 'episodes',
    theme: 'dark',
    scenario: 'running',
    width: 320,
    ready: '.episode-row',
    act: groupView,
  },
  {
    file: 'episodes-light-320-training',
    name: 'episodes',
    theme: 'light',
    scenario: 'running',
    width: 320,
    ready: '.episode-row',
    act: training,
  },
  {
    file: 'episodes-light-sorted',
    name: 'episodes',
    theme: 'light',
    scenario: 'running',
    width: 1000,
    ready: '.episode-row',
    act: async tab => {
      await tab.locator('.list-head button').nth(4).click();
      await openFirst(tab);
    },
  },
  {
    file: 'episodes-light-zoom',
    name: 'episodes',
    theme: 'light',
    scenario: 'running',
    width: 1280,
    zoom: 2,
    ready: '.episode-row',
    act: openFirst,
  },
  {
    file: 'episodes-contrast',
    name: 'episodes',
    theme: 'high-contrast',
    scenario: 'running',
    width: 1100,
    ready: '.episode-row',
    act: openFirst,
  },
  { file: 'episodes-dark-empty', name: 'episodes', theme: 'dark', scenario: 'empty', width: 900 },
  {
    file: 'episodes-hostile',
    name: 'episodes',
    theme: 'dark',
    scenario: 'hostile',
    width: 900,
    ready: '.episode-row',
    act: openFirst,
  },
  ...['light', 'dark', 'high-contrast', 'high-contrast-light'].map(theme =>
    collapse(theme, theme, 'collapsing-run', 1280),
  ),
  ...['light', 'dark'].map(theme => collapse(`${theme}-320`, theme, 'collapsing-run', 320, { height: 5200 })),
  collapse('light-first', 'light', 'collapsing-run', 1280, { height: 900 }),
  collapse('dark-zoom', 'dark', 'collapsing-run', 1280, { zoom: 2, height: 1800 }),
  collapse('dark-scrubbed', 'dark', 'collapsing-run', 1280, {
    act: async tab => {
      await follow('.choice:has-text("Trajectories")')(tab);
      await tab.locator('.scrubber input').fill('44');
      await atRest(tab);
      await tab.locator('.matrix canvas').hover({ position: { x: 300, y: 120 } });
    },
  }),
  collapse('light-live', 'light', 'collapsing-run 20', 1280),
  collapse('light-diagnosed', 'light', 'diagnosed-run', 1280),
  collapse('dark-turns', 'dark', 'diagnosed-run', 1000, {
    act: follow('.choice:text-is("Turns")', '.gradients .choice:has-text("before")'),
  }),
  collapse('light-off', 'light', 'collapsing-run', 900, {
    act: follow('.choice:text-is("Turns")'),
  }),
  collapse('dark-large', 'dark', 'collapsing-run Infinity 100', 1280, {
    height: 900,
    ready: '.ring',
    act: async (tab, complain) => {
      const frame = () => new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)));
      const timed = async (what, work, limit) => {
        const started = await tab.evaluate(() => performance.now());
        await work();
        await tab.evaluate(frame);
        const took = (await tab.evaluate(() => performance.now())) - started;
        console.log(`9000 steps, 4501 diagnosed: ${what} in ${took.toFixed(0)} ms`);
        if (took > limit) complain(`${what} took ${took.toFixed(0)} ms`);
      };
      await timed('another family', () => tab.locator('.choice').nth(1).click(), 3000);
      await timed(
        'ten diagnoses back',
        () =>
          tab.evaluate(async () => {
            for (let i = 0; i < 10; i++) {
              document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowLeft', bubbles: true }));
              await new Promise(resolve => requestAnimationFrame(resolve));
            }
          }),
        3000,
      );
    },
  }),
  { file: 'collapse-dark-empty', name: 'collapse', theme: 'dark', scenario: 'collapsing-run -1', width: 900 },
  ...[
    { file: 'light', theme: 'light', scenario: 'live playing', width: 1100 },
    { file: 'dark-lake', theme: 'dark', scenario: 'live lake', width: 900 },
    { file: 'dark-over', theme: 'dark', scenario: 'live over', width: 900 },
    { file: 'contrast', theme: 'high-contrast', scenario: 'live lake', width: 900 },
    { file: 'contrast-light', theme: 'high-contrast-light', scenario: 'live playing', width: 900 },
    { file: 'light-320', theme: 'light', scenario: 'live lake', width: 320 },
    { file: 'dark-320', theme: 'dark', scenario: 'live playing', width: 320 },
    { file: 'light-update', theme: 'light', scenario: 'live update', width: 700, height: 500, ready: '.notice' },
    { file: 'dark-paused', theme: 'dark', scenario: 'live paused', width: 700, height: 500, ready: '.notice' },
    { file: 'light-elsewhere', theme: 'light', scenario: 'live elsewhere', width: 600, height: 500, ready: '.notice' },
    { file: 'hostile', theme: 'light', scenario: 'live hostile', width: 700 },
  ].map(shot => ({ ready: '.live-turn', name: 'live', ...shot, file: `live-${shot.file}` })),
  ...[
    { name: 'play', scenario: 'roles play', ready: '.turn-of' },
    { name: 'live', scenario: 'roles live', ready: '.live-end' },
    { name: 'episodes', scenario: 'roles episodes', ready: '.episode-row', act: openFirst },
  ].flatMap(shot =>
    [
      ['light', 1100],
      ['dark', 1100],
      ['light', 600],
    ].map(([theme, width]) => ({ ...shot, theme, width, file: `roles-${shot.name}-${theme}-${width}` })),
  ),
  ...[
    { file: 'light', theme: 'light', scenario: 'timeline finished', width: 1200 },
    { file: 'dark', theme: 'dark', scenario: 'timeline remote', width: 1200 },
    { file: 'contrast', theme: 'high-contrast', scenario: 'timeline finished', width: 1000 },
    { file: 'light-600', theme: 'light', scenario: 'timeline finished', width: 600 },
    { file: 'light-table', theme: 'light', scenario: 'timeline finished', width: 1000, act: press('Table view') },
    { file: 'dark-empty', theme: 'dark', scenario: 'timeline empty', width: 800, height: 500, ready: '.notice' },
    { file: 'dark-large', theme: 'dark', scenario: 'timeline large', width: 1200, act: openLargeStep },
    { file: 'light-step', theme: 'light', scenario: 'timeline finished', width: 1200, act: openStep },
    { file: 'dark-step', theme: 'dark', scenario: 'timeline remote', width: 1200, act: openStep },
    { file: 'dark-step-600', theme: 'dark', scenario: 'timeline finished', width: 600, act: openStep },
    { file: 'light-step-320', theme: 'light', scenario: 'timeline finished', width: 320, act: openStep },
    {
      file: 'contrast-light-step',
      theme: 'high-contrast-light',
      scenario: 'timeline finished',
      width: 1000,
      act: openStep,
    },
    { file: 'light-call', theme: 'light', scenario: 'timeline finished', width: 1200, act: selectCall },
    { file: 'dark-search', theme: 'dark', scenario: 'timeline finished', width: 1200, act: searchStep },
    { file: 'dark-live', theme: 'dark', scenario: 'timeline live', width: 1000, act: press('Follow') },
    { file: 'light-step-table', theme: 'light', scenario: 'timeline finished', width: 1000, act: tableOfStep },
  ].map(shot => ({ ready: '.timeline, .notice', name: 'timeline', ...shot, file: `timeline-${shot.file}` })),
  ...[
    { file: 'light', theme: 'light', scenario: 'query lines', width: 1100 },
    { file: 'dark', theme: 'dark', scenario: 'query lines', width: 1100 },
    { file: 'contrast', theme: 'high-contrast', scenario: 'query bars', width: 900 },
    { file: 'light-600', theme: 'light', scenario: 'query bars', width: 600 },
    { file: 'dark-320', theme: 'dark', scenario: 'query lines', width: 320 },
    { file: 'light-error', theme: 'light', scenario: 'query error', width: 700, height: 500, after: '.query-error' },
    { file: 'hostile', theme: 'light', scenario: 'query hostile', width: 700 },
  ].map(({ after = '.query-table', ...shot }) => ({
    ready: 'textarea',
    name: 'query',
    act: async tab => {
      await tab.locator('.query-editor textarea').press('Control+Enter');
      await tab.waitForSelector(after);
    },
    ...shot,
    file: `query-${shot.file}`,
  })),
  ...[
    { file: 'light', theme: 'light', scenario: 'sweep-page live', width: 1200 },
    { file: 'dark', theme: 'dark', scenario: 'sweep-page finished', width: 1200 },
    { file: 'contrast', theme: 'high-contrast', scenario: 'sweep-page live', width: 1000 },
    { file: 'dark-start', theme: 'dark', scenario: 'sweep-page start', width: 1000 },
    { file: 'light-600', theme: 'light', scenario: 'sweep-page live', width: 600 },
    { file: 'dark-320', theme: 'dark', scenario: 'sweep-page live', width: 320 },
    { file: 'light-hundreds', theme: 'light', scenario: 'sweep-page hundreds', width: 1200 },
    { file: 'light-planning', theme: 'light', scenario: 'sweep-page planning', width: 700, height: 400 },
  ].map(shot => ({ ready: '.sweep-page, .notice', name: 'sweep', ...shot, file: `sweep-page-${shot.file}` })),
];
