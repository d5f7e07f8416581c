// Generates the problems of Countdown: 1200 for training and 200 different ones for validation. A problem has three or
// four numbers and a target from 1 to 100. The target is reachable by adding or subtracting the numbers in order, with
// a positive first number. Run: node media/data/make/countdown.mjs
import { lines, stream, writeData } from './random.mjs';

const { between, pick } = stream(20_260_402);
const rows = [];
const seen = new Set();
while (rows.length < 1400) {
  const nums = Array.from({ length: between(3, 4) }, () => between(1, 99));
  const target = nums.reduce((sum, number, i) => sum + (i === 0 ? number : number * pick([1, -1])), 0);
  const name = `${target} ${[...nums].sort()}`;
  if (target < 1 || target > 100 || seen.has(name)) continue;
  seen.add(name);
  rows.push({ target, nums });
}
writeData({ 'countdown.jsonl': lines(rows.slice(0, 1200)), 'countdown-val.jsonl': lines(rows.slice(1200)) });
