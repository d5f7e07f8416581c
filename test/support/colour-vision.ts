// Colour arithmetic for the palette's test: WCAG contrast, and the perceived distance of two colours (CIE 1976 ΔE) with
// normal and deficient colour vision (matrices of Machado, Oliveira and Fernandes 2009, severity 1).

type Triple = [number, number, number];

export const visions: Record<string, Triple[]> = {
  typical: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
};

/** WCAG 2 contrast ratio of two `#rrggbb` colours, 1…21. */
export function contrast(a: string, b: string): number {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (light + 0.05) / (dark + 0.05);
}

/** ΔE between two colours as perceived with one of `visions`. */
export function distance(a: string, b: string, vision: Triple[]): number {
  const [p, q] = [lab(seen(a, vision)), lab(seen(b, vision))];
  return Math.hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
}

function linear(colour: string): Triple {
  const channel = (at: number) => {
    const value = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return [channel(1), channel(3), channel(5)];
}

function luminance(colour: string): number {
  const [red, green, blue] = linear(colour);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function seen(colour: string, vision: Triple[]): Triple {
  const rgb = linear(colour);
  return vision.map(row => row.reduce((sum, factor, i) => sum + factor * rgb[i], 0)) as Triple;
}

function lab([red, green, blue]: Triple): Triple {
  const f = (t: number) => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116);
  const x = f(Math.max(0, 0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047);
  const y = f(Math.max(0, 0.2126 * red + 0.7152 * green + 0.0722 * blue));
  const z = f(Math.max(0, 0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}
