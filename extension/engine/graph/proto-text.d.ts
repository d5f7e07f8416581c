declare module '*.proto' {
  /** The schema's text. */
  const text: string;
  export default text;
}
