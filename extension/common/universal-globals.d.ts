// Globals that Node.js, worker threads and pages all have. The pure layers (common, run-data, protocol, algorithms) see
// these and nothing else of their surroundings: they compile without Node's types and without the DOM.

declare class TextEncoder {
  encode(text?: string): Uint8Array<ArrayBuffer>;
}

declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  decode(bytes?: ArrayBufferView | ArrayBuffer, options?: { stream?: boolean }): string;
}

declare function structuredClone<T>(value: T): T;
