// The diagnosis next to the plane: interpretation, confidence, other signs, suggestions. Each part links to its section
// of the guide.
import { h, replaceChildren } from '../shared/dom';
import type { Interpretation } from './interpretation';
import type { Anchor } from './signs';

export interface InterpretationView {
  element: HTMLElement;
  draw(interpretation: Interpretation): void;
}

const sureness: Record<Interpretation['confidence'], string> = {
  none: 'No diagnosis',
  low: 'Low confidence',
  moderate: 'Moderate confidence',
  high: 'High confidence',
};
const bars: Record<Interpretation['confidence'], number> = { none: 0, low: 1, moderate: 2, high: 3 };

export function interpretationView(
  explain: (anchor: Anchor) => void,
  scrub: (step: number) => void,
): InterpretationView {
  const element = h('section', { class: 'reading', 'aria-label': 'In plain words' });
  const why = (anchor: Anchor) => {
    const link = h(
      'button',
      {
        class: 'plain link',
        type: 'button',
        title: `docs/METRICS.md, ${anchor.replaceAll('-', ' ')}`,
        'aria-label': `why: ${anchor.replaceAll('-', ' ')}`,
      },
      'why',
    );
    link.addEventListener('click', () => explain(anchor));
    return link;
  };
  return {
    element,
    draw({ headline, sentence, confidence, why: doubts, signs, advice }) {
      const meter = [1, 2, 3].map(level => h('i', { class: level <= bars[confidence] ? 'full' : null }));
      const items = signs.map(({ text, anchor, step }) => {
        const go = step !== undefined && h('button', { class: 'plain link', type: 'button' }, `go to step ${step}`);
        if (go) go.addEventListener('click', () => scrub(step));
        return h('li', {}, text, ' · ', go, go && ' · ', why(anchor));
      });
      replaceChildren(
        element,
        h('h2', { class: 'headline' }, headline, '.'),
        sentence !== '' && h('p', {}, sentence, ' ', why('collapse')),
        h(
          'p',
          { class: 'confidence', 'data-confidence': confidence },
          h('span', { class: 'meter', 'aria-hidden': 'true' }, ...meter),
          h('strong', {}, `${sureness[confidence]}:`),
          h('span', { class: 'muted' }, `${doubts}.`),
        ),
        items.length > 0 && h('div', {}, h('h3', {}, 'Other signs'), h('ul', {}, ...items)),
        h(
          'div',
          {},
          h('h3', {}, 'What to try'),
          h('ul', {}, ...advice.map(({ text, anchor }) => h('li', {}, text, ' · ', why(anchor)))),
        ),
      );
    },
  };
}
