// Generates the programming tasks in the format of DeepCoder's data sets. Each task has a JavaScript reference, which
// computes the expected outputs for seeded inputs, and a Python solution, which a unit test runs on the same inputs.
// Run: node media/data/make/deepcoder.mjs
import { lines, stream, writeData } from './random.mjs';

const { between, pick, shuffled } = stream(20_260_403);
const many = (count, make) => Array.from({ length: count }, make);
const numbers = (count, low = -20, high = 40) => many(count, () => between(low, high));
const word = (length, letters = 'abcdefgh') => many(length, () => pick(letters)).join('');
const testsPerTask = 5;

/** Tasks that read standard input: name, text, generator of the input, reference on the input's lines, solution. */
const programs = [
  [
    'Sum of a list',
    'The first line holds n, the second n integers. Print their sum.',
    () => {
      const list = numbers(between(1, 8));
      return `${list.length}\n${list.join(' ')}`;
    },
    ([, list]) => list.split(' ').reduce((a, b) => a + Number(b), 0),
    'input()\nprint(sum(map(int, input().split())))',
  ],
  [
    'Reversed words',
    'One line holds words. Print them in reverse order, separated by single blanks.',
    () => many(between(1, 6), () => word(between(1, 5))).join(' '),
    ([line]) => line.split(' ').reverse().join(' '),
    'print(" ".join(input().split()[::-1]))',
  ],
  [
    'Vowels',
    'One line holds a word of lower-case letters. Print how many of them are a, e, i, o or u.',
    () => word(between(3, 12), 'aeioubcdfg'),
    ([line]) => [...line].filter(letter => 'aeiou'.includes(letter)).length,
    'print(sum(c in "aeiou" for c in input()))',
  ],
  [
    'Second largest',
    'The first line holds n, the second n distinct integers, n at least 2. Print the second largest.',
    () => {
      const list = shuffled(many(60, (_, i) => i)).slice(0, between(2, 8));
      return `${list.length}\n${list.join(' ')}`;
    },
    ([, list]) =>
      list
        .split(' ')
        .map(Number)
        .sort((a, b) => b - a)[1],
    'input()\nprint(sorted(map(int, input().split()))[-2])',
  ],
  [
    'Greatest common divisor',
    'One line holds two positive integers. Print their greatest common divisor.',
    () => {
      const d = between(1, 12);
      return `${d * between(1, 20)} ${d * between(1, 20)}`;
    },
    ([line]) => {
      let [a, b] = line.split(' ').map(Number);
      while (b) [a, b] = [b, a % b];
      return a;
    },
    'import math\nprint(math.gcd(*map(int, input().split())))',
  ],
  [
    'Collatz',
    'One line holds a positive integer n. As long as n is not 1, halve it if it is even, else replace it by 3n + 1. Print the number of steps.',
    () => String(between(1, 40)),
    ([line]) => {
      let n = Number(line);
      let steps = 0;
      for (; n !== 1; steps++) n = n % 2 ? 3 * n + 1 : n / 2;
      return steps;
    },
    'n = int(input())\nsteps = 0\nwhile n != 1:\n    n = 3 * n + 1 if n % 2 else n // 2\n    steps += 1\nprint(steps)',
  ],
  [
    'Running sums',
    'The first line holds n, the second n integers. Print the sums of the first 1, 2, …, n of them, separated by blanks.',
    () => {
      const list = numbers(between(1, 8));
      return `${list.length}\n${list.join(' ')}`;
    },
    ([, list]) => {
      let sum = 0;
      return list
        .split(' ')
        .map(value => (sum += Number(value)))
        .join(' ');
    },
    'from itertools import accumulate\ninput()\nprint(*accumulate(map(int, input().split())))',
  ],
  [
    'Brackets',
    'One line holds round brackets. Print YES if each opening one is closed by a later one and none is left, else NO.',
    () => word(between(2, 8), '()'),
    ([line]) => {
      let open = 0;
      for (const c of line) {
        open += c === '(' ? 1 : -1;
        if (open < 0) return 'NO';
      }
      return open === 0 ? 'YES' : 'NO';
    },
    'depth = 0\nok = True\nfor c in input():\n    depth += 1 if c == "(" else -1\n    ok = ok and depth >= 0\nprint("YES" if ok and depth == 0 else "NO")',
  ],
  [
    'Run lengths',
    'One line holds a word. Print each run of equal letters as the letter and its length, such as a3b1.',
    () => many(between(1, 5), () => pick('abc').repeat(between(1, 4))).join(''),
    ([line]) => [...line.matchAll(/(.)\1*/g)].map(([run]) => `${run[0]}${run.length}`).join(''),
    'from itertools import groupby\nprint("".join(f"{k}{len(list(g))}" for k, g in groupby(input())))',
  ],
  [
    'Triangle',
    'One line holds n. Print n lines; the k-th holds k stars.',
    () => String(between(1, 7)),
    ([line]) => many(Number(line), (_, i) => '*'.repeat(i + 1)).join('\n'),
    'for k in range(int(input())):\n    print("*" * (k + 1))',
  ],
  [
    'Distinct in order',
    'The first line holds n, the second n integers. Print each value once, in the order of its first occurrence.',
    () => {
      const list = numbers(between(2, 10), 1, 6);
      return `${list.length}\n${list.join(' ')}`;
    },
    ([, list]) => [...new Set(list.split(' '))].join(' '),
    'input()\nprint(*dict.fromkeys(input().split()))',
  ],
];

/**
 * Tasks that define a function: name, text, function name, parameters with Python types, generator of the arguments,
 * reference, body of the solution.
 */
const functions = [
  [
    'Two that add up',
    'Return the indices of the two numbers that add up to target, the smaller index first. There is exactly one such pair.',
    'pairFor',
    'nums: List[int], target: int',
    () => {
      const list = shuffled(many(12, (_, i) => 1 << i)).slice(0, between(3, 7));
      return [list, list[0] + list[list.length - 1]];
    },
    (nums, target) => {
      for (let i = 0; i < nums.length; i++)
        for (let j = i + 1; j < nums.length; j++) if (nums[i] + nums[j] === target) return [i, j];
    },
    'List[int]',
    [
      'for i in range(len(nums)):',
      '    for j in range(i + 1, len(nums)):',
      '        if nums[i] + nums[j] == target:',
      '            return [i, j]',
    ],
  ],
  [
    'Palindrome',
    'Return whether s reads the same backwards.',
    'isPalindrome',
    's: str',
    () => {
      const half = word(between(1, 4));
      return [pick([half + [...half].reverse().join(''), half + word(2)])];
    },
    s => s === [...s].reverse().join(''),
    'bool',
    ['return s == s[::-1]'],
  ],
  [
    'Rotate',
    'Return the list with its last k elements moved to the front; k may exceed the length.',
    'rotated',
    'nums: List[int], k: int',
    () => [numbers(between(1, 7)), between(0, 12)],
    (nums, k) => {
      const by = k % nums.length;
      return [...nums.slice(nums.length - by), ...nums.slice(0, nums.length - by)];
    },
    'List[int]',
    ['k %= len(nums)', 'return nums[len(nums) - k:] + nums[:len(nums) - k]'],
  ],
  [
    'Longest common beginning',
    'Return the longest text that all words begin with.',
    'commonBeginning',
    'words: List[str]',
    () => {
      const head = word(between(0, 4));
      return [many(between(1, 4), () => head + word(between(0, 3)))];
    },
    words => {
      let length = 0;
      while (length < words[0].length && words.every(w => w[length] === words[0][length])) length++;
      return words[0].slice(0, length);
    },
    'str',
    ['import os', 'return os.path.commonprefix(words)'],
  ],
  [
    'Greatest sum of neighbours',
    'Return the greatest sum of one or more elements that stand side by side.',
    'greatestSum',
    'nums: List[int]',
    () => [numbers(between(1, 9), -15, 15)],
    nums => {
      let best = -Infinity;
      let here = 0;
      for (const n of nums) {
        here = Math.max(here, 0) + n;
        best = Math.max(best, here);
      }
      return best;
    },
    'int',
    [
      'best = here = nums[0]',
      'for n in nums[1:]:',
      '    here = max(here, 0) + n',
      '    best = max(best, here)',
      'return best',
    ],
  ],
  [
    'Stairs',
    'A step climbs one or two stairs. Return in how many ways n stairs can be climbed.',
    'ways',
    'n: int',
    () => [between(1, 20)],
    n => {
      let [a, b] = [1, 1];
      for (let i = 1; i < n; i++) [a, b] = [b, a + b];
      return b;
    },
    'int',
    ['a, b = 1, 1', 'for _ in range(n - 1):', '    a, b = b, a + b', 'return b'],
  ],
  [
    'Merged ranges',
    'Merge all ranges [start, end] that overlap or touch, and return them in order.',
    'merged',
    'ranges: List[List[int]]',
    () => [
      many(between(1, 5), () => {
        const start = between(0, 20);
        return [start, start + between(0, 6)];
      }),
    ],
    ranges => {
      const out = [];
      for (const [a, b] of ranges.map(r => [...r]).sort((x, y) => x[0] - y[0] || x[1] - y[1])) {
        const last = out.at(-1);
        if (last && a <= last[1]) last[1] = Math.max(last[1], b);
        else out.push([a, b]);
      }
      return out;
    },
    'List[List[int]]',
    [
      'out = []',
      'for a, b in sorted(ranges):',
      '    if out and a <= out[-1][1]:',
      '        out[-1][1] = max(out[-1][1], b)',
      '    else:',
      '        out.append([a, b])',
      'return out',
    ],
  ],
  [
    'Missing number',
    'The list holds all numbers from 0 to n but one. Return the one that is missing.',
    'missing',
    'nums: List[int]',
    () => {
      const n = between(1, 9);
      const gone = between(0, n);
      return [shuffled(many(n + 1, (_, i) => i)).filter(i => i !== gone)];
    },
    nums => (nums.length * (nums.length + 1)) / 2 - nums.reduce((a, b) => a + b, 0),
    'int',
    ['return len(nums) * (len(nums) + 1) // 2 - sum(nums)'],
  ],
  [
    'Letter counts',
    'Return the letters of s by falling count, equal counts by the alphabet, as one text without repetition.',
    'byCount',
    's: str',
    () => [word(between(3, 12), 'abcd')],
    s => {
      const letters = [...new Set(s)];
      const count = c => s.split(c).length - 1;
      return letters.sort((a, b) => count(b) - count(a) || (a < b ? -1 : 1)).join('');
    },
    'str',
    ['return "".join(sorted(set(s), key=lambda c: (-s.count(c), c)))'],
  ],
  [
    'Spread of columns',
    'Return for each column of the grid its greatest value less its smallest.',
    'spreads',
    'grid: List[List[int]]',
    () => {
      const columns = between(1, 4);
      return [many(between(1, 4), () => numbers(columns))];
    },
    grid => grid[0].map((_, c) => Math.max(...grid.map(r => r[c])) - Math.min(...grid.map(r => r[c]))),
    'List[int]',
    ['return [max(c) - min(c) for c in zip(*grid)]'],
  ],
  [
    'Roman numerals',
    'Return n, from 1 to 3999, as a Roman numeral.',
    'roman',
    'n: int',
    () => [between(1, 3999)],
    n => {
      const signs = [
        [1000, 'M'],
        [900, 'CM'],
        [500, 'D'],
        [400, 'CD'],
        [100, 'C'],
        [90, 'XC'],
        [50, 'L'],
        [40, 'XL'],
        [10, 'X'],
        [9, 'IX'],
        [5, 'V'],
        [4, 'IV'],
        [1, 'I'],
      ];
      let out = '';
      for (const [value, sign] of signs)
        while (n >= value) {
          out += sign;
          n -= value;
        }
      return out;
    },
    'str',
    [
      'out = ""',
      'for value, sign in zip([1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1], "M CM D CD C XC L XL X IX V IV I".split()):',
      '    out += sign * (n // value)',
      '    n %= value',
      'return out',
    ],
  ],
];

const rows = [
  ...programs.map(([name, text, input, reference, solution]) => {
    const tests = many(testsPerTask, () => {
      const given = input();
      return { input: given, output: String(reference(given.split('\n'))), testtype: 'stdin_stdout' };
    });
    return {
      problem: `${name}. ${text}`,
      solutions: [solution],
      tests: JSON.stringify(tests),
      starter_code: '',
      metadata: '{}',
    };
  }),
  ...functions.map(([name, text, func_name, parameters, input, reference, type, body]) => {
    const tests = many(testsPerTask, () => {
      const given = input();
      const output = JSON.stringify(reference(...structuredClone(given)));
      return { input: given.map(value => JSON.stringify(value)).join('\n'), output, testtype: 'functional' };
    });
    const head = `class Solution:\n    def ${func_name}(self, ${parameters}) -> ${type}:\n`;
    const solution = head + body.map(line => `        ${line}`).join('\n');
    return {
      problem: `${name}. ${text}`,
      solutions: [solution],
      tests: JSON.stringify(tests),
      starter_code: head,
      metadata: JSON.stringify({ func_name }),
    };
  }),
];
const mixed = shuffled(rows);
writeData({ 'deepcoder/train.jsonl': lines(mixed.slice(6)), 'deepcoder/test.jsonl': lines(mixed.slice(0, 6)) });
