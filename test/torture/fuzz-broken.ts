// Parsers that violate each guarantee on inputs with an exclamation mark; they test the fuzzer itself.
import { Broken, Escaped } from './fuzz-target';
import type { FuzzTarget } from './fuzz-target';

const corpus = ['all is well', 'and this is too']; // mutations insert exclamation marks

const target = (name: string, breaks: () => unknown): FuzzTarget => ({
  name,
  ...{ form: 'text', corpus, weight: 1 },
  run: input => (input.includes('!') ? breaks() : null),
});
const thrown = (error: Error) => (): never => {
  throw error;
};

export const brokenTargets: readonly FuzzTarget[] = [
  target('sound', thrown(Object.assign(new Error('refused'), { name: 'UserError' }))),
  target('crash', thrown(new TypeError('x is not a function'))),
  target('hang', () => {
    const until = process.cpuUsage().user + 80_000;
    while (process.cpuUsage().user < until);
  }),
  target('pollution', () => {
    Object.defineProperty(Object.prototype, 'polluted', { value: 1, configurable: true });
  }),
  target('escape', thrown(new Escaped('../x'))),
  target('wrong', thrown(new Broken('two is one'))),
  target('stray rejection', () => {
    void Promise.reject(new RangeError('nobody waits'));
    return new Promise(resolve => setImmediate(resolve));
  }),
  target('death', () => process.abort()),
];
