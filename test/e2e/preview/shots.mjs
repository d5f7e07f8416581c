// What the preview looks at: page, theme, run and width of each screenshot, and what is done on the page before.
const charts = '.chart canvas';
const large = async (tab, complain) => {
  const started = await tab.evaluate(() => performance.now());
  await tab.mouse.wheel(0, 600);
  await tab.evaluate(() => new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  await tab.evaluate(() => {
    const line = { step: 100001, time: '2026-02-03T10:00:00Z', wall_s: 70001, 'actor/entropy': 0.5 };
    const run = {
      id: 'r',
      name: 'r',
      folder: '/r',
      config_name: 'c',
      created: '',
      live: true,
      status: {
        state: 'running',
        step: 100001,
        total_steps: 200000,
        success: null,
        reward: null,
        tokens_per_s: null,
        eta_s: null,
        phase: 'update',
        updated: '',
      },
    };
    window.previewSend('dashboard/lines', { run, lines: [line], events: [] });
  });
  await tab.evaluate(
    () => new Promise(resolve => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(resolve)))),
  );
  const took = (await tab.evaluate(() => performance.now())) - started;
  console.log(`100,000 steps of 60 metrics: scroll and one more line in ${took.toFixed(0)} ms`);
  if (took > 3000) complain(`100,000 steps took ${took.toFixed(0)} ms`);
};
const hover = async tab => {
  const plot = tab.locator('.chart-plot').nth(1);
  await plot.hover({ position: { x: 160, y: 60 } });
};

const openFirst = async tab => {
  await tab.locator('.episode-row').nth(2).click();
  await tab.waitForSelector('.turn');
};
const lake = async tab => {
  await tab.locator('.filter input').fill('tag:lake success:true');
  await tab.locator('.episode-row').first().click();
  await tab.waitForSelector('.turn');
};

export const shots = [
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
      await tab.locator('.chart').nth(1).getByTitle('Table of reward', { exact: true }).click();
      await tab.locator('.fold').last().click();
      await tab.locator('.event-table').scrollIntoViewIfNeeded();
    },
  },
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
      await tab.waitForTimeout(1500);
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
];
