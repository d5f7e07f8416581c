// The page's only time control: a slider over the run's steps, play, and a button that follows the newest step. It does
// not own the step: it reports the requested step and shows the current one.
import { h, replaceChildren, setAttribute, setText } from '../shared/dom';
import { icon } from '../shared/icons';
import { button } from '../shared/toolkit';

export interface Scrubber {
  element: HTMLElement;
  /** `steps` are all steps of the run; `stops` are those with a diagnosis, at which play and arrow keys stop. */
  update(steps: readonly number[], stops: readonly number[], step: number, live: boolean): void;
  /** Goes to the previous or next stop. */
  move(by: -1 | 1): void;
  togglePlay(): void;
}

/** Milliseconds from one stop to the next, and maximum milliseconds for a whole run. */
const pace = { stop: 350, whole: 20_000 };

/** `go` with null follows the newest step. */
export function scrubber(go: (step: number | null) => void): Scrubber {
  let stops: readonly number[] = [];
  let steps: readonly number[] = [];
  let now = 0;
  let playing: ReturnType<typeof setInterval> | undefined;

  const slider = h('input', { type: 'range', min: 0, max: 0, step: 1, 'aria-label': 'Step' });
  slider.addEventListener('input', () => {
    pause();
    go(steps[Number(slider.value)] ?? null);
  });
  const where = h('output', { class: 'where' });
  const play = button({
    label: 'Play',
    icon: icon('play'),
    iconOnly: true,
    title: 'Play through the diagnoses (space)',
    onClick: () => scrub.togglePlay(),
  });
  const before = button({
    label: 'Previous diagnosis',
    icon: icon('left'),
    iconOnly: true,
    title: 'Previous diagnosis (←)',
    onClick: () => scrub.move(-1),
  });
  const after = button({
    label: 'Next diagnosis',
    icon: icon('right'),
    iconOnly: true,
    title: 'Next diagnosis (→)',
    onClick: () => scrub.move(1),
  });
  const follow = button({ label: 'Newest', title: 'Follow the newest step (End)', onClick: () => (pause(), go(null)) });

  function pause(): void {
    if (playing === undefined) return;
    clearInterval(playing);
    playing = undefined;
    replaceChildren(play, icon('play'));
    setAttribute(play, 'aria-label', 'Play');
  }

  const scrub: Scrubber = {
    element: h('div', { class: 'scrubber' }, before, play, after, slider, where, follow),
    update(nowSteps, nowStops, step, live) {
      [steps, stops, now] = [nowSteps, nowStops, step];
      setAttribute(slider, 'max', String(Math.max(0, steps.length - 1)));
      slider.value = String(Math.max(0, steps.indexOf(step)));
      setAttribute(slider, 'aria-valuetext', `step ${step}`);
      const diagnosed = stops.findLast(stop => stop <= step);
      const about = diagnosed !== undefined && diagnosed !== step ? ` · diagnosed at ${diagnosed}` : '';
      setText(where, `step ${step} of ${steps.at(-1) ?? 0}${about}`);
      setAttribute(follow, 'aria-pressed', String(live));
    },
    move(by) {
      pause();
      const next = by > 0 ? stops.find(stop => stop > now) : stops.findLast(stop => stop < now);
      if (next !== undefined) go(next);
    },
    togglePlay() {
      if (playing !== undefined) return pause();
      if (stops.length < 2) return;
      if (now >= stops[stops.length - 1]) go(stops[0]);
      replaceChildren(play, icon('pause'));
      setAttribute(play, 'aria-label', 'Pause');
      playing = setInterval(
        () => {
          const next = stops.find(stop => stop > now);
          if (next === undefined) return pause();
          go(next);
        },
        Math.max(30, Math.min(pace.stop, pace.whole / stops.length)),
      );
    },
  };
  return scrub;
}
