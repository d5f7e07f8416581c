// Pictures of a real run of a vision-language model: in a trace on hover, in the gutter and by a code lens that opens the
// picture; on the Episodes page with heat maps, as film strips, and in a saved GIF. Saves screenshots to test-results/.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { Editor, makeWorkspace, saveGif, scenarios, until } from '../editor.mjs';
import { root } from '../install.mjs';

const workspace = makeWorkspace();
let editor;
const scenario = scenarios(() => editor);

before(async () => {
  const sizes = ['trainer.total_training_steps=1', 'trainer.test_freq=1', 'trainer.experiment_name=seen'];
  for (const [part, groups] of [['train', 2], ['val', 4]])
    sizes.push(`es_manager.${part}.env_groups=${groups}`, `es_manager.${part}.env_configs.n_groups=[${groups}]`); // prettier-ignore
  const batches = ['es_manager.train.group_size=4', 'ppo_mini_batch_size=4', 'micro_batch_size_per_gpu=4'];
  const args = ['train', '--config-name', 'quickstart-vision', ...sizes, ...batches];
  execFileSync(process.execPath, [join(root, 'dist', 'cli.cjs'), ...args], { cwd: workspace, stdio: 'pipe' });
  editor = await Editor.start(workspace);
});
after(async () => {
  await editor?.stop();
  rmSync(workspace, { recursive: true, force: true });
});

const lens = title => editor.page.locator('.codelens-decoration a', { hasText: title }).first();
const lines = () => editor.page.locator('.editor-instance .view-lines').first();

scenario('a trace has a thumbnail in the gutter beside each turn, and a lens that opens the picture', async () => {
  await editor.showRuns();
  await editor.command('RAGEN: Open Reasoning Trace');
  await editor.choose('g000-m01');
  await lens('replay').waitFor();
  await until('a thumbnail in the gutter', () =>
    editor.page
      .locator('.editor-instance .margin .cgmr')
      .evaluateAll(marks =>
        marks.some(mark =>
          /pictures.*\.png/.test(decodeURIComponent(mark.computedStyleMap().get('background-image').toString())),
        ),
      ),
  );
  await lens('picture').click();
  const tab = editor.page.locator('.tab', { hasText: /\.png/ });
  await tab.first().waitFor();
  const image = (await editor.webview('img')).locator('img').first();
  await until('the picture', () => image.evaluate(each => each.naturalWidth > 0));
  await editor.picture('visual-trace');
  await editor.command('View: Close Editor');
  await tab.first().waitFor({ state: 'detached' });
});

scenario('the hover of a state shows its picture', async () => {
  const shown = await until('a hover with the picture', async () => {
    // The text of a line is measured by a range, because the elements of a line are as wide as the editor.
    const at = await lines().evaluate(area => {
      const walker = document.createTreeWalker(area, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node; node = walker.nextNode())
        if (node.textContent.includes('<image>')) {
          const range = document.createRange();
          range.selectNodeContents(node);
          const { left, top, height } = range.getBoundingClientRect();
          return { x: left + 8, y: top + height / 2 };
        }
      return null;
    });
    if (!at) return false;
    await editor.page.mouse.move(at.x + 300, at.y + 200);
    await editor.page.mouse.move(at.x, at.y, { steps: 4 });
    const image = editor.page.locator('.monaco-hover:not(.hidden) img').first();
    return image.waitFor({ timeout: 4000 }).then(
      () => image.evaluate(each => ({ width: each.naturalWidth, shown: each.getBoundingClientRect().width })),
      () => false,
    );
  });
  assert.ok(shown.width > 0, 'the picture was loaded');
  await editor.picture('visual-hover');
});

scenario('the Episodes page shows pictures, and the heat map of an answer', async () => {
  await editor.command('RAGEN: Open Episodes');
  const frame = await editor.webview('.episode-row');
  await frame.locator('.episode-row').first().click();
  const picture = frame.locator('.turn img').first();
  await until('a picture', () => picture.evaluate(each => each.naturalWidth > 0));
  await frame.locator('.episode-row').first().press('h');
  await frame.locator('.heat-frame').first().waitFor({ timeout: 60_000 });
  await editor.picture('visual-episodes');
});

scenario('arrow keys move through the film strips, and Enter opens the episode at the turn of a picture', async () => {
  const frame = await editor.webview('.episode-row');
  await frame.locator('.episode-row').first().press('f');
  const frames = frame.locator('.film-strip.current .film-frame');
  await frames.first().waitFor();
  await frames.first().locator('.heat-frame').waitFor({ timeout: 60_000 });
  await editor.picture('visual-film');
  const labels = await frames.evaluateAll(all => all.map(each => each.textContent.trim()));
  assert.deepEqual(labels, [...labels.slice(0, -1).map((_, i) => `turn ${i + 1}`), 'end']);
  const focused = () => frame.evaluate(() => document.activeElement.textContent.trim());
  await frames.first().focus();
  for (const label of labels.slice(1)) {
    await editor.page.keyboard.press('ArrowRight');
    assert.equal(await focused(), label);
  }
  await until('the last picture', () =>
    frames
      .last()
      .locator('img')
      .evaluate(each => each.naturalWidth > 0),
  );
  await editor.page.keyboard.press('Home');
  await editor.page.keyboard.press('ArrowDown');
  assert.equal(await focused(), 'turn 1');
  await editor.page.keyboard.press('ArrowUp');
  await editor.page.keyboard.press('Enter');
  await frame.locator('.turn[data-turn="1"] img').waitFor();
});

scenario('the heat maps of a group are side by side', async () => {
  const frame = await editor.webview('.episode-row');
  await editor.page.keyboard.press('g');
  await frame.locator('.grid-cell .heat-frame').first().waitFor({ timeout: 60_000 });
  await editor.picture('visual-group');
  await editor.page.keyboard.press('h');
  await frame.locator('.heat-frame').first().waitFor({ state: 'detached' });
});

scenario('the playback is saved as an animated GIF with each picture of the episode', async () => {
  const frame = await editor.webview('.episode-row');
  const urls = await picturesOf(frame);
  await editor.page.keyboard.press('p');
  await frame.locator('.player-stage').waitFor();
  const gif = await saveGif(editor, frame, workspace);
  const read = await editor.page.evaluate(differences, { gif: gif.toString('base64'), urls });
  assert.deepEqual([read.frames, read.width, read.height], [urls.length, 800, 400]);
  assert.ok(
    read.distances.every(each => each < 8),
    `differences from the pictures: ${read.distances}`,
  ); // 256 colours
});

/** Data URLs of the pictures of the current episode, from its film strip. */
async function picturesOf(frame) {
  await editor.page.keyboard.press('f');
  const frames = frame.locator('.film-strip.current .film-frame');
  await frames.first().waitFor();
  return frames.evaluateAll(all => all.map(each => each.querySelector('lazy-picture').src));
}

/**
 * Runs in the browser: decodes a GIF, and returns the mean difference of its frames from the pictures that they show, which
 * are 304 × 304 pixels large, 24 pixels from the left and the top.
 */
async function differences({ gif, urls }) {
  const bytesOf = text => Uint8Array.from(atob(text), each => each.charCodeAt(0));
  const pixelsOf = (source, ...from) => {
    const context = new OffscreenCanvas(304, 304).getContext('2d');
    context.imageSmoothingEnabled = false;
    context.drawImage(source, ...from, 0, 0, 304, 304);
    return context.getImageData(0, 0, 304, 304).data;
  };
  const decoder = new ImageDecoder({ data: bytesOf(gif), type: 'image/gif' });
  await decoder.tracks.ready;
  await decoder.completed;
  const { frameCount: frames } = decoder.tracks.selectedTrack;
  const distances = [];
  let size = {};
  for (let frameIndex = 0; frameIndex < Math.min(frames, urls.length); frameIndex++) {
    const { image } = await decoder.decode({ frameIndex });
    size = { width: image.displayWidth, height: image.displayHeight };
    const shown = pixelsOf(image, 24, 24, 304, 304);
    const picture = await createImageBitmap(new Blob([bytesOf(urls[frameIndex].split(',')[1])]));
    const wanted = pixelsOf(picture, 0, 0, picture.width, picture.height);
    distances.push(shown.reduce((sum, value, i) => sum + Math.abs(value - wanted[i]), 0) / shown.length);
  }
  return { frames, ...size, distances };
}
