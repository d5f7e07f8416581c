// Waits until a page has finished drawing, instead of a fixed time: pages draw after their data arrives, in animation
// frames, and update their theme asynchronously.

/**
 * Resolves when the elements, attributes and texts of `frame` (a Playwright page or frame) have not changed for
 * `quietMs` and two animation frames have passed. Throws after `limitMs`.
 */
export async function atRest(frame, { quietMs = 200, limitMs = 30_000 } = {}) {
  const quiet = await frame.evaluate(
    ([quietMs, limitMs]) =>
      new Promise(resolve => {
        let timer = setTimeout(end, quietMs, true);
        const limit = setTimeout(end, limitMs, false);
        const observer = new MutationObserver(() => {
          clearTimeout(timer);
          timer = setTimeout(end, quietMs, true);
        });
        observer.observe(document, { attributes: true, characterData: true, childList: true, subtree: true });
        function end(found) {
          observer.disconnect();
          clearTimeout(timer);
          clearTimeout(limit);
          requestAnimationFrame(() => requestAnimationFrame(() => resolve(found)));
        }
      }),
    [quietMs, limitMs],
  );
  if (!quiet) throw new Error(`the page is still changing after ${limitMs / 1000} s`);
}
