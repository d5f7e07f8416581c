// Names from a run folder, as printed in a terminal.
import { expect, it } from 'vitest';
import { printable } from '../../../extension/common/printable';

it.each([
  ['a\nrun  finished', 'a\ufffdrun  finished'],
  ['\u001b[2J\u009b31m', '\ufffd[2J\ufffd31m'],
  ['a\u202eb\u2028c\u2029d\re', 'a\ufffdb\ufffdc\ufffdd\ufffde'],
  ['Überraschung 🙂 #tag', 'Überraschung 🙂 #tag'],
])('%j is printed on one line, without control sequences', (text, printed) => expect(printable(text)).toBe(printed));
