// Makes the walkthrough's moving pictures from screenshots of the real pages, as animated PNG files of half the size.
// The screenshots are written by the suite in the editor (PICTURES=1). Decodes and encodes PNG (W3C Portable Network
// Graphics, third edition) with zlib only; the same screenshots give the same pixels.
// node test/e2e/moving-pictures.mjs [--check]
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { argv, exit } from 'node:process';
import { crc32, deflateSync, inflateSync } from 'node:zlib';

const screenshots = 'test/e2e/screenshots';
const folder = 'media/walkthrough';
/** Seconds for which each frame is shown. */
const frameSeconds = 3;
/** Colours are rounded to multiples of this number, which halves the files without a visible change. */
const colourStep = 8;

/** The frames of each picture. */
const pictures = {
  start: ['new-run-dark', 'dashboard-dark'],
  dashboard: ['dashboard-dark', 'episodes-dark', 'live-dark'],
  traces: ['traces-board-dark', 'traces-environment-dark', 'what-if-dark'],
  collapse: ['collapse-dark', 'compare-dark'],
  environment: ['live-editing-coverage-dark', 'live-editing-compare-dark', 'live-editing-dashboard-dark'],
};

const signature = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);

/** Decodes a PNG file of 8-bit RGB or RGBA without interlacing to `{width, height, rgb}`. */
function decode(file) {
  const data = readFileSync(file);
  const parts = [];
  let header;
  for (let at = 8; at < data.length; at += 12 + data.readUInt32BE(at)) {
    const kind = data.toString('latin1', at + 4, at + 8);
    const body = data.subarray(at + 8, at + 8 + data.readUInt32BE(at));
    if (kind === 'IHDR') header = body;
    if (kind === 'IDAT') parts.push(body);
  }
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const channels = { 2: 3, 6: 4 }[header[9]];
  if (header[8] !== 8 || channels === undefined || header[12] !== 0)
    throw new Error(`${file} is no 8-bit RGB picture without interlacing: take the screenshot again`);
  return { width, height, rgb: withoutAlpha(unfiltered(inflateSync(Buffer.concat(parts)), width, height, channels)) };

  function withoutAlpha(bytes) {
    if (channels === 3) return bytes;
    const rgb = Buffer.alloc(width * height * 3);
    for (let pixel = 0; pixel < width * height; pixel++) bytes.copy(rgb, pixel * 3, pixel * 4, pixel * 4 + 3);
    return rgb;
  }
}

/** Predicts a byte from its left, upper and upper left neighbour. */
function paeth(a, b, c) {
  const [pa, pb, pc] = [Math.abs(b - c), Math.abs(a - c), Math.abs(a + b - 2 * c)];
  return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

function unfiltered(raw, width, height, channels) {
  const stride = width * channels;
  const out = Buffer.alloc(stride * height);
  for (let y = 0; y < height; y++) {
    const kind = raw[y * (stride + 1)];
    for (let x = 0; x < stride; x++) {
      const left = x >= channels ? out[y * stride + x - channels] : 0;
      const up = y > 0 ? out[(y - 1) * stride + x] : 0;
      const corner = x >= channels && y > 0 ? out[(y - 1) * stride + x - channels] : 0;
      const predicted = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][kind];
      out[y * stride + x] = raw[y * (stride + 1) + 1 + x] + predicted;
    }
  }
  return out;
}

/** Halves a picture: each pixel is the mean of four. */
function halved({ width, height, rgb }) {
  const [w, h] = [width >> 1, height >> 1];
  const out = Buffer.alloc(w * h * 3);
  for (let y = 0; y < h; y++)
    for (let x = 0; x < w; x++)
      for (let c = 0; c < 3; c++) {
        const at = (2 * y * width + 2 * x) * 3 + c;
        const mean = (rgb[at] + rgb[at + 3] + rgb[at + width * 3] + rgb[at + width * 3 + 3]) / 4;
        out[(y * w + x) * 3 + c] = Math.min(255, Math.round(mean / colourStep) * colourStep);
      }
  return { width: w, height: h, rgb: out };
}

/** Compresses a picture's rows, each with the filter (none, left, up or Paeth) whose residuals are smallest. */
function compressed({ width, height, rgb }) {
  const stride = width * 3;
  const rows = [];
  for (let y = 0; y < height; y++) {
    const candidates = [0, 1, 2, 4].map(kind => {
      const row = Buffer.alloc(stride + 1);
      row[0] = kind;
      let cost = 0;
      for (let x = 0; x < stride; x++) {
        const left = x >= 3 ? rgb[y * stride + x - 3] : 0;
        const up = y > 0 ? rgb[(y - 1) * stride + x] : 0;
        const corner = x >= 3 && y > 0 ? rgb[(y - 1) * stride + x - 3] : 0;
        const residual = (rgb[y * stride + x] - [0, left, up, 0, paeth(left, up, corner)][kind]) & 255;
        row[x + 1] = residual;
        cost += residual === 0 ? 0 : 8 + Math.min(residual, 256 - residual);
      }
      return { row, cost };
    });
    rows.push(candidates.reduce((best, each) => (each.cost < best.cost ? each : best)).row);
  }
  return deflateSync(Buffer.concat(rows), { level: 9 });
}

function chunk(kind, body) {
  const named = Buffer.concat([Buffer.from(kind, 'latin1'), body]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(body.length);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, sum]);
}

const numbers = (...values) =>
  Buffer.concat(
    values.map(value => {
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32BE(value);
      return bytes;
    }),
  );

/** Encodes frames of one size as an animated PNG that repeats forever. */
function animated(frames) {
  const [{ width, height }] = frames;
  let sequence = 0;
  const chunks = [
    chunk('IHDR', Buffer.concat([numbers(width, height), Buffer.from([8, 2, 0, 0, 0])])),
    chunk('acTL', numbers(frames.length, 0)),
  ];
  frames.forEach((frame, index) => {
    const timing = Buffer.from([0, frameSeconds, 0, 1, 0, 0]); // seconds as a fraction; replaces the frame before
    chunks.push(chunk('fcTL', Buffer.concat([numbers(sequence++, width, height, 0, 0), timing])));
    const data = compressed(frame);
    chunks.push(index === 0 ? chunk('IDAT', data) : chunk('fdAT', Buffer.concat([numbers(sequence++), data])));
  });
  return Buffer.concat([signature, ...chunks, chunk('IEND', Buffer.alloc(0))]);
}

/** The chunks of a PNG file with its pixels inflated: compressors of equal pixels may differ between versions of Node. */
function contents(picture) {
  const chunks = [];
  for (let at = 8; at < picture.length; at += 12 + picture.readUInt32BE(at)) {
    const kind = picture.toString('latin1', at + 4, at + 8);
    const body = picture.subarray(at + 8, at + 8 + picture.readUInt32BE(at));
    const skipped = kind === 'fdAT' ? 4 : 0; // its sequence number
    chunks.push(`${kind} ${(kind.endsWith('AT') ? inflateSync(body.subarray(skipped)) : body).toString('base64')}`);
  }
  return chunks.join('\n');
}

for (const [name, frames] of Object.entries(pictures)) {
  const all = frames.map(frame => halved(decode(join(screenshots, `${frame}.png`))));
  if (new Set(all.map(({ width, height }) => `${width} × ${height}`)).size > 1)
    throw new Error(`the frames of ${name} differ in size: take their screenshots again`);
  const file = join(folder, `${name}.png`);
  const picture = animated(all);
  if (argv.includes('--check')) {
    if (contents(readFileSync(file)) === contents(picture)) continue;
    console.error(`${file} differs from its screenshots: run node test/e2e/moving-pictures.mjs`);
    exit(1);
  }
  writeFileSync(file, picture);
  console.log(`${file}: ${all.length} frames, ${(picture.length / 1024).toFixed(0)} KiB`);
}
