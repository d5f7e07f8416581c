import { describe, expect, it } from 'vitest';
import {
  formatChange,
  formatDuration,
  formatNumber,
  formatPercent,
  formatPoints,
  formatSigned,
  formatTick,
  formatValue,
  plainNumbers,
} from '../../../webview/shared/format';

describe('numbers', () => {
  it.each([
    [0, '0'],
    [-0, '0'],
    [12, '12'],
    [-7, '−7'],
    [0.5, '0.500'],
    [1.2345, '1.23'],
    [123.4, '123'],
    [999.4, '999'],
    [999.6, '1.00 k'],
    [1000, '1.00 k'],
    [12345, '12.3 k'],
    [999_600, '1.00 M'],
    [2_500_000_000, '2.50 G'],
    [7.2e12, '7.20 T'],
    [3e15, '3.00e15'],
    [0.00123, '0.00123'],
    [0.00099951, '0.00100'],
    [0.000123, '1.23e−4'],
    [-1e-6, '−1.00e−6'],
    [Number.NaN, '–'],
    [Infinity, '–'],
  ])('%d reads %s', (value, text) => expect(formatNumber(value)).toBe(text));

  it('show the sign of a change', () => {
    expect(formatSigned(0.25)).toBe('+0.250');
    expect(formatSigned(-0.25)).toBe('−0.250');
    expect(formatSigned(0)).toBe('0');
  });
});

describe('shares', () => {
  it.each([
    [0, '0 %'],
    [0.412, '41.2 %'],
    [0.004, '0.4 %'],
    [1, '100 %'],
    [0.9996, '100 %'],
    [-0.2, '−20.0 %'],
    [Number.NaN, '–'],
  ])('%d reads %s', (share, text) => expect(formatPercent(share)).toBe(text));

  it('show differences in percentage points, without the sign of a value that rounds to zero', () => {
    expect(formatPoints(0.031)).toBe('+3.1 pp');
    expect(formatPoints(-0.031)).toBe('−3.1 pp');
    expect(formatPoints(-0.0001)).toBe('0.0 pp');
  });
});

describe('times', () => {
  it.each([
    [0, '0 s'],
    [0.0042, '4.20 ms'],
    [0.85, '850 ms'],
    [0.9999, '1.00 s'],
    [4.2, '4.20 s'],
    [59.4, '59 s'],
    [59.6, '1 m 00 s'],
    [72, '1 m 12 s'],
    [3599.7, '1 h 00 m'],
    [7500, '2 h 05 m'],
    [273_600, '3 d 4 h'],
    [-3, '−3.00 s'],
  ])('%d s reads %s', (seconds, text) => expect(formatDuration(seconds)).toBe(text));
});

describe('units', () => {
  it('format a value and its change alike', () => {
    expect([formatValue(0.5, 'share'), formatValue(90, 'seconds'), formatValue(0.5, 'number')]).toEqual([
      '50.0 %',
      '1 m 30 s',
      '0.500',
    ]);
    expect([formatChange(0.5, 'share'), formatChange(90, 'seconds'), formatChange(-2, 'number')]).toEqual([
      '+50.0 pp',
      '+1 m 30 s',
      '−2',
    ]);
  });

  it.each([
    [0.5, 'share', '50 %'],
    [0.025, 'share', '2.5 %'],
    [0.5, 'number', '0.5'],
    [100, 'number', '100'],
    [60_000, 'number', '60 k'],
    [1e-6, 'number', '1e−6'],
    [1.15, 'seconds', '1.15 s'],
    [120, 'seconds', '2 m 00 s'],
  ] as const)('a tick at %d %s reads %s', (value, unit, text) => expect(formatTick(value, unit)).toBe(text));
});

it('copied numbers have the plain minus sign, words keep their dashes', () => {
  expect(plainNumbers('reward −0.10 · e−6 − − then −.5')).toBe('reward -0.10 · e-6 − − then -.5');
});
