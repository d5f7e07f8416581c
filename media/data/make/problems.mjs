// Generates the problems in mathematics of the environments metamathqa and static: word problems from patterns with
// computed results, in the columns of MetaMathQA and GSM8K, and questions of abstract algebra with four choices, in the
// columns of MMLU. Run: node media/data/make/problems.mjs
import { lines, stream, writeData } from './random.mjs';

const { between, pick, shuffled } = stream(20_260_403);

const people = ['Ana', 'Boris', 'Chen', 'Dalia', 'Emre', 'Farah', 'Goran', 'Hana', 'Ivo', 'Jun', 'Kofi', 'Lena', 'Mateo', 'Noor', 'Olga', 'Priya'];
const things = ['apples', 'marbles', 'stamps', 'pencils', 'shells', 'stickers', 'beads', 'coins', 'cards', 'buttons'];
const money = n => `$${n}`;

/**
 * Each function returns a problem as [text, steps of the solution, result], or undefined if the drawn numbers do not
 * fit.
 */
const patterns = [
  () => {
    const [who, other] = shuffled(people);
    const [thing, a, b, c] = [pick(things), between(12, 60), between(2, 11), between(3, 30)];
    return [`${who} has ${a} ${thing}, gives ${b} of them to ${other} and then finds ${c} more. How many ${thing} does ${who} have now?`, [`${a} - ${b} = ${a - b}`, `${a - b} + ${c} = ${a - b + c}`], a - b + c];
  },
  () => {
    const [boxes, each, broken] = [between(3, 12), between(4, 25), between(2, 9)];
    return [`A shop receives ${boxes} boxes with ${each} cups each, and ${broken} cups are broken. How many cups can be sold?`, [`${boxes} * ${each} = ${boxes * each}`, `${boxes * each} - ${broken} = ${boxes * each - broken}`], boxes * each - broken];
  },
  () => {
    const [speed, hours, rest] = [between(30, 90), between(2, 7), between(10, 100)];
    return [`A train runs at ${speed} kilometres an hour for ${hours} hours, and has ${rest} kilometres left to go. How long is its way in kilometres?`, [`${speed} * ${hours} = ${speed * hours}`, `${speed * hours} + ${rest} = ${speed * hours + rest}`], speed * hours + rest];
  },
  () => {
    const [who, price, count, extra] = [pick(people), between(2, 15), between(2, 9), between(1, 20)];
    const paid = price * count + extra;
    return [`${who} pays ${money(paid)} for ${count} tickets and a snack for ${money(extra)}. What is the price of a ticket in dollars?`, [`${paid} - ${extra} = ${paid - extra}`, `${paid - extra} / ${count} = ${price}`], price];
  },
  () => {
    const [a, x, b] = [between(2, 12), between(-9, 15), between(1, 30)];
    return [`What is the value of x if ${a}x + ${b} = ${a * x + b}?`, [`${a}x = ${a * x + b} - ${b} = ${a * x}`, `x = ${a * x} / ${a} = ${x}`], x];
  },
  () => {
    const [length, width] = [between(3, 30), between(2, 20)];
    return [`A rectangular garden is ${length} metres long and ${width} metres wide. How many metres of fence go around it?`, [`${length} + ${width} = ${length + width}`, `2 * ${length + width} = ${2 * (length + width)}`], 2 * (length + width)];
  },
  () => {
    const [base, height] = [2 * between(2, 15), between(3, 20)];
    return [`What is the area of a triangle with a base of ${base} and a height of ${height}?`, [`${base} * ${height} = ${base * height}`, `${base * height} / 2 = ${(base * height) / 2}`], (base * height) / 2];
  },
  () => {
    const [percent, whole] = [pick([5, 10, 20, 25, 40, 50, 75]), 20 * between(2, 20)];
    const part = (percent * whole) / 100;
    return [`A coat costs ${money(whole)} and is reduced by ${percent}%. What is its new price in dollars?`, [`${percent}% of ${whole} = ${part}`, `${whole} - ${part} = ${whole - part}`], whole - part];
  },
  () => {
    const [first, step, n] = [between(1, 12), between(2, 9), between(6, 20)];
    const last = first + (n - 1) * step;
    return [`A sequence begins with ${first}, and each term is ${step} more than the one before. What is its term number ${n}?`, [`${n - 1} * ${step} = ${(n - 1) * step}`, `${first} + ${(n - 1) * step} = ${last}`], last];
  },
  () => {
    const marks = Array.from({ length: 3 }, () => between(50, 99));
    const mean = between(60, 95);
    const last = 4 * mean - marks.reduce((sum, mark) => sum + mark, 0);
    const who = pick(people);
    return [`${who} has ${marks.slice(0, 2).join(', ')} and ${marks[2]} points in three tests. How many points in a fourth test give a mean of ${mean}?`, [`4 * ${mean} = ${4 * mean}`, `${4 * mean} - ${marks.join(' - ')} = ${last}`], last];
  },
  () => {
    const [a, b] = [between(10, 99), between(3, 12)];
    return [`What is the remainder when ${a * 7} is divided by ${b}?`, [`${a * 7} = ${b} * ${Math.floor((a * 7) / b)} + ${(a * 7) % b}`], (a * 7) % b];
  },
  () => {
    const [a, b, k] = [between(1, 9), between(1, 9), between(2, 12)];
    return [`The numbers of red and blue balls in a box are as ${a} to ${b}. There are ${a * k} red balls. How many balls are there in all?`, [`${a * k} / ${a} = ${k}`, `${b} * ${k} = ${b * k}`, `${a * k} + ${b * k} = ${(a + b) * k}`], (a + b) * k];
  },
  () => {
    const [who, age, years, factor] = [pick(people), between(4, 12), between(2, 9), between(2, 4)];
    const parent = factor * (age + years) - years;
    if (parent < age + 18) return undefined;
    return [`${who} is ${age} years old. In ${years} years ${who}'s mother will be ${factor} times as old as ${who} is then. How old is she now?`, [`${age} + ${years} = ${age + years}`, `${factor} * ${age + years} = ${factor * (age + years)}`, `${factor * (age + years)} - ${years} = ${parent}`], parent];
  },
  () => {
    const [n, k] = [between(4, 9), 2];
    const count = (n * (n - 1)) / k;
    return [`${n} people shake hands, each with each other once. How many handshakes are there?`, [`${n} * ${n - 1} = ${n * (n - 1)}`, `${n * (n - 1)} / 2 = ${count}`], count];
  },
];

function problems(count) {
  const seen = new Set();
  const made = [];
  for (let i = 0; made.length < count; i++) {
    const found = patterns[i % patterns.length]();
    if (!found) continue;
    const [text, steps, result] = found;
    if (result < 0 || seen.has(text)) continue;
    seen.add(text);
    made.push({ text, steps, result });
  }
  return made;
}

const gcd = (a, b) => (b === 0 ? a : gcd(b, a % b));
const phi = n => Array.from({ length: n }, (_, i) => i + 1).filter(k => gcd(k, n) === 1).length;
const orderModulo = (a, n) => {
  let [power, order] = [a % n, 1];
  while (power !== 1) [power, order] = [(power * a) % n, order + 1];
  return order;
};
const primes = [3, 5, 7, 11, 13, 17, 19];

/** Each function returns a question and its numeric result, or undefined if the drawn numbers do not fit. */
const algebra = [
  () => {
    const [n, a] = [between(6, 40), between(2, 5)];
    return [`What is the order of the element ${a} in the additive group Z_${n}?`, n / gcd(a, n)];
  },
  () => {
    const n = between(6, 40);
    return [`How many generators does the cyclic group of order ${n} have?`, phi(n)];
  },
  () => {
    const p = pick(primes);
    const a = between(2, p - 1);
    return [`What is the order of ${a} in the multiplicative group of the integers modulo ${p}?`, orderModulo(a, p)];
  },
  () => {
    const [a, b] = [between(2, 6), between(2, 6)];
    return [`What is the largest order of an element of the direct product Z_${a} x Z_${b}?`, (a * b) / gcd(a, b)];
  },
  () => {
    const n = between(8, 48);
    const divisors = Array.from({ length: n }, (_, i) => i + 1).filter(k => n % k === 0).length;
    return [`How many subgroups does the cyclic group of order ${n} have?`, divisors];
  },
  () => {
    const n = between(6, 30);
    return [`How many units does the ring of the integers modulo ${n} have?`, phi(n)];
  },
  () => {
    const [a, b] = [between(2, 4), between(2, 4)];
    const cycles = `(${Array.from({ length: a }, (_, i) => i + 1).join(' ')})(${Array.from({ length: b }, (_, i) => a + i + 1).join(' ')})`;
    return [`What is the order of the permutation ${cycles}?`, (a * b) / gcd(a, b)];
  },
  () => {
    const [p, a] = [pick(primes), between(2, 30)];
    const inverse = a % p === 0 ? undefined : Array.from({ length: p }, (_, i) => i).find(k => (k * a) % p === 1);
    return inverse === undefined ? undefined : [`Which number from 1 to ${p - 1} is the inverse of ${a} modulo ${p}?`, inverse];
  },
];

function choices(count) {
  const seen = new Set();
  const made = [];
  for (let i = 0; made.length < count; i++) {
    const found = algebra[i % algebra.length]();
    if (!found || seen.has(found[0])) continue;
    const [question, result] = found;
    seen.add(question);
    const others = shuffled([result + 1, result + 2, result - 1, 2 * result, result + 3].filter(n => n > 0 && n !== result));
    const given = shuffled([result, ...new Set(others)].slice(0, 4));
    made.push({ question, subject: 'abstract_algebra', choices: given.map(String), answer: given.indexOf(result) });
  }
  return made;
}

const [own, school] = [problems(420), problems(300)];
writeData({
  'metamathqa.jsonl': lines(
    own.map(({ text, steps, result }) => ({
      type: 'OWN',
      query: text,
      response: `${steps.map(step => `${step}.`).join('\n')}\n#### ${result}\nThe answer is: ${result}`,
    })),
  ),
  'gsm8k.jsonl': lines(
    school.map(({ text, steps, result }) => ({ question: text, answer: `${steps.join('\n')}\n#### ${result}` })),
  ),
  'abstract-algebra.jsonl': lines(choices(160)),
});
