// A real VS Code for tests: code-server with the packaged extension and a fresh profile on a free port, driven by
// Chromium. Stops by process id everything that it started: the browser, the server, and the trainers of the
// workspace's runs.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env } from 'node:process';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';
import { atRest } from './at-rest.mjs';
import { root, tools } from './install.mjs';

const slow = 120_000;
const results = join(root, 'test-results');
const themes = {
  dark: { id: 'Dark Modern', label: 'Dark Modern', kind: 'vs-dark' },
  light: { id: 'Light Modern', label: 'Light Modern', kind: 'vs' },
  contrast: { id: 'Default High Contrast', label: 'Dark High Contrast', kind: 'hc-black' },
};

/**
 * The package built by `run.mjs`, and the folder into which it is installed once. All editors share the folder and only
 * read it. UNPACKED=1 loads the repository itself instead, for quick trials.
 */
export const packageFile = join(root, '.e2e', 'ragen-workbench.vsix');
const extensions = join(root, '.e2e', 'extensions');
/** Preload script that records delays of the extension host's event loop. */
const monitor = join(root, 'test', 'e2e', 'fixtures', 'loop-monitor.mjs');

/** Installs the package through VS Code's CLI, as a user does, and replaces an earlier installation. */
export function installPackage() {
  rmSync(extensions, { recursive: true, force: true });
  mkdirSync(extensions);
  const profile = mkdtempSync(join(tmpdir(), 'ragen-e2e-'));
  const options = ['--user-data-dir', join(profile, 'data'), '--extensions-dir', extensions];
  try {
    execFileSync(
      tools.node,
      [tools.codeServer, ...configuration(profile), ...options, '--install-extension', packageFile],
      { env: environmentOf(profile), stdio: 'pipe' },
    );
  } finally {
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Passes an empty code-server configuration, so that the machine's own configuration is not read. */
function configuration(profile) {
  const config = join(profile, 'config.yaml');
  writeFileSync(config, '');
  return ['--config', config];
}

/**
 * Environment of code-server: separate XDG folders, no extension gallery, and no variables of an editor that runs these
 * tests.
 */
function environmentOf(profile) {
  const environment = { ...env, EXTENSIONS_GALLERY: '{"serviceUrl":""}' };
  for (const name of ['CONFIG', 'DATA', 'CACHE']) environment[`XDG_${name}_HOME`] = join(profile, name.toLowerCase());
  environment.RAGEN_USER_STORAGE = join(profile, 'user');
  for (const name of Object.keys(environment)) if (/^(VSCODE_|ELECTRON_|npm_)/.test(name)) delete environment[name];
  return environment;
}

/** Creates a temporary workspace folder with `files`, keyed by relative path. */
export function makeWorkspace(files = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'ragen-workspace-'));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

/** Returns the path of the only file or folder in `folder`; while there is none, a path that does not exist. */
export const onlyEntry = folder => join(folder, readdirSync(folder)[0] ?? 'none yet');

/** Polls `probe` until it returns a truthy value, and returns that value. A missing file counts as a falsy value. */
export async function until(what, probe, limit = slow, pauseMs = 200) {
  const end = Date.now() + limit;
  for (; ; await sleep(pauseMs)) {
    try {
      const answer = await probe();
      if (answer) return answer;
    } catch (error) {
      if (error.code !== 'ENOENT') throw error;
    }
    if (Date.now() > end) throw new Error(`timed out after ${limit / 1000} s waiting for ${what}`);
  }
}

/** Exports the playback on the Episodes page as a GIF into the workspace; resolves to the complete file's bytes. */
export async function saveGif(editor, frame, workspace) {
  await frame.locator('.player-controls vscode-button', { hasText: 'Export' }).click();
  await frame.locator('.menu-item', { hasText: 'GIF' }).click();
  await editor.page.locator('.quick-input-widget input.input').waitFor();
  await editor.page.keyboard.press('Enter');
  const file = await until('the file', () => readdirSync(workspace).find(name => name.endsWith('.gif')));
  return until('its last byte', () => {
    const bytes = readFileSync(join(workspace, file));
    return bytes.at(-1) === 0x3b && bytes;
  });
}

/**
 * Returns the `scenario` function of a spec. When a test fails, the function saves a screenshot and the page's console
 * as `test-results/failed-…`.
 */
export const scenarios = editor => (name, body) => {
  test(name, async () => {
    try {
      await body();
    } catch (error) {
      const file = `failed-${name.replace(/\W+/g, '-').slice(0, 60)}`;
      await editor()?.picture(file);
      writeFileSync(join(results, `${file}.log`), editor()?.console.join('\n') ?? '');
      throw error;
    }
  });
};

export class Editor {
  /**
   * Starts the server and opens `workspace` in the browser. `settings` are user settings. With `restricted`, the
   * workspace starts untrusted. With `watchLoop`, delays of the extension host's event loop are recorded in `loopFile`
   * (fixtures/loop-monitor.mjs).
   */
  static async start(
    workspace,
    { settings = {}, theme = 'dark', width = 1440, height = 900, restricted = false, watchLoop = false } = {},
  ) {
    const editor = new Editor(workspace);
    editor.restricted = restricted;
    for (const signal of ['SIGINT', 'SIGTERM'])
      process.once(signal, () => void editor.stop().finally(() => process.exit(1)));
    try {
      const trust = {
        'security.workspace.trust.enabled': restricted,
        'security.workspace.trust.startupPrompt': 'never',
      };
      await editor.serve({ 'workbench.colorTheme': themes[theme].id, ...trust, ...settings }, watchLoop);
      await editor.browse(width, height);
    } catch (error) {
      await editor.stop();
      throw error;
    }
    return editor;
  }

  constructor(workspace) {
    this.workspace = workspace;
    this.profile = mkdtempSync(join(tmpdir(), 'ragen-e2e-'));
    this.loopFile = join(this.profile, 'event-loop.jsonl');
  }

  async serve(settings, watchLoop) {
    const data = join(this.profile, 'data');
    mkdirSync(join(data, 'User'), { recursive: true });
    writeFileSync(join(data, 'User', 'settings.json'), JSON.stringify({ ...calm, ...settings }, null, 2));
    const installed = env.UNPACKED ? join(this.profile, 'extensions') : extensions;
    const common = [
      tools.codeServer,
      ...configuration(this.profile),
      '--user-data-dir',
      data,
      '--extensions-dir',
      installed,
    ];
    this.port = await freePort();
    const options = ['--auth', 'none', '--bind-addr', `127.0.0.1:${this.port}`, '--disable-telemetry'];
    options.push('--disable-update-check', '--disable-getting-started-override');
    if (!this.restricted) options.push('--disable-workspace-trust');
    // The smoke-test driver loads an unpacked extension, but it suppresses notification pop-ups.
    if (env.UNPACKED) options.push('--vscode-option', 'enable-smoke-test-driver');
    // A separate process group, so that one signal ends the server and its extension hosts.
    const preload = watchLoop ? ['--import', pathToFileURL(monitor).href] : []; // child processes inherit it
    this.server = spawn(tools.node, [...preload, ...common, ...options], {
      env: { ...environmentOf(this.profile), ...(watchLoop && { RAGEN_LOOP_FILE: this.loopFile }) },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.output = '';
    for (const stream of [this.server.stdout, this.server.stderr]) stream.on('data', text => (this.output += text));
    await until('code-server', () => {
      if (this.server.exitCode !== null)
        throw new Error(`code-server exited with code ${this.server.exitCode}: ${this.output}`);
      return fetch(`http://127.0.0.1:${this.port}/healthz`).then(
        answer => answer.ok,
        () => false,
      );
    });
  }

  async browse(width, height) {
    const args = [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
    ];
    args.push('--disable-component-update', '--disable-sync');
    this.browser = await chromium.launch({ executablePath: tools.chromium, args });
    this.page = await this.browser.newPage({ viewport: { width, height }, reducedMotion: 'reduce' });
    this.page.setDefaultTimeout(slow);
    this.console = [];
    this.page.on('console', message => this.console.push(`${message.type()}: ${message.text()}`));
    await this.open('folder', this.workspace);
  }

  /** Opens a `folder`, or the `workspace` described by a .code-workspace file, in the window. */
  async open(kind, path) {
    const payload = [['extensionDevelopmentPath', `vscode-remote://127.0.0.1:${this.port}${root}`]];
    const development = env.UNPACKED ? `&payload=${encodeURIComponent(JSON.stringify(payload))}` : '';
    await this.page.goto(`http://127.0.0.1:${this.port}/?${kind}=${encodeURIComponent(path)}${development}`);
    await this.ready();
  }

  async ready() {
    await this.page.locator('.monaco-workbench .activitybar').waitFor();
    await this.page.locator('.activitybar .action-label[aria-label*="RAGEN"]').waitFor();
  }

  /** Reloads the window with the editor's command, which saves the window state first; a browser reload might not. */
  async reload() {
    const loaded = this.page.waitForEvent('load');
    await this.command('Developer: Reload Window');
    await loaded;
    await this.ready();
  }

  /** Process ids of the running extension hosts. */
  extensionHosts() {
    return processesBelow(this.server.pid, '--type=extensionHost');
  }

  /** Kills the browser and the extension hosts, as the operating system might; `browse` opens the next window. */
  killWindow() {
    for (const pid of [...processesBelow(process.pid, '--no-first-run'), ...this.extensionHosts()])
      if (isAlive(pid)) process.kill(pid, 'SIGKILL');
  }

  /**
   * Runs a command by its title in the palette. Retries, because a page that opens at the same time takes the focus and
   * closes the palette.
   */
  async command(title) {
    for (let tries = 1; ; tries++) {
      await this.palette(title);
      try {
        return await this.choose(title, 5000);
      } catch (error) {
        if (tries === 5) throw error;
      }
    }
  }

  /** Opens the command palette and types a command's title. */
  async palette(title) {
    const input = this.page.locator('.quick-input-widget input.input');
    const row = this.page.locator('.quick-input-widget .quick-input-list .monaco-list-row', { hasText: title });
    for (let tries = 1; ; tries++) {
      await this.page.keyboard.press('F1');
      try {
        await input.fill(`>${title}`, { timeout: 5000 });
        return await row.first().waitFor({ timeout: 5000 });
      } catch (error) {
        if (tries === 5) throw error;
        await this.page.keyboard.press('Escape');
      }
    }
  }

  /** Picks the entry that contains `text` in an open quick pick; `chosen` is the time of the click. */
  async choose(text, timeout = 60_000) {
    const row = this.page.locator('.quick-input-widget .quick-input-list .monaco-list-row', { hasText: text }).first();
    await row.waitFor({ timeout });
    this.chosen = performance.now();
    await row.click({ timeout });
  }

  /** Types `text` into an open quick pick and picks the entry that contains it; a long list shows only some entries. */
  async typeAndChoose(text) {
    await this.page.locator('.quick-input-widget input.input').fill(text);
    await this.choose(text);
  }

  /**
   * Picks an action in the context menu of `locator`, until `came` returns a truthy value. Retries, because a menu
   * ignores clicks in its first 100 ms, and a page that opens meanwhile closes the menu.
   */
  async takeFromMenu(locator, action, came) {
    const entry = this.page.locator('.monaco-menu .action-menu-item', { hasText: action }).first();
    for (let tries = 1; ; tries++) {
      try {
        await locator.click({ button: 'right' });
        await entry.waitFor({ timeout: 5000 });
        // eslint-disable-next-line no-restricted-syntax -- nothing shows when a menu begins to take clicks
        await sleep(300 * tries);
        await entry.click({ timeout: 5000 });
        return await until(`what ${action} leads to`, came, 20_000 * tries);
      } catch (error) {
        await this.page.keyboard.press('Escape');
        if (tries === 5) throw error;
      }
    }
  }

  /** Clicks a code lens until `came` returns a truthy value; retries because a newly drawn lens may ignore a click. */
  async takeLens(lens, came, limit = 15_000) {
    for (let tries = 1; ; tries++) {
      await lens.click();
      try {
        return await until('what a lens leads to', came, limit);
      } catch (error) {
        if (tries === 4) throw error;
      }
    }
  }

  /** Types into an open input box and presses Enter. */
  async answer(text) {
    const input = this.page.locator('.quick-input-widget input.input');
    await input.waitFor();
    await input.fill(text);
    await input.press('Enter');
  }

  /**
   * Shows the Runs view and returns its tree items. Retries, because a click on the icon of a view that is just
   * appearing hides it.
   */
  async showRuns() {
    const title = this.page.locator('.part.sidebar .title', { hasText: /RAGEN: Runs/ }).first();
    await until('the Runs view', async () => {
      if (!(await title.isVisible()))
        await this.page
          .locator('.activitybar .action-item:has(.action-label[aria-label*="RAGEN"])') // a badge covers the label
          .first()
          .click();
      await title.waitFor({ timeout: 5000 }).catch(() => undefined); // the click may have hidden the view
      await atRest(this.page, { limitMs: 5000 }).catch(() => undefined);
      return title.isVisible();
    });
    return this.page.locator('.part.sidebar').getByRole('treeitem');
  }

  /** Waits for the webview whose root matches `selector` and returns its inner document. */
  async webview(selector, pauseMs = 200) {
    const shown = async () => {
      for (const frame of this.page.frames()) {
        if (!frame.url().includes('fake.html') || !(await isShown(frame))) continue;
        const found = await frame
          .locator(selector)
          .first()
          .isVisible()
          .catch(() => false);
        if (found) return frame;
      }
      return undefined;
    };
    return until(`a page with ${selector}`, shown, slow, pauseMs);
  }

  /**
   * Changes the colour theme through the palette. Does nothing without PICTURES=1, because themes are reviewed by eye.
   */
  async theme(name) {
    if (!env.PICTURES) return;
    await this.command('Preferences: Color Theme');
    await this.page.locator('.quick-input-list .monaco-list-row', { hasText: 'Dark Modern' }).first().waitFor();
    await this.page.locator('.quick-input-widget input.input').fill(themes[name].label); // only visible rows exist
    await this.choose(themes[name].label);
    await this.page.locator(`.monaco-workbench.${themes[name].kind}`).first().waitFor();
    for (const frame of this.page.frames()) if (frame.url().includes('fake.html')) await atRest(frame);
  }

  /** Saves a screenshot of the window in `test-results/`. */
  async picture(name) {
    mkdirSync(results, { recursive: true });
    await this.page.screenshot({ path: join(results, `${name}.png`) });
  }

  /** With PICTURES=1, saves a screenshot for the documentation in `test/e2e/screenshots/`. */
  async keep(name) {
    if (!env.PICTURES) return;
    const folder = join(root, 'test', 'e2e', 'screenshots');
    mkdirSync(folder, { recursive: true });
    await this.page.screenshot({ path: join(folder, `${name}.png`) });
  }

  /** Leases of the workspace's runs, by run id. */
  leases() {
    const folder = join(this.workspace, '.ragen', 'runs');
    const leases = new Map();
    for (const id of existsSync(folder) ? readdirSync(folder) : []) {
      const file = join(folder, id, 'lease');
      if (existsSync(file)) leases.set(id, JSON.parse(readFileSync(file, 'utf8')));
    }
    return leases;
  }

  async stop() {
    await this.browser?.close();
    if (this.server && this.server.exitCode === null) {
      const ended = new Promise(resolve => this.server.once('exit', resolve));
      process.kill(-this.server.pid, 'SIGTERM');
      await Promise.race([ended, sleep(10_000)]);
      if (this.server.exitCode === null && this.server.signalCode === null) process.kill(-this.server.pid, 'SIGKILL');
    }
    for (const { pid } of this.leases().values()) if (pid !== process.pid && isAlive(pid)) process.kill(pid, 'SIGKILL');
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Whether a process is alive. */
export function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Descendant processes of `pid` whose command line contains `part` (Linux). */
function processesBelow(pid, part) {
  const text = file => {
    try {
      return readFileSync(file, 'utf8').replaceAll('\0', ' ');
    } catch {
      return ''; // the process has ended
    }
  };
  const parents = new Map();
  for (const name of readdirSync('/proc').filter(name => /^\d+$/.test(name)))
    parents.set(Number(name), Number(/\) \w (\d+)/.exec(text(`/proc/${name}/stat`))?.[1]));
  const isBelow = child => parents.has(child) && (parents.get(child) === pid || isBelow(parents.get(child)));
  return [...parents.keys()].filter(child => isBelow(child) && text(`/proc/${child}/cmdline`).includes(part));
}

const calm = {
  'workbench.startupEditor': 'none',
  'workbench.secondarySideBar.defaultVisibility': 'hidden',
  'chat.disableAIFeatures': true,
  'telemetry.telemetryLevel': 'off',
  'extensions.autoUpdate': false,
  'update.mode': 'none',
  'git.enabled': false,
  'window.restoreWindows': 'all',
};

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** Whether a page is shown. VS Code keeps hidden pages in memory and hides the element of their outer frame. */
async function isShown(frame) {
  try {
    const outer = await frame.parentFrame()?.frameElement();
    return Boolean(await outer?.isVisible());
  } catch {
    return false; // the page was closed meanwhile
  }
}
