// Generates the problems of Countdown: 1200 for training and 200 different ones for validation, with three or four
// numbers up to 99 and a target from 1 to 100; and small problems, with two or three numbers up to 15. The target is
// reachable by adding or subtracting the numbers in order, with a positive first number.
// Run: node media/data/make/countdown.mjs
import { lines, stream, writeData } from './random.mjs';

/**
 * Returns `count` different problems with `fewest` to `most` numbers up to `largest` and a target up to 100, in the order
 * in which they are drawn.
 */
function problems({ between, pick }, count, [fewest, most], largest) {
  const rows = [];
  const seen = new Set();
  while (rows.length < count) {
    const nums = Array.from({ length: between(fewest, most) }, () => between(1, largest));
    const target = nums.reduce((sum, number, i) => sum + (i === 0 ? number : number * pick([1, -1])), 0);
    const name = `${target} ${[...nums].sort()}`;
    if (target < 1 || target > 100 || seen.has(name)) continue;
    seen.add(name);
    rows.push({ target, nums });
  }
  return rows;
}

const usual = problems(stream(20_260_402), 1400, [3, 4], 99);
const random = stream(20_261_128);
const pairs = problems(random, 160, [2, 2], 15);
const triples = problems(random, 2240, [3, 3], 15);
const small = random.shuffled([...pairs.slice(20), ...triples.slice(280)]);
writeData({
  'countdown.jsonl': lines(usual.slice(0, 1200)),
  'countdown-val.jsonl': lines(usual.slice(1200)),
  'countdown-small.jsonl': lines(small),
  'countdown-small-val.jsonl': lines([...pairs.slice(0, 20), ...triples.slice(0, 280)]),
});
