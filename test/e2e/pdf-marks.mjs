// Where elements of a page are in its PDF. Each element gets a link without extent at its first and at its last line;
// Chromium writes links as annotations with page and coordinates, so that no reader of PDF texts is needed.
const pattern = /https:\/\/mark\.invalid\/(\d+)\/(first|last)/;

/** Marks the elements that match a selector; returns the number of marks so far. Runs in the page. */
export const mark = (page, selector) =>
  page.evaluate(wanted => {
    const marked = document.querySelectorAll('a[href^="https://mark.invalid/"]').length / 2;
    const elements = [...document.querySelectorAll(wanted)];
    elements.forEach((element, i) => {
      for (const [end, place] of [
        ['first', 'afterbegin'],
        ['last', 'beforeend'],
      ]) {
        const link = document.createElement('a');
        link.href = `https://mark.invalid/${marked + i}/${end}`;
        link.textContent = '.';
        link.style.cssText = 'position:absolute;font-size:1px;line-height:1px'; // does not change the layout
        // A row has no place for a link; its first and last cells have.
        const target =
          element.tagName === 'TR' ? (end === 'first' ? element.firstElementChild : element.lastElementChild) : element;
        target.insertAdjacentElement(place, link);
      }
    });
    return { from: marked, to: marked + elements.length };
  }, selector);

/** Returns the pages of a PDF that Chromium wrote: their sizes in points, and the marks on them. */
export function pagesOf(pdf) {
  const text = pdf.toString('latin1');
  const objects = new Map([...text.matchAll(/(?:^|\n)(\d+) 0 obj\s*([^]*?)endobj/g)].map(([, id, body]) => [id, body]));
  return [...objects.values()]
    .filter(body => /\/Type\s*\/Page\b/.test(body))
    .map(body => {
      const [, , , width, height] = /\/MediaBox\s*\[(\S+) (\S+) (\S+) ([^\]\s]+)\s*\]/.exec(body).map(Number);
      const [, list = ''] = /\/Annots\s*(\[[^\]]*\]|\d+ 0 R)/.exec(body) ?? [];
      const ids = (/^\d+ 0 R$/.test(list) ? objects.get(list.split(' ')[0]) : list).matchAll(/(\d+) 0 R/g);
      const marks = [...ids].flatMap(([, id]) => {
        const annotation = objects.get(id) ?? '';
        const [, number, end] = pattern.exec(annotation) ?? [];
        const [, ...box] = /\/Rect\s*\[(\S+) (\S+) (\S+) ([^\]\s]+)\s*\]/.exec(annotation) ?? [];
        return number === undefined ? [] : [{ number: Number(number), end, box: box.map(Number) }];
      });
      return { width, height, marks };
    });
}
