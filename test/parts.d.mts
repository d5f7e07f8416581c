export interface Part {
  tests: string[];
  specs: string[];
}
export declare const parts: Part[];
export declare function leftOut(kind: keyof Part): string[];
